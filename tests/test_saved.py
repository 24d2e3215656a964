from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import BreakableEncoder
from toolsearch_semantic import SavedIndexError, Tool, ToolSearch
from toolsearch_semantic.options import Mode

QUERIES = ["who is on call right now", "refund_payment", "天气", "select:get_on_call,list_devices"]


@pytest.mark.parametrize("mode", ["semantic", "lexical", "hybrid"])
def test_a_saved_catalogue_ranks_as_before(demo: list[dict[str, Any]], tmp_path: Path, mode: Mode) -> None:
    search = ToolSearch({f"key {i}": record for i, record in enumerate(demo)}, mode=mode)
    search.save(tmp_path / "index")
    loaded = ToolSearch.load(tmp_path / "index")
    assert (loaded.mode, loaded.active_mode, len(loaded)) == (mode, mode, len(demo))
    assert loaded.aliases == search.aliases
    for query in QUERIES:
        before = [(h.tool.name, h.score, h.cosine, h.lexical, h.words) for h in search.search(query, top_k=30)]
        after = [(h.tool.name, h.score, h.cosine, h.lexical, h.words) for h in loaded.search(query, top_k=30)]
        assert after == before
    loaded.remove(["get_on_call"])
    loaded.add([Tool("another", "new")])
    assert len(loaded) == len(demo)


def test_loading_computes_no_vector(demo: list[dict[str, Any]], tmp_path: Path, encoder: BreakableEncoder) -> None:
    ToolSearch(demo, encoder=encoder).save(tmp_path)
    assert len(encoder.documents) == len(demo)
    ToolSearch.load(tmp_path, encoder=encoder)
    assert len(encoder.documents) == len(demo)


def test_live_tools_can_be_bound_to_saved_vectors(few: list[Tool], tmp_path: Path, encoder: BreakableEncoder) -> None:
    ToolSearch(few, encoder=encoder).save(tmp_path)

    def run(city: str) -> str:
        return f"rain in {city}"

    live = Tool(few[0].name, few[0].description, few[0].input_schema, execute=run)
    changed = Tool("createIssue", "Another description")
    loaded = ToolSearch.load(tmp_path, tools={"weather": live, "createIssue": changed}, encoder=encoder)
    hit = loaded.search("weather forecast")[0]
    assert hit.tool.execute is run
    assert loaded.aliases == {"weather": "get_weather"}
    assert encoder.documents[len(few) :] == ["create Issue. Another description"]
    assert len(loaded) == 2


def test_saving_again_replaces_and_leaves_nothing_behind(few: list[Tool], tmp_path: Path) -> None:
    search = ToolSearch(few)
    search.save(tmp_path)
    first = set(os.listdir(tmp_path))
    search.remove(["get_weather"])
    search.save(tmp_path)
    second = set(os.listdir(tmp_path))
    assert len(second) == len(first) == 3
    assert second & first == {"manifest.json"}
    assert [tool.name for tool in ToolSearch.load(tmp_path).tools] == [tool.name for tool in few[1:]]


def test_nothing_saved_can_run_code(few: list[Tool], tmp_path: Path) -> None:
    ToolSearch(few).save(tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".jsonl", ".npy"]
    assert all(not path.read_bytes().startswith(b"\x80") for path in tmp_path.iterdir())


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


