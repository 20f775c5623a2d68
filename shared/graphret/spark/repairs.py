"""Mending a query without asking the model again, and the values in it by what the
graph holds.

These are for the ways in which SPARK fails (section 3.4): structure (names and
directions of the schema), semantic mismatch (values as the graph spells them) and
over-retrieval (a limit, and nodes that can be ranked).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import Report, check, codes, edits
from graphret.cypher.edits import Edit
from graphret.cypher.semantics.walk import aggregates
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
#: Words that Ladybug 0.22 takes for no name, tried one by one.
_RESERVED_WORDS = """
ACYCLIC ALL AND ANY ASC CASE COLUMN CREATE DEFAULT DESC DISTINCT ELSE END ENDS EXISTS
FALSE GLOB GROUP HEADERS HINT IN INDEX INSTALL JOIN MACRO NONE NOT NULL ON ONLY OPTIONAL
OR ORDER PRIMARY PROFILE SHORTEST SINGLE STARTS TABLE THEN TRAIL TRUE UNION UNWIND WHEN
WHERE WITH XOR
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_LOWERING = ("tolower", "lower")


@dataclass(frozen=True, slots=True)
class RepairedQuery:
    """A query as it is to run: what the guard says of it, its parameters, and what was
    changed.

    `owner` is the place of the column with the node whose properties the others are,
    where one was added. `loosened` says what it was loosened by where it found nothing,
    and `doubts` which of the question's conditions it no longer holds.
    """

    report: Report
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    owner: int | None = None
    loosened: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        return self.report.query


def repair(
    report: Report, schema: GraphSchema, *, rows: int, doubtful: bool = False
) -> RepairedQuery:
    """Return a query with what the guard found wrong against the schema put right, as
    far as the schema says how.

    A relationship is turned to the schema's direction; a label, relation or property
    that there is not becomes the nearest one, in backticks where Ladybug needs them; a
    path without a bound gets one; properties are returned with the node that they are
    of, where that groups no rows anew; a limit is added.

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
    notes: list[str] = []
    dialect = report.dialect
    for _ in range(_ROUNDS):
        changed = _apply(report, _by_schema(report, doubtful))
        if changed is None:
            break
        said = [f for f in report.findings if doubtful or f in report.errors]
        notes += [
            str(f.message)
            for f in said
            if f.kind in (*_RENAMED, codes.WRONG_DIRECTION, codes.WRONG_ENDS)
        ]
        report = check(changed, schema, dialect=dialect)
    owner: int | None = None
    if report.ok:
        added = list(_nodes_returned(report))
        changed = _apply(
            report, [*added, *_quoted(report), *edits.limit(report.tree, rows)]
        )
        better = (
            check(changed, schema, dialect=dialect) if changed is not None else report
        )
        if better.ok:
            report = better
            if added:
                owner = len(edits.returns(report.tree)[0].expressions) - 1
    return RepairedQuery(report, {}, tuple(dict.fromkeys(notes)), owner)


def _apply(report: Report, changes: Iterable[Edit]) -> str | None:
    """Return the query with the changes that do not overlap; `None` where it stays as
    it is.
    """
    kept: list[Edit] = []
    for change in sorted(changes, key=lambda e: (e.start, e.end)):
        if not kept or change.start >= kept[-1].end:
            kept.append(change)
    changed = edits.apply(report.query, kept)
    return changed if changed != report.query else None


def _by_schema(report: Report, doubtful: bool) -> Iterator[Edit]:
    """The edits that put right what the guard finds wrong, where it says how."""
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
            yield Edit(
                step.start,
                step.end,
                _ENDLESS.sub(
                    rf"*\g<least>..{_MOST_HOPS}", report.query[step.start : step.end]
                ),
            )


def _renamed(start: int, end: int, name: str) -> Edit:
    return edits.rename(edits.NamePlace(name, start, end), name)


def _nodes_returned(report: Report) -> Iterator[Edit]:
    """The edit by which a query that returns properties of a node returns the node too;
    none where it returns one, or would group or tell apart its rows by it.
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
    owner = next((one for one in owners if variable_name(one) in nodes), None)
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


def _quoted(report: Report) -> Iterator[Edit]:
    """The edits that put backticks around labels and relations that are words of
    Ladybug's language.
    """
    if report.dialect == "ladybug":
        for place in (*edits.labels(report.tree), *edits.relation_types(report.tree)):
            if place.name.upper() in _RESERVED and report.query[place.start] != "`":
                yield Edit(place.start, place.end, f"`{place.name}`")
