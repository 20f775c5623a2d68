"""How edges are written to Neo4j and taken away: looked for by their ends, in batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.neo4j.keeping import odd_values, restored_edge
from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.preparing import BATCH
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import stored_numbers, with_ends


def upsert_edges(layout: Layout, edges: Mapping[str, list[list[Any]]]) -> Plan[None]:
    """Write rows of edges, by relation, between nodes that are there."""
    known = (yield from _known_relations()) if len(edges) > 1 else set(edges)
    for relation, rows in edges.items():
        existing = 0
        if relation in known:
            ((existing,),) = yield Statement(f"MATCH ()-[r:{quote(relation)}]->() RETURN count(r)")
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            if existing and layout.own:
                yield from _delete_same(layout, relation, batch)
            elif existing:
                batch = yield from _rewritten(layout, relation, batch)
            if batch:
                yield from _create(layout, relation, batch)


def _create(layout: Layout, relation: str, rows: Sequence[list[Any]]) -> Plan[None]:
    kind = "$($relation)" if layout.dynamic else quote(relation)
    text = f"{_ends(layout)} CREATE (a)-[r:{kind}]->(b) SET r = row[4]"
    ((made,),) = yield Statement(f"{text} RETURN count(r)", {"rows": rows, "relation": relation})
    if made != len(rows):
        yield from _refuse_dangling(layout, rows)


def _rewritten(layout: Layout, relation: str, rows: Sequence[list[Any]]) -> Plan[list[list[Any]]]:
    """Write edges that others made where they are, so that what JSON lacks stays, and return those that are not there.

    Raises
    ------
    InvalidInput
        When several relationships of the database are one edge.
    """
    held: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for text, chosen in _same(layout, relation, rows):
        text += f"RETURN row[0], row[1], row[2], row[3], elementId(r), {odd_values('r', _WEIGHT)}"
        for *key, element, odd in (yield Statement(text, {"rows": chosen})):
            held[tuple(key)].append((element, dict(odd)))
    fresh: list[list[Any]] = []
    groups: dict[tuple[str, ...], list[list[Any]]] = defaultdict(list)
    for row in rows:
        there = held.get(tuple(row[:4]), [])
        if len(there) > 1:
            raise InvalidInput(
                f"edge {row[0]!r} to {row[1]!r}: {len(there)} relationships {relation!r} of the database are this "
                "edge, so that none of them can be written to"
            )
        for element, odd in there:
            values, stay = restored_edge(row[4], odd)
            groups[stay].append([element, values])
        if not there:
            fresh.append(row)
    for stay, chosen in groups.items():
        kept = f"r {{{', '.join(f'.{quote(name)}' for name in stay)}}}"
        yield Statement(
            "UNWIND $rows AS row MATCH ()-[r]->() WHERE elementId(r) = row[0] "
            f"WITH row, r, {kept} AS kept SET r = row[1] SET r += kept",
            {"rows": chosen},
        )
    return fresh


def _known_relations() -> Plan[set[str]]:
    """Read the relations of the database: one query, where a count of each would be planned each for itself."""
    rows = yield Statement("CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType")
    return {name for (name,) in rows}


def _delete_same(layout: Layout, relation: str, rows: Sequence[list[Any]]) -> Plan[None]:
    """Take away edges of the same ends and rows."""
    for text, chosen in _same(layout, relation, rows):
        yield Statement(f"{text}DELETE r", {"rows": chosen})


def _same(layout: Layout, relation: str, rows: Sequence[list[Any]]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Return what finds the edges ``r`` of the same ends and rows, and for which of the rows.

    Each is looked for from the end that has fewer edges among these, as far as they tell: Neo4j would go through all
    edges of a hub for each of them.
    """
    edges = [Counter(row[end] for row in rows) for end in (0, 1)]
    from_source = [row for row in rows if edges[0][row[0]] <= edges[1][row[1]]]
    from_target = [row for row in rows if edges[0][row[0]] > edges[1][row[1]]]
    for near, far, chosen in ((0, 1, from_source), (1, 0, from_target)):
        if chosen:
            other = "ab"[far]
            # coalesce keeps the planner from the index on the far end, and so from the edges of a hub
            is_far = (
                f"{other}:{quote(layout.label or '')} AND coalesce({other}.{quote(layout.id or '')}, '') = row[{far}]"
            )
            text = (
                f"UNWIND $rows AS row MATCH {_end(layout, near)} MATCH (a)-[r:{quote(relation)}]->(b) "
                f"WHERE {is_far} AND {_ROWS} "
            )
            yield text, chosen


_WEIGHT = "k = 'weight'"
_ROWS = "coalesce(r.source_row, -1) = row[2] AND coalesce(r.target_row, -1) = row[3]"


def _ends(layout: Layout) -> str:
    return f"UNWIND $rows AS row MATCH {_end(layout, 0)} MATCH {_end(layout, 1)}"


def _end(layout: Layout, end: int) -> str:
    """The source (0) or the target (1) of a row, found by its id."""
    return f"({'ab'[end]}:{quote(layout.label or '')} {{{quote(layout.id or '')}: row[{end}]}})"


def _refuse_dangling(layout: Layout, rows: Sequence[list[Any]]) -> Plan[None]:
    assert layout.id is not None
    ends = sorted({end for row in rows for end in row[:2]}, key=str)
    text = (
        f"UNWIND $ids AS id OPTIONAL MATCH (n:{quote(layout.label or '')} {{{quote(layout.id)}: id}}) "
        "WITH id, n WHERE n IS NULL RETURN id LIMIT 1"
    )
    missing = yield Statement(text, {"ids": ends})
    absent = missing[0][0] if missing else None
    row = next((row for row in rows if absent in row[:2]), rows[0])
    raise InvalidInput(f"edge {row[0]!r} to {row[1]!r}: there is no node {absent!r}")


def delete_edges(layout: Layout, keys: Mapping[str, list[list[Any]]]) -> Plan[None]:
    """Take edges away, and nothing else."""
    ends = [end for rows in keys.values() for row in rows for end in row[:2]]
    keys = with_ends(keys, (yield from stored_numbers(layout, ends)))
    for relation, rows in keys.items():
        for start in range(0, len(rows), BATCH):
            yield from _delete_same(layout, relation, rows[start : start + BATCH])
