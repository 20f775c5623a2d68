"""Conditions as Ladybug's Cypher: columns have types, so each leaf is written for those that it meets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import WhereCypher
from graphret.stores.ladybug.catalog import NodeGroup, NodeTable
from graphret.stores.ladybug.json_where import JsonValue
from graphret.stores.ladybug.names import NULLS, OVERFLOW, literal, quoted
from graphret.stores.ladybug.scalars import (
    SIGNS,
    bound_of_doubles,
    bound_of_integers,
    bound_of_whole,
    exact,
    of_absent,
    scalar_texts,
)
from graphret.stores.ladybug.structures import comparable, element, inside, is_mapping, members_of
from graphret.stores.ladybug.values import KEPT, KINDS, text_expression
from graphret.where import Where

_PROPERTIES = "properties."

#: Gives the offsets of the nodes of a table that satisfy a leaf, among those for which an expression is true.
Resolve = Callable[[NodeTable, Where, str], list[int]]


class LadybugWhere(WhereCypher):
    """Writes conditions on a node of a group of tables.

    The database decides conditions on labels, on a node's own fields, on columns of strings, numbers, booleans, dates,
    times and UUIDs, on lists and unions of these, on members of structures and of maps by strings, and on properties
    that are kept as JSON, see `JsonValue`.

    `Where.matches` decides on what graphret never writes and JSON has no type for: intervals, bytes, lists of lists of
    dates and the like, maps by anything but strings, and names that are no text. The database finds the nodes that have
    such a value, and of those that satisfy the leaf the offsets are written into the query, so that limits count them
    as they do others.

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
        sources = self._in_columns(where, self.group.columns_of(where.field)) + self._inside(where)
        own = where.field.removeprefix(_PROPERTIES)
        if own != where.field:
            sources += self._in_columns(where, self.group.columns_of(own))
        return self._chosen(where, sources)

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
            return self._resolved(where, None)
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

    def _inside(self, where: Where) -> list[tuple[str, str]]:
        """Whether there is a value inside of a column, and the leaf over it, where the field leads into one."""
        head, *path = where.field.split(".")
        if not path or self.group.first.native:
            return []
        sources = []
        for column, kind in self.group.columns_of(head):
            value = f"{self.variable}.{quoted(column)}"
            found = inside(value, kind, path, self.parameter)
            if found is True:
                sources.append((f"({value} IS NOT NULL)", self._resolved(where, column)))
            elif found is not False:
                sources.append((found[0], self._compared(where, column, *found[1:])))
        return sources

    def _compared(self, where: Where, column: str, value: str, kind: str) -> str:
        """The leaf for a value of a type that is not null, in a column."""
        if where.operator == "$exists":
            return _literal(where.value is True)
        if is_mapping(kind):
            return _literal(where.operator in ("$ne", "$nin"))
        if kind == "UINT64":
            return self._unsigned(where, value)
        if kind.startswith("UNION(") and element(kind) is None and (members := members_of(kind)) is not None:
            parts = []
            for tag, of_member in members.items():
                one = self._compared(where, column, f"union_extract({value}, {literal(tag)})", of_member)
                parts.append(f"(union_tag({value}) = {literal(tag)} AND {one})")
            return f"({' OR '.join(parts)})"
        of_items = element(kind)
        if of_items is None and (found := comparable(value, kind)) is not None:
            return self._decided(where, *found)
        if of_items is not None and is_mapping(of_items):
            return self._compared_list(where, value, None)
        item = comparable("x", of_items) if of_items is not None else None
        if item is not None:
            listed = value if item[0] == "x" else f"list_transform({value}, x -> {item[0]})"
            return self._compared_list(where, listed, item[1])
        return self._resolved(where, column)

    def _unsigned(self, where: Where, value: str) -> str:
        """The leaf for a whole number of 64 bits without a sign, which no parameter can be."""
        op, operand = where.operator, where.value
        if op in ("$eq", "$ne", "$in", "$nin"):
            texts = [text for one in ([operand] if op in ("$eq", "$ne") else operand) for text in _whole_texts(one)]
            found = f"CAST({value} AS STRING) IN {self.parameter(texts)}" if texts else "false"
            return f"NOT ({found})" if op in ("$ne", "$nin") else f"({found})"
        if (
            op == "$contains"
            or not isinstance(operand, (int, float))
            or isinstance(operand, bool)
            or operand != operand
        ):
            return "false"
        least, bound = bound_of_whole(op, min(max(operand, -1), 2**64))
        return f"(CAST({value} AS INT128) {'>=' if least else '<='} CAST({self.parameter(str(bound))} AS INT128))"

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

    def _compared_list(self, where: Where, value: str, element: str | None) -> str:
        """The leaf for a list of items of a kind, `None` for what equals no operand."""
        op, operand = where.operator, where.value
        if op == "$contains":
            wanted = [*exact(operand, element)] if element else []
            return f"list_contains({value}, {self.parameter(wanted[0])})" if wanted else "false"
        if op in SIGNS:
            return "false"
        chosen = [operand] if op in ("$eq", "$ne") else operand
        written = " OR ".join(self._same_list(value, element, item) for item in chosen) or "false"
        return f"NOT ({written})" if op in ("$ne", "$nin") else f"({written})"

    def _same_list(self, value: str, element: str | None, operand: Any) -> str:
        if not isinstance(operand, tuple):
            return "false"
        if not operand:
            return f"size({value}) = 0"
        items = [[*exact(item, element)] if element else [] for item in operand]
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

    def _resolved(self, where: Where, column: str | None) -> str:
        """The leaf as `Where.matches` decides it, among the nodes of each table that have a value in a column."""
        parts = []
        for table in self.group.tables:
            if column is None or column in table.columns:
                offsets = self.resolve(table, where, "true" if column is None else f"n.{quoted(column)} IS NOT NULL")
                if offsets:
                    several = len(self.group.tables) > 1
                    of_table = f"label({self.variable}) = {self.parameter(table.name)} AND " if several else ""
                    held = f"list_contains({self.parameter(offsets)}, offset(id({self.variable})))"
                    parts.append(f"({of_table}{held})")
        return "(" + (" OR ".join(parts) or "false") + ")"


def _whole_texts(value: Any) -> list[str]:
    return [text for text in scalar_texts(value) if text.isdigit()] if not isinstance(value, (str, tuple)) else []


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
