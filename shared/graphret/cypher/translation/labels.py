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
from graphret.stores.base import CypherStore, LabelTables

#: Subqueries stand within one another, and a round changes the outer ones.
_ROUNDS = 12
#: The tables of each label, by its name in queries, in lower case.
TablesByLabel = Mapping[str, LabelTables]


def label_tables_of(store: CypherStore) -> TablesByLabel:
    """Return the tables that hold nodes of each label, if labels are tables.

    It is empty for other databases, where a query finds a node by each of its labels.
    """
    read: Callable[[], TablesByLabel] | None = getattr(store, "label_tables", None)
    return {} if read is None else read()


def with_all_tables(
    report: CypherReport, tables_by_label: TablesByLabel, recheck: Recheck
) -> Translated:
    """Return a query in which each label finds every node that has it.

    ``(w:Writer)`` reads one table, that of the nodes whose first label is ``Writer``.
    If nodes of the table ``Director`` have it too, it becomes ``(w:Writer:Director)``
    with the condition that ``w.labels`` contains ``Writer``.

    Parameters
    ----------
    report
        The guard's report on the query.
    tables_by_label
        What `label_tables_of` returns.
    recheck
        Checks a changed query as this one was checked.
    """
    notes: list[str] = []
    for _ in range(_ROUNDS if tables_by_label else 0):
        if report.tree is None:
            break
        context = QueryContext(report.query, report.tree)
        # A pattern within a condition takes none of its own, and is made a subquery.
        changes = outermost(_conditions(context, tables_by_label))
        changes = changes or outermost(_matches(context, tables_by_label))
        if not changes:
            break
        changed = [edit for change in changes for edit in change.edits]
        report = recheck(edits.apply(report.query, changed))
        notes += [change.note for change in changes]
    return Translated(_refused(report, tables_by_label), tuple(dict.fromkeys(notes)))


def _conditions(
    context: QueryContext, tables_by_label: TablesByLabel
) -> Iterator[Change]:
    """The changes of labels in conditions, such as ``w:Writer``, and of patterns."""
    for node in walk(context.tree):
        if isinstance(node, ast.LabelPredicate):
            labels = _names(node)
            if (
                len(labels) == 1
                and labels[0].lower() in tables_by_label
                and context.is_node(node.this)
            ):
                condition = _has_label(context.text(node.this), labels, tables_by_label)
                yield context.replaced(
                    node, condition, f"a label in a condition is {condition}"
                )
        elif isinstance(node, ast.PatternPredicate) and any(
            _tables(part, tables_by_label) for part in walk(node)
        ):
            yield context.replaced(
                node,
                f"EXISTS {{ MATCH {context.text(node)} }}",
                "a pattern in a condition is EXISTS { MATCH … } in Ladybug",
            )


def _matches(context: QueryContext, tables_by_label: TablesByLabel) -> Iterator[Change]:
    """The changes after which each ``MATCH`` finds its nodes in all tables."""
    fresh = (f"node_{i}" for i in count(1) if f"node_{i}" not in context.pattern_names)
    starred = _starred(context.tree)
    for match in walk(context.tree):
        if not isinstance(match, ast.Match):
            continue
        changed: list[Edit] = []
        conditions: list[str] = []
        for node in walk(match.pattern):
            tables = _tables(node, tables_by_label)
            variable = variable_name(node.args.get("variable"))
            if not tables or (variable is None and starred):
                continue
            if variable is None:
                variable = next(fresh)
                opening = span(node)[0] + 1
                changed.append(Edit(opening, opening, variable))
            written = ":".join(map(edits.quoted, tables))
            changed.append(Edit(*span(node.args["labels"]), written))
            conditions.append(_has_label(variable, _names(node), tables_by_label))
        if changed:
            condition = " AND ".join(conditions)
            yield Change(
                (*changed, *with_condition(match, condition)),
                f"a label finds the nodes of all tables: {condition}",
            )


def _refused(report: CypherReport, tables_by_label: TablesByLabel) -> CypherReport:
    """Return the report, with an error if ``*`` would return an added name."""
    if report.tree is None or not _starred(report.tree):
        return report
    findings = [
        Finding(
            ERROR,
            codes.INVALID_PATTERN,
            "nodes of other tables have this label too: name the node, or write what"
            " is returned in place of *",
            *span(node),
            *place_of(report.query, span(node)[0]),
        )
        for node in walk(report.tree)
        if _tables(node, tables_by_label)
        and variable_name(node.args["variable"]) is None
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


def _tables(node: AstNode, tables_by_label: TablesByLabel) -> list[str]:
    """The tables of a node's labels if other tables have them, else none."""
    if not isinstance(node, ast.NodePattern) or node.labels is None:
        return []
    names = [name.lower() for name in _names(node)]
    if not all(name in tables_by_label for name in names):
        return []
    tables = dict.fromkeys(
        table for name in names for table in tables_by_label[name].tables
    )
    return [] if {table.lower() for table in tables} <= {*names} else [*tables]


def _names(node: AstNode) -> list[str]:
    labels = walk(node.args["labels"])
    return [str(part.this) for part in labels if isinstance(part, LabelName)]


def _has_label(variable: str, names: list[str], tables_by_label: TablesByLabel) -> str:
    """Write the condition that a node has one of some labels."""
    tests = [
        f"list_contains({variable}.labels,"
        f" {edits.text_literal(tables_by_label[name.lower()].label)})"
        for name in names
    ]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"
