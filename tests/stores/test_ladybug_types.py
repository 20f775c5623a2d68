"""Conditions on columns of every type that graphret does not write: the database decides them as `Where` does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.stores.ladybug import LadybugStore
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.structures import element, members_of
from graphret.types import Node
from graphret.where import Where, lookup

_KEY = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
_UNION = "UNION(i INT64, d DOUBLE, s STRING, v INTERVAL, x STRUCT(x INT64), l STRING[], u UNION(p DATE, q BOOL))"

#: By type, values of a column of it.
VALUES: dict[str, list[str]] = {
    "INTERVAL": [
        *(f"interval('{text}')" for text in ("1 day", "1 month", "30 days", "14 months 3 days 4 hours 6.5 seconds")),
        *("to_microseconds(-5)", "to_months(-14)", "interval('50 hours')", "to_microseconds(-86400000001)"),
    ],
    "BLOB": ["blob('')", "blob('abc')", r"blob('\\xAA\\x00a\\x5C9')", r"blob('~ \\x27\\x22')"],
    "TIMESTAMP_NS": [f"'{text}'" for text in ("2020-01-02 03:04:05.123456789", "1969-12-31 23:59:59.9", "2020-01-02")],
    "JSON": ["""'{"a": 1}'""", "'5'"],
    "UINT64": ["18446744073709551615", "0", "5"],
    "INT128": ["-5", "170141183460469231731687303715884105727", "5"],
    "DECIMAL(20, 0)": ["12345678901234567891", "-5"],
    "DECIMAL(10, 2)": ["1.25", "0.1", "-3"],
    "DOUBLE": ["CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "-0.0", "5.0", "0.1"],
    "INTERNAL_ID": ["internal_id(0, 5)", "internal_id(3, 0)"],
    "INTERVAL[]": ["[interval('30 days'), NULL]", "[interval('1 day')]", "[]", "[interval('1 month')]"],
    "BLOB[][]": ["[[blob('abc')]]", r"[[blob('\\xAA\\x5C'), NULL], []]"],
    "UINT64[]": ["[18446744073709551615]", "[5, NULL]", "[]"],
    "DECIMAL(30, 3)[]": ["[0.5]", "'[123456789012345678901234567.891]'", "[NULL]"],
    "FLOAT": ["CAST('-nan' AS FLOAT)", "CAST('-inf' AS FLOAT)", "0.5"],
    "DOUBLE[]": ["[CAST('nan' AS DOUBLE)]", "[-0.0]", "[0.0, NULL]", "[CAST('inf' AS DOUBLE), CAST('nan' AS DOUBLE)]"],
    "STRUCT(d DOUBLE, l FLOAT[2])": [
        "{d: CAST('nan' AS DOUBLE), l: CAST([0.5, CAST('nan' AS DOUBLE)] AS FLOAT[2])}",
        "{d: CAST('-inf' AS DOUBLE), l: NULL}",
    ],
    "UNION(d DOUBLE, f FLOAT[])": [
        "union_value(d := CAST('nan' AS DOUBLE))",
        "union_value(d := CAST('inf' AS DOUBLE))",
        "union_value(d := 5.0)",
        "union_value(f := CAST([CAST('nan' AS DOUBLE)] AS FLOAT[]))",
    ],
    "INT64[]": ["[5]", "[5, NULL]", "[NULL]", "[]"],
    "STRING[]": ["['a', NULL]", "[]", "['']", "['a,b']"],
    "DATE[][]": ["[[date('2020-01-01')]]", "[[date('2020-01-01'), NULL], []]", "[]", "[NULL]", "[[]]"],
    "TIMESTAMP_TZ[][]": ["[['2020-01-02 03:04:05.5+02:00']]", "[['2020-01-02'], []]"],
    "DECIMAL(4, 1)[][]": ["[[1.5, NULL], []]", "[[2.0]]", "[[NULL], NULL]", "[[], [1.5]]"],
    "DOUBLE[2][]": ["[[0.1, 5.0]]", "[[CAST('nan' AS DOUBLE), CAST('-inf' AS DOUBLE)]]", "[[1.0, 2.0], [3.0, 4.0]]"],
    "STRUCT(a INT64)[]": ["[{a: 1}]", "[NULL]", "[]", "[{a: 1}, NULL]"],
    "STRUCT(a INT64, b STRUCT(c TIMESTAMP, d DATE[][]), e MAP(INT64, BLOB))": [
        "{a: 5, b: {c: timestamp('2020-01-01'), d: [[date('2020-01-01')]]}, e: map([5], [blob('abc')])}",
        "{a: NULL, b: NULL, e: NULL}",
        "{a: 0, b: {c: NULL, d: NULL}, e: map([5, 6], [NULL, blob('abc')])}",
    ],
    "MAP(INT64, STRING)": ["map([5], ['a'])", "map([5, 6], [NULL, 'b'])", "map([6, 5], ['x', '5'])"],
    "MAP(STRING, INT64)": ["map(['a', 'b'], [NULL, 7])", "map(['b'], [7])", "map(['a', 'b', 'a'], [5, 6, NULL])"],
    "MAP(INTERVAL, INT64)": ["map([interval('1 day')], [5])", "map([interval('30 days')], [NULL])"],
    "MAP(TIMESTAMP_NS, INT64)": ["map(['2020-01-02 00:00:00.000000009', '2020-01-02'], [6, 5])"],
    "MAP(TIMESTAMP, STRUCT(x INT64))": [f"map([timestamp('2020-01-01 00:00:0{i}')], [{{x: {i}}}])" for i in (0, 5)],
    "MAP(DOUBLE, INT64)": ["map([5.0], [5])", "map([1e300], [6])"],
    "MAP(DECIMAL(20, 10), INT64)": ["map([1.5], [5])", "map([0.0000001], [6])"],
    "MAP(BOOL, INT64[][])": ["map([true], [[[5]]])", "map([false], [[[]]])"],
    "MAP(BLOB, INT64)": ["map([blob('abc')], [5])"],
    "MAP(UUID, STRING[])": [f"map(['{_KEY}'], [['a', NULL]])", f"map(['{_KEY[:-1]}2', '{_KEY}'], [['b'], NULL])"],
    "MAP(DATE, DOUBLE[2])": ["map([date('2020-01-01')], [[0.1, 5.0]])", "map([date('2020-01-02')], [NULL])"],
    "MAP(UINT8, MAP(STRING, MAP(INT128, STRING)))": [
        "map([5], [map(['a', 'b'], [map([5, 6], ['a', NULL]), NULL])])",
        "map([5, 6], [NULL, map(['a'], [map([6], ['b'])])])",
    ],
    "MAP(FLOAT, MAP(STRING, INT64)[])": ["map([1e30], [[map(['a'], [5])]])", "map(['inf'], [[map(['b'], [NULL])]])"],
    "MAP(STRING, UNION(i INT64, m MAP(BOOL, DATE)))": [
        "map(['a', 'b'], [union_value(i := 5), union_value(i := 6)])",
        "map(['b'], [union_value(m := map([true], [date('2020-01-01')]))])",
        "map(['a'], [union_value(m := map([true, false], [CAST(NULL AS DATE), date('2020-01-01')]))])",
    ],
    "MAP(UNION(i INT64, s STRING), INT64)": ["map([union_value(i := 5)], [5])", "map([union_value(s := '5')], [6])"],
    _UNION: [
        *("union_value(i := 5)", "union_value(s := 'a')", "union_value(d := 0.1)", "union_value(x := {x: 5})"),
        *("union_value(v := interval('1 day'))", "union_value(l := ['a', NULL])"),
        "union_value(i := CAST(NULL AS INT64))",
        *("union_value(u := union_value(p := date('2020-01-01')))", "union_value(u := union_value(q := true))"),
    ],
    "UNION(i INT64, d DOUBLE, s STRING)[]": [
        *("[union_value(i := 5)]", "[union_value(d := 1e-200)]", "[union_value(d := 5.0)]", "[union_value(s := '5')]"),
        *("[]", "[union_value(i := CAST(NULL AS INT64))]"),
    ],
}  # fmt: skip
COLUMNS = {f"c{n}": kind for n, kind in enumerate(VALUES)}
#: What lies inside of values of a type.
PATHS: dict[str, list[str]] = {
    "STRUCT(d DOUBLE": ["d", "l", "d.x"],
    "STRUCT(a INT64, b": ["a", "b", "b.c", "b.d", "e.5", "e.6", "b.c.x"],
    "MAP(INT64": ["5", "6", "05", "x"],
    "MAP(STRING, INT64": ["a", "b", "a.b", "\ud800"],
    "MAP(STRING, UNION": ["a", "b", "a.True", "b.True", "a.False"],
    "MAP(INTERVAL": ["1 day, 0:00:00", "30 days, 0:00:00"],
    "MAP(TIMESTAMP_NS": ["2020-01-02T00:00:00", "2020-01-02"],
    "MAP(TIMESTAMP": ["2020-01-01T00:00:05", "2020-01-01T00:00:05.x", "2020-01-01 00:00:05"],
    "MAP(DOUBLE": ["1e+300", "5"],
    "MAP(DECIMAL": ["1"],
    "MAP(BOOL": ["True", "true", "False"],
    "MAP(BLOB": ["616263"],
    "MAP(UUID": [_KEY, _KEY.upper()],
    "MAP(DATE": ["2020-01-01", "2020-02-30"],
    "MAP(UINT8": ["5.a.5", "5.a", "6.a.6", "5.b.5", "256.a"],
    "MAP(FLOAT": ["inf", "1e+30"],
    "MAP(UNION": ["5", "\\'", "\ud800"],
    "INTERNAL_ID": ["offset", "table", "x"],
    _UNION: ["x", "p"],
}
OPERANDS: list[Any] = [
    *(5.0, None, [None], 0, True, "5", [5.0], 2**64 - 1, 0.1, 1e300, -(2**130), "a", "1 day, 0:00:00", [[]]),
    *("616263", [], ["a", None], [5, None], "2020-01-01", [[5]], math.nan, math.inf, "9", "30", [1e-200], ["5"]),
    *("Infinity", "-Infinity", ["Infinity"], "inf", [[None, "-Infinity"]], ["Infinity", None], -math.inf),
]  # fmt: skip


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes with a value in every column, or none, each beside another."""
    import ladybug

    path = tmp_path_factory.mktemp("types") / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        connection.execute(f"CREATE NODE TABLE T(k INT64 PRIMARY KEY, {columns})")
        connection.execute("UNWIND range(100, 115) AS k CREATE (:T {k: k})")
        for name, kind in COLUMNS.items():
            cast = "{}" if "UNION(" in kind or kind.startswith(("INTERNAL_ID", "JSON")) else f"CAST({{}} AS {kind})"
            for n, value in enumerate(values := VALUES[kind]):
                some = f"MATCH (n:T) WHERE n.k % {len(values) + 1} = {n}"
                connection.execute(f"{some} SET n.{name} = {cast.format(value)}")
    return path


