from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.indexes.contract import DIMENSION, IndexCase, document, documents, queries, unit
from toolsearch_semantic.indexes.base import Document, Query, best_rows
from toolsearch_semantic.indexes.hybrid import HybridIndex
from toolsearch_semantic.indexes.lexical import FIELDS, K1, LexicalIndex
from toolsearch_semantic.indexes.semantic import SemanticIndex
from toolsearch_semantic.options import Precision
from toolsearch_semantic.scores import LEXICAL, ConvexScore, LogisticScore
from toolsearch_semantic.text import STOP_WORDS, query_words, text_fields, tokenize
from toolsearch_semantic.tool import Tool

CURVE = LogisticScore(intercept=-3.0, cosine=6.0, lexical=4.0)


def cosines(documents: Sequence[Document], query: Query) -> NDArray[np.float64]:
    assert query.vector is not None
    vectors = [one.vector for one in documents if one.vector is not None]
    products = [float(np.dot(v.astype(float), query.vector.astype(float))) for v in vectors]
    return np.round(np.clip(np.array(products), -1, 1), 6)


def lexical_scores(documents: Sequence[Document], query: Query) -> NDArray[np.float64]:
    """The formula of the docstring, one document and one term at a time."""
    counts = []
    for one in documents:
        frequency: dict[str, float] = {}
        for field, how in FIELDS.items():
            terms = tokenize(getattr(one.fields, field), without=STOP_WORDS if how.prose else frozenset())
            for term in terms:
                norm = 1 - how.b + how.b * len(terms) / how.usual_length
                frequency[term] = frequency.get(term, 0) + how.weight / norm
        counts.append(frequency)
    n = len(documents)

    def idf(df: int) -> float:
        return math.log(1 + (n - df + 0.5) / (df + 0.5))

    total, reachable = np.zeros(n), 0.0
    for term in {term for terms in query_words(query.text).values() for term in terms}:
        df = sum(term in frequency for frequency in counts)
        reachable += idf(df) if df else 0.3 * idf(1)
        for row, frequency in enumerate(counts):
            if term in frequency:
                total[row] += idf(df) * frequency[term] / (K1 + frequency[term])
    return np.round(total / reachable, 6) if reachable else total


CASES = [
    IndexCase("lexical", LexicalIndex, lambda held, query: LEXICAL(np.zeros(len(held)), lexical_scores(held, query))),
    IndexCase(
        "semantic",
        lambda held: SemanticIndex(DIMENSION, held, score=ConvexScore(1.0)),
        lambda held, query: np.maximum(cosines(held, query), 0),
    ),
    IndexCase(
        "hybrid",
        lambda held: HybridIndex(SemanticIndex(DIMENSION, held), LexicalIndex(held), score=CURVE),
        lambda held, query: CURVE(cosines(held, query), lexical_scores(held, query)),
    ),
]
every_index = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_index
@settings(deadline=None, max_examples=150)
@given(held=documents, query=queries, k=st.integers(1, 50))
def test_an_index_ranks_like_the_reference(case: IndexCase, held: list[Document], query: Query, k: int) -> None:
    case.check(case.build(held), held, query, k)


@every_index
@settings(deadline=None, max_examples=75)
@given(first=documents, second=documents, query=queries, k=st.integers(1, 50))
def test_adding_gives_what_building_at_once_gives(
    case: IndexCase, first: list[Document], second: list[Document], query: Query, k: int
) -> None:
    before = case.build(first)
    case.check(before.with_added(second), [*first, *second], query, k)
    case.check(before, first, query, k)


@every_index
@settings(deadline=None, max_examples=75)
@given(held=documents, query=queries, k=st.integers(1, 50), data=st.data())
def test_removing_and_adding_again_gives_what_building_afresh_gives(
    case: IndexCase, held: list[Document], query: Query, k: int, data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(held) - 1))) if held else set()
    kept = [one for row, one in enumerate(held) if row not in gone]
    back = [held[row] for row in sorted(gone)]
    index = case.build(held)
    case.check(index.without(sorted(gone)), kept, query, k)
    case.check(index.without(sorted(gone)).with_added(back), [*kept, *back], query, k)
    case.check(index, held, query, k)


@every_index
def test_ties_keep_row_order_where_the_cut_falls(case: IndexCase) -> None:
    ranking = case.build([document([0, 3], 0) for _ in range(500)]).search(Query("create issue", unit(0)), 7)
    assert ranking.rows.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert len(set(ranking.scores.tolist())) == 1


@every_index
def test_an_empty_index_finds_nothing(case: IndexCase) -> None:
    assert case.build([]).search(Query("create issue", unit(0)), 5).rows.tolist() == []


def test_a_hybrid_ranking_is_exact_though_its_candidates_are_few() -> None:
    """At 3,000 rows the two halves are searched to a depth of 100 first; the ranking is that of all rows."""
    rng = np.random.default_rng(3)
    documents = [document(rng.integers(0, 11, size=6).tolist(), int(rng.integers(0, 10_000))) for _ in range(3_000)]
    index = HybridIndex(SemanticIndex(DIMENSION, documents), LexicalIndex(documents), score=CURVE)
    for seed in range(5):
        query = Query("delete weather report", unit(50_000 + seed))
        scores = CURVE(cosines(documents, query), lexical_scores(documents, query))
        expected = sorted(range(3_000), key=lambda row: (-scores[row], row))[:20]
        assert index.search(query, 20).rows.tolist() == expected


