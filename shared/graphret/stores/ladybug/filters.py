"""Conditions as Ladybug's Cypher; `Where.matches` decides what Cypher cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphret.stores.conditions import SIGNS, Conditions
from graphret.stores.ladybug.tables import Table, column_of, quoted
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

    @property
    def pattern(self) -> str:
        """The variable and its tables, as they are written between the brackets of a pattern."""
        return self.variable + "".join(f":{quoted(table.name)}" for table in self._tables)

    def bears(self, labels: Sequence[str] | None) -> str:
        """Write that the node bears one of the labels, or any."""
        if labels is None:
            return f"(size({self.variable}.labels) > 0)"
        has = [f"list_contains({self.variable}.labels, {self.parameter(one)})" for one in labels]
        return f"({' OR '.join(has) or 'false'})"

    def value(self, where: Where) -> tuple[str, str] | None:
        """Return the column of a field and its type; `None` where it has several, or may lie in a map."""
        if where.field in ("id", "name", "text"):
            return f"{self.variable}.{where.field}", "STRING"
        column = column_of(where.field.removeprefix(PROPERTIES))
        if "." in where.field.removeprefix(PROPERTIES):
            return None
        kinds = {table.columns[column] for table in self._tables if column in table.columns} or {"NULL"}
        if len(kinds) > 1:
            return None
        return "null" if kinds == {"NULL"} else f"{self.variable}.{quoted(column)}", kinds.pop()

    def compared(self, op: str, operands: Sequence[Any], value: str, kind: str) -> str | None:
        """Write a comparison with a value of a type of column."""
        texts = all(isinstance(one, str) for one in operands)
        if any(isinstance(one, tuple) for one in operands) or (kind == "STRING" and not texts):
            return None  # a column of text may hold the text of something else
        item, listed = _KINDS.get(kind.removesuffix("[]")), kind.endswith("[]")
        fitting = [item(one) for one in operands if item is not None and _fits(one, item)]
        if op in SIGNS:
            ordered = not listed and item in (int, float, str) and texts == (item is str)
            written = f"{value} {SIGNS[op]} {self.parameter(operands[0])}" if ordered else "false"
        elif not fitting or (listed and op != "$contains"):
            return "false"
        elif op != "$contains":
            written = f"{value} IN {self.parameter(fitting)}"
        elif listed:
            written = f"list_contains({value}, {self.parameter(fitting[0])})"
        elif item is not str:
            return "false"
        else:  # Ladybug finds the empty text in none
            written = f"contains({value}, {self.parameter(fitting[0])})" if fitting != [""] else "true"
        # `coalesce` in a condition returns rows twice (0.22)
        return f"CASE WHEN {value} IS NOT NULL THEN {written} ELSE false END"


def _fits(value: Any, kind: type) -> bool:
    """Whether a value of a column may equal one of a condition."""
    if kind in (str, bool):
        return isinstance(value, kind)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (kind is float or value == int(value))
