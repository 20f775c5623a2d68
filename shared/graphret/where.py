"""`Where`: conditions on nodes, with one meaning on every store and adapter."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.types import Node

WhereLike: TypeAlias = "Where | Mapping[str, Any] | None"

_ORDER = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = (
    *("$eq", "$ne", "$in", "$nin", "$contains", "$icontains", "$exists"),
    *_ORDER,
)
_NEGATED = {"$ne": "$eq", "$nin": "$in"}
#: The prefix of a property that has the name of a node's own field.
PROPERTIES = "properties."
#: The most alternatives of one condition, and levels of nested conditions.
_ALTERNATIVES, _LEVELS = 200, 50
_TOO_DEEP = f"where: conditions are nested in more than {_LEVELS} levels"


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on a node, or a combination of conditions.

    Written as a mapping: ``{"year": 1999}``, ``{"year": {"$gte": 1990, "$lt": 2000}}``,
    ``{"$or": [{"label": "Table"}, {"lang": {"$in": ["en", "de"]}}]}``, ``{"$not":
    {...}}``. Several keys are joined by
    *and*. Operators: ``$eq $ne $in $nin $gt $gte $lt $lte $contains $icontains
    $exists``. The fields ``id``, ``name``, ``text`` and ``label`` (any of the labels)
    are the node's own; every other field is a property, with dots for nested ones.
    ``properties.name`` is the property where a node's own field has the same name.

    A condition on a property that a node lacks is false, except ``$ne``, ``$nin`` and
    ``{"$exists": False}``. Values of kinds that cannot be compared do not match;
    strings are ordered by code points. ``$contains`` tests whether a list has the
    value, or a string the substring; ``$icontains`` tests strings alone, ignoring case.
    Equality with a list property is equality of the whole list. numpy's numbers count
    as Python's.

    Raises
    ------
    InvalidInput
        On an unknown operator, an empty ``$and`` or ``$or``, a value other than a JSON
        scalar or a list of these, more than 200 alternatives of ``$or`` or more than 50
        levels.
    """

    operator: str
    field: str = ""
    value: Any = None
    children: tuple[Where, ...] = ()

    def __post_init__(self) -> None:
        if self._levels > _LEVELS:
            raise InvalidInput(_TOO_DEEP)

    @property
    def _levels(self) -> int:
        return 1 + max((child._levels for child in self.children), default=0)

    @classmethod
    def parse(cls, condition: WhereLike) -> Where | None:
        """Return the condition of a mapping; `None` for `None` or an empty mapping."""
        if condition is None or isinstance(condition, Where):
            return condition
        if not isinstance(condition, Mapping):
            raise InvalidInput(
                "where: expected a mapping of conditions, got"
                f" {type(condition).__name__}"
            )
        try:
            parts = [
                part
                for key, value in condition.items()
                for part in _parse_item(key, value)
            ]
        except RecursionError:
            raise InvalidInput(_TOO_DEEP) from None
        return (
            None
            if not parts
            else parts[0]
            if len(parts) == 1
            else cls("$and", children=tuple(parts))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        # True and 1 are equal, their texts are not.
        return self.operator, self.field, repr(self.value), self.children

    def matches(self, node: Node) -> bool:
        """Whether the node satisfies the condition."""
        if self.operator == "$and":
            return all(child.matches(node) for child in self.children)
        if self.operator == "$or":
            return any(child.matches(node) for child in self.children)
        if self.operator == "$not":
            return not self.children[0].matches(node)
        if self.field == "label":  # any of the labels may satisfy it
            if self.operator in _ORDER:
                raise InvalidInput(f"where: {self.operator} does not apply to labels")
            if self.operator == "$exists":
                return bool(node.labels) is self.value
            positive = replace(
                self, operator="$in" if self.operator in ("$in", "$nin") else "$eq"
            )
            return any(positive.compares(True, label) for label in node.labels) != (
                self.operator in _NEGATED
            )
        if self.field in ("id", "name", "text"):
            return self.compares(True, getattr(node, self.field))
        return self.compares(*lookup(node.properties, self.field))

    def compares(self, exists: bool, value: Any) -> bool:
        """Whether a condition on one field holds for a node's value, if it exists."""
        negated, op, operand = (
            self.operator in _NEGATED,
            _NEGATED.get(self.operator, self.operator),
            self.value,
        )
        if op == "$exists":
            return exists is operand
        if not exists:
            return negated or (op == "$eq" and operand is None)
        if op in ("$eq", "$in"):
            alternatives = operand if op == "$in" else (operand,)
            return any(_same(value, other) for other in alternatives) != negated
        if op == "$contains":
            if isinstance(value, str):
                return isinstance(operand, str) and operand in value
            return isinstance(value, (list, tuple)) and any(
                _same(item, operand) for item in value
            )
        if op == "$icontains":
            return isinstance(value, str) and operand.lower() in value.lower()
        ordered = all(
            isinstance(side, (str, int, float)) and not isinstance(side, bool)
            for side in (value, operand)
        )
        return (
            ordered
            and isinstance(value, str) == isinstance(operand, str)
            and bool(_ORDER[op](value, operand))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as the mapping that `parse` reads."""
        if self.operator in ("$and", "$or"):
            return {self.operator: [child.to_dict() for child in self.children]}
        if self.operator == "$not":
            return {"$not": self.children[0].to_dict()}
        return {self.field: {self.operator: _lists(self.value)}}


def both(left: Where | None, right: Where | None) -> Where | None:
    """Return the conjunction of two conditions; `None` is no condition."""
    if left is None or right is None:
        return right if left is None else left
    children = (
        side.children if side.operator == "$and" else (side,) for side in (left, right)
    )
    return Where("$and", children=tuple(chain.from_iterable(children)))


def _parse_item(key: Any, value: Any) -> Iterable[Where]:
    if not isinstance(key, str) or not key:
        raise InvalidInput(f"where: expected the name of a field, got {key!r}")
    if key in ("$and", "$or"):
        listed = value if isinstance(value, (list, tuple)) else ()
        children = tuple(
            child for child in map(Where.parse, listed) if child is not None
        )
        if not children or len(children) < len(listed):
            raise InvalidInput(
                f"where: {key} takes a non-empty list of conditions, none of them empty"
            )
        if key == "$or" and len(children) > _ALTERNATIVES:
            raise InvalidInput(
                f"where: $or: expected at most {_ALTERNATIVES} alternatives, got"
                f" {len(children)}"
            )
        return [Where(key, children=children)]
    if key == "$not":
        child = Where.parse(value)
        if child is None:
            raise InvalidInput("where: $not takes a condition")
        return [Where("$not", children=(child,))]
    operators = value if isinstance(value, Mapping) else {"$eq": value}
    if (
        key.startswith("$")
        or not operators
        or not all(op in _OPERATORS for op in operators)
    ):
        operator_names = ", ".join(("$and", "$or", "$not", *_OPERATORS))
        raise InvalidInput(
            f"where: {key!r}: expected operators among {operator_names}, got {value!r}"
        )
    return [_leaf(key, op, operand) for op, operand in operators.items()]


def _leaf(field: str, op: str, operand: Any) -> Where:
    if op in ("$in", "$nin"):
        if isinstance(operand, str) or not isinstance(operand, Iterable):
            raise InvalidInput(f"where: {op} on {field!r} takes a list")
        return Where(op, field, tuple(_value(field, item) for item in operand))
    if op == "$exists" and not isinstance(operand, bool):
        raise InvalidInput(f"where: $exists on {field!r} takes true or false")
    if op == "$icontains" and not isinstance(operand, str):
        raise InvalidInput(
            f"where: $icontains on {field!r}: expected a string, got {operand!r}"
        )
    return Where(op, field, _value(field, operand))


def _value(field: str, value: Any) -> Any:
    import numpy as np  # not needed by commands that only show their help

    listed = isinstance(value, (list, tuple))
    parts = tuple(
        part.item() if isinstance(part, np.generic) else part
        for part in (value if listed else (value,))
    )
    if not all(part is None or isinstance(part, (str, int, float)) for part in parts):
        raise InvalidInput(
            f"where: {field!r}: expected a JSON scalar or a list of these, got"
            f" {value!r}"
        )
    return parts if listed else parts[0]


def _lists(value: Any) -> Any:
    return list(map(_lists, value)) if isinstance(value, tuple) else value


def lookup(properties: Mapping[str, Any], field: str) -> tuple[bool, Any]:
    """Return whether a property exists and is not null, and its value."""
    value = properties.get(field)
    if value is None and "." in field:
        value = properties
        for part in field.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None and field.startswith(PROPERTIES):
            value = properties.get(field.removeprefix(PROPERTIES))
    return value is not None, value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):  # JSON's true is not 1
        return False
    if isinstance(left, (list, tuple)) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
