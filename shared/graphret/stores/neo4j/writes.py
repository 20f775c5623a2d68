"""How nodes and edges are written to Neo4j: all checked first, then in batches in one transaction."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret._checked import require_edge, require_properties
from graphret.errors import InvalidInput, StoreMismatch
from graphret.stores.neo4j.keeping import odd_nodes, odd_values, restored, restored_edge
from graphret.stores.neo4j.layout import (
    CONSTRAINT,
    INDEXED,
    LABELS,
    LONG_ID,
    MARKER,
    RESERVED,
    ROWS,
    Layout,
    is_id,
)
from graphret.stores.neo4j.names import quotable, quote
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.stored_ids import stored_ids, stored_numbers, with_ends
from graphret.stores.neo4j.values import NESTED, edge_key, field_of, stored
from graphret.types import Edge, Node, require_id

#: Nodes or edges in one statement.
BATCH = 5_000
#: More properties of the nodes of a batch, by id: names that begin with ``graphret_``, which are not read back.
Writer: TypeAlias = Callable[[Sequence[Node]], Mapping[str, Mapping[str, Any]]]


@dataclass(slots=True)
class Change:
    """Nodes and edges ready to be written, grouped by what a query has to name.

    `nodes` has rows of id and properties by labels, `edges` rows of source, target, two rows and properties by
    relation.
    """

    nodes: dict[tuple[str, ...], list[list[Any]]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[str, list[list[Any]]] = field(default_factory=lambda: defaultdict(list))


def prepared(
    layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str, writers: Sequence[Writer]
) -> Change:
    """Check nodes and edges, and lay them out.

    Raises
    ------
    InvalidInput
        When one is malformed or an id comes twice.
    StoreMismatch
        When nodes of this layout have no property for their id.
    """
    require_writable(layout)
    change, fresh = Change(), list(nodes)
    seen: set[str] = set()
    for node in fresh:
        if require_id(node.id, "node") in seen:
            raise InvalidInput(f"node {node.id!r}: the id comes twice")
        seen.add(node.id)
    extras = _written(writers, fresh)
    for node in fresh:
        labels, values = _node_row(layout, node, nested)
        change.nodes[labels].append([layout.id_key(node.id), values | extras.get(node.id, {})])
    distinct: dict[tuple[Any, ...], list[Any]] = {}
    for edge in edges:
        row = _edge_row(layout, edge, nested)
        distinct[edge.relation, *row[:4]] = row
    for (relation, *_), row in distinct.items():
        change.edges[relation].append(row)
    return change


def check(layout: Layout, nodes: Iterable[Node], edges: Iterable[Edge], nested: str) -> None:
    """Check nodes and edges one by one, as `prepared` does, and keep nothing of them."""
    require_writable(layout)
    for node in nodes:
        require_id(node.id, "node")
        _require_text(_node_row(layout, node, nested), f"node {node.id!r}")
    for edge in edges:
        row = _edge_row(layout, edge, nested)
        if edge.properties:
            _require_text(row, f"edge {edge.source!r} to {edge.target!r}")


def _require_text(row: Any, what: str) -> None:
    """Raise an `InvalidInput` if a row holds text that cannot be sent."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what}: a text holds half of a surrogate pair, which Neo4j cannot hold") from error


def require_writable(layout: Layout) -> None:
    """Raise a `StoreMismatch` if nodes of this layout have no label and property by which they are found."""
    if layout.id is None or layout.label is None:
        raise StoreMismatch(
            "this graph was not written by graphret: to write to it, name the property of its ids (id_property=) and "
            "the label that all nodes bear (label=)"
        )