@pytest.fixture(scope="module")
def store(typed: Path) -> Iterator[LadybugStore]:
    with LadybugStore(typed, read_only=True, id_property="k") as store:
        yield store


@pytest.fixture(scope="module")
def nodes(store: LadybugStore) -> list[Node]:
    return [node for block in store.nodes() for node in block]


def conditions(nodes: list[Node], kind: str, field: str, offset: int) -> Iterator[dict[str, Any]]:
    found = [value for has, value in (lookup(node.properties, field) for node in nodes) if has]
    flat = [value for value in found if isinstance(value, list)]
    own = [value for value in [*found, *itertools.chain(*flat)] if not has_map(value)]
    few = 1 if is_long(kind) or "." in field else 2
    operands = [*{repr(value): value for value in own}.values()][:few]
    operands += [OPERANDS[(offset + i) % len(OPERANDS)] for i in range(few)]
    for n, operand in enumerate(operands, offset):
        other = operands[n % len(operands) - 1]
        equal = {field: {"$eq": operand}}
        without = {"$or": [{field: {"$nin": [other, operand]}}, {field: {"$contains": other}}]}
        if not is_long(kind):
            yield equal if n > offset else {"$or": [equal, {"$not": without}]}
        elif n % 3 == 1:  # else it is compared below
            yield equal
        if not element(kind) or n % 2:  # lists have no order
            yield {field: {("$gt", "$gte", "$lt", "$lte")[n % 4]: operand}}
        yield {field: {("$ne", "$contains", "$in")[n % 3]: [operand, other] if n % 3 == 2 else operand}}
    yield {field: {"$exists": bool(offset % 2)}}


