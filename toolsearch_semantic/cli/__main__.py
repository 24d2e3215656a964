"""Lets ``python -m toolsearch_semantic.cli`` be the command."""

from toolsearch_semantic.cli.main import main

main()
