"""Conditions as Neo4j's Cypher, with the meaning that `Where.matches` has for the node as it is read."""

from __future__ import annotations

import math
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.cypher_where import WhereCypher
from graphret.stores.neo4j.layout import AT, IN, JSON, NONE, NULLS, Layout
from graphret.stores.neo4j.names import quotable
from graphret.stores.neo4j.values import canonical
from graphret.where import PROPERTIES, Where

_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_TEMPORAL = ("DATE", "LOCAL TIME", "ZONED TIME", "LOCAL DATETIME", "ZONED DATETIME", "DURATION")
_OF_POINTS = ("x", "y", "z", "srid")
#: What a property that something else may have written is bound to.
_HELD = "held"
_NEVER = object()


class Neo4jWhere(WhereCypher):
    """Writes conditions on a node of some layout.

    Parameters
    ----------
    layout
        Where the fields of nodes are.
    """

    def __init__(self, layout: Layout, variable: str, prefix: str = "where") -> None:
        super().__init__(variable, prefix)
        self.layout = layout

    def leaf(self, where: Where) -> str:
        """Write a condition on one field."""
        if where.field == "label":
            return self._label(where.operator, where.value)
        value, items, always = self._field(where.field)
        held = value if self.layout.own or always else _HELD
        found = "true" if always else " OR ".join(f"{e} IS NOT NULL" for e in (held, items) if e)
        condition = self._compare(where.operator, where.value, held, items, f"({found})", always)
        return condition if held == value else f"any({_HELD} IN [{value}] WHERE {condition})"

    def _compare(self, op: str, operand: Any, value: str, items: str | None, found: str, always: bool) -> str:
        if op == "$exists":
            return found if operand else f"NOT {found}"
        if op == "$eq":
            return self._equal(operand, value, items) if operand is not None or always else f"NOT {found}"
        if op == "$ne":
            return f"NOT {self._equal(operand, value, items)}"
        if op in ("$in", "$nin"):
            inside = self._any(operand, value, items)
            return f"NOT {inside}" if op == "$nin" else inside
        if op == "$contains":
            return self._contains(operand, value, items, always)
        return self._ordered(op, operand, value)

    def _equal(self, operand: Any, value: str, items: str | None) -> str:
        parts = []
        if value == _HELD and isinstance(operand, tuple) and None in operand:
            parts += self._equal_with_none(operand, value)
        elif (sent := _sent(operand)) is not _NEVER:
            parts.append(f"coalesce({value} = {self.parameter(sent)}{_apart(operand, value)}, false)")
        if items and isinstance(operand, tuple):
            parts.append(f"coalesce({items} = {self.parameter([canonical(v) for v in operand])}, false)")
        return _any_of(parts)

    def _any(self, operands: tuple[Any, ...], value: str, items: str | None) -> str:
        parts = [self._equal(v, value, None) for v in operands if _apart(v, value)]
        scalars = [sent for v in operands if (sent := _sent(v)) is not _NEVER and not _apart(v, value)]
        parts += [f"coalesce({value} IN {self.parameter(scalars)}, false)"] if scalars else []
        if value == _HELD:
            for operand in operands:
                if isinstance(operand, tuple) and None in operand:
                    parts += self._equal_with_none(operand, value)
        lists = [[canonical(v) for v in operand] for operand in operands if isinstance(operand, tuple)]
        if items and lists:
            parts.append(f"coalesce({items} IN {self.parameter(lists)}, false)")
        return _any_of(parts)

    def _equal_with_none(self, operand: tuple[Any, ...], value: str) -> list[str]:
        """Write equality with a list in which something is none, as what others stored as NaN is."""
        sent = [None if v is None else _sent(v) for v in operand]
        if any(v is _NEVER for v in sent):
            return []
        items = self.parameter(sent)
        same = f"coalesce(items[i] = {items}[i], items[i] IS NULL AND {items}[i] IS NULL)"
        alike = f"size(items) = {len(sent)} AND all(i IN range(0, {len(sent) - 1}) WHERE {same})"
        apart = _apart(operand, "items")
        return [f"any(items IN [{value}] WHERE items IS :: LIST<ANY> NOT NULL AND {alike}{apart})"]

    def _contains(self, operand: Any, value: str, items: str | None, is_text: bool) -> str:
        parts = []
        if is_text:  # the server refuses to look for items in what is always a string
            return f"({value} CONTAINS {self.parameter(operand)})" if isinstance(operand, str) else "false"
        if operand is None and value == _HELD:
            parts.append(f"coalesce({value} IS :: LIST<ANY> NOT NULL AND any(v IN {value} WHERE v IS NULL), false)")
        if (sent := _sent(operand)) is not _NEVER:
            what = self.parameter(sent)
            text = f"WHEN {value} IS :: STRING NOT NULL THEN {value} CONTAINS {what} " if isinstance(sent, str) else ""
            apart = _apart((operand,), value)
            held = f"WHEN {value} IS :: LIST<ANY> NOT NULL THEN {what} IN {value}{apart}"
            parts.append(f"coalesce(CASE {text}{held} ELSE false END, false)")
        if items:
            parts.append(f"coalesce({self.parameter(canonical(operand))} IN {items}, false)")
        return _any_of(parts)

    def _ordered(self, op: str, operand: Any, value: str) -> str:
        if operand is None or isinstance(operand, (bool, tuple)):
            return "false"
        sign = _ORDER[op]
        if isinstance(operand, str):
            return f"coalesce({self._by_code_point(sign, operand, value)}, false)"
        if abs(operand) >= 2**53:
            return self._far(sign, operand, value)
        if operand:
            return f"coalesce({value} {sign} {self.parameter(operand)}, false)"
        zero = self.parameter(0)  # the server has -0.0 below 0, though they are equal
        signs = {"<": f" AND NOT {value} = {zero}", ">=": f" OR {value} = {zero}"}
        return f"coalesce({value} {sign} {zero}{signs.get(sign, '')}, false)"

    def _far(self, sign: str, operand: float, value: str) -> str:
        """Compare with a large number, integers with an integer: the server goes by how a large float is written."""
        integers = "true" if (operand > 0) == (sign[0] == "<") else "false"
        if -(2**63) <= operand < 2**63:
            integers = f"{value} {sign} {self.parameter(int(operand))}"
        nearest = float(operand) if abs(operand) < 2**1023 else math.inf if operand > 0 else -math.inf
        if nearest != operand:  # it stands for the operand, itself in or out
            sign = sign[0] + ("=" if (nearest > operand) == (sign[0] == ">") else "")
        floats = f"{value} {sign} {self.parameter(nearest)}"
        return f"coalesce(CASE WHEN {value} IS :: INTEGER NOT NULL THEN {integers} ELSE {floats} END, false)"

    def _by_code_point(self, sign: str, operand: str, value: str) -> str:
        """Compare strings by code point; the server compares UTF-16, where U+10000 and above come before U+E000."""
        added: list[str] = []
        taken: list[str] = []
        for i, character in enumerate(operand):
            if character < "\ue000":
                continue
            # the values that have the same before this place, and here a character of the other of the two ranges
            before, high = operand[:i], self.parameter(operand[:i] + "\ue000")
            if character > "\uffff":
                others = f"({value} >= {high} AND {value} STARTS WITH {self.parameter(before)})"
            else:
                others = f"({value} >= {self.parameter(before + chr(0x10000))} AND {value} < {high})"
            (added if (sign[0] == "<") == (character > "\uffff") else taken).append(others)
        compared = f"{value} {sign} {self.parameter(operand)}"
        return " OR ".join([" AND NOT ".join([compared, *taken]), *added])

    def _label(self, op: str, operand: Any) -> str:
        if op == "$exists":
            shown = f"any(l IN labels({self.variable}) WHERE NOT l IN {self.parameter(sorted(self._unseen))})"
            return shown if operand else f"NOT {shown}"
        if op in ("$eq", "$contains", "$in"):
            return self.bears(operand if op == "$in" else (operand,))
        if op in ("$ne", "$nin"):
            return f"NOT {self.bears(operand if op == '$nin' else (operand,))}"
        raise InvalidInput(f"where: {op} does not apply to labels")

    def bears(self, labels: Any) -> str:
        """Write that the node bears one of the labels."""
        names = quotable([label for label in labels if isinstance(label, str) and label not in self._unseen])
        return _any_of([f"{self.variable}:{name}" for name in names])

    @property
    def _unseen(self) -> frozenset[str]:
        return self.layout.unseen_labels

    def _field(self, field: str) -> tuple[str, str | None, bool]:
        """Expressions for a field: its value, the items of one stored as JSON, and whether every node has it."""
        if field == "id":
            return self.layout.id_of(self.variable), None, True
        if field in ("name", "text"):
            return self.layout.text_of(self.variable, getattr(self.layout, field)), None, True
        value, items = self._property(field, paths=True)
        own = field.removeprefix(PROPERTIES)
        if own in ("", field):
            return value, items, False
        plain, listed = self._property(own, paths=False)
        null = self._null(field)
        if not items:
            return f"coalesce({value}, CASE WHEN NOT ({null}) THEN {plain} END)", None, False
        plain = f"CASE WHEN NOT ({items} IS NOT NULL OR {null}) THEN {plain} END"
        listed = f"CASE WHEN NOT ({value} IS NOT NULL OR {null}) THEN {listed} END"
        return f"coalesce({value}, {plain})", f"coalesce({items}, {listed})", False

    def _null(self, name: str) -> str:
        """That what the name leads to is there, and null."""
        null = f"{self.parameter(name)} IN {self.variable}.{NULLS}"
        inside = [f"{self.variable}.{inner}" for inner in quotable([NONE + name])] if self.layout.lossless else []
        return " OR ".join(f"coalesce({one}, false)" for one in (null, *inside))

    def _property(self, name: str, *, paths: bool) -> tuple[str, str | None]:
        """Expressions for the property of this name, or where `paths` for what the name leads to inside of another."""
        key = self.layout.key(name)
        names = quotable([key]) if key else []
        value = f"{self.variable}.{names[0]}" if names else "null"
        if not self.layout.own:
            value = self._foreign(name, value, paths)
        if not self.layout.lossless:
            return value, None
        inside = [f"{self.variable}.{inner}" for inner in quotable([AT + name, IN + name])]
        at, items = inside if len(inside) == 2 else ("null", "null")
        is_text = f"coalesce({self.parameter(name)} IN {self.variable}.{JSON}, false)"
        if paths:
            return f"coalesce(CASE WHEN NOT {is_text} THEN {value} END, {at})", items
        return f"CASE WHEN {is_text} THEN {at} ELSE {value} END", f"CASE WHEN {is_text} THEN {items} END"

    def _foreign(self, name: str, value: str, paths: bool) -> str:
        """An expression for a property that something else may have written, as `json_value` reads it."""
        found = [_read(one) for one in (value, self.layout.unsaid(self.variable, name)) if one not in ("null", None)]
        of, _, part = name.partition(".")
        keys = (self.layout.key(of), of if self.layout.unsaid(self.variable, of) else None) if paths else ()
        for one in quotable([key for key in keys if key and part in _OF_POINTS]):
            point = f"{self.variable}.{one}"
            there = f"{point} IS :: POINT NOT NULL" if part != "z" else _has_z(point)
            found.append(f"CASE WHEN {there} THEN {point}.{part} END")
        return f"coalesce({', '.join(found)})" if len(found) > 1 else (found or ["null"])[0]


