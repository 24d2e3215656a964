from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import BreakableEncoder
from toolsearch_semantic import EncodingError, InvalidOptionError, SavedIndexError, Tool, ToolSearch, TuningError
from toolsearch_semantic.encoders.bundled import BundledEncoder
from toolsearch_semantic.fitting import Judged, calibration_error, fit_lexical, fit_scoring, quality_of
from toolsearch_semantic.scores import LEXICAL, LogisticScore, Scoring
from toolsearch_semantic.tuning import Tuning, TuningReport, read_labelled, tune

Requests = list[tuple[str, list[str]]]
SYLLABLES = ["вор", "нак", "тил", "бур", "зем", "ква", "рик", "лод", "фен", "гар"]


def code_word(number: int) -> str:
    """One word for each number below 100, in a script that the model does not know."""
    return SYLLABLES[number % 10] + SYLLABLES[number // 10] + SYLLABLES[(number * 7 + 3) % 10]


@pytest.fixture(scope="module")
def shifted() -> tuple[list[Tool], Requests]:
    """Tools that a company calls by code words; what else a request says is about another tool."""
    kinds = ["emails", "refunds", "weather", "translation", "bugs"]
    tools = [
        Tool(f"tool_{i}", f"Takes care of {kinds[i % 5]} in every office of the whole company: {code_word(i)}")
        for i in range(60)
    ]
    requests = [
        (f"I would like to do something about {kinds[(i + 1) % 5]} now, {code_word(i)}", [f"tool_{i}"])
        for i in range(60)
    ]
    return tools, requests


def trusting() -> BreakableEncoder:
    """An encoder whose own scores trust meaning nearly alone."""
    encoder = BreakableEncoder()
    encoder.scoring = Scoring(LogisticScore(-4.0, 8.0, 0.0), LogisticScore(-4.0, 8.0, 0.5))
    return encoder


@pytest.fixture(scope="module")
def report(shifted: tuple[list[Tool], Requests]) -> TuningReport:
    return tune(*shifted, encoder=trusting())


def test_tuning_improves_a_catalogue_whose_words_the_model_does_not_know(report: TuningReport) -> None:
    hybrid = report.modes["hybrid"]
    assert hybrid.taken
    assert hybrid.before.ndcg < 0.6
    assert hybrid.after.ndcg > 0.95
    assert hybrid.after.calibration_error < 0.2
    assert (report.tuning.requests, report.tuning.tools) == (60, 60)


def test_a_mode_that_would_rank_worse_keeps_its_scores(
    monkeypatch: pytest.MonkeyPatch, shifted: tuple[list[Tool], Requests]
) -> None:
    upside_down = Scoring(LogisticScore(-1.0, 0.0, 1.0), LogisticScore(-1.0, 0.0, 0.0))
    monkeypatch.setattr("toolsearch_semantic.tuning.fit_scoring", lambda sets: upside_down)
    encoder = BundledEncoder("static")
    worse = tune(*shifted, encoder=encoder)
    assert not worse.modes["hybrid"].taken
    assert worse.tuning.scoring.hybrid == encoder.scoring.hybrid


def test_a_search_scores_as_it_was_tuned(
    report: TuningReport, shifted: tuple[list[Tool], Requests], tmp_path: Path
) -> None:
    tools, requests = shifted
    encoder = trusting()
    report.tuning.save(tmp_path / "tuning.json")
    plain = ToolSearch(tools, encoder=encoder)
    tuned = ToolSearch(tools, encoder=encoder, tuning=tmp_path / "tuning.json")

    def first(search: ToolSearch) -> float:
        return float(np.mean([search.search(text)[0].tool.name == right[0] for text, right in requests]))

    assert first(tuned) > first(plain)
    hit = tuned.search(requests[7][0])[0]
    expected = report.tuning.scoring.hybrid(np.array([hit.cosine or 0.0]), np.array([hit.lexical]))[0]
    assert hit.score == pytest.approx(expected, abs=1e-9)
    assert tuned.is_weak(dataclasses.replace(hit, score=report.tuning.scoring.hybrid.weak_below - 0.001))
    keywords = ToolSearch(tools, mode="lexical", tuning=report.tuning)
    hit = keywords.search(requests[7][0])[0]
    assert hit.score == pytest.approx(report.tuning.lexical(np.zeros(1), np.array([hit.lexical]))[0], abs=1e-9)


def test_a_saved_index_takes_a_tuning(
    report: TuningReport, shifted: tuple[list[Tool], Requests], tmp_path: Path
) -> None:
    tools, requests = shifted
    encoder = trusting()
    text = requests[3][0]
    direct = ToolSearch(tools, encoder=encoder, tuning=report.tuning)
    expected = [(hit.tool.name, hit.score) for hit in direct.search(text)]
    ToolSearch(tools, encoder=encoder).save(tmp_path / "plain")
    loaded = ToolSearch.load(tmp_path / "plain", encoder=encoder, tuning=report.tuning)
    assert [(hit.tool.name, hit.score) for hit in loaded.search(text)] == expected
    direct.save(tmp_path / "tuned")
    loaded = ToolSearch.load(tmp_path / "tuned", encoder=encoder)
    assert [(hit.tool.name, hit.score) for hit in loaded.search(text)] == expected
    with pytest.raises(SavedIndexError, match="made by another encoder"):
        ToolSearch.load(tmp_path / "tuned", encoder="mini")


def test_a_tuning_is_read_as_it_was_written(report: TuningReport, tmp_path: Path) -> None:
    report.tuning.save(tmp_path / "tuning.json")
    assert Tuning.load(tmp_path / "tuning.json") == report.tuning
    assert [path.name for path in tmp_path.iterdir()] == ["tuning.json"]


def test_a_tuning_for_another_encoder_is_refused(report: TuningReport, encoder: BreakableEncoder) -> None:
    encoder.fingerprint = "another"
    with pytest.raises(TuningError, match=r"for another encoder.*Tune again"):
        ToolSearch([], encoder=encoder, tuning=report.tuning)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "format_version"),
        ({"text_version": 0}, "searchable text of version 0"),
        ({"scoring": {}}, "scoring"),
        ({"lexical": {"intercept": 1, "cosine": -1, "lexical": 0}}, "slopes of 0 or more"),
    ],
)
def test_a_file_that_is_no_tuning_is_refused(
    report: TuningReport, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "tuning.json"
    report.tuning.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(TuningError, match=message):
        Tuning.load(path)


def test_a_missing_tuning_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match=r"cannot be read.*`toolsearch tune`"):
        ToolSearch([], tuning=tmp_path / "none.json")


