from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic import InvalidOptionError, ModelError, ModelNotFoundError
from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.bundled import BundledEncoder, bundled_folder
from toolsearch_semantic.encoders.sentence_transformer import SentenceTransformerEncoder

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz:", "##a", "##b", "##c"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real transformer of two small layers, with prompts, saved by sentence-transformers itself."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder)
    transformer = Transformer(str(folder))
    model = SentenceTransformer(
        modules=[transformer, Pooling(32)], device="cpu", prompts={"query": "q: ", "document": "d: "}
    )
    saved = folder / "saved"
    model.save(str(saved))
    return saved


def test_prompts_that_a_model_declares_are_honoured(tiny: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformerEncoder(tiny)
    plain = SentenceTransformer(str(tiny), device="cpu", local_files_only=True)

    def expected(text: str) -> Any:
        return plain.encode([text], prompt="", normalize_embeddings=True)[0]

    np.testing.assert_allclose(encoder.encode_queries(["a b"])[0], expected("q: a b"), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_documents(["a b"])[0], expected("d: a b"), atol=1e-5)
    own = SentenceTransformerEncoder(tiny, query_prompt="x: ", document_prompt="")
    np.testing.assert_allclose(own.encode_queries(["a b"])[0], expected("x: a b"), atol=1e-5)
    np.testing.assert_allclose(own.encode_documents(["a b"])[0], expected("a b"), atol=1e-5)
    assert own.fingerprint != encoder.fingerprint


def test_rows_are_unit_float32_whatever_the_batch(tiny: Path) -> None:
    encoder = SentenceTransformerEncoder(tiny, batch_size=3)
    assert isinstance(encoder, Encoder)
    rows = encoder.encode_documents(["a", "b c", "", "z" * 3_000, "d e f g", "h"])
    assert (rows.dtype, rows.shape, encoder.dimension) == (np.float32, (6, 32), 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_documents(["d e f g"])[0], rows[4], atol=1e-5)
    assert encoder.encode_queries([]).shape == (0, 32)


def test_the_bundled_model_gives_the_same_vectors_through_sentence_transformers() -> None:
    texts = ["refund a payment", "Is it going to rain in Lisbon?", "createIssue", "zzqx " * 50]
    through = SentenceTransformerEncoder(bundled_folder("toolsearch-static")).encode_documents(texts)
    np.testing.assert_allclose(through, BundledEncoder("static").encode_documents(texts), atol=2e-3)


def test_a_path_that_is_no_model_fails_at_once_and_without_torch() -> None:
    code = (
        "import sys, time\n"
        "from toolsearch_semantic.encoders.sentence_transformer import SentenceTransformerEncoder\n"
        "start = time.perf_counter()\n"
        "try:\n"
        "    SentenceTransformerEncoder('no/such')\n"
        "except FileNotFoundError as error:\n"
        "    print(time.perf_counter() - start < 0.5, 'torch' in sys.modules, error)\n"
    )
    start = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert time.perf_counter() - start < 5
    assert out.startswith("True False No model at 'no/such': looked for a folder at '/")


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def test_an_empty_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"neither modules\.json nor config_sentence"):
        SentenceTransformerEncoder(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("modules.json", r"modules\.json is missing"),
        ("config_sentence_transformers.json", r"config_sentence_transformers\.json is missing"),
        ("tokenizer.json", "has no tokenizer"),
    ],
)
def test_a_file_without_which_the_vectors_would_be_others_is_missed(copy: Path, name: str, message: str) -> None:
    for path in copy.rglob(name):
        path.unlink()
    for path in copy.rglob("vocab.txt"):
        path.unlink()
    with pytest.raises(ModelError, match=message):
        SentenceTransformerEncoder(copy)


def test_weights_that_are_missing_are_missed(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no safetensors weights\. Copy the folder again"):
        SentenceTransformerEncoder(copy)


def test_pickled_weights_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match="only pickled ones"):
        SentenceTransformerEncoder(copy)


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_weights_that_were_cut_short_are_found_before_torch_reads_them(copy: Path, keep: int) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"model\.safetensors'"):
        SentenceTransformerEncoder(copy)


def test_a_module_that_was_not_copied_is_named(copy: Path) -> None:
    modules = json.loads((copy / "modules.json").read_text())
    pooling = next(m["path"] for m in modules if "Pooling" in m["type"])
    shutil.rmtree(copy / pooling)
    with pytest.raises(ModelError, match=f"names '{pooling}', which is missing"):
        SentenceTransformerEncoder(copy)


def test_a_damaged_list_of_modules_is_named(copy: Path) -> None:
    (copy / "modules.json").write_text('[{"path"')
    with pytest.raises(ModelError, match="not a list of modules"):
        SentenceTransformerEncoder(copy)


def test_what_sentence_transformers_cannot_load_is_a_model_error(copy: Path) -> None:
    (copy / "config.json").write_text('{"model_type": "no such architecture"}')
    with pytest.raises(ModelError, match="cannot load the model"):
        SentenceTransformerEncoder(copy)


@pytest.mark.parametrize("size", [0, -1, 1.5, "8", True])
def test_a_batch_size_that_is_none_is_refused(tiny: Path, size: Any) -> None:
    with pytest.raises(InvalidOptionError, match="batch_size"):
        SentenceTransformerEncoder(tiny, batch_size=size)
