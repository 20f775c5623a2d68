"""Ids of nodes as a database of others holds them: as numbers, or of several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import Layout, may_be_other
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.temporal import is_unwritable, writable

_BATCH = 5_000


def shared(places: Iterable[tuple[str, str]]) -> set[str]:
    """Return the ids that come with several element ids."""
    known: dict[str, str] = {}
    return {node_id for node_id, place in places if known.setdefault(node_id, place) != place}


def with_ends(edges: Mapping[str, list[list[Any]]], stored: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    """Return rows of edges, by relation, with the ids of their ends as they lie there."""
    return {
        relation: [[stored.get(row[0], row[0]), stored.get(row[1], row[1]), *row[2:]] for row in rows]
        for relation, rows in edges.items()
    }


def stored_numbers(layout: Layout, ids: Iterable[str]) -> Plan[dict[str, Any]]:
    """Read which of the ids are numbers in the database.

    Raises
    ------
    InvalidInput
        When an id is that of several nodes, where no constraint of graphret's prevents it, or of a node that has none
        which it could be written by.
    """
    asked = [] if layout.own else sorted({i for i in ids if not layout.lossless or may_be_other(i)})
    found: dict[str, Any] = {}
    for start in range(0, len(asked), _BATCH):
        stored = yield from stored_ids(layout, asked[start : start + _BATCH])
        for i, value in stored.items():
            if value is None or isinstance(value, list) or value != value or is_unwritable(value):  # NaN equals nothing
                what = "is missing" if value is None else "is no id"
                raise InvalidInput(f"node {i!r}: its property {layout.id!r}, by which nodes are written, {what}")
        found.update((i, writable(value)) for i, value in stored.items() if not isinstance(value, str))
        yield from _require_unlike(layout, [v for v in found.values() if isinstance(v, (int, float))])
    return found


def _require_unlike(layout: Layout, numbers: Sequence[float]) -> Plan[None]:
    """Raise an `InvalidInput` if two nodes have equal numbers of two types as ids: a write would be of both."""
    if not numbers:
        return
    ids = f"n.{quote(layout.id or '')}"
    text = f"MATCH {layout.node('n')} WHERE {ids} IN $numbers RETURN {ids}, {layout.id_of('n')} AS id ORDER BY id"
    known: dict[float, str] = {}
    for number, node_id in (yield Statement(text, {"numbers": list(numbers)})):
        if (other := known.setdefault(number, node_id)) != node_id:
            raise InvalidInput(
                f"node {other!r}: another has the id {node_id!r}, an equal number, so that none of them can be "
                "written to"
            )


def stored_ids(layout: Layout, ids: Sequence[str]) -> Plan[dict[str, Any]]:
    """Read what nodes of ids have as their id, and raise an `InvalidInput` if several nodes have the same."""
    parameters: dict[str, Any] = {}
    among = layout.among("n", ids, parameters)
    text = (
        f"MATCH {layout.node('n')} WHERE {among} WITH {layout.id_of('n')} AS id, n.{quote(layout.id or '')} AS stored "
        "RETURN id, head(collect(stored)), count(*) ORDER BY id"
    )
    rows = yield Statement(text, parameters)
    for node_id, _, n in rows:
        if n > 1:
            raise InvalidInput(f"node {node_id!r}: {n} nodes have this id, so that none of them can be written to")
    return {node_id: value for node_id, value, _ in rows}