def test_a_thing_that_is_no_tuning_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="tuning must be a Tuning or the path of one, not 3"):
        ToolSearch([], tuning=3)  # type: ignore[arg-type]


def test_fewer_than_twenty_labelled_requests_are_refused(shifted: tuple[list[Tool], Requests]) -> None:
    tools, requests = shifted
    unlabelled: Requests = [("what is the time", [])] * 30
    with pytest.raises(TuningError, match=r"19 requests have a right tool; tuning needs at least 20"):
        tune(tools, requests[:19] + unlabelled, encoder=BundledEncoder("static"))


def test_an_unknown_tool_is_named_with_its_request(shifted: tuple[list[Tool], Requests]) -> None:
    tools, requests = shifted
    with pytest.raises(TuningError, match=r"Request 61 \('fly'\) names the tool 'aeroplane'"):
        tune(tools, [*requests, ("fly", ["aeroplane"])], encoder=BundledEncoder("static"))


def test_labelled_requests_are_read_and_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text('{"query": "fly", "relevant": ["a"]}\n\n{"query": "walk", "relevant": []}\n')
    assert read_labelled(path) == [("fly", ["a"]), ("walk", [])]
    path.write_text('{"query": "fly", "relevant": ["a"]}\n{"query": "walk"}\n')
    with pytest.raises(TuningError, match=r"line 2: relevant: Field required\. Expected"):
        read_labelled(path)
    with pytest.raises(TuningError, match="cannot be read"):
        read_labelled(tmp_path / "none.jsonl")


def made_up(count: int, seed: int) -> Judged:
    """Requests over 20 tools whose right tool has cosine and share raised, the cosine being the better sign."""
    chance = np.random.default_rng(seed)
    cosines, shares, right = [], [], []
    for _ in range(count):
        marks = np.zeros(20, np.bool_)
        marks[chance.integers(20)] = True
        cosines.append(np.clip(chance.normal(0.2, 0.1, 20) + 0.4 * marks, 0, 1))
        shares.append(np.clip(chance.normal(0.2, 0.1, 20) + 0.1 * marks, 0, 1))
        right.append(marks)
    return Judged(cosines, shares, right)


def test_a_fit_leans_on_the_better_sign_and_estimates_how_often_first_hits_are_right() -> None:
    scoring = fit_scoring([made_up(300, 1), made_up(300, 2)])
    assert isinstance(scoring.hybrid, LogisticScore)
    assert scoring.hybrid.cosine > scoring.hybrid.lexical
    quality = quality_of(scoring.hybrid, made_up(300, 3))
    assert quality.ndcg > 0.95
    assert quality.calibration_error < 0.08
    assert quality_of(fit_lexical([made_up(300, 1)]), made_up(300, 3)).ndcg < quality.ndcg


def test_one_right_tool_in_ten_scores_below_the_bound_of_weak_scores() -> None:
    one = made_up(400, 4)
    curve = fit_scoring([one]).hybrid
    best = [curve(c[m], s[m]).max() for c, s, m in zip(one.cosines, one.lexical, one.right, strict=True)]
    assert np.mean(np.array(best) < curve.weak_below) == pytest.approx(0.1, abs=0.02)


