"""The recipe in models/train runs on a small data set made here, with the bundled models to begin with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic.encoders.bundled import bundled_folder
from toolsearch_semantic.encoders.load import load_encoder
from toolsearch_semantic.encoders.onnx import OnnxEncoder
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.scores import LogisticScore

ROOT = Path(__file__).parents[2]
MINI, STATIC = bundled_folder("toolsearch-mini"), bundled_folder("toolsearch-static")
TEXTS = ["refund payment. Give a customer their money back", "will it rain tomorrow?", "open a bug report"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    # The recipe is run from the checkout, which CI's PYTHONSAFEPATH would forbid; the package comes from site-packages.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}

    def run(*arguments: object, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "models.train", *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def write_set(folder: Path, tools: Sequence[dict[str, Any]], requests: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    for name, rows in (("tools", tools), ("queries", requests)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, demo: list[dict[str, Any]]) -> Path:
    """Three sets of 60 tools in two services; each tool is asked for by the second half of its description."""
    folder = tmp_path_factory.mktemp("recipe") / "data"
    for number in range(3):
        tools = [
            {**record, "id": f"set{number}/{'ab'[i % 2]}/{record['name']}"}
            for i, record in enumerate(demo[60 * number : 60 * number + 60])
        ]
        requests: list[dict[str, Any]] = [
            {"query": " ".join(tool["description"].split()[4:14]) or tool["name"], "relevant": [tool["id"]]}
            for tool in tools
        ]
        requests.append({"query": "make me a coffee", "relevant": [], "service": f"set{number}/a"})
        write_set(folder / f"set{number}", tools, requests)
    return folder


@pytest.fixture(scope="module")
def torch_folder(recipe: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch") / "mini"
    recipe("to-sentence-transformers", MINI, folder)
    return folder


@pytest.fixture(scope="module")
def run_folder(recipe: Callable[..., str], data: Path, torch_folder: Path) -> Path:
    """Pairs of the three sets, with the third also as what is reported on."""
    folder = data.parent / "run"
    reported = data.parent / "reported"
    third = [json.loads(line) for line in (data / "set2" / "tools.jsonl").read_text().splitlines()]
    write_set(reported / "set2", third[:20], [])
    out = recipe("pairs", folder, "--data", data, "--start", torch_folder, "--reported", reported)
    assert "tools of reported sets, also as negatives: " in out
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_sentence_transformers_loads_the_same_weights(torch_folder: Path) -> None:
    encoder = load_encoder(torch_folder)
    products = (encoder.encode_documents(TEXTS) * OnnxEncoder(MINI).encode_documents(TEXTS)).sum(axis=1)
    assert products.min() > 0.98  # the one rounds activations to eight bits, and the other does not


def test_pairs_hold_wrong_siblings_and_nothing_that_is_held_out_or_reported(run_folder: Path, data: Path) -> None:
    pairs, tools = lines(run_folder / "pairs.jsonl"), {one["id"] for one in lines(run_folder / "tools.jsonl")}
    reported = {json.loads(line)["id"] for line in (data / "set2" / "tools.jsonl").read_text().splitlines()[:20]}
    assert not tools & reported
    asked = {pair["tool"] for pair in pairs if pair["tool"]}
    assert 100 < len(asked) < 160  # one in seven of 180 is held out, and 20 are reported
    assert asked <= tools
    for pair in pairs:
        assert pair["tool"] not in pair["hard"]
        assert set(pair["hard"]) <= tools
        assert len(pair["hard"]) >= 4
    [nothing] = [pair for pair in pairs if pair["service"] == "set0/a" and pair["tool"] is None]
    assert all(one.startswith("set0/a/") for one in nothing["hard"])


def test_a_transformer_is_trained_exported_and_fitted(
    recipe: Callable[..., str], run_folder: Path, torch_folder: Path, data: Path
) -> None:
    recipe("mini", run_folder, "--start", torch_folder, "--steps", 3, "--batch", 8, "--rate", 1e-4)
    log = lines(run_folder / "log.jsonl")
    assert [one["step"] for one in log] == [0, 1, 2]
    assert all(0 < one["loss"] < 20 for one in log)
    folder = data.parent / "exported"
    recipe("export", run_folder / "model", folder)
    before, after = OnnxEncoder(MINI), OnnxEncoder(folder)
    moved = (before.encode_documents(TEXTS) * after.encode_documents(TEXTS)).sum(axis=1)
    assert 0.8 < moved.min() < 0.99999
    out = recipe("fit", folder, "--data", data)
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["set0", "set1", "set2"]
    fitted = OnnxEncoder(folder)
    assert fitted.fingerprint == after.fingerprint
    assert fitted.scoring != after.scoring
    assert isinstance(fitted.scoring.hybrid, LogisticScore)
    high, low = fitted.scoring.hybrid(np.array([0.9, 0.1]), np.array([0.6, 0.1]))
    assert high > 0.5 > low
    provenance = json.loads((folder / "toolsearch.json").read_text())["scoring"]["provenance"]
    assert set(provenance["sets"]) == {"set0", "set1", "set2"}
    assert 10 < sum(provenance["sets"].values()) < 50  # the held-out ones


def test_a_static_table_is_trained(recipe: Callable[..., str], run_folder: Path, data: Path) -> None:
    folder = data.parent / "static"
    recipe("static", run_folder, "--start", STATIC, "--folder", folder, "--steps", 5, "--batch", 32)
    before, after = StaticEncoder(STATIC), StaticEncoder(folder)
    assert before.fingerprint != after.fingerprint
    assert (before.encode_documents(TEXTS) * after.encode_documents(TEXTS)).sum(axis=1).min() > 0.7
    assert not after.encode_queries(["天气预报"]).any()  # what it did not know it has not learnt by accident
    log = lines(run_folder / "static" / "log.jsonl")
    assert len(log) == 5


def test_fewer_than_three_sets_are_not_fitted(recipe: Callable[..., str], data: Path, tmp_path: Path) -> None:
    write_set(tmp_path / "only", [{"id": "a", "name": "a", "description": "b"}], [{"query": "b", "relevant": ["a"]}])
    message = recipe("fit", STATIC, "--data", tmp_path, status=1)
    assert "holds 0 sets with requests that take part; at least 3 are needed" in message


@pytest.fixture
def train_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.usefixtures("train_modules")
def test_an_interrupted_training_goes_on_as_if_it_had_not_been(run_folder: Path, tmp_path: Path) -> None:
    from models.train.loop import Settings, train
    from models.train.pairs import read_pairs
    from models.train.static import StaticTable

    pairs = read_pairs(run_folder)
    settings = Settings(steps=8, batch=16, learning_rate=1e-3, save_every=2)

    def until(last: int) -> Callable[[Sequence[int]], Iterator[int]]:
        def progress(steps: Sequence[int]) -> Iterator[int]:
            for step in steps:
                if step > last:
                    return
                yield step

        return progress

    whole, halved = StaticTable(STATIC), StaticTable(STATIC)
    train(whole, pairs, tmp_path / "whole", settings, progress=until(99))
    train(halved, pairs, tmp_path / "halved", settings, progress=until(4))  # step 4 is not in a checkpoint yet
    resumed = StaticTable(STATIC)
    train(resumed, pairs, tmp_path / "halved", settings, progress=until(99))
    np.testing.assert_allclose(resumed.bag.weight.detach(), whole.bag.weight.detach(), atol=1e-6)
    with pytest.raises(ValueError, match="holds a run with settings"):
        train(resumed, pairs, tmp_path / "halved", Settings(steps=9), progress=until(99))


@pytest.mark.usefixtures("train_modules")
def test_the_loss_is_that_of_the_definition() -> None:
    import torch

    from models.train.loop import Batch, Settings, loss_of
    from models.train.pairs import Pair

    pairs = [
        Pair("a", "x", ("y",), "p"),  # y is right as well, and passed over
        Pair("b", "y", (), "p"),
        Pair("c", None, (), "p"),  # nothing answers it
    ]
    batch = Batch(pairs, ["x", "y", "z"], ["tool x", "tool y", "tool z"])
    settings = Settings(scale=10.0, nothing=0.4, backwards=0.5)
    chance = np.random.default_rng(0)

    def unit(*shape: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        rows = chance.normal(size=shape)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    queries, documents = unit(3, 8), unit(3, 8)
    cosines = queries @ documents.T
    forwards = []
    for row, (target, over) in enumerate([(0, [1]), (1, []), (3, [])]):
        logits = np.append(cosines[row], 0.4)
        logits[over] = -1.0
        forwards.append(np.log(np.exp(10 * logits).sum()) - 10 * logits[target])
    backwards = []
    for column, (target, over) in enumerate([(0, []), (1, [0])]):
        logits = cosines[:, column].copy()
        logits[over] = -1.0
        backwards.append(np.log(np.exp(10 * logits).sum()) - 10 * logits[target])
    expected = np.mean(forwards) + 0.5 * np.mean(backwards)
    loss = loss_of(torch.tensor(queries), torch.tensor(documents), batch, settings)
    assert float(loss) == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("train_modules")
def test_near_duplicates_are_found_whatever_their_order_and_inflection() -> None:
    from models.train.overlap import near_duplicates

    found = near_duplicates(
        ["Delete all the files", "files deleted", "delete a customer", ""], of=["delete file", "Send an e-mail"]
    )
    assert found.tolist() == [False, True, False, False]


@pytest.mark.usefixtures("train_modules")
def test_weights_are_read_back_within_a_step_of_rounding(tmp_path: Path) -> None:
    from models.train.export import quantise_rows, read_weights, write_onnx

    chance = np.random.default_rng(0)
    rows = chance.normal(size=(5, 96)).astype(np.float32)
    quantised, scales = quantise_rows(rows)
    assert np.abs(quantised * scales[:, np.newaxis] - rows).max() <= scales.max() / 2 + 1e-7
    weights, heads = read_weights(MINI / "model.onnx")
    assert heads == 12
    assert weights["encoder.layer.5.attention.self.value.weight"].shape == (384, 384)
    assert weights["embeddings.word_embeddings.weight"].shape == (30_522, 384)
    assert all(value.flags.c_contiguous for value in weights.values())
    write_onnx(weights, heads, tmp_path / "again.onnx")
    again, _ = read_weights(tmp_path / "again.onnx")
    for name, value in weights.items():
        np.testing.assert_allclose(again[name], value, atol=1e-6)
