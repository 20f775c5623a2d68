"""Graphs, values, names and conditions on which the contract suites try a store."""

from __future__ import annotations

import random
from typing import Any

from graphret.types import Edge, Node

NODES = [
    Node("ada", ("Person", "Author"), "Ada Lovelace", "", {"born": 1815}),
    Node("babbage", ("Person",), "Charles Babbage", "", {"born": 1791}),
    Node("engine", ("Machine",), "Analytical Engine"),
    Node("notes", ("Text",), "Notes", "on the engine"),
]
EDGES = [
    Edge("ada", "WROTE", "notes", 1.0, {"year": 1843}),
    Edge("babbage", "DESIGNED", "engine", 2.0),
    Edge("notes", "ABOUT", "engine", 0.5, {"source_row": 3}),
    Edge("ada", "KNEW", "babbage"),
]

#: Values that every store holds exactly.
VALUES: dict[str, Any] = {
    "text": "plain",
    "empty text": "",
    "quotes": "'\"`\\'",
    "white space": " \t two\u00a0 \n",
    "lines": "one\ntwo\r\n\tthree",
    "unicode": "Ångström 東京 🎬 \u202e",
    "number as text": "007",
    "integer": 42,
    "large integer": 2**53,
    "lowest integer": -(2**53),
    "float": 0.1,
    "whole float": 3.0,
    "large float": -1.7976931348623157e308,
    "true": True,
    "false": False,
    "texts": ["a", "", "ü"],
    "integers": [1, -2, 2**40],
    "floats": [0.5, 1.0],
    "booleans": [True, False],
    "no items": [],
}


#: Texts that a careless store trims, joins or normalises.
TEXTS = [
    "  led and trailed  ",
    "\n",
    "line\nbreak\r\n",
    "\ttab\t",
    "\u00a0no break\u00a0",
    "\ufeffmark",
    "e\u0301 \u00e9",
    " ",
]

#: Properties that no store takes.
NO_JSON: list[dict[Any, Any]] = [
    {"value": float("nan")},
    {"value": [1.0, float("inf")]},
    {"value": {1}},
    {"value": b"x"},
    {"value": {1: "x"}},
    {1: "x"},
]

#: Names that a careless store obeys, cuts or confuses.
HOSTILE = [
    "two words",
    "dot.ted",
    "with `backtick`",
    'it\'s "quoted"',
    "trailing\\",
    "\\u0060) DETACH DELETE n //",
    "`) DETACH DELETE (n) //",
    "'}) MATCH (n) DETACH DELETE n //",
    "; MATCH (n) DETACH DELETE n;",
    "$where0",
    "{0} %s",
    "/* comment */ --",
    "line\nbreak",
    "naïve Ünïcode 東京 🎬",
    "\u202eright to left",
    "null",
    "MATCH",
    "n" * 1_000,
]

#: Conditions of every kind, over the properties of `random_graph`.
CONDITIONS: list[dict[str, Any]] = [
    {"age": 30},
    {"age": {"$ne": 30}},
    {"age": {"$gt": 20, "$lte": 40}},
    {"age": {"$lt": 25.5}},
    {"age": "30"},
    {"age": {"$in": [10, 20, "30", None]}},
    {"age": {"$nin": [10, 20]}},
    {"age": {"$in": []}},
    {"age": {"$nin": []}},
    {"age": None},
    {"age": {"$ne": None}},
    {"age": {"$exists": True}},
    {"age": {"$exists": False}},
    {"absent": {"$exists": False}},
    {"absent": 1},
    {"absent": {"$ne": 1}},
    {"city": "Ghent"},
    {"city": {"$gt": "Ghent"}},
    {"city": {"$contains": "o"}},
    {"city": {"$contains": ""}},
    {"tags": {"$contains": "red"}},
    {"tags": "red"},
    {"score": {"$gte": 0.5}},
    {"score": 1},
    {"active": True},
    {"active": {"$ne": True}},
    {"active": 1},
    {"label": "Person"},
    {"label": {"$ne": "Person"}},
    {"label": {"$in": ["Film", "Actor"]}},
    {"label": {"$nin": ["Film", "Actor"]}},
    {"id": {"$lt": "n10"}},
    {"name": "name 3"},
    {"name": {"$contains": "1"}},
    {"text": {"$ne": ""}},
    {"properties.name": "inner"},
    {"properties.name": {"$exists": False}},
    {"properties.age": 30},
    {"$or": [{"age": 30}, {"city": "Oslo"}]},
    {"$not": {"age": {"$gt": 20}}},
    {"$and": [{"$not": {"city": "Oslo"}}, {"$or": [{"active": True}, {"absent": {"$exists": True}}]}]},
    {"$not": {"absent": {"$gt": 1}}},
]


def random_graph(seed: int, n_nodes: int = 40, n_edges: int = 160) -> tuple[list[Node], list[Edge]]:
    """Return nodes with properties of every kind, and edges with loops, parallels and equal weights."""
    rng = random.Random(seed)
    nodes = []
    for i in range(n_nodes):
        properties = {
            "age": rng.choice([10, 20, 25, 30, 40]),
            "city": rng.choice(["Ghent", "Oslo", "Porto", ""]),
            "tags": rng.choice([["red"], ["red", "blue"], ["blue", "red"], []]),
            "score": rng.choice([0.25, 0.5, 1.0]),
            "active": rng.random() < 0.5,
            "name": rng.choice(["inner", "outer"]),
        }
        kept = {key: value for key, value in properties.items() if rng.random() < 0.7}
        labels = rng.choice([("Person",), ("Film",), ("Person", "Actor"), ("Actor", "Person"), ("Tag",)])
        nodes.append(Node(f"n{i}", labels, f"name {i}", rng.choice(["", f"text of {i}"]), kept))
    found: dict[tuple[Any, ...], Edge] = {}
    for _ in range(n_edges):
        source, target = rng.choice(nodes).id, rng.choice(nodes).id
        relation = rng.choice(["KNOWS", "LIKES", "MADE"])
        rows = {"source_row": rng.randint(0, 2)} if rng.random() < 0.2 else {}
        about = {"since": rng.randint(1990, 2020)} if rng.random() < 0.5 else {}
        weight = rng.choice([0.25, 0.5, 1.0, 1.0, 2.0])
        found[source, relation, target, rows.get("source_row")] = Edge(source, relation, target, weight, rows | about)
    return nodes, list(found.values())
