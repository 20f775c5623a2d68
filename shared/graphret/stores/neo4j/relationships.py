"""How edges are written to Neo4j and taken away: looked for by their ends, in batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
            if existing:
                odd = yield from _delete_same(layout, relation, batch)
                batch = [_restored(relation, row, odd.get(tuple(row[:4]), ())) for row in batch]
            kind = "$($relation)" if layout.dynamic else quote(relation)
            text = f"{_ends(layout)} CREATE (a)-[r:{kind}]->(b) SET r = row[4]"
            ((made,),) = yield Statement(f"{text} RETURN count(r)", {"rows": batch, "relation": relation})
            if made != len(batch):
                yield from _refuse_dangling(layout, batch)


def _restored(relation: str, row: list[Any], held: Sequence[dict[str, Any]]) -> list[Any]:
    """Put back what is unchanged of an edge that was taken away; raises as `restored_edge` does."""
    if len(held) > 1:
        raise InvalidInput(
            f"edge {row[0]!r} to {row[1]!r}: {len(held)} relationships {relation!r} of the database are this edge, "
            "so that none of them can be written to"
        )
    return restored_edge(row, held[0]) if held else row


def _known_relations() -> Plan[set[str]]:
    """Read the relations of the database: one query, where a count of each would be planned each for itself."""
    rows = yield Statement("CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType")
    return {name for (name,) in rows}


def _delete_same(
    layout: Layout, relation: str, rows: Sequence[list[Any]]
) -> Plan[dict[tuple[Any, ...], list[dict[str, Any]]]]:
    """Take away edges of the same ends and rows; return what others stored in each and JSON has not.

    Each is looked for from the end that has fewer edges among these, as far as they tell: Neo4j would go through all
    edges of a hub for each of them.
    """
    edges = [Counter(row[end] for row in rows) for end in (0, 1)]
    odd: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
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
                f"WHERE {is_far} AND {_SAME} "
            )
            if layout.own:
                yield Statement(f"{text}DELETE r", {"rows": chosen})
                continue
            text += f"WITH row, r, {odd_values('r', _WEIGHT)} AS odd DELETE r "
            found = yield Statement(f"{text}RETURN row[0], row[1], row[2], row[3], odd", {"rows": chosen})
            for *key, values in found:
                odd[tuple(key)].append(dict(values))
    return odd


_WEIGHT = "k = 'weight'"
_SAME = "coalesce(r.source_row, -1) = row[2] AND coalesce(r.target_row, -1) = row[3]"


def _ends(layout: Layout) -> str:
    return f"UNWIND $rows AS row MATCH {_end(layout, 0)} MATCH {_end(layout, 1)}"


def _end(layout: Layout, end: int) -> str:
    """The source (0) or the target (1) of a row, found by its id."""
    return f"({'ab'[end]}:{quote(layout.label or '')} {{{quote(layout.id or '')}: row[{end}]}})"


def _refuse_dangling(layout: Layout, rows: list[list[Any]]) -> Plan[None]:
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
