"""A store is opened by where it lives, and indexes that are attached to it stay in
step, or nothing is written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_support import BALLPARKS

from graphret import storage
from graphret.errors import CorruptIndex, InvalidInput, ModelError, NotAnIndex
from graphret.linking import Linker
from graphret.sage import SageGraph
from graphret.search import BM25Index, DenseIndex, FieldIndex, HybridIndex, NodeText
from graphret.stores import MemoryStore, open_store
from graphret.stores.addresses import is_address, neo4j_login, with_login
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

STORE = MemoryStore.of([Node("a", name="A"), Node("b")], [Edge("a", "R", "b")])


def test_a_graph_that_was_saved_and_that_of_another_method(tmp_path: Path) -> None:
    STORE.save(tmp_path / "graph")
    graph = SageGraph.build(BALLPARKS, encoder=None)
    graph.save(tmp_path / "sage")
    for where, saved in (
        (tmp_path / "graph", STORE),
        (str(tmp_path / "sage"), graph.store),
    ):
        for opened in (open_store(where), open_store(where, verify=True)):
            assert isinstance(opened, MemoryStore)
            ids = saved.graph.nodes.ids.tolist()
            assert opened.count() == saved.count()
            assert opened.get(ids) == saved.get(ids)
            assert opened.neighbors(ids) == saved.neighbors(ids)


def test_a_large_graph_is_checked_quickly_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "graph"
    MemoryStore.of([Node("a", text="x" * 5000)]).save(folder)
    largest = max(
        folder.glob("gen-*/*.npy"), key=lambda path: (path.stat().st_size, path.name)
    )
    monkeypatch.setattr(
        storage,
        "QUICK_BYTES",
        sum(p.stat().st_size for p in folder.glob("gen-*/*.npy")) - 1,
    )
    content = largest.read_bytes()
    largest.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    open_store(folder)
    for check in (
        lambda: open_store(folder, verify=True),
        lambda: storage.verify(folder),
    ):
        with pytest.raises(CorruptIndex, match=largest.name):
            check()
    largest.write_bytes(content[:-1])
    with pytest.raises(CorruptIndex, match="truncated"):
        open_store(folder)
    largest.write_bytes(content)
    other = min(
        folder.glob("gen-*/*.npy"), key=lambda path: (path.stat().st_size, path.name)
    )
    other.write_bytes(other.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CorruptIndex, match=other.name):
        open_store(folder)


def test_places_that_hold_no_graph(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk")
    (tmp_path / "empty").mkdir()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "nodes.parquet").write_bytes(b"PAR1")
    storage.save(tmp_path / "other", storage.Parts(), kind="other")
    for name, said in {
        "nowhere": "no such file",
        "notes.txt": "Ladybug",
        "empty": "no graphret index",
        "tables": "imported",
        "other": "'other'",
    }.items():
        with pytest.raises(NotAnIndex, match=said):
            open_store(tmp_path / name)
    STORE.save(tmp_path / "graph")
    with pytest.raises(InvalidInput, match="id_property: does not apply to a folder"):
        open_store(tmp_path / "graph", id_property="sku")


@pytest.mark.parametrize(
    "where",
    [
        "http://host",
        "ftp://user:secret@host",
        "neo4j+x://host",
        "bolt://",
        "bolt://h:port",
        "bolt://u:secret@h/a/b",
    ],
)
def test_addresses_that_are_none(where: str) -> None:
    with pytest.raises(InvalidInput, match="address") as caught:
        open_store(where)
    assert "secret" not in str(caught.value)


ENVIRONMENT = {
    "NEO4J_USERNAME": "me",
    "NEO4J_PASSWORD": "pass",
    "NEO4J_DATABASE": "films",
}


@pytest.mark.parametrize(
    ("address", "environment", "expected"),
    [
        ("bolt://host:7687", {}, ("bolt://host:7687", {})),
        (
            "neo4j+s://host",
            ENVIRONMENT,
            ("neo4j+s://host", {"auth": ("me", "pass"), "database": "films"}),
        ),
        (
            "bolt://you:p%40ss%2F@host",
            ENVIRONMENT,
            ("bolt://host", {"auth": ("you", "p@ss/"), "database": "films"}),
        ),
        (
            "bolt://you@host",
            ENVIRONMENT | {"NEO4J_DATABASE": ""},
            ("bolt://host", {"auth": ("you", "")}),
        ),
        ("neo4j://[::1]:7687?policy=eu", {}, ("neo4j://[::1]:7687?policy=eu", {})),
        (
            "bolt://host/my%20films?a=b",
            ENVIRONMENT | {"NEO4J_USERNAME": ""},
            ("bolt://host?a=b", {"database": "my films"}),
        ),
    ],
)
def test_user_password_and_database_come_from_the_address_or_the_environment(
    address: str, environment: dict[str, str], expected: tuple[str, dict[str, Any]]
) -> None:
    assert is_address(address)
    assert not any(map(is_address, ("folder", "/a/folder", "C:\\folder", "a:b")))
    assert neo4j_login(address, environment) == expected
    assert neo4j_login(with_login(address, environment), {}) == expected


def test_a_ladybug_file_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "graph of any name"
    with LadybugStore(path) as made:
        made.upsert([Node("a", name="A"), Node("b")], [Edge("a", "R", "b")])
    with open_store(path, read_only=True) as store:  # type: ignore[attr-defined]
        assert isinstance(store, LadybugStore)
        assert store.get(["a"]) == STORE.get(["a"])
        assert store.neighbors(["a"]) == STORE.neighbors(["a"])


WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date", "nut"]


def node(i: int, rng: random.Random) -> Node:
    return Node(
        f"n{i:02d}",
        (rng.choice("AB"),),
        " ".join(rng.choices(WORDS, k=2)),
        rng.choice(WORDS),
    )


def graph(seed: int, n: int = 20) -> tuple[list[Node], list[Edge]]:
    rng = random.Random(seed)
    nodes = [node(i, rng) for i in range(n)]
    ends = dict.fromkeys(
        (rng.choice(nodes).id, rng.choice(nodes).id) for _ in range(2 * n)
    )
    return nodes, [Edge(a, rng.choice(["LIKES", "KNOWS"]), b) for a, b in ends]


def hybrid(store: Any, encoder: Any) -> HybridIndex:
    text = NodeText.documents(neighbors=2).bound(store)
    lexical = BM25Index.of_store(store, text=text)
    return HybridIndex(lexical, DenseIndex.build(lexical.table, encoder, text=text))


MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "bm25": lambda store, _: BM25Index.of_store(store),
    "bm25 of documents": lambda store, _: BM25Index.of_store(
        store, text=NodeText.documents(neighbors=2)
    ),
    "bm25 of a relation": lambda store, _: BM25Index.of_store(
        store, text=NodeText.relation("LIKES")
    ),
    "dense": lambda store, encoder: DenseIndex.of_store(
        store, encoder, text=NodeText.documents()
    ),
    "hybrid": hybrid,
    "fields": lambda store, encoder: FieldIndex.of_store(
        store,
        {"name": NodeText.names(), "likes": NodeText.relation("LIKES")},
        encoder=encoder,
    ),
}


def state(index: Any) -> list[tuple[list[str], np.ndarray]]:
    ids = index.table.ids.tolist()
    return [
        (ids, index.score(query, ids))
        for query in ("apple", "pear plum", "fig kiwi lime")
    ]


def assert_same(one: Any, other: Any) -> None:
    for (ids, scores), (other_ids, other_scores) in zip(
        state(one), state(other), strict=True
    ):
        assert ids == other_ids
        np.testing.assert_allclose(scores, other_scores, rtol=1e-4, atol=1e-5)


@pytest.fixture
def filled(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A store of the kind that is asked for, with a graph."""
    if request.param == "memory":
        yield MemoryStore.of(*graph(1))
        return
    ladybug = pytest.importorskip("graphret.stores.ladybug")
    with ladybug.LadybugStore(":memory:") as store:
        store.upsert(*graph(1))
        yield store


