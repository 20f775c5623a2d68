from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.errors import CorruptIndex, InvalidInput, NotAnIndex
from graphret.stores import MemoryStore
from graphret.testing.graphs import CONDITIONS, random_graph
from graphret.testing.reading import expected_neighbors
from graphret.testing.stores import GraphStoreSuite
from graphret.types import Edge, Node

NODES = [
    Node("ada", ("Person", "Author"), "Ada Lovelace", properties={"born": 1815}),
    Node("babbage", ("Person",), "Charles Babbage", properties={"born": 1791}),
    Node("engine", ("Machine",), "Analytical Engine"),
    Node("notes", ("Text",), "Notes", "on the engine"),
]
EDGES = [
    Edge("ada", "WROTE", "notes", 1.0, {"year": 1843}),
    Edge("babbage", "DESIGNED", "engine", 2.0),
    Edge("notes", "ABOUT", "engine", 0.5, {"source_row": 3}),
    Edge("ada", "KNEW", "babbage"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


def triples(edges: list[Edge]) -> list[tuple[str, str, str]]:
    return [(e.source, e.relation, e.target) for e in edges]


def test_schema_counts_labels_and_triples(store: MemoryStore) -> None:
    schema = store.schema()
    assert schema.labels == {"Author": 1, "Machine": 1, "Person": 2, "Text": 1}
    assert schema.relations == {
        ("Author", "KNEW", "Person"): 1,
        ("Author", "WROTE", "Text"): 1,
        ("Person", "DESIGNED", "Machine"): 1,
        ("Person", "KNEW", "Person"): 1,
        ("Person", "WROTE", "Text"): 1,
        ("Text", "ABOUT", "Machine"): 1,
    }


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([], [Edge("ada", "WROTE", "nothing")], "no node 'nothing'"),
        ([], [Edge("ada", "WROTE", "notes", float("nan"))], "finite"),
        ([], [Edge("ada", "", "notes")], "relation"),
        ([Node("")], [], "non-empty"),
        ([NODES[0], NODES[0]], [], "'ada'"),
        ([Node("x", text=3)], [], "'x': the text"),  # type: ignore[arg-type]
        ([Node("x", "Label")], [], "'x': the labels"),  # type: ignore[arg-type]
        ([Node("x", properties={"a": object()})], [], "'x': the property 'a'"),
    ],
)
def test_what_cannot_be_stored_is_named_and_changes_nothing(
    store: MemoryStore, nodes: list[Node], edges: list[Edge], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        store.upsert(nodes, edges)
    assert store.count() == (4, 4)


@pytest.mark.parametrize("arguments", [{"direction": "up"}, {"limit": 0}, {"relations": "WROTE"}, {"labels": "Person"}])
def test_bad_arguments_are_refused(store: MemoryStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store.neighbors(["ada"], **arguments)


def test_saved_and_opened_it_is_the_same(store: MemoryStore, tmp_path: Path) -> None:
    store.save(tmp_path / "graph")
    opened = MemoryStore.load(tmp_path / "graph")
    assert list(opened.graph.nodes) == list(store.graph.nodes)
    assert opened.neighbors([n.id for n in NODES]) == store.neighbors([n.id for n in NODES])
    with pytest.raises(NotAnIndex, match="nowhere"):
        MemoryStore.load(tmp_path / "nowhere")
    file = max((tmp_path / "graph").glob("gen-*/*.npy"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CorruptIndex, match=file.name):
        MemoryStore.load(tmp_path / "graph")


IDS = [f"n{i}" for i in range(6)]
GRAPHS = st.tuples(
    st.lists(st.sampled_from("ab"), min_size=6, max_size=6),
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("RS"), st.sampled_from(IDS)), max_size=15),
)


@given(GRAPHS)
def test_a_view_is_the_induced_graph(graph: tuple[list[str], list[tuple[str, str, str]]]) -> None:
    tenants, edges = graph
    nodes = [Node(i, (t.upper(),), properties={"tenant": t}) for i, t in zip(IDS, tenants, strict=True)]
    view = MemoryStore.of(nodes, [Edge(*e) for e in edges]).view({"tenant": "a"})
    mine = {n.id for n in nodes if n.properties["tenant"] == "a"}
    alone = MemoryStore.of(
        [n for n in nodes if n.id in mine], [Edge(*e) for e in edges if e[0] in mine and e[2] in mine]
    )
    assert view.count() == alone.count()
    assert view.schema() == alone.schema()
    assert view.get(IDS) == alone.get(IDS)
    assert view.neighbors(IDS) == alone.neighbors(IDS)


@pytest.mark.parametrize("seed", range(3))
def test_neighbors_are_those_of_the_contract(seed: int) -> None:
    nodes, edges = random_graph(seed)
    store, rng = MemoryStore.of(nodes, edges), random.Random(seed)
    ids = [node.id for node in nodes] + ["nobody"]
    for _ in range(100):
        options: dict[str, Any] = {
            "relations": rng.choice([None, ["LIKES"], ["KNOWS", "LIKES"], ["NOTHING"]]),
            "labels": rng.choice([None, ["Person"], ["Person", "Film"], ["Nothing"]]),
            "where": rng.choice([None, None, *CONDITIONS]),
            "direction": rng.choice(["both", "out", "in"]),
            "limit": rng.choice([None, 1, 2]),
        }
        anchors = rng.choices(ids, k=rng.randint(0, len(ids)))
        assert store.neighbors(anchors, **options) == expected_neighbors(nodes, edges, anchors, **options), options


class TestMemoryStore(GraphStoreSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
