"""Labels and relations that no two tables of a Ladybug database can have by name: all are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphret.cypher import check, kinds, run_checked
from graphret.errors import InvalidInput, QueryRefused
from graphret.schema import GraphSchema
from graphret.stores.ladybug import LadybugStore
from graphret.testing.graphs import all_edges, all_nodes, edge_key
from graphret.types import Edge, Node

#: A relation named like a label but for its case, or exactly; labels and relations that differ by case; dots.
NODES = [
    Node("f", ("Film",), "Alien", "", {"year": 1979}),
    Node("g", ("film", "Film"), "other"),
    Node("p", ("Director", "film.person"), "Scott", "", {"born": 1937}),
    Node("q", ("film.person",), "Someone", "", {"born": 1}),
    Node("u", (), "none"),
    Node("v", ("_unlabelled",), "named like the table of those without"),
]
EDGES = [
    Edge("f", "director", "p", 0.5, {"since": 1977}),
    Edge("f", "DIRECTOR", "q"),
    Edge("p", "Film", "f"),
    Edge("p", "film.film.directed_by", "f", 1.0, {"source_row": 1}),
    Edge("p", "film_film_directed_by", "f"),
    Edge("u", "_unlabelled", "v"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path / "g.lbug") as store:
        for item in (*NODES, *EDGES):  # one by one
            store.upsert(*([item], []) if isinstance(item, Node) else ([], [item]))
    with LadybugStore(tmp_path / "g.lbug") as store:  # what tables are of is read again
        yield store


def test_a_graph_is_kept_whatever_its_names(store: LadybugStore) -> None:
    assert all_nodes(store) == NODES
    assert all_edges(store) == sorted(EDGES, key=edge_key)
    for edge in EDGES:
        assert all_edges(store, relations=[edge.relation]) == [edge]
        assert store.neighbors([edge.source], relations=[edge.relation], direction="out", limit=1) == [edge]
    for label, ids in {"Film": ["f", "g"], "film": ["g"], "film.person": ["p", "q"], "_unlabelled": ["v"]}.items():
        assert [node.id for node in all_nodes(store, labels=[label])] == ids
        assert [node.id for node in all_nodes(store, where={"label": label})] == ids
    view = store.view({"label": {"$in": ["Film", "Director"]}})
    assert view.count() == (3, 4)
    schema = view.schema()
    assert schema.labels == {"Film": 2, "film": 1, "Director": 1, "film.person": 1}
    assert schema.cypher_labels == {"film": "film_", "film.person": "film_person"}  # and nothing of what is hidden
    assert schema.cypher_relations.keys() == {"director", "Film", "film.film.directed_by", "film_film_directed_by"}


def test_the_schema_says_what_queries_call_otherwise(store: LadybugStore) -> None:
    own = store.schema()
    assert GraphSchema.from_dict(json.loads(json.dumps(own.to_dict()))) == own
    assert own.cypher_labels == {"film": "film_", "film.person": "film_person", "_unlabelled": "_unlabelled_"}
    found = [store.query(f"MATCH ()-[r:`{name}`]->() RETURN r").rows[0][0] for name in own.in_cypher().relation_names]
    assert sorted(found, key=edge_key) == sorted(EDGES, key=edge_key)
    relation = own.cypher_relations["director"]
    query = f"MATCH (f:Film)-[r:{relation}]->(d:Director) RETURN f, r, d LIMIT 3"
    assert run_checked(store, query, schema=own).rows == [(NODES[0], EDGES[0], NODES[2])]
    unknown = "MATCH (f:Film)-[:director]->(d:Director) RETURN f LIMIT 3"
    (error,) = check(unknown, own, dialect="ladybug").errors
    assert (error.kind, relation in error.suggestions) == (kinds.UNKNOWN_RELATION, True)
    with pytest.raises(QueryRefused):
        store.query(unknown)


@pytest.mark.parametrize("name", ["nul\0l", "\ud800"], ids=ascii)
def test_names_that_cannot_be_are_refused(name: str) -> None:
    with LadybugStore(":memory:") as store, pytest.raises(InvalidInput, match="'b'"):
        store.upsert([Node("b", (name,))])
