from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from toolsearch_semantic import EncodingError, ModelError, ModelNotFoundError
from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.bundled import BundledEncoder, bundled_folder
from toolsearch_semantic.encoders.static import StaticEncoder

TEXTS = [
    "refund a payment",
    "Is it going to rain in Lisbon tomorrow?",
    "",
    "   ",
    "🚀",
    "weather 天气",
    "Café naïve ÜBER",
    "word " * 3_000,
    "a",
]


def test_a_vector_is_the_mean_of_its_tokens_rows_at_unit_length() -> None:
    folder = bundled_folder("toolsearch-static")
    manifest = json.loads((folder / "toolsearch.json").read_text())
    tensors = load_file(folder / manifest["weights"])
    table = tensors[manifest["tensor"]].astype(np.float64) * tensors["weights"][:, np.newaxis]
    tokenizer = Tokenizer.from_file(str(folder / manifest["tokenizer"]))
    encoder = BundledEncoder("static")
    rows = encoder.encode_documents(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), encoder.dimension) == (len(TEXTS), 256)
    for text, row in zip(TEXTS, rows, strict=True):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        known = [i for i in ids if table[i].any()]
        expected = table[ids].sum(axis=0) if 2 * len(known) >= max(1, len(ids)) else np.zeros(256)
        length = np.linalg.norm(expected)
        np.testing.assert_allclose(row, expected / length if length else expected, atol=2e-6)


def test_a_text_has_one_vector_alone_in_a_batch_and_as_a_query() -> None:
    encoder = BundledEncoder("static")
    together = encoder.encode_documents(TEXTS * 40)
    for i, text in enumerate(TEXTS):
        np.testing.assert_allclose(encoder.encode_queries([text])[0], together[i], atol=1e-6)
        np.testing.assert_array_equal(together[i], together[i + len(TEXTS)])


def test_a_text_without_known_tokens_is_a_row_of_zeros() -> None:
    assert not BundledEncoder("static").encode_queries(["", "   "]).any()


@pytest.mark.parametrize("text", ["天气预报", "날씨 알려줘", "прогноз погоды", "查询 API 的天气预报", "حالة الطقس"])
def test_a_text_in_a_script_that_the_model_does_not_know_is_a_row_of_zeros(text: str) -> None:
    assert not BundledEncoder("static").encode_queries([text]).any()


def test_a_few_unknown_words_do_not_silence_a_text() -> None:
    plain, mixed = BundledEncoder("static").encode_queries(["weather forecast for a city", "weather forecast for 北京"])
    assert float(plain @ mixed) > 0.7


def test_no_texts_give_no_rows() -> None:
    assert BundledEncoder("static").encode_documents([]).shape == (0, 256)


def test_threads_get_what_one_thread_gets() -> None:
    encoder = BundledEncoder("static")
    expected = encoder.encode_documents(TEXTS)
    with ThreadPoolExecutor(16) as pool:
        for rows in pool.map(encoder.encode_documents, [TEXTS] * 64):
            np.testing.assert_array_equal(rows, expected)


def test_it_is_an_encoder_with_a_fingerprint_that_only_its_files_decide(model_copy: Path) -> None:
    encoder = BundledEncoder("static")
    assert isinstance(encoder, Encoder)
    assert StaticEncoder(model_copy).fingerprint == encoder.fingerprint
    manifest = json.loads((model_copy / "toolsearch.json").read_text())
    tensors = load_file(model_copy / manifest["weights"])
    tensors[manifest["tensor"]][5] += 1
    save_file(tensors, model_copy / manifest["weights"])
    rewrite(model_copy)
    assert StaticEncoder(model_copy).fingerprint != encoder.fingerprint


def test_what_is_not_text_is_an_encoding_error() -> None:
    with pytest.raises(EncodingError, match="tokenized"):
        BundledEncoder("static").encode_documents(["fine", None])  # type: ignore[list-item]
    with pytest.raises(EncodingError, match="tokenized"):
        BundledEncoder("static").encode_queries(["\ud800"])


def rewrite(folder: Path, **changes: Any) -> None:
    """Write the manifest again with true checksums, as if somebody had packed these files on purpose."""
    path = folder / "toolsearch.json"
    manifest = json.loads(path.read_text()) | changes
    for name in manifest["files"]:
        entry = FileEntry.of(folder / name)
        manifest["files"][name] = {"bytes": entry.bytes, "sha256": entry.sha256}
    path.write_text(json.dumps(manifest))


def truncate(path: Path, *, keep: int = -1000) -> None:
    path.write_bytes(path.read_bytes()[:keep])


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights missing": (lambda f: (f / "model.safetensors").unlink(), "lacks its file 'model.safetensors'"),
    "tokenizer missing": (lambda f: (f / "tokenizer.json").unlink(), "lacks its file 'tokenizer.json'"),
    "weights cut short": (lambda f: truncate(f / "model.safetensors"), "bytes, and should have"),
    "a bit flipped": (lambda f: flip_a_byte(f / "model.safetensors"), "SHA-256 differs"),
    "manifest cut short": (lambda f: truncate(f / "toolsearch.json", keep=100), "not a model manifest"),
    "manifest empty": (lambda f: (f / "toolsearch.json").write_text("{}"), "not a model manifest"),
    "other format": (lambda f: rewrite(f, format_version=2), "not a model manifest"),
    "wrong dimension": (lambda f: rewrite(f, dimension=128), r"shape \(\d+, 256\); its tokenizer .*128"),
    "no such tensor": (lambda f: rewrite(f, tensor="absent"), "cannot be read"),
    "no checksum": (lambda f: rewrite(f, files={}), "gives no checksum"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_with_the_reason(damage: str, model_copy: Path) -> None:
    harm, reason = DAMAGES[damage]
    harm(model_copy)
    with pytest.raises(ModelError, match=reason):
        StaticEncoder(model_copy)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="absent") as caught:
        StaticEncoder(tmp_path / "absent")
    assert isinstance(caught.value, FileNotFoundError)


def test_a_bundled_model_that_is_not_installed_says_where_it_was_looked_for() -> None:
    with pytest.raises(ModelNotFoundError, match=r"'toolsearch-none'.*looked in .*models.* and .*models.*Reinstall"):
        bundled_folder("toolsearch-none")


def test_files_outside_the_manifest_do_not_matter(model_copy: Path) -> None:
    shutil.copy(model_copy / "toolsearch.json", model_copy / "notes.json")
    assert StaticEncoder(model_copy).dimension == 256


def test_the_first_values_of_known_vectors_are_pinned() -> None:
    """A wrong pooling, normalisation or tokenizer cannot pass; new weights change these on purpose."""
    rows = BundledEncoder("static").encode_queries(
        ["refund a payment", "get weather. Forecast of temperature and rain for a city"]
    )
    expected = [
        [-0.010531, -0.041361, 0.077247, -0.002718, 0.001954, -0.018243],
        [0.061257, -0.021254, 0.070148, -0.131446, 0.007754, -0.017186],
    ]
    np.testing.assert_allclose(rows[:, :6], expected, atol=1e-5)
    assert BundledEncoder("static").fingerprint == "static-f2d2ef0eef4537b9adf31b3b5d2cfbd2"
