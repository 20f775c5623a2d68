"""Idioms of Neo4j on Ladybug, and of its earlier versions on Neo4j 5: what
`translation/ladybug.tsv` lists runs, finds what it says, and says how it was changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.cypher import check, run_checked
from graphret.cypher.edits import is_ordered
from graphret.cypher.translation import translate
from graphret.errors import QueryRefused
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

_AGES = {"ann": 20, "bob": 21, "cy": 22, "dee": 23}
_ORDERS = {
    "o1": ("ann", 10.0, "2023-01-01"),
    "o2": ("ann", 20.0, "2023-05-01"),
    "o3": ("bob", 40.0, "2024-01-15"),
    "o4": ("cy", 30.0, "2024-02-01"),
    "o5": ("cy", 50.5, "2024-05-20"),
}
NODES = [
    *(Node(id, ("Customer",), id, "", {"age": age}) for id, age in _AGES.items()),
    *(
        Node(id, ("Order",), id, "", {"total": total, "date": date})
        for id, (_, total, date) in _ORDERS.items()
    ),
    Node("w1", ("Director", "Writer"), "One", properties={"age": 40}),
    Node("w2", ("Writer",), "Two", properties={"age": 50}),
    Node("w3", ("Actor", "Writer", "Director", "Editor"), "Three"),
    *(Node(id, ("Movie",), id) for id in ("m1", "m2")),
]
EDGES = [
    *(Edge(customer, "PLACED", id) for id, (customer, _, _) in _ORDERS.items()),
    Edge("ann", "KNOWS", "bob"),
    Edge("bob", "KNOWS", "cy"),
    Edge("m1", "WRITTEN_BY", "w1"),
    Edge("m1", "WRITTEN_BY", "w2"),
    Edge("m2", "WRITTEN_BY", "w3"),
    Edge("m2", "DIRECTED_BY", "w1"),
]
_TABLE = Path(__file__).parent / "translation" / "ladybug.tsv"
CASES = [line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def store() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        yield store


def said(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize(("query", "found", "note"), CASES)
def test_an_idiom_of_neo4j_finds_the_same_or_is_refused(
    store: LadybugStore,
    query: str,
    found: str,
    note: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="graphret.cypher.execution")
    schema = store.schema()
    if found == "refused":
        with pytest.raises(QueryRefused):
            run_checked(store, query, schema=schema)
        return
    rows = run_checked(store, query, schema=schema).rows
    assert " ".join(said(row[0]) for row in rows) == found
    assert note in caplog.text


def test_a_label_finds_who_bears_it_after_a_write_too() -> None:
    with LadybugStore(":memory:") as store:
        query = "MATCH (w:Writer) RETURN w.id ORDER BY w.id"
        store.upsert([Node("a", ("Writer",))])
        assert run_checked(store, query).rows == [("a",)]
        store.upsert([Node("b", ("Director", "Writer"))])
        assert run_checked(store, query).rows == [("a",), ("b",)]


def test_the_schema_counts_relations_by_each_label(store: LadybugStore) -> None:
    relations = store.schema().relations
    assert relations["Movie", "WRITTEN_BY", "Writer"] == 3
    assert relations["Movie", "WRITTEN_BY", "Director"] == 2
    assert relations["Movie", "WRITTEN_BY", "Editor"] == 1


def test_nothing_gets_past_the_guard_by_a_rewrite(store: LadybugStore) -> None:
    hidden = (
        "MATCH (c:Customer) WHERE EXISTS((c)-->()) DETACH DELETE c",
        "MATCH (c:Customer) RETURN [x IN [1] | nextval('s')]",
        "CALL { MATCH (w:Writer) DELETE w } RETURN datetime()",
        "MATCH (w:Writer) RETURN type(w); MATCH (n) DELETE n",
    )
    for query in hidden:
        with pytest.raises(QueryRefused):
            run_checked(store, query, schema=store.schema())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "MATCH (a) WHERE size((a)-->()) > 1 RETURN a LIMIT 1",
            "MATCH (a) WHERE COUNT { (a)-->() } > 1 RETURN a LIMIT 1",
        ),
        (
            "MATCH (a) WHERE exists(a.name) RETURN a LIMIT 1",
            "MATCH (a) WHERE (a.name IS NOT NULL) RETURN a LIMIT 1",
        ),
    ],
)
def test_what_neo4j_had_before_version_5_is_rewritten(old: str, new: str) -> None:
    assert not check(old).ok
    translated = translate(check(old), check)
    assert (translated.report.query, translated.report.ok) == (new, True)
    assert translated.notes


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("MATCH (a) RETURN a ORDER BY a.x", True),
        ("MATCH (a) WITH a ORDER BY a.x RETURN a", True),
        ("MATCH (a) WITH a ORDER BY a.x LIMIT 3 WITH a WHERE a.y > 1 RETURN a", True),
        ("MATCH (a) WITH a ORDER BY a.x MATCH (a)-->(b) RETURN b", False),
        ("MATCH (a) WITH a ORDER BY a.x RETURN DISTINCT a", False),
        ("MATCH p = (a)-[*1..3]-(b) RETURN nodes(p)", True),
        ("MATCH p = (a)-[*1..3]-(b) RETURN [n IN nodes(p) | n.name] AS names", True),
        ("MATCH p = (a)-[*1..3]-(b) RETURN p", True),
        ("MATCH p = (a)-[*1..3]-(b) RETURN b", False),
        ("MATCH (a) RETURN a", False),
    ],
)
def test_a_query_says_its_order(query: str, ordered: bool) -> None:
    assert is_ordered(check(query).tree) is ordered
