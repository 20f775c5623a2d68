from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import NotAnIndex
from graphret.stores import MemoryStore
from graphret.testing.graphs import EDGES, NODES
from graphret.testing.stores import GraphStoreSuite
from graphret.types import Edge, Node


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


def test_saved_and_opened_it_is_the_same(store: MemoryStore, tmp_path: Path) -> None:
    store.save(tmp_path / "graph")
    opened = MemoryStore.load(tmp_path / "graph")
    assert list(opened.graph.nodes) == list(store.graph.nodes)
    assert opened.neighbors([n.id for n in NODES]) == store.neighbors([n.id for n in NODES])
    with pytest.raises(NotAnIndex, match="nowhere"):
        MemoryStore.load(tmp_path / "nowhere")


IDS = [f"n{i}" for i in range(6)]
GRAPHS = st.tuples(
    st.lists(st.sampled_from("ab"), min_size=6, max_size=6),
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from("RS"), st.sampled_from(IDS)), max_size=15),
)


@settings(max_examples=25, deadline=None)
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


class TestMemoryStore(GraphStoreSuite):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
