"""Repairing a query by the schema and the graph's values, without another model call.

These are for the ways in which SPARK fails (section 3.4): structure (names and
directions of the schema), semantic mismatch (values as the graph spells them) and
over-retrieval (a limit, and nodes that can be ranked).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import CypherReport, check, codes, edits
from graphret.cypher.edits import Edit
from graphret.cypher.report import Finding
from graphret.cypher.semantics.walk import aggregates
from graphret.cypher.translation import Recheck, translate
from graphret.cypher.tree import (
    span,
    variable_name,
    walk,
)
from graphret.schema import GraphSchema

_ROUNDS = 4
_RENAMED = (
    codes.UNKNOWN_LABEL,
    codes.UNKNOWN_RELATION,
    codes.UNKNOWN_PROPERTY,
    codes.MISPLACED_PROPERTY,
)
_ALIKE = 0.8  # the share of equal characters from which a value is taken for another
_CANDIDATES = 10
_MOST_HOPS = 4
_ENDLESS = re.compile(r"\*\s*(?P<least>\d*)\s*(?:\.\.)?\s*(?=[\]{])")


@dataclass(frozen=True, slots=True)
class RepairedQuery:
    """A query ready to run: its report, its parameters, and what was changed.

    `bounds` says what only bounds how much is read. `owner` is the place of the column
    with the node whose properties the others are, where one was added. `loosened` says
    what it was loosened by where it found nothing, and `doubts` which of the question's
    conditions it no longer holds.
    """

    report: CypherReport
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    owner: int | None = None
    loosened: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        return self.report.query


def repair(
    report: CypherReport, schema: GraphSchema, *, rows: int, doubtful: bool = False
) -> RepairedQuery:
    """Return a query with its findings repaired as far as the schema says how.

    Idioms of another dialect are rewritten; a relationship is turned to the schema's
    direction; an unknown label, relation or property becomes the nearest one;
    a path without a bound gets one; properties are returned with the node that they are
    of, where that groups no rows anew; a limit is added. Where the guard has nothing
    against a query, the repaired one returns the same rows.

    Parameters
    ----------
    report
        What the guard said of the query.
    rows
        The limit.
    doubtful
        Whether what the guard only warns of is put right too, as where the schema is a
        sample.
    """

    def checked(query: str) -> CypherReport:
        return check(query, schema, dialect=report.dialect)

    translated = translate(report, checked, schema)
    report, notes, doubts = translated.report, [*translated.notes], list[str]()
    for _ in range(_ROUNDS):
        changed = _apply(report, _by_schema(report, doubtful))
        if changed is None:
            break
        findings = report.findings if doubtful else report.errors
        notes += _repaired(findings)
        doubts += _doubts(findings, changed)
        report = checked(changed)
    translated = translate(report, checked, schema)  # a new name may need backticks
    report, notes = translated.report, [*notes, *translated.notes]
    query = RepairedQuery(
        report, {}, tuple(dict.fromkeys(notes)), doubts=tuple(dict.fromkeys(doubts))
    )
    return _completed(query, checked, rows) if report.ok else query


def _repaired(findings: Iterable[Finding]) -> Iterator[str]:
    """What is repaired of what the guard found."""
    for finding in findings:
        if finding.kind in (*_RENAMED, codes.WRONG_DIRECTION, codes.WRONG_ENDS):
            yield finding.message
        elif finding.kind == codes.UNBOUNDED_PATH:
            yield f"a path of any length was bound to {_MOST_HOPS} relations"


def _doubts(findings: Iterable[Finding], changed: str) -> Iterator[str]:
    """What a repair may have changed in the question: the relation that is followed."""
    for finding in findings:
        relation = next(iter(finding.suggestions), "")
        if finding.kind == codes.WRONG_ENDS and relation and relation in changed:
            yield f"{finding.message}: {relation} was followed instead"


def _completed(query: RepairedQuery, checked: Recheck, rows: int) -> RepairedQuery:
    """Return a query that also returns the node of its properties, with a limit.

    The limit is one row more than are read, which shows whether there were more.
    """
    report = query.report
    added = list(_nodes_returned(report))
    parts = edits.returns(report.tree)
    # A limit within a UNION would cut before equal rows are joined.
    limited = list(edits.limit(report.tree, rows + 1)) if len(parts) == 1 else []
    changed = _apply(report, [*added, *limited])
    better = report if changed is None else checked(changed)
    if not better.ok:
        return query
    notes = [f"{edit.text.strip(', ')} is returned too" for edit in added]
    return replace(
        query,
        report=better,
        notes=(*query.notes, *notes),
        bounds=(f"at most {rows:,} rows are read",) if limited else (),
        owner=len(parts[0].expressions) if added else None,
    )


def _apply(report: CypherReport, changes: Iterable[Edit]) -> str | None:
    """Return the query with all changes that do not overlap; `None` if unchanged."""
    chosen: list[Edit] = []
    for change in sorted(changes, key=lambda e: (e.start, e.end)):
        if not chosen or change.start >= chosen[-1].end:
            chosen.append(change)
    changed = edits.apply(report.query, chosen)
    return changed if changed != report.query else None


def _by_schema(report: CypherReport, doubtful: bool) -> Iterator[Edit]:
    """The edits that repair what the guard finds wrong, where it says how."""
    if report.tree is None:
        return
    places = edits.relationships(report.tree)
    for finding in report.findings if doubtful else report.errors:
        nearest = next(iter(finding.suggestions), "")
        step = next(
            (place for place in places if place.start <= finding.start < place.end),
            None,
        )
        if finding.kind in _RENAMED and nearest:
            yield _renamed(finding.start, finding.end, nearest)
        elif step is None:
            continue
        elif finding.kind == codes.WRONG_DIRECTION:
            yield from edits.turn(step)
        elif (
            finding.kind == codes.WRONG_ENDS
            and len(step.types) == len(finding.suggestions) == 1
        ):
            yield _renamed(step.types[0].start, step.types[0].end, nearest)
        elif finding.kind == codes.UNBOUNDED_PATH:
            written = report.query[step.start : step.end]
            yield Edit(step.start, step.end, _ENDLESS.sub(_bounded, written))


def _bounded(endless: re.Match[str]) -> str:
    least = endless["least"]
    return f"*{least}..{max(_MOST_HOPS, int(least or 0))}"


def _renamed(start: int, end: int, name: str) -> Edit:
    return edits.rename(edits.NamePlace(name, start, end), name)


def _nodes_returned(report: CypherReport) -> Iterator[Edit]:
    """The edit that also returns the node whose properties a query returns.

    None where it returns a node already, or would group its rows by it.
    """
    clauses = edits.returns(report.tree)
    nodes = entity_names(report.tree)
    if len(clauses) != 1 or clauses[0].args.get("distinct"):
        return
    items = clauses[0].expressions
    plain = [item.this if isinstance(item, ast.Alias) else item for item in items]
    if any(variable_name(item) in nodes or any(aggregates(item)) for item in plain):
        return
    parts = [part for item in plain for part in walk(item)]
    owners = [part.this for part in parts if isinstance(part, ast.Property)]
    owner = next(
        (
            property_owner
            for property_owner in owners
            if variable_name(property_owner) in nodes
        ),
        None,
    )
    if owner is not None:
        end = span(items[-1])[1]
        yield Edit(end, end, f", {report.query[slice(*span(owner))]}")


def entity_names(tree: AstNode) -> set[str]:
    """The variables of a query that are nodes or paths."""
    patterns = (
        node
        for node in walk(tree)
        if isinstance(node, ast.NodePattern | ast.PathPattern)
    )
    names = (variable_name(pattern.args.get("variable")) for pattern in patterns)
    return {name for name in names if name is not None}
