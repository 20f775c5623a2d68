"""How ``where=`` becomes Cypher: each condition on one field is written, with its values as parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import pushed_down
from graphret.stores.neo4j.layout import Layout, escaped, quote
from graphret.where import PROPERTIES, Where

_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_TEMPORAL = "DATE | LOCAL TIME | ZONED TIME | LOCAL DATETIME | ZONED DATETIME | DURATION"
#: What begins as the text of a date, a time or a duration does.
_ISO = re.compile(r"-?\d{4}(-|$)|\d\d:|-?P\d")
_EXACT = 2**53


class Filter:
    """Writes conditions on the node that is `variable`, with the meaning that `Where.matches` has of it.

    Parameters
    ----------
    layout
        Where the fields of nodes are.
    prefix
        What the names of `parameters` begin with.
    """

    def __init__(self, layout: Layout, variable: str, prefix: str = "where") -> None:
        self.layout = layout
        self.variable = variable
        self.prefix = prefix
        self.parameters: dict[str, Any] = {}

    def write(self, where: Where | None) -> tuple[str, Where | None]:
        """Return the condition as a Cypher expression, and what is left of it for `Where.matches`."""
        return pushed_down(where, self.leaf)

    def leaf(self, where: Where) -> str | None:
        """Write a condition on one field; `None` where Cypher cannot say it."""
        op, operand = where.operator, where.value
        if where.field == "label":
            return self._label(op, operand)
        if where.field == "id":
            return self._compare(op, operand, self.layout.id_of(self.variable), text=True)
        if where.field in ("name", "text"):
            value = self.layout.text_of(self.variable, getattr(self.layout, where.field))
            return self._compare(op, operand, value, text=True)
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # may lead into a map that is kept as JSON
            return None
        value = f"{self.variable}.{quote(escaped(name, self.layout.taken(written=False)), 'where')}"
        texts = [one for one in (operand if op in ("$in", "$nin") else (operand,)) if isinstance(one, str)]
        if not self.layout.own and any(op == "$contains" or _ISO.match(text) for text in texts):
            value = f"CASE WHEN {value} IS :: {_TEMPORAL} THEN split(toString({value}), '[')[0] ELSE {value} END"
        return self._compare(op, operand, value)

    def bears(self, labels: Iterable[Any] | None) -> str:
        """Write that the node bears one of the labels; ``true`` where there are none to bear."""
        if labels is None:
            return "true"
        shown = [label for label in labels if isinstance(label, str) and label not in self.layout.unseen_labels]
        borne = " OR ".join(f"{self.variable}:{quote(label)}" for label in shown if label)
        return f"({borne})" if borne else "false"

    def _label(self, op: str, operand: Any) -> str:
        if op == "$exists":
            unseen = self._parameter(sorted(self.layout.unseen_labels))
            return f"{'' if operand else 'NOT '}any(l IN labels({self.variable}) WHERE NOT l IN {unseen})"
        if op in _ORDER:
            raise InvalidInput(f"where: {op} does not apply to labels")
        bears = self.bears(operand if op in ("$in", "$nin") else (operand,))
        return f"NOT {bears}" if op in ("$ne", "$nin") else bears

    def _compare(self, op: str, operand: Any, value: str, *, text: bool = False) -> str | None:
        """Write a comparison that is never null; of a value that is always a text (`text`), as fields are."""
        if op == "$ne" and operand is None:  # nothing that is there equals null
            return "true"
        if op == "$exists" or (op == "$eq" and operand is None):
            return f"{value} IS {'NOT ' if operand else ''}NULL"
        if op in ("$in", "$nin"):
            operand = tuple(item for item in operand if item is not None)  # which equals nothing that is there
            if not all(map(_is_sendable, operand)):
                return None
        elif not _is_sendable(operand) or (op == "$contains" and isinstance(operand, tuple)):
            return None
        if op in _ORDER and isinstance(operand, bool | tuple):
            return "false"
        sent = self._parameter(operand)
        if op == "$contains":
            in_text = f"{value} CONTAINS {sent}" if isinstance(operand, str) else "false"
            in_list = f"CASE WHEN {value} IS :: LIST<ANY> THEN {sent} IN {value} ELSE"
            found = in_text if text else f"{in_list} CASE WHEN {value} IS :: STRING THEN {in_text} END END"
        else:
            found = f"{value} {_ORDER.get(op, 'IN' if op in ('$in', '$nin') else '=')} {sent}"
        return f"{'NOT ' if op in ('$ne', '$nin') else ''}coalesce({found}, false)"

    def _parameter(self, value: Any) -> str:
        """Return a new parameter of this value, as it is written in a query."""
        key = f"{self.prefix}{len(self.parameters)}"
        self.parameters[key] = list(value) if isinstance(value, tuple) else value
        return f"${key}"


def require_pushed_down(where: Where | None) -> None:
    """Raise an `InvalidInput` if the database cannot decide all of a condition, as that of a view must be."""
    _, left = Filter(Layout(), "n").write(where)
    if left is not None:
        raise InvalidInput(
            f"where: a view of a database takes conditions that the database itself decides, which {left.to_dict()} is "
            "not: give texts, truth values, numbers up to 2^53 or lists of one kind of these, and no path into a map"
        )


def relation_types(relations: list[str] | None) -> str | None:
    """Return the relations as a pattern has them, `None` where no edge can have one of them."""
    if relations is None:
        return ""
    return f":{'|'.join(map(quote, relations))}" if relations else None


def _is_sendable(value: Any) -> bool:
    """Whether equality with a value means in Cypher what it means here: JSON's scalars, and lists of one kind."""
    if isinstance(value, tuple):
        kinds = {float if type(item) is int else type(item) for item in value}
        return len(kinds) <= 1 and all(not isinstance(item, tuple) and _is_sendable(item) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and abs(value) <= _EXACT
    return isinstance(value, str | bool)