def edit(folder: Path, *, digest: bool = True, **changes: Any) -> None:
    """Change the manifest, with a true digest, as if somebody had written it so on purpose."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    if digest:
        rest = {name: value for name, value in manifest.items() if name != "digest"}
        manifest["digest"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(manifest))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is not there"),
    "manifest cut": (lambda f: (f / "manifest.json").write_text('{"format_'), "not the manifest of a saved index"),
    "manifest of another kind": (lambda f: (f / "manifest.json").write_text("[]"), "not the manifest"),
    "vectors missing": (lambda f: only(f, "*.npy").unlink(), r"lacks '.*\.npy'"),
    "tools missing": (lambda f: only(f, "*.jsonl").unlink(), r"lacks '.*\.jsonl'"),
    "vectors cut": (lambda f: os.truncate(only(f, "*.npy"), 100), "damaged: .*100 bytes, and should have"),
    "tools changed": (
        lambda f: only(f, "*.jsonl").write_bytes(only(f, "*.jsonl").read_bytes().replace(b"money", b"honey")),
        "SHA-256 differs",
    ),
    "other format": (lambda f: edit(f, format_version=2), "format version 2; this release reads 1"),
    "other text": (lambda f: edit(f, text_version=99), "text version 99; this release reads 1"),
    "manifest changed": (lambda f: edit(f, digest=False, mode="semantic"), "damaged: its digest differs"),
    "alias without a tool": (lambda f: edit(f, aliases={"key": "absent"}), "alias 'key'"),
    "other count": (lambda f: edit(f, tools=4), "contradicts its manifest"),
    "vectors without encoder": (lambda f: edit(f, encoder=None), "contradicts its manifest"),
    "leads out of the folder": (
        lambda f: edit(f, files={"../../secret.jsonl": {"bytes": 3, "sha256": "0"}}),
        r"lacks '.*/index/secret\.jsonl'",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_refused_with_the_reason_and_the_cure(few: list[Tool], tmp_path: Path, damage: str) -> None:
    harm, reason = DAMAGES[damage]
    folder = tmp_path / "index"
    ToolSearch(few).save(folder)
    harm(folder)
    with pytest.raises(SavedIndexError, match=reason) as caught:
        ToolSearch.load(folder)
    assert "Build it again" in str(caught.value)


def test_an_index_made_by_another_encoder_is_refused(
    few: list[Tool], tmp_path: Path, encoder: BreakableEncoder
) -> None:
    encoder.fingerprint = "another"
    ToolSearch(few, encoder=encoder).save(tmp_path)
    with pytest.raises(SavedIndexError, match=r"another encoder \(another\) than the one given \(onnx-"):
        ToolSearch.load(tmp_path)
    assert ToolSearch.load(tmp_path, encoder=encoder).active_mode == "hybrid"


def test_an_index_whose_encoder_cannot_be_loaded_answers_by_keyword(
    few: list[Tool], broken_model: Path, tmp_path: Path
) -> None:
    ToolSearch(few).save(tmp_path / "index")
    loaded = ToolSearch.load(tmp_path / "index", encoder=broken_model)
    assert [(h.tool.name, h.source) for h in loaded.search("refund payment")] == [("refund_payment", "lexical")]


def test_a_catalogue_without_vectors_is_not_saved_as_one_with_them(
    few: list[Tool], broken_model: Path, tmp_path: Path
) -> None:
    search = ToolSearch(few, encoder=broken_model)
    with pytest.raises(SavedIndexError, match="no vectors to save"):
        search.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_folder_that_holds_something_else_is_left_alone(few: list[Tool], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(SavedIndexError, match="holds something else"):
        ToolSearch(few, mode="lexical").save(tmp_path)
    with pytest.raises(SavedIndexError, match="holds something else"):
        ToolSearch(few, mode="lexical").save(tmp_path / "thesis.txt")
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_failed_save_leaves_the_old_index_whole(
    few: list[Tool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ToolSearch(few).save(tmp_path)
    before = sorted(os.listdir(tmp_path))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ToolSearch(few[:1]).save(tmp_path)
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == before
    assert len(ToolSearch.load(tmp_path)) == len(few)


def test_files_of_a_killed_save_are_removed_when_they_are_old(few: list[Tool], tmp_path: Path) -> None:
    old, new = tmp_path / "tools-old.jsonl", tmp_path / "vectors-new.npy"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    ToolSearch(few).save(tmp_path)
    assert not old.exists()
    assert new.exists()


def test_a_save_that_is_killed_leaves_one_whole_index(tmp_path: Path) -> None:
    ToolSearch([Tool("tool_0", "number 0")]).save(tmp_path)
    endless = SAVE.replace("range(25)", "iter(int, 1)")
    for attempt in range(12):
        saver = subprocess.Popen([sys.executable, "-c", endless, str(tmp_path), str(20 + attempt)])
        time.sleep(1.0 + 0.037 * attempt)
        saver.kill()
        saver.wait()
        loaded = ToolSearch.load(tmp_path)
        assert len(loaded) in {1, *range(20, 21 + attempt)}
        assert loaded.search("tool_0")[0].score == 1.0


SAVE = """
import sys
from toolsearch_semantic import Tool, ToolSearch
search = ToolSearch([Tool(f"tool_{i}", f"number {i}") for i in range(int(sys.argv[2]))])
for _ in range(25):
    search.save(sys.argv[1])
"""


def test_readers_and_writers_in_other_processes_always_find_one_whole_index(tmp_path: Path) -> None:
    ToolSearch([Tool("tool_0", "number 0")]).save(tmp_path)
    writers = [subprocess.Popen([sys.executable, "-c", SAVE, str(tmp_path), str(count)]) for count in (3, 40)]
    seen: set[int] = set()
    while any(writer.poll() is None for writer in writers):
        loaded = ToolSearch.load(tmp_path)
        assert np.isclose(loaded.search("tool_0")[0].score, 1.0)
        seen.add(len(loaded))
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {1, 3, 40}
    assert len(ToolSearch.load(tmp_path)) in {3, 40}


def test_an_index_of_the_static_model_is_loaded_with_it(few: list[Tool], tmp_path: Path) -> None:
    ToolSearch(few, encoder="static").save(tmp_path / "index")
    loaded = ToolSearch.load(tmp_path / "index")
    assert loaded.encoder is not None
    assert loaded.encoder.fingerprint.startswith("static-")
    assert loaded.search("refund payment")[0].source == "hybrid"
