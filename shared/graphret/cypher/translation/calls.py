"""Functions of Neo4j in the words of Ladybug 0.22, where these mean the same."""

from __future__ import annotations

import re

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.semantics.walk import bare_pattern
from graphret.cypher.translation.changes import Change, QueryContext
from graphret.cypher.translation.neo4j import only_argument

#: Functions that differ in their name alone.
_RENAMED = {
    "type": "label",
    "startnode": "start_node",
    "endnode": "end_node",
    "tofloat": "to_double",
    "toboolean": "to_bool",
    "split": "string_split",
    "rand": "random",
}
#: Functions that mean the same of some types of properties only: Ladybug rounds a
#: float where Neo4j cuts it, and writes more of its digits.
_RENAMED_BY_TYPE = {
    "tointeger": ("to_int64", frozenset(("INTEGER", "STRING"))),
    "tostring": ("to_string", frozenset(("INTEGER", "STRING"))),
}
_NOW = {
    "datetime": "current_timestamp()",
    "localdatetime": "current_timestamp()",
    "date": "current_date()",
    "timestamp": "to_epoch_ms(current_timestamp())",
}
#: Parts of a date or a time that both count alike.
_DATE_PARTS = frozenset(("year", "quarter", "month", "day", "hour", "minute", "second"))
#: The plural that `duration` takes for each, in the order of ISO 8601.
_DURATION_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_ISO_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?"
)


def renamed(node: AstNode, context: QueryContext) -> Change | None:
    """``type(r)`` is ``label(r)``, ``split`` is ``string_split``."""
    if not isinstance(node, ast.FunctionCall):
        return None
    name = str(node.name.this)
    new_name = _RENAMED.get(name.lower())
    if new_name is None and name.lower() in _RENAMED_BY_TYPE and node.expressions:
        by_type, allowed = _RENAMED_BY_TYPE[name.lower()]
        types = context.types_of(node.expressions[0])
        new_name = by_type if types and types <= allowed else None
    if new_name is None:
        return None
    return context.replaced(
        node.name, new_name, f"{name}(…) is {new_name}(…) in Ladybug"
    )


def pattern_test(node: AstNode, context: QueryContext) -> Change | None:
    """``exists((a)-->())`` and ``size((a)-->())`` are subqueries."""
    for function, subquery in (("exists", "EXISTS"), ("size", "COUNT")):
        argument = only_argument(node, function)
        if argument is not None and bare_pattern(argument) is not None:
            return context.replaced(
                node,
                f"{subquery} {{ MATCH {context.text(argument)} }}",
                f"{function}(…) of a pattern is {subquery} {{ MATCH … }} in Ladybug",
            )
    return None


def counted_comprehension(node: AstNode, context: QueryContext) -> Change | None:
    """``size([(a)-->(b) WHERE … | b])`` counts what the pattern finds."""
    argument = only_argument(node, "size")
    if not isinstance(argument, ast.PatternComprehension):
        return None
    where = f" WHERE {context.text(argument.where)}" if argument.where else ""
    return context.replaced(
        node,
        f"COUNT {{ MATCH {context.text(argument.pattern)}{where} }}",
        "size(…) of a pattern is COUNT { MATCH … } in Ladybug",
    )


def rounded(node: AstNode, context: QueryContext) -> Change | None:
    """``round(x)`` needs to be told how many digits."""
    argument = only_argument(node, "round")
    if argument is None:
        return None
    return context.replaced(
        node, f"round({context.text(argument)}, 0)", "round(x) is round(x, 0)"
    )


def identifier(node: AstNode, context: QueryContext) -> Change | None:
    """``elementId(n)`` and ``labels(n)`` are columns of a node."""
    for function, column in (("elementid", "id"), ("labels", "labels")):
        argument = only_argument(node, function)
        if argument is not None and context.is_node(argument):
            return context.replaced(
                node,
                f"{context.text(argument)}.{column}",
                f"{function}(…) of a node is its column {column!r} in Ladybug",
            )
    return None


def end_of_list(node: AstNode, context: QueryContext) -> Change | None:
    """``head(list)`` and ``last(list)`` are its first and its last item."""
    for function, place in (("head", 1), ("last", -1)):
        argument = only_argument(node, function)
        if argument is not None:
            return context.replaced(
                node,
                f"list_extract({context.text(argument)}, {place})",
                f"{function}(…) is list_extract(…, {place}) in Ladybug",
            )
    return None


