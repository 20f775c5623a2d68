"""What a store knows of its own writes to Neo4j."""

from __future__ import annotations

import base64

import neo4j
import pytest

from graphret.stores.changes import Written
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.journal import Journal, Position, position
from graphret.types import Edge, Node

DATABASE = bytes(range(16))


def bookmark(number: bytes, database: bytes = DATABASE, after: bytes = b"\x90") -> str:
    return "FB:" + base64.b64encode(b"\x91\xcc\x10" + database + number + after).decode()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (b"\x03", 3),
        (b"\x7f", 127),
        (b"\xc9\x00\x8e", 142),
        (b"\xca\x00\x01\x00\x00", 65_536),
        (b"\xcb\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32),
    ],
)
def test_a_transaction_has_a_number(number: bytes, expected: int) -> None:
    assert position([bookmark(number)]) == Position(DATABASE, expected)
    assert position([bookmark(number), bookmark(b"\x02")]) == Position(DATABASE, expected)


@pytest.mark.parametrize(
    "bookmarks",
    [
        None,
        [],
        ["neo4j:00000000-0000-0000-0000-000000000001:12"],
        ["FB:"],
        ["FB:not base64"],
        [bookmark(b"\x03", after=b"")],
        [bookmark(b"\x03", after=b"\x91\x01")],
        [bookmark(b"\xc9\x00")],
        [bookmark(b"\x03"), bookmark(b"\x04", bytes(16))],
        [bookmark(b"\x03"), "another"],
    ],
)
def test_of_other_bookmarks_nothing_is_known(bookmarks: list[str] | None) -> None:
    assert position(bookmarks) is None


def test_a_write_is_known_as_ones_own_where_there_is_no_room_for_another() -> None:
    at = [Position(DATABASE, number) for number in range(200)]
    journal, one, two = Journal(), Written.of(["a"]), Written.of(deletes=["b"])
    journal.wrote(at[1], at[2], one)
    journal.wrote(at[2], at[4], Written.of(["hidden behind that of another"]))
    journal.wrote(at[4], at[5], two)
    journal.wrote(at[5], at[6], None)
    journal.wrote(at[6], at[6], Written.of(["nothing was written"]))
    assert journal.since(at[1], at[2]) == one
    assert journal.since(at[2], at[2]) == Written()
    assert journal.since(at[4], at[5]) == two
    for before, now in ((1, 4), (2, 3), (2, 5), (4, 6), (5, 4)):
        assert journal.since(at[before], at[now]) is None
    assert journal.since(Position(bytes(16), 1), at[2]) is None
    assert journal.since(None, at[2]) is None
    for number in range(10, 180):
        journal.wrote(at[number], at[number + 1], one)
    assert journal.since(at[170], at[180]) == one
    assert journal.since(at[1], at[2]) is None  # so long ago


def test_a_store_tells_what_it_wrote_and_not_what_another_did(neo4j_empty: neo4j.Driver, neo4j_uri: str) -> None:
    with Neo4jStore(neo4j_uri) as store, Neo4jStore(neo4j_uri) as other:
        store.upsert([Node("a", ("Film",), "A"), Node("b", ("Film",), "B")], [Edge("a", "NEAR", "b")])
        state = store.state()
        store.upsert([Node("a", ("Film",), "Another")])
        store.delete_edges([Edge("a", "NEAR", "b")])
        assert store.written(state) == Written.of(["a"], [Edge("a", "NEAR", "b")])
        assert store.view({"label": "Film"}).written(state) == store.written(state)
        state = store.state()
        other.upsert([Node("b", ("Film",), "from elsewhere")])
        assert store.written(state) == Written()  # nobody asked since
        store.count()
        assert store.written(state) is None
        state = store.state()
        other.delete(["b"])
        store.upsert([Node("a", ("Film",), "at the same time")])
        assert store.written(state) is None
