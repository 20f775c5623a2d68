"""Every method answers from a store of the contract alone as from one in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spark_parts import EDGES, NODES
from third_party_store import ThirdPartyStore

from graphret.ark import Ark, ArkSettings, ScriptedExplorer
from graphret.contracts import implements
from graphret.expansion import Expand
from graphret.graphraft import CandidateFinder, Entity, GraphRAFT, GraphRAFTSettings
from graphret.graphs.transfer import copy, relation_counts
from graphret.grasp import Grasp
from graphret.planning import PathPlanner, PathSpace
from graphret.retriever import Retriever
from graphret.search import BM25Index, FieldIndex
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.testing.graphs import all_edges, all_nodes

MEMORY = MemoryStore.of(NODES, EDGES)
THIRD_PARTY = ThirdPartyStore(NODES, EDGES)
BM25 = BM25Index.of_store(MEMORY)
QUESTIONS = [
    "papers that Ada Ames wrote",
    "which field are the papers of Ada Ames about",
    "who wrote papers about graph retrieval",
    "papers that cite Graph Retrieval 0",
    "Bo Björk and CX",
    "nothing known",
]
Make = Callable[[GraphStore, TextIndex], Retriever]
METHODS: dict[str, Make] = {
    # one agent: which of several is asked to stop depends on their speed
    "ark": lambda store, index: Ark(
        ScriptedExplorer(), store, index, settings=ArkSettings(n_agents=1)
    ),
    "expand": lambda store, index: Expand(None, store, index),
    "grasp": lambda store, index: Grasp(PathPlanner(store, index), store, index),
    "graphraft": lambda store, index: GraphRAFT(
        store, index, planner=PathPlanner(store, index)
    ),
}


def answers(make: Make, store: GraphStore, index: TextIndex) -> list[Any]:
    retriever = make(store, index)
    found = [retriever.retrieve(question, 6) for question in QUESTIONS]
    assert not any(retrieval.trace.fallbacks for retrieval in found[:4])
    return [[hit.to_dict() for hit in retrieval.hits] for retrieval in found]


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
def test_a_method_gives_the_same_answers(make: Make) -> None:
    assert answers(make, THIRD_PARTY, BM25) == answers(make, MEMORY, BM25)
    where = {"$or": [{"year": {"$lt": 2014}}, {"label": {"$in": ["Author", "Field"]}}]}
    index = BM25.view(where)
    views = [store.view(where) for store in (THIRD_PARTY, MEMORY)]
    assert answers(make, views[0], index) == answers(make, views[1], index)


def test_an_index_of_fields_and_a_linker_work_beside_it() -> None:
    index = FieldIndex.of_store(THIRD_PARTY)
    found = Grasp(None, THIRD_PARTY, index).retrieve(QUESTIONS[0], 3)
    assert set(found.ids) == {"p0", "p3", "p6"}


@pytest.mark.parametrize("hub", [1, 2, 200])
def test_the_candidates_of_queries_are_the_same(hub: int) -> None:
    entities = [
        Entity("Ada Ames", {"a0": 1.0}, ("Author",), (0, 5)),
        Entity("Graph Retrieval", {"f0": 1.0}, ("Field",), (10, 15)),
    ]
    space = PathSpace(MEMORY.schema().relations)
    found = [
        CandidateFinder(store, space, GraphRAFTSettings(hub=hub)).find(entities, {"p3"})
        for store in (THIRD_PARTY, MEMORY)
    ]
    assert found[0] == found[1] != []


def test_it_is_copied_and_counted() -> None:
    assert implements(THIRD_PARTY, GraphStore)
    assert THIRD_PARTY.local_graph() is None
    assert relation_counts(THIRD_PARTY) == relation_counts(MEMORY)
    target = ThirdPartyStore()
    copy(MEMORY, target)
    assert all_nodes(target) == all_nodes(THIRD_PARTY)
    assert all_edges(target) == all_edges(THIRD_PARTY)
