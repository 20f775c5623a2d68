"""Forms of Neo4j's Cypher in the words of Ladybug 0.22, where these mean the same."""

from __future__ import annotations

import re
from itertools import pairwise

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.edits import Edit
from graphret.cypher.grammar.expressions import COMPARISONS
from graphret.cypher.semantics.walk import aggregates
from graphret.cypher.tokens import NUMBER, Token, tokenise
from graphret.cypher.translation import calls
from graphret.cypher.translation.changes import Change, QueryContext, Rules
from graphret.cypher.translation.neo4j import existing_property
from graphret.cypher.tree import (
    Chain,
    LabelName,
    Shortest,
    Subquery,
    span,
    walk,
)

#: Words that Ladybug 0.22 takes for no name, tried one by one.
RESERVED = frozenset(
    """
    ACYCLIC ALL AND ANY ASC CASE COLUMN CREATE DEFAULT DESC DISTINCT ELSE END ENDS
    EXISTS FALSE GLOB GROUP HEADERS HINT IN INDEX INSTALL JOIN MACRO NONE NOT NULL ON
    ONLY OPTIONAL OR ORDER PRIMARY PROFILE SHORTEST SINGLE STARTS TABLE THEN TRAIL TRUE
    UNION UNWIND WHEN WHERE WITH XOR
""".split()
)
_LONGEST_SHORTEST = 30
_OPENING_WHERE = re.compile(r"\s*\bWHERE\s*\Z", re.IGNORECASE)


# -- names


def quoted_name(node: AstNode, context: QueryContext) -> Change | None:
    """``AS order`` and ``(o:Order)`` need backticks."""
    return _quoted(node, context)


def quoted_key(node: AstNode, context: QueryContext) -> Change | None:
    """``n.order`` and ``{order: 1}`` need backticks."""
    keys = (
        [node.name]
        if isinstance(node, ast.Property)
        else [entry[0] for entry in node.args["entries"] if isinstance(entry, tuple)]
    )
    changes = filter(None, (_quoted(key, context) for key in keys))
    return next(changes, None)


def _quoted(name: AstNode, context: QueryContext) -> Change | None:
    text = context.text(name)
    if text.upper() not in RESERVED:
        return None
    return context.replaced(
        name, f"`{text}`", f"{text} is a word of Ladybug's language, and quoted"
    )


# -- clauses and subqueries


def unlimited_order(node: AstNode, context: QueryContext) -> Change | None:
    """``WITH … ORDER BY`` needs a ``SKIP`` or a ``LIMIT``: ``SKIP 0`` is added."""
    if not isinstance(node, ast.Query):
        return None
    for clause, following in pairwise(node.clauses):
        if (
            isinstance(clause, ast.With)
            and clause.order is not None
            and clause.skip is None
            and clause.limit is None
            and not _collects_all(following)
        ):
            end = span(clause.order)[1]
            return Change(
                (Edit(end, end, " SKIP 0"),),
                "WITH … ORDER BY needs a SKIP in Ladybug: SKIP 0 was added",
            )
    return None


def _collects_all(clause: AstNode) -> bool:
    """Whether a clause collects ungrouped rows, which Ladybug 0.22 does in no order."""
    if not isinstance(clause, ast.With | ast.Return):
        return False
    called = [[*aggregates(item)] for item in clause.expressions]
    names = {str(call.name.this).lower() for calls in called for call in calls}
    return all(called) and "collect" in names


def bare_subquery(node: AstNode, context: QueryContext) -> Change | None:
    """``EXISTS { (a)-->() }`` needs its ``MATCH``."""
    if not isinstance(node, Subquery) or not node.bare:
        return None
    start = span(node.query)[0]
    return Change(
        (Edit(start, start, "MATCH "),),
        f"{node.kind} {{ … }} needs MATCH in Ladybug",
    )


def subquery_without_return(node: AstNode, context: QueryContext) -> Change | None:
    """``EXISTS { MATCH … RETURN 1 }`` asks for rows, whatever they return."""
    if not isinstance(node, Subquery) or node.kind != "EXISTS" or node.bare:
        return None
    clauses = node.query.args.get("clauses", ())
    last = clauses[-1] if len(clauses) > 1 else None
    if not isinstance(last, ast.Return) or last.skip is not None:
        return None
    if last.limit is not None or any(
        True for item in last.expressions for _ in aggregates(item)
    ):
        return None
    return Change(
        (Edit(span(clauses[-2])[1], span(last)[1], ""),),
        "EXISTS { … } takes no RETURN in Ladybug",
    )


def condition_in_brackets(node: AstNode, context: QueryContext) -> Change | None:
    """``MATCH (a:A WHERE a.x > 1)``: the condition stands behind the pattern."""
    if not isinstance(node, ast.Match):
        return None
    removed: list[Edit] = []
    conditions: list[str] = []
    for part in walk(node.pattern):
        if not isinstance(part, ast.NodePattern | ast.RelationshipPattern):
            continue
        if part.where is None:
            continue
        start, end = span(part.where)
        opening = _OPENING_WHERE.search(context.query, 0, start)
        if opening is None or part.args.get("variable_length"):
            return None
        removed.append(Edit(opening.start(), end, ""))
        conditions.append(f"({context.text(part.where)})")
    if not conditions:
        return None
    return Change(
        (*removed, *with_condition(node, " AND ".join(conditions))),
        "a WHERE within brackets stands behind the pattern in Ladybug",
    )


