"""The neighbourhood by columns and through the contract of stores, which must be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ark_graphs import LABELS, RELATIONS, WORDS, OnlyContract, graphs, lines_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import HashingEncoder

from graphret.ark import Toolbox, neighborhood
from graphret.ark.neighborhood import explore
from graphret.search import BM25Index, DenseIndex, FieldIndex, TextIndex
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

Graph = tuple[list[Node], list[Edge]]

queries = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join))
filters = st.fixed_dictionaries(
    {
        "query": queries,
        "labels": st.one_of(st.none(), st.frozensets(st.sampled_from(LABELS), min_size=1)),
        "relations": st.one_of(
            st.none(), st.dictionaries(st.sampled_from(RELATIONS), st.sampled_from(["in", "out", "both"]), min_size=1)
        ),
        "k": st.integers(1, 15),
    }
)

INDEXES: dict[str, Callable[[MemoryStore], TextIndex]] = {
    "words": BM25Index.of_store,
    "half": lambda store: BM25Index.build([node for block in store.nodes() for node in block][::2]),
    "dense": lambda store: DenseIndex.of_store(store, HashingEncoder()),
    "hnsw": lambda store: DenseIndex.of_store(store, HashingEncoder(), hnsw_above=1),
    "fields": FieldIndex.of_store,
}


@given(graph=graphs(), asked=filters, index=st.sampled_from(sorted(INDEXES)), place=st.integers(0, 11))
@settings(max_examples=25)
def test_both_paths_agree_and_show_what_passes(graph: Graph, asked: dict[str, Any], index: str, place: int) -> None:
    nodes, edges = graph
    store = MemoryStore.of(nodes, edges)
    made, node = INDEXES[index](store), nodes[place % len(nodes)].id
    found = explore(store, made, node, **asked)
    assert found == explore(OnlyContract(store), made, node, **asked)

    kinds, labels, relations = {one.id: one.labels for one in nodes}, asked["labels"], asked["relations"]
    passing: dict[str, set[tuple[str, bool]]] = {}
    for edge in edges:
        for other, leaves in ((edge.target, True), (edge.source, False)):
            here = edge.source if leaves else edge.target
            fits = relations is None or relations.get(edge.relation) in ("both", "out" if leaves else "in")
            loop_again = edge.source == edge.target and not leaves
            if here == node and fits and not loop_again and (labels is None or labels & {*kinds[other]}):
                passing.setdefault(other, set()).add((edge.relation, leaves))
    assert found.total == len(passing)
    assert {one.id: set(via) for one, via in zip(found.nodes, found.via, strict=True)}.items() <= passing.items()
    assert len(found.nodes) == min(asked["k"], len(passing))


def hub(n: int) -> MemoryStore:
    """A hub with `n` neighbours, of which the lightest alone says "temple"."""
    kinds = ("even",), ("odd",)
    nodes = [Node(f"n{i:04}", kinds[i % 2], text="temple" if i == n - 1 else "") for i in range(n)]
    edges = [Edge("hub", "r" if i % 3 else "s", f"n{i:04}", float(n - i)) for i in range(n)]
    return MemoryStore.of([Node("hub"), *nodes], edges)


def test_beyond_the_cap_the_filters_are_left_to_the_store_and_the_best_matches_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighborhood, "CAP", 20)
    store = hub(100)
    index = BM25Index.of_store(store)
    found = explore(OnlyContract(store), index, "hub", labels=["odd"], relations={"s": "out"}, k=3)
    assert [one.id for one in found.nodes] == ["n0003", "n0009", "n0015"]
    assert (found.total, found.capped, found.partial, sum(found.counts.values())) == (17, True, False, 20)
    found = explore(OnlyContract(store), index, "hub", "temples", k=2)
    assert ([one.id for one in found.nodes], found.partial) == (["n0099", "n0000"], True)
    tools = Toolbox(OnlyContract(store), index)
    for arguments, of in (({}, "20+"), ({"query": "temple"}, "21+"), ({"relation_types": ["r"]}, "20+")):
        head = lines_of(tools.run("explore_neighborhood", {"node": "hub", **arguments}))[0]
        assert head["of"] == of
        assert all(n.endswith("+") for _, _, n in head["relations"])
