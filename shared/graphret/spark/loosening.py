"""Loosening a query that finds nothing, step by step, without another model call.

First what a relation says already, the labels at its ends; then values, as the graph
spells them; then the one condition that is least certain. Nothing is loosened below a
negation, where less would find less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from cypherast import ast
from cypherast.ast import AstNode, Direction

from graphret.cypher import check, edits
from graphret.cypher.edits import Edit
from graphret.cypher.semantics.walk import aggregates
from graphret.cypher.tree import (
    Chain,
    LabelNot,
    Test,
    parts_of_union,
    span,
    walk,
    without_parens,
)
from graphret.schema import GraphSchema
from graphret.spark.repairs import RepairedQuery, repair
from graphret.spark.step import StepContext
from graphret.spark.values import ComparedText, compared, known_text, with_known_values


def loosened(query: RepairedQuery, context: StepContext) -> Iterator[RepairedQuery]:
    """Yield a query looser and looser; each says in `RepairedQuery.loosened` how.

    A condition is left out of no query that aggregates: without it a count or a sum is
    another one.
    """
    without_labels = _without_labels(query, context)
    if without_labels is not None:
        yield without_labels
    repaired = _repaired_further(query, context)
    if repaired.query != query.query:
        yield repaired
        without_labels = _without_labels(repaired, context)
        if without_labels is not None:
            yield without_labels
    if any(map(_is_aggregating, walk(query.report.tree))):
        return
    for looser in _without_a_condition(query, context):
        repaired = _repaired_further(looser, context)
        yield _without_labels(repaired, context) or repaired


def _repaired_further(query: RepairedQuery, context: StepContext) -> RepairedQuery:
    """Return a query with what is doubtful in it repaired, and its values."""
    repaired, notes = query, list(query.notes)
    doubtful = repair(
        query.report, context.schema, rows=context.settings.max_rows, doubtful=True
    )
    if doubtful.report.ok and doubtful.query != query.query:
        notes += [note for note in doubtful.notes if note not in notes]
        repaired = replace(query, report=doubtful.report, notes=tuple(notes))
    repaired = with_known_values(repaired, context.store, context.index) or repaired
    how = [f"since {note}" for note in repaired.notes if note not in query.notes]
    return replace(repaired, loosened=(*query.loosened, *how))


def _is_aggregating(node: AstNode) -> bool:
    return isinstance(node, ast.FunctionCall) and any(aggregates(node))


# -- labels


def _without_labels(query: RepairedQuery, context: StepContext) -> RepairedQuery | None:
    """Return a query without redundant labels at the ends of named relations.

    `None` where there are none to leave out, or the query could not run.
    """
    changes: dict[Edit, str] = {}
    for match in _matches(query.report.tree):
        for path in match.pattern.paths:
            for node, relation, is_left in _beside(path.elements):
                change = _label_left_out(query.query, node)
                if change is None:
                    continue
                label = query.query[change.start : change.end].strip(": ")
                if not _is_only_end(label, relation, is_left, context.schema):
                    relations = "|".join(
                        place.name for place in edits.relation_types(relation)
                    )
                    changes[change] = f"the label {label} at an end of {relations}"
    if not changes:
        return None
    how = f"without {' and '.join(dict.fromkeys(changes.values()))}"
    return _changed(query, list(changes), how, context)


def _beside(
    elements: list[AstNode],
) -> Iterator[tuple[ast.NodePattern, ast.RelationshipPattern, bool]]:
    """The labelled nodes of a path beside its named relations.

    Each with its relation, and whether it stands to its left.
    """
    for left, right in pairwise(elements):
        for node, relation in ((left, right), (right, left)):
            if (
                isinstance(node, ast.NodePattern)
                and isinstance(relation, ast.RelationshipPattern)
                and relation.types is not None
                and node.labels is not None
            ):
                yield node, relation, node is left


def _is_only_end(
    label: str, relation: ast.RelationshipPattern, is_left: bool, schema: GraphSchema
) -> bool:
    """Whether all that a relation joins at an end has a label by the schema."""
    names = {place.name for place in edits.relation_types(relation)}
    if names & schema.sampled_relations:
        return False
    is_source = is_left == (relation.direction == Direction.OUTGOING)
    if relation.direction == Direction.BOTH:
        return False
    labels = {
        source if is_source else target
        for source, name, target in schema.in_cypher().relations
        if name in names
    }
    return labels == {label.strip("`")}


def _label_left_out(query: str, node: ast.NodePattern) -> Edit | None:
    """Return the edit that takes the label from a node; `None` where it is negated."""
    if any(isinstance(part, LabelNot) for part in walk(node.labels)):
        return None
    start, end = span(node.labels)
    colon = query.rfind(":", span(node)[0], start)
    plain = colon >= 0 and not query[colon + 1 : start].strip()
    return Edit(colon, end, "") if plain and query[end] in " \t\n){" else None


# -- conditions


def _without_a_condition(
    query: RepairedQuery, context: StepContext
) -> Iterator[RepairedQuery]:
    """Yield a query without one of its conditions on texts, as long as others remain.

    Those whose text the graph does not have come first.
    """
    texts = list(compared(query.report.tree))
    conditions = [
        condition
        for match in _matches(query.report.tree)
        if (where := match.args.get("where")) is not None
        for condition in _conjuncts(where)
    ]
    if len(conditions) < 2 and "$" not in query.query and "{" not in query.query:
        return
    doubtful: list[tuple[bool, Edit]] = []
    for condition in conditions:
        text = next((text for text in texts if _is_of(text, condition)), None)
        if text is None:
            continue
        graph_text = known_text(text, context.store, context.index, elsewhere=False)
        if graph_text is None or text.key != "name":
            doubtful.append((graph_text is not None, Edit(*span(condition), "true")))
    for _, change in sorted(doubtful, key=lambda pair: pair[0]):
        condition_text = query.query[change.start : change.end]
        how = f"without the condition {condition_text}"
        looser = _changed(query, [change], how, context)
        if looser is not None:
            doubt = f"nothing satisfies {condition_text} too: it was left out"
            yield replace(looser, doubts=(*looser.doubts, doubt))


def _is_of(text: ComparedText, condition: AstNode) -> bool:
    """Whether a condition asks that a property equals, or has in it, a text."""
    if isinstance(condition, Chain) and list(condition.operators) != ["="]:
        return False
    start, end = span(condition)
    return isinstance(condition, Chain | Test) and start <= text.place[0] < end


def _conjuncts(condition: AstNode) -> Iterator[AstNode]:
    """The conditions that are joined by ``AND``, without parentheses."""
    condition = without_parens(condition)
    if isinstance(condition, Chain) and condition.operators[0] == "AND":
        for operand in condition.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


# -- both


def _matches(tree: AstNode) -> Iterator[ast.Match]:
    """The ``MATCH`` clauses of a query itself, those that must find something."""
    statement = tree.this if isinstance(tree, ast.Cypher) else tree
    for part in parts_of_union(statement):
        for clause in part.clauses:
            if isinstance(clause, ast.Match) and not clause.args.get("optional"):
                yield clause


def _changed(
    query: RepairedQuery, changes: list[Edit], how: str, context: StepContext
) -> RepairedQuery | None:
    """Return a query with some changes, checked; `None` where it could not run."""
    report = check(
        edits.apply(query.query, changes),
        context.schema,
        dialect=query.report.dialect,
    )
    if not report.ok:
        return None
    return replace(query, report=report, loosened=(*query.loosened, how))
