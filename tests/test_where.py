"""Conditions, and views of stores and indexes that show the same part of a graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import HashingEncoder

from graphret.ark import Ark, ScriptedExplorer, Toolbox
from graphret.contracts import require_same_view, restriction_of
from graphret.errors import InvalidInput
from graphret.expansion import Expand
from graphret.index_retriever import IndexRetriever
from graphret.linking import Linker
from graphret.nodes import NodeTable
from graphret.search import BM25Index, DenseIndex, FieldIndex, HybridIndex, NodeText
from graphret.stores import LadybugStore, MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where, both

NODE = Node(
    "n",
    ("Film", "Work"),
    "Solaris",
    "a film",
    {
        "year": 1972,
        "tags": ["sf", "slow"],
        "rating": 8.1,
        "seen": True,
        "none": None,
        "crew": {"director": "Tarkovsky"},
        "a": {"inner": 1},
        "b": [True],
        "c": [1, [2]],
        "d": [[True]],
    },
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"year": 1972}, True),
        ({"year": "1972"}, False),
        ({"seen": 1}, False),
        ({"year": {"$gte": 1970, "$lt": 1972}}, False),
        ({"year": {"$gt": 1970}, "rating": {"$lte": 8.1}}, True),
        ({"year": {"$gt": "1970"}}, False),
        ({"year": {"$in": [1971, 1972]}}, True),
        ({"year": {"$nin": [1972]}}, False),
        ({"missing": {"$nin": [1]}}, True),
        ({"missing": {"$ne": 1}}, True),
        ({"missing": 1}, False),
        ({"missing": {"$exists": False}}, True),
        ({"none": {"$exists": True}}, False),
        ({"none": None}, True),
        ({"tags": {"$contains": "sf"}}, True),
        ({"tags": ["sf", "slow"]}, True),
        ({"tags": "sf"}, False),
        ({"name": {"$contains": "lar"}}, True),
        ({"name": {"$icontains": "LAR"}}, True),
        ({"tags": {"$icontains": "SF"}}, False),
        ({"year": np.int64(1972), "rating": {"$lt": np.float32(9)}}, True),
        ({"year": {"$in": np.arange(1970, 1973)}, "seen": np.True_}, True),
        ({"label": "Work"}, True),
        ({"label": {"$nin": ["Film"]}}, False),
        ({"label": {"$ne": "Person"}}, True),
        ({"crew.director": "Tarkovsky"}, True),
        ({"crew.writer": "Lem"}, False),
        ({"id": "n", "text": {"$contains": "film"}}, True),
        ({"$or": [{"year": 1}, {"label": "Film"}]}, True),
        ({"$and": [{"year": 1}, {"label": "Film"}]}, False),
        ({"$not": {"year": 1}}, True),
        ({"a": {"$gt": 0}}, False),
        ({"a": {"$lte": "z"}}, False),
        ({"b": [1]}, False),
        ({"c": [1]}, False),
        ({"d": {"$contains": [1]}}, False),
    ],
)
def test_conditions(condition: dict[str, Any], expected: bool) -> None:
    where = Where.parse(condition)
    assert where is not None
    assert where.matches(NODE) is expected
    assert Where.parse(json.loads(json.dumps(where.to_dict()))) == where
    assert Where.parse(None) is Where.parse({}) is None


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"year": {"$near": 3}}, r"\$near"),
        ({"$xor": []}, r"\$xor"),
        ({"$or": []}, r"\$or"),
        ({"$and": [{}]}, r"\$and"),
        ({"$not": {}}, r"\$not"),
        ({"year": {}}, "'year': expected operators among"),
        ({"year": {"$in": "abc"}}, "takes a list"),
        ({"year": {"$exists": 1}}, "true or false"),
        ({"year": {"$icontains": 1}}, "expected a string, got 1"),
        ({"year": np.datetime64("1972")}, "expected a JSON scalar"),
        ({"year": object()}, "expected a JSON scalar"),
        ({1: 2}, "name of a field"),
        (
            {"$or": [{"p": {"$gt": i}} for i in range(201)]},
            "at most 200 alternatives, got 201",
        ),
        (reduce(lambda inner, _: {"$not": inner}, range(60), {"p": 1}), "50 levels"),
        (
            reduce(lambda inner, _: {"$and": [inner]}, range(100_000), {"p": 1}),
            "50 levels",
        ),
        ({"p": [[1]]}, "expected a JSON scalar"),
        ([("year", 1)], "a mapping"),
    ],
)
def test_malformed_conditions_are_named(condition: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Where.parse(condition)


def test_conditions_joined_are_one_level_and_true_is_not_one() -> None:
    table = NodeTable.of([NODE, Node("other", properties={"year": 0})])
    joined = reduce(
        lambda first, _: both(first, Where("$exists", "year", True)),
        range(1_000),
        Where("$eq", "year", 1972),
    )
    assert (hash(joined) == hash(joined), table.mask(joined).tolist()) == (
        True,
        [True, False],
    )  # type: ignore[union-attr]
    flags = NodeTable.of(
        [Node("a", properties={"x": True}), Node("b", properties={"x": 1})]
    )  # 1 equals True
    masks = [flags.mask(Where.parse({"x": value})).tolist() for value in (True, 1)]  # type: ignore[union-attr]
    assert masks == [[True, False], [False, True]]
    with pytest.raises(InvalidInput, match="50 levels"):
        reduce(lambda inner, _: Where("$not", children=(inner,)), range(60), joined)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.sampled_from(
        [0.5, 1e30, "x", "y", "n01", "a", 'say "a":1', "\\a", "{a}", "é/,"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner, max_size=2)
    ),
    max_leaves=4,
)
KEYS = ["a", "b", "a.b", "properties", ",", "é", 'a"', "\\a", "a/"]
FIELDS = st.sampled_from([*KEYS, "a.", "properties.a", "label", "id"])
OPERANDS = JSON.filter(lambda value: not isinstance(value, dict))
LEAVES = st.builds(
    lambda field, op, value: {
        field: {op: {"$exists": bool(value), "$in": [value]}.get(op, value)}
    },
    FIELDS,
    st.sampled_from(["$eq", "$ne", "$in", "$gt", "$contains", "$exists"]),
    OPERANDS,
).filter(lambda leaf: leaf.get("label", {}).keys() != {"$gt"})  # labels have no order
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda c: {"$or": c}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda c: {"$and": c}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda c: {"$not": c}, inner),
    ),
    max_leaves=4,
)
LABELS = st.lists(st.sampled_from("xy"), max_size=2, unique=True)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            LABELS, st.dictionaries(st.sampled_from([*KEYS, ""]), JSON, max_size=4)
        ),
        max_size=40,
    ),
    CONDITIONS,
)
def test_a_table_evaluates_a_condition_as_its_nodes_do(
    own: list[tuple[list[str], dict[str, Any]]], asked: Any
) -> None:
    try:
        where = Where.parse(asked)
    except InvalidInput:  # a map, or a list, within a list
        return
    assert where is not None
    nodes = [
        Node(f"n{i:02d}", tuple(labels), properties=more)
        for i, (labels, more) in enumerate(own)
    ]
    table, expected = NodeTable.of(nodes), [where.matches(node) for node in nodes]
    assert table.mask(where).tolist() == expected  # type: ignore[union-attr]
    some = np.arange(0, len(nodes), 21)
    assert NodeTable.fits(table, some, where).tolist() == [expected[i] for i in some]  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["id", "name", "text", "label", "year"])
def test_a_property_can_be_named_where_a_node_s_own_field_has_its_name(
    field: str,
) -> None:
    nodes = [
        Node("mine", ("mine",), "mine", "mine"),
        Node("n", ("Film",), "Solaris", "a film", {field: "mine"}),
    ]
    for condition, expected in (
        ("mine", [False, True]),
        ({"$exists": False}, [True, False]),
    ):
        where = Where.parse({f"properties.{field}": condition})
        assert where is not None
        assert NodeTable.of(nodes).mask(where).tolist() == expected  # type: ignore[union-attr]
        assert [where.matches(node) for node in nodes] == expected


PUBLIC = {"team": "open", "year": {"$gte": 1990, "$lt": 2000}}
NODES = [
    *(
        Node(
            f"p{i}", ("P",), f"public {w}", f"about {w}", {"team": "open", "year": 1995}
        )
        for i, w in enumerate("abc")
    ),
    *(
        Node(
            f"s{i}", ("S",), f"secret {w}", f"hidden {w}", {"team": "hr", "year": 1995}
        )
        for i, w in enumerate("abc")
    ),
]
EDGES = [
    Edge("p0", "R", "s0"),
    Edge("s0", "R", "p1"),
    Edge("p0", "R", "p2"),
    Edge("s1", "Q", "p0"),
]


def _of(path: str, *first: Any) -> Callable[[Any, Any], object]:
    """Make an object of a package that may be missing, from a store and an index."""
    package, _, name = path.rpartition(".")
    return lambda store, index: getattr(pytest.importorskip(package), name)(
        *first, store, index
    )


TAKES_BOTH: dict[str, Callable[[Any, Any], object]] = {
    "Expand": lambda store, index: Expand(None, store, index),
    "Expand from others": lambda store, index: Expand(
        IndexRetriever(index), store, index
    ),
    "IndexRetriever": lambda store, index: IndexRetriever(index, store),
    "Toolbox": Toolbox,
    "Ark": _of("graphret.ark.Ark", ScriptedExplorer()),
    "create_ark_graph": _of("langchain_graphret.create_ark_graph", ScriptedExplorer()),
    "create_ark_agent": _of("langchain_graphret.create_ark_agent", ScriptedExplorer()),
    "LangChain's ark_tools": _of("langchain_graphret.ark_tools"),
    "LlamaIndex's ArkRetriever": _of(
        "llama_index_graphret.ArkRetriever", ScriptedExplorer()
    ),
    "LlamaIndex's ark_tools": _of("llama_index_graphret.ark_tools"),
}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


@pytest.mark.parametrize("method", TAKES_BOTH)
def test_a_view_of_one_alone_is_refused(store: MemoryStore, method: str) -> None:
    make, index = TAKES_BOTH[method], BM25Index.of_store(store)
    with pytest.raises(
        InvalidInput, match=r"same condition, got a view of .* and no view"
    ):
        make(store.view(PUBLIC), index)
    with pytest.raises(InvalidInput, match="got no view and a view of"):
        make(store, index.view(PUBLIC))
    with pytest.raises(InvalidInput, match="same condition"):
        make(store.view(PUBLIC), index.view({"team": "hr"}))
    assert (
        make(store.view(PUBLIC), index.view(dict(reversed(PUBLIC.items())))) is not None
    )
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
def test_every_index_keeps_the_condition_of_its_view(
    store: MemoryStore, kind: str
) -> None:
    index, condition = INDEXES[kind](store), Where.parse(PUBLIC)
    assert restriction_of(index) is None
    assert restriction_of(index.view(PUBLIC)) == condition
    assert restriction_of(INDEXES[kind](store.view(PUBLIC))) == condition, (
        "an index of a view's nodes is a view"
    )
    assert restriction_of(index.view(None)) is None
    view = index.view(PUBLIC)
    view.upsert([Node("p9", ("P",), "one more", "", {"team": "open", "year": 1991})])
    view.delete(["p0"])
    assert restriction_of(view) == condition
    require_same_view(
        store.view({"team": "open"}).view({"year": 1995}),
        index.view({"year": 1995, "team": "open"}),
    )


@pytest.mark.neo4j
def test_every_store_keeps_the_condition_of_its_view(
    store: MemoryStore, tmp_path: Path, neo4j_module: Any
) -> None:
    from llama_index.core.graph_stores import SimplePropertyGraphStore

    from graphret.search import Neo4jTextIndex
    from graphret.stores import Neo4jStore
    from llama_index_graphret import from_property_graph_store

    condition = Where.parse(PUBLIC)
    with LadybugStore(tmp_path / "db.lbug") as embedded:
        server = Neo4jStore.from_driver(neo4j_module)
        theirs = from_property_graph_store(SimplePropertyGraphStore())
        for any_store in (store, embedded, server, Neo4jTextIndex(server), theirs):
            assert restriction_of(any_store) is None
            assert restriction_of(any_store.view(PUBLIC)) == condition
            assert (
                restriction_of(any_store.view({"team": "open"}).view({"team": "open"}))
                is not None
            )


def test_no_view_of_an_index_follows_a_store(
    store: MemoryStore, tmp_path: Path
) -> None:
    index = BM25Index.of_store(store).view(PUBLIC)
    for any_store in (store, LadybugStore(tmp_path / "db.lbug")):
        with pytest.raises(InvalidInput, match="a view cannot be attached"):
            any_store.attach(index)
