"""Random queries in Neo4j's words, and a graph with several labels for a node."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from graphret.types import Edge, Node

_LABELS = (("Paper",), ("Paper", "Survey"), ("Survey", "Paper"), ("Paper",))
NODES = [
    *(
        Node(
            f"p{i}",
            _LABELS[i % 4],
            f"{('Graph', 'Speech', 'Protein')[i % 3]} paper {i}",
            properties={
                "year": 2010 + i % 7,
                "cited": i * 5 % 4,
                "published": f"{2010 + i % 7}-0{1 + i % 9}-15",
            },
        )
        for i in range(14)
    ),
    *(Node(f"a{i}", ("Author",), f"author {i}") for i in range(4)),
    *(Node(f"f{i}", ("Field",), f"field {i}") for i in range(3)),
]
EDGES = [
    *(Edge(f"a{i % 3}", "WROTE", f"p{i}") for i in range(14)),
    *(Edge(f"a{i % 2 + 1}", "REVIEWED", f"p{i}") for i in range(0, 14, 3)),
    *(Edge(f"p{i}", "ABOUT", f"f{i % 3}") for i in range(11)),
    *(Edge(f"p{i}", "CITES", f"p{i * 3 % 5}") for i in range(5, 14)),
]
_PATTERNS = (
    "(p:Paper)",
    "(p:Survey)",
    "(a:Author)-[r:WROTE]->(p:Paper)",
    "(a:Author)-[r]->(p:Survey)",
    "(p:Paper)-[:ABOUT]->(:Field {name: 'field 1'})",
    "(:Paper)-[:CITES]->(p:Paper)",
    "(q:Survey)-[:CITES]->(p:Paper)",
    "(p:Paper WHERE p.year > 2011)-[:CITES]->(q:Paper)",
    "(a:Author)-[:WROTE]->(p:Paper)-[:ABOUT]->(f:Field)",
)
_CONDITIONS = (
    "p.year > 2012",
    "2011 < p.year <= 2014",
    "p.cited IN [0, 2]",
    "p.name CONTAINS 'Graph'",
    "toLower(p.name) STARTS WITH 'speech'",
    "EXISTS { (p)-[:CITES]->() }",
    "EXISTS { (p)-[:CITES]->(c:Survey) WHERE c.year > 2010 }",
    "NOT EXISTS { MATCH (p)<-[:CITES]-(c) RETURN c }",
    "exists((p)-[:ABOUT]->(:Field))",
    "COUNT { (p)--(:Survey) } > 1",
    "NOT (p)-[:CITES]->(:Survey)",
    "(p)<-[:REVIEWED]-()",
    "p:Survey",
    "'Survey' IN labels(p)",
    "date(p.published).year = 2013",
    "date(p.published) > date('2012-06-01') - duration('P1M')",
    "size([x IN [p.year, p.cited] WHERE x > 2]) > 1",
)
_VALUES = (
    "p",
    "p.name",
    "p.year",
    "p.cited",
    "substring(p.published, 0, 4)",
    "split(p.published, '-')[0]",
    "date(p.published).month",
    "toString(p.year)",
    "COUNT { (p)-[:CITES]->() }",
    "EXISTS { (p)-[:CITES]->(:Paper) }",
    "size([(p)<-[:WROTE]-(w:Author) | w])",
    "[x IN [3, 1, 2] WHERE x > 1 | x + p.cited]",
)
_AGGREGATES = (
    "count(*)",
    "count(DISTINCT p.year)",
    "sum(p.cited)",
    "avg(p.year)",
    "round(avg(p.cited))",
    "max(p.published)",
)


def random_query(rng: Random) -> str:
    """A query that reads; where it has a limit, an order of all rows is before it."""
    match = f"MATCH {rng.choice(_PATTERNS)}"
    if rng.random() < 0.7:
        conditions = rng.sample(_CONDITIONS, rng.randint(1, 3))
        joined = conditions[0]
        for condition in conditions[1:]:
            joined += f" {rng.choice(('AND', 'AND', 'OR', 'AND NOT'))} {condition}"
        match += f" WHERE {joined}"
    if rng.random() < 0.2:
        match += " OPTIONAL MATCH (p)-[:CITES]->(c:Survey)"
    values = rng.sample(_VALUES, rng.randint(1, 3))
    kind = rng.random()
    if kind < 0.25:  # groups
        keys = [one for one in values if one != "p"][:1]
        values = [*keys, rng.choice(_AGGREGATES)]
        named = ", ".join(f"{one} AS v{i}" for i, one in enumerate(values))
        return f"{match} RETURN {named}"
    if kind < 0.45:
        return f"{match} RETURN DISTINCT {', '.join(values)}"
    sign = rng.choice(("", " DESC"))
    page = rng.choice(("", " LIMIT 3", " SKIP 1 LIMIT 2"))
    if kind < 0.6:  # sorted before it is returned
        order = f"WITH DISTINCT p ORDER BY p.year{sign}, p.id"
        return f"{match} {order}{page} RETURN {', '.join(values)}"
    if kind < 0.8:
        order = f"ORDER BY p.year{sign}, p.id"
        return f"{match} WITH DISTINCT p RETURN {', '.join(values)} {order}{page}"
    return f"{match} RETURN {', '.join(values)}"


def comparable(rows: list[tuple[Any, ...]], columns: int, query: str) -> Any:
    """The rows of a query in its first columns; counted where it has no order."""
    plain = [tuple(map(_plain, row[:columns])) for row in rows]
    return plain if "ORDER BY" in query else Counter(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Node):
        return value.id
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return round(value, 6) if isinstance(value, float) else value
