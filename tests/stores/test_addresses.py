"""A graph is opened by where it lives, or it is said what is wrong with the place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests_support import BALLPARKS

from graphret import storage
from graphret.errors import CorruptIndex, InvalidInput, NotAnIndex
from graphret.sage import SageGraph
from graphret.stores import MemoryStore, open_store
from graphret.stores.addresses import is_address, neo4j_login
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

if TYPE_CHECKING:
    pass

STORE = MemoryStore.of([Node("a", name="A"), Node("b")], [Edge("a", "R", "b")])


def test_a_graph_that_was_saved_and_that_of_another_method(tmp_path: Path) -> None:
    STORE.save(tmp_path / "graph")
    graph = SageGraph.build(BALLPARKS, encoder=None)
    graph.save(tmp_path / "sage")
    for where, saved in ((tmp_path / "graph", STORE), (str(tmp_path / "sage"), graph.store)):
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
    largest = max(folder.glob("gen-*/*.npy"), key=lambda path: (path.stat().st_size, path.name))
    monkeypatch.setattr(storage, "QUICK_BYTES", sum(p.stat().st_size for p in folder.glob("gen-*/*.npy")) - 1)
    content = largest.read_bytes()
    largest.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    open_store(folder)
    for check in (lambda: open_store(folder, verify=True), lambda: storage.verify(folder)):
        with pytest.raises(CorruptIndex, match=largest.name):
            check()
    largest.write_bytes(content[:-1])
    with pytest.raises(CorruptIndex, match="truncated"):
        open_store(folder)
    largest.write_bytes(content)
    other = min(folder.glob("gen-*/*.npy"), key=lambda path: (path.stat().st_size, path.name))
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
    with pytest.raises(InvalidInput, match="user"):
        open_store(tmp_path / "graph", user="me")


@pytest.mark.parametrize(
    "where",
    ["http://host", "ftp://user:secret@host", "neo4j+x://host", "bolt://", "bolt://h:port", "bolt://u:secret@h/a/b"],
)
def test_addresses_that_are_none(where: str) -> None:
    with pytest.raises(InvalidInput, match="address") as caught:
        open_store(where)
    assert "secret" not in str(caught.value)


ENVIRONMENT = {"NEO4J_USERNAME": "me", "NEO4J_PASSWORD": "pass", "NEO4J_DATABASE": "films"}


@pytest.mark.parametrize(
    ("address", "environment", "expected"),
    [
        ("bolt://host:7687", {}, ("bolt://host:7687", {})),
        ("neo4j+s://host", ENVIRONMENT, ("neo4j+s://host", {"auth": ("me", "pass"), "database": "films"})),
        ("bolt://you:p%40ss%2F@host", ENVIRONMENT, ("bolt://host", {"auth": ("you", "p@ss/"), "database": "films"})),
        ("bolt://you@host", ENVIRONMENT | {"NEO4J_DATABASE": ""}, ("bolt://host", {"auth": ("you", "")})),
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


def test_a_ladybug_file_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "graph of any name"
    with LadybugStore(path) as made:
        made.upsert([Node("a", name="A"), Node("b")], [Edge("a", "R", "b")])
    with open_store(path, read_only=True) as store:  # type: ignore[attr-defined]
        assert isinstance(store, LadybugStore)
        assert store.get(["a"]) == STORE.get(["a"])
        assert store.neighbors(["a"]) == STORE.neighbors(["a"])
