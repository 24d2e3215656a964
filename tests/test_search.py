from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import BreakableEncoder
from toolsearch_semantic import (
    EncodingError,
    InvalidOptionError,
    ModelError,
    SearchHit,
    Tool,
    ToolNameConflictError,
    ToolNotFoundError,
    ToolSearch,
    UnknownToolShapeError,
)
from toolsearch_semantic.encoders.base import CalibratedEncoder, Encoder
from toolsearch_semantic.encoders.bundled import BundledEncoder
from toolsearch_semantic.options import Mode
from toolsearch_semantic.scores import LEXICAL
from toolsearch_semantic.text import searchable_text, text_fields

MODES: list[Mode] = ["semantic", "lexical", "hybrid"]
every_mode = pytest.mark.parametrize("mode", MODES)


def names(hits: list[SearchHit]) -> list[str]:
    return [hit.tool.name for hit in hits]


@every_mode
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("weather forecast for Lisbon", "get_weather"),
        ("REFUND the customer", "refund_payment"),
        ("report a bug in the tracker", "createIssue"),
        ("delete a file", "files.delete"),
        ("translate this text", "translate_text"),
    ],
)
def test_the_right_tool_comes_first(few: list[Tool], mode: Mode, query: str, name: str) -> None:
    hits = ToolSearch(few, mode=mode).search(query)
    assert names(hits)[0] == name
    assert hits[0].source == mode
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


def test_a_request_that_shares_no_word_with_the_tool_finds_it_by_meaning(few: list[Tool]) -> None:
    query = "will it be sunny tomorrow"
    assert ToolSearch(few, mode="lexical").search(query) == []
    assert names(ToolSearch(few, mode="semantic").search(query))[0] == "get_weather"
    assert names(ToolSearch(few).search(query))[0] == "get_weather"


def test_a_hit_says_what_it_was_found_by(few: list[Tool]) -> None:
    hit = ToolSearch(few).search("please refund this payment")[0]
    assert hit.tool is few[1]
    assert hit.words == ("refund", "payment")
    assert hit.cosine is not None
    assert hit.lexical is not None
    assert 0 < hit.lexical < 1
    assert 0 < hit.cosine < 1
    lexical = ToolSearch(few, mode="lexical").search("please refund this payment")[0]
    assert lexical.cosine is None
    assert lexical.score == pytest.approx(LEXICAL(np.zeros(1), np.array([lexical.lexical]))[0], abs=1e-12)
    semantic = ToolSearch(few, mode="semantic").search("please refund this payment")[0]
    assert (semantic.cosine, semantic.lexical) == (hit.cosine, None)


def test_scores_are_the_scoring_of_the_parts(few: list[Tool], encoder: BreakableEncoder) -> None:
    for hit in ToolSearch(few, encoder=encoder).search("refund a payment for bad weather"):
        expected = encoder.scoring.hybrid(np.array([hit.cosine]), np.array([hit.lexical]))[0]
        assert hit.score == pytest.approx(expected, abs=1e-12)
    query = encoder.encode_queries(["bad weather"])[0]
    for hit in ToolSearch(few, encoder=encoder, mode="semantic").search("bad weather"):
        row = encoder.encode_documents([searchable_text(text_fields(hit.tool))])[0]
        assert hit.cosine == pytest.approx(float(row @ query), abs=1e-5)


@every_mode
@pytest.mark.parametrize("query", ["files.delete", "FILES_DELETE", "files delete", "filesdelete", " Files-Delete "])
def test_a_tools_name_puts_it_first_with_score_1(few: list[Tool], mode: Mode, query: str) -> None:
    hits = ToolSearch(few, mode=mode).search(query, min_score=0.0)
    assert (names(hits)[0], hits[0].score, hits[0].source) == ("files.delete", 1.0, mode)


def test_of_names_that_differ_in_separators_the_one_typed_comes_first() -> None:
    search = ToolSearch([Tool("get.user"), Tool("getUser"), Tool("get_user")], mode="lexical")
    assert names(search.search("getUser")) == ["getUser", "get.user", "get_user"]
    assert {hit.score for hit in search.search("getUser")} == {1.0}


@every_mode
def test_select_gives_the_named_tools_in_the_order_asked(few: list[Tool], mode: Mode) -> None:
    search = ToolSearch(few, mode=mode)
    hits = search.search("select:translate_text, Create-Issue,absent,translate_text")
    assert [(hit.tool.name, hit.score, hit.source) for hit in hits] == [
        ("translate_text", 1.0, mode),
        ("createIssue", 1.0, mode),
    ]
    assert search.search("select:") == []
    assert search.search("SELECT:absent") == []
    assert names(search.search("select:createIssue,get_weather", top_k=1)) == ["createIssue"]


