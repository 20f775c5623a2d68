"""Edges between nodes that are alike: signals, neighbours, percentiles, entities,
structure, and `link_similar`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests_support import HashingEncoder, edges_of, found_anew

from graphret import SageGraph, SageSettings
from graphret.errors import InvalidInput, StoreError
from graphret.nodes import NodeTable
from graphret.sage import SimilaritySettings, link_similar
from graphret.sage.neighbors import Neighbors, Side, nearest
from graphret.sage.similarity import (
    ENTITY_RARITY,
    SHARES_ENTITY,
    CandidatePairs,
    SimilarityIndex,
    fit_thresholds,
    weights,
)
from graphret.search import DenseIndex
from graphret.search import nearest as rows_nearest
from graphret.search.nearest import pair_similarities
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.types import Edge, Node

WORDS = ["red", "blue", "green", "cat", "dog", "fox"]
NAMES = ["Paris", "Rome", "Oslo", "Bern"]


def document(
    id_: str,
    text: str,
    topic: str = "",
    entities: Sequence[str] = (),
    **properties: Any,
) -> Node:
    return Node(
        id_,
        ("Document",),
        "",
        text,
        {"topic": topic, "entities": list(entities), **properties},
    )


def table(
    id_: str,
    title: str,
    header: list[str],
    rows: list[list[str]],
    entities: list[str],
    **given: Any,
) -> Node:
    properties = {
        "title": title,
        "table_header": header,
        "table_rows": rows,
        "entities": entities,
        **given,
    }
    return Node(id_, ("Table",), title, title, properties)


def record(id_: str, name: str, text: str, entities: list[str]) -> Node:
    return Node(id_, ("Product",), name, text, {"entities": entities})


def build(nodes: Sequence[Node], encoder: Any = None, **options: Any) -> SageGraph:
    similarity = SageSettings(similarity=SimilaritySettings(**options))
    return SageGraph.from_nodes(
        nodes, encoder=encoder, metadata=None, settings=similarity
    )


def edges(graph: SageGraph, relation: str) -> dict[tuple[str, str], Edge]:
    found = [
        edge for edge in graph.edges.edges(graph.nodes.ids) if edge.relation == relation
    ]
    by_ends = {(edge.source, edge.target): edge for edge in found}
    assert len(by_ends) == len(found)  # one a pair
    return by_ends


# -- changes

phrase = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
names = st.lists(st.sampled_from(NAMES), max_size=3)


@st.composite
def any_node(draw: Any) -> Node:
    id_, kind, entities = (
        f"n{draw(st.integers(0, 30)):02d}",
        draw(st.sampled_from("ddttr")),
        draw(names),
    )
    source = {
        "source_id": f"s{draw(st.integers(0, 4))}",
        "chunk_index": draw(st.integers(0, 9)),
    }
    if kind == "d":
        return document(id_, draw(phrase), draw(phrase), entities, **source)
    if kind == "t":
        rows = draw(
            st.lists(
                st.lists(st.sampled_from([*NAMES, "1"]), min_size=2, max_size=2),
                max_size=3,
            )
        )
        header = [draw(st.sampled_from(WORDS)), draw(st.sampled_from(WORDS))]
        return table(
            id_,
            draw(phrase),
            header,
            rows,
            entities,
            description=draw(phrase),
            **source,
        )
    return record(id_, draw(phrase), draw(phrase), entities)


nodes_of_any_kind = st.lists(
    any_node(), min_size=1, max_size=25, unique_by=lambda node: node.id
)


@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    first=nodes_of_any_kind,
    more=nodes_of_any_kind,
    gone=st.sets(st.integers(0, 30), max_size=6),
    options=st.sampled_from(
        [{"percentile": 0}, {"percentile": 50, "logic": "and"}, {"percentile": 95}]
    ),
    with_encoder=st.booleans(),
)
def test_changing_equals_rebuilding(
    first: list[Node],
    more: list[Node],
    gone: set[int],
    options: dict[str, Any],
    with_encoder: bool,
) -> None:
    options = {"neighbors": 3, "entity_cap": 6, **options}
    encoder = HashingEncoder() if with_encoder else None
    changed = build(first, encoder, **options)
    before = changed.thresholds
    changed.add_nodes(more)
    held = {f"n{i:02d}" for i in gone} & set(changed.nodes.ids)
    if len(held) < len(changed):
        changed.remove(held)
    assert all(
        changed.thresholds[kind].items() >= values.items()
        for kind, values in before.items()
    )
    assert edges_of(changed) == found_anew(changed)
    changed.refit()
    rebuilt = build(list(changed.nodes), encoder, **options)
    assert list(changed.nodes) == list(rebuilt.nodes)
    assert edges_of(changed) == edges_of(rebuilt)
    assert changed.thresholds == rebuilt.thresholds
    scores = (
        graph.index.lexical.scores("red cat in Paris") for graph in (changed, rebuilt)
    )
    np.testing.assert_array_equal(*scores)


def test_a_nearer_node_takes_the_place_of_a_neighbour() -> None:
    nodes = [
        document("a", "red cat"),
        document("b", "red cat dog fox"),
        document("d", "red dog fox"),
    ]
    graph = build(nodes, HashingEncoder(), percentile=0, neighbors=1)
    assert edges(graph, "IS_SIMILAR").keys() == {("a", "b"), ("b", "d")}
    graph.add_nodes([document("c", "cat red")])
    assert edges(graph, "IS_SIMILAR").keys() == {("a", "c"), ("b", "d")}
    graph.remove(["c"])
    assert edges(graph, "IS_SIMILAR").keys() == {("a", "b"), ("b", "d")}


def corpus() -> list[Node]:
    cities = ["Oslo", "Paris"]
    return [
        document(
            "a#0", "red cat sat", "red cat", ["Paris"], source_id="a", chunk_index=0
        ),
        document(
            "a#1", "red cat ran", "red dog", ["Rome"], source_id="a", chunk_index=1
        ),
        document(
            "b#0", "blue fox sat", "blue fox", ["Paris"], source_id="b", chunk_index=0
        ),
        table(
            "t#0",
            "red cat",
            ["city", "cat", "no"],
            [["Oslo", "1"], ["Paris"]],
            cities,
            description="cat",
        ),
        table(
            "u#0",
            "red fox",
            ["City", "No."],
            [["Oslo", "1"], ["Paris", "2"]],
            cities,
            description="cat",
        ),
        record("r1", "red cat", "a red cat", ["Bern"]),
        record("r2", "red cat", "a red dog", ["Bern"]),
    ]


def test_every_text_is_embedded_once() -> None:
    encoder = HashingEncoder()
    graph = build(corpus(), encoder)
    texts = len(encoder.encoded)
    assert texts <= len(set(encoder.encoded)) + 2  # a content may be another text too
    graph.add_nodes([document("c", "a new text", "red cat")])
    assert encoder.encoded[texts:] == ["a new text"]


def test_given_vectors_are_those_of_contents() -> None:
    nodes = sorted(corpus(), key=lambda node: node.id)
    vectors = HashingEncoder().encode_documents([node.text for node in nodes])
    graph = SageGraph.from_nodes(nodes, encoder=None, vectors=vectors, metadata=None)
    cosines = {
        name
        for values in graph.thresholds.values()
        for name in values
        if name.endswith("_similarity")
    }
    assert cosines == {"content_similarity", "description_similarity"}
    assert (
        build(nodes, HashingEncoder(), contents_only=True).thresholds.keys()
        == graph.thresholds.keys()
    )


# -- thresholds


def candidates(**values: list[float]) -> CandidatePairs:
    n = len(next(iter(values.values())))
    columns = {name: np.asarray(column, np.float32) for name, column in values.items()}
    return CandidatePairs(
        "IS_SIMILAR",
        "document-document",
        np.zeros(n, np.int64),
        np.arange(1, n + 1),
        columns,
    )


def test_a_threshold_is_the_percentile_of_what_is_known() -> None:
    group = candidates(
        topic_similarity=[0.1, 0.2, 0.3, 0.4, np.nan], content_similarity=[np.nan] * 5
    )
    fitted = fit_thresholds([group], 50, {})
    assert fitted == {"document-document": {"topic_similarity": pytest.approx(0.25)}}
    # the q-th percentile of n sorted values lies at place q / 100 * (n - 1), between
    # neighbours in proportion
    expected = 0.3 + (0.95 * 3 - 2) * (0.4 - 0.3)
    assert fit_thresholds([group], 95, {})["document-document"] == {
        "topic_similarity": pytest.approx(expected)
    }


def test_or_needs_one_signal_and_and_needs_all() -> None:
    group = candidates(
        topic_similarity=[0.9, 0.95, 0.1, np.nan, 0.9, 0.1],
        content_similarity=[0.95, 0.1, 0.1, 0.9, 0.9, 0.1],
    )
    limits = dict.fromkeys(
        ["topic_similarity", "content_similarity"], float(np.float32(0.9))
    )
    assert weights(group.values, limits, "or") == pytest.approx(
        [0.95, 0.95, 0, 0.9, 0.9, 0]
    )
    assert weights(group.values, limits, "and") == pytest.approx(
        [0.95, 0, 0, 0, 0.9, 0]
    )
    for logic in ("or", "and"):
        assert not weights(group.values, {}, logic).any()


# -- what an edge says


def test_an_edge_says_what_is_similar_and_shared() -> None:
    found = edges(build(corpus(), HashingEncoder(), percentile=0), "IS_SIMILAR")
    edge = found["t#0", "u#0"]
    assert edge.properties["shared_entities"] == ["Oslo", "Paris"]
    assert set(edge.properties["signals"]) == {
        f"{of}_similarity" for of in ("column", "title", "description")
    }
    assert edge.weight == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("cells", "row", "column"),
    [
        (["Oslo", "Paris"], 1, "city"),
        (["Home", "Paris, Texas"], 1, "city"),
        (["Paris, Texas", "Paris"], 1, "city"),
    ],
)
def test_without_an_encoder_shared_entities_tell_the_cell(
    cells: list[str], row: int, column: str
) -> None:
    nodes = [
        document("d", "", "", ["Paris"]),
        table("t", "Games", ["city"], [[cell] for cell in cells], ["Paris"]),
    ]
    edge = edges(build(nodes, percentile=0), "SHARES_ENTITY")["d", "t"]
    assert edge.properties == {
        "entities": ["Paris"],
        "count": 1,
        "column": column,
        "target_row": row,
    }


# -- shared entities


def entity_pairs(
    nodes: list[Node], cap: int = 50, neighbors: int = 20
) -> dict[tuple[str, str], float]:
    settings = SimilaritySettings(entity_cap=cap, neighbors=neighbors)
    index, _ = SimilarityIndex.build(named := NodeTable.of(nodes), None, settings)
    (found,) = (group for group in index.candidates if group.relation == SHARES_ENTITY)
    pairs = zip(
        found.low.tolist(),
        found.high.tolist(),
        found.values[ENTITY_RARITY].tolist(),
        strict=True,
    )
    return {(named.ids[i], named.ids[j]): value for i, j, value in pairs}


def test_overlap_equals_a_direct_count() -> None:
    rng = np.random.default_rng(4)
    every = [f"Name {i}" for i in range(60)]
    nodes = [
        document(f"d{i:03d}", "", "", [name.upper() for name in rng.choice(every, 4)])
        for i in range(150)
    ]
    sets = {node.id: set(node.properties["entities"]) for node in nodes}
    bearers = {
        name.upper(): sum(name.upper() in s for s in sets.values()) for name in every
    }

    def rarity(a: str, b: str, cap: int) -> float:
        return sum(
            np.log1p(150 / bearers[e]) / np.log1p(75)
            for e in sets[a] & sets[b]
            if bearers[e] <= cap
        )

    for cap in (50, 9):
        expected = {
            (a, b): rarity(a, b, cap)
            for a in sets
            for b in sets
            if a < b and rarity(a, b, cap)
        }
        assert entity_pairs(nodes, cap, neighbors=150) == pytest.approx(
            expected, abs=1e-4
        )


def test_a_node_proposes_only_its_best_pairs_and_none_of_its_source() -> None:
    pairs = entity_pairs(
        [document(f"d{i:02d}", "", "", ["E"]) for i in range(40)], neighbors=3
    )
    assert len(pairs) <= 40 * 3
    assert ("d00", "d01") in pairs
    assert ("d38", "d39") not in pairs
    nodes = [
        document(f"d{i}", "", "", ["E"], source_id="a" if i < 2 else "b", chunk_index=i)
        for i in range(3)
    ]
    assert set(entity_pairs(nodes)) == {("d0", "d2"), ("d1", "d2")}


# -- structure


@pytest.mark.parametrize(
    ("count", "pairs"),
    [(1, 0), (2, 1), (16, 120), (17, 8 * 17 - 36), (40, 8 * 40 - 36)],
)
def test_structure_links_all_of_a_small_source_and_a_window_of_a_large_one(
    count: int, pairs: int
) -> None:
    chunks = [
        document(f"s#{i}", "text", source_id="s", chunk_index=i) for i in range(count)
    ]
    graph = build([*chunks, document("other#0", "text", source_id="other")])
    assert len(edges(graph, "SAME_SOURCE")) == pairs
    assert set(edges(graph, "NEXT")) == {
        (f"s#{i}", f"s#{i + 1}") for i in range(count - 1)
    }


Floats = NDArray[np.float32]


def rows_of(n: int, d: int, *, whole: bool = False) -> Floats:
    """Random unit rows; of whole numbers many are alike, and some are zero."""
    rows = np.random.default_rng(0).standard_normal((n, d))
    rows = np.round(rows) if whole else rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(
        np.float32
    )


def side(positions: Any, rows: Any = None) -> Side:
    positions = np.asarray(positions)
    return Side(positions, positions if rows is None else np.asarray(rows))


def assert_exact(
    found: Neighbors, vectors: Floats, rows: Side, targets: Side, m: int
) -> None:
    """Every seventh node has the best targets, ties by position."""
    for own, row in list(zip(rows.positions.tolist(), rows.rows.tolist(), strict=True))[
        ::7
    ]:
        values = pair_similarities(
            vectors, vectors, np.full(len(targets.rows), row), targets.rows
        ).tolist()
        pairs = [
            (-x, p)
            for x, p in zip(values, targets.positions.tolist(), strict=True)
            if x > 0 and p != own
        ]
        at = found.own == own
        got = zip(
            (-found.similarity[at]).tolist(), found.other[at].tolist(), strict=True
        )
        assert list(got) == sorted(pairs)[:m]


@pytest.mark.parametrize(("n", "d", "m"), [(1, 3, 5), (60, 8, 20), (300, 16, 20)])
@pytest.mark.parametrize("whole", [False, True])
def test_neighbours_are_exact_and_ties_fall_by_position(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, m: int, whole: bool
) -> None:
    monkeypatch.setattr(rows_nearest, "BLOCK_BYTES", 1 << 14)
    vectors, every = rows_of(n, d, whole=whole), side(np.arange(n))
    for rows, targets in (
        (every, every),
        (every.at(np.arange(n) < n // 2), every.at(np.arange(n) >= n // 3)),
    ):
        assert_exact(nearest(vectors, rows, targets, m), vectors, rows, targets, m)


def test_nodes_with_the_same_text_are_neighbours_each() -> None:
    vectors = rows_of(6, 4)
    bearers = side(np.arange(90) * 2, np.random.default_rng(3).integers(0, 6, 90))
    assert_exact(nearest(vectors, bearers, bearers, 25), vectors, bearers, bearers, 25)
    many = side(np.arange(30_000), np.zeros(30_000, np.int64))  # which costs no square
    assert nearest(vectors, many, many, 3).other[:9].tolist() == [
        1,
        2,
        3,
        0,
        2,
        3,
        0,
        1,
        3,
    ]


def test_hnsw_finds_most_of_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, every = rows_of(600, 12), side(np.arange(600))
    exact = nearest(vectors, every, every, 5)
    monkeypatch.setattr(rows_nearest, "HNSW_ABOVE", 100)
    rough, again = (nearest(vectors, every, every, 5) for _ in range(2))
    monkeypatch.setattr(rows_nearest, "HNSW_SHARD", 250)
    sharded = nearest(vectors, every, every, 5)
    pairs = [
        set(zip(one.own.tolist(), one.other.tolist(), strict=True))
        for one in (exact, rough, sharded)
    ]
    assert min(len(pairs[0] & some) for some in pairs[1:]) / (5 * 600) > 0.95
    np.testing.assert_array_equal(rough.other, again.other)


LONG = "a text of some length " * 6
ANGLES = {
    "heat": 0.0,
    "ronin": 0.1,
    "alien": 1.5,
    "gravity": 1.55,
    "name": 0.05,
    "mann": 0.06,
}
NODES = [
    *(
        Node(film, ("Film",), film, LONG)
        for film in ("alien", "gravity", "heat", "ronin")
    ),
    Node("mann", ("Person",), "Michael Mann", LONG),
    Node("name", ("Film",), "a film of which nothing is said"),
]
OWN = [
    Edge("heat", "DIRECTED_BY", "mann"),
    Edge("heat", "IS_SIMILAR", "gravity", 0.5, {"signals": "of a SageGraph"}),
]
ALL = SimilaritySettings(percentile=0, neighbors=1)


@pytest.fixture(
    params=["memory", "ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)]
)
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
    return {
        (edge.source, edge.target): round(edge.weight, 3)
        for edge in edges
        if "cosine" in edge.properties
    }


def test_edges_are_written_beside_the_graphs_own_and_brought_up_to_date(
    store: GraphStore,
) -> None:
    store.upsert(NODES, OWN)
    films = {("heat", "ronin"): 0.995, ("alien", "gravity"): 0.999}
    for _ in range(2):
        assert link_similar(store, index_of(NODES), labels=["Film"], settings=ALL) == 2
        assert similar(store) == films
    link_similar(
        store, index_of(NODES), settings=ALL
    )  # the person too, whose text is as long
    assert similar(store) == {
        ("alien", "gravity"): 0.999,
        ("heat", "mann"): 0.998,
        ("mann", "ronin"): 0.999,
    }
    link_similar(
        store, index_of(NODES), min_characters=0, labels=["Film"], settings=ALL
    )
    assert set(similar(store)) == {
        ("alien", "gravity"),
        ("heat", "name"),
        ("name", "ronin"),
    }
    store.delete(["name"])
    kept = [node for node in NODES if node.id != "name"]
    link_similar(store, index_of(kept), min_characters=10_000)
    assert not similar(store)
    assert [node for block in store.nodes() for node in block] == sorted(
        kept, key=lambda node: node.id
    )
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