def is_long(kind: str) -> bool:
    """Whether the database takes long to parse conditions on a type, each time anew where they stand elsewhere."""
    return "INTERVAL" in kind or "UNION(" in kind or (kind.startswith("DECIMAL") and element(kind) is not None)


def has_map(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(has_map, value)))


@pytest.mark.parametrize("column", COLUMNS)
def test_a_condition_on_a_column_of_any_type_means_what_it_says(
    store: LadybugStore, nodes: list[Node], column: str
) -> None:
    ids = [node.id for node in nodes]
    inside = next((paths for kind, paths in PATHS.items() if COLUMNS[column].startswith(kind)), [])
    if COLUMNS[column].endswith("[]"):
        inside = ["a"]
    for offset, field in enumerate([column, *(f"{column}.{path}" for path in inside)], int(column[1:])):
        for n, condition in enumerate(conditions(nodes, COLUMNS[column], field, offset)):
            where = Where.parse(condition)
            assert where is not None
            expected = [node.id for node in nodes if where.matches(node)]
            if n % 2 and not is_long(COLUMNS[column]):  # one node after the other, or all at once
                found = [node.id for node in store.view(where).get(ids) if node]
            else:
                found = [node.id for block in store.nodes(where=where) for node in block]
            assert found == expected, (COLUMNS[column], repr(condition), n)