@every_mode
def test_of_several_queries_a_tools_score_is_its_best(few: list[Tool], mode: Mode) -> None:
    search = ToolSearch(few, mode=mode)
    one, other = "weather forecast", "open a bug report"
    best: dict[str, float] = {}
    for query in (one, other):
        for hit in search.search(query):
            best[hit.tool.name] = max(best.get(hit.tool.name, 0), hit.score)
    together = search.search([one, other])
    assert {hit.tool.name: hit.score for hit in together} == {
        name: score for name, score in best.items() if name in names(together)
    }
    assert len(together) == min(5, len(best))
    assert set(names(together)[:2]) == {"get_weather", "createIssue"}


@every_mode
@pytest.mark.parametrize("query", ["", "  \n\t ", [], ["", " "], "\u200b", "\ud800"])
def test_a_blank_query_finds_nothing(few: list[Tool], mode: Mode, query: Any) -> None:
    assert ToolSearch(few, mode=mode).search(query) == []


@every_mode
def test_an_empty_catalogue_finds_nothing(mode: Mode) -> None:
    search = ToolSearch(mode=mode)
    assert (len(search), search.search("weather"), search.search("select:weather")) == (0, [], [])


@pytest.mark.parametrize("query", [None, 3, b"weather", b"", ["weather", None], {"query": "weather"}, {"weather"}])
def test_a_query_that_is_not_text_is_refused(few: list[Tool], query: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a string or a sequence of strings"):
        ToolSearch(few, mode="lexical").search(query)


@every_mode
def test_min_score_keeps_what_reaches_it_and_top_k_cuts(few: list[Tool], mode: Mode) -> None:
    search = ToolSearch(few, mode=mode)
    query = "customer bug report about the weather forecast"
    hits = search.search(query)
    assert len(hits) >= 3
    bar = hits[1].score
    assert names(search.search(query, min_score=bar)) == names(hits)[:2]
    assert names(search.search(query, min_score=np.nextafter(bar, 1))) == names(hits)[:1]
    assert names(search.search(query, top_k=2)) == names(hits)[:2]
    assert search.search(query, min_score=1.0) == []


@every_mode
def test_tools_with_one_text_are_hits_of_their_own_in_catalogue_order(mode: Mode) -> None:
    tools = [Tool(f"t{i}", search_text="weather forecast") for i in range(300)]
    hits = ToolSearch(tools, mode=mode).search("weather forecast", top_k=4)
    assert names(hits) == ["t0", "t1", "t2", "t3"]
    assert len({hit.score for hit in hits}) == 1


@every_mode
def test_adding_and_removing_gives_what_building_afresh_gives(demo: list[dict[str, Any]], mode: Mode) -> None:
    grown = ToolSearch(demo[:50], mode=mode)
    grown.add(demo[50:])
    grown.remove([record["name"] for record in demo[10:40]])
    grown.add(demo[10:40])
    fresh = ToolSearch([*demo[:10], *demo[40:], *demo[10:40]], mode=mode)
    assert [tool.name for tool in grown.tools] == [tool.name for tool in fresh.tools]
    for query in ("who is on call right now", "give the money back", "create_issue", "天气"):
        assert grown.search(query, top_k=20) == fresh.search(query, top_k=20)


def test_what_was_encoded_once_is_not_encoded_again(few: list[Tool], encoder: BreakableEncoder) -> None:
    search = ToolSearch(few, encoder=encoder)
    search.remove(["get_weather"])
    search.add(few)
    assert [tool.name for tool in search.tools][-1] == "get_weather"
    assert len(encoder.documents) == len(few)


def test_keys_that_differ_from_the_name_are_aliases(few: list[Tool]) -> None:
    search = ToolSearch({"weather": few[0], "refund_payment": few[1]}, mode="lexical")
    assert search.aliases == {"weather": "get_weather"}
    assert search.get("weather") is few[0]
    assert "weather" in search
    assert "get_weather" in search
    assert "absent" not in search
    assert 3 not in search
    assert names(search.search("select:weather")) == ["get_weather"]
    search.remove(["weather"])
    assert search.aliases == {}
    assert [tool.name for tool in search.tools] == ["refund_payment"]


def test_two_tools_of_one_name_are_refused_whenever_they_come(few: list[Tool]) -> None:
    other = Tool("get_weather", "Something else", namespace="sky")
    with pytest.raises(ToolNameConflictError, match="get_weather"):
        ToolSearch([*few, other])
    search = ToolSearch(few, mode="lexical")
    with pytest.raises(
        ToolNameConflictError, match=r"'get_weather' of 'sky' cannot be added: .*taken by 'get_weather'"
    ):
        search.add([Tool("new"), other])
    with pytest.raises(ToolNameConflictError, match="key 'get_weather' of the tool 'new'"):
        search.add({"get_weather": Tool("new")})
    assert len(search) == len(few)
    search.add([few[0]])
    assert len(search) == len(few)


def test_a_tool_named_like_an_alias_is_refused(few: list[Tool]) -> None:
    search = ToolSearch({"weather": few[0]}, mode="lexical")
    with pytest.raises(ToolNameConflictError, match="'weather'"):
        search.add([Tool("weather")])


def test_a_tool_of_unknown_shape_is_named_by_its_position(few: list[Tool]) -> None:
    with pytest.raises(UnknownToolShapeError, match=r"tools\[3\]") as caught:
        ToolSearch([*few[:3], 42, few[4]])
    assert isinstance(caught.value, TypeError)
    search = ToolSearch(few[:1], mode="lexical")
    with pytest.raises(TypeError, match=r"tools\[1\]"):
        search.add([few[1], object()])
    assert len(search) == 1


def test_a_name_that_is_not_there_cannot_be_removed(few: list[Tool]) -> None:
    search = ToolSearch(few, mode="lexical")
    with pytest.raises(ToolNotFoundError, match="no tool 'absent' to remove") as caught:
        search.remove(["get_weather", "absent"])
    assert isinstance(caught.value, LookupError)
    with pytest.raises(InvalidOptionError, match=r"give \['get_weather'\]"):
        search.remove("get_weather")
    assert len(search) == len(few)


@pytest.mark.parametrize("mode", ["fuzzy", None, "HYBRID"])
def test_an_unknown_mode_is_refused(mode: Any) -> None:
    with pytest.raises(InvalidOptionError, match="'semantic', 'lexical', 'hybrid', not"):
        ToolSearch(mode=mode)


@pytest.mark.parametrize("encoder", [3, object(), ["path"]])
def test_what_is_no_encoder_is_refused(encoder: Any) -> None:
    with pytest.raises(InvalidOptionError, match="encoder must be an Encoder or the path"):
        ToolSearch(encoder=encoder)


def test_lexical_mode_loads_no_encoder(few: list[Tool]) -> None:
    search = ToolSearch(few, mode="lexical", encoder="no/such")
    assert (search.encoder, search.mode, search.active_mode) == (None, "lexical", "lexical")


@pytest.mark.parametrize("fallback", [True, False])
def test_a_path_with_no_model_is_a_mistake_and_not_a_failure(few: list[Tool], fallback: bool) -> None:
    with pytest.raises(InvalidOptionError, match=r"No model at 'no/such'.*'mini' or 'static'"):
        ToolSearch(few, encoder="no/such", fallback=fallback)


def test_bundled_models_go_by_name(few: list[Tool]) -> None:
    search = ToolSearch(few, encoder="static")
    assert search.encoder is not None
    assert search.encoder.fingerprint == BundledEncoder("static").fingerprint


def test_an_encoder_that_cannot_be_loaded_is_replaced_by_keywords_and_said_once(
    few: list[Tool], broken_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        search = ToolSearch(few, encoder=broken_model)
        hits = search.search("refund payment")
        search.search("weather")
        search.add([Tool("another")])
    assert [(hit.tool.name, hit.source) for hit in hits] == [("refund_payment", "lexical")]
    assert (search.mode, search.active_mode) == ("hybrid", "lexical")
    assert hits == ToolSearch(few, mode="lexical").search("refund payment")
    [warning] = caplog.records
    assert "Searching by keyword only" in warning.message
    assert str(broken_model) in warning.message
    assert "fallback=False" in warning.message


def test_without_fallback_an_encoder_that_cannot_be_loaded_raises(few: list[Tool], broken_model: Path) -> None:
    with pytest.raises(ModelError, match="not a model manifest"):
        ToolSearch(few, encoder=broken_model, fallback=False)


def test_an_encoder_that_fails_on_a_query_is_replaced_for_that_query(
    few: list[Tool], encoder: BreakableEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    search = ToolSearch(few, encoder=encoder, mode="semantic")
    encoder.failing = RuntimeError("out of memory")
    with caplog.at_level(logging.WARNING):
        assert [(h.tool.name, h.source) for h in search.search("refund")] == [("refund_payment", "lexical")]
        search.search("weather")
    assert [r.message for r in caplog.records if "out of memory" in r.message] == [r.message for r in caplog.records]
    assert len(caplog.records) == 1
    encoder.failing = None
    assert search.search("refund")[0].source == "semantic"


def test_tools_added_while_the_encoder_fails_get_their_vectors_when_it_works_again(
    few: list[Tool], encoder: BreakableEncoder
) -> None:
    search = ToolSearch(few[:2], encoder=encoder)
    encoder.failing = RuntimeError("out of memory")
    search.add(few[2:4])
    assert search.active_mode == "lexical"
    encoder.failing = None
    search.add(few[4:])
    assert search.active_mode == "hybrid"
    assert search.search("open a bug report") == ToolSearch(few, encoder=encoder).search("open a bug report")


def test_without_fallback_an_encoder_that_fails_raises_and_nothing_is_added(
    few: list[Tool], encoder: BreakableEncoder
) -> None:
    search = ToolSearch(few[:2], encoder=encoder, fallback=False)
    encoder.failing = RuntimeError("out of memory")
    with pytest.raises(EncodingError, match="out of memory"):
        search.search("refund")
    with pytest.raises(EncodingError, match="out of memory"):
        search.add(few)
    assert len(search) == 2


def test_searches_during_changes_see_one_whole_catalogue(demo: list[dict[str, Any]]) -> None:
    search = ToolSearch(demo[:100])
    moving = demo[100:]
    wrong: list[str] = []
    seen: set[int] = set()
    done = threading.Event()

    def change() -> None:
        deadline = time.monotonic() + 30
        while len(seen) < 2 and time.monotonic() < deadline:
            search.add(moving)
            time.sleep(0.02)
            search.remove([record["name"] for record in moving])
            time.sleep(0.02)
        done.set()

    def look() -> None:
        expected = {0: names(ToolSearch(demo[:100]).search("refund a payment", top_k=10)),
                    1: names(ToolSearch(demo).search("refund a payment", top_k=10))}  # fmt: skip
        while not done.is_set():
            found = names(search.search("refund a payment", top_k=10))
            if found not in expected.values():
                wrong.append(repr(found))
            seen.update(state for state, names_then in expected.items() if names_then == found)

    threads = [threading.Thread(target=look) for _ in range(3)] + [threading.Thread(target=change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert seen == {0, 1}
    assert len(search) == 100


def test_of_tools_that_threads_add_at_once_none_is_lost() -> None:
    search = ToolSearch(mode="lexical")
    start = threading.Barrier(8)

    def add(number: int) -> None:
        start.wait()
        for i in range(25):
            search.add([Tool(f"tool_{number}_{i}")])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tool.name for tool in search.tools) == sorted(f"tool_{n}_{i}" for n in range(8) for i in range(25))
    assert search.search("tool_3_7")[0].tool.name == "tool_3_7"


def test_an_encoder_that_failed_on_tools_is_tried_again_by_a_later_search(
    few: list[Tool], encoder: BreakableEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder.failing = RuntimeError("out of memory")
    search = ToolSearch(few, encoder=encoder)
    encoder.failing = None
    assert search.search("refund")[0].source == "lexical"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 6)
    assert search.search("refund")[0].source == "hybrid"


def test_whatever_goes_wrong_with_a_model_is_no_reason_to_answer_nothing(few: list[Tool]) -> None:
    class Broken(BreakableEncoder):
        def __init__(self) -> None:
            """Have no dimension."""

        @property
        def dimension(self) -> int:
            raise OSError("disk gone")

        @dimension.setter
        def dimension(self, value: int) -> None: ...

        fingerprint = "broken"

    assert ToolSearch(few, encoder=Broken()).search("refund")[0].source == "lexical"
    with pytest.raises(EncodingError, match="disk gone"):
        ToolSearch(few, encoder=Broken(), fallback=False)


def test_a_name_of_separators_alone_is_not_found_by_others() -> None:
    search = ToolSearch([Tool("_"), Tool("get_weather")], mode="lexical")
    assert search.search("...") == []
    assert names(search.search("get_weather"))[0] == "get_weather"


def test_a_query_of_a_megabyte_is_searched_by_its_beginning(few: list[Tool]) -> None:
    search = ToolSearch(few)
    start = time.perf_counter()
    assert names(search.search("refund payment " + "天气" * 500_000))[0] == "refund_payment"
    assert time.perf_counter() - start < 2


def test_a_hit_says_whether_the_query_named_it(few: list[Tool]) -> None:
    hits = ToolSearch(few).search("get_weather")
    assert (hits[0].tool.name, hits[0].by_name) == ("get_weather", True)
    assert not any(hit.by_name for hit in hits[1:])


def test_a_tool_with_an_empty_description_is_found_by_its_name() -> None:
    assert names(ToolSearch([Tool("send_email"), Tool("get_weather")]).search("email somebody"))[0] == "send_email"


@every_mode
@pytest.mark.parametrize(
    "tool",
    [
        Tool("big", "weather " * 131_072),
        Tool("🚀", "🚀🚀"),
        Tool("html", "<p onclick='x()'>weather</p>"),
        Tool("nul", "wea\x00ther \ud800"),
        Tool("null_schema", "", {"type": "object", "properties": None}),
        Tool("w", ""),
    ],
    ids=lambda tool: tool.name.encode("ascii", "replace").decode(),
)
def test_an_odd_tool_does_no_harm_and_is_found_by_its_name(few: list[Tool], mode: Mode, tool: Tool) -> None:
    search = ToolSearch([*few, tool], mode=mode)
    assert search.search(f"select:{tool.name}")[0].tool is tool
    assert search.search("refund")[0].tool.name == "refund_payment"


@pytest.mark.parametrize(
    ("query", "description"),
    [
        ("查询天气", "获取城市的天气预报"),
        ("天気を調べる", "都市の天気予報を取得する"),
        ("날씨 알려줘", "도시의 날씨 예보를 가져온다"),
        ("прогноз погоды", "Прогноз погоды для города"),
        ("حالة الطقس", "توقعات الطقس لمدينة"),
        ("météo de demain", "Prévisions meteo pour une ville"),
    ],
)
def test_requests_find_tools_described_in_their_script(few: list[Tool], query: str, description: str) -> None:
    search = ToolSearch([*few[1:], Tool("w", description)])
    assert names(search.search(query))[0] == "w"


def test_an_encoder_of_ones_own_needs_four_members_and_is_scored_by_its_cosine(few: list[Tool]) -> None:
    class Letters:
        fingerprint = "letters-1"
        dimension = 26

        def encode_documents(self, texts: Any, /) -> Any:
            return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float64)

        encode_queries = encode_documents

    own = Letters()
    assert isinstance(own, Encoder)
    assert not isinstance(own, CalibratedEncoder)
    hit = ToolSearch(few, encoder=own, mode="semantic").search("translate the text")[0]
    assert hit.score == pytest.approx(hit.cosine)
    assert hit.tool.name == "translate_text"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u200bb", "ab"),
        ("cafe\u0301", "café"),
        ("ｆｕｌｌ", "full"),
        ("soft\u00adly", "softly"),
    ],
)
def test_a_name_is_found_however_its_letters_are_composed(name: str, query: str) -> None:
    search = ToolSearch([Tool(name), Tool("other")], mode="lexical")
    assert [(hit.tool.name, hit.score) for hit in search.search(query)] == [(name, 1.0)]
    assert names(search.search(f"select:{query}")) == [name]


@pytest.mark.parametrize("cache", ["vectors.sqlite", 3, object()])
def test_what_is_no_cache_is_refused(cache: Any) -> None:
    with pytest.raises(InvalidOptionError, match="cache must have get and put"):
        ToolSearch(cache=cache)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_was_forked_during_a_change_can_change_its_own_catalogue(few: list[Tool]) -> None:
    class Slow(BreakableEncoder):
        def encode_documents(self, texts: Any, /) -> Any:
            if "stop here" in texts:
                reached.set()
                go_on.wait(30)
            return super().encode_documents(texts)

    reached, go_on = threading.Event(), threading.Event()
    search = ToolSearch(few, encoder=Slow())
    adding = threading.Thread(target=search.add, args=([Tool("slow", search_text="stop here")],))
    adding.start()
    reached.wait(30)
    child = os.fork()
    if child == 0:
        search.remove(["get_weather"])
        os._exit(0 if len(search) == len(few) - 1 else 1)
    deadline = time.monotonic() + 20
    status = None
    while status is None and time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
        time.sleep(0.05)
    if status is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
    go_on.set()
    adding.join()
    assert status == 0
