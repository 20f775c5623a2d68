"""Values that others stored and JSON has no room for, such as dates: written back as they were where nothing changed.

A date is read as a text. Were this text written back with the rest of an unchanged node, the date would be gone from a
database that is not graphret's.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.placing import Held, conflicts, says
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.temporal import is_unreadable
from graphret.stores.neo4j.values import edge_from, edge_key, json_value

_SCALARS = ("STRING", "INTEGER", "BOOLEAN")
_LISTS = ("LIST<STRING>", "LIST<BOOLEAN>")


def odd_values(variable: str, also: str) -> str:
    """An expression for the names and values that are read as something else, and for those of other names ``k``.

    Numbers that are not finite are such, and bytes, which are integers to Cypher; an empty list may be of bytes.
    """
    value = f"{variable}[k]"
    scalars, lists = (" OR ".join(f"{value} IS :: {kind} NOT NULL" for kind in kinds) for kinds in (_SCALARS, _LISTS))
    plain = (
        f"CASE WHEN {scalars} THEN true WHEN {value} IS :: FLOAT NOT NULL THEN {value} - {value} = 0 "
        f"WHEN {lists} THEN size({value}) > 0 "
        f"WHEN {value} IS :: LIST<FLOAT> NOT NULL THEN all(v IN {value} WHERE v - v = 0) ELSE false END"
    )
    return f"[k IN keys({variable}) WHERE {also} OR NOT {plain} | [k, {value}]]"


def held_nodes(layout: Layout, rows: Sequence[Sequence[Any]]) -> Plan[dict[Any, Held]]:
    """Read what the database holds of nodes that will be written, by what they have as their id; others are plain."""
    node_id = f"n.{quote(layout.id or '')}"
    said = "n[k] IS :: STRING NOT NULL OR n[k] IS :: INTEGER NOT NULL"
    text = (
        f"MATCH {layout.node('n')} WHERE {node_id} IN $keys "
        f"WITH {node_id} AS id, {odd_values('n', f'(k IN $fields AND NOT ({said}))')} AS odd, "
        f"[names IN $candidates | head([k IN names WHERE {said} | "
        "[k, CASE WHEN $told OR k <> names[0] OR n[k] IS :: INTEGER NOT NULL THEN n[k] END]])] AS said "
        "WHERE size(odd) > 0 OR any(one IN said WHERE one[1] IS NOT NULL) RETURN id, odd, said"
    )
    candidates = [[name for name in names if name not in layout.hidden] for names in (layout.name, layout.text)]
    parameters = {
        "keys": [row[0] for row in rows],
        "fields": [layout.id, layout.name[0], layout.text[0]],
        "candidates": candidates,
        "told": any(conflicts(layout, values, said) for _, values, said in rows),
    }
    found = yield Statement(text, parameters)
    return {key: Held(dict(odd), *(tuple(one) if one else None for one in said)) for key, odd, said in found}


def restored(values: Mapping[str, Any], odd: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values to write, and the names of those that stay as they are, since they say what was read."""
    stay = {name for name, value in odd.items() if says(values.get(name), value)}
    return {name: value for name, value in values.items() if name not in stay}, tuple(sorted(stay))


def restored_edge(row: list[Any], odd: Mapping[str, Any]) -> list[Any]:
    """Put back what is unchanged of an edge, which is made anew.

    Raises
    ------
    InvalidInput
        When it has a date that the driver cannot write, and that would be lost.
    """
    values, stay = restored(row[4], {name: value for name, value in odd.items() if name != "weight"})
    if "weight" in odd:
        was, given = edge_from("", "", "", {"weight": odd["weight"]}), edge_from("", "", "", row[4])
        if (was.weight, was.properties.get("weight")) == (given.weight, given.properties.get("weight")):
            values.pop(edge_key("weight"), None)
            stay += ("weight",)
    for name in stay:
        if _unwritable(odd[name]):
            raise InvalidInput(
                f"edge {row[0]!r} to {row[1]!r}: property {name!r} is a date or time that Neo4j's driver cannot write "
                f"({json_value(odd[name])}): it would become a text"
            )
        values[name] = _writable(odd[name])
    return [*row[:4], values]


def _unwritable(value: Any) -> bool:
    """Whether the driver fails on writing a value; it does on a time of the day before the year 1."""
    if isinstance(value, list):
        return any(map(_unwritable, value))
    return is_unreadable(value) or (hasattr(value, "to_ordinal") and value.to_ordinal() < 1)


def _writable(value: Any) -> Any:
    """The value as the driver writes it back; it would make a zone of UTC where there was none."""
    if isinstance(value, list):
        return [_writable(v) for v in value]
    if getattr(getattr(value, "tzinfo", None), "zone", None) == "UTC":
        return value.replace(tzinfo=datetime.UTC)
    return value
