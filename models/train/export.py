"""From trained weights to an ONNX file with eight-bit or four-bit weights, and back.

The graph is written node by node, so that what the file holds is known: linear layers are
``DynamicQuantizeMatMul`` (eight bits, one scale for each output; activations are quantised as they come) or
``MatMulNBits`` (four bits, one scale for a block of weights), token vectors are rows of as many bits, the rest is
float32. Pooling and normalisation are part of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.folder import MANIFEST

__all__ = ["BLOCK", "BertShape", "read_weights", "write_onnx", "write_onnx_folder"]

BLOCK = 32
"""Four-bit weights of a row that share one scale: the smallest block that onnxruntime knows widely."""

WEIGHTS = "model.onnx"
TOKENIZER = "tokenizer.json"
_CONTRIB = "com.microsoft"
_EPSILON = 1e-12
_MIDDLE_NIBBLE = 8

Floats = NDArray[np.float32]
Bits = Literal[4, 8]
EIGHT: Bits = 8
Weights = Mapping[str, Floats]


class BertShape:
    """The numbers that a BERT-like model is made with, read off its weights; ``heads`` cannot be read off."""

    def __init__(self, weights: Weights, heads: int) -> None:
        self.heads = heads
        self.dimension = weights["embeddings.word_embeddings.weight"].shape[1]
        self.output = len(weights["head.bias"]) if "head.bias" in weights else self.dimension
        self.layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))

    def config(self, weights: Weights) -> dict[str, Any]:
        """Give the config.json that transformers loads such weights with."""
        rows = {
            kind: len(weights[f"embeddings.{kind}_embeddings.weight"]) for kind in ("word", "position", "token_type")
        }
        return {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": self.dimension,
            "intermediate_size": len(weights["encoder.layer.0.intermediate.dense.weight"]),
            "layer_norm_eps": _EPSILON,
            "max_position_embeddings": rows["position"],
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "type_vocab_size": rows["token_type"],
            "vocab_size": rows["word"],
        }


class _Graph:
    """Collects nodes and constants."""

    def __init__(self, bits: Bits) -> None:
        self.bits = bits
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
        if self.bits == EIGHT:
            quantised, scales = quantise_rows(weights)
            inputs = [
                source,
                self.constant(f"{name}.weight", quantised.T),
                self.constant(f"{name}.scale", scales),
                self.constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
            ]
            return self.node("DynamicQuantizeMatMul", inputs, name, domain=_CONTRIB)
        rows, columns = weights.shape
        nibbles, halves = quantise_nibbles(weights)
        # As float16 they take half the room; onnxruntime widens them once, when it loads the file.
        wide = self.node("Cast", [self.constant(f"{name}.scale", halves)], f"{name}.wide", to=TensorProto.FLOAT)
        return self.node(
            "MatMulNBits",
            [source, self.constant(f"{name}.weight", nibbles), wide],
            name,
            domain=_CONTRIB,
            K=columns,
            N=rows,
            bits=self.bits,
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


def quantise_rows(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Round to eight bits: the shape of the weights, and one scale a row."""
    scales = np.maximum(np.abs(weights).max(axis=1), np.float32(1e-12)) / 127
    return np.rint(weights / scales[:, np.newaxis]).astype(np.int8), scales.astype(np.float32)


