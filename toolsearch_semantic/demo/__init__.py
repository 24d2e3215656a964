"""A made-up company's tools, in ``tools.jsonl``: something to search before there is a catalogue of one's own."""
