"""`run_checked` on real databases: the guard first, then the database's own word, then
a read within limits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphret.cypher import arun_checked, check, run_checked
from graphret.errors import InvalidInput, QueryRefused, QueryTimeout
from graphret.stores import LadybugStore, MemoryStore, Neo4jStore
from graphret.types import Edge, Node

PEOPLE = [
    Node(name, ("Person",), name.title(), properties={"age": age})
    for name, age in (("ann", 40), ("bob", 50))
]
NAMES = "MATCH (p:Person) RETURN p.name AS name ORDER BY p.age LIMIT 10"


@pytest.fixture
def store(database: Any) -> Any:
    database.upsert(PEOPLE, [Edge("ann", "knows", "bob")])
    return database


def test_rows_and_caps_on_them_and_on_time(store: Any) -> None:
    rows = run_checked(store, NAMES)
    assert (rows.columns, rows.rows, rows.truncated) == (
        ["name"],
        [("Ann",), ("Bob",)],
        False,
    )
    query = (
        "MATCH (p:Person)-[:knows]->(q:Person) WHERE q.age > $age RETURN p.name, q.age"
        " LIMIT 3"
    )
    assert run_checked(store, query, {"age": 45}, schema=store.schema()).rows == [
        ("Ann", 50)
    ]
    rows = run_checked(store, "UNWIND range(1, 50) AS x RETURN x", max_rows=20)
    assert (len(rows), rows.truncated) == (20, True)
    slow = (
        "UNWIND range(1, 30000) AS a UNWIND range(1, 30000) AS b WITH a + b AS c WHERE"
        " c < 0 RETURN count(c) AS n"
    )
    with pytest.raises(QueryTimeout):
        run_checked(store, slow, timeout=0.3, most_iterations=10**9)
    assert len(run_checked(store, NAMES)) == 2


def test_a_query_that_was_checked_before(store: Any) -> None:
    report = check(NAMES, store.schema(), dialect=store.dialect)
    assert run_checked(store, report).rows == [("Ann",), ("Bob",)]
    with pytest.raises(QueryRefused, match="refused"):
        run_checked(store, check("CREATE (p:Person)", dialect=store.dialect))
    with pytest.raises(InvalidInput, match="dialect"):
        run_checked(store, replace(report, dialect="other"))


def test_what_the_guard_the_database_and_a_view_refuse(store: Any) -> None:
    with pytest.raises(QueryRefused, match="Persn") as refused:
        run_checked(store, NAMES.replace("Person", "Persn"), schema=store.schema())
    assert [(e.kind, e.suggestions) for e in refused.value.report.errors] == [
        ("unknown-label", ("Person",))
    ]
    with pytest.raises(QueryRefused, match="SET") as refused:
        run_checked(store, "MATCH (p:Person) SET p.age = 1")
    assert refused.value.report.query == "MATCH (p:Person) SET p.age = 1"
    assert run_checked(store, "MATCH (p:Person) WHERE p.age = 1 RETURN p").rows == []
    for wrong in ("substring(p.name)", "toInteger(p.name, 1, 2) + date('nonsense')"):
        with pytest.raises(QueryRefused):
            run_checked(store, f"MATCH (p:Person) RETURN {wrong} LIMIT 1")
    for query in (NAMES, "RETURN 1 AS one"):
        with pytest.raises(QueryRefused):
            run_checked(store.view({"age": 40}), query)


def test_limits_and_stores_that_are_refused() -> None:
    class Store(MemoryStore):
        dialect = "neo4j"

    for options, said in (
        ({"timeout": 0}, "timeout"),
        ({"timeout": None}, "timeout"),
        ({"max_rows": 0}, "limit"),
    ):
        with pytest.raises(InvalidInput, match=said):
            run_checked(Store(), "RETURN 1 AS one", **options)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"expected one that runs Cypher.* got MemoryStore"
    ):
        run_checked(MemoryStore(), "RETURN 1")  # type: ignore[arg-type]


def test_the_database_has_the_last_word(neo4j_empty: Any) -> None:
    """A procedure that the caller lets in, and that writes: the server's EXPLAIN says
    so, and nothing runs.
    """
    store = Neo4jStore.from_driver(neo4j_empty)
    with pytest.raises(QueryRefused, match=r"of type 'r?w'") as refused:
        run_checked(
            store, "CALL db.createLabel('Pwned')", procedures=["db.createLabel"]
        )
    assert refused.value.report.ok
    with pytest.raises(QueryRefused, match=r"db\.createLabel"):
        run_checked(store, "CALL db.createLabel('Pwned')")
    assert "Pwned" not in [
        row["label"] for row in neo4j_empty.execute_query("CALL db.labels()").records
    ]


async def test_a_query_can_be_awaited_and_what_ladybug_cannot_stop_ends_with_its_time_out(
    tmp_path: Path,
) -> None:
    with LadybugStore(tmp_path / "graph.lbug") as ladybug:
        assert (
            await arun_checked(ladybug, "RETURN $n AS n", {"n": 1}, timeout=5.0)
        ).rows == [(1,)]
        with pytest.raises(QueryRefused) as refused:
            await arun_checked(ladybug, "MATCH (p:Person) DETACH DELETE p")
        assert refused.value.report.errors
        with pytest.raises(QueryTimeout, match="killed"):
            run_checked(
                ladybug,
                "RETURN size(range(1, 2000000000)) AS x",
                timeout=2.0,
                most_iterations=10**15,
            )
        assert run_checked(ladybug, "RETURN 1 AS x").rows == [(1,)]
