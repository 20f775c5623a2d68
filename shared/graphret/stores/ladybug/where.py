"""Conditions as Ladybug's Cypher: columns have types, so each leaf is written for those that it meets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import WhereCypher
from graphret.stores.ladybug.catalog import NodeGroup, NodeTable
from graphret.stores.ladybug.names import OVERFLOW, quoted
from graphret.stores.ladybug.values import KINDS, OPENING, text_expression
from graphret.strings import to_json
from graphret.where import Where

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
#: Numbers of so many digits are exact as doubles.
_EXACT_DIGITS = 15
#: An integer that no double is near to.
_LONG = 2**1000
_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_PROPERTIES = "properties."

#: Gives the offsets of the nodes of a table that satisfy a leaf, among those for which an expression with some
#: parameters is true.
Resolve = Callable[[NodeTable, Where, str, Mapping[str, Any]], list[int]]
#: What holds where the other does not, for every operand but `None`.
_OPPOSITE = {"$ne": "$eq", "$nin": "$in"}


class LadybugWhere(WhereCypher):
    """Writes conditions on a node of a group of tables.

    The database decides conditions on labels, on a node's own fields and on columns of strings, numbers, booleans,
    lists of these, dates, times, decimals and UUIDs. It has no JSON. Of properties that are kept as such, each on a
    line, it decides by the text of the line whether there is one, and whether it equals a string, a number or a
    boolean. For other comparisons, and for what is nested in a property, it finds the nodes whose JSON has the name and
    the text of the value in it, and `Where.matches` decides on these; as it does on structures, maps and lists of
    lists. Those that satisfy the leaf are then written into the query by their offsets, so that limits count them as
    they do others.

    Parameters
    ----------
    group
        The tables; the properties of the condition have one type in all.
    resolve
        Decides a leaf.
    """

    def __init__(self, variable: str, group: NodeGroup, resolve: Resolve, prefix: str = "where") -> None:
        super().__init__(variable, prefix)
        self.group = group
        self.resolve = resolve

    def leaf(self, where: Where) -> str:
        """Write a condition on one field."""
        if where.field == "label":
            return self._label(where)
        if where.field in ("id", "name", "text"):
            return self._own(where)
        undecided = [t for t in self.group.tables if t.overflows] if self.group.first.native else []
        if not undecided:
            return self._known(where)
        if where.operator in _OPPOSITE and where.value is not None:
            return f"NOT {self.leaf(Where(_OPPOSITE[where.operator], where.field, where.value))}"
        if where.operator == "$exists" and not where.value:
            return f"NOT {self.leaf(Where('$exists', where.field, True))}"
        return self._overflowing(where, undecided)

    def _overflowing(self, where: Where, tables: list[NodeTable]) -> str:
        """The leaf on a property that some nodes may have as JSON: decided by columns where the name is not in it."""
        if (lines := _lines(where)) is not None:
            return self._by_lines(where, tables, lines)
        own = where.field.removeprefix(_PROPERTIES)
        keys = [f"{to_json(key)}:" for key in sorted({where.field, own, where.field.split(".")[0]})]
        here = f"{self.variable}.{quoted(OVERFLOW)}"
        absent = self._lacks(here, keys)
        found = self._resolved(where, tables, lambda table: self._holding(where, keys, table))
        return f"((({here} IS NULL OR ({absent})) AND {self._known(where)}) OR {found})"

    def _by_lines(self, where: Where, tables: list[NodeTable], lines: list[str]) -> str:
        """The leaf on a property of its own line in the JSON, which begins in one of some ways where the leaf is true.

        Of JSON that has no lines, as older databases hold it, `Where.matches` decides.
        """
        here = f"{self.variable}.{quoted(OVERFLOW)}"
        key = f"{to_json(where.field)}:"
        lined, line = f"starts_with({here}, {self.parameter(OPENING)})", self.parameter(f"\n{key}")
        absent = f"{here} IS NULL OR NOT contains({here}, {line}) AND ({lined} OR {self._lacks(here, [key])})"
        held = [f"contains({here}, {self.parameter(text)})" for text in lines]
        held += [self._resolved(where, tables, lambda table: self._holding(where, [key], table, lined=False))]
        return f"((({absent}) AND {self._known(where)}) OR ({here} IS NOT NULL AND ({' OR '.join(held)})))"

    def _lacks(self, json: str, keys: list[str]) -> str:
        return " AND ".join(f"NOT contains({json}, {self.parameter(key)})" for key in keys)

    def _holding(
        self, where: Where, keys: list[str], table: NodeTable, *, lined: bool = True
    ) -> tuple[str, dict[str, Any]]:
        """What is true of the nodes of a table whose JSON, of lines or not, may make the leaf true; its parameters."""
        alone = LadybugWhere("n", NodeGroup((table,)), self.resolve, "among_")
        there = f"n.{quoted(OVERFLOW)}"
        held = " OR ".join(f"contains({there}, {alone.parameter(key)})" for key in keys)
        if (texts := _texts(where)) is not None:
            possible = [f"contains({there}, {alone.parameter(text)})" for text in texts]
            possible += [f"n.{quoted(column)} IS NOT NULL" for column, _ in alone._columns(where.field)]
            held = f"({held}) AND ({' OR '.join(possible) or 'false'})"
        if not lined:
            held = f"({held}) AND NOT starts_with({there}, {alone.parameter(OPENING)})"
        return f"{there} IS NOT NULL AND ({held})", alone.parameters

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

    def _known(self, where: Where) -> str:
        """The leaf over the columns that may hold the field, the first that is not null taken."""
        written, absent = "", "true"
        for column, kind in self._columns(where.field):
            value = f"{self.variable}.{quoted(column)}"
            here = self._compared(where, column, value, kind)
            written += f"({absent} AND {value} IS NOT NULL AND {here}) OR "
            absent += f" AND {value} IS NULL"
        return f"({written}({absent} AND {_literal(_of_absent(where))}))"

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
        if kind.startswith("DECIMAL") and int(kind[len("DECIMAL(") :].split(",")[0]) <= _EXACT_DIGITS:
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
        wanted = [v for operand in operands for v in _exact(operand, kind)]
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
            return f"({value} {_SIGNS[op]} {self.parameter(operand)})"
        bound = _bound_of_integers(op, operand) if KINDS[kind] is int else _bound_of_doubles(op, operand)
        return _literal(bound) if isinstance(bound, bool) else f"({value} {bound[0]} {self.parameter(bound[1])})"

    def _compared_list(self, where: Where, value: str, element: str) -> str:
        op, operand = where.operator, where.value
        if op == "$contains":
            wanted = [*_exact(operand, element)]
            return f"list_contains({value}, {self.parameter(wanted[0])})" if wanted else "false"
        if op in _SIGNS:
            return "false"
        chosen = [operand] if op in ("$eq", "$ne") else operand
        written = " OR ".join(self._same_list(value, element, item) for item in chosen) or "false"
        return f"NOT ({written})" if op in ("$ne", "$nin") else f"({written})"

    def _same_list(self, value: str, element: str, operand: Any) -> str:
        if not isinstance(operand, tuple):
            return "false"
        if not operand:
            return f"size({value}) = 0"
        items = [[*_exact(_number(item), element, loose=True)] for item in operand]
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
        if not self.group.first.native:
            found = f"label({self.variable}) IN {self.parameter(wanted)}" if wanted else "false"
        else:
            labels, table = f"{self.variable}.labels", f"label({self.variable})"
            found = " OR ".join(  # no coalesce: after UNWIND it filters wrongly (0.22)
                f"({labels} IS NOT NULL AND list_contains({labels}, {name})) OR ({labels} IS NULL AND {table} = {name})"
                for name in map(self.parameter, wanted)
            )
        return f"NOT ({found or 'false'})" if op in ("$ne", "$nin") else f"({found or 'false'})"

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


def _texts(where: Where) -> list[str] | None:
    """What the JSON of a value that satisfies the leaf has in it, one of them; `None` where nothing is sure."""
    if where.operator not in ("$eq", "$in", "$contains"):
        return None
    found = []
    for operand in where.value if where.operator == "$in" else [where.value]:
        if isinstance(operand, (str, bool)):
            found.append(to_json(operand) if isinstance(operand, bool) else to_json(operand)[1:-1])
        elif isinstance(operand, (int, float)) and abs(operand) < 10**_EXACT_DIGITS and operand == int(operand):
            found.append(str(int(operand)))  # of 5 and of 5.0
        else:
            return None
    return found if all(found) else None  # to the database, no text has the empty one in it


def _lines(where: Where) -> list[str] | None:
    """What the line of a property in JSON begins with, after a line feed, where it satisfies the leaf, one of them.

    `None` where that does not say it: another comparison than equality, with a list, or on what is not a property.
    """
    op, operand = where.operator, where.value
    if "." in where.field or op not in ("$eq", "$in", "$exists", "$ne"):
        return None
    line = f"\n{to_json(where.field)}:"
    if op in ("$exists", "$ne"):
        return [line] if op == "$exists" or operand is None else None
    found = []
    for one in operand if op == "$in" else [operand]:
        if isinstance(one, tuple) or (isinstance(one, int) and abs(one) >= _LONG):
            return None
        found += [f"{line}{text}\n" for text in _scalar_texts(one)]
    return found


def _scalar_texts(value: Any) -> list[str]:
    """The JSON of the scalars that are equal to a value; numbers are so whatever their type."""
    if isinstance(value, (bool, str)):
        return [to_json(value)]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return []
    found = {to_json(value)}
    if int(value) == value:
        found.add(str(int(value)))
    if float(value) == value:
        found.add(to_json(float(value)))
    return sorted(found | {"-0.0"} if value == 0 else found)


def _of_absent(where: Where) -> bool:
    """What the leaf is for a node that lacks the property."""
    op, operand = where.operator, where.value
    if op == "$exists":
        return operand is False
    return op in ("$ne", "$nin") or (op == "$eq" and operand is None)


def _literal(value: bool) -> str:
    return "true" if value else "false"


def _number(value: Any) -> Any:
    """In a list, Python does not tell true from 1."""
    return int(value) if isinstance(value, bool) else value


def _exact(operand: Any, kind: str, *, loose: bool = False) -> Iterator[Any]:
    """The value of a column that equals the operand, if there is one; `loose` takes 0 and 1 for booleans."""
    want = KINDS[kind]
    if want is str:
        if isinstance(operand, str):
            yield operand
    elif want is bool:
        if isinstance(operand, bool):
            yield operand
        elif loose and isinstance(operand, (int, float)) and operand in (0, 1):
            yield bool(operand)
    elif isinstance(operand, (int, float)) and not isinstance(operand, bool):
        if want is int:
            if isinstance(operand, int) or operand.is_integer():
                number = int(operand)
                if _LOWEST <= number <= _HIGHEST:
                    yield number
        elif isinstance(operand, float):
            yield operand
        elif abs(operand) < 2**1000 and int(float(operand)) == operand:
            yield float(operand)


def _bound_of_integers(op: str, operand: int | float) -> bool | tuple[str, int]:
    """The comparison of an INT64 that says the same as the one with `operand`, or its value where that is fixed."""
    if isinstance(operand, float):
        if math.isnan(operand):
            return False
        if math.isinf(operand):
            return (operand > 0) == (op in ("$lt", "$lte"))
        if not operand.is_integer():
            op, operand = ("$lte", math.floor(operand)) if op in ("$lt", "$lte") else ("$gte", math.ceil(operand))
        else:
            operand = int(operand)
    if operand > _HIGHEST:
        return op in ("$lt", "$lte")
    if operand < _LOWEST:
        return op in ("$gt", "$gte")
    return _SIGNS[op], operand


def _bound_of_doubles(op: str, operand: int | float) -> bool | tuple[str, float]:
    """The same for a double: an integer between two doubles becomes the nearest one, with or without equality."""
    if isinstance(operand, float):
        return False if math.isnan(operand) else (_SIGNS[op], operand)
    try:
        nearest = float(operand)
    except OverflowError:
        nearest = math.inf if operand > 0 else -math.inf
        return ("<=", nearest) if (operand > 0) == (op in ("$lt", "$lte")) else False
    if int(nearest) == operand:
        return _SIGNS[op], nearest
    if op in ("$lt", "$lte"):
        return ("<", nearest) if nearest > operand else ("<=", nearest)
    return (">=", nearest) if nearest > operand else (">", nearest)
