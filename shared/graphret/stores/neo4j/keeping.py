"""Values that others stored and JSON has no room for, such as dates: written back as they were where nothing changed.

A date is read as a text. Were this text written back with the rest of an unchanged node, the date would be gone from a
database that is not graphret's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.placing import Held, conflicts, says
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.values import edge_from, edge_key

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


def restored_edge(values: Mapping[str, Any], odd: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return for an edge what `restored` does for a node; a weight stays if it is read as the one that is given."""
    fresh, stay = restored(values, {name: value for name, value in odd.items() if name != "weight"})
    if "weight" in odd:
        was, given = edge_from("", "", "", {"weight": odd["weight"]}), edge_from("", "", "", values)
        if (was.weight, was.properties.get("weight")) == (given.weight, given.properties.get("weight")):
            fresh = {name: value for name, value in fresh.items() if name not in ("weight", edge_key("weight"))}
            stay += ("weight",)
    return fresh, stay
