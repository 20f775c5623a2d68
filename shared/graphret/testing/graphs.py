"""Graphs, values, names and conditions to test stores with, and what to expect."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from graphret.schema import GraphSchema
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

_ROWS = ("source_row", "target_row")

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

_TEXTS = [
    "'\"`\\'",
    " \t two\u00a0 \r\n\tthree \n",
    "\ufeffÅngström 東京 🎬 \u202e e\u0301",
    "007",
    "",
]
_NUMBERS = [2**53, -(2**53), 0.1, 3.0, -1.7976931348623157e308, True]
_LISTS: list[Any] = [["a", "", "ü"], [1, -2, 2**40], [0.5, 1.0], [True, False], []]
#: Values that every store holds exactly, each with a name.
VALUES: dict[str, Any] = {
    f"value {i:02}": value for i, value in enumerate([*_TEXTS, *_NUMBERS, *_LISTS])
}

#: Properties that no store takes.
NO_JSON: list[dict[Any, Any]] = [
    {"value": value} for value in (float("nan"), [1.0, float("inf")], {1}, b"x")
]

#: Names that a careless store obeys, cuts or confuses.
HOSTILE = [
    "two words",
    "dot.ted",
    "with `backtick`",
    'it\'s "quoted"',
    "trailing\\",
    "line\nbreak",
    "Ünïcode 東京 🎬",
]
HOSTILE += [
    "\\u0060) DETACH DELETE n //",
    "`) DETACH DELETE (n) //",
    "'}) MATCH (n) DETACH DELETE n //",
]
HOSTILE += ["$where0", "{0} %s", "/* comment */ --", "null", "MATCH", "n" * 1_000]

_CONDITIONS: dict[str, list[Any]] = {
    "age": [
        30,
        "30",
        None,
        {"$ne": 30},
        {"$ne": None},
        {"$gt": 20, "$lte": 40},
        {"$lt": 25.5},
        {"$exists": False},
    ],
    "absent": [1, {"$ne": 1}],
    "city": [{"$gt": "Ghent"}, {"$contains": "o"}, {"$icontains": "O"}],
    "tags": ["red", {"$contains": "red"}, {"$icontains": "red"}],
    "score": [1],
    "active": [True, 1, {"$ne": True}],
    "label": ["Person", {"$ne": "Person"}, {"$nin": ["Film", "Actor"]}],
    "id": [{"$lt": "n10"}],
    "name": [{"$contains": "1"}, {"$icontains": "N1"}],
    "text": [{"$ne": ""}],
    "properties.name": ["inner", {"$exists": False}],
    "properties.age": [{"$in": [10, 20, "30", None]}, {"$nin": [10, 20]}, {"$in": []}],
    "$or": [[{"age": 30}, {"city": "Oslo"}]],
    "$and": [
        [
            {"$not": {"city": "Oslo"}},
            {"$or": [{"active": True}, {"absent": {"$exists": True}}]},
        ]
    ],
    "$not": [{"age": {"$gt": 20}}, {"absent": {"$gt": 1}}],
}
#: Conditions of every kind, over the properties of `random_graph`.
CONDITIONS: list[dict[str, Any]] = [
    {name: operand} for name, operands in _CONDITIONS.items() for operand in operands
]


def random_graph(
    seed: int, n_nodes: int = 40, n_edges: int = 160
) -> tuple[list[Node], list[Edge]]:
    """Return nodes with all kinds of properties, and edges with loops and parallels.

    Some edges have equal weights.
    """
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
        node_properties = {
            key: value for key, value in properties.items() if rng.random() < 0.7
        }
        labels = rng.choice(
            [("Person",), ("Film",), ("Person", "Actor"), ("Actor", "Person"), ("Tag",)]
        )
        nodes.append(
            Node(
                f"n{i}",
                labels,
                f"name {i}",
                rng.choice(["", f"text of {i}"]),
                node_properties,
            )
        )
    edges: dict[tuple[Any, ...], Edge] = {}
    for _ in range(n_edges):
        source, target = rng.choice(nodes).id, rng.choice(nodes).id
        relation = rng.choice(["KNOWS", "LIKES", "MADE"])
        rows = {"source_row": rng.randint(0, 2)} if rng.random() < 0.2 else {}
        about = {"since": rng.randint(1990, 2020)} if rng.random() < 0.5 else {}
        weight = rng.choice([0.25, 0.5, 1.0, 1.0, 2.0])
        edges[source, relation, target, rows.get("source_row")] = Edge(
            source, relation, target, weight, rows | about
        )
    return nodes, list(edges.values())


def two_tenants() -> tuple[
    tuple[list[Node], list[Edge]], tuple[list[Node], list[Edge]]
]:
    """Return a graph of the tenant ``y`` by id, and one of ``x`` linked to it."""
    nodes, edges = random_graph(3)
    nodes = sorted(
        (replace(n, properties={**n.properties, "tenant": "y"}) for n in nodes),
        key=lambda node: node.id,
    )
    secret_nodes = [
        Node(f"secret-{i}", ("Secret",), "hush", "hush", {"tenant": "x", "hidden": i})
        for i in range(5)
    ]
    secret_edges = [
        Edge(nodes[i].id, "GUARDS", node.id, 9.0, {"code": i})
        for i, node in enumerate(secret_nodes)
    ]
    secret_edges.append(Edge("secret-0", "LIKES", nodes[0].id, 9.0))
    return (nodes, edges), (secret_nodes, secret_edges)


#: The place of an edge in the order that stores keep.
edge_key = attrgetter("identity")


def expected_neighbors(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    ids: Sequence[str],
    *,
    relations: Collection[str] | None = None,
    labels: Collection[str] | None = None,
    where: WhereLike = None,
    direction: str = "both",
    limit: int | None = None,
) -> list[Edge]:
    """Return what `GraphStore.neighbors` must: the contract's words, edge by edge."""
    by_id, condition = {node.id: node for node in nodes}, Where.parse(where)

    def fits(node_id: str) -> bool:
        node = by_id[node_id]
        return (labels is None or not set(labels).isdisjoint(node.labels)) and (
            condition is None or condition.matches(node)
        )

    chosen: set[int] = set()
    for anchor in dict.fromkeys(i for i in ids if i in by_id):
        touching = [
            i
            for i, edge in enumerate(edges)
            if (relations is None or edge.relation in relations)
            and (
                (direction != "in" and edge.source == anchor and fits(edge.target))
                or (direction != "out" and edge.target == anchor and fits(edge.source))
            )
        ]
        touching.sort(key=lambda i: (-edges[i].weight, edge_key(edges[i])))
        chosen.update(touching[:limit])
    return sorted((edges[i] for i in chosen), key=edge_key)


