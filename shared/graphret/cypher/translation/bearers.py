"""Labels in a database where each is a table: the nodes of all tables that have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import codes, edits
from graphret.cypher.edits import Edit
from graphret.cypher.report import ERROR, CypherReport, Finding, place_of
from graphret.cypher.translation.changes import (
    Change,
    QueryContext,
    Recheck,
    Translated,
    outermost,
)
from graphret.cypher.translation.ladybug import with_condition
from graphret.cypher.tree import LabelName, span, variable_name, walk
from graphret.stores.base import CypherStore, LabelBearers

#: Subqueries stand within one another, and a round changes the outer ones.
_ROUNDS = 12
#: By the name of a label in queries, in small letters: who bears it.
Bearers = Mapping[str, LabelBearers]


def bearers_of(store: CypherStore) -> Bearers:
    """Return the tables that hold nodes of each label, where labels are tables.

    Empty for any other database, where a query finds a node by each of its labels.
    """
    read: Callable[[], Bearers] | None = getattr(store, "label_bearers", None)
    return {} if read is None else read()


def with_all_bearers(
    report: CypherReport, bearers: Bearers, recheck: Recheck
) -> Translated:
    """Return a query in which each label finds every node that bears it.

    ``(w:Writer)`` reads one table, that of the nodes whose first label is ``Writer``.
    Where nodes of the table ``Director`` bear it too, it becomes
    ``(w:Writer:Director)`` with the condition that ``w.labels`` has ``Writer``.

    Parameters
    ----------
    report
        What the guard says of the query.
    bearers
        Who bears the labels; see `bearers_of`.
    recheck
        Checks a changed query as this one was checked.
    """
    notes: list[str] = []
    for _ in range(_ROUNDS if bearers else 0):
        if report.tree is None:
            break
        context = QueryContext(report.query, report.tree)
        # A pattern within a condition takes none of its own, and is made a subquery.
        changes = outermost(_conditions(context, bearers))
        changes = changes or outermost(_matches(context, bearers))
        if not changes:
            break
        changed = [edit for change in changes for edit in change.edits]
        report = recheck(edits.apply(report.query, changed))
        notes += [change.note for change in changes]
    return Translated(_refused(report, bearers), tuple(dict.fromkeys(notes)))


def _conditions(context: QueryContext, bearers: Bearers) -> Iterator[Change]:
    """The changes of labels in conditions, such as ``w:Writer``, and of patterns."""
    for node in walk(context.tree):
        if isinstance(node, ast.LabelPredicate):
            labels = _names(node)
            if (
                len(labels) == 1
                and labels[0].lower() in bearers
                and context.is_node(node.this)
            ):
                condition = _bears(context.text(node.this), labels, bearers)
                yield context.replaced(
                    node, condition, f"a label in a condition is {condition}"
                )
        elif isinstance(node, ast.PatternPredicate) and any(
            _tables(part, bearers) for part in walk(node)
        ):
            yield context.replaced(
                node,
                f"EXISTS {{ MATCH {context.text(node)} }}",
                "a pattern in a condition is EXISTS { MATCH … } in Ladybug",
            )


def _matches(context: QueryContext, bearers: Bearers) -> Iterator[Change]:
    """The changes after which each ``MATCH`` finds its nodes in all tables."""
    fresh = (f"node_{i}" for i in count(1) if f"node_{i}" not in context.pattern_names)
    starred = _starred(context.tree)
    for match in walk(context.tree):
        if not isinstance(match, ast.Match):
            continue
        changed: list[Edit] = []
        conditions: list[str] = []
        for node in walk(match.pattern):
            tables = _tables(node, bearers)
            variable = variable_name(node.args.get("variable"))
            if not tables or (variable is None and starred):
                continue
            if variable is None:
                variable = next(fresh)
                opening = span(node)[0] + 1
                changed.append(Edit(opening, opening, variable))
            written = ":".join(map(edits.quoted, tables))
            changed.append(Edit(*span(node.args["labels"]), written))
            conditions.append(_bears(variable, _names(node), bearers))
        if changed:
            condition = " AND ".join(conditions)
            yield Change(
                (*changed, *with_condition(match, condition)),
                f"every node that bears a label is looked for: {condition}",
            )


def _refused(report: CypherReport, bearers: Bearers) -> CypherReport:
    """Return the report, with an error if ``*`` would return an added name."""
    if report.tree is None or not _starred(report.tree):
        return report
    findings = [
        Finding(
            ERROR,
            codes.INVALID_PATTERN,
            "nodes of other tables bear this label too: give the node a name, or write"
            " what is returned in place of *",
            *span(node),
            *place_of(report.query, span(node)[0]),
        )
        for node in walk(report.tree)
        if _tables(node, bearers) and variable_name(node.args["variable"]) is None
    ]
    return replace(report, findings=[*report.findings, *findings])


def _starred(tree: AstNode) -> bool:
    """Whether a query returns, or goes on with, all that has a name."""
    return any(
        isinstance(item, ast.Star)
        for clause in walk(tree)
        if isinstance(clause, ast.Return | ast.With)
        for item in clause.expressions
    )


def _tables(node: AstNode, bearers: Bearers) -> list[str]:
    """The tables of a node's labels if other tables have them, else none."""
    if not isinstance(node, ast.NodePattern) or node.labels is None:
        return []
    names = [name.lower() for name in _names(node)]
    if not all(name in bearers for name in names):
        return []
    tables = dict.fromkeys(table for name in names for table in bearers[name].tables)
    return [] if {table.lower() for table in tables} <= {*names} else [*tables]


def _names(node: AstNode) -> list[str]:
    labels = walk(node.args["labels"])
    return [str(part.this) for part in labels if isinstance(part, LabelName)]


def _bears(variable: str, names: list[str], bearers: Bearers) -> str:
    """Write that a node bears one of some labels."""
    tests = [
        f"list_contains({variable}.labels,"
        f" {edits.text_literal(bearers[name.lower()].label)})"
        for name in names
    ]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"
