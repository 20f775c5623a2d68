"""How ``where=`` becomes Cypher: each condition on one field is written, with its values as parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import pushed_down
from graphret.stores.neo4j.layout import JSON, Layout, quotable
from graphret.where import PROPERTIES, Where

_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_TEMPORAL = ("DATE", "LOCAL TIME", "ZONED TIME", "LOCAL DATETIME", "ZONED DATETIME", "DURATION")
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
        if where.field in ("id", "name", "text"):
            return self._compare(op, operand, self._field(where.field), always=True)
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # may lead into a map that is kept as JSON
            return None
        key = quotable([self.layout.place(name, written=False)])
        return self._compare(op, operand, f"{self.variable}.{key[0]}" if key else "null", name=name)

    def bears(self, labels: Iterable[Any] | None) -> str:
        """Write that the node bears one of the labels; ``true`` where there are none to bear."""
        if labels is None:
            return "true"
        shown = (label for label in labels if isinstance(label, str) and label not in self.layout.unseen_labels)
        borne = " OR ".join(f"{self.variable}:{name}" for name in quotable(shown))
        return f"({borne})" if borne else "false"

    def _label(self, op: str, operand: Any) -> str:
        if op == "$exists":
            unseen = self._parameter(sorted(self.layout.unseen_labels))
            return f"{'' if operand else 'NOT '}any(l IN labels({self.variable}) WHERE NOT l IN {unseen})"
        if op in _ORDER:
            raise InvalidInput(f"where: {op} does not apply to labels")
        bears = self.bears(operand if op in ("$in", "$nin") else (operand,))
        return f"NOT {bears}" if op in ("$ne", "$nin") else bears

    def _field(self, field: str) -> str:
        if field == "id":
            return self.layout.id_of(self.variable)
        return self.layout.text_of(self.variable, self.layout.name if field == "name" else self.layout.text)

    def _compare(self, op: str, operand: Any, value: str, *, name: str = "", always: bool = False) -> str | None:
        """Write a comparison of `value`, of the property `name`, or of a field that every node has (`always`)."""
        if operand is None and op == "$ne":  # nothing that is there equals null
            return "true"
        if op == "$exists" or (operand is None and op == "$eq"):
            there = operand is True
            return str(there).lower() if always else f"{value} IS {'NOT ' if there else ''}NULL"
        if op in ("$in", "$nin"):
            operand = tuple(item for item in operand if item is not None)  # which equals nothing that is there
            if not all(map(_is_sendable, operand)):
                return None
            found = self._found("{} IN {}", operand, operand, value, name)
            return f"NOT {found}" if op == "$nin" else found
        if not _is_sendable(operand):
            return None
        if op in ("$eq", "$ne"):
            found = self._found("{} = {}", operand, (operand,), value, name)
            return f"NOT {found}" if op == "$ne" else found
        if op == "$contains":
            return self._contains(operand, value, name, always)
        if isinstance(operand, bool | tuple):
            return "false"
        return self._found(f"{{}} {_ORDER[op]} {{}}", operand, (operand,), value, name)

    def _found(self, comparison: str, sent: Any, operands: Iterable[Any], value: str, name: str) -> str:
        """Write a comparison that is never null, and of text one that knows dates and does not see JSON."""
        parameter = self._parameter(sent)
        texts = [operand for operand in operands if isinstance(operand, str)]
        compared = comparison.format(value, parameter)
        if name and not self.layout.own and any(map(_ISO.match, texts)):
            compared = f"({compared} OR {comparison.format(f'CASE {_temporal(value)} END', parameter)})"
        return f"(coalesce({compared}, false){self._apart_from_json(name) if texts else ''})"

    def _contains(self, operand: Any, value: str, name: str, always: bool) -> str | None:
        if isinstance(operand, tuple):
            return None
        if always:
            return f"{value} CONTAINS {self._parameter(operand)}" if isinstance(operand, str) else "false"
        sent = self._parameter(operand)
        cases = f"WHEN {value} IS :: LIST<ANY> NOT NULL THEN {sent} IN {value} "
        if isinstance(operand, str):
            cases += f"WHEN {value} IS :: STRING NOT NULL THEN {value} CONTAINS {sent} "
            cases += "" if self.layout.own else f"{_temporal(value)} CONTAINS {sent} "
        return f"(coalesce(CASE {cases}ELSE false END, false){self._apart_from_json(name)})"

    def _apart_from_json(self, name: str) -> str:
        return f" AND NOT coalesce({self._parameter(name)} IN {self.variable}.{JSON}, false)" if name else ""

    def _parameter(self, value: Any) -> str:
        """Return a new parameter of this value, as it is written in a query."""
        key = f"{self.prefix}{len(self.parameters)}"
        self.parameters[key] = list(value) if isinstance(value, tuple) else value
        return f"${key}"


def _temporal(value: str) -> str:
    """Write the case in which a value is a date, a time or a duration: its text, as it is read."""
    kinds = " OR ".join(f"{value} IS :: {kind} NOT NULL" for kind in _TEMPORAL)
    return f"WHEN {kinds} THEN replace(toString({value}), 'Z[UTC]', 'Z')"


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
    names = quotable(relations)
    return f":{'|'.join(names)}" if names else None


def _is_sendable(value: Any) -> bool:
    """Whether equality with a value means in Cypher what it means here: JSON's scalars, and lists of one kind."""
    if isinstance(value, tuple):
        kinds = {float if type(item) is int else type(item) for item in value}
        return len(kinds) <= 1 and all(not isinstance(item, tuple) and _is_sendable(item) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and abs(value) <= _EXACT
    return isinstance(value, str | bool)