def _read(value: str) -> str:
    """What `json_value` makes of a value: dates and durations are texts, as infinite numbers are, and NaN is none."""
    dates = " OR ".join(f"raw IS :: {kind} NOT NULL" for kind in _TEMPORAL)
    lists = " OR ".join(f"raw IS :: LIST<{kind}> NOT NULL" for kind in _TEMPORAL)
    return (
        f"head([raw IN [{value}] | CASE WHEN raw IS :: STRING NOT NULL OR raw IS :: INTEGER NOT NULL THEN raw "
        f"WHEN raw IS :: FLOAT NOT NULL THEN {_number('raw')} WHEN {dates} THEN {_text('raw')} "
        f"WHEN raw IS :: LIST<FLOAT> NOT NULL THEN [v IN raw | {_number('v')}] "
        f"WHEN {lists} THEN [v IN raw | {_text('v')}] ELSE raw END])"
    )


def _text(value: str) -> str:
    """A date, a time or a duration as text; the driver takes the zone UTC for the offset of none."""
    return f"replace(toString({value}), 'Z[UTC]', 'Z')"


def _has_z(point: str) -> str:
    """That a value is a point of three coordinates: the server fails where another is asked for its third."""
    return f"CASE WHEN {point} IS :: POINT NOT NULL THEN {point}.srid IN [4979, 9157] ELSE false END"


