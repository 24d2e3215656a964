from __future__ import annotations

import pytest

from toolsearch_semantic.formats.docstrings import Docstring, parsed_docstring
from toolsearch_semantic.formats.read import as_tool


def google(a: int, b: str = "x"):
    """Do it.

    Long text.

    Args:
        a: The a.
        b (str): The b,
            on two lines.
    """


def numpy_style(a: int, b: str = "x"):
    """Do it.

    Long text.

    Parameters
    ----------
    a : int
        The a.
    b : str, optional
        The b,
        on two lines.
    """


def sphinx(a: int, b: str = "x"):
    """Do it.

    Long text.

    :param a: The a.
    :param b: The b,
        on two lines.
    :returns: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy_style, sphinx])
def test_a_docstring_of_any_style_describes_tool_and_parameters(function):
    tool = as_tool(function)
    assert tool.description == "Do it.\n\nLong text."
    assert tool.input_schema["properties"] == {
        "a": {"type": "integer", "description": "The a."},
        "b": {"type": "string", "default": "x", "description": "The b,\non two lines."},
    }


def test_a_docstring_without_sections_is_the_description():
    def f():
        """One line
        goes on: here.

            indented
        """

    assert as_tool(f).description == "One line\ngoes on: here.\n\n    indented"


@pytest.mark.parametrize("text", [None, "", " \n "])
def test_no_docstring_says_nothing(text):
    assert parsed_docstring(text) == Docstring("", {})


def test_a_docstring_of_parameters_alone_has_no_description():
    assert parsed_docstring("\n    Args:\n        a: The a.\n    ") == Docstring("", {"a": "The a."})


def test_a_docstring_that_looks_broken_is_all_description():
    assert parsed_docstring("Do it.\n\n:param: odd") == Docstring("Do it.\n\n:param: odd", {})
