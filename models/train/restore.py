"""A bundled transformer as a folder for sentence-transformers: the same eight-bit weights, written in float16."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from toolsearch_semantic.encoders.folder import OnnxManifest, read_manifest

from .export import BertShape, read_weights

__all__ = ["to_sentence_transformers"]

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def to_sentence_transformers(model: Path, folder: Path) -> None:
    """Write the folder.

    Raises:
        ModelError: The model is damaged.
        ValueError: It is no transformer.
    """
    manifest = read_manifest(model)
    if not isinstance(manifest, OnnxManifest):
        raise ValueError(f"{model} holds a {manifest.kind} model, which sentence-transformers loads as it is")
    weights, heads = read_weights(model / manifest.weights)
    shape = BertShape(weights, heads)
    pooling = {"word_embedding_dimension": shape.dimension, "pooling_mode_mean_tokens": True}
    files: dict[str, object] = {
        "config.json": shape.config(weights),
        "modules.json": MODULES,
        "sentence_bert_config.json": {"max_seq_length": manifest.max_tokens, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {}, "similarity_fn_name": "cosine"},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizerFast", "model_max_length": manifest.max_tokens},
        "1_Pooling/config.json": pooling,
    }
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_bytes((model / manifest.tokenizer).read_bytes())
    save_file({name: value.astype(np.float16) for name, value in weights.items()}, folder / "model.safetensors")
    (folder / "model.safetensors").chmod(0o644)
