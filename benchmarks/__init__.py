"""Measurements: quality, abstention, speed, tokens."""