def test_the_calibration_error_is_that_of_the_definition() -> None:
    scores = np.array([0.05, 0.05, 0.95, 0.95])
    right = np.array([False, True, True, True])
    assert calibration_error(scores, right) == pytest.approx(0.5 * abs(0.05 - 0.5) + 0.5 * 0.05)


def test_requests_that_separate_perfectly_still_give_a_finite_curve() -> None:
    marks = np.array([True, False, False])
    one = Judged([np.array([0.9, 0.1, 0.1])] * 25, [np.zeros(3)] * 25, [marks] * 25)
    curve = fit_scoring([one]).semantic
    assert isinstance(curve, LogisticScore)
    assert np.isfinite(curve.cosine)
    assert curve(np.array([0.9]), np.zeros(1))[0] > 0.5 > curve(np.array([0.1]), np.zeros(1))[0]


def test_keyword_search_scores_by_the_shared_curve() -> None:
    hit = ToolSearch([Tool("get_rain", "rain")], mode="lexical").search("rain")[0]
    assert hit.score == pytest.approx(LEXICAL(np.zeros(1), np.array([hit.lexical]))[0])


WEATHER = [
    Tool(f"weather_{city}", f"Weather forecast for {city}") for city in ("lisbon", "oslo", "rome", "bern", "riga")
]
UNREADABLE = [(f"查询天气 {n}", [WEATHER[n % 5].name]) for n in range(24)]
READABLE = [(f"forecast number {n} for {WEATHER[n % 5].name[8:]}", [WEATHER[n % 5].name]) for n in range(30)]


def test_requests_that_the_encoder_makes_nothing_of_leave_its_scores_alone() -> None:
    encoder = BundledEncoder("static")
    assert not encoder.encode_queries(["查询天气 3"]).any()
    tuning = tune(WEATHER, UNREADABLE, encoder=encoder).tuning
    assert tuning.scoring == encoder.scoring
    assert tuning.lexical == LEXICAL  # they share no word with their tools either
    mixed = tune(WEATHER, [*READABLE, *UNREADABLE], encoder=encoder).tuning
    assert mixed.scoring.hybrid == tune(WEATHER, READABLE, encoder=encoder).tuning.scoring.hybrid


@pytest.mark.parametrize(
    ("tools", "requests"),
    [
        (WEATHER[:1], [(text, [WEATHER[0].name]) for text, _ in READABLE]),
        (WEATHER, [(text, [tool.name for tool in WEATHER]) for text, _ in READABLE]),
    ],
)
def test_requests_for_which_nothing_is_wrong_teach_nothing(tools: list[Tool], requests: Requests) -> None:
    encoder = BundledEncoder("static")
    tuning = tune(tools, requests, encoder=encoder).tuning
    for curve in (tuning.scoring.hybrid, tuning.scoring.semantic, tuning.lexical):
        assert isinstance(curve, LogisticScore)
        assert curve.cosine + curve.lexical > 0
        assert 0.0 < curve(np.array([0.5]), np.array([0.5]))[0] < 1.0


def test_few_requests_that_separate_perfectly_do_not_make_a_step() -> None:
    cosines = [np.array([0.9, 0.1, 0.1]) for _ in range(24)]
    right = [np.array([True, False, False]) for _ in range(24)]
    curve = fit_scoring([Judged(cosines, cosines, right)]).hybrid
    at = curve(np.array([0.1, 0.5, 0.9]), np.array([0.1, 0.5, 0.9]))
    assert 0.01 < at[0] < 0.1 < at[1] < 0.9 < at[2] < 0.99


def test_an_encoder_of_ones_own_is_tuned_as_it_is_searched_with() -> None:
    class Loud(BreakableEncoder):
        def encode_queries(self, texts: Any, /) -> Any:
            return 5 * super().encode_queries(texts)

        def encode_documents(self, texts: Any, /) -> Any:
            return 5 * super().encode_documents(texts)

    loud, plain = (tune(WEATHER, READABLE, encoder=one).tuning.scoring for one in (Loud(), BreakableEncoder()))
    assert isinstance(loud.hybrid, LogisticScore)
    assert isinstance(plain.hybrid, LogisticScore)
    assert loud.hybrid.intercept == pytest.approx(plain.hybrid.intercept, abs=0.01)
    assert loud.hybrid.cosine == pytest.approx(plain.hybrid.cosine, abs=0.01)


def test_an_encoder_that_fails_says_so() -> None:
    class Gone(BreakableEncoder):
        def encode_queries(self, texts: Any, /) -> Any:
            raise ConnectionError("no route")

    with pytest.raises(EncodingError, match="no route"):
        tune(WEATHER, READABLE, encoder=Gone())


def test_a_file_with_a_mark_at_its_beginning_and_rare_separators_is_read(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + '{"query": "a\u2028b\u0085c", "relevant": ["t"]}\r\n\n'.encode())
    assert read_labelled(path) == [("a\u2028b\u0085c", ["t"])]