def _node_row(layout: Layout, node: Node, nested: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    what = f"node {node.id!r}"
    for name, value in (("name", node.name), ("text", node.text)):
        if not isinstance(value, str):
            raise InvalidInput(f"{what}: the {name} must be a string, not {type(value).__name__}")
    if isinstance(node.labels, str) or not all(isinstance(label, str) for label in node.labels):
        raise InvalidInput(f"{what}: the labels must be a tuple of strings")
    require_properties(node.properties, what)
    values = stored(node.properties, layout.key, nested, what, searchable=layout.lossless, foreign=not layout.lossless)
    for candidates, value, named in ((layout.name, node.name, "name"), (layout.text, node.text, "text")):
        if not value:
            continue
        if _has(layout, node, candidates[0]):
            if field_of(values, candidates) != value:
                raise _lost(what, candidates[0], named)
        else:
            values[candidates[0]] = value
    assert layout.id is not None
    if _has(layout, node, layout.id) and not is_id(node.properties[layout.id], node.id):
        raise _lost(what, layout.id, "id")
    values[layout.id] = layout.id_key(node.id)
    if values[layout.id] != node.id:
        values[LONG_ID] = node.id
    labels = tuple(dict.fromkeys(node.labels))
    for label in labels:
        quote(label, f"{what}: a label")
        if label in layout.unseen_labels:
            raise InvalidInput(f"{what}: the label {label!r} is for the store's own use")
    if layout.label and layout.label not in layout.unseen_labels:
        labels = tuple(dict.fromkeys((*labels, layout.label)))
    if labels != layout.labels(labels):
        values[LABELS] = list(labels)
    if layout.entity_label and (node.name or not node.text):
        labels = (*labels, layout.entity_label)
    return tuple(sorted(labels)), values


def _has(layout: Layout, node: Node, field: str) -> bool:
    """Whether the node has a property that is stored where a field is, under its own name."""
    return field in node.properties and layout.key(field, node.properties[field]) == field


def _lost(what: str, name: str, field: str) -> InvalidInput:
    return InvalidInput(
        f"{what}: property {name!r} is where nodes have their {field} here, and says something else; one would be lost"
    )


def _edge_row(layout: Layout, edge: Edge, nested: str) -> list[Any]:
    what = require_edge(edge)
    quote(edge.relation, f"{what}: the relation")
    values = stored(
        edge.properties, edge_key, nested, f"{what} ({edge.relation})", searchable=False, foreign=not layout.own
    )
    rows = [values.get(row, -1) for row in ROWS]
    if edge.weight != 1.0:
        values["weight"] = float(edge.weight)
    return [layout.id_key(edge.source), layout.id_key(edge.target), *rows, values]


def _written(writers: Sequence[Writer], nodes: list[Node]) -> dict[str, dict[str, Any]]:
    extras: dict[str, dict[str, Any]] = defaultdict(dict)
    for writer in writers:
        for start in range(0, len(nodes), BATCH):
            for node_id, values in writer(nodes[start : start + BATCH]).items():
                for name in values:
                    if not name.startswith(RESERVED) or name in (LONG_ID, LABELS):
                        raise InvalidInput(f"writers: the property {name!r} does not begin with {RESERVED!r}")
                extras[node_id].update(values)
    return extras


def require_nested(nested: str) -> str:
    """Return what is done with nested values, and raise an `InvalidInput` if it is neither."""
    if nested not in NESTED:
        raise InvalidInput(f"nested: 'refuse' or 'json' is expected, not {nested!r}")
    return nested


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
    known = (yield from _known_relations()) if len(change.edges) > 1 else set(change.edges)
    for relation, rows in change.edges.items():
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
            text += f"WITH row, r, {odd_values('r', 'weight')} AS odd DELETE r "
            found = yield Statement(f"{text}RETURN row[0], row[1], row[2], row[3], odd", {"rows": chosen})
            for *key, values in found:
                odd[tuple(key)].append(dict(values))
    return odd


_SAME = "coalesce(r.source_row, -1) = row[2] AND coalesce(r.target_row, -1) = row[3]"


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


def edge_keys(layout: Layout, edges: Iterable[Edge]) -> dict[str, list[list[Any]]]:
    """Return what identifies edges, by relation: source, target and rows.

    Raises
    ------
    StoreMismatch
        When nodes of this layout are not found by an id of theirs.
    """
    require_writable(layout)
    keys: dict[str, list[list[Any]]] = defaultdict(list)
    for edge in edges:
        row = _edge_row(layout, Edge(edge.source, edge.relation, edge.target, 1.0, _rows_of(edge)), "refuse")
        keys[edge.relation].append(row[:4])
    return keys


def _rows_of(edge: Edge) -> dict[str, Any]:
    return {row: edge.properties[row] for row in ROWS if row in edge.properties}


def delete_edges(layout: Layout, keys: Mapping[str, list[list[Any]]]) -> Plan[None]:
    """Take edges away, and nothing else."""
    ends = [end for rows in keys.values() for row in rows for end in row[:2]]
    keys = with_ends(keys, (yield from stored_numbers(layout, ends)))
    for relation, rows in keys.items():
        for start in range(0, len(rows), BATCH):
            yield from _delete_same(layout, relation, rows[start : start + BATCH])


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