def test_no_node_is_read_to_be_looked_at(store: LadybugStore, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    rows = Session.rows

    def counting(self: Session, *arguments: Any) -> list[list[Any]]:
        counts.append(len(found := rows(self, *arguments)))
        return found

    monkeypatch.setattr(Session, "rows", counting)
    for column, kind in COLUMNS.items():
        inside = next((paths[0] for start, paths in PATHS.items() if kind.startswith(start)), "")
        field = f"{column}.{inside}" if inside else column
        for leaf in ({"$contains": "~"}, {"$eq": ["~"]}, {"$gt": "~"}):
            assert store.view({field: leaf}).count()[0] == 0
    assert max(counts) == 1


def test_types_are_read_though_their_names_are_not_quoted() -> None:
    kind = "STRUCT(a b INT64, c,d STRING, e(f DECIMAL(5, 2)[], X STRUCT(y z MAP(STRING, UNION(a INT64))[3]))"
    assert members_of(kind) == {
        "a b": "INT64",
        "c,d": "STRING",
        "e(f": "DECIMAL(5, 2)[]",
        "X": "STRUCT(y z MAP(STRING, UNION(a INT64))[3])",
    }


def test_names_and_texts_that_are_no_strings(tmp_path: Path) -> None:
    """They are what the database writes, in nodes, conditions and free queries alike, by table."""
    import ladybug

    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE A(k INT64 PRIMARY KEY, title DOUBLE, body STRING[])",
            "CREATE NODE TABLE B(k INT64 PRIMARY KEY, title STRING, body INTERVAL)",
            "CREATE (:A {k: 1, title: 0.5, body: ['x', 'y']}), (:A {k: 2}), (:B {k: 3, title: '0.5'}), "
            "(:B {k: 4, body: interval('1 day')})",
        ):
            connection.execute(statement)
    with LadybugStore(path, read_only=True, id_property="k", name_property="title", text_property="body") as store:
        nodes = [node for block in store.nodes() for node in block]
        assert [(n.name, n.text) for n in nodes] == [
            ("0.500000", "[x,y]"),
            ("", ""),
            ("0.5", ""),
            ("", "1 day, 0:00:00"),
        ]
        for condition in ({"name": {"$contains": "0.5"}}, {"name": ""}, {"text": {"$gte": "1 day"}}, {"text": "[x,y]"}):
            where = Where.parse(condition)
            assert where is not None
            expected = [node for node in nodes if where.matches(node)]
            assert expected
            assert [n for block in store.nodes(where=where) for n in block] == expected
        assert [row[0] for row in store.query("MATCH (n) RETURN n ORDER BY n.k").rows] == nodes