def part_of_text(node: AstNode, context: QueryContext) -> Change | None:
    """``substring(x, 0, 3)`` counts from 0, where Ladybug counts from 1.

    A start that is another number may be meant either way, and stays.
    """
    if not isinstance(node, ast.FunctionCall) or len(node.expressions) != 3:
        return None
    text, start, length = node.expressions
    if str(node.name.this).lower() != "substring" or not _is_zero(start):
        return None
    return context.replaced(
        node,
        f"left({context.text(text)}, {context.text(length)})",
        "substring(x, 0, n) is left(x, n) in Ladybug, which counts from 1",
    )


def _is_zero(node: AstNode) -> bool:
    return isinstance(node, ast.Integer) and node.this == 0


# -- dates and times


def now(node: AstNode, context: QueryContext) -> Change | None:
    """``datetime()`` and ``date()`` are the time and the day that it is."""
    if not isinstance(node, ast.FunctionCall) or node.expressions:
        return None
    name = str(node.name.this).lower()
    if name not in _NOW:
        return None
    return context.replaced(node, _NOW[name], f"{name}() is {_NOW[name]} in Ladybug")


def given_time(node: AstNode, context: QueryContext) -> Change | None:
    """``datetime(x)`` of a text is ``timestamp(x)``."""
    for function in ("datetime", "localdatetime"):
        argument = only_argument(node, function)
        if argument is not None and not isinstance(argument, ast.Map):
            return context.replaced(
                node,
                f"timestamp({context.text(argument)})",
                f"{function}(x) is timestamp(x) in Ladybug",
            )
    return None


def date_part(node: AstNode, context: QueryContext) -> Change | None:
    """``date(x).year`` is ``date_part('year', date(x))``.

    So is the part of a property that holds a date as text.
    """
    if not isinstance(node, ast.Property) or str(node.name.this) not in _DATE_PARTS:
        return None
    part, owner = str(node.name.this), node.this
    text = context.text(owner)
    if isinstance(owner, ast.FunctionCall):
        if str(owner.name.this).lower() not in (*_NOW, "current_date", "timestamp"):
            return None
    elif _is_text_property(owner, context):
        text = f"timestamp({text})"
    else:
        return None
    return context.replaced(
        node,
        f"date_part('{part}', {text})",
        f".{part} of a date is date_part('{part}', …) in Ladybug",
    )


def _is_text_property(node: AstNode, context: QueryContext) -> bool:
    """Whether a node or a relationship has it, and not as a map."""
    if not isinstance(node, ast.Property):
        return False
    owner = node.this
    is_pattern = isinstance(owner, ast.Identifier) and owner.this in (
        context.pattern_names
    )
    return is_pattern and context.types_of(node) <= {"STRING"}


def duration(node: AstNode, context: QueryContext) -> Change | None:
    """``duration('P30D')`` and ``duration({days: 30})`` are ``interval('30 days')``."""
    argument = only_argument(node, "duration")
    counts: dict[str, int] = {}
    if isinstance(argument, ast.String):
        match = _ISO_DURATION.fullmatch(str(argument.this))
        amounts = match.groups() if match else ()
        counts = {
            unit: int(amount)
            for unit, amount in zip(_DURATION_UNITS, amounts, strict=False)
            if amount
        }
    elif isinstance(argument, ast.Map):
        for key, value in argument.entries:
            if str(key.this) not in _DURATION_UNITS or not isinstance(
                value, ast.Integer
            ):
                return None
            counts[str(key.this)] = value.this
    if not counts:
        return None
    written = " ".join(f"{count} {unit}" for unit, count in counts.items())
    return context.replaced(
        node, f"interval('{written}')", f"the duration is interval('{written}')"
    )


def days_between(node: AstNode, context: QueryContext) -> Change | None:
    """``duration.inDays(date(a), date(b)).days`` is the difference of two dates."""
    if not isinstance(node, ast.Property) or str(node.name.this) != "days":
        return None
    call = node.this
    if (
        not isinstance(call, ast.FunctionCall)
        or str(call.name.this).lower() != "duration.indays"
        or len(call.expressions) != 2
        or not all(map(_is_date, call.expressions))
    ):
        return None
    first, last = map(context.text, call.expressions)
    return context.replaced(
        node, f"({last} - {first})", "days between dates are their difference"
    )


def _is_date(node: AstNode) -> bool:
    return isinstance(node, ast.FunctionCall) and str(node.name.this).lower() in (
        "date",
        "current_date",
    )
