"""`Neo4jTextIndex` on a real server: the contract of text indexes, writes in one
transaction, what a view may see.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import neo4j
import numpy as np
import pytest
from tests_support import HashingEncoder

from graphret.errors import InvalidInput, StoreMismatch
from graphret.search import (
    BM25Index,
    DenseIndex,
    Neo4jTextIndex,
    NodeText,
    TextIndex,
    neo4j_index,
)
from graphret.stores import MemoryStore, Neo4jStore
from graphret.stores.neo4j.layout import OWN
from graphret.testing.indexes import MakeIndex, TextIndexSuite, random_nodes
from graphret.types import Edge, Node

Made = Callable[..., Neo4jTextIndex]
LABELS = itertools.count()
MOVIES = [
    Node("kong33", ("Movie",), "King Kong", "a film of 1933", {"year": 1933}),
    Node("kong05", ("Movie",), "King Kong", "a film of 2005", {"year": 2005}),
    Node("jackson", ("Person",), "Peter Jackson"),
    Node("cooper", ("Person",), "Merian Cooper"),
]
DIRECTED = [
    Edge("kong05", "directed_by", "jackson"),
    Edge("kong33", "directed_by", "cooper"),
]


class Places:
    """The labels of a database on which indexes were made: a database makes one in a
    second, so that few are made.

    A label that was used is emptied for new nodes: Lucene drops files in which nothing
    is left, and their counts.
    """

    def __init__(self, driver: neo4j.Driver) -> None:
        self.driver = driver
        self.free: list[str] = []

    def make(self, nodes: Sequence[Node], **options: Any) -> tuple[str, Neo4jTextIndex]:
        label = self.free.pop(0) if self.free else f"Made{next(LABELS)}"
        self.driver.execute_query(f"MATCH (n:`{label}`) DETACH DELETE n")
        store = Neo4jStore.from_driver(self.driver)
        store._layout = replace(OWN, label=label)
        store.upsert(nodes)
        placed = type("Placed", (Neo4jTextIndex,), {"prefix": label})
        return label, placed.create(store, **options)


@pytest.fixture(scope="class")
def places(neo4j_class: neo4j.Driver) -> Places:
    return Places(neo4j_class)


@pytest.fixture
def made(places: Places) -> Iterator[Made]:
    """Makes indexes side by side in one database, each on the nodes of a label of its
    own.
    """
    lent: list[tuple[str, Neo4jTextIndex]] = []

    def one(nodes: Sequence[Node], **options: Any) -> Neo4jTextIndex:
        lent.append(places.make(nodes, **options))
        return lent[-1][1]

    yield one
    places.free += [label for label, _ in lent]


class TestNeo4jTextIndex(TextIndexSuite):
    """Lucene counts deleted nodes until it merges its files, and hidden ones; a view
    has ranks for scores.
    """

    exact_statistics = False

    @pytest.fixture
    def make(self, made: Made) -> MakeIndex:
        return lambda nodes: made(nodes, encoder=HashingEncoder())


@pytest.fixture
def store(neo4j_empty: neo4j.Driver) -> Neo4jStore:
    return Neo4jStore.from_driver(neo4j_empty)


def test_names_of_neighbours_are_searched_and_follow_writes(store: Neo4jStore) -> None:
    store.upsert(MOVIES, DIRECTED)
    index = Neo4jTextIndex.create(store, text=NodeText.documents())
    assert index.search("film directed by Jackson", 2, labels=["Movie"]).ids == [
        "kong05",
        "kong33",
    ]
    store.upsert([Node("jackson", ("Person",), "Zacharias Quill")])
    assert index.search("Quill film", 1, labels=["Movie"]).ids == ["kong05"]
    assert index.score("Jackson", ["kong05"]) == [0.0]
    store.delete(["cooper"])
    assert index.score("Cooper", ["kong33"]) == [0.0]
    store.delete_edges(DIRECTED)
    assert index.score("Quill", ["kong05"]) == [0.0]
    store.upsert(edges=[Edge("kong33", "directed_by", "jackson"), DIRECTED[0]])
    assert (index.score("Quill", ["kong33", "kong05"]) > 0).all()


def test_a_view_tells_nothing_of_what_is_hidden(store: Neo4jStore) -> None:
    """Neither the name of a hidden neighbour, nor a number in which hidden documents
    count.
    """
    store.upsert(MOVIES, DIRECTED)
    index = Neo4jTextIndex.create(
        store, text=NodeText.documents(), encoder=HashingEncoder()
    )
    assert index.score("Jackson", ["kong05"]) > index.score("Jackson", ["kong33"])
    view = index.view({"label": "Movie"})
    queries = ["Jackson", "King Kong 2005", "film"]
    before = view.search(queries, 4), view.score(queries, ["kong33", "kong05"])
    assert [len(result) for result in before[0]] == [2, 2, 2]
    rare = [
        Node(f"hidden{i}", ("Person",), "King Kong film", "kong film " * i)
        for i in range(9)
    ]
    store.upsert([Node("jackson", ("Person",), "Somebody Else"), *rare])
    for result, was in zip(view.search(queries, 4), before[0], strict=True):
        assert (result.ids, result.scores.tolist()) == (was.ids, was.scores.tolist())
    np.testing.assert_array_equal(view.score(queries, ["kong33", "kong05"]), before[1])
    words = Neo4jTextIndex.open(store, text=NodeText.documents()).view(
        {"label": "Movie"}
    )
    assert words.search("King Kong 2005", 9).scores.tolist() == pytest.approx(
        [1.0, 1 / np.log2(3)]
    )
    assert words.score("2005", ["kong33", "kong05"]).tolist() == [0.0, 1.0]


def test_documents_are_written_with_their_nodes_or_not_at_all(
    store: Neo4jStore,
) -> None:
    class Failing(HashingEncoder):
        broken = False

        def encode_documents(self, texts: Sequence[str]) -> Any:
            if self.broken:
                raise RuntimeError("the encoder is down")
            return super().encode_documents(texts)

    encoder = Failing()
    store.upsert(MOVIES, DIRECTED)
    index = Neo4jTextIndex.create(store, encoder=encoder)
    encoder.broken = True
    with pytest.raises(RuntimeError, match="down"):
        store.upsert(
            [Node("new", name="Heavenly Creatures"), Node("kong05", ("Movie",), "Kong")]
        )
    assert store.get(["new", "kong05"]) == [None, MOVIES[1]]
    assert set(index.search("Kong", 2, labels=["Movie"]).ids) == {"kong05", "kong33"}
    encoder.broken = False
    Neo4jStore.from_driver(store.driver).upsert(
        [Node("new", ("Movie",), "Heavenly Creatures")]
    )
    index.refresh()  # after a write by others
    assert index.search("heavenly creatures", 1).ids == ["new"]


def test_an_index_of_this_process_follows_too_and_misses_no_write_of_several_at_once(
    store: Neo4jStore,
) -> None:
    store.upsert(MOVIES, DIRECTED)
    index = BM25Index.of_store(store, text=NodeText.documents())
    store.attach(index)
    store.upsert(
        [Node("jackson", ("Person",), "Zacharias Quill")],
        [Edge("kong33", "directed_by", "jackson")],
    )
    assert set(index.search("Quill", 2, labels=["Movie"]).ids) == {"kong05", "kong33"}
    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda i: store.upsert([Node(f"n{i}", ("N",), f"name{i}")]), range(4)
            )
        )
        list(threads.map(lambda i: store.delete([f"n{i}"]), range(2)))
    assert set(index.table.ids) == {*(movie.id for movie in MOVIES), "n2", "n3"}


def test_a_graph_that_something_else_wrote(
    store: Neo4jStore, neo4j_empty: neo4j.Driver
) -> None:
    neo4j_empty.execute_query(
        "CREATE (:Film {title: 'Brazil', summary: 'a clerk dreams'})-[:BY]->(:Person"
        " {name: 'Terry Gilliam'})"
    )
    index = Neo4jTextIndex.create(store, encoder=HashingEncoder())
    film, person = (
        node
        for node in store.get(index.search("dreaming clerk in Brazil", 2).ids)
        if node is not None
    )
    assert (film.name, film.labels, set(film.properties)) == (
        "Brazil",
        ("Film",),
        {"title", "summary"},
    )
    assert store.schema().labels == {"Film": 1, "Person": 1}
    assert index.view({"label": "Person"}).search("clerk", 9).ids == [person.id]


class Narrow(HashingEncoder):
    dimension = 32


def test_what_does_not_fit_is_refused_by_name(store: Neo4jStore) -> None:
    store.upsert(MOVIES)
    with pytest.raises(StoreMismatch, match="graphret_fulltext"):
        Neo4jTextIndex.open(store)
    Neo4jTextIndex.create(store, encoder=HashingEncoder())
    assert Neo4jTextIndex.open(store, encoder=HashingEncoder()).search(
        "Peter", 1
    ).ids == ["jackson"]
    for attempt in (Neo4jTextIndex.open, Neo4jTextIndex.create):
        with pytest.raises(StoreMismatch, match=r"48.*32"):
            attempt(store, encoder=Narrow())
        with pytest.raises(InvalidInput, match="view"):
            attempt(store.view({"label": "Movie"}))
        with pytest.raises(InvalidInput, match="MemoryStore"):
            attempt(MemoryStore())  # type: ignore[arg-type]
    movies = Neo4jStore.from_driver(store.driver, id_property="id", label="Movie")
    with pytest.raises(
        StoreMismatch, match=r"\['__Graphret__'\].*\['__GraphretText__'\] is expected"
    ):
        Neo4jTextIndex.open(movies)
    with pytest.raises(InvalidInput, match="alpha"):
        Neo4jTextIndex(store, alpha=2.0)
    with pytest.raises(InvalidInput, match="made with"):
        Neo4jStore.from_driver(store.driver).attach(Neo4jTextIndex.open(store))


@pytest.mark.parametrize("few", [0, 1_000])
@pytest.mark.parametrize(
    ("where", "more"),
    [
        ({"few": 3}, {}),
        (
            {"far": True},
            {"where": {"part": 0}, "labels": ["Dish"]},
        ),  # what does not qualify are the nearest hundred
        (
            {"far": True},
            {"where": {"deep.down": 1}},
        ),  # which the database cannot decide
    ],
    ids=str,
)
def test_k_come_back_however_few_of_the_nearest_qualify(
    among_many: tuple[Neo4jStore, DenseIndex],
    monkeypatch: pytest.MonkeyPatch,
    few: int,
    where: Any,
    more: Any,
) -> None:
    """More hits of the vector index are looked at, or all that qualify are compared."""
    monkeypatch.setattr(neo4j_index, "_FIRST", 8)
    monkeypatch.setattr(neo4j_index, "_MOST", 150)
    monkeypatch.setattr(neo4j_index, "FEW", few)
    store, exact = among_many
    index: TextIndex = Neo4jTextIndex.open(store, encoder=HashingEncoder(), alpha=0.0)
    for first, other in ((index.view(where), exact.view(where)), (index, exact)):
        options = (
            more
            if first is not index
            else {**more, "where": {"$and": [where, more.get("where", where)]}}
        )
        for k in (5, 30):
            result, expected = (
                first.search("apple pear", k, **options),
                other.search("apple pear", k, **options),
            )
            np.testing.assert_allclose(result.scores, expected.scores, atol=1e-5)
            np.testing.assert_allclose(
                first.score("apple pear", result.ids), result.scores, atol=1e-5
            )


@pytest.fixture(scope="module")
def among_many(neo4j_module: neo4j.Driver) -> tuple[Neo4jStore, DenseIndex]:
    """Four hundred nodes in Neo4j, and an index in memory that compares all."""
    nodes = [
        replace(
            node, properties={"part": i % 2, "few": i % 40, "deep": {"down": i % 3}}
        )
        for i, node in enumerate(random_nodes(5, 400))
    ]
    near = DenseIndex.build(nodes, HashingEncoder()).search("apple pear", 100).ids
    nodes = [
        replace(node, properties={**node.properties, "far": node.id not in near})
        for node in nodes
    ]
    store = Neo4jStore.from_driver(neo4j_module)
    store.upsert(nodes)
    Neo4jTextIndex.create(store, encoder=HashingEncoder(), alpha=0.0)
    return store, DenseIndex.build(nodes, HashingEncoder())
