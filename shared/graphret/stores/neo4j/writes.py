"""How nodes are written to Neo4j, and their edges after them, in batches in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphret.stores.neo4j.keeping import odd_nodes, restored
from graphret.stores.neo4j.layout import CONSTRAINT, INDEXED, MARKER, Layout
from graphret.stores.neo4j.names import quotable, quote
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
    odd = yield from odd_nodes(layout, [key for key, _ in rows])
    groups: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for key, values in rows:
        fresh, stay = restored(values, odd.get(key, {}))
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
            [stored[key], values | {layout.id: stored[key]}] if key in stored else [key, values] for key, values in rows
        ]
        for labels, rows in change.nodes.items()
    }
    return Change(nodes, with_ends(change.edges, stored))


def _merge(layout: Layout, labels: tuple[str, ...], rows: list[list[Any]], stay: Sequence[str]) -> Plan[None]:
    assert layout.id is not None
    own = "".join(f":{quote(label)}" for label in labels)
    node = f"(n:{quote(layout.label or '')} {{{quote(layout.id)}: row[0]}})"
    text = (
        f"UNWIND $rows AS row MERGE {node} {_replaced(layout, stay)}{f' SET n{own}' if own else ''} "
        "WITH n UNWIND labels(n) AS label WITH DISTINCT label WHERE NOT label IN $keep RETURN label"
    )
    keep = [*labels, *layout.unseen_labels]
    stale = yield Statement(text, {"rows": rows, "keep": keep})
    if stale:
        gone = "".join(f":{name}" for name in quotable([label for (label,) in stale]))
        yield Statement(f"UNWIND $rows AS row MATCH {node} REMOVE n{gone}", {"rows": [row[:1] for row in rows]})


def _replaced(layout: Layout, stay: Sequence[str]) -> str:
    """Replace the properties of ``n`` but for some; what others keep beside it, such as an embedding, stays as well
    while its texts do.
    """
    always = f"n {{{', '.join(f'.{quote(name)}' for name in stay)}}}"
    beside = [name for name in layout.hidden if name not in INDEXED]
    if not beside:
        return f"WITH n, row, {always} AS kept SET n = row[1] SET n += kept" if stay else "SET n = row[1]"
    fields = layout.name, layout.text
    same = " AND ".join(f"{layout.text_of('n', names)} = {layout.text_of('row[1]', names)}" for names in fields)
    more = f"n {{{', '.join(f'.{quote(name)}' for name in (*stay, *beside))}}}"
    return f"WITH n, row, CASE WHEN {same} THEN {more} ELSE {always} END AS kept SET n = row[1] SET n += kept"


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
