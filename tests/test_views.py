"""Where a store and an index are asked together, both show the same part of a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests_support import HashingEncoder

from graphret import Edge, InvalidInput, MemoryStore, Node
from graphret.ark import Ark, ScriptedExplorer, Toolbox
from graphret.contracts import require_same_view, restriction_of
from graphret.expansion import Expand
from graphret.linking import Linker
from graphret.retriever import IndexRetriever
from graphret.search import BM25Index, DenseIndex, FieldIndex, HybridIndex, NodeText
from graphret.stores import LadybugStore
from graphret.where import Where

PUBLIC = {"team": "open", "year": {"$gte": 1990, "$lt": 2000}}
NODES = [
    *(Node(f"p{i}", ("P",), f"public {w}", f"about {w}", {"team": "open", "year": 1995}) for i, w in enumerate("abc")),
    *(Node(f"s{i}", ("S",), f"secret {w}", f"hidden {w}", {"team": "hr", "year": 1995}) for i, w in enumerate("abc")),
]
EDGES = [Edge("p0", "R", "s0"), Edge("s0", "R", "p1"), Edge("p0", "R", "p2"), Edge("s1", "Q", "p0")]


def _of(path: str, *first: Any) -> Callable[[Any, Any], object]:
    """Make what is called so, of a package that may not be installed, with a store and an index."""
    package, _, name = path.rpartition(".")
    return lambda store, index: getattr(pytest.importorskip(package), name)(*first, store, index)


TAKES_BOTH: dict[str, Callable[[Any, Any], object]] = {
    "Expand": lambda store, index: Expand(None, store, index),
    "Expand from others": lambda store, index: Expand(IndexRetriever(index), store, index),
    "IndexRetriever": lambda store, index: IndexRetriever(index, store),
    "Toolbox": Toolbox,
    "Ark": _of("graphret.ark.Ark", ScriptedExplorer()),
    "create_ark_graph": _of("langchain_graphret.create_ark_graph", ScriptedExplorer()),
    "create_ark_agent": _of("langchain_graphret.create_ark_agent", ScriptedExplorer()),
    "LangChain's ark_tools": _of("langchain_graphret.ark_tools"),
    "LlamaIndex's ArkRetriever": _of("llama_index_graphret.ArkRetriever", ScriptedExplorer()),
    "LlamaIndex's ark_tools": _of("llama_index_graphret.ark_tools"),
}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


@pytest.mark.parametrize("method", TAKES_BOTH)
def test_a_view_of_one_alone_is_refused(store: MemoryStore, method: str) -> None:
    make, index = TAKES_BOTH[method], BM25Index.of_store(store)
    with pytest.raises(InvalidInput, match=r"one condition, not a view of .* and no view"):
        make(store.view(PUBLIC), index)
    with pytest.raises(InvalidInput, match="not no view and a view of"):
        make(store, index.view(PUBLIC))
    with pytest.raises(InvalidInput, match="one condition"):
        make(store.view(PUBLIC), index.view({"team": "hr"}))
    assert make(store.view(PUBLIC), index.view(dict(reversed(PUBLIC.items())))) is not None
    assert make(store, index) is not None


def test_a_view_leaks_nothing_to_fill_free_places(store: MemoryStore) -> None:
    index = BM25Index.of_store(store)
    for retriever in (
        Expand(None, store.view(PUBLIC), index.view(PUBLIC)),
        Ark(ScriptedExplorer(), store.view(PUBLIC), index.view(PUBLIC)),
    ):
        assert set(retriever.retrieve("secret a hidden", k=6).ids) == {"p0", "p1", "p2"}


TEXT = NodeText.documents(neighbors=3)
INDEXES: dict[str, Callable[[MemoryStore], Any]] = {
    "bm25": lambda store: BM25Index.of_store(store, text=TEXT),
    "dense": lambda store: DenseIndex.of_store(store, HashingEncoder()),
    "hybrid": lambda store: HybridIndex(BM25Index.of_store(store, text=TEXT)),
    "fields": FieldIndex.of_store,
    "linker": Linker.of_store,
}


@pytest.mark.parametrize("kind", INDEXES)
def test_every_index_keeps_the_condition_of_its_view(store: MemoryStore, kind: str) -> None:
    whole, condition = INDEXES[kind](store), Where.parse(PUBLIC)
    assert restriction_of(whole) is None
    assert restriction_of(whole.view(PUBLIC)) == condition
    assert restriction_of(INDEXES[kind](store.view(PUBLIC))) == condition, "an index of a view's nodes is a view"
    assert restriction_of(whole.view(None)) is None
    view = whole.view(PUBLIC)
    view.upsert([Node("p9", ("P",), "one more", "", {"team": "open", "year": 1991})])
    view.delete(["p0"])
    assert restriction_of(view) == condition
    require_same_view(store.view({"team": "open"}).view({"year": 1995}), whole.view({"year": 1995, "team": "open"}))


@pytest.mark.neo4j
def test_every_store_keeps_the_condition_of_its_view(store: MemoryStore, tmp_path: Path, neo4j_module: Any) -> None:
    from llama_index.core.graph_stores import SimplePropertyGraphStore

    from graphret.search import Neo4jTextIndex
    from graphret.stores import Neo4jStore
    from llama_index_graphret import from_property_graph_store

    condition = Where.parse(PUBLIC)
    with LadybugStore(tmp_path / "db.lbug") as embedded:
        server = Neo4jStore.from_driver(neo4j_module)
        theirs = from_property_graph_store(SimplePropertyGraphStore())
        for one in (store, embedded, server, Neo4jTextIndex(server), theirs):
            assert restriction_of(one) is None
            assert restriction_of(one.view(PUBLIC)) == condition
            assert restriction_of(one.view({"team": "open"}).view({"team": "open"})) is not None


def test_no_view_of_an_index_follows_a_store(store: MemoryStore, tmp_path: Path) -> None:
    index = BM25Index.of_store(store).view(PUBLIC)
    for one in (store, LadybugStore(tmp_path / "db.lbug")):
        with pytest.raises(InvalidInput, match="a view has no writes"):
            one.attach(index)