def with_condition(match: ast.Match, condition: str) -> tuple[Edit, ...]:
    """The edits after which a ``MATCH`` has a further condition."""
    if match.where is None:
        end = span(match.pattern)[1]
        return (Edit(end, end, f" WHERE {condition}"),)
    start, end = span(match.where)
    return (Edit(start, start, "("), Edit(end, end, f") AND {condition}"))


def shortest_path(node: AstNode, context: QueryContext) -> Change | None:
    """``shortestPath((a)-[:R*..5]-(b))`` is ``(a)-[:R* SHORTEST 1..5]-(b)``."""
    if not isinstance(node, ast.Match):
        return None
    for path in node.pattern.paths:
        for part in path.args.get("elements", ()):
            if isinstance(part, Shortest):
                return _shortest(part, context)
    return None


def _shortest(node: Shortest, context: QueryContext) -> Change | None:
    elements = node.this.elements
    step = elements[1] if len(elements) == 3 else None
    if not isinstance(step, ast.RelationshipPattern) or not step.variable_length:
        return None
    if step.min_hops != 1:
        return None
    ways = "ALL SHORTEST" if node.name.lower().startswith("all") else "SHORTEST"
    most = step.max_hops or _LONGEST_SHORTEST
    start, end = _length_of(step, context)
    inner = span(node.this)
    return Change(
        (
            Edit(span(node)[0], inner[0], ""),
            Edit(start, end, f"* {ways} 1..{most}"),
            Edit(inner[1], span(node)[1], ""),
        ),
        f"{node.name}(…) is -[* {ways} 1..{most}]- in Ladybug",
    )


def _length_of(step: ast.RelationshipPattern, context: QueryContext) -> tuple[int, int]:
    """Where the ``*1..5`` of a relationship stands."""
    start = span(step)[0]
    tokens = tokenise(context.text(step))
    first = next(i for i, token in enumerate(tokens) if token.operator == "*")
    last = first
    while _is_bound(tokens[last + 1]):
        last += 1
    return start + tokens[first].start, start + tokens[last].end


def _is_bound(token: Token) -> bool:
    return token.kind == NUMBER or token.operator == ".."


# -- expressions


def comprehension(node: AstNode, context: QueryContext) -> Change | None:
    """``[x IN list WHERE … | …]`` is ``list_filter`` and ``list_transform``."""
    if not isinstance(node, ast.ListComprehension):
        return None
    name, lists = context.text(node.variable), context.text(node.source)
    if node.where is not None:
        lists = f"list_filter({lists}, {name} -> {context.text(node.where)})"
    if node.projection is not None:
        lists = f"list_transform({lists}, {name} -> {context.text(node.projection)})"
    return context.replaced(
        node,
        lists,
        "a list comprehension is list_filter and list_transform in Ladybug",
    )


def compared_in_turn(node: AstNode, context: QueryContext) -> Change | None:
    """``1 < x <= 3`` are two comparisons."""
    if not isinstance(node, Chain) or len(node.operators) < 2:
        return None
    if node.operators[0] not in COMPARISONS:
        return None
    pairs = zip(pairwise(map(context.text, node.operands)), node.operators, strict=True)
    written = " AND ".join(f"{a} {sign} {b}" for (a, b), sign in pairs)
    return context.replaced(
        node, f"({written})", "a comparison of three values is two comparisons"
    )


def map_projection(node: AstNode, context: QueryContext) -> Change | None:
    """``n {.name, x: 1}`` is the map ``{name: n.name, x: 1}``."""
    if not isinstance(node, ast.MapProjection):
        return None
    owner, entries = context.text(node.this), []
    for entry in node.entries:
        if isinstance(entry, ast.PropertySelector):
            key = context.text(entry.name)
            entries.append(f"{key}: {owner}.{key}")
        elif isinstance(entry, tuple):
            key, value = entry
            entries.append(f"{context.text(key)}: {context.text(value)}")
        elif isinstance(entry, ast.Identifier):
            entries.append(f"{context.text(entry)}: {context.text(entry)}")
        else:
            return None
    return context.replaced(
        node, f"{{{', '.join(entries)}}}", "a map projection is a map in Ladybug"
    )


def first_item(node: AstNode, context: QueryContext) -> Change | None:
    """``list[0]`` is its first item, which Ladybug counts as 1."""
    if not isinstance(node, ast.ListSubscript) or not isinstance(
        node.index, ast.Integer
    ):
        return None
    if node.index.this != 0:
        return None
    return context.replaced(
        node,
        f"list_extract({context.text(node.this)}, 1)",
        "list[0] is list_extract(list, 1) in Ladybug, which counts from 1",
    )


LADYBUG: Rules = {
    ast.Identifier: (quoted_name,),
    LabelName: (quoted_name,),
    ast.Property: (calls.days_between, calls.date_part, quoted_key),
    ast.Map: (quoted_key,),
    ast.Query: (unlimited_order,),
    Subquery: (bare_subquery, subquery_without_return),
    ast.Match: (shortest_path, condition_in_brackets),
    ast.ListComprehension: (comprehension,),
    Chain: (compared_in_turn,),
    ast.MapProjection: (map_projection,),
    ast.ListSubscript: (first_item,),
    ast.FunctionCall: (
        calls.pattern_test,
        calls.counted_comprehension,
        existing_property,
        calls.renamed,
        calls.rounded,
        calls.identifier,
        calls.end_of_list,
        calls.part_of_text,
        calls.now,
        calls.given_time,
        calls.duration,
    ),
}
