"""The queries that exist around entities: the same on every engine, each with what its
plan finds, and as text.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_parts import EDGES, NODES

from graphret.errors import InvalidInput, QueryTimeout
from graphret.graphraft import (
    CandidateFinder,
    Entity,
    GraphRAFTSettings,
    PathWriter,
    QueryWriter,
)
from graphret.graphraft.entities import entities_of
from graphret.linking import Linker
from graphret.planning import PathPlanner, PathSpace, find_matches
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Edge, Node

ADA, FIELD, PAPER = (
    Entity("Ada Ames", {"a0": 1.0}, ("Author",), (0, 5)),
    Entity("Graph Retrieval", {"f0": 1.0}, ("Field",), (10, 15)),
    Entity("Graph Retrieval 1", {"p3": 1.0}, ("Paper",), (20, 25)),
)
STORE = MemoryStore.of(NODES, EDGES)


def finder(store: GraphStore, **settings: Any) -> CandidateFinder:
    return CandidateFinder(
        store, PathSpace(store.schema().relations), GraphRAFTSettings(**settings)
    )


def sizes(
    store: GraphStore, entities: list[Entity], run: bool = True, **settings: Any
) -> dict[str, tuple[int, int | None]]:
    """The candidates by their text, each found to be what its plan finds when it is
    run.
    """
    candidates = finder(store, **settings).find(entities, {"p3", "p6"})
    assert len({candidate.text for candidate in candidates}) == len(candidates)
    for candidate in candidates if run else ():
        ids = {
            match.id
            for match in find_matches(candidate.plan, store, candidate.bindings)
        }
        assert (len(ids), len(ids & {"p3", "p6"})) == (
            candidate.size,
            candidate.hits,
        ), candidate.text
    return {
        candidate.text: (candidate.size, candidate.hits) for candidate in candidates
    }


def test_candidates_are_the_papers_templates_with_hits_and_sizes() -> None:
    sizes_by_text = sizes(STORE, [ADA, FIELD])
    assert sizes_by_text['(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)'] == (3, 2)
    assert sizes_by_text[
        '(a1:Author {name: "Ada Ames"})-[:WROTE]-(x1_1:Paper)<-[:CITES]-(T:Paper)'
    ] == (2, 0)
    met = (
        '(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)-[:ABOUT]-(a2:Field {name:'
        ' "Graph Retrieval"})'
    )
    assert sizes_by_text[met] == (3, 2)
    assert any("x1_2" in text for text in sizes_by_text)
    three = [
        Entity("CX", {"f1": 1.0}, ("Field",), (30, 31)),
        Entity("Bo Björk", {"a1": 1.0}, ("Author",), (40, 41)),
    ]
    cited = Entity("Graph Retrieval 0", {"p0": 1.0}, ("Paper",), (50, 51))
    text = next(text for text in sizes(STORE, [*three, cited]) if "a3" in text)
    assert text.endswith(', (T)-[:CITES]->(a3:Paper {name: "Graph Retrieval 0"})')


def test_a_database_has_the_same_candidates_and_counts(database: Any) -> None:
    database.upsert(NODES, EDGES)
    for entities, settings in (
        ([ADA, FIELD], {}),
        ([FIELD, PAPER, ADA], {"hub": 2}),
        ([PAPER, ADA], {"targets": ("Field",)}),
        ([FIELD, PAPER], {"templates": ((2,), (2, 2))}),
    ):
        # That plans find the same in a database is shown by tests of their own.
        counted = sizes(database, entities, False, **settings)
        assert counted == sizes(STORE, entities, **settings)
        assert counted


LABELS, IDS = [("A",), ("B",), ("A", "B"), ()], [f"n{i}" for i in range(7)]
GRAPH = [Node(node_id, LABELS[i % 4], node_id) for i, node_id in enumerate(IDS)]


@given(
    st.sets(
        st.tuples(st.sampled_from(IDS), st.sampled_from("RS"), st.sampled_from(IDS)),
        max_size=14,
    ),
    st.lists(
        st.sets(st.sampled_from(IDS), min_size=1, max_size=2), min_size=1, max_size=3
    ),
    st.integers(1, 4),
)
def test_counts_are_what_plans_find_with_any_labels_loops_and_hubs(
    triples: set[tuple[str, str, str]], named: list[set[str]], hub: int
) -> None:
    store = MemoryStore.of(GRAPH, [Edge(*triple) for triple in triples])
    entities = [
        Entity(f"e{i}", dict.fromkeys(sorted(ids), 1.0), labels_of(store, ids), (i, i))
        for i, ids in enumerate(named)
    ]
    for candidate in finder(store, hub=hub).find(entities):
        assert (
            len(find_matches(candidate.plan, store, candidate.bindings))
            == candidate.size
            > 0
        ), candidate.text


def labels_of(store: MemoryStore, ids: set[str]) -> tuple[str, ...]:
    nodes = [node for node in store.get(sorted(ids)) if node is not None]
    return tuple(sorted({label for node in nodes for label in node.labels or ("",)}))


NAMES = [
    'the "best" of',
    "a\\b",
    "two\nlines",
    "{name: 'x'}",
    '"}) DETACH DELETE n //',
    "x" * 10_000,
    "MATCH (n) RETURN n",
    "\u2028\u202e",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_string_of_json_in_a_pattern_and_never_in_a_query(
    name: str,
) -> None:
    nodes = [
        Node("x", ("Paper",), name),
        Node("y", ("Paper",), name),
        Node("z", ("Author",), "Z"),
    ]
    store = MemoryStore.of(nodes, [Edge("z", "WROTE", "x"), Edge("z", "WROTE", "y")])
    entities = entities_of(
        store, [((0, 4), {"x": 1.0, "y": 1.0})]
    )  # two nodes of one name are one entity
    (candidate,) = finder(store).find(entities)
    assert (candidate.size, candidate.bindings) == (1, {"a1": {"x": 1.0, "y": 1.0}})
    before, quoted, behind = candidate.text.partition(
        json.dumps(entities[0].name, ensure_ascii=False)
    )
    assert (before, behind) == ("(a1:Paper {name: ", "})-[:WROTE]-(T:Author)")
    assert len(quoted) < 250
    assert candidate.query == f"MATCH {candidate.text} RETURN T.name AS name"


def test_labels_and_relations_are_quoted_where_they_must_be() -> None:
    nodes = [Node("x", ("My `label`",), "X"), Node("y", (), "Y")]
    (candidate,) = finder(
        MemoryStore.of(nodes, [Edge("x", "GOES TO", "y")]), templates=((1,),)
    ).find([Entity("X", {"x": 1.0}, ("My `label`",), (0, 1))])
    assert candidate.text == '(a1:`My ``label``` {name: "X"})-[:`GOES TO`]-(T)'


def test_candidates_are_capped_by_count_by_size_and_by_hubs() -> None:
    spokes = [Node(f"s{i}", ("Spoke",), f"s{i}") for i in range(400)]
    wheel = MemoryStore.of(
        [Node("hub", ("Hub",), "hub"), Node("end", ("End",), "end"), *spokes],
        [
            *(Edge("hub", "HAS", one.id) for one in spokes),
            *(Edge(one.id, "TO", "end") for one in spokes),
        ],
    )
    short = {"templates": ((1,), (2,))}
    hub = [Entity("hub", {"hub": 1.0}, ("Hub",), (0, 3))]
    assert [one.size for one in finder(wheel).find(hub)] == [
        400
    ]  # and it is not followed to the end
    assert [one.size for one in finder(wheel, hub=400, **short).find(hub)] == [400, 1]
    assert finder(wheel, results=399).find(hub) == []
    assert [one.size for one in finder(wheel, hub=400, most=1, **short).find(hub)] == [
        400
    ]
    assert (
        finder(wheel).find([])
        == finder(wheel).find([Entity("gone", {"gone": 1.0}, ("Hub",), (0, 1))])
        == []
    )
    for bad in ({"templates": ((4,),)}, {"templates": ()}):
        with pytest.raises(InvalidInput):
            GraphRAFTSettings(**bad)


def test_a_database_that_is_too_slow_for_a_template_leaves_out_that_template(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.upsert(NODES, EDGES)
    database_finder, query = finder(database), type(database).query

    def slow(self: Any, cypher: str, *arguments: Any, **limits: Any) -> Any:
        if "k2" in cypher or "x1_2" in cypher:
            raise QueryTimeout("the query took longer than 30 s")
        return query(self, cypher, *arguments, **limits)

    monkeypatch.setattr(type(database), "query", slow)
    trace = Trace()
    texts = {
        candidate.text for candidate in database_finder.find([ADA, FIELD], trace=trace)
    }
    assert texts == {
        candidate.text
        for candidate in finder(STORE, templates=((1,), (2,))).find([ADA, FIELD])
    }
    assert {stage.details["error"] for stage in trace.fallbacks} == {
        "QueryTimeout: the query took longer than 30 s"
    }


def test_without_a_model_paths_are_ranked_by_the_words_of_the_question() -> None:
    planner = PathPlanner(STORE, Linker.of_store(STORE))
    writer = PathWriter(planner.space)
    assert isinstance(writer, QueryWriter)
    candidates = finder(STORE).find([ADA, FIELD])
    for question, best in {
        "Which papers did Ada Ames write?": (
            '(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)'
        ),
        "Which fields do the papers that Ada Ames wrote belong to?": (
            "-[:ABOUT]-(T:Field)"
        ),
        "Which papers did Ada Ames write about Graph Retrieval?": (
            '(a2:Field {name: "Graph Retrieval"})'
        ),
    }.items():
        ranked = writer.rank(question, candidates, 3)
        assert len(ranked) == 3
        assert best in candidates[ranked[0][0]].text, question
        assert ranked == sorted(ranked, key=lambda candidate: -candidate[1])
        assert sum(
            share for _, share in writer.rank(question, candidates, 1000)
        ) == pytest.approx(1)
    assert writer.rank("q", [], 3) == []
    assert writer.rank("q", candidates[:1], 3) == [(0, 1.0)]
