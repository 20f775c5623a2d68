"""Mending a query without asking the model again, and the values in it by what the
graph holds.

These are for the ways in which SPARK fails (section 3.4): structure (names and
directions of the schema), semantic mismatch (values as the graph spells them) and
over-retrieval (a limit, and nodes that can be ranked).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import Report, check, codes, edits
from graphret.cypher.edits import Edit
from graphret.cypher.semantics.walk import aggregates
from graphret.cypher.suggestions import plainly
from graphret.cypher.tree import (
    Chain,
    LabelName,
    Name,
    Test,
    children,
    span,
    variable_name,
    walk,
)
from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.types import Node

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
    """

    report: Report
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

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
    of; a limit is added.

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
    if report.ok:
        changed = _apply(
            report,
            [
                *_nodes_returned(report),
                *_quoted(report),
                *edits.limit(report.tree, rows),
            ],
        )
        better = (
            check(changed, schema, dialect=dialect) if changed is not None else report
        )
        report = better if better.ok else report
    return RepairedQuery(report, {}, tuple(dict.fromkeys(notes)))


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
    none where it returns one.
    """
    clauses = edits.returns(report.tree)
    nodes = {
        variable_name(node.variable)
        for node in walk(report.tree)
        if isinstance(node, ast.NodePattern)
    } - {None}
    if len(clauses) != 1:
        return
    items = clauses[0].expressions
    plain = [item.this if isinstance(item, ast.Alias) else item for item in items]
    if any(variable_name(item) in nodes for item in plain):
        return
    grouped = [
        part for item in plain if not any(aggregates(item)) for part in walk(item)
    ]
    owners = [part.this for part in grouped if isinstance(part, ast.Property)]
    owner = next((one for one in owners if variable_name(one) in nodes), None)
    if owner is not None:
        end = span(items[-1])[1]
        yield Edit(end, end, f", {report.query[slice(*span(owner))]}")


def _quoted(report: Report) -> Iterator[Edit]:
    """The edits that put backticks around labels and relations that are words of
    Ladybug's language.
    """
    if report.dialect == "ladybug":
        for place in (*edits.labels(report.tree), *edits.relation_types(report.tree)):
            if place.name.upper() in _RESERVED and report.query[place.start] != "`":
                yield Edit(place.start, place.end, f"`{place.name}`")


# -- values


class ComparedText(NamedTuple):
    """A text in a query that a property is compared with: where it stands, and the
    labels of what bears it.
    """

    text: str
    place: tuple[int, int]
    key: str
    labels: tuple[str, ...]
    lowered: bool


def with_known_values(
    mended: RepairedQuery, store: GraphStore, index: TextIndex
) -> RepairedQuery | None:
    """Return a query with its values as the graph spells them, as parameters; `None`
    where it knows none better.

    Each text that a property is compared with is searched for among the nodes of its
    label; what comes close enough takes its place.
    """
    values = [value for value in compared(mended.report.tree) if value.text.strip()]
    changes, parameters, notes = [], dict(mended.parameters), list(mended.notes)
    for number, value in enumerate(values, 1):
        found = index.search(value.text, _CANDIDATES, labels=value.labels or None)
        nodes = [node for node in store.get(found.ids) if node is not None]
        known = _closest(
            value.text, [text for node in nodes for text in _texts(node, value.key)]
        )
        if known is not None and known != value.text:
            parameters[f"value{number}"] = known.lower() if value.lowered else known
            changes.append(Edit(*value.place, f"$value{number}"))
            notes.append(f"{value.text!r} is {known!r} in the graph")
    if not changes:
        return None
    report = check(
        edits.apply(mended.query, changes), None, dialect=mended.report.dialect
    )
    return replace(mended, report=report, parameters=parameters, notes=tuple(notes))


def compared(tree: AstNode) -> Iterator[ComparedText]:
    """The texts of a query that properties of nodes are compared with."""
    labels: dict[str | None, tuple[str, ...]] = {}
    for node in walk(tree):
        if isinstance(node, ast.NodePattern):
            own = (
                tuple(
                    str(part.this)
                    for part in walk(node.labels)
                    if isinstance(part, LabelName)
                )
                if node.labels
                else ()
            )
            name = variable_name(node.variable)
            labels[name] = labels.get(name) or own
            if isinstance(node.args.get("properties"), ast.Map):
                for key, given in node.properties.entries:
                    if isinstance(given, ast.String):
                        yield ComparedText(
                            str(given.this),
                            span(given),
                            str(key.this),
                            own,
                            lowered=False,
                        )
    for node in walk(tree):
        if isinstance(node, Chain | Test):
            parts = [part for child in children(node) for part in _within(child)]
            asked = [part for part in parts if isinstance(part, ast.Property)]
            if len(asked) == 1 and variable_name(asked[0].this) in labels:
                lowered = any(
                    isinstance(part, Name) and str(part.this).lower() in _LOWERING
                    for part in parts
                )
                for part in parts:
                    if isinstance(part, ast.String):
                        owner = labels[variable_name(asked[0].this)]
                        yield ComparedText(
                            str(part.this),
                            span(part),
                            str(asked[0].name.this),
                            owner,
                            lowered,
                        )


def _within(node: AstNode) -> Iterator[AstNode]:
    """The parts of an operand: those of a function's arguments and of a list, but of no
    comparison within it.
    """
    yield node
    if isinstance(node, ast.FunctionCall | ast.List):
        for child in children(node):
            yield from _within(child)


def _texts(node: Node, key: str) -> list[str]:
    """What a node has under a key that a query asks for; its name, where that is kept
    elsewhere.
    """
    value = node.properties.get(key, node.name)
    return [
        text
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and text
    ]


def _closest(text: str, known: Iterable[str]) -> str | None:
    """Return the text that is most like another: the same but for case, accents and
    signs, or nearly.
    """
    wanted, best = plainly(text), (_ALIKE, "")
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for candidate in dict.fromkeys(known):
        matcher.set_seq1(plainly(candidate))
        best = max(best, (matcher.ratio(), candidate), key=lambda one: one[0])
    return best[1] or None
