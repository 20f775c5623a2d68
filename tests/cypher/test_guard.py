"""What the guard says of a query, in the tables of `guard/`, and against the servers'
own verdicts.

`findings.tsv` has the severity that is looked at, the schema, the dialect, the kinds
that are found (none: nothing is), the part of the query (or ``@line:column``), the
first suggestions, and the query. `allowed.tsv` says what may run. `neo4j_verdicts.tsv`
holds what ``EXPLAIN`` of Neo4j 5.26 said of a query, the query, and the complaint;
``left out`` is a form that the server accepts and the guard leaves out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphret.cypher import check, codes
from graphret.cypher.allowlist import ALLOWED, disallowed
from graphret.cypher.grammar import Parsed, parse
from graphret.cypher.report import Finding
from graphret.cypher.tokens import tokenise
from graphret.schema import GraphSchema, PropertySchema

FILMS = GraphSchema(
    dict.fromkeys(["Person", "Movie", "Genre"], 0),
    dict.fromkeys(
        [
            ("Person", "ACTED_IN", "Movie"),
            ("Person", "DIRECTED", "Movie"),
            ("Movie", "IN_GENRE", "Genre"),
            ("Person", "FOLLOWS", "Person"),
        ],
        0,
    ),
    {
        "Person": {"name": PropertySchema("STRING"), "born": PropertySchema("INTEGER")},
        "Movie": {
            name: PropertySchema(kind)
            for name, kind in zip(
                ("title", "releaseDate", "tags"),
                ("STRING", "DATE", "LIST"),
                strict=True,
            )
        },
        "Genre": {"name": PropertySchema("STRING")},
    },
    {"ACTED_IN": {"role": PropertySchema("STRING")}, "FOLLOWS": {}},
)
MISPLACED = {codes.MISPLACED_PROPERTY, codes.WRONG_DIRECTION, codes.WRONG_ENDS}
SCHEMAS = {
    "": None,
    "films": FILMS,
    "films, Person sampled": replace(FILMS, sampled_properties={"Person"}),
    "films, ACTED_IN sampled": replace(FILMS, sampled_relation_properties={"ACTED_IN"}),
    "films, DIRECTED sampled": replace(FILMS, sampled_relations={"DIRECTED"}),
    "places": GraphSchema(
        {"Person": 50, "Movie": 20, "Genre": 5, "Place": 3},
        {
            ("Person", "ACTED_IN", "Movie"): 80,
            ("Movie", "IN_GENRE", "Genre"): 3,
            ("Person", "KNOWS", "Person"): 4,
            ("Place", "WITHIN", "Genre"): 1,
        },
    ),
}


def table(name: str) -> list[list[str]]:
    lines = (
        (Path(__file__).parent / "guard" / name)
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return [
        (
            line.replace("\\n", "\n").split("\t")
            if name == "findings.tsv"
            else line.split("\t")
        )
        for line in lines
    ]


def found_in(
    query: str, severity: str, schema: GraphSchema | None, dialect: str
) -> list[Finding]:
    """What is found, but that it may not run: an unknown function is also one that is
    not allowed.
    """
    findings = check(query, schema, dialect=dialect, unbounded_paths=True).findings
    return [
        f for f in findings if f.severity == severity and f.kind != codes.NOT_ALLOWED
    ]


@pytest.mark.parametrize(
    ("severity", "schema", "dialect", "kind", "part", "suggestions", "query"),
    table("findings.tsv"),
)
def test_what_is_found_where_and_what_is_proposed(
    severity: str,
    schema: str,
    dialect: str,
    kind: str,
    part: str,
    suggestions: str,
    query: str,
) -> None:
    for spoken in ("neo4j", "ladybug") if dialect == "both" else (dialect,):
        findings = found_in(query, severity, SCHEMAS[schema], spoken)
        assert sorted({f.kind for f in findings}) == kind.split()
        if part:
            (finding,) = findings
            assert part in (
                query[finding.start : finding.end],
                f"@{finding.line}:{finding.column}",
            )
            assert suggestions.split("|") in (
                [""],
                list(finding.suggestions[: suggestions.count("|") + 1]),
            )
    if part.startswith("@"):
        assert check(query).tree is None
    if kind in MISPLACED and severity == "error" and "sampled" not in schema:
        base_schema: Any = SCHEMAS[schema]
        parts = {
            "sampled_properties": base_schema.labels,
            "sampled_relation_properties": base_schema.relation_properties,
        }
        sample = replace(
            base_schema, sampled_relations=set(base_schema.relation_names), **parts
        )
        misplaced = [
            f
            for f in check(query, sample, dialect=dialect).findings
            if f.kind in MISPLACED
        ]
        assert [(f.kind, f.severity) for f in misplaced] == [(kind, "warning")]


def test_limits_of_cost_can_be_raised() -> None:
    path, costly = (
        "MATCH (a)-[:R*]->(b) RETURN count(*)",
        "RETURN size(range(1, 1000000000))",
    )
    (finding,) = check(path).errors
    assert (finding.kind, path[finding.start : finding.end]) == (
        codes.UNBOUNDED_PATH,
        "-[:R*]->",
    )
    assert not check(costly).ok
    assert check(costly, most_iterations=10**9).ok


# -- what may run


def test_what_may_run_and_what_may_not() -> None:
    for verdict, dialect, query in table("allowed.tsv"):
        assert (
            "refused" if check(query, dialect=dialect).errors else "accepted"
        ) == verdict, query
    query = "MATCH (n)\n  SET n.x = 1"
    (finding,) = [f for f in check(query).errors if f.kind == codes.NOT_ALLOWED]
    assert (query[finding.start : finding.end], finding.line, finding.column) == (
        "SET",
        2,
        3,
    )


def test_the_tokens_alone_and_the_tree_alone_refuse_it() -> None:
    calls = [
        "CALL dbms.listConfig() YIELD name RETURN name",
        "RETURN `file`()",
        "MATCH (n) WHERE apoc.x(1) RETURN n",
    ]
    for query in (
        *calls[:2],
        "CREATE (n)",
        "LOAD CSV FROM 'x' AS r RETURN r",
        "RETURN 1; SHOW USERS",
    ):
        assert disallowed(Parsed(query, "neo4j", tokenise(query))), query
    for query in calls:
        assert disallowed(Parsed(query, "neo4j", [], parse(query).tree)), query


def test_every_call_outside_the_lists_is_named_once_and_may_be_added() -> None:
    query = (
        "CALL apoc.meta.stats() YIELD labels RETURN apoc.text.join(labels, ',') AS x"
        " LIMIT 1"
    )
    messages = [f.message for f in check(query).errors]
    assert [
        "apoc.meta.stats" in messages[0],
        "apoc.text.join" in messages[1],
        len(messages),
    ] == [True, True, 2]
    assert check(query, functions=["apoc.text.join"], procedures=["apoc.meta.stats"]).ok


@pytest.mark.parametrize("dialect", sorted(ALLOWED))
def test_no_list_has_what_leaves_the_graph(dialect: str) -> None:
    names = ALLOWED[dialect].functions | ALLOWED[dialect].procedures
    suspicious = (
        "file",
        "load",
        "apoc",
        "dbms",
        "graph.",
        "nextval",
        "setseed",
        "config",
        "connection",
        "show_",
    )
    assert [
        name for name in names if any(part in name.lower() for part in suspicious)
    ] == []


# -- the servers' verdicts


def test_the_guard_agrees_with_neo4j() -> None:
    verdicts: dict[str, list[tuple[str, str]]] = {}
    for verdict, query, why in table("neo4j_verdicts.tsv"):
        verdicts.setdefault(verdict, []).append((query, why))
    assert (len(verdicts["accepted"]) > 1300, len(verdicts["refused"]) > 500) == (
        True,
        True,
    )
    no_error = (
        codes.NOT_ALLOWED,
        codes.TOO_COSTLY,
        codes.UNBOUNDED_PATH,
    )  # for a server
    for query, _ in verdicts["accepted"]:
        assert [str(f) for f in check(query).errors if f.kind not in no_error] == [], (
            query
        )
    for query, _ in verdicts["left out"]:
        assert not check(query).ok, query
    has_error = []
    for query, why in verdicts["refused"]:
        errors = check(query).errors
        assert errors, query
        if "no procedure" not in why:
            has_error.append(any(f.kind in codes.MEANING for f in errors))
    assert sum(has_error) / len(has_error) > 0.985


def test_the_guard_agrees_with_ladybug(tmp_path: Path) -> None:
    ladybug = pytest.importorskip("ladybug")
    tables = (
        "NODE TABLE A(id STRING PRIMARY KEY, x INT64, l INT64[])",
        "NODE TABLE B(id STRING PRIMARY KEY, y INT64)",
    )
    properties = {"id": PropertySchema("STRING")}, PropertySchema("INTEGER")
    schema = GraphSchema(
        {"A": 1, "B": 1},
        {("A", "R", "A"): 1},
        {
            "A": {
                **properties[0],
                "x": properties[1],
                "l": PropertySchema("LIST OF INTEGER"),
            },
            "B": {**properties[0], "y": properties[1]},
        },
        {"R": {"w": PropertySchema("FLOAT")}},
    )
    with (
        ladybug.Database(str(tmp_path / "graph")) as database,
        ladybug.Connection(database) as connection,
    ):
        for made in (*tables, "REL TABLE R(FROM A TO A, w DOUBLE)"):
            connection.execute(f"CREATE {made}")
        for (query,) in table("ladybug_queries.txt"):
            report = check(query, schema, dialect="ladybug")
            try:
                connection.execute(f"EXPLAIN {query}")
            except RuntimeError:
                assert not report.ok, query
            else:
                assert [
                    str(f) for f in report.errors if f.kind != codes.NOT_ALLOWED
                ] == [], query
        query = (  # which joins the wrong tables, though Ladybug runs it
            "MATCH (n:B)-[:R]->(m:A) RETURN m LIMIT 1"
        )
        connection.execute(query)
        assert not check(query, schema, dialect="ladybug").ok
