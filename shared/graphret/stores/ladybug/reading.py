"""`Reader`: all that a graph store answers, read from a Ladybug database in a query for each table or pair of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from graphret.schema import GraphSchema
from graphret.stores.base import require_direction, require_ids, require_limit, require_names
from graphret.stores.changes import Changes, Written
from graphret.stores.incidence import Incidence, assembled
from graphret.stores.ladybug.catalog import Catalog, NodeTable, RelationTable, node_groups, relation_groups
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.hubs import Around
from graphret.stores.ladybug.incidence import Spokes, hubs
from graphret.stores.ladybug.keys import keys_of, match_by_key
from graphret.stores.ladybug.names import OVERFLOW, quoted
from graphret.stores.ladybug.reaching import odd_keys
from graphret.stores.ladybug.records import (
    EdgeReader,
    NodeReader,
    edge_key,
    id_expression,
    node_id,
)
from graphret.stores.ladybug.sampling import COUNTED, SAMPLE, Condition, Sampler
from graphret.stores.ladybug.values import OPENING
from graphret.stores.ladybug.where import LadybugWhere, fields
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both

BLOCK = 10_000


class Reader:
    """Reads a graph, or as much of one as satisfies a condition.

    Parameters
    ----------
    opened
        Gives a session for the time of one call, and says what tables there are.
    restriction
        Nothing but nodes that satisfy this, and edges among them, is read.
    changes
        Gives what the store has written; left out where that is not known.
    """

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[tuple[Session, Catalog]]],
        restriction: Where | None = None,
        changes: Callable[[], Changes] | None = None,
    ) -> None:
        self._opened = opened
        self.restriction = restriction
        self._changes = changes

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        listed = require_ids(ids)
        wanted = [*dict.fromkeys(listed)]
        with self._opened() as (session, catalog):
            found = self._get(session, catalog, wanted) if wanted else {}
        return [found.get(i) for i in listed]

    def _get(self, session: Session, catalog: Catalog, ids: Sequence[str]) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for table in catalog.nodes.values():
            keys = keys_of(table, [i for i in ids if i not in found])
            reader = NodeReader(table)
            for condition in self._conditions(session, [table], self.restriction):
                rows = (
                    session.rows(
                        f"UNWIND $ids AS i {match_by_key(table)} AND {condition.text} RETURN {reader.expressions('n')}",
                        {"ids": keys, **condition.parameters},
                    )
                    if keys
                    else []
                )
                nodes = [reader.node(row) for row in rows]
                found.update((node.id, node) for node in nodes if node.id not in found)
        return found

    def locate(self, session: Session, catalog: Catalog, ids: Iterable[str]) -> dict[str, str]:
        """Return the table of each node that is here."""
        left, found = dict.fromkeys(ids), dict[str, str]()
        for table in catalog.nodes.values():
            keys = keys_of(table, [*left])
            if not keys:
                continue
            for condition in self._conditions(session, [table], self.restriction):
                rows = session.rows(
                    f"UNWIND $ids AS i {match_by_key(table)} AND {condition.text} RETURN {id_expression(table, 'n')}",
                    {"ids": keys, **condition.parameters},
                )
                for (value,) in rows:
                    if (own := node_id(value)) in left:
                        found[own] = table.name
                        del left[own]
        return found

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch the nodes; see `GraphStore.neighbors`."""
        require_direction(direction)
        require_limit(limit)
        wanted = require_names("relations", relations)
        named, condition = require_names("labels", labels), Where.parse(where)
        anchors = [*dict.fromkeys(require_ids(ids))]
        found: dict[tuple[Any, ...], Edge] = {}
        of_anchor: dict[str, dict[tuple[Any, ...], Edge]] = {}
        with self._opened() as (session, catalog):
            other = both(self.restriction, _bearing(named, condition))
            tables: dict[str, list[str]] = {}
            for node, table in self.locate(session, catalog, anchors).items():
                tables.setdefault(table, []).append(node)
            chosen = catalog.related(wanted)
            for table, nodes in tables.items():
                for way in ("out", "in") if direction == "both" else (direction,):
                    for anchor, key, edge in self._around(session, catalog, table, nodes, chosen, other, way, limit):
                        of_anchor.setdefault(anchor, {}).setdefault(key, edge)
        for edges in of_anchor.values():
            if limit is None or len(edges) <= limit:
                found.update(edges)
            else:
                found.update(sorted(edges.items(), key=lambda item: (-item[1].weight, item[0]))[:limit])
        return [found[key] for key in sorted(found)]

    def state(self) -> int | None:
        """Return a number that stays the same until something is written; `None` while something is."""
        return None if self._changes is None else self._changes().state

    def written(self, since: int) -> Written | None:
        """Return what was written since a state; `None` where that is not known."""
        return None if self._changes is None else self._changes().since(since)

    def degree(self, node: str) -> int:
        """Return how many edges touch a node; see `Incident.degree`."""
        with self._opened() as (session, catalog):
            found = self._spokes(session, catalog, node)
            return 0 if found is None else found.degree()

    def incidence(self, node: str) -> Incidence | None:
        """Return the edges of a node in columns; `None` where several tables have nodes of one id."""
        with self._opened() as (session, catalog):
            found = self._spokes(session, catalog, node)
            return None if found is None else assembled([*found.parts()])

    def hubs(self, above: int) -> list[tuple[str, int]]:
        """Return the nodes with more edges than `above` of one relation and direction to one label, and how many."""
        with self._opened() as (session, catalog):
            return hubs(session, catalog, above)

    def _spokes(self, session: Session, catalog: Catalog, node: str) -> Spokes | None:
        table = self.locate(session, catalog, [node]).get(node)
        if table is None:
            return None

        def conditions(far: NodeTable) -> Iterator[Condition]:
            return self._conditions(session, [far], self.restriction, "m")

        return Spokes(session, catalog, catalog.nodes[table], node, conditions)

    def _around(
        self,
        session: Session,
        catalog: Catalog,
        anchor: str,
        ids: list[str],
        relations: list[RelationTable],
        other: Where | None,
        direction: str,
        limit: int | None,
    ) -> Iterator[tuple[str, tuple[Any, ...], Edge]]:
        """The edges of nodes of one table in one direction, each with its node and its key."""
        table = catalog.nodes[anchor]
        keys = keys_of(table, ids)
        near, far = (0, 1) if direction == "out" else (1, 0)
        for reader in map(EdgeReader, relation_groups(t for t in relations if any(p[near] == anchor for p in t.pairs))):
            reached = {p[far] for t in reader.tables.values() for p in t.pairs if p[near] == anchor}
            for condition in self._conditions(session, [catalog.nodes[t] for t in sorted(reached)], other, "m"):
                for near_id, far_id, *values in Around(session, table, reader, condition, direction).rows(keys, limit):
                    place = () if reader.native else (values.pop(),)
                    ends = node_id(near_id), node_id(far_id)
                    edge = reader.edge(ends[near], ends[far], values)
                    yield ends[0], (*edge_key(edge), *place), edge

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges there are."""
        with self._opened() as (session, catalog):
            nodes = sum(
                session.rows(f"MATCH ({c.group.pattern('n')}) WHERE {c.text} RETURN count(*)", c.parameters)[0][0]
                for c in self._conditions(session, catalog.nodes.values(), self.restriction)
            )
            if self.restriction is not None or not catalog.relations:
                return nodes, sum(self._sampler(session, catalog).triples().values())
            return nodes, session.rows("MATCH ()-[r]->() RETURN count(*)")[0][0]

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]:
        """Go through all nodes, or those that bear one of `labels` and satisfy `where`, in blocks, by id."""
        return self._blocks(require_names("labels", labels), Where.parse(where))

    def _blocks(self, labels: list[str] | None, condition: Where | None) -> Iterator[list[Node]]:
        with self._opened() as (session, catalog):
            chosen = both(self.restriction, _bearing(labels, condition))
            ids = sorted(self._ids(session, catalog, chosen))
        for start in range(0, len(ids), BLOCK):
            yield [node for node in self.get(ids[start : start + BLOCK]) if node is not None]

    def _ids(self, session: Session, catalog: Catalog, condition: Where | None) -> list[str]:
        found = []
        for c in self._conditions(session, catalog.nodes.values(), condition):
            own = id_expression(c.group.first, "n")
            query = f"MATCH ({c.group.pattern('n')}) WHERE {c.text} RETURN {own}"
            found += [node_id(value) for (value,) in session.rows(query, c.parameters)]
        return found

    def edges(self, relations: Collection[str] | None = None) -> Iterator[list[Edge]]:
        """Go through all edges, or those of some relations, in blocks, each edge once."""
        wanted = require_names("relations", relations)
        return self._edge_blocks(wanted)

    def _edge_blocks(self, wanted: list[str] | None) -> Iterator[list[Edge]]:
        with self._opened() as (_, catalog):
            chosen = catalog.related(wanted)
        for table in chosen:
            for source, target in table.pairs:
                lowest, step = 0, BLOCK
                while (read := self._edges_from(table, source, target, lowest, lowest + step)) is not None:
                    lowest += step
                    step = step * 2 if len(read) < BLOCK // 2 else max(1, step // 2) if len(read) > 4 * BLOCK else step
                    for start in range(0, len(read), BLOCK):
                        yield read[start : start + BLOCK]

    def _edges_from(self, table: RelationTable, source: str, target: str, lowest: int, below: int) -> list[Edge] | None:
        """The edges of a pair of tables whose sources lie in a range; `None` when the range lies behind all nodes."""
        with self._opened() as (session, catalog):
            table = catalog.relations.get(table.name, table)
            a, b = catalog.nodes[source], catalog.nodes[target]
            last = session.rows(f"MATCH (a:{quoted(source)}) RETURN max(offset(id(a)))")[0][0]
            if last is None or lowest > last:
                return None
            reader = EdgeReader([table])
            text, parameters = self._sampler(session, catalog).between(source, target)
            rows = session.rows(
                f"MATCH (a:{quoted(source)})-[{reader.pattern('r')}]->(b:{quoted(target)})"
                f"{text} AND offset(id(a)) >= $lowest AND offset(id(a)) < $below "
                f"RETURN {id_expression(a, 'a')}, {id_expression(b, 'b')}, {reader.expressions('r')}",
                {**parameters, "lowest": lowest, "below": below},
            )
            return [reader.edge(node_id(s), node_id(t), values) for s, t, *values in rows]

    def schema(self, *, sample: int = SAMPLE, counted: int = COUNTED) -> GraphSchema:
        """Return labels and triples with their counts, and properties with types, coverage and examples.

        An edge counts under the primary labels of its ends. Properties have the names that Cypher knows them by,
        ``id``, ``name`` and ``text`` among them; labels and relations their own, beside which the schema says what
        Cypher calls them. Where the graph is large, the schema says that it is sampled:
        properties, and where there are very many, secondary labels and triples are then estimates. The same graph gives
        the same schema.

        Parameters
        ----------
        sample
            Of about so many nodes of each label and edges of each relation the properties are read, of fewer where
            there are many labels or relations.
        counted
            Labels are counted where the nodes are no more than this, and edges where the nodes that they may leave,
            summed over pairs of labels and relations, are; else those of some nodes are.
        """
        with self._opened() as (session, catalog):
            return self._sampler(session, catalog, sample, counted).schema()

    def _sampler(self, session: Session, catalog: Catalog, sample: int = SAMPLE, counted: int = COUNTED) -> Sampler:
        def conditions(tables: Iterable[NodeTable], variable: str) -> Iterator[Condition]:
            return self._conditions(session, tables, self.restriction, variable)

        return Sampler(session, catalog, conditions, self.restriction is not None, sample, counted)

    def _conditions(
        self, session: Session, tables: Iterable[NodeTable], where: Where | None, variable: str = "n"
    ) -> Iterator[Condition]:
        """The condition for each group of tables that one query can read."""

        def lined(table: NodeTable) -> bool:
            if "lined" not in table.facts:
                here = f"n.{quoted(OVERFLOW)}"
                query = f"MATCH (n:{quoted(table.name)}) WHERE {here} IS NOT NULL AND NOT starts_with({here}, $opening)"
                found = session.rows(f"{query} RETURN 1 LIMIT 1", {"opening": OPENING})
                table.facts.setdefault("lined", not found)  # a write may have come between, and says otherwise
            return table.facts["lined"]

        def longest(query: str, parameters: dict[str, Any]) -> int:
            return session.rows(query, parameters)[0][0] or 0

        def with_odd_keys(table: NodeTable, column: str, leaf: Where) -> list[int] | None:
            if column not in table.columns:
                return None
            odd, fact = f"MATCH (n:{quoted(table.name)}) WHERE {odd_keys(f'n.{quoted(column)}')}", f"odd keys: {column}"
            if fact not in table.facts:
                table.facts[fact] = bool(session.rows(f"{odd} RETURN 1 LIMIT 1"))
            if not table.facts[fact]:
                return None
            reader = NodeReader(table)
            rows = session.rows(f"{odd} RETURN offset(id(n)), {reader.expressions('n')}")
            return [offset for offset, *row in rows if leaf.matches(reader.node(row))]

        for group in node_groups(tables, fields(where)):
            writer = LadybugWhere(variable, group, lined, longest, with_odd_keys, f"where_{variable}_")
            yield Condition(group, writer.write(where), writer.parameters)


def _bearing(labels: list[str] | None, condition: Where | None) -> Where | None:
    return condition if labels is None else both(Where("$in", "label", tuple(labels)), condition)


__all__ = ["BLOCK", "NodeTable", "Reader"]
