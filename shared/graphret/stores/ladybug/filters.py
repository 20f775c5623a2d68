"""Conditions as Ladybug's Cypher, with every value a parameter; `Where.matches` decides what Cypher cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphret.columns import to_json
from graphret.stores.cypher_where import pushed_down
from graphret.stores.ladybug.tables import INTEGERS, OVERFLOW, Catalog, Table, is_text, quoted
from graphret.where import PROPERTIES, Where

_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_KINDS = {"STRING": str, "BOOL": bool, "DOUBLE": float, "FLOAT": float, **dict.fromkeys(INTEGERS, int)}


class Filter:
    """A condition on a node of some tables, which a query calls by a variable.

    Attributes
    ----------
    text, parameters
        What the database decides: true of every node that satisfies the condition.
    rest
        What `Where.matches` has to decide of the nodes that this leaves, such as what has another type in one of the
        tables than in another; `None` where nothing is left.
    """

    def __init__(self, where: Where | None, catalog: Catalog, tables: Iterable[Table], variable: str = "n") -> None:
        self._catalog, self._tables, self._variable = catalog, [*tables], variable
        self.parameters: dict[str, Any] = {}
        self.text, self.rest = pushed_down(where, self._leaf)
        names = sorted({name for field in _properties_in(where) for name in _names(field)})
        if names and catalog.native and any(OVERFLOW in table.columns for table in self._tables):
            json = f"{variable}.{quoted(OVERFLOW)}"  # of a node in whose JSON such a name is, columns say nothing
            kept = (f"contains({json}, {self._parameter(f'{to_json(name)}:')})" for name in names)
            self.text, self.rest = f"({' OR '.join([*kept, self.text])})", where

    @property
    def pattern(self) -> str:
        """The variable and its tables, as they are written between the brackets of a pattern."""
        return self._variable + "".join(f":{quoted(table.name)}" for table in self._tables)

    def _parameter(self, value: Any) -> str:
        name = f"where_{self._variable}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def _leaf(self, where: Where) -> str | None:
        """Write a condition on one field; `None` where Cypher cannot say it exactly."""
        operands = where.value if where.operator in ("$in", "$nin") else (where.value,)
        if not all(map(_is_plain, operands)):
            return None
        if where.field == "label":
            return self._label(where.operator, operands)
        if where.field == "id":
            return self._compared(where.operator, operands, self._catalog.id_of(self._variable), "STRING")
        own = where.field in ("name", "text")  # which every node has
        parent = where.field.split(".")[0]
        if parent != where.field and any(parent in table.properties for table in self._tables):
            return None  # a map may lie there
        found = {(column, table.columns[column]) for table in self._tables for column in self._columns(table, where)}
        absent = _constant(where.compares(True, "") if own else where.compares(False, None))
        if not found:
            return absent
        column, kind = min(found)
        if len(found) > 1 or (own and kind != "STRING"):
            return None
        value = f"{self._variable}.{quoted(column)}"
        there = f"{value} IS NOT NULL"
        if kind in ("DOUBLE", "FLOAT") and not self._catalog.native:  # NaN and the infinite are no values
            there += f" AND {value} - {value} = 0"
        if kind == "DATE":
            value, kind = f"CAST({value} AS STRING)", "STRING"
        written = self._compared(where.operator, operands, value, kind)
        return written and f"CASE WHEN {there} THEN {written} ELSE {absent} END"

    def _columns(self, table: Table, where: Where) -> list[str]:
        if where.field in ("name", "text"):
            column = self._catalog.own[1 if where.field == "name" else 2]
            return [column] if column is not None and column in table.columns else []
        return [table.properties[name] for name in {*_names(where.field)[:2]} if name in table.properties]

    def _label(self, op: str, operands: Sequence[Any]) -> str | None:
        if op not in ("$eq", "$ne", "$in", "$nin", "$contains"):
            return None
        wanted = [one for one in operands if isinstance(one, str)]
        if self._catalog.native:
            has = [f"list_contains({self._variable}.labels, {self._parameter(one)})" for one in wanted]
        else:
            names = [table.name for table in self._tables if table.label in wanted]
            has = [f"label({self._variable}) IN {self._parameter(names)}"] if names else []
        return f"{'NOT ' if op in ('$ne', '$nin') else ''}({' OR '.join(has) or 'false'})"

    def _compared(self, op: str, operands: Sequence[Any], value: str, kind: str) -> str | None:
        """Compare a value that is there, of a type of column; `None` for what is not compared in Cypher."""
        item, listed = _KINDS.get(kind.removesuffix("[]")), kind.endswith("[]")
        if op == "$exists":
            return _constant(operands[0])
        if item is None or any(isinstance(one, tuple) for one in operands) or (listed and op != "$contains"):
            return None
        fitting = [item(one) for one in operands if _fits(one, item)]
        if op in ("$eq", "$ne", "$in", "$nin"):
            same = f"({value} IN {self._parameter(fitting)})" if fitting else "(false)"
            return f"NOT {same}" if op in ("$ne", "$nin") else same
        if op == "$contains":
            if not fitting or not (listed or item is str):
                return "false"
            function = "list_contains" if listed else "contains"
            return f"{function}({value}, {self._parameter(fitting[0])})" if fitting != [""] or listed else "true"
        (given,) = operands
        if item is bool or isinstance(given, bool | None) or isinstance(given, str) != (item is str):
            return "false"
        return f"({value} {_SIGNS[op]} {self._parameter(given)})"


def _properties_in(where: Where | None) -> Iterator[str]:
    """The fields of the conditions on properties."""
    if where is not None and where.field not in ("", "id", "name", "text", "label"):
        yield where.field
    for child in where.children if where is not None else ():
        yield from _properties_in(child)


def _names(field: str) -> list[str]:
    """The properties that a field may mean, and the one that it may lie in: see `graphret.where.lookup`."""
    return [field, field.removeprefix(PROPERTIES), field.split(".")[0]]


def _constant(value: bool) -> str:
    return "true" if value else "false"


def _is_plain(value: Any) -> bool:
    """Whether a value of a condition is one that the database compares as Python does."""
    if isinstance(value, str):
        return is_text(value)
    return value is None or isinstance(value, (bool, tuple)) or abs(value) <= 2**53


def _fits(value: Any, kind: type) -> bool:
    """Whether a value of a column may equal one of a condition."""
    if kind in (str, bool):
        return isinstance(value, kind)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (kind is float or value == int(value))
