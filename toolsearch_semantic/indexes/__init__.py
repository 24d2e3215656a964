"""Ranked search over searchable texts: by meaning, by keyword, and by both."""
