"""Values that others stored and JSON has no room for, such as dates: written back as they were where nothing changed.

A date is read as a text. Were this text written back with the rest of an unchanged node, the date would be gone from a
database that is not graphret's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.temporal import is_unreadable
from graphret.stores.neo4j.values import json_value

_PLAIN = ("STRING", "INTEGER", "FLOAT", "BOOLEAN", "LIST<STRING>", "LIST<FLOAT>", "LIST<BOOLEAN>")


def odd_values(variable: str) -> str:
    """An expression for the names and values that are read as something else; bytes are integers to Cypher."""
    value = f"{variable}[k]"
    plain = " OR ".join(f"{value} IS :: {kind} NOT NULL" for kind in _PLAIN)
    return f"[k IN keys({variable}) WHERE NOT ({plain}) | [k, {value}]]"


def odd_nodes(layout: Layout, keys: list[Any]) -> Plan[dict[Any, dict[str, Any]]]:
    """Read such values of nodes, by what the nodes have as their id."""
    node_id = f"n.{quote(layout.id or '')}"
    text = (
        f"MATCH {layout.node('n')} WHERE {node_id} IN $keys WITH {node_id} AS id, {odd_values('n')} AS odd "
        "WHERE size(odd) > 0 RETURN id, odd"
    )
    return {key: dict(odd) for key, odd in (yield Statement(text, {"keys": keys}))}


def restored(values: Mapping[str, Any], odd: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Put back what is unchanged of what the database has.

    Returns
    -------
    tuple
        The values to write, and the names of those that are to stay as they are, for the driver cannot write them.
    """
    fresh, stay = dict(values), []
    for name, value in odd.items():
        if name in fresh and _same(fresh[name], json_value(value)):
            if _unreadable(value):
                stay.append(name)
                del fresh[name]
            else:
                fresh[name] = value
    return fresh, tuple(sorted(stay))


def restored_edge(row: list[Any], odd: Mapping[str, Any]) -> list[Any]:
    """Put back what is unchanged of an edge, which is made anew.

    Raises
    ------
    InvalidInput
        When it has a date that the driver cannot write, and that would be lost.
    """
    values, stay = restored(row[4], odd)
    if stay:
        raise InvalidInput(
            f"edge {row[0]!r} to {row[1]!r}: property {stay[0]!r} is a date or time that Neo4j's driver cannot write "
            f"({row[4][stay[0]]}): it would become a text"
        )
    return [*row[:4], values]


def _same(given: Any, held: Any) -> bool:
    return type(given) is type(held) and bool(given == held)


def _unreadable(value: Any) -> bool:
    return is_unreadable(value) or (isinstance(value, list) and any(map(is_unreadable, value)))
