"""From trained weights to an ONNX file with eight-bit weights, and back.

The graph is written node by node, so that what the file holds is known: linear layers are ``MatMulNBits`` (blocks of
weights share one scale; activations are quantised as they come), token vectors are eight-bit rows with one scale
each, the rest is float32. Pooling and normalisation are part of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.folder import MANIFEST

__all__ = ["BLOCK", "BertShape", "read_weights", "write_onnx", "write_onnx_folder"]

BLOCK = 32
"""Weights of a row that share one scale: the smallest block, and the most exact, that onnxruntime knows widely."""

WEIGHTS = "model.onnx"
TOKENIZER = "tokenizer.json"
_CONTRIB = "com.microsoft"
_EPSILON = 1e-12
_ZERO_POINT = 128

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]


class BertShape:
    """The numbers that a BERT-like model is made with, read off its weights; ``heads`` cannot be read off."""

    def __init__(self, weights: Weights, heads: int) -> None:
        self.heads = heads
        self.dimension = weights["embeddings.word_embeddings.weight"].shape[1]
        self.layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))


class _Graph:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(
            helper.make_node(operator, inputs, outputs, name=f"{outputs[0]}/node", domain=domain, **attributes)
        )
        return outputs[0]

    def linear(self, name: str, source: str, weights: Floats) -> str:
        """Multiply by a matrix of shape (out, in), quantised; the bias is added by what follows."""
        rows, columns = weights.shape
        quantised, scales = quantise_blocks(weights)
        inputs = [source, self.constant(f"{name}.weight", quantised), self.constant(f"{name}.scale", scales)]
        return self.node(
            "MatMulNBits",
            inputs,
            name,
            domain=_CONTRIB,
            K=columns,
            N=rows,
            bits=8,
            block_size=BLOCK,
            accuracy_level=4,  # multiply eight-bit numbers
        )

    def added_and_normalised(self, name: str, left: str, right: str, weights: Weights, layer: str) -> str:
        inputs = [
            left,
            right,
            self.constant(f"{layer}.LayerNorm.weight", weights[f"{layer}.LayerNorm.weight"]),
            self.constant(f"{layer}.LayerNorm.bias", weights[f"{layer}.LayerNorm.bias"]),
            self.constant(f"{layer}.dense.bias", weights[f"{layer}.dense.bias"]),
        ]
        return self.node("SkipLayerNormalization", inputs, name, domain=_CONTRIB, epsilon=_EPSILON)


def quantise_blocks(weights: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """Round to eight bits around 128: shape (rows, blocks, BLOCK), and scales of shape (rows, blocks)."""
    blocks = weights.reshape(len(weights), -1, BLOCK)
    scales = np.maximum(np.abs(blocks).max(axis=2), np.float32(1e-12)) / 127
    quantised = np.clip(np.rint(blocks / scales[..., np.newaxis]) + _ZERO_POINT, 0, 255).astype(np.uint8)
    return quantised, scales.astype(np.float32)


def write_onnx(weights: Weights, heads: int, path: Path) -> None:
    """Write the graph: ``input_ids`` and ``attention_mask``, int64 (n, tokens), to ``vectors``, float32 (n, d)."""
    shape = BertShape(weights, heads)
    graph = _Graph()
    hidden = _embedded(graph, weights)
    for number in range(shape.layers):
        hidden = _layer(graph, weights, f"encoder.layer.{number}", hidden, heads)
    graph.node("Unsqueeze", ["attention_mask", graph.constant("last", np.array([-1]))], "mask.column")
    graph.node("Cast", ["mask.column"], "mask.float", to=TensorProto.FLOAT)
    graph.node("Mul", [hidden, "mask.float"], "hidden.masked")
    # The mean's direction is the sum's: only that is left after normalisation.
    graph.node("ReduceSum", ["hidden.masked", graph.constant("tokens", np.array([1]))], "hidden.sum", keepdims=0)
    graph.node("LpNormalization", ["hidden.sum"], "vectors", axis=-1, p=2)
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", "t"]) for n in ("input_ids", "attention_mask")]
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", shape.dimension])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "encoder", ids, [vectors], graph.constants),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(_CONTRIB, 1)],
        ir_version=9,
        producer_name="toolsearch-semantic",
    )
    model.metadata_props.add(key="heads", value=str(heads))
    onnx.save(model, path)


def _embedded(graph: _Graph, weights: Weights) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), np.float32(1e-12)) / 127
    graph.constant("words", np.rint(words / scales).astype(np.int8))
    graph.constant("words.scale", scales.astype(np.float32))
    graph.node("Gather", ["words", "input_ids"], "words.int8")
    graph.node("Cast", ["words.int8"], "words.float", to=TensorProto.FLOAT)
    graph.node("Gather", ["words.scale", "input_ids"], "words.scales")
    graph.node("Mul", ["words.float", "words.scales"], "words.embedded")
    # There is one segment, whose vector is the same for every token.
    positions = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    first, axis = graph.constant("first", np.array([0])), graph.constant("axis", np.array([0]))
    graph.node("Slice", [graph.constant("positions", positions), first, "length", axis], "positions.embedded")
    graph.node("Add", ["words.embedded", "positions.embedded"], "embedded")
    norm = [
        graph.constant(f"embeddings.{part}", weights[f"embeddings.LayerNorm.{part}"]) for part in ("weight", "bias")
    ]
    graph.node("Cast", ["attention_mask"], "mask.int32", to=TensorProto.INT32)
    return graph.node("LayerNormalization", ["embedded", *norm], "embedded.normalised", axis=-1, epsilon=_EPSILON)


def _layer(graph: _Graph, weights: Weights, layer: str, hidden: str, heads: int) -> str:
    parts = [f"{layer}.attention.self.{name}" for name in ("query", "key", "value")]
    joined = graph.linear(f"{layer}.qkv", hidden, np.concatenate([weights[f"{part}.weight"] for part in parts]))
    split = [f"{layer}.{name}" for name in "qkv"]
    graph.node("Split", [joined], *split, axis=-1, num_outputs=3)
    bias = graph.constant(f"{layer}.qkv.bias", np.concatenate([weights[f"{part}.bias"] for part in parts]))
    attended = graph.node(
        "MultiHeadAttention", [*split, bias, "mask.int32"], f"{layer}.attended", domain=_CONTRIB, num_heads=heads
    )
    output = f"{layer}.attention.output"
    projected = graph.linear(f"{output}.dense", attended, weights[f"{output}.dense.weight"])
    hidden = graph.added_and_normalised(f"{output}.out", hidden, projected, weights, output)
    wide = graph.linear(f"{layer}.intermediate.dense", hidden, weights[f"{layer}.intermediate.dense.weight"])
    bias = graph.constant(f"{layer}.intermediate.dense.bias", weights[f"{layer}.intermediate.dense.bias"])
    wide = graph.node("BiasGelu", [wide, bias], f"{layer}.intermediate.out", domain=_CONTRIB)
    narrow = graph.linear(f"{layer}.output.dense", wide, weights[f"{layer}.output.dense.weight"])
    return graph.added_and_normalised(f"{layer}.output.out", hidden, narrow, weights, f"{layer}.output")


def read_weights(path: Path) -> tuple[dict[str, Floats], int]:
    """Read the weights of a file that `write_onnx` wrote, in float32 under BERT's names, and the number of heads."""
    model = onnx.load(path)
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    heads = int({entry.key: entry.value for entry in model.metadata_props}["heads"])
    weights: dict[str, Floats] = {
        "embeddings.word_embeddings.weight": stored["words"].astype(np.float32) * stored["words.scale"],
        "embeddings.position_embeddings.weight": stored["positions"],
        "embeddings.token_type_embeddings.weight": np.zeros((2, stored["positions"].shape[1]), np.float32),
        "embeddings.LayerNorm.weight": stored["embeddings.weight"],
        "embeddings.LayerNorm.bias": stored["embeddings.bias"],
    }
    for name, value in stored.items():
        if name.endswith(".weight") and f"{name.removesuffix('.weight')}.scale" in stored:
            scales = stored[f"{name.removesuffix('.weight')}.scale"]
            whole = (value.astype(np.float32) - _ZERO_POINT) * scales[..., np.newaxis]
            weights[name] = whole.reshape(len(whole), -1)
        elif name.startswith("encoder.layer.") and not name.endswith(".scale"):
            weights[name] = value
    for name in [name for name in weights if ".qkv." in name]:
        layer, _, part = name.partition(".qkv.")
        for key, value in zip(("query", "key", "value"), np.split(weights.pop(name), 3), strict=True):
            weights[f"{layer}.attention.self.{key}.{part}"] = value
    return weights, heads


def write_onnx_folder(
    weights: Weights, heads: int, tokenizer: str, folder: Path, *, max_tokens: int, latin_only: bool
) -> None:
    """Write a model folder that `OnnxEncoder` reads; its scoring is yet to be fitted.

    Args:
        weights: BERT's weights by name.
        heads: Attention heads.
        tokenizer: The JSON of a `tokenizers.Tokenizer`.
        folder: Where to write.
        max_tokens: Tokens of a text that are read.
        latin_only: Whether texts that are mostly in another script are left to keyword search.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_onnx(weights, heads, folder / WEIGHTS)
    definition = json.loads(tokenizer)
    definition.update(truncation=None, padding=None)
    (folder / TOKENIZER).write_text(json.dumps(definition, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    files = {name: FileEntry.of(folder / name) for name in (WEIGHTS, TOKENIZER)}
    manifest = {
        "format_version": 1,
        "kind": "onnx",
        "dimension": BertShape(weights, heads).dimension,
        "weights": WEIGHTS,
        "tokenizer": TOKENIZER,
        "max_tokens": max_tokens,
        "latin_only": latin_only,
        "files": {name: {"bytes": entry.bytes, "sha256": entry.sha256} for name, entry in files.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
