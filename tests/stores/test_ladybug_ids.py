"""Nodes of tables that something else made, found by the ids that listing shows, of every type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphret.errors import StoreError
from graphret.stores.ladybug import LadybugStore
from graphret.types import Node

#: By type, ids, no two of which have one text.
IDS: dict[str, list[str]] = {
    "STRING": ["'a'", "'b c'"],
    "DATE": ["date('2020-01-02')", "date('0999-12-31')"],
    "UUID": ["uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')", "uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12')"],
    "BOOL": ["true", "false"],
    "DOUBLE": ["1.0 / 3", "0.5", "1e300", "-0.0", "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)"],
    "FLOAT": ["CAST(0.7 AS FLOAT)"],
    "TIMESTAMP": ["timestamp('2020-01-02 03:04:05.5')", "timestamp('2020-01-02 00:00:00')"],
    "TIMESTAMP_NS": ["'2021-01-02 03:04:05.123456789'"],
    "TIMESTAMP_TZ": ["'2020-01-02 03:04:05.25+02:00'"],
    "TIMESTAMP_MS": ["'2022-01-02 03:04:05.123'"],
    "TIMESTAMP_SEC": ["'2023-01-02 03:04:05'"],
    "INT8": ["-128", "0"],
    "INT16": ["-129"],
    "INT32": ["2"],
    "INT64": ["9223372036854775807"],
    "UINT8": ["255"],
    "UINT16": ["256"],
    "UINT32": ["4294967295"],
    "UINT64": ["18446744073709551615", "3"],
    "INT128": ["-170141183460469231731687303715884105727", "18446744073709551616"],
    "DECIMAL(10, 2)": ["1.25", "-3"],
    "DECIMAL(20, 0)": ["12345678901234567891"],
    "BLOB": [r"blob('\\xAA')", "blob('abc')"],
    "INTERVAL": ["interval('30 days')", "interval('1 day')"],
    "STRING[]": ["['x', 'y']"],
}  # fmt: skip
_NO_KEYS = ("BOOL", "INTERVAL", "STRING[]")
#: No node's ids.
_OTHERS = [
    *("", "x", "300", "-1", "007", "-0", "9" * 30, "9" * 5000, "²", "1e5", "0.25", "NaN", "true", "1.250", "[x, y]"),
    *("2020-02-30", "2020-1-2", "2020-01-02 03:04:05.5", "2020-01-02T03:04:05", "2020-13-02T03:04:05", "1 day"),
    *("2020-01-02T25:04:05+00:00", "abc", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
]  # fmt: skip


@pytest.fixture(scope="module", params=[True, False], ids=["key", "column"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LadybugStore]:
    """Nodes whose id is the key of their table or another column, each joined with itself and with the hub."""
    import ladybug

    path = tmp_path_factory.mktemp("ids") / "graph.lbug"
    kinds = [kind for kind in IDS if not request.param or kind not in _NO_KEYS]
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        connection.execute("CREATE NODE TABLE Hub(v STRING PRIMARY KEY)")
        connection.execute("CREATE (:Hub {v: 'hub'})")
        for n, kind in enumerate(kinds):
            columns = f"v {kind} PRIMARY KEY" if request.param else f"k INT64 PRIMARY KEY, v {kind}"
            connection.execute(f"CREATE NODE TABLE T{n}({columns})")
            for k, value in enumerate(IDS[kind]):
                own = "" if request.param else f"k: {k}, "
                connection.execute(f"CREATE (:T{n} {{{own}v: CAST({value} AS {kind})}})")
        pairs = ", ".join(f"FROM T{n} TO T{n}, FROM Hub TO T{n}" for n in range(len(kinds)))
        connection.execute(f"CREATE REL TABLE R({pairs})")
        for n in range(len(kinds)):
            connection.execute(f"MATCH (h:Hub), (a:T{n}) CREATE (h)-[:R]->(a), (a)-[:R]->(a)")
    with LadybugStore(path, id_property="v") as store:
        yield store


def listed(store: LadybugStore) -> list[Node]:
    return [node for block in store.nodes() for node in block]


def test_a_node_is_found_by_the_id_that_is_listed(store: LadybugStore) -> None:
    with store._reading() as (session, catalog):
        ids = sorted(store._ids(session, catalog, None))
    assert len({*ids}) == len(ids) > 30
    nodes = store.get(ids)
    assert [node and node.id for node in nodes] == ids
    assert listed(store) == nodes
    assert store.view({"id": {"$in": ids}}).get(ids) == nodes
    assert store.get(ids[:1]) == nodes[:1]


def test_edges_are_found_around_it(store: LadybugStore) -> None:
    ids = [node.id for node in listed(store) if node.id != "hub"]
    for direction, limit in (("out", None), ("both", 1), ("in", 2)):
        edges = store.neighbors(ids, direction=direction, limit=limit)
        assert {(e.source, e.target) for e in edges} >= {(i, i) for i in ids if limit is None or direction == "in"}
        assert {e.target for e in edges} == {*ids}
    assert [store.degree(one) for one in ids] == [3] * len(ids)
    assert all(store.incidence(one) is not None for one in ids[::6])
    assert {edge.target for edge in store.neighbors(["hub"])} == {*ids}


def test_what_no_node_is_listed_by_finds_none(store: LadybugStore) -> None:
    known = {node.id for node in listed(store)}
    others = [text for text in _OTHERS if text not in known]
    assert store.get(others) == [None] * len(others)
    assert store.neighbors(others) == []


def test_none_is_taken_away(store: LadybugStore) -> None:
    with pytest.raises(StoreError, match="only read"):
        store.delete(["2020-01-02"])


def test_the_edges_of_a_hub_are_cut_whatever_its_id(tmp_path: Path) -> None:
    import ladybug

    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE A(v DATE PRIMARY KEY)",
            "CREATE NODE TABLE B(k INT64 PRIMARY KEY, v UUID)",
            "CREATE REL TABLE R(FROM A TO B, weight DOUBLE)",
            "CREATE (:A {v: date('2020-01-01')}), (:A {v: date('2020-01-02')})",
            "UNWIND range(1, 300) AS k CREATE (:B {k: k, v: gen_random_uuid()})",
            "MATCH (a:A), (b:B) CREATE (a)-[:R {weight: CASE WHEN b.k = 7 THEN 2.0 ELSE 1.0 END}]->(b)",
        ):
            connection.execute(statement)
    with LadybugStore(path, read_only=True, id_property="v") as store:
        days = ["2020-01-01", "2020-01-02"]
        edges = store.neighbors(days)
        assert len(edges) == 600
        for day in days:
            first = sorted((e for e in edges if e.source == day), key=lambda e: (-e.weight, e.target))[:3]
            assert sorted(first, key=lambda e: e.target) == store.neighbors([day], limit=3)
        assert len(store.neighbors(days, limit=3)) == 6
