"""How nodes are written to Neo4j, and their edges after them, in batches in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphret.stores.neo4j.keeping import held_nodes, restored
from graphret.stores.neo4j.layout import CONSTRAINT, INDEXED, MARKER, Layout
from graphret.stores.neo4j.names import quotable, quote
from graphret.stores.neo4j.placing import NOTHING, placed
from graphret.stores.neo4j.preparing import BATCH, Change
from graphret.stores.neo4j.relationships import upsert_edges
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import stored_ids, stored_numbers, with_ends


def constrained(layout: Layout) -> Plan[None]:
    """Make ids unique and quick to find, if they are not."""
    assert layout.id is not None
    assert layout.label is not None
    yield Statement(
        f"CREATE CONSTRAINT {CONSTRAINT if layout.label == MARKER else ''} IF NOT EXISTS "
        f"FOR (n:{quote(layout.label)}) REQUIRE n.{quote(layout.id)} IS UNIQUE"
    )


def upsert(layout: Layout, change: Change) -> Plan[None]:
    """Write nodes, then edges."""
    change = yield from renumbered(layout, change)
    for labels, rows in change.nodes.items():
        for start in range(0, len(rows), BATCH):
            kept = yield from _kept(layout, rows[start : start + BATCH])
            for stay, chosen in kept.items():
                yield from _merge(layout, labels, chosen, stay)
    yield from upsert_edges(layout, change.edges)


def _kept(layout: Layout, rows: list[list[Any]]) -> Plan[dict[tuple[str, ...], list[list[Any]]]]:
    """Group rows by the properties that stay as they are; the database of others may have what JSON has not."""
    if layout.own:
        return {(): rows}
    held = yield from held_nodes(layout, rows)
    groups: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for key, values, said in rows:
        there = held.get(key, NOTHING)
        fresh, stay = restored(placed(layout, values, said, there), there.odd)
        groups[stay].append([key, fresh])
    return groups


def renumbered(layout: Layout, change: Change) -> Plan[Change]:
    """Return the change with the ids of nodes that something else wrote as they lie there, which may be numbers."""
    rows = [row for of_kind in change.nodes.values() for row in of_kind]
    ends = [end for of_kind in change.edges.values() for row in of_kind for end in row[:2]]
    stored = yield from stored_numbers(layout, [*(row[0] for row in rows), *ends])
    if not stored:
        return change
    nodes = {
        labels: [
            [stored[key], values | {layout.id: stored[key]}, *said] if key in stored else [key, values, *said]
            for key, values, *said in rows
        ]
        for labels, rows in change.nodes.items()
    }
    return Change(nodes, with_ends(change.edges, stored))


def _merge(layout: Layout, labels: tuple[str, ...], rows: list[list[Any]], stay: Sequence[str]) -> Plan[None]:
    assert layout.id is not None
    own = "".join(f":{quote(label)}" for label in labels if label != layout.entity_label)
    node = f"(n:{quote(layout.label or '')} {{{quote(layout.id)}: row[0]}})"
    entity = layout.entity_label if layout.entity_label in labels else None
    text = (
        f"UNWIND $rows AS row MERGE {node} {f'ON CREATE SET n:{quote(entity)} ' if entity else ''}"
        f"{_replaced(layout, stay, entity)}{f' SET n{own}' if own else ''} "
        "WITH n UNWIND labels(n) AS label WITH DISTINCT label WHERE NOT label IN $keep RETURN label"
    )
    keep = [*labels, *layout.unseen_labels]
    stale = yield Statement(text, {"rows": rows, "keep": keep})
    if stale:
        gone = "".join(f":{name}" for name in quotable([label for (label,) in stale]))
        yield Statement(f"UNWIND $rows AS row MATCH {node} REMOVE n{gone}", {"rows": [row[:1] for row in rows]})


def _replaced(layout: Layout, stay: Sequence[str], entity: str | None) -> str:
    """Replace the properties of ``n`` but for some; what others keep beside it, such as an embedding, stays as well
    while its texts do. It becomes an entity where that is new: one that others call none stays what it is.
    """
    if layout.own:
        return "SET n = row[1]"
    always = f"n {{{', '.join(f'.{quote(name)}' for name in stay)}}}"
    more = f"n {{{', '.join(f'.{quote(name)}' for name in (*stay, *layout.hidden) if name not in INDEXED)}}}"
    was, now = ([layout.text_of(node, names) for names in (layout.name, layout.text)] for node in ("n", "row[1]"))
    same = " AND ".join(f"{before} = {after}" for before, after in zip(was, now, strict=True))
    becomes = f"{was[0]} = '' AND ({now[0]} <> '' OR {was[1]} <> '')" if entity else "false"
    marked = f" FOREACH (one IN CASE WHEN becomes THEN [n] ELSE [] END | SET one:{quote(entity)})" if entity else ""
    return (
        f"WITH n, row, {becomes} AS becomes, CASE WHEN {same} THEN {more} ELSE {always} END AS kept "
        f"SET n = row[1] SET n += kept{marked}"
    )


def delete(layout: Layout, ids: Iterable[str]) -> Plan[None]:
    """Take nodes and their edges away.

    Raises
    ------
    InvalidInput
        When an id is that of several nodes, as it may be in a graph that something else wrote.
    """
    gone = list(dict.fromkeys(ids))
    if not layout.own:
        for start in range(0, len(gone), BATCH):
            yield from stored_ids(layout, gone[start : start + BATCH])
    for start in range(0, len(gone), BATCH):
        parameters: dict[str, Any] = {}
        among = layout.among("n", gone[start : start + BATCH], parameters)
        yield Statement(f"MATCH {layout.node('n')} WHERE {among} DETACH DELETE n", parameters)
