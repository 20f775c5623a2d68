"""What fulfils a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphret import BM25Index, Expand, MemoryStore, Node
from graphret.ark import Toolbox
from graphret.contracts import fulfils
from graphret.cypher import arun_checked, run_checked
from graphret.errors import InvalidInput
from graphret.graphs import copy, export_graph
from graphret.linking import Linker
from graphret.search import FieldIndex, NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore


class Wrapper:
    """Hands everything on."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_wrappers_of_stores_and_indexes_are_taken() -> None:
    nodes = [Node("a", name="Ann")]
    store, index = Wrapper(MemoryStore.of(nodes, [])), Wrapper(BM25Index.build(nodes))
    assert fulfils(store, GraphStore)
    assert fulfils(index, TextIndex)
    assert not fulfils(store, TextIndex)
    assert not fulfils(object(), GraphStore)
    assert Toolbox(store, index).run("global_search", {"query": "Ann"}).nodes == ("a",)


@pytest.mark.parametrize(
    "use",
    [
        lambda store, _: BM25Index.of_store(store),
        lambda store, _: Linker.of_store(store),
        lambda store, _: FieldIndex.of_store(store, {"name": NodeText.names()}),
        lambda store, _: Expand(None, store, BM25Index.build([Node("a")])),
        lambda store, _: copy(store, MemoryStore()),
        lambda store, _: copy(MemoryStore.of([Node("a")]), store),
        lambda store, folder: export_graph(store, folder / "out", "graphml"),
        lambda store, _: run_checked(store, "MATCH (n) RETURN n LIMIT 1"),
        lambda store, _: Toolbox(store, BM25Index.build([Node("a")])),
    ],
    ids="bm25 linker fields expand copy-from copy-to export run_checked tools".split(),
)
async def test_a_store_that_is_awaited_is_refused_where_none_can_be(use: Any, tmp_path: Path) -> None:
    pytest.importorskip("neo4j")
    from graphret.stores import AsyncNeo4jStore

    async with AsyncNeo4jStore("bolt://127.0.0.1:1") as store:  # no server is asked
        with pytest.raises(InvalidInput, match="AsyncNeo4jStore"):
            use(store, tmp_path)


async def test_a_store_that_is_not_awaited_is_refused_where_one_must_be() -> None:
    pytest.importorskip("neo4j")
    from graphret.stores import Neo4jStore

    with Neo4jStore("bolt://127.0.0.1:1") as store, pytest.raises(InvalidInput, match="run_checked"):
        await arun_checked(store, "MATCH (n) RETURN n LIMIT 1")  # type: ignore[arg-type]
