from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from graphret.cypher import check
from graphret.cypher.edits import (
    apply,
    labels,
    limit,
    relationships,
    rename,
    returns,
    turn,
)
from graphret.cypher.grammar import parse
from graphret.errors import InvalidInput

QUERY = (
    "MATCH (a:A)<-[r:`x``y`|Z {w: 1}]-(b)--(c:B|C)-[*1..2]->(d)\n"
    "WHERE a.name = 1 AND EXISTS { (a)-->(b) } // kept\n"
    "RETURN a{.x}, b.`q z` ORDER BY b.x /* tail */"
)
VERDICTS = Path(__file__).parent / "guard" / "neo4j_verdicts.tsv"


def test_edits_leave_all_else_as_it_was_written() -> None:
    tree = parse(QUERY).tree
    edits = [
        *turn(relationships(tree)[0]),
        *limit(tree, 5),
        rename(labels(tree)[0], "New Label"),
    ]
    assert (
        apply(QUERY, edits)
        == "MATCH (a:`New Label`)-[r:`x``y`|Z {w: 1}]->(b)--(c:B|C)-[*1..2]->(d)\n"
        "WHERE a.name = 1 AND EXISTS { (a)-->(b) } // kept\n"
        "RETURN a{.x}, b.`q z` ORDER BY b.x LIMIT 5 /* tail */"
    )


@pytest.mark.parametrize(
    ("query", "limited"),
    [
        ("MATCH (n) RETURN n", "MATCH (n) RETURN n LIMIT 5"),
        ("MATCH (n) RETURN n;", "MATCH (n) RETURN n LIMIT 5;"),
        ("MATCH (n) RETURN n LIMIT 3", "MATCH (n) RETURN n LIMIT 3"),
        ("MATCH (n) RETURN n SKIP 1 LIMIT 300", "MATCH (n) RETURN n SKIP 1 LIMIT 5"),
        ("MATCH (n) RETURN n LIMIT $k", "MATCH (n) RETURN n LIMIT 5"),
        (
            "RETURN 1 AS a UNION RETURN 2 AS a",
            "RETURN 1 AS a LIMIT 5 UNION RETURN 2 AS a LIMIT 5",
        ),
        (
            "CALL { MATCH (n) RETURN n } RETURN n",
            "CALL { MATCH (n) RETURN n } RETURN n LIMIT 5",
        ),
        ("MATCH (n) FINISH", "MATCH (n) FINISH"),
    ],
)
def test_limit(query: str, limited: str) -> None:
    assert apply(query, limit(parse(query).tree, 5)) == limited


def test_accepted_queries_are_turned_and_turned_back_and_parse_when_limited() -> None:
    flipped = {"out": "in", "in": "out", "both": "both"}
    lines = [
        line.split("\t") for line in VERDICTS.read_text(encoding="utf-8").splitlines()
    ]
    for query in [query for said, query, _ in lines if said == "accepted"][::8]:
        tree = parse(query).tree
        steps = relationships(tree)
        once = apply(query, itertools.chain.from_iterable(turn(step) for step in steps))
        turned = relationships(parse(once).tree)
        assert [step.direction for step in turned] == [
            flipped[step.direction] for step in steps
        ], query
        assert (
            apply(once, itertools.chain.from_iterable(turn(step) for step in turned))
            == query
        )
        limited = parse(apply(query, limit(tree, 7)))
        assert limited.error is None, query
        assert all(clause.limit is not None for clause in returns(limited.tree)), query


@pytest.mark.parametrize("name", ["\\u0041", "a\\u0041", "C:\\users"])
def test_a_name_that_servers_and_the_guard_read_in_different_ways_is_refused(
    name: str,
) -> None:
    place = labels(parse("MATCH (n:A) RETURN n").tree)[0]
    with pytest.raises(InvalidInput, match=r"^name: .*backslash before u"):
        rename(place, name)
    written = check(
        apply("MATCH (n:A) RETURN n", [rename(place, name.replace("u", "v"))])
    )
    assert [one.name for one in labels(written.tree)] == [name.replace("u", "v")]
