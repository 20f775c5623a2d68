"""Questions about properties become conditions, orders and absences of a plan."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphret.grasp import Grasp
from graphret.planning import PathPlanner, find_matches
from graphret.planning.quantities import quantities
from graphret.search.bm25 import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node
from langchain_graphret import as_langchain_retriever
from llama_index_graphret import as_llama_index_retriever


def film(name: str, released: int, rating: float, genre: str, restored: bool) -> Node:
    told = {"released": released, "rating": rating, "genre": genre}
    return Node(name, ("Film",), name, properties=told | {"restored": restored})


NODES = [
    film("Dawn", 1998, 6.1, "drama", False),
    film("Dusk", 2001, 8.4, "thriller", True),
    film("Ember", 2007, 7.7, "science fiction", False),
    film("Fjord", 2015, 5.0, "drama", True),
    Node("Ann Ames", ("Director",), "Ann Ames", properties={"born": "1950-04-02"}),
    Node("Bo Berg", ("Director",), "Bo Berg", properties={"born": "1971-11-30"}),
    Node(
        "Cy Cole",
        ("Director",),
        "Cy Cole",
        properties={"born": "1962-01-09", "retired": "2020-05-01"},
    ),
]
EDGES = [
    Edge("Ann Ames", "DIRECTED", "Dawn"),
    Edge("Ann Ames", "DIRECTED", "Dusk"),
    Edge("Ann Ames", "DIRECTED", "Ember"),
    Edge("Bo Berg", "DIRECTED", "Fjord"),
    Edge("Bo Berg", "DIRECTED", "Ember"),
]
QUESTIONS = {
    "films released after 2005": ["Ember", "Fjord"],
    "Which films were released between 1998 and 2001?": ["Dawn", "Dusk"],
    "films of the 1990s": ["Dawn"],
    "Which films have a rating of at least 7.7?": ["Dusk", "Ember"],
    "Which films are rated lower than 6?": ["Fjord"],
    "restored dramas among the films with drama as genre": ["Fjord"],
    "Which science fiction films are not restored?": ["Ember"],
    "Which film has the highest rating?": ["Dusk"],
    "the two oldest films": ["Dawn", "Dusk"],
    "Which films by Ann Ames came out before 2000?": ["Dawn"],
    "What is the latest film of Ann Ames?": ["Ember"],
    "Who is the youngest director?": ["Bo Berg"],
    "Which directors were born after 3 May 1960?": ["Bo Berg", "Cy Cole"],
    "Which director directed the most films?": ["Ann Ames"],
    "Which director never directed a film?": ["Cy Cole"],
    "Which directors have no films since 2007?": ["Cy Cole"],
    "Which directors did not direct Dusk?": ["Bo Berg", "Cy Cole"],
    "Which directors are not retired?": ["Ann Ames", "Bo Berg"],
    "Which directors made restored films?": ["Ann Ames", "Bo Berg"],
}
FILMS = MemoryStore.of(NODES, EDGES)


@pytest.fixture(scope="module", params=["memory", "ladybug"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GraphStore]:
    if request.param == "memory":
        yield FILMS
        return
    with LadybugStore(tmp_path_factory.mktemp("stated") / "g.lbug") as database:
        database.upsert(NODES, EDGES)
        yield database


def test_what_is_stated_is_heeded(store: GraphStore) -> None:
    planner = PathPlanner(store, BM25Index.of_store(FILMS))
    found = {}
    for question in QUESTIONS:
        planned = planner.plan(question)
        assert planned.plan is not None, (question, planned.problem)
        planned.plan.checked(store.schema())
        matches = find_matches(planned.plan, store, planned.bindings)
        found[question] = [match.id for match in matches]
        assert planned.doubts == ()
        assert planned.confidence is not None
        assert planned.confidence > 0.5, question
    assert found == QUESTIONS


@pytest.mark.parametrize(
    ("question", "doubt"),
    [
        ("How many films did Ann Ames direct?", "“How many” asks for a number"),
        ("What is the average rating of the films?", "“average” asks for a number"),
        ("Which films cost over 500 euros?", "no property is known that “over 500”"),
        ("Which film is the most popular?", "no order is known that “most”"),
        ("Which films came out last week?", "“last week” depends on the day"),
        ("Which films were released after 2031?", "no node satisfies the conditions"),
    ],
)
def test_what_nothing_answers_comes_with_a_sign(question: str, doubt: str) -> None:
    grasp = Grasp(None, FILMS, BM25Index.of_store(FILMS))
    found = grasp.retrieve(question, 3)
    assert found.hits
    assert doubt in " ".join(found.signals.doubts or ())
    assert found.signals.confidence is not None
    assert found.signals.confidence <= 0.25
    assert doubt in str(found.trace.to_dict())
    documents = as_langchain_retriever(grasp, k=3).invoke(question)
    assert all(one.metadata["graphret"]["relevance"] <= 0.25 for one in documents)
    nodes = as_llama_index_retriever(grasp, k=3).retrieve(question)
    assert all((one.score or 0.0) <= 0.25 for one in nodes)


def test_words_that_no_property_knows_make_an_answer_doubtful() -> None:
    grasp = Grasp(None, FILMS, BM25Index.of_store(FILMS))
    sure = grasp.retrieve("Which films did Ann Ames direct?", 3)
    unsure = grasp.retrieve("Which films did Ann Ames dub into Catalan herself?", 3)
    assert sure.signals.confidence == 1.0
    assert (unsure.signals.confidence or 0.0) <= 0.6
    assert sure.signals.doubts is None


@pytest.mark.parametrize(
    ("text", "number", "period"),
    [
        ("12,500.50", 12500.5, None),
        ("$3k", 3000, None),
        ("seven", 7, None),
        ("2019", 2019, ("2019-01-01", "2020-01-01")),
        ("2019-05-04", None, ("2019-05-04", "2019-05-05")),
        ("4th of May 2019", None, ("2019-05-04", "2019-05-05")),
        ("Dec 31, 2019", None, ("2019-12-31", "2020-01-01")),
        ("December 2019", None, ("2019-12-01", "2020-01-01")),
        ("Q4 2019", None, ("2019-10-01", "2020-01-01")),
        ("1990s", None, ("1990-01-01", "2000-01-01")),
    ],
)
def test_numbers_and_dates_are_read(
    text: str, number: float | None, period: tuple[str, str] | None
) -> None:
    (found,) = quantities(f"those of {text} that matter")
    assert (found.number, found.period) == (number, period)