def _number(value: str) -> str:
    return f"CASE WHEN {value} - {value} = 0 THEN {value} WHEN isNaN({value}) THEN null ELSE toString({value}) END"


def scope_of(layout: Layout, variable: str, where: Where | None, prefix: str) -> tuple[str, dict[str, Any]]:
    """Return a condition on a node as Cypher, ``true`` where there is none, and its parameters."""
    writer = Neo4jWhere(layout, variable, prefix)
    return writer.write(where), writer.parameters


def bears(layout: Layout, variable: str, labels: list[str] | None) -> str:
    """Return that a node bears one of the labels, ``true`` where there are none to bear."""
    return "true" if labels is None else Neo4jWhere(layout, variable).bears(labels)


def relation_types(relations: list[str] | None) -> str | None:
    """Return the relations as a pattern has them, `None` where no edge can have one of them."""
    if relations is None:
        return ""
    names = quotable(relations)
    return f":{'|'.join(names)}" if names else None


def _sent(operand: Any) -> Any:
    """The operand as the driver sends it, `_NEVER` where no value that is stored as it is equals it."""
    if operand is None:
        return _NEVER
    if isinstance(operand, tuple):
        sent = [_sent(v) for v in operand]
        return _NEVER if any(v is _NEVER or isinstance(v, list) for v in sent) else sent
    if isinstance(operand, int) and not isinstance(operand, bool) and not -(2**63) <= operand < 2**63:
        return float(operand) if abs(operand) < 2**1023 and float(operand) == operand else _NEVER
    return operand


def _apart(operand: Any, value: str) -> str:
    """What tells the greatest integer from the float above it, which are equal to the server; for most, nothing."""
    numbers = operand if isinstance(operand, tuple) else (operand,)
    integers = f"{value} IS :: {'LIST<INTEGER NOT NULL>' if numbers is operand else 'INTEGER'} NOT NULL"
    kept = f" AND {integers}" if 2**63 - 1 in numbers else ""
    return f"{kept} AND NOT {integers}" if 2**63 in numbers else kept


def _any_of(parts: list[str]) -> str:
    return f"({' OR '.join(parts)})" if parts else "false"
