"""`link_similar`: similarity edges in a graph with relations of its own, the same however often they are written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphret.errors import InvalidInput, StoreError
from graphret.sage import SimilaritySettings, link_similar
from graphret.search import DenseIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.types import Edge, Node

LONG = "a text of some length " * 6
ANGLES = {"heat": 0.0, "ronin": 0.1, "alien": 1.5, "gravity": 1.55, "name": 0.05, "mann": 0.06}
NODES = [
    *(Node(film, ("Film",), film, LONG) for film in ("alien", "gravity", "heat", "ronin")),
    Node("mann", ("Person",), "Michael Mann", LONG),
    Node("name", ("Film",), "a film of which nothing is said"),
]
OWN = [Edge("heat", "DIRECTED_BY", "mann"), Edge("heat", "IS_SIMILAR", "gravity", 0.5, {"signals": "of a SageGraph"})]
ALL = SimilaritySettings(percentile=0, neighbors=1)


@pytest.fixture(params=["memory", "ladybug", "neo4j"])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_empty"))
    else:
        with LadybugStore(":memory:") as opened:
            yield opened


def index_of(nodes: list[Node], angles: dict[str, float] = ANGLES) -> DenseIndex:
    rows = [[np.cos(angles[node.id]), np.sin(angles[node.id])] for node in nodes]
    return DenseIndex.build(nodes, None, vectors=np.asarray(rows, dtype=np.float32))


def similar(store: GraphStore) -> dict[tuple[str, str], float]:
    edges = [edge for block in store.edges(relations=["IS_SIMILAR"]) for edge in block]
    return {(edge.source, edge.target): round(edge.weight, 3) for edge in edges if "cosine" in edge.properties}


def test_edges_are_written_beside_the_graphs_own_and_brought_up_to_date(store: GraphStore) -> None:
    store.upsert(NODES, OWN)
    films = {("heat", "ronin"): 0.995, ("alien", "gravity"): 0.999}
    for _ in range(2):
        assert link_similar(store, index_of(NODES), labels=["Film"], settings=ALL) == 2
        assert similar(store) == films
    link_similar(store, index_of(NODES), settings=ALL)  # the person too, whose text is as long
    assert similar(store) == {("alien", "gravity"): 0.999, ("heat", "mann"): 0.998, ("mann", "ronin"): 0.999}
    link_similar(store, index_of(NODES), min_characters=0, labels=["Film"], settings=ALL)
    assert set(similar(store)) == {("alien", "gravity"), ("heat", "name"), ("name", "ronin")}
    store.delete(["name"])
    kept = [node for node in NODES if node.id != "name"]
    link_similar(store, index_of(kept), min_characters=10_000)
    assert not similar(store)
    assert [node for block in store.nodes() for node in block] == sorted(kept, key=lambda node: node.id)
    edges = [edge for block in store.edges() for edge in block]
    assert sorted(edges, key=lambda edge: edge.relation) == OWN


def test_what_cannot_be_written_is_named() -> None:
    store = MemoryStore()
    store.upsert(NODES[:3])
    with pytest.raises(InvalidInput, match="'mann'"):
        link_similar(store, index_of(NODES), settings=ALL)
    with pytest.raises(InvalidInput, match="labels"):
        link_similar(store, index_of(NODES), labels="Film")
    with pytest.raises(StoreError, match="view"):
        link_similar(store.view({"labels": "Film"}), index_of(NODES[:3]), settings=ALL)
    assert not similar(store)
