"""Names that are near a name in spelling."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["near_names"]

_LEAST_LIKENESS = 60.0


def near_names(name: str, names: Iterable[str], *, limit: int) -> list[str]:
    """Find names that hold this one, or are spelt much like it, nearest first; case aside.

    Likeness is the normalised InDel similarity of rapidfuzz, from 0 to 100; 60 is the least that counts.

    Args:
        name: What was asked for.
        names: What there is.
        limit: The most names.
    """
    from rapidfuzz import fuzz, process

    folded = name.casefold()
    there = {other: other.casefold() for other in names}
    holding = [other for other, text in there.items() if folded and folded in text]
    near = process.extract(folded, there, scorer=fuzz.ratio, score_cutoff=_LEAST_LIKENESS, limit=limit)
    return list(dict.fromkeys([*sorted(holding, key=len), *(other for _, _, other in near)]))[:limit]
