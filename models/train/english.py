"""Is a text English? A weight for each token of a vocabulary, by logistic regression over bags of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.folder import MANIFEST

__all__ = ["english_weights", "write_english"]

WEIGHTS, TENSOR = "english.safetensors", "english"
STEPS = 500
TEXTS_A_STEP = 1_100
RATE = 0.1
DECAY = 2e-3
TOKENS = 64
MARGIN = 1.0
"""In the logit: what hardly speaks for either side, a number or a name, counts as English."""


def english_weights(
    tokenizer: Tokenizer, english: Sequence[Sequence[str]], others: Sequence[Sequence[str]], *, seed: int
) -> NDArray[np.float32]:
    """Fit a weight for each token so that the sum over a text's tokens is above 0 where the text is English.

    Args:
        tokenizer: The vocabulary.
        english: Collections of English texts; each has the same part in every step.
        others: Collections of texts in other languages.
        seed: Of the choice of texts.

    Returns:
        Shape (vocabulary,); special and unknown tokens have 0. The mean over a text's tokens is the logit.
    """
    chance = np.random.default_rng(seed)
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    sides = [[_ids(tokenizer, texts) for texts in side] for side in (others, english)]
    bag = torch.nn.EmbeddingBag(tokenizer.get_vocab_size(), 1, mode="mean")
    torch.nn.init.zeros_(bag.weight)
    constant = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.Adam([*bag.parameters(), constant], lr=RATE)
    for step in range(STEPS):
        ids: list[list[int]] = []
        labels: list[float] = []
        for label, collections in enumerate(sides):
            for texts in collections:
                rows = chance.integers(0, len(texts), TEXTS_A_STEP // len(collections))
                ids += [texts[row] for row in rows]
                labels += [float(label)] * len(rows)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        flat = torch.from_numpy(np.concatenate(ids).astype(np.int64))
        logits = bag(flat, torch.from_numpy(np.cumsum(lengths) - lengths))[:, 0] + constant
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(labels))
        loss = loss + DECAY * (bag.weight**2).sum() / len(ids)
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / STEPS)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    weights = (bag.weight[:, 0] + constant + MARGIN).detach().numpy().astype(np.float32)
    neither = {tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>")} - {None}
    weights[[*tokenizer.encode("").ids, *neither]] = 0.0
    return weights


def _ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return [encoding.ids for encoding in encoded if encoding.ids]


def write_english(folder: Path, weights: NDArray[np.float32], partner: str) -> None:
    """Put the weights, and the folder that other languages are left to, into a model's folder."""
    path = folder / WEIGHTS
    save_file({TENSOR: weights.astype(np.float16)}, path)
    path.chmod(0o644)  # safetensors makes it readable by its owner only
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    manifest.update(latin_only=False, english=WEIGHTS, partner=partner)
    manifest["files"][WEIGHTS] = asdict(FileEntry.of(path))
    manifest.pop("scoring", None)  # it was fitted without the partner
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
