"""Whole-framework glue, one file each, imported from its own module."""
