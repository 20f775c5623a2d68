"""Conditions as Ladybug's Cypher; `Where.matches` decides what Cypher cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphret.stores.conditions import SIGNS, Conditions
from graphret.stores.ladybug.tables import UNTYPED, Table, column_of, quoted
from graphret.where import PROPERTIES, Where

_KINDS = {"STRING": str, "BOOL": bool, "DOUBLE": float, "INT64": int}


class Filter(Conditions):
    """A condition on a node of some tables: `text` is what the database decides, `rest` what `Where.matches` has to.

    `rest` is `None` where nothing is left; something is where a property has another type in another table.
    """

    def __init__(self, where: Where | None, tables: Iterable[Table], variable: str = "n") -> None:
        super().__init__(variable, f"where_{variable}_")
        self._tables = [*tables]
        self.text, self.rest = self.write(where)
        names = [*_properties_in(where)]
        if names and any(UNTYPED in table.columns for table in self._tables):
            untyped = f"list_has_any({variable}.{quoted(UNTYPED)}, {self.parameter(names)})"
            self.text, self.rest = f"({untyped} OR {self.text})", where

    @property
    def pattern(self) -> str:
        """The variable and its tables, as they are written between the brackets of a pattern."""
        return self.variable + "".join(f":{quoted(table.name)}" for table in self._tables)

    def labelled(self) -> str:
        """Write that the node bears a label."""
        return f"(size({self.variable}.labels) > 0)"

    def bears(self, labels: Iterable[str]) -> str:
        """Write that the node bears one of the labels."""
        has = [f"list_contains({self.variable}.labels, {self.parameter(one)})" for one in labels]
        return f"({' OR '.join(has) or 'false'})"

    def value(self, where: Where) -> tuple[str, str] | None:
        """Return the column of a field and its type; `None` where it has several, or may lie in a map."""
        if where.field in ("id", "name", "text"):
            return f"{self.variable}.{where.field}", "STRING"
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:
            return None
        kinds = {table.columns[column] for table in self._tables if (column := column_of(name)) in table.columns}
        if not kinds:
            return "null", "NULL"
        return (f"{self.variable}.{quoted(column_of(name))}", kinds.pop()) if len(kinds) == 1 else None

    def compared(self, op: str, operands: Sequence[Any], value: str, kind: str) -> str | None:
        """Write a comparison with a value of a type of column."""
        item, listed = _KINDS.get(kind.removesuffix("[]")), kind.endswith("[]")
        if any(isinstance(one, tuple) for one in operands) or (listed and op != "$contains"):
            return None
        fitting = [item(one) for one in operands if item is not None and _fits(one, item)]
        if op in SIGNS:
            fits = item not in (None, bool) and isinstance(operands[0], str) == (item is str)
            written = f"{value} {SIGNS[op]} {self.parameter(operands[0])}" if fits else "false"
        elif not fitting or (op == "$contains" and not listed and item is not str):
            return "false"
        elif op != "$contains":
            written = f"{value} IN {self.parameter(fitting)}"
        elif fitting == [""] and not listed:  # which Ladybug finds in no text
            return f"({value} IS NOT NULL)"
        else:
            written = f"{'list_contains' if listed else 'contains'}({value}, {self.parameter(fitting[0])})"
        # `coalesce` in a condition returns rows twice (0.22)
        return f"CASE WHEN {value} IS NOT NULL THEN {written} ELSE false END"


def _properties_in(where: Where | None) -> Iterator[str]:
    """The properties that conditions ask for."""
    if where is not None and where.field not in ("", "id", "name", "text", "label"):
        yield where.field.removeprefix(PROPERTIES).split(".")[0]
    for child in where.children if where is not None else ():
        yield from _properties_in(child)


def _fits(value: Any, kind: type) -> bool:
    """Whether a value of a column may equal one of a condition."""
    if kind in (str, bool):
        return isinstance(value, kind)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (kind is float or value == int(value))
