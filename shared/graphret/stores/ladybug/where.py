"""Conditions as Ladybug's Cypher: columns have types, so each leaf is written for those that it meets."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import WhereCypher
from graphret.stores.ladybug.catalog import NodeGroup, NodeTable
from graphret.stores.ladybug.json_where import JsonValue
from graphret.stores.ladybug.names import NULLS, OVERFLOW, quoted
from graphret.stores.ladybug.reaching import Found, item, named, odd_keys, reached
from graphret.stores.ladybug.scalars import (
    SIGNS,
    bound_of_doubles,
    bound_of_integers,
    bound_of_whole,
    exact,
    of_absent,
)
from graphret.stores.ladybug.structures import element, is_mapping
from graphret.stores.ladybug.texts import (
    as_double,
    cast_list,
    interval_length,
    is_whole,
    length_of,
    own_text,
    stored,
    text_expression,
    whole_texts,
)
from graphret.stores.ladybug.values import FLOATS, INFINITE, KEPT, KINDS
from graphret.where import Where

_PROPERTIES = "properties."
#: No whole number in a column is so large.
_HUGE = 2**127


class LadybugWhere(WhereCypher):
    """Writes conditions on a node of a group of tables.

    The database decides them: on columns that something else made by what their types are, and on properties that are
    kept as JSON by patterns, see `JsonValue`.

    Parameters
    ----------
    group
        The tables; the properties of the condition have one type in all.
    lined
        Says whether all JSON of a table has lines.
    longest
        Gives the number that a query returns, if it returns one: so many items of a list may have to be compared.
    with_odd_keys
        Gives the offsets of the nodes of a table that satisfy a condition on a field that leads into a column, of those
        in which this has `odd_keys`; `None` if it has them in no node.
    """

    def __init__(
        self,
        variable: str,
        group: NodeGroup,
        lined: Callable[[NodeTable], bool],
        longest: Callable[[str, dict[str, Any]], int],
        with_odd_keys: Callable[[NodeTable, str, Where], list[int] | None],
        prefix: str = "where",
    ) -> None:
        super().__init__(variable, prefix)
        self.group = group
        self.lined = lined
        self.longest = longest
        self.with_odd_keys = with_odd_keys

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
        if own != where.field and (columns := self.group.columns_of(own)):
            sources += self._null(where) + self._in_columns(where, columns)
        return self._unless_odd(where, self._chosen(where, sources))

    def _unless_odd(self, where: Where, leaf: str) -> str:
        """The leaf, but for nodes where the field leads into maps with keys that the database cannot find."""
        head, *path = where.field.split(".")
        for column, kind in self.group.columns_of(head) if path else ():
            if "MAP(" not in kind:
                continue
            found = {table.name: self.with_odd_keys(table, column, where) for table in self.group.tables}
            if all(offsets is None for offsets in found.values()):
                continue
            odd = odd_keys(f"{self.variable}.{quoted(column)}")
            right = (
                f"(label({self.variable}) = {self.parameter(table)} AND "
                f"list_contains({self.parameter(offsets)}, offset(id({self.variable}))))"
                for table, offsets in found.items()
                if offsets
            )
            leaf = f"(({odd} AND ({' OR '.join(right) or 'false'})) OR (NOT {odd} AND {leaf}))"
        return leaf

    def _null(self, where: Where) -> list[tuple[str, str]]:
        """Whether what the field leads to inside of a column is there and null, and the leaf over that."""
        head, *path = where.field.split(".")
        absent = _literal(of_absent(where.operator, where.value))
        return [
            (there, absent)
            for column, kind in self.group.columns_of(head)
            for there in named(f"{self.variable}.{quoted(column)}", kind, path, self.parameter)
        ]

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
        text = own_text(value, first.columns[column])
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

    def _in_columns(
        self, where: Where, columns: list[tuple[str, str]], path: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        """Whether there is a value in a column, at a path in it, and the leaf over it, for each of some columns."""
        return [
            (there, self._compared(where, value, kind))
            for column, of_column in columns
            for there, value, kind in self._reached(f"{self.variable}.{quoted(column)}", of_column, path)
        ]

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
        return self._in_columns(where, self.group.columns_of(head), path)

    def _compared(self, where: Where, value: str, kind: str) -> str:
        """The leaf for a value of a type that is not null."""
        if where.operator == "$exists":
            return _literal(where.value is True)
        if is_mapping(kind):
            return _literal(where.operator in ("$ne", "$nin"))
        if is_whole(kind):
            return self._whole(where, value)
        items = element(kind)
        if items is not None:
            return self._compared_list(where, value, kind)
        if kind in KINDS:
            return self._decided(where, value, kind)
        if where.operator in ("$eq", "$ne", "$in", "$nin") and kind in ("BLOB", "INTERVAL"):
            operands = [where.value] if where.operator in ("$eq", "$ne") else where.value
            same = "$in" if where.operator in ("$eq", "$in") else "$nin"
            if kind == "INTERVAL":  # shorter than as text
                lengths = (length_of(one) for one in operands if isinstance(one, str))
                return self._whole(Where(same, "", tuple(n for n in lengths if n is not None)), interval_length(value))
            texts = tuple(text for one in operands if one is not None for text in stored(one, kind))
            return self._decided(Where(same, "", texts), f"CAST({value} AS STRING)", "STRING")
        text = text_expression(value, kind)
        return self._decided(where, *((as_double(value), "DOUBLE") if text is None else (text, "STRING")))

    def _reached(self, value: str, kind: str, path: Sequence[str] = ()) -> Found:
        return reached(value, kind, path, self.parameter)

    def _longest(self, value: str) -> int:
        named = {name: self.parameters[name] for name in re.findall(r"\$(\w+)", value) if name in self.parameters}
        return self.longest(f"MATCH ({self.group.pattern(self.variable)}) RETURN max(size({value}))", named)

    def _whole(self, where: Where, value: str) -> str:
        """The leaf for a whole number that no parameter can be."""
        op, operand = where.operator, where.value
        if op in ("$eq", "$ne", "$in", "$nin"):
            texts = [text for one in ([operand] if op in ("$eq", "$ne") else operand) for text in whole_texts(one)]
            found = f"CAST({value} AS STRING) IN {self.parameter(texts)}" if texts else "false"
            return f"NOT ({found})" if op in ("$ne", "$nin") else f"({found})"
        if (
            op == "$contains"
            or not isinstance(operand, (int, float))
            or isinstance(operand, bool)
            or operand != operand
        ):
            return "false"
        least, bound = bound_of_whole(op, min(max(operand, -_HUGE), _HUGE))
        if abs(bound) >= _HUGE:
            return _literal(least == (bound < 0))
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
                return self._infinite(where, value, kind)
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
                return self._infinite(Where(op, "", operand), value, kind)
            return f"({value} {SIGNS[op]} {self.parameter(operand)})"
        if operand != operand:  # NaN
            return "false"
        if KINDS[kind] is int:
            whole = bound_of_integers(op, operand)
            return _literal(whole) if isinstance(whole, bool) else f"({value} {whole[0]} {self.parameter(whole[1])})"
        # What is infinite is a text, to which no number compares, and NaN nothing.
        sign, bound = bound_of_doubles(op[:3] if operand in INFINITE else op, operand)
        last = (
            f"<= {self.parameter(sys.float_info.max)}" if ">" in sign else f">= {self.parameter(-sys.float_info.max)}"
        )
        return f"({value} {sign} {self.parameter(bound)} AND {value} {last})"

    def _infinite(self, where: Where, value: str, kind: str) -> str:
        """The leaf that compares a number with a text, which an infinite one is read as."""
        found = [number for number, text in INFINITE.items() if KINDS[kind] is float and where.compares(True, text)]
        return f"({value} IN {self.parameter(found)})" if found else "false"

    def _compared_list(self, where: Where, value: str, kind: str) -> str:
        """The leaf for a list."""
        op, operand = where.operator, where.value
        if op in SIGNS:
            return "false"
        if op == "$contains":
            return self._having(value, kind, operand)
        chosen = [operand] if op in ("$eq", "$ne") else operand
        written = " OR ".join(self._same(value, kind, one) for one in chosen) or "false"
        return f"NOT ({written})" if op in ("$ne", "$nin") else f"({written})"

    def _having(self, value: str, kind: str, operand: Any) -> str:
        """Whether an item of a list equals an operand."""
        listed, items = cast_list(value, kind), kind[: kind.rindex("[")]
        numbers = listed is not None and listed[1] in FLOATS
        if listed is not None and operand is not None and not (numbers and _has_none(operand)):
            wanted = [*_encoded(operand, items, listed[1])]
            return f"list_contains({listed[0]}, {self.parameter(wanted[0])})" if wanted else "false"
        if self.group.first.native and not numbers:  # a list with null is kept as JSON
            return "false"
        places = range(1, self._longest(value) + 1)
        parts = (f"(size({value}) >= {n} AND {self._item(value, items, n, operand)})" for n in places)
        return f"({' OR '.join(parts) or 'false'})"

    def _same(self, value: str, kind: str, operand: Any) -> str:
        """Whether a value that is not null, and no union, equals an operand."""
        items = element(kind)
        if items is None:
            return self._compared(Where("$eq", "", operand), value, kind)
        if not isinstance(operand, tuple):
            return "false"
        size = f"size({value}) = {len(operand)}"
        if not operand:
            return size
        listed = cast_list(value, kind)
        if listed is not None and not (listed[1] in FLOATS and _has_none(operand)):
            wanted = [*_encoded(operand, kind, listed[1])]
            return f"{listed[0]} = {self.parameter(wanted[0])}" if wanted else "false"
        parts = (self._item(value, items, place, one) for place, one in enumerate(operand, 1))
        return f"({size} AND {' AND '.join(parts)})"

    def _item(self, value: str, items: str, place: int, operand: Any) -> str:
        """Whether an item of a list, which is so long, equals an operand."""
        is_there, one = item(value, place)
        found = [*self._reached(one, items)]
        if operand is None:
            return f"NOT ({is_there} AND ({' OR '.join(there for there, *_ in found)}))"
        same = " OR ".join(f"({there} AND {self._same(inner, kind, operand)})" for there, inner, kind in found)
        return f"({is_there} AND ({same}))"

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


def _has_none(operand: Any) -> bool:
    """Whether NaN may stand for a part of an operand: for each `None`."""
    return operand is None or (isinstance(operand, tuple) and any(map(_has_none, operand)))


def _encoded(operand: Any, kind: str, inner: str) -> Iterator[Any]:
    """What equals an operand in a list of a type, if anything does."""
    items = element(kind)
    if items is None or operand is None:
        yield from stored(operand, inner)
    elif isinstance(operand, tuple):
        found = [[*_encoded(one, items, inner)] for one in operand]
        if all(found):
            yield [one[0] for one in found]


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
