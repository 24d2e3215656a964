from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic import EncodingError, InvalidOptionError, ModelError, ModelNotFoundError
from toolsearch_semantic.checksums import FileEntry
from toolsearch_semantic.encoders.base import CalibratedEncoder
from toolsearch_semantic.encoders.bundled import BundledEncoder, bundled_folder
from toolsearch_semantic.encoders.load import load_encoder
from toolsearch_semantic.encoders.onnx import OnnxEncoder
from toolsearch_semantic.encoders.static import StaticEncoder

FOLDER = bundled_folder("toolsearch-mini")
TEXTS = ["refund a payment", "Is it going to rain in Lisbon tomorrow?", "a", "Café naïve ÜBER", "word " * 3_000]


@pytest.fixture(scope="module")
def mini() -> OnnxEncoder:
    return OnnxEncoder(FOLDER)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the bundled model without its partner, to be damaged."""
    folder = Path(shutil.copytree(FOLDER, tmp_path / "model"))
    change_manifest(folder, lambda m: m.update(english=None, partner=None, latin_only=True))
    return folder


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "toolsearch.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_it_is_the_bundled_model_unless_another_is_asked_for(mini: OnnxEncoder) -> None:
    bundled = BundledEncoder()
    assert isinstance(bundled, CalibratedEncoder)
    assert bundled.fingerprint == mini.fingerprint == load_encoder(None).fingerprint == load_encoder(FOLDER).fingerprint
    assert bundled.dimension == 384
    assert bundled.scoring == mini.scoring
    assert BundledEncoder("static").fingerprint != bundled.fingerprint


def test_rows_are_unit_vectors_in_float32(mini: OnnxEncoder) -> None:
    rows = mini.encode_documents(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_a_text_has_one_vector_alone_in_a_batch_and_as_a_query(mini: OnnxEncoder) -> None:
    together = mini.encode_documents(TEXTS * 30)
    for i, text in enumerate(TEXTS):
        alone = mini.encode_queries([text])[0]
        assert float(alone @ together[i]) > 0.9999
        np.testing.assert_allclose(together[i], together[i + len(TEXTS)], atol=2e-3)


def test_texts_of_like_meaning_are_near_and_others_are_not(mini: OnnxEncoder) -> None:
    asked, right, wrong = mini.encode_documents(
        ["give the customer their money back", "refund payment. Return a charge to the payer", "get weather. Forecast"]
    )
    assert float(asked @ right) > 0.5
    assert float(asked @ wrong) < 0.3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\U0001f680 \U0001f680",
        "天气预报",
        "날씨 알려줘",
        "прогноз погоды",
        "查询 API 的天气预报",
        "حالة الطقس",
    ],
)
def test_a_text_that_the_model_can_make_nothing_of_is_a_row_of_zeros(copy: Path, text: str) -> None:
    assert not OnnxEncoder(copy).encode_queries([text]).any()


def test_letters_with_accents_are_latin(mini: OnnxEncoder) -> None:
    plain, accented = mini.encode_queries(["prevision meteo a Evry", "prévision météo à Évry"])
    assert float(plain @ accented) > 0.9


def test_a_model_may_be_for_every_script(copy: Path) -> None:
    change_manifest(copy, lambda m: m.update(latin_only=False))
    assert OnnxEncoder(copy).encode_queries(["прогноз погоды"]).any()


def test_a_few_unknown_words_do_not_silence_a_text(mini: OnnxEncoder) -> None:
    plain, mixed = mini.encode_queries(["weather forecast for a city", "weather forecast for a city \U0001f680"])
    assert float(plain @ mixed) > 0.8


def test_what_lies_beyond_the_limit_is_not_read(mini: OnnxEncoder) -> None:
    long, longer = mini.encode_documents(["word " * 2_000, "word " * 2_000 + "refund a payment"])
    np.testing.assert_allclose(long, longer, atol=1e-6)


def test_no_texts_give_no_rows(mini: OnnxEncoder) -> None:
    assert mini.encode_documents([]).shape == (0, 384)


def test_threads_get_what_one_thread_gets(mini: OnnxEncoder) -> None:
    expected = mini.encode_documents(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(lambda _: mini.encode_documents(TEXTS), range(16)):
            np.testing.assert_allclose(rows, expected, atol=1e-6)
    one = OnnxEncoder(FOLDER, threads=1).encode_documents(TEXTS * 30)
    np.testing.assert_allclose(one, mini.encode_documents(TEXTS * 30), atol=2e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_process_goes_on_encoding(mini: OnnxEncoder) -> None:
    expected = mini.encode_documents(TEXTS * 30)
    child = os.fork()
    if child == 0:
        rows = mini.encode_documents(TEXTS * 30)
        os._exit(0 if np.allclose(rows, expected, atol=2e-3) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(threads: Any) -> None:
    with pytest.raises(InvalidOptionError, match="threads must be an integer of at least 1"):
        OnnxEncoder(FOLDER, threads=threads)


def test_only_the_transformer_takes_threads() -> None:
    with pytest.raises(InvalidOptionError, match="threads is for the model 'mini'"):
        BundledEncoder("static", threads=2)
    assert BundledEncoder("mini", threads=1).dimension == 384


def test_a_model_that_is_not_bundled_is_refused_by_name() -> None:
    with pytest.raises(InvalidOptionError, match="'mini' or 'static', not 'maxi'"):
        BundledEncoder("maxi")  # type: ignore[arg-type]


def test_texts_that_are_no_texts_are_refused(mini: OnnxEncoder) -> None:
    with pytest.raises(EncodingError, match="tokenized"):
        mini.encode_documents([None])  # type: ignore[list-item]


def test_a_missing_folder_and_one_of_another_kind_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"toolsearch\.json is not there"):
        OnnxEncoder(tmp_path)
    with pytest.raises(ModelError, match="of kind 'static', not 'onnx'"):
        OnnxEncoder(bundled_folder("toolsearch-static"))
    with pytest.raises(ModelError, match="of kind 'onnx', not 'static'"):
        StaticEncoder(FOLDER)


def test_a_damaged_file_is_named(copy: Path) -> None:
    data = (copy / "model.onnx").read_bytes()
    (copy / "model.onnx").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"model\.onnx.*SHA-256 differs"):
        OnnxEncoder(copy)


def test_a_graph_that_is_none_is_refused_even_with_the_right_checksum(copy: Path) -> None:
    (copy / "model.onnx").write_bytes(b"not a graph")
    entry = FileEntry.of(copy / "model.onnx")
    change_manifest(copy, lambda m: m["files"].update({"model.onnx": {"bytes": entry.bytes, "sha256": entry.sha256}}))
    with pytest.raises(ModelError, match="cannot be read"):
        OnnxEncoder(copy)


@pytest.mark.parametrize("kind", ["torch", None, 3])
def test_a_manifest_of_an_unknown_kind_is_refused(copy: Path, kind: Any) -> None:
    change_manifest(copy, lambda m: m.update(kind=kind))
    with pytest.raises(ModelError, match="not a model manifest"):
        load_encoder(copy)


def test_the_number_of_tokens_is_part_of_the_fingerprint(copy: Path, mini: OnnxEncoder) -> None:
    change_manifest(copy, lambda m: m.update(max_tokens=16))
    shorter = OnnxEncoder(copy)
    assert shorter.fingerprint != mini.fingerprint
    ten, twenty = shorter.encode_documents(["refund " * 14, "refund " * 14 + "weather forecast"])
    np.testing.assert_allclose(ten, twenty, atol=1e-6)


def test_without_onnxruntime_the_error_names_the_model_that_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r'pip install onnxruntime.*BundledEncoder\("static"\)'):
        OnnxEncoder(FOLDER)
    assert BundledEncoder("static").dimension == 256


def test_the_first_values_of_known_vectors_are_pinned(mini: OnnxEncoder) -> None:
    """A wrong pooling, normalisation or tokenizer cannot pass; processors differ in the third digit."""
    rows = mini.encode_queries(["refund a payment", "weather forecast for a city"])
    expected = [[-0.0613, 0.0570, 0.0639, 0.0182], [-0.0197, -0.0026, 0.0751, 0.1092]]
    np.testing.assert_allclose(rows[:, :4], expected, atol=0.02)
    assert mini.fingerprint == "onnx-a7b13dff24e5650d8ab2bae23925c1a7+onnx-8ea6ab29aaa9ec97b487f72342b96497"