@pytest.mark.parametrize(
    ("filled", "make"),
    [*(("memory", make) for make in MAKERS), ("ladybug", "fields")],
    indirect=["filled"],
)
def test_an_attached_index_is_always_one_made_of_the_store(
    filled: Any, make: str, encoder: Any
) -> None:
    rng, store = random.Random(1), filled
    index = MAKERS[make](store, encoder)
    store.attach(index)
    for step in range(8):
        ids = [n.id for block in store.nodes() for n in block]
        kind = step % 4
        if kind == 0:  # renamed and new nodes, and edges among them
            nodes = [node(int(i[1:]), rng) for i in rng.sample(ids, 3)] + [
                node(30 + step, rng)
            ]
            store.upsert(
                nodes,
                [
                    Edge(nodes[-1].id, "LIKES", rng.choice(ids)),
                    Edge(nodes[0].id, "KNOWS", ids[0]),
                ],
            )
        elif kind == 1:  # edges alone, one of them heavier than before
            store.upsert(
                edges=[
                    Edge(rng.choice(ids), "LIKES", rng.choice(ids), 2.0)
                    for _ in range(3)
                ]
            )
        elif kind == 2:
            store.delete_edges([edge for block in store.edges() for edge in block][::4])
        else:
            store.delete([*rng.sample(ids, 3), "nobody"])
        assert_same(index, MAKERS[make](store, encoder))


