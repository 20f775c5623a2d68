"""`translate`: a dialect's rules, tried on a query until none of them changes it."""

from __future__ import annotations

from collections.abc import Iterator

from graphret.cypher import edits
from graphret.cypher.report import CypherReport
from graphret.cypher.translation.changes import (
    Change,
    QueryContext,
    Recheck,
    Rules,
    Translated,
    outermost,
)
from graphret.cypher.translation.ladybug import LADYBUG
from graphret.cypher.translation.neo4j import NEO4J
from graphret.cypher.tree import walk
from graphret.schema import GraphSchema

_RULES: dict[str, Rules] = {"ladybug": LADYBUG, "neo4j": NEO4J}
#: Idioms stand within one another, and a round changes the outer ones.
_ROUNDS = 12


def translate(
    report: CypherReport, recheck: Recheck, schema: GraphSchema | None = None
) -> Translated:
    """Return a query in the words of its dialect, as far as these mean the same.

    Ladybug has other words than Neo4j for much that its users write: ``type(r)``,
    ``EXISTS { (a)-->() }``, ``datetime()``, ``date(x).year``, ``shortestPath``,
    comprehensions, ``WITH … ORDER BY`` without a limit, ``AS order``. In Neo4j 5 it is
    what earlier versions had: ``size((a)-->())``, ``exists(a.name)``.

    Parameters
    ----------
    report
        What the guard says of the query.
    recheck
        Checks a changed query as this one was checked.
    schema
        What it was held against: some words mean the same only of some types of
        properties.
    """
    notes: list[str] = []
    for _ in range(_ROUNDS):
        if report.tree is None:
            break
        context = QueryContext(report.query, report.tree, schema)
        changes = outermost(_changes(context, _RULES[report.dialect]))
        if not changes:
            break
        changed = edits.apply(
            report.query, [edit for change in changes for edit in change.edits]
        )
        checked = recheck(changed)
        if checked.tree is None:
            break
        report = checked
        notes += [change.note for change in changes]
    return Translated(report, tuple(dict.fromkeys(notes)))


def _changes(context: QueryContext, rules: Rules) -> Iterator[Change]:
    for node in walk(context.tree):
        for rule in rules.get(type(node), ()):
            change = rule(node, context)
            if change is not None:
                yield change
                break
