"""What fulfils a contract."""

from __future__ import annotations

from typing import Any

from graphret import BM25Index, MemoryStore, Node
from graphret.ark import Toolbox
from graphret.contracts import fulfils
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