def test_a_lexical_score_is_the_share_of_what_the_query_could_reach() -> None:
    index = LexicalIndex([Document(text_fields(Tool("weather", "")))])
    # One term in the name alone: 3 / (1 - .75 + .75 * 1 / 4), saturated with k1 = 1.2; no other term in the query.
    frequency = 3 / 0.4375
    assert index.shares("weather")[0] == pytest.approx(frequency / (1.2 + frequency), abs=1e-6)
    # An unknown word weighs 0.3 of the only idf there is.
    assert index.shares("weather zebra")[0] == pytest.approx(frequency / (1.2 + frequency) / 1.3, abs=1e-6)


def test_a_lexical_score_over_all_fields_has_the_value_worked_out_by_hand() -> None:
    """One word in each field; weights, lengths and k1 as literals, so that a changed constant is seen."""
    schema = {"type": "object", "properties": {"rain": {"description": "rain"}}}
    fields = text_fields(Tool("rain", "rain", schema, namespace="rain"))

    def share(weight: float, usual: float) -> float:
        return weight / (0.25 + 0.75 * 1 / usual)

    frequency = share(3, 4) + share(2, 2) + share(1, 16) + share(0.5, 8) + share(0.3, 24)
    expected = frequency / (1.2 + frequency)
    assert LexicalIndex([Document(fields)]).shares("rain")[0] == pytest.approx(expected, abs=1e-6)


def test_rows_that_tie_only_when_rounded_keep_row_order_where_the_cut_falls() -> None:
    """FAISS finds the last ones nearest, by less than the sixth decimal; the first ones are the answer."""
    rows = 400
    vectors = np.zeros((rows, 2), np.float64)
    vectors[:, 0] = 0.5 + np.arange(rows) * 1e-10
    vectors[:, 1] = np.sqrt(1 - vectors[:, 0] ** 2)
    fields = text_fields(Tool("a"))
    index = SemanticIndex(2, [Document(fields, vector.astype(np.float32)) for vector in vectors])
    assert index.search(Query("", np.array([1, 0], np.float32)), 3).rows.tolist() == [0, 1, 2]


def test_a_catalogue_that_changes_for_long_does_not_remember_every_word() -> None:
    index = LexicalIndex()
    for i in range(50):
        index = index.with_added([Document(text_fields(Tool(f"tool{i}x", f"word{i}y only")))])
        index = index.without([0]) if len(index) > 1 else index
    assert len(index._vocabulary) < 12


def test_a_lexical_weight_does_not_change_when_another_tool_is_added() -> None:
    one = Document(text_fields(Tool("weather", "forecast for a city")))
    other = Document(text_fields(Tool("refund", "give the money back " * 50)))
    alone = LexicalIndex([one]).shares("weather")[0]
    assert LexicalIndex([one, other]).shares("weather")[0] == alone


def test_lexical_scores_stay_below_1_however_often_a_word_is_repeated() -> None:
    index = LexicalIndex([Document(text_fields(Tool("weather", "weather " * 400)))])
    assert 0.9 < index.shares("weather weather weather")[0] < 1


def test_words_of_a_query_that_a_row_has_are_named_as_typed() -> None:
    index = LexicalIndex([Document(text_fields(Tool("list_issues", "Issues of a GitHub repository")))])
    assert index.matched_words(query_words("Which github Issue is open?"), 0) == ("github", "Issue")


def test_a_row_without_a_vector_direction_is_never_found_by_meaning() -> None:
    fields = text_fields(Tool("a"))
    index = SemanticIndex(2, [Document(fields, np.zeros(2, np.float32)), Document(fields, np.array([0, 1], "f4"))])
    assert index.search(Query("", np.array([0, 1], "f4")), 5).rows.tolist() == [1]


def test_an_index_of_meaning_wants_vectors() -> None:
    with pytest.raises(ValueError, match="vectors"):
        SemanticIndex(2, [Document(text_fields(Tool("a")))])


def test_halves_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="not 1 and 0"):
        HybridIndex(SemanticIndex(DIMENSION, [document([0], 0)]), LexicalIndex())


def test_best_rows_cut_ties_by_position() -> None:
    assert best_rows(np.array([0.5, 0.0, 0.9, 0.5, 0.5]), 3).tolist() == [2, 0, 3]
    assert best_rows(np.array([0.0, 0.0]), 1).tolist() == []


@pytest.mark.parametrize(("precision", "error"), [("float16", 0.001), ("int8", 0.01)])
def test_less_precise_vectors_rank_by_their_own_cosines(precision: Precision, error: float) -> None:
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(300, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    documents = [Document(text_fields(Tool(f"t{i}")), row) for i, row in enumerate(rows)]
    exact = SemanticIndex(64, documents)
    rounded = SemanticIndex(64, documents, precision=precision)
    assert np.abs(rounded.vectors - exact.vectors).max() <= error
    for query in rows[:20] + chance.normal(size=(20, 64)).astype(np.float32) * 0.1:
        asked = Query("", query / np.linalg.norm(query))
        best = rounded.search(asked, 10)
        assert asked.vector is not None
        expected = np.minimum(rounded.vectors.astype(np.float64) @ asked.vector.astype(np.float64), 1.0)
        np.testing.assert_allclose(best.cosines, np.sort(expected)[::-1][:10], atol=1e-6)
        np.testing.assert_allclose(best.cosines, exact.cosines(asked.vector, best.rows), atol=error)
    grown = rounded.without([0, 5]).with_added(documents[:1])
    assert len(grown) == 299
    np.testing.assert_array_equal(grown.vectors[-1], rounded.vectors[0])
    np.testing.assert_array_equal(grown.vectors[0], rounded.vectors[1])
