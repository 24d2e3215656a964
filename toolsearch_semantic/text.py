"""What of a tool is searched: its searchable text, its words, and the one tokenizer.

``text_fields`` reads a tool once; ``searchable_text`` puts the fields into the sentence that encoders see, and
``tokenize`` turns any text into the terms that the lexical index counts. A change to what any of the three gives
must raise ``TEXT_VERSION``, which is part of every cached vector's key and of every saved index.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolsearch_semantic.tool import Tool

__all__ = [
    "DESCRIPTION_LIMIT",
    "PARAMETERS_LIMIT",
    "QUERY_LIMIT",
    "SCHEMA_DEPTH",
    "TEXT_VERSION",
    "TextFields",
    "clean",
    "normalise",
    "query_words",
    "searchable_text",
    "split_identifier",
    "text_fields",
    "tokenize",
]

TEXT_VERSION = 1
"""Raised whenever the same tool would give another text or other terms."""

DESCRIPTION_LIMIT = 4_000
"""Characters of a description (or of ``search_text``) that are indexed."""

PARAMETERS_LIMIT = 4_000
"""Characters of all parameter names that are indexed, and as many again of their descriptions."""

NAME_LIMIT = 500
"""Characters of a name or a namespace that are indexed."""

QUERY_LIMIT = 4_000
"""Characters of a query that are searched for."""

SCHEMA_DEPTH = 8
"""Levels of a schema that are read; what lies deeper is not indexed."""

_SCHEMA_NODES = 10_000
_ENUM_VALUES = 16
_ENUM_VALUE_LENGTH = 40
_LONGEST_KEPT = 64  # characters of a word whose terms are remembered


@dataclass(frozen=True, slots=True)
class TextFields:
    """The parts of a tool that are searched, each as cleaned plain text.

    ``cut`` names the fields that were longer than their limit, so that nothing is cut in silence.
    """

    name: str
    namespace: str
    description: str
    parameter_names: str
    parameter_descriptions: str
    cut: tuple[str, ...] = ()


def text_fields(tool: Tool) -> TextFields:
    """Read the searchable parts of a tool.

    Names are split at separators. Parameters are found through nested objects, arrays, ``$ref`` within the schema
    and ``anyOf``/``oneOf``/``allOf``, each of which is a level, down to ``SCHEMA_DEPTH``; a definition that refers
    to itself is not read again within itself.
    Enum values stand with the descriptions where there are at most 16 of at most 40 characters. A tool with a
    ``search_text`` is searched by that text alone.
    """
    cut: list[str] = []

    def limited(field: str, text: str, limit: int) -> str:
        cleaned = clean(text[: 4 * limit])
        if len(cleaned) > limit or len(text) > 4 * limit:
            cut.append(field)
        return cleaned[:limit]

    if tool.search_text is not None:
        return TextFields("", "", limited("search_text", tool.search_text, DESCRIPTION_LIMIT), "", "", tuple(cut))
    schema = _SchemaReader(tool.input_schema)
    fields = TextFields(
        name=_separated(limited("name", tool.name, NAME_LIMIT)),
        namespace=_separated(limited("namespace", tool.namespace or "", NAME_LIMIT)),
        description=limited("description", tool.description, DESCRIPTION_LIMIT),
        parameter_names=limited("parameter names", ", ".join(schema.names), PARAMETERS_LIMIT),
        parameter_descriptions=limited("parameter descriptions", "; ".join(schema.descriptions), PARAMETERS_LIMIT),
    )
    return replace(fields, cut=tuple(dict.fromkeys([*cut, *sorted(schema.cut)])))


def searchable_text(fields: TextFields) -> str:
    """Put the fields into the one text that is embedded, most telling first.

    Encoders cut what is too long for them at the end, so parameters come last. Parameter descriptions are left to
    the lexical index: with them the bundled model ranked the training sets no better (``models/README.md``).
    """
    head = " ".join(split_identifier(f"{fields.namespace} {fields.name}"))
    parts = [head, fields.description.rstrip(". "), " ".join(split_identifier(fields.parameter_names))]
    return ". ".join(part for part in parts if part)


def split_identifier(identifier: str) -> list[str]:
    """Split a name into its words: camelCase, PascalCase, snake_case, kebab-case, dotted names and digits.

    Case is kept (``getHTTPResponse2`` gives ``get``, ``HTTP``, ``Response``, ``2``).
    """
    return [part for word in re.findall(_WORD, identifier) for part in _split_case(word)]


def tokenize(text: str, *, without: frozenset[str] = frozenset()) -> list[str]:
    """Turn text into index terms, in order, repeats included; lower-case words of ``without`` are left out.

    Unicode-aware: compatibility forms, case and accents are folded; identifiers are split and a compound also
    gives its whole (``GitHub`` gives ``git``, ``hub`` and ``github``); scripts written without spaces give
    character bigrams; English words are stemmed (Snowball).
    """
    return [term for word in re.findall(_WORD, normalise(text)) if word.lower() not in without for term in _terms(word)]


def query_words(query: str) -> dict[str, tuple[str, ...]]:
    """Give each word of a query, accents folded, with the terms that it stands for.

    English function words are left out, unless the query has no other word.
    """
    words = {word: _terms(word) for word in re.findall(_WORD, normalise(query))}
    telling = {word: terms for word, terms in words.items() if word.lower() not in STOP_WORDS}
    return telling or words


STOP_WORDS = frozenset(
    {
        "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "being",
        "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "for",
        "from", "give", "going", "had", "has", "have", "having", "he", "help", "her", "here", "hers", "him",
        "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just", "know", "let", "ll", "m", "me",
        "might", "must", "my", "need", "now", "of", "onto", "or", "our", "ours", "please", "re", "s", "shall",
        "she", "should", "so", "some", "such", "t", "tell", "than", "that", "the", "their", "them", "then",
        "there", "these", "they", "this", "those", "to", "too", "us", "ve", "very", "want", "was", "we", "were",
        "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with", "won", "would",
        "wouldn", "you", "your", "yours",
    }
)  # fmt: skip
"""English words that any request may have: function words, what is left of contractions, and how one asks."""


# Patterns are compiled when they are first used (`re` keeps them), and not when the package is imported.

# Letters and digits of any script. Marks are word characters only in blocks where a word is torn without them
# (Indic, Thai, Lao, Tibetan, Burmese, Khmer), which `\w` does not know.
_WORD = r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0DFF\u0E31-\u0EFF\u0F18-\u0FBC\u102B-\u109F\u17B4-\u17D3])+"

# Scripts written without spaces between words: Thai to Khmer, kana, Han, Hangul (whose particles stick to words).
_UNSPACED = (
    r"[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u1100-\u11FF\u3040-\u30FF\u31F0-\u31FF"
    r"\u3400-\u4DBF\u4E00-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\U00020000-\U0003FFFF]+"
)

# Only marks that decorate a letter which is read without them: Latin, Greek and Cyrillic accents, Hebrew points,
# Arabic vowel signs and the tatweel. Others, such as the Japanese voicing mark, make another letter.
_DECORATION = r"[\u0300-\u036F\u0483-\u0487\u0591-\u05BD\u05BF-\u05C7\u0640\u064B-\u065F\u0670]"

# Not text: control and format characters (bidirectional overrides, zero-width joiners), lone surrogates.
_INVISIBLE = (
    r"[\x00-\x08\x0E-\x1F\x7F-\x9F\u00AD\u061C\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF\uD800-\uDFFF"
    r"\U000E0000-\U000E007F]"
)


def clean(text: str) -> str:
    """Collapse white space and drop what is not text: control and format characters, lone surrogates."""
    return " ".join(re.sub(_INVISIBLE, "", text).split())


def _separated(identifier: str) -> str:
    """Put spaces at separators only: where the case changes is for ``tokenize`` to see."""
    return " ".join(re.findall(_WORD, identifier))


def normalise(text: str) -> str:
    """Fold compatibility forms and accents, and drop what is not text; case is kept."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", re.sub(_INVISIBLE, "", text))
    return unicodedata.normalize("NFKC", re.sub(_DECORATION, "", decomposed))