def quantise_nibbles(weights: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Round to four bits: shape (rows, blocks, BLOCK / 2), two numbers a byte, and scales of shape (rows, blocks).

    A block's largest number in size becomes -8 times its scale, so that weights that were packed in this way once
    (as llama.cpp's format Q4_0 does) stay exactly what they are.
    """
    blocks = weights.reshape(len(weights), -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2)[..., np.newaxis], axis=2)
    scales = (largest / -8).astype(np.float16)
    divisors = np.where(scales == 0, np.float16(1), scales).astype(np.float32)
    quantised = np.clip(np.rint(blocks / divisors) + _MIDDLE_NIBBLE, 0, 15).astype(np.uint8)
    return quantised[..., 0::2] | quantised[..., 1::2] << 4, scales[..., 0]


def write_onnx(weights: Weights, heads: int, path: Path, *, bits: Bits = 8) -> None:
    """Write the graph: ``input_ids`` and ``attention_mask``, int64 (n, tokens), to ``vectors``, float32 (n, d).

    Where there are weights named ``head``, the mean over the tokens goes through that linear layer.
    """
    shape = BertShape(weights, heads)
    graph = _Graph(bits)
    hidden = _embedded(graph, weights)
    for number in range(shape.layers):
        hidden = _layer(graph, weights, f"encoder.layer.{number}", hidden, heads)
    graph.node("Unsqueeze", ["attention_mask", graph.constant("last", np.array([-1]))], "mask.column")
    graph.node("Cast", ["mask.column"], "mask.float", to=TensorProto.FLOAT)
    graph.node("Mul", [hidden, "mask.float"], "hidden.masked")
    # The mean's direction is the sum's: only that is left after normalisation.
    pooled = graph.node(
        "ReduceSum", ["hidden.masked", graph.constant("tokens", np.array([1]))], "hidden.sum", keepdims=0
    )
    if "head.weight" in weights:
        # The linear layer has a bias, so the length counts here.
        unit = graph.node("LpNormalization", [pooled], "hidden.unit", axis=-1, p=2)
        layer = [graph.constant(f"head.{part}", weights[f"head.{part}"]) for part in ("weight", "bias")]
        pooled = graph.node("Gemm", [unit, *layer], "hidden.head", transB=1)
    graph.node("LpNormalization", [pooled], "vectors", axis=-1, p=2)
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", "t"]) for n in ("input_ids", "attention_mask")]
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", shape.output])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "encoder", ids, [vectors], graph.constants),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(_CONTRIB, 1)],
        ir_version=9,
        producer_name="toolsearch-semantic",
    )
    model.metadata_props.add(key="heads", value=str(heads))
    onnx.save(model, path)


def _embedded(graph: _Graph, weights: Weights) -> str:
    _words(graph, weights["embeddings.word_embeddings.weight"])
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


def _words(graph: _Graph, words: Floats) -> None:
    if graph.bits == EIGHT:
        rounded, scales = quantise_rows(words)
        graph.constant("words", rounded)
        graph.constant("words.scale", scales[:, np.newaxis])
        graph.node("Gather", ["words", "input_ids"], "words.int8")
        graph.node("Cast", ["words.int8"], "words.float", to=TensorProto.FLOAT)
        graph.node("Gather", ["words.scale", "input_ids"], "words.scales")
        graph.node("Mul", ["words.float", "words.scales"], "words.embedded")
        return
    packed, block_scales = quantise_nibbles(words)
    graph.constant("words", packed)
    graph.constant("words.scale", block_scales[..., np.newaxis])
    graph.node("Gather", ["words", "input_ids"], "words.packed")  # (n, tokens, blocks, BLOCK / 2)
    nibble = graph.constant("nibble", np.array(15, np.uint8)), graph.constant("nibble.bits", np.array(4, np.uint8))
    graph.node("BitwiseAnd", ["words.packed", nibble[0]], "words.even")
    graph.node("BitShift", ["words.packed", nibble[1]], "words.odd", direction="RIGHT")
    last = graph.constant("words.last", np.array([-1]))
    for part in ("even", "odd"):
        graph.node("Unsqueeze", [f"words.{part}", last], f"words.{part}.column")
    graph.node("Concat", ["words.even.column", "words.odd.column"], "words.pairs", axis=-1)
    graph.node("Cast", ["words.pairs"], "words.pairs.float", to=TensorProto.FLOAT)
    middle = graph.constant("words.middle", np.array(_MIDDLE_NIBBLE, np.float32))
    graph.node("Sub", ["words.pairs.float", middle], "words.centred")
    blocks = graph.constant("words.blocks", np.array([0, 0, packed.shape[1], BLOCK]))
    graph.node("Reshape", ["words.centred", blocks], "words.in.blocks")
    graph.node("Gather", ["words.scale", "input_ids"], "words.scales.half")
    graph.node("Cast", ["words.scales.half"], "words.scales", to=TensorProto.FLOAT)
    graph.node("Mul", ["words.in.blocks", "words.scales"], "words.scaled")
    whole = graph.constant("words.shape", np.array([0, 0, words.shape[1]]))
    graph.node("Reshape", ["words.scaled", whole], "words.embedded")


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
    """Read the weights of a file that `write_onnx` wrote, in float32 under BERT's names, and the number of heads.

    Raises:
        ValueError: They are in four bits.
    """
    model = onnx.load(path)
    if not any(node.op_type == "DynamicQuantizeMatMul" for node in model.graph.node):
        raise ValueError(f"{path} holds no eight-bit weights; only those can be written back")
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
            # In row order: safetensors writes memory as it lies.
            weights[name] = np.ascontiguousarray(value.T, np.float32) * scales[:, np.newaxis]
        elif name.startswith("encoder.layer.") and not name.endswith((".scale", ".zero")):
            weights[name] = value
    for name in [name for name in weights if ".qkv." in name]:
        layer, _, part = name.partition(".qkv.")
        for key, value in zip(("query", "key", "value"), np.split(weights.pop(name), 3), strict=True):
            weights[f"{layer}.attention.self.{key}.{part}"] = value
    return weights, heads


def write_onnx_folder(
    weights: Weights,
    heads: int,
    tokenizer: str,
    folder: Path,
    *,
    max_tokens: int,
    latin_only: bool,
    bits: Bits = 8,
) -> None:
    """Write a model folder that `OnnxEncoder` reads; its scoring is yet to be fitted.

    Args:
        weights: BERT's weights by name.
        heads: Attention heads.
        tokenizer: The JSON of a `tokenizers.Tokenizer`.
        folder: Where to write.
        max_tokens: Tokens of a text that are read.
        latin_only: Whether texts that are mostly in another script are left to keyword search.
        bits: Bits of a weight.
    """
    folder.mkdir(parents=True, exist_ok=True)
    positions = "embeddings.position_embeddings.weight"
    weights = {**weights, positions: weights[positions][:max_tokens]}
    write_onnx(weights, heads, folder / WEIGHTS, bits=bits)
    definition = json.loads(tokenizer)
    definition.update(truncation=None, padding=None)
    (folder / TOKENIZER).write_text(json.dumps(definition, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    files = {name: FileEntry.of(folder / name) for name in (WEIGHTS, TOKENIZER)}
    manifest = {
        "format_version": 1,
        "kind": "onnx",
        "dimension": BertShape(weights, heads).output,
        "weights": WEIGHTS,
        "tokenizer": TOKENIZER,
        "max_tokens": max_tokens,
        "latin_only": latin_only,
        "files": {name: {"bytes": entry.bytes, "sha256": entry.sha256} for name, entry in files.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
