"""Conditions as Ladybug's Cypher, with every value a parameter; `Where.matches` decides what Cypher cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.columns import to_json
from graphret.stores.cypher_where import pushed_down
from graphret.stores.ladybug.tables import INTEGERS, OVERFLOW, NodeTable, agreeing, column_of, is_text, quoted
from graphret.where import PROPERTIES, Where

_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_KINDS = {"STRING": str, "BOOL": bool, "DOUBLE": float, "FLOAT": float, **dict.fromkeys(INTEGERS, int)}


@dataclass(slots=True)
class Filter:
    """A condition on the node of some tables, as one query can ask it.

    Parameters
    ----------
    tables
        In all of them the properties in question have one type; there is only one if there is a `rest`.
    variable
        Of the node.
    text
        What the database decides: true of every node that satisfies the condition.
    rest
        What `Where.matches` has to decide of the nodes that this leaves; `None` where nothing is left.
    """

    tables: Sequence[NodeTable]
    variable: str
    text: str = "true"
    rest: Where | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def pattern(self) -> str:
        """The variable and its tables, as they are written between the brackets of a pattern."""
        return self.variable + "".join(f":{quoted(table.name)}" for table in self.tables)

    @property
    def returned(self) -> list[str]:
        """What a query returns of the node for `passes`; nothing where there is no rest."""
        return [] if self.rest is None else self.tables[0].returned(self.variable)

    def passes(self, row: Sequence[Any]) -> bool:
        """Whether the node of what was returned satisfies the rest."""
        return self.rest is None or self.rest.matches(self.tables[0].node(row))

    def write(self, where: Where | None) -> None:
        """Write a condition."""
        self.text, self.rest = pushed_down(where, self._leaf)
        names = sorted({name for leaf in _on_properties(where) for name in _names(leaf.field)})
        if names and any(table.overflows for table in self.tables):
            json = f"{self.variable}.{quoted(OVERFLOW)}"  # of a node in whose JSON such a name is, columns say nothing
            said = (f"contains({json}, {self._parameter(f'{to_json(name)}:')})" for name in names)
            self.text, self.rest = f"({' OR '.join([*said, self.text])})", where

    def _parameter(self, value: Any) -> str:
        name = f"where_{self.variable}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def _leaf(self, where: Where) -> str | None:
        """Write a condition on one field; `None` where Cypher cannot say it exactly."""
        operands = where.value if where.operator in ("$in", "$nin") else (where.value,)
        if not all(map(_is_plain, operands)):
            return None
        if where.field == "label":
            return self._label(where.operator, operands)
        if where.field in ("id", "name", "text"):
            return self._own(where, operands)
        table, absent = self.tables[0], _constant(where.compares(False, None))
        wanted = _names(where.field)[: 2 if table.native else 3]  # only something else keeps maps in columns
        found = {
            (name, one.columns[column])
            for one in self.tables
            for name in wanted
            if (column := one.properties.get(name)) is not None
        }
        if not found:
            return absent
        name, kind = min(found)
        if len(found) > 1 or name not in (where.field, where.field.removeprefix(PROPERTIES)):
            return None
        value = f"{self.variable}.{quoted(column_of(name) if table.native else name)}"
        there = f"{value} IS NOT NULL"
        if kind in ("DOUBLE", "FLOAT") and not table.native:  # NaN and the infinite are no values
            there += f" AND {value} - {value} = 0"
        if kind == "DATE":
            value, kind = f"CAST({value} AS STRING)", "STRING"
        written = self._compared(where.operator, operands, value, kind)
        return written and f"CASE WHEN {there} THEN {written} ELSE {absent} END"

    def _own(self, where: Where, operands: Sequence[Any]) -> str | None:
        """The id, the name or the text, which every node has."""
        table = self.tables[0]
        column = table.name_column if where.field == "name" else table.text_column
        if where.field == "id":
            value = table.id_of(self.variable)
        elif column is not None and table.columns[column] != "STRING":
            return None
        else:
            value = f"coalesce({self.variable}.{quoted(column)}, '')" if column else "''"
        return self._compared(where.operator, operands, value, "STRING")

    def _label(self, op: str, operands: Sequence[Any]) -> str | None:
        if op not in ("$eq", "$ne", "$in", "$nin", "$contains", "$exists"):
            return None
        wanted = [one for one in operands if isinstance(one, str)]
        if not self.tables[0].native:
            names = [table.name for table in self.tables if op == "$exists" or table.label in wanted]
            found = f"label({self.variable}) IN {self._parameter(names)}" if names else "false"
        elif op == "$exists":
            found = f"size({self.variable}.labels) > 0"
        else:
            has = (f"list_contains({self.variable}.labels, {self._parameter(one)})" for one in wanted)
            found = " OR ".join(has) or "false"
        return f"NOT ({found})" if op in ("$ne", "$nin") or operands == (False,) else f"({found})"

    def _compared(self, op: str, operands: Sequence[Any], value: str, kind: str) -> str | None:
        """Compare a value that is there, of a type of column; `None` for what is not compared in Cypher."""
        item, listed = _KINDS.get(kind.removesuffix("[]")), kind.endswith("[]")
        if op == "$exists":
            return _constant(operands[0])
        if item is None or any(isinstance(one, tuple) for one in operands):
            return None
        fitting = [item(one) for one in operands if _fits(one, item)]
        if op in ("$eq", "$ne", "$in", "$nin"):
            same = f"({value} IN {self._parameter(fitting)})" if fitting and not listed else "(false)"
            return f"NOT {same}" if op in ("$ne", "$nin") else same
        if op == "$contains":
            function = "list_contains" if listed else "contains"
            if not fitting or not (listed or item is str) or (fitting == [""] and not listed):
                return _constant(fitting == [""] and not listed and item is str)
            return f"{function}({value}, {self._parameter(fitting[0])})"
        given = operands[0]
        ordered = isinstance(given, (str, int, float)) and not isinstance(given, bool)
        if not ordered or listed or item is bool or isinstance(given, str) != (item is str):
            return "false"
        return f"({value} {_SIGNS[op]} {self._parameter(given)})"


def filters(tables: Iterable[NodeTable], where: Where | None, variable: str = "n") -> list[Filter]:
    """Write a condition for tables, in as few groups as queries need."""
    columns = {
        column for leaf in _on_properties(where) for name in _names(leaf.field) for column in (name, column_of(name))
    }
    found: list[Filter] = []
    for group in agreeing(tables, columns):
        one = Filter(group, variable)
        one.write(where)
        alone = one.rest is None or len(group) == 1
        found += [one] if alone else (single for table in group for single in filters([table], where, variable))
    return found


def _on_properties(where: Where | None) -> Iterator[Where]:
    """The conditions on one property each."""
    if where is not None and where.field not in ("", "id", "name", "text", "label"):
        yield where
    for child in where.children if where is not None else ():
        yield from _on_properties(child)


def _names(name: str) -> list[str]:
    """The properties that a field may mean, and the one that it may lie in: see `graphret.where.lookup`."""
    return [name, name.removeprefix(PROPERTIES), name.split(".")[0]]


def _constant(value: bool) -> str:
    return "true" if value else "false"


def _is_plain(value: Any) -> bool:
    """Whether a value of a condition is one that the database compares as Python does."""
    if isinstance(value, str):
        return is_text(value) and "\0" not in value
    return value is None or isinstance(value, (bool, tuple)) or abs(value) <= 2**53


def _fits(value: Any, kind: type) -> bool:
    """Whether a value of a column may equal one of a condition."""
    if kind in (str, bool):
        return isinstance(value, kind)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (kind is float or value == int(value))
