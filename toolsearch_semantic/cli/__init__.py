"""The ``toolsearch`` command."""
