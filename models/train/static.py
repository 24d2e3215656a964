"""The static model while it is trained: a table of token vectors, of which a text is the mean."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.folder import MANIFEST

from .export import quantise_rows
from .loop import TextModel

__all__ = ["StaticTable"]

WEIGHTS, TENSOR, SCALES = "model.safetensors", "embeddings", "weights"
"""The tensors are named as model2vec and sentence-transformers name them: a row of eight bits, times its weight."""


class StaticTable(TextModel):
    """A static model's table, to be trained from the one that `distil` made.

    Rows of zeros stay so: they are tokens of scripts that the table does not know, and texts made of them are left
    to keyword search.

    Args:
        folder: The folder of a static model.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tensors = load_file(folder / WEIGHTS)
        table = tensors[TENSOR].astype(np.float32)
        if SCALES in tensors:
            table *= tensors[SCALES][:, np.newaxis]
        # Scaled so that one learning rate fits any table; a text's direction does not depend on it.
        lengths = np.linalg.norm(table, axis=1)
        self.bag = torch.nn.EmbeddingBag.from_pretrained(
            torch.from_numpy(table / lengths[lengths > 0].mean()), freeze=False, mode="sum"
        )
        kept = torch.from_numpy((lengths > 0).astype(np.float32)).unsqueeze(1)
        self.bag.weight.register_hook(lambda gradient: gradient * kept)  # type: ignore[no-untyped-call]

    def forward(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """Encode n texts to unit rows of shape (n, d); all tokens count, as they do when the model is used."""
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        flat = torch.from_numpy(np.fromiter((one for row in ids for one in row), np.int64, int(lengths.sum())))
        sums = self.bag(flat, torch.from_numpy(np.cumsum(lengths) - lengths))
        return torch.nn.functional.normalize(sums, dim=-1)

    def write(self, source: Path, folder: Path) -> None:
        """Write a model folder: this table in eight bits, and everything else as in the folder that it began with."""
        shutil.copytree(source, folder, dirs_exist_ok=True)
        table = self.bag.weight.detach().numpy()
        rounded, scales = quantise_rows(table)
        path = folder / WEIGHTS
        save_file({TENSOR: rounded, SCALES: scales}, path)
        path.chmod(0o644)  # safetensors makes it readable by its owner only
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        manifest["files"][WEIGHTS] = asdict(FileEntry.of(path))
        manifest.pop("scoring", None)  # it was fitted to the other table
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