def test_only_what_changed_is_read_again(encoder: Any) -> None:
    store = MemoryStore.of(
        [Node(i, name=i) for i in "abcde"],
        [Edge("a", "R", "b"), Edge("b", "R", "c"), Edge("d", "R", "e")],
    )
    index = DenseIndex.of_store(store, encoder, text=NodeText.documents())
    store.attach(index)
    encoder.encoded.clear()
    store.upsert([Node("b", name="bee")])
    assert sorted(encoder.encoded) == [
        "a\nR: bee",
        "bee\nR: c\nR of: a",
        "c\nR of: bee",
    ]
    encoder.encoded.clear()
    store.upsert(
        [Node("b", name="bee", text="It flies.")]
    )  # the same name: nobody else's text changes
    assert encoder.encoded == ["bee\nIt flies.\nR: c\nR of: a"]
    encoder.encoded.clear()
    store.upsert(edges=[Edge("a", "R", "e")])
    assert len(encoder.encoded) == 2
    encoder.encoded.clear()
    store.delete(["b"])
    assert sorted(encoder.encoded) == ["a\nR: e", "c"]


class Breaking:
    """An encoder that can be told to fail."""

    name = "breaking"
    dimension = 48

    def __init__(self, encoder: Any) -> None:
        self.encoder, self.down = encoder, False

    def encode_queries(self, texts: list[str]) -> Any:
        return self.encoder.encode_queries(texts)

    def encode_documents(self, texts: list[str]) -> Any:
        if self.down:
            raise ModelError("the encoder is down")
        return self.encoder.encode_documents(texts)


@pytest.mark.parametrize("filled", ["memory", "ladybug"], indirect=True)
def test_an_index_that_fails_leaves_everything_as_it_was(
    filled: Any, encoder: Any
) -> None:
    store, model = filled, Breaking(encoder)
    indexes = [
        BM25Index.of_store(store, text=NodeText.documents()),
        Linker.of_store(store).names,
        DenseIndex.of_store(store, model, text=NodeText.documents()),
    ]
    for index in indexes:
        store.attach(index)
    before = [state(index) for index in indexes], store.count()
    model.down = True
    for write in (
        lambda: store.upsert(
            [Node("new", name="apple")], [Edge("new", "LIKES", "n00")]
        ),
        lambda: store.upsert(edges=[Edge("n01", "LIKES", "n00", 3.0)]),
        lambda: store.delete([n.id for n in graph(1)[0]][:5]),
    ):
        with pytest.raises(ModelError):
            write()
        assert store.count() == before[1]
        assert store.get(["new"]) == [None]
        for index, known in zip(indexes, before[0], strict=True):
            for (ids, scores), (old_ids, old_scores) in zip(
                state(index), known, strict=True
            ):
                assert ids == old_ids
                np.testing.assert_array_equal(scores, old_scores)
    model.down = False
    store.upsert([Node("new", name="apple")], [Edge("new", "LIKES", "n00")])
    assert indexes[2].table.ids.tolist() == indexes[0].table.ids.tolist()


def test_a_detached_index_stays_as_it_is_and_a_refused_write_changes_none() -> None:
    store = MemoryStore()
    index = BM25Index.of_store(store, text=NodeText.documents())
    with pytest.raises(InvalidInput, match="or a Linker, got object"):
        store.attach(object())
    store.attach(index)
    store.attach(index)
    store.upsert([Node("a", name="Ann")])
    with pytest.raises(InvalidInput, match="there is no node"):
        store.upsert([Node("new", name="Ann")], [Edge("new", "LIKES", "nobody")])
    store.detach(index)
    store.upsert([Node("b", name="Bo")])
    assert index.search("Ann", 1).ids == index.table.ids.tolist() == ["a"]
