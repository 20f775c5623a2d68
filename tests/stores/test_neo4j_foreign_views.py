"""Random graphs that something else wrote, with values of every type that Neo4j stores: filters and views of them.

What a condition selects and a view shows is held against a `MemoryStore` of what the store itself reads.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from graphret.errors import InvalidInput
from graphret.stores import MemoryStore, Neo4jStore
from graphret.stores.neo4j import FOREIGN, LLAMA_INDEX, Layout, Neo4jWhere
from graphret.types import Edge, Node
from graphret.where import Where

if TYPE_CHECKING:
    import neo4j

pytestmark = pytest.mark.neo4j(weight=20)

#: Literals of Cypher by type; the graphs have lists of each, too.
VALUES = {
    "string": r"""'' 'a' 'A' 'é' 'ab' '\u0020' '1' '1.0' 'true' 'null' 'NaN' '-Infinity' '2020-01-01' 'P1D'
    '[1]' '{"a":1}' 'a.b' '`' '\u0000' '\ue000' '😀x' '\uffee' 'e\u0301' '10:00:00Z'""",
    "integer": "0 1 -1 2020 255 7203 9007199254740993 9223372036854775807 -9223372036854775808",
    "float": """0.0 -0.0 1.0 1.5 0.1 2020.0 4.9e-324 1e308 1e21 9007199254740992.0 9.223372036854775807e18
    0.0/0 1/0.0 -1/0.0""",
    "boolean": "true false",
    "date": "date('2020-01-01') date('0000-12-31') date('-0044-03-15') date('+10000-01-01') date('9999-12-31')",
    "time": "time('10:00Z') time('10:00:01.5+01:00') time('23:59:59.999999999-12:00') time('10:00-03:30')",
    "local time": "localtime('10:00') localtime('00:00:00.000000001') localtime('23:59:59.120')",
    "datetime": """datetime('2020-01-01T00:00Z') datetime('2020-07-01T00:00[Europe/Berlin]')
    datetime('2020-01-01T00:00:00.5+05:30') datetime('2020-01-01T10:00-00:30') datetime('2020-01-01T00:00[UTC]')
    datetime('-0500-06-01T12:00[Europe/London]') datetime('1800-01-01T00:00[America/St_Johns]')
    datetime('+12000-07-01T12:00[Asia/Tokyo]') datetime('2020-10-25T02:30+01:00[Europe/Berlin]')""",
    "local datetime": "localdatetime('2020-01-01T00:00') localdatetime('-0044-03-15T10:00:00.000001')",
    "duration": "duration('P1Y2M3DT4H5M6.789S') duration('PT0S') duration('PT-0.5S') duration('P1M-1DT-1S')",
    "point": "point({x:1,y:2}) point({x:-0.0,y:1e308})",
    "point 3D": "point({x:1,y:2,z:3}) point({x:0,y:1.5,z:-0.0})",
    "place": "point({longitude:12.5,latitude:50.1})",
    "place 3D": "point({longitude:1,latitude:2,height:3})",
    "bytes": "$empty $bytes",
}
BYTES = {"empty": b"", "bytes": b"a\x00\x7f\x80\xff"}
NAMES = [
    *("a", "b", "a.b", "a.x", "at", "at.srid", "x", "name", "title", "text", "id", "label", "embedding", "graphret_x"),
    *("properties.name", "properties.a", "properties.at.x", "odd `key`", "\\u0061", ".", "$eq", "\U0001f600"),
]
LABELS = ["A", "B", "odd `label`", "__Node__", "_Bloom_Perspective_", "É"]
RELATIONS = ["R", "odd `relation`"]
WEIGHTS = ["null", "0.5", "2", "-1.5", "3", "'4'", "true", "0.0/0", "1/0.0", "date('2020-01-01')", "[5.0]"]
LAYOUTS = {
    "elements": FOREIGN,
    "ids": replace(FOREIGN, id="id"),
    "others": replace(FOREIGN, id="sku", name=("at", "a"), text=("odd `key`",), label="A", hidden=("embedding", "b")),
    "llama-index": LLAMA_INDEX,
}
#: Operands that stand near what is stored, and are of another type, beyond 64 bits, or no text at all.
NEAR: list[Any] = [
    *(None, True, False, 0, 1, 1.0, -0.0, 0.5, "", "a", "2020", "Infinity", "NaN", 2**53 + 1, 2**63, -(2**70), 10**400),
    *(math.inf, math.nan, "\ud800", "a\0", "\uffff", "\U00010000", [], [None], [1, None], [[1]], ["a", 1], [1.0], [97]),
]
OPERATORS = ["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$contains", "$exists"]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def literal(r: random.Random) -> str:
    kind = r.choice(list(VALUES))
    values = VALUES[kind].split()
    if kind == "bytes" or r.random() < 0.7:
        return r.choice(values)
    return f"[{','.join(r.choices(values, k=r.choice([0, 1, 2, 3])))}]"


def filled(driver: neo4j.Driver, layout: Layout, r: random.Random, n: int) -> None:
    """Write a random graph as something else would; its ids are distinct, and many are missing."""

    def properties(names: list[str], most: int) -> dict[str, str]:
        return {name: literal(r) for name in r.sample(names, r.randint(0, most))}

    parts = []
    for i in range(n):
        labels = [*r.sample(LABELS, r.choice([0, 1, 1, 2])), *([layout.label] if layout.label else ())]
        values = properties(NAMES, 7)
        if layout.id and (given := r.choice([f"'k{i}'", f"'{i}'", f"{1000 + i}", f"{2000 + i}.5", f"'{i}.0'", None])):
            values |= {layout.id: given}
        elif layout.lossless:  # there ids are texts
            values.pop("id", None)
        said = ",".join(f"{quoted(name)}:{value}" for name, value in values.items())
        parts.append(f"(n{i}{''.join(':' + quoted(label) for label in dict.fromkeys(labels))} {{{said}}})")
    for a, relation, b in sorted({(r.randrange(n), r.choice(RELATIONS), r.randrange(n)) for _ in range(2 * n)}):
        values = properties(["a", "at", "relation"], 2) | {"weight": r.choice(WEIGHTS)}
        said = ",".join(f"{quoted(name)}:{value}" for name, value in values.items())
        parts.append(f"(n{a})-[:{quoted(relation)} {{{said}}}]->(n{b})")
    driver.execute_query(f"CREATE {','.join(parts)}", BYTES)


def operands(nodes: list[Node]) -> list[Any]:
    """What the nodes say, in whole and in parts, and what is near it."""
    found = list(NEAR)

    def take(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                take(inner)
        elif isinstance(value, list):
            for inner in value:
                take(inner)
            if not any(isinstance(inner, dict) for inner in value):
                found.extend([value, value[::-1]])
        else:
            found.append(value)
            found.extend([value[:-1]] if isinstance(value, str) else [value + 1] if type(value) is int else [])

    for node in nodes:
        take([node.id, node.name, node.text, node.properties])
    return found


def condition(r: random.Random, nodes: list[Node], values: list[Any], depth: int = 0) -> dict[str, Any]:
    if depth < 2 and r.random() < 0.25:
        inner = [condition(r, nodes, values, depth + 1) for _ in range(2)]
        return r.choice([{"$not": inner[0]}, {"$and": inner}, {"$or": inner}])
    field, value = r.choice([*NAMES, "id", "name", "text", "label", "at.y", "at.z", "b.srid", "none"]), r.choice(values)
    if (said := r.choice(nodes).properties) and r.random() < 0.6:  # what this node says there, as often as not
        field = r.choice(list(said))
        if isinstance(said[field], dict):
            value = said[field][part := r.choice(list(said[field]))]
            field = f"{field}.{part}"
        elif r.random() < 0.7 and not (isinstance(said[field], list) and any(isinstance(v, dict) for v in said[field])):
            value = said[field]
    if r.random() < 0.2:
        field = f"properties.{field}"
    op = r.choice(OPERATORS)
    if field == "label":
        op, value = r.choice(["$eq", "$ne", "$contains"]), r.choice([*LABELS, 1])
    elif op == "$contains" and isinstance(value, (list, str)) and value:
        value = r.choice(value) if isinstance(value, list) else value[1:3]
    elif op in ("$in", "$nin"):
        value = [value, *r.sample(values, 2)]
    elif op == "$exists":
        value = r.random() < 0.5
    return {field: {op: value}}


def compare_verdicts(driver: neo4j.Driver, layout: Layout, nodes: list[Node], wheres: list[Where]) -> None:
    """Hold what the server says of each condition for each node, in one query, against what `Where` says."""
    columns, parameters = [], {}
    for i, where in enumerate(wheres):
        writer = Neo4jWhere(layout, "n", f"w{i}_")
        columns.append(writer.write(where))
        parameters |= writer.parameters
    text = f"MATCH {layout.node('n')} RETURN {layout.id_of('n')} AS id, [{', '.join(columns)}] AS verdicts"
    said = {row["id"]: row["verdicts"] for row in driver.execute_query(text, parameters).records}
    expected = {node.id: [where.matches(node) for where in wheres] for node in nodes}
    wrong = [
        (wheres[i].to_dict(), node)
        for node in nodes
        for i, verdict in enumerate(expected[node.id])
        if said[node.id][i] is not verdict
    ]
    assert not wrong, "\n".join(map(str, wrong[:5]))


def test_every_value_is_found_by_what_is_read_of_it(neo4j_empty: neo4j.Driver) -> None:
    single = [value for values in VALUES.values() for value in values.split()]
    stored = [*single, *(f"[{value}]" for value in single if value not in VALUES["bytes"].split())]
    neo4j_empty.execute_query("CREATE " + ",".join(f"({{a: {value}}})" for value in stored), BYTES)
    nodes = [node for block in Neo4jStore.from_driver(neo4j_empty, layout=FOREIGN).nodes() for node in block]
    asked: dict[str, dict[str, Any]] = {}
    for value in (node.properties.get("a") for node in nodes):
        inner = value[0] if isinstance(value, list) and value else value
        parts = {f"a.{part}": v for part, v in inner.items()} if isinstance(inner, dict) else {"a": inner}
        conditions = [{field: {op: v}} for field, v in parts.items() for op in ("$eq", "$lte", "$contains")]
        conditions += [{"a": value}] if isinstance(value, list) and not isinstance(inner, dict) else []
        asked |= {repr(one): one for one in conditions}
    for one in asked.values():  # one by one, since the server plans the same words once
        compare_verdicts(neo4j_empty, FOREIGN, nodes, [w for w in [Where.parse(one)] if w])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_filters_and_views_of_what_others_wrote(neo4j_empty: neo4j.Driver, layout: str) -> None:
    r, lies = random.Random(layout), LAYOUTS[layout]
    filled(neo4j_empty, lies, r, 60)
    store = Neo4jStore.from_driver(neo4j_empty, layout=lies)
    nodes = [node for block in store.nodes() for node in block]
    edges = [edge for block in store.edges() for edge in block]
    assert store.count() == (len(nodes), len(edges)) == (60, len(set(map(identity, edges))))
    memory, values, asked = MemoryStore.of(nodes, edges), operands(nodes), list[Where]()
    while len(asked) < 12:
        try:
            where = Where.parse(condition(r, nodes, values))
        except InvalidInput:
            continue
        asked += [where] if where else []
    for start in range(0, len(asked), 4):
        compare_verdicts(neo4j_empty, lies, nodes, asked[start : start + 4])
    halving = sorted(asked, key=lambda where: abs(sum(map(where.matches, nodes)) - len(nodes) // 2))
    compare_views(store.view(halving[0]), memory.view(halving[0]), nodes, halving[1], r)
    if layout == "elements":
        assert store.view(halving[0]).schema().labels == memory.view(halving[0]).schema().labels


def compare_views(view: Any, expected: MemoryStore, nodes: list[Node], inner: Where, r: random.Random) -> None:
    """Hold all that a view shows against what a view in memory does."""
    everyone = [node.id for node in nodes]
    some = r.sample(everyone, 20)
    assert view.count() == expected.count()
    assert view.view(inner).count()[0] == expected.view(inner).count()[0]
    assert list(map(repr, view.get(everyone))) == list(map(repr, expected.get(everyone)))
    shown = [sorted(repr(node) for block in of.nodes(where=inner) for node in block) for of in (view, expected)]
    assert shown[0] == shown[1]
    shown = [sorted(repr(edge) for block in of.edges() for edge in block) for of in (view, expected)]
    assert shown[0] == shown[1]
    near = [of.neighbors(some, where=inner, direction="out", limit=1) for of in (view, expected)]
    assert list(map(repr, near[0])) == list(map(repr, near[1]))
    shown, seen = view.incidence(some[0]), {node.id for block in expected.nodes() for node in block}
    assert set(shown.nodes.ids) <= seen
    assert sorted(shown.weight.tolist()) == sorted(edge.weight for edge in expected.neighbors(some[:1]))


def identity(edge: Edge) -> tuple[Any, ...]:
    return edge.source, edge.relation, edge.target