def check_schema(
    schema: GraphSchema, nodes: Sequence[Node], edges: Sequence[Edge]
) -> None:
    """Check a schema against the graph: complete unless it says so, nothing made up."""
    counted = Counter(label for node in nodes for label in set(node.labels))
    under = {node.id: (*set(node.labels),) or ("",) for node in nodes}
    triples = Counter(
        (s, e.relation, t)
        for e in edges
        for s in under[e.source]
        for t in under[e.target]
    )
    labels = {label: n for label, n in schema.labels.items() if n}
    relations = {triple: n for triple, n in schema.relations.items() if n}
    assert labels == counted
    assert (
        relations == triples
        if not schema.sampled
        else relations.keys() <= triples.keys()
    )
    doubtful = schema.sampled_relations
    assert {t for t in triples if t[1] not in doubtful} == {
        t for t in relations if t[1] not in doubtful
    }
    for label in counted.keys() - schema.sampled_properties:
        present = {
            key for node in nodes if label in node.labels for key in node.properties
        }
        assert (
            present - {"name"} <= schema.properties.get(label, {}).keys()
        )  # a store may call that one otherwise
    for relation in {
        edge.relation for edge in edges
    } - schema.sampled_relation_properties:
        present = {
            key
            for edge in edges
            if edge.relation == relation
            for key in edge.properties
        } - set(_ROWS)
        assert present <= schema.relation_properties.get(relation, {}).keys()


def all_nodes(store: GraphStore, **options: Any) -> list[Node]:
    return [node for block in store.nodes(**options) for node in block]


def all_edges(store: GraphStore, **options: Any) -> list[Edge]:
    """Return the edges of a store in one list, in order."""
    return sorted(
        (edge for block in store.edges(**options) for edge in block), key=edge_key
    )
