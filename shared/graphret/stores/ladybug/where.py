"""Conditions as Ladybug's Cypher: columns have types, so each leaf is written for those that it meets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import WhereCypher
from graphret.stores.ladybug.catalog import NodeGroup, NodeTable
from graphret.stores.ladybug.json_where import JsonValue
from graphret.stores.ladybug.names import NULLS, OVERFLOW, quoted
from graphret.stores.ladybug.scalars import EXACT_DIGITS, SIGNS, bound_of_doubles, bound_of_integers, exact, of_absent
from graphret.stores.ladybug.values import KEPT, KINDS, text_expression
from graphret.where import Where

_PROPERTIES = "properties."

#: Gives the offsets of the nodes of a table that satisfy a leaf, among those for which an expression with some
#: parameters is true.
Resolve = Callable[[NodeTable, Where, str, Mapping[str, Any]], list[int]]


class LadybugWhere(WhereCypher):
    """Writes conditions on a node of a group of tables.

    The database decides conditions on labels, on a node's own fields, on columns of strings, numbers, booleans, lists
    of these, dates, times, decimals and UUIDs, and on properties that are kept as JSON, see `JsonValue`.

    `Where.matches` decides on structures, maps and lists of lists that something else wrote. The database finds the
    nodes that have such a value, and of those that satisfy the leaf the offsets are written into the query, so that
    limits count them as they do others.

    Parameters
    ----------
    group
        The tables; the properties of the condition have one type in all.
    resolve
        Decides a leaf.
    lined
        Says whether all JSON of a table has lines.
    """

    def __init__(
        self,
        variable: str,
        group: NodeGroup,
        resolve: Resolve,
        lined: Callable[[NodeTable], bool],
        prefix: str = "where",
    ) -> None:
        super().__init__(variable, prefix)
        self.group = group
        self.resolve = resolve
        self.lined = lined

    def leaf(self, where: Where) -> str:
        """Write a condition on one field."""
        if where.field == "label":
            return self._label(where)
        if where.field in ("id", "name", "text"):
            return self._own(where)
        if "." in where.field and any(table.has_nulls for table in self.group.tables):
            # null comes before what else the name may mean; elsewhere it is as absent
            null = f"list_contains({self.variable}.{quoted(NULLS)}, {self.parameter(where.field)})"
            there = f"({self.variable}.{quoted(NULLS)} IS NOT NULL AND {null})"
            absent = _literal(of_absent(where.operator, where.value))
            return f"(({there} AND {absent}) OR (NOT {there} AND {self._property(where)}))"
        return self._property(where)

    def _property(self, where: Where) -> str:
        if self.group.first.native and any(table.overflows for table in self.group.tables):
            return self._overflowing(where)
        return self._chosen(where, self._in_columns(where, self._columns(where.field)))

    def _overflowing(self, where: Where) -> str:
        """The leaf on a property that some nodes may have as JSON."""
        field, own = where.field, where.field.removeprefix(_PROPERTIES)
        sources = [self._in_json(where, (field,)), *self._in_columns(where, self.group.columns_of(field))]
        if "." in field:
            sources.append(self._in_json(where, tuple(field.split("."))))
        if own != field:
            sources += [self._in_json(where, (own,)), *self._in_columns(where, self.group.columns_of(own))]
        return self._chosen(where, sources)

    def _own(self, where: Where) -> str:
        """The leaf over the id, the name or the text, which every node has, as a string."""
        first = self.group.first
        column = {"id": first.id_column, "name": first.name_column, "text": first.text_column}[where.field]
        if where.operator == "$exists":
            return _literal(where.value is True)
        if column is None:
            return self._decided(
                where, f"CAST(id({self.variable}) AS STRING)" if where.field == "id" else "''", "STRING"
            )
        value = f"{self.variable}.{quoted(column)}"
        text = text_expression(value, first.columns[column])
        if text is None:
            return self._resolved(where, self.group.tables, lambda _: ("true", {}))
        if not first.native:
            text = f"CASE WHEN {value} IS NULL THEN {_literal_text(where.field)} ELSE {text} END"
        return self._decided(where, text, "STRING")

    def _chosen(self, where: Where, sources: list[tuple[str, str]]) -> str:
        """The leaf where the value is in the first of some sources that has one, each with whether it has one."""
        written, absent = "", "true"
        for there, leaf in sources:
            written += f"({absent} AND {there} AND {leaf}) OR "
            absent += f" AND NOT {there}"
        return f"({written}({absent} AND {_literal(of_absent(where.operator, where.value))}))"

    def _in_columns(self, where: Where, columns: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Whether a column has a value, and the leaf over it, for each of some columns."""
        found = []
        for column, kind in columns:
            value = f"{self.variable}.{quoted(column)}"
            found.append((f"({value} IS NOT NULL)", self._compared(where, column, value, kind)))
        return found

    def _in_json(self, where: Where, path: tuple[str, ...]) -> tuple[str, str]:
        """Whether JSON has a value at a path, and the leaf over it."""
        if len(path) > KEPT + 1:
            return "false", "false"
        lined = all(self.lined(table) for table in self.group.tables if table.overflows)
        value = JsonValue(_json(self.variable), path, self.parameter, lined)
        return value.there, value.compared(where)

    def _columns(self, field: str) -> list[tuple[str, str]]:
        found = self.group.columns_of(field)
        own = field.removeprefix(_PROPERTIES)
        if own != field:
            found = found + self.group.columns_of(own)
        if not found and "." in field and not self.group.first.native:
            found = self.group.columns_of(field.split(".")[0])
        return found

    def _compared(self, where: Where, column: str, value: str, kind: str) -> str:
        """The leaf for a value of a type that is not null."""
        if where.operator == "$exists":
            return _literal(where.value is True)
        if kind.startswith("DECIMAL") and int(kind[len("DECIMAL(") :].split(",")[0]) <= EXACT_DIGITS:
            value, kind = f"CAST({value} AS DOUBLE)", "DOUBLE"
        elif kind not in KINDS and (text := text_expression(value, kind)) is not None:
            value, kind = text, "STRING"
        element = kind.removesuffix("[]")
        if element not in KINDS:
            having = [table for table in self.group.tables if column in table.columns]
            return self._resolved(where, having, lambda _: (f"n.{quoted(column)} IS NOT NULL", {}))
        if kind.endswith("[]"):
            return self._compared_list(where, value, element)
        return self._decided(where, value, kind)

    def _decided(self, where: Where, value: str, kind: str) -> str:
        """The leaf for a string, a number or a boolean that is not null."""
        op, operand = where.operator, where.value
        if op in ("$eq", "$ne"):
            found = self._one_of(value, kind, [operand])
            return found if op == "$eq" else f"NOT {found}"
        if op in ("$in", "$nin"):
            found = self._one_of(value, kind, operand)
            return found if op == "$in" else f"NOT {found}"
        if op == "$contains":
            if kind != "STRING" or not isinstance(operand, str):
                return "false"
            return f"contains({value}, {self.parameter(operand)})" if operand else "true"
        return self._ordered(op, value, kind, operand)

    def _one_of(self, value: str, kind: str, operands: Any) -> str:
        wanted = [v for operand in operands for v in exact(operand, kind)]
        if not wanted:
            return "false"
        if len(wanted) == 1:
            return f"({value} = {self.parameter(wanted[0])})"
        return f"({value} IN {self.parameter(wanted)})"

    def _ordered(self, op: str, value: str, kind: str, operand: Any) -> str:
        if KINDS[kind] is bool or operand is None or isinstance(operand, (bool, tuple)):
            return "false"
        if isinstance(operand, str) or kind == "STRING":
            if not isinstance(operand, str) or kind != "STRING":
                return "false"
            return f"({value} {SIGNS[op]} {self.parameter(operand)})"
        if operand != operand:  # NaN
            return "false"
        bound = bound_of_integers(op, operand) if KINDS[kind] is int else bound_of_doubles(op, operand)
        return _literal(bound) if isinstance(bound, bool) else f"({value} {bound[0]} {self.parameter(bound[1])})"

    def _compared_list(self, where: Where, value: str, element: str) -> str:
        op, operand = where.operator, where.value
        if op == "$contains":
            wanted = [*exact(operand, element)]
            return f"list_contains({value}, {self.parameter(wanted[0])})" if wanted else "false"
        if op in SIGNS:
            return "false"
        chosen = [operand] if op in ("$eq", "$ne") else operand
        written = " OR ".join(self._same_list(value, element, item) for item in chosen) or "false"
        return f"NOT ({written})" if op in ("$ne", "$nin") else f"({written})"

    def _same_list(self, value: str, element: str, operand: Any) -> str:
        if not isinstance(operand, tuple):
            return "false"
        if not operand:
            return f"size({value}) = 0"
        items = [[*exact(item, element)] for item in operand]
        if not all(items):
            return "false"
        return f"{value} = {self.parameter([item[0] for item in items])}"

    def _label(self, where: Where) -> str:
        op, operand = where.operator, where.value
        if op in ("$in", "$nin"):
            wanted = [label for label in operand if isinstance(label, str)]
        elif op in ("$eq", "$contains", "$ne"):
            wanted = [operand] if isinstance(operand, str) else []
        elif op == "$exists":
            labels = f"{self.variable}.labels"
            has = f"({labels} IS NULL OR size({labels}) > 0)" if self.group.first.native else "true"
            return has if operand else f"NOT {has}"
        else:
            raise InvalidInput(f"where: {op} does not apply to labels")
        labels = f"{self.variable}.labels"
        named = [table.name for table in self.group.tables if table.label in wanted]
        found = f"label({self.variable}) IN {self.parameter(named)}" if named else "false"
        if self.group.first.native:  # no coalesce: after UNWIND it filters wrongly (0.22)
            bears = " OR ".join(f"list_contains({labels}, {name})" for name in map(self.parameter, wanted)) or "false"
            found = f"({labels} IS NOT NULL AND ({bears})) OR ({labels} IS NULL AND {found})"
        return f"NOT ({found})" if op in ("$ne", "$nin") else f"({found})"

    def _resolved(
        self, where: Where, tables: Iterable[NodeTable], among: Callable[[NodeTable], tuple[str, Mapping[str, Any]]]
    ) -> str:
        """The leaf as `Where.matches` decides it, among the nodes of each table for which an expression is true."""
        parts = []
        for table in tables:
            offsets = self.resolve(table, where, *among(table))
            if offsets:
                of_table = (
                    f"label({self.variable}) = {self.parameter(table.name)} AND " if len(self.group.tables) > 1 else ""
                )
                parts.append(f"({of_table}list_contains({self.parameter(offsets)}, offset(id({self.variable}))))")
        return "(" + (" OR ".join(parts) or "false") + ")"


def fields(where: Where | None) -> set[str]:
    """The names of the properties that a condition may read."""
    if where is None:
        return set()
    if where.children:
        return {name for child in where.children for name in fields(child)}
    return {where.field, where.field.removeprefix(_PROPERTIES), where.field.split(".")[0]}


def _literal_text(field: str) -> str:
    """What is read of a node in which the column is null."""
    return "'None'" if field == "id" else "''"


def _json(variable: str) -> str:
    """The JSON of a node, or the empty string: for one null a function may give null for later nodes too (0.22)."""
    return f"concat({variable}.{quoted(OVERFLOW)}, '')"


def _literal(value: bool) -> str:
    return "true" if value else "false"