def _split_case(word: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for i in range(1, len(word)):
        before, here = word[i - 1], word[i]
        digits_meet_letters = before.isdigit() != here.isdigit()
        hump = before.islower() and here.isupper()
        acronym_ends = before.isupper() and here.isupper() and word[i + 1 : i + 2].islower()
        if digits_meet_letters or hump or acronym_ends:
            parts.append(word[start:i])
            start = i
    parts.append(word[start:])
    return parts


def _terms(word: str) -> tuple[str, ...]:
    return _short_terms(word) if len(word) <= _LONGEST_KEPT else _terms_of(word)


@lru_cache(maxsize=100_000)
def _short_terms(word: str) -> tuple[str, ...]:
    return _terms_of(word)


def _terms_of(word: str) -> tuple[str, ...]:
    terms: list[str] = []
    position = 0
    for match in re.finditer(_UNSPACED, word):
        terms.extend(_spaced_terms(word[position : match.start()]))
        run = match.group()
        terms.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        position = match.end()
    terms.extend(_spaced_terms(word[position:]))
    return tuple(terms)


def _spaced_terms(word: str) -> Iterator[str]:
    if not word:
        return
    yield _stem(word.casefold())
    parts = _split_case(word)
    if len(parts) > 1:
        # One character of a compound (the s of "s3") would match far too much by itself.
        yield from (_stem(part.casefold()) for part in parts if len(part) > 1)


_stemmers = threading.local()  # a Snowball stemmer must not be shared by threads


def _stem(word: str) -> str:
    stem: Callable[[str], str] | None = getattr(_stemmers, "english", None)
    if stem is None:
        import Stemmer

        stem = _stemmers.english = Stemmer.Stemmer("english").stemWord
    return stem(word)


class _SchemaReader:
    """Walks a schema in order, within bounds, and remembers which bound it met.

    Cycles are stopped on the way down alone: an object that stands in two places is read in both, as it is after
    the schema was written as JSON and read again.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.names: list[str] = []
        self.descriptions: list[str] = []
        self.cut: set[str] = set()
        self._root = schema
        self._nodes = 0
        self._read("", schema, ())

    def _read(self, name: str, node: Any, above: tuple[int, ...]) -> None:
        self._nodes += 1
        if self._nodes > _SCHEMA_NODES:
            self.cut.add("schema size")
            return
        if name:
            if len(name) > NAME_LIMIT:
                self.cut.add("parameter names")
            self.names.append(_separated(name[:NAME_LIMIT]))
        if not isinstance(node, Mapping) or id(node) in above:
            return
        if above:
            self.descriptions.extend(self._said(node))
        children = list(_children(node, self._root))
        if children and len(above) >= SCHEMA_DEPTH:
            self.cut.add("schema depth")
            return
        for child_name, child in children:
            self._read(child_name, child, (*above, id(node)))

    def _said(self, node: Mapping[str, Any]) -> Iterator[str]:
        description = node.get("description")
        if isinstance(description, str) and description.strip():
            if len(description) > PARAMETERS_LIMIT:
                self.cut.add("parameter descriptions")
            yield clean(description[:PARAMETERS_LIMIT])
        values = node.get("enum", [node["const"]] if "const" in node else [])
        if isinstance(values, list):
            texts = [value for value in values if isinstance(value, str) and value]
            short = [value for value in texts if len(value) <= _ENUM_VALUE_LENGTH]
            if len(values) > _ENUM_VALUES or len(short) < len(texts):
                self.cut.add("enum values")
            if short and len(values) <= _ENUM_VALUES:
                yield " | ".join(short)


def _children(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        yield from ((str(name), child) for name, child in properties.items())
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(node.get(key), Mapping):
            yield "", node[key]
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(node.get(key), list):
            yield from (("", child) for child in node[key])
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        yield "", _resolve(reference, root)


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """Follow a JSON pointer (RFC 6901) within the schema; None where it leads nowhere."""
    node: Any = root
    for part in reference[2:].split("/"):
        step = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or step not in node:
            return None
        node = node[step]
    return node
