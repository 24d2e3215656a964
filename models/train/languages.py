"""A model for other languages whose vectors stand in another model's space.

multilingual-e5-small stays as it is; one linear layer behind it is trained, so that a text in any language lies where
the model of English puts the same said in English, and a request near the tool that answers it.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.text import searchable_text

from .e5 import Packed, tokenizer_of
from .export import BertShape
from .pairs import Pairs
from .parallel import Translation
from .transformer import Transformer

__all__ = ["Anchors", "backbone", "chosen_translations", "fit_head", "gather"]

Floats = NDArray[np.float32]

RATE = 1e-3
DECAY = 1e-4
RIDGE = 0.3
SCALE = 20.0
TRANSLATIONS_A_STEP, ENGLISH_A_STEP, REQUESTS_A_STEP = 1_024, 512, 768
NEAR = 3.0
ENGLISH_BEFORE = 5_000
BALANCE = 0.6
"""Of a language with n translations, n to this power are wanted: few languages have most of them."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """What the layer is fitted on: vectors of the start, and where they belong in the other model's space.

    Attributes:
        translations: Of texts in other languages, shape (a, d).
        meant: For each, the row of ``english`` that it is a translation of, shape (a,).
        english: The other model's vectors of the English texts, shape (b, d).
        english_before: The start's vectors of the first of the same texts, shape (at most b, d).
        requests: The start's vectors of requests, shape (c, d).
        tools: For each request, the row of the tool that answers it, shape (c,).
        documents: The other model's vectors of the tools, shape (e, d).
        documents_before: The start's vectors of the tools, shape (e, d).
    """

    translations: Floats
    meant: NDArray[np.int64]
    english: Floats
    english_before: Floats
    requests: Floats
    tools: NDArray[np.int64]
    documents: Floats
    documents_before: Floats


def chosen_translations(translations: Sequence[Translation], size: int, *, seed: int) -> list[Translation]:
    """Choose some, languages with few being taken more of."""
    counts = Counter(one.lang.partition("-")[0] for one in translations)
    chances = np.array([counts[one.lang.partition("-")[0]] ** (BALANCE - 1.0) for one in translations])
    chance = np.random.default_rng(seed)
    rows = chance.choice(len(translations), min(size, len(translations)), replace=False, p=chances / chances.sum())
    return [translations[row] for row in sorted(rows)]


def backbone(packed: Packed) -> Transformer:
    """Load a packed model into torch."""
    config = BertShape(packed.weights, packed.heads).config(packed.weights)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        tokenizer_of(packed.pieces).save(str(folder / "tokenizer.json"))
        save_file(packed.weights, folder / "model.safetensors", metadata={"format": "pt"})
        return Transformer(folder)


def gather(
    model: Transformer, english: Encoder, pairs: Pairs, translations: Sequence[Translation], *, requests: int, seed: int
) -> Anchors:
    """Compute the vectors that the layer is fitted on.

    Args:
        model: The start.
        english: The encoder whose space is the target.
        pairs: Requests and tools; those in other languages all take part, and of the English ones so many.
        translations: Texts and what they mean.
        requests: English requests.
        seed: Of their choice.
    """
    said = list(dict.fromkeys(one.english for one in translations))
    rows = {text: row for row, text in enumerate(said)}
    asked = [pair for pair in pairs.pairs if pair.tool and not pair.batch.startswith("texts of")]
    others = [pair for pair in asked if not pair.query.isascii()]
    in_english = [pair for pair in asked if pair.query.isascii()]
    chance = np.random.default_rng(seed)
    chosen = chance.choice(len(in_english), min(requests, len(in_english)), replace=False)
    asked = [*others, *(in_english[row] for row in sorted(chosen))]
    tools = list(dict.fromkeys(pair.tool for pair in asked if pair.tool))
    columns = {tool: column for column, tool in enumerate(tools)}
    documents = [searchable_text(pairs.tools[tool]) for tool in tools]
    return Anchors(
        translations=model.encode([one.other for one in translations]),
        meant=np.array([rows[one.english] for one in translations]),
        english=english.encode_documents(said),
        english_before=model.encode(said[:ENGLISH_BEFORE]),
        requests=model.encode([pair.query for pair in asked]),
        tools=np.array([columns[pair.tool] for pair in asked if pair.tool]),
        documents=english.encode_documents(documents),
        documents_before=model.encode(documents),
    )


class Layer(torch.nn.Module):
    """The linear layer behind the start's unit vectors."""

    def __init__(self, anchors: Anchors) -> None:
        super().__init__()
        before = torch.from_numpy(anchors.english_before)
        mean = before.mean(dim=0)
        centred = before - mean
        wanted = torch.from_numpy(anchors.english[: len(before)])
        ridge = RIDGE * torch.eye(before.shape[1])
        solved = torch.linalg.solve(centred.T @ centred + ridge, centred.T @ wanted)
        self.linear = torch.nn.Linear(*solved.shape)
        self.linear.weight.data = solved.T.contiguous()
        self.linear.bias.data = -(mean @ solved)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Map to unit rows."""
        return torch.nn.functional.normalize(self.linear(vectors), dim=-1)


def fit_head(
    anchors: Anchors,
    *,
    seed: int,
    steps: int,
    progress: Callable[[Sequence[int]], Iterator[int]] = iter,
) -> dict[str, Floats]:
    """Fit the layer: weights ``head.weight`` of shape (d, d) and ``head.bias`` of shape (d,).

    Least squares on English alone begin it (what Mikolov, Le and Sutskever did between languages, 2013); then a
    translation is to be nearest to its meaning among those of the batch (InfoNCE), and near it; a request nearest to
    its tool, as the other model has it and as this one does, for tools that are described in other languages.
    """
    torch.manual_seed(seed)
    chance = np.random.default_rng(seed)
    layer = Layer(anchors)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=RATE, weight_decay=DECAY)
    before = {name: torch.from_numpy(getattr(anchors, name)) for name in ("translations", "english_before", "requests")}
    english, documents = torch.from_numpy(anchors.english), torch.from_numpy(anchors.documents)
    documents_before = torch.from_numpy(anchors.documents_before)
    for step in progress(range(steps)):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        rows = chance.integers(0, len(anchors.translations), TRANSLATIONS_A_STEP)
        meant = anchors.meant[rows]
        said = layer(before["translations"][rows])
        loss = _told_apart(said, english[meant], meant) + NEAR * _apart(said, english[meant])
        rows = chance.integers(0, len(anchors.english_before), ENGLISH_A_STEP)
        loss = loss + 0.5 * NEAR * _apart(layer(before["english_before"][rows]), english[rows])
        rows = chance.integers(0, len(anchors.requests), REQUESTS_A_STEP)
        tools = anchors.tools[rows]
        asked, described = layer(before["requests"][rows]), layer(documents_before[tools])
        loss = loss + _told_apart(asked, documents[tools], tools) + 0.5 * _told_apart(asked, described, tools)
        loss = loss + 0.5 * NEAR * _apart(described, documents[tools])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return {
        "head.weight": layer.linear.weight.detach().numpy(),
        "head.bias": layer.linear.bias.detach().numpy(),
    }


def _told_apart(left: torch.Tensor, right: torch.Tensor, keys: NDArray[np.int64]) -> torch.Tensor:
    """Compute InfoNCE (van den Oord et al., 2018) of the rows; what has the same key is no wrong answer."""
    same = torch.from_numpy(keys[:, np.newaxis] == keys[np.newaxis, :])
    same.fill_diagonal_(False)
    logits = SCALE * (left @ right.T).masked_fill(same, -1.0)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(left)))


def _apart(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return 1.0 - (left * right).sum(dim=1).mean()
