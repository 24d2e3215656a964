"""What a docstring says: of the tool, and of each parameter."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

__all__ = ["Docstring", "parsed_docstring"]


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart.

    Args:
        description: The text without the sections on parameters, results and the like.
        parameters: Parameter name → its description, where it has one.
    """

    description: str
    parameters: dict[str, str]


def parsed_docstring(text: str | None) -> Docstring:
    """Take a docstring of Google, NumPy or Sphinx style apart; one in no style is all description.

    Args:
        text: The docstring as written, with its indentation.
    """
    if not text or not text.strip():
        return Docstring("", {})
    import docstring_parser

    clean = inspect.cleandoc(text)
    try:
        # With a first line of its own, all the text before the sections comes back in one piece, as it was written.
        parsed = docstring_parser.parse(f"_\n\n{clean}")
    except docstring_parser.ParseError:
        return Docstring(clean, {})
    if not parsed.meta:
        return Docstring(clean, {})
    parameters = {
        parameter.arg_name.lstrip("*"): parameter.description.strip()
        for parameter in parsed.params
        if parameter.description and parameter.description.strip()
    }
    return Docstring((parsed.long_description or "").strip(), parameters)
