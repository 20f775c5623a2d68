"""The guard against a real Neo4j 5.26: queries of many kinds, and what the server said of each.

`guard/neo4j_verdicts.tsv` holds the verdict of ``EXPLAIN``, the query, and what the server complained of.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphret.cypher import check
from graphret.cypher.kinds import MEANING, NOT_ALLOWED

VERDICTS = Path(__file__).parent / "guard" / "neo4j_verdicts.tsv"


def verdicts() -> Iterator[tuple[bool, str, str]]:
    for line in VERDICTS.read_text(encoding="utf-8").splitlines():
        verdict, query, why = line.split("\t")
        yield verdict == "accepted", query, why


def test_what_the_server_accepts_has_no_error_of_form_or_meaning() -> None:
    wrong = {}
    for accepted, query, _ in verdicts():
        found = [str(f) for f in check(query).errors if f.kind != NOT_ALLOWED] if accepted else []
        if found:
            wrong[query] = found
    assert not wrong


def test_what_the_server_refuses_is_refused() -> None:
    accepted = {query: why for ok, query, why in verdicts() if not ok and check(query).ok}
    assert not accepted


def test_nearly_all_that_is_refused_is_refused_for_its_form_or_meaning() -> None:
    refused = [query for ok, query, why in verdicts() if not ok and "no procedure" not in why]
    found = [query for query in refused if any(f.kind in MEANING for f in check(query).errors)]
    assert len(refused) > 500
    assert len(found) / len(refused) > 0.985


def test_the_recorded_verdicts_are_those_of_a_server(neo4j_driver: object) -> None:
    neo4j = pytest.importorskip("neo4j")
    assert isinstance(neo4j_driver, neo4j.Driver)
    sample = random.Random(5).sample([v for v in verdicts() if "apoc" not in v[1]], 150)
    differs = []
    with neo4j_driver.session(default_access_mode="READ", notifications_min_severity="OFF") as session:
        for accepted, query, _ in sample:
            try:
                session.run(f"EXPLAIN {query}").consume()
                now = True
            except neo4j.exceptions.Neo4jError:
                now = False
            if now != accepted:
                differs.append(query)
    assert not differs


def test_white_space_is_that_of_the_server(neo4j_driver: object) -> None:
    """No character is white space to the guard that is none to the server, and the other way round."""
    neo4j = pytest.importorskip("neo4j")
    assert isinstance(neo4j_driver, neo4j.Driver)
    kinds = ("Cc", "Cf", "Zl", "Zp", "Zs")
    candidates = [chr(n) for n in range(1, 0x10000) if unicodedata.category(chr(n)) in kinds]
    queries = [f"RETURN{character}1" for character in candidates]
    # The version of Cypher is read by other rules.
    queries += [f"{character}CYPHER{character}5{character}RETURN 1" for character in "\t\n\r \x0b\xa0\u2028"]
    queries += [f"/*{character}*/ CYPHER/**/ 5{character}RETURN 1" for character in "\t\n\r \x0b\xa0\u2028"]
    with neo4j_driver.session(default_access_mode="READ") as session:
        for query in queries:
            try:
                session.run(query).consume()
                accepted = True
            except neo4j.exceptions.Neo4jError:
                accepted = False
            assert check(query).ok == accepted, ascii(query)
