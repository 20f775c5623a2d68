"""The nodes and edges of a Ladybug database, read with a query for each table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.base import LabelTables
from graphret.stores.conditions import SIGNS, Conditions, require_decided
from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.tables import (
    EDGE_COLUMNS,
    NODE_COLUMNS,
    NODE_RETURNED,
    Catalog,
    Table,
    column_of,
    edge,
    folded,
    node,
    quoted,
)
from graphret.types import Edge, EdgeKey, Node
from graphret.where import PROPERTIES, Where, both

#: A node with more edges than this gets a query of its own if there is a limit, so that
#: the database cuts them.
_HUB = 1_000
#: What is returned of an edge ``r`` from ``n`` to ``m``, and the order of edges of
#: equal weight at one node.
_EDGE = "n.id, m.id, label(r), r.weight, r.properties"
_ORDER = (
    "r.weight DESC, m.id, label(r), coalesce(r.source_row, -1),"
    " coalesce(r.target_row, -1)"
)
_KINDS = {"STRING": str, "BOOL": bool, "DOUBLE": float, "INT64": int}
Triple = tuple[str, str, str]


class Filter(Conditions):
    """A condition on a node of some tables.

    The database decides `text`; `rest` remains for `Where.matches`.
    """

    def __init__(
        self, where: Where | None, tables: Iterable[Table], variable: str = "n"
    ) -> None:
        super().__init__(variable, f"where_{variable}_")
        self._tables = [*tables]
        self.text, self.rest = self.write(where)

    @property
    def pattern(self) -> str:
        """The variable and its tables, as written between the brackets of a pattern."""
        return self.variable + "".join(
            f":{quoted(table.name)}" for table in self._tables
        )

    def has_label(self, labels: Sequence[str] | None) -> str:
        """Write that the node has one of the labels, or any."""
        if labels is None:
            return f"(size({self.variable}.labels) > 0)"
        has = [
            f"list_contains({self.variable}.labels, {self.parameter(label)})"
            for label in labels
        ]
        return f"({' OR '.join(has) or 'false'})"

    def value(self, where: Where) -> tuple[str, str] | None:
        """Return a field's column and type, or `None` for several types or a map."""
        if where.field in ("id", "name", "text"):
            return f"{self.variable}.{where.field}", "STRING"
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # a map is stored as JSON
            return None
        column = column_of(name)
        kinds = {
            table.columns[column] for table in self._tables if column in table.columns
        } or {"NULL"}
        if len(kinds) > 1:
            return None
        return (
            "null" if kinds == {"NULL"} else f"{self.variable}.{quoted(column)}"
        ), kinds.pop()

    def compared(
        self, op: str, operands: Sequence[Any], value: str, kind: str
    ) -> str | None:
        """Write a comparison with a value of a column's type."""
        texts = all(isinstance(operand, str) for operand in operands)
        if any(isinstance(operand, tuple) for operand in operands) or (
            kind == "STRING" and not texts
        ):
            return None  # a text column may hold other values as JSON text
        item, listed = _KINDS.get(kind.removesuffix("[]")), kind.endswith("[]")
        fitting = [
            item(operand)
            for operand in operands
            if item is not None and _fits(operand, item)
        ]
        if op in SIGNS:
            ordered = (
                not listed and item in (int, float, str) and texts == (item is str)
            )
            written = (
                f"{value} {SIGNS[op]} {self.parameter(operands[0])}"
                if ordered
                else "false"
            )
        elif not fitting or (listed and op != "$contains"):
            return "false"
        elif op not in ("$contains", "$icontains"):
            written = f"{value} IN {self.parameter(fitting)}"
        elif listed:
            written = f"list_contains({value}, {self.parameter(fitting[0])})"
        elif item is not str:
            return "false"
        elif fitting == [""]:  # Ladybug finds the empty text in no text
            written = "true"
        elif op == "$icontains":
            written = f"contains(lower({value}), {self.parameter(fitting[0].lower())})"
        else:
            written = f"contains({value}, {self.parameter(fitting[0])})"
        # `coalesce` in a condition returns rows twice (0.22)
        return f"CASE WHEN {value} IS NOT NULL THEN {written} ELSE false END"


def _fits(value: Any, kind: type) -> bool:
    """Whether a condition's value may equal one of a column of this type."""
    if kind in (str, bool):
        return isinstance(value, kind)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (kind is float or value == int(value))


class Graph:
    """The graph behind a session: the nodes in the scope, and their edges."""

    def __init__(
        self, session: Session, catalog: Catalog, scope: Where | None = None
    ) -> None:
        self.session, self.catalog, self.scope = session, catalog, scope
        if scope is not None:
            require_decided(Filter(scope, catalog.nodes.values()).rest)

    def of(
        self, table: Table, variable: str = "n", where: Where | None = None
    ) -> Filter:
        """Return the scope, joined with another condition, on a node of a table."""
        return Filter(both(self.scope, where), [table], variable)

    def node_in_cypher(
        self, variable: str, where: Where | None
    ) -> tuple[str, str, dict[str, Any], Where | None]:
        """Return a node pattern, its condition and parameters, and what remains."""
        node_filter = Filter(where, self.catalog.nodes.values(), variable)
        return (
            f"({node_filter.pattern})",
            node_filter.text,
            node_filter.parameters,
            node_filter.rest,
        )

    def get(self, ids: Iterable[str]) -> dict[str, Node]:
        """Return the existing nodes with some ids."""
        return {row[0]: node(row) for _, row in self._found(ids, NODE_RETURNED)}

    def locate(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the table of each existing node."""
        return {row[0]: name for name, row in self._found(ids, "n.id")}

    def _found(
        self, ids: Iterable[str], returned: str
    ) -> Iterator[tuple[str, list[Any]]]:
        """Look nodes up, and yield the table and the returned row of each.

        The row begins with the id.
        """
        remaining = {*ids}
        for name in self.catalog.nodes:
            rows = self.of_table(name, remaining, returned) if remaining else []
            remaining.difference_update(row[0] for row in rows)
            yield from ((name, row) for row in rows)

    def of_table(
        self, name: str, ids: Iterable[str], returned: str = NODE_RETURNED
    ) -> list[list[Any]]:
        """Return rows of a table's nodes with some ids."""
        table_filter = self.of(self.catalog.nodes[name])
        match = (
            f"UNWIND $ids AS i MATCH (n:{quoted(name)} {{id: i}}) WHERE"
            f" {table_filter.text}"
        )
        return self.session.rows(
            f"{match} RETURN {returned}", {"ids": [*ids], **table_filter.parameters}
        )

    def ids(self, where: Where | None = None) -> list[tuple[str, str]]:
        """Return ids and tables of nodes, as far as the database decides `where`."""
        tables = self.catalog.nodes.values()
        return sorted(
            (row[0], table.name)
            for table in tables
            for row in self.scan(table, "n.id", where)
        )

    def scan(
        self, table: Table, returned: str, where: Where | None = None
    ) -> list[list[Any]]:
        """Return expressions of a table's nodes ``n``, as far as it decides `where`."""
        table_filter = self.of(table, where=where)
        return self.session.rows(
            f"MATCH ({table_filter.pattern}) WHERE {table_filter.text} RETURN"
            f" {returned}",
            table_filter.parameters,
        )

    def neighbors(
        self,
        ids: Iterable[str],
        relations: Collection[str] | None = None,
        where: Where | None = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """Return the edges that touch nodes; the database decides `where`.

        `ids` may map the nodes to their tables, if these are known.
        """
        located = ids if isinstance(ids, Mapping) else self.locate(ids)
        of_anchor: dict[str, dict[EdgeKey, Edge]] = {node_id: {} for node_id in located}
        related = [
            t
            for t in self.catalog.relations.values()
            if relations is None or t.label in relations
        ]
        for name, ids in by_table(located.items()):
            for outgoing in {"both": (True, False), "out": (True,), "in": (False,)}[
                direction
            ]:
                near = 0 if outgoing else 1
                tables = [
                    table
                    for table in related
                    if any(pair[near] == name for pair in table.pairs)
                ]
                far_tables = sorted(
                    {
                        pair[1 - near]
                        for table in tables
                        for pair in table.pairs
                        if pair[near] == name
                    }
                )
                if tables:
                    other = Filter(
                        both(self.scope, where),
                        [self.catalog.nodes[far_table] for far_table in far_tables],
                        "m",
                    )
                    arrow = f"-[r:{'|'.join(quoted(table.name) for table in tables)}]-"
                    pattern = (
                        f"(n){arrow}>({other.pattern})"
                        if outgoing
                        else f"(n)<{arrow}({other.pattern})"
                    )
                    for anchor, touching_edge in self._touching(
                        name, ids, pattern, other, limit, outgoing
                    ):
                        of_anchor[anchor][touching_edge.identity] = touching_edge
        heaviest: dict[EdgeKey, Edge] = {}
        for edges in of_anchor.values():
            heaviest.update(
                sorted(edges.items(), key=lambda item: (-item[1].weight, item[0]))[
                    :limit
                ]
            )
        return [heaviest[key] for key in sorted(heaviest)]

    def _touching(
        self,
        table: str,
        ids: list[str],
        pattern: str,
        other: Filter,
        limit: int | None,
        outgoing: bool,
    ) -> Iterator[tuple[str, Edge]]:
        """Yield the edges at a table's nodes with their anchors; hubs are limited."""
        # not really optional: this makes the database start from the nodes, and not
        # from every edge of the table
        together = (
            f"UNWIND $i AS i MATCH (n:{quoted(table)} {{id: i}}) OPTIONAL MATCH"
            f" {pattern}"
        )
        hubs: list[str] = []
        if limit is not None:
            count = f"{together} WITH i, count(r) AS edges WHERE edges > $most RETURN i"
            hubs = (
                ids
                if len(ids) == 1
                else [
                    row[0] for row in self.session.rows(count, {"i": ids, "most": _HUB})
                ]
            )
        hub_query = (
            f"MATCH (n:{quoted(table)} {{id: $i}}) MATCH {pattern} WHERE {other.text}"
        )
        hub_query += f" RETURN {_EDGE} ORDER BY {_ORDER} LIMIT {limit}"
        rows = [
            row
            for hub in hubs
            for row in self.session.rows(hub_query, {"i": hub, **other.parameters})
        ]
        if ordinary := [node_id for node_id in ids if node_id not in {*hubs}]:
            query = (
                f"{together} WHERE {other.text} WITH n, r, m WHERE r IS NOT NULL RETURN"
                f" {_EDGE}"
            )
            rows += self.session.rows(query, {"i": ordinary, **other.parameters})
        for anchor, end, name, weight, properties in rows:
            source, target = (anchor, end) if outgoing else (end, anchor)
            yield (
                anchor,
                edge(self.catalog.relations[name], source, target, weight, properties),
            )

    def label_tables(self) -> dict[str, LabelTables]:
        """Return the tables with nodes of each label, by its lower-case query name."""
        tables: defaultdict[str, list[str]] = defaultdict(list)
        for table in self.catalog.nodes.values():
            for (labels,) in self.scan(table, "DISTINCT n.labels"):
                for label in labels:
                    if table.name not in tables[label]:
                        tables[label].append(table.name)
        names = self.catalog.names_of(tables)
        return {
            folded(name): LabelTables(label, tuple(tables[label]))
            for label, name in names.items()
            if name is not None
        }

    def count(self) -> tuple[int, int]:
        """Return the number of nodes and the number of edges."""
        nodes = sum(
            self.scan(table, "count(*)")[0][0] for table in self.catalog.nodes.values()
        )
        return nodes, sum(self.triples().values())

    def triples(self) -> Counter[Triple]:
        """Count the edges that join the tables."""
        every = (
            (a, table.name, b)
            for table in self.catalog.relations.values()
            for a, b in table.pairs
        )
        return +Counter(
            {triple: self.joined(triple, "count(*)")[0][0] for triple in every}
        )

    def joined(self, triple: Triple, returned: str) -> list[list[Any]]:
        """Return expressions of the edges ``r`` that join two tables."""
        a, b = (
            self.of(self.catalog.nodes[triple[0]], "a"),
            self.of(self.catalog.nodes[triple[2]], "b"),
        )
        where = (
            "" if self.scope is None else f" WHERE {a.text} AND {b.text}"
        )  # without a condition, the database knows their number
        match = f"MATCH ({a.pattern})-[r:{quoted(triple[1])}]->({b.pattern}){where}"
        return self.session.rows(
            f"{match} RETURN {returned}", {**a.parameters, **b.parameters}
        )


def by_table(located: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Group ids by table."""
    for name, pairs in groupby(
        sorted(located, key=lambda pair: pair[1]), key=lambda pair: pair[1]
    ):
        yield name, [i for i, _ in pairs]


def read_schema(graph: Graph, sample: int) -> GraphSchema:
    """Return the schema of a graph whose scope is `decided`.

    See `LadybugStore.schema`.
    """
    reader = _SchemaReader(graph, sample)
    for table in graph.catalog.nodes.values():
        reader.read_nodes(table)
    for triple, count in graph.triples().items():
        reader.read_edges(triple, count)
    return reader.schema()


class _SchemaReader:
    """A graph's schema, from a sample of the rows of each table."""

    def __init__(self, graph: Graph, sample: int) -> None:
        self.graph = graph
        self.sample = sample
        self.builder = SchemaBuilder()
        self.labels: Counter[str] = Counter()
        #: The tables of which some nodes have other labels besides the table's own.
        self.mixed_tables: set[str] = set()
        self.triples: Counter[Triple] = Counter()
        #: The labels and the relations of which more rows exist than were read.
        self.sampled_labels: set[str] = set()
        self.sampled_relations: set[str] = set()

    def read_nodes(self, table: Table) -> None:
        """Count the labels of a table's nodes and read the properties of some."""
        counts = self.graph.scan(table, "n.labels, count(*)")
        total = sum(count for _, count in counts)
        for labels, count in counts:
            self.labels.update(dict.fromkeys(labels, count))
            if len(labels) > 1:
                self.mixed_tables.add(table.name)
            if total > self.sample:
                self.sampled_labels.update(labels or [""])
        rows = self.graph.scan(table, f"{NODE_RETURNED} LIMIT {self.sample}")
        nodes = [_with_node_columns(node(row)) for row in rows]
        self.builder.observe_nodes(nodes, times=_times(total, len(nodes)))

    def read_edges(self, triple: Triple, count: int) -> None:
        """Count the edges that join two tables and read the properties of some."""
        catalog = self.graph.catalog
        relation = catalog.relations[triple[1]]
        self._count_edges(triple, count)
        if count > self.sample:
            self.sampled_relations.add(relation.label)
        returned = f"r.weight, r.properties LIMIT {self.sample}"
        edges = [
            _with_edge_columns(edge(relation, "", "", weight, properties))
            for weight, properties in self.graph.joined(triple, returned)
        ]
        self.builder.observe_edges(edges, times=_times(count, len(edges)))

    def _count_edges(self, triple: Triple, count: int) -> None:
        """Count the edges that join two tables by every pair of their ends' labels."""
        catalog = self.graph.catalog
        source, name, target = triple
        relation = catalog.relations[name].label
        if self.mixed_tables.isdisjoint((source, target)):
            labels_of_ends = (
                _own_labels(catalog.nodes[source]),
                _own_labels(catalog.nodes[target]),
            )
            counts: Iterable[Any] = [(*labels_of_ends, count)]
        else:
            counts = self.graph.joined(triple, "a.labels, b.labels, count(*)")
        for sources, targets, n_edges in counts:
            for source_label in sources or [""]:
                for target_label in targets or [""]:
                    self.triples[source_label, relation, target_label] += n_edges

    def schema(self) -> GraphSchema:
        """Return the schema of what was read."""
        catalog = self.graph.catalog
        observed = {relation for _, relation, _ in self.triples}
        relations = [
            table for table in catalog.relations.values() if table.label in observed
        ]
        return self.builder.build(
            self.labels,
            self.triples,
            sampled_properties=self.sampled_labels,
            sampled_relation_properties=self.sampled_relations,
            cypher_labels={
                label: name
                for label, name in catalog.names_of(self.labels).items()
                if label and name != label
            },
            cypher_relations={
                table.label: table.name
                for table in relations
                if table.label != table.name
            },
            columns={label: [*NODE_COLUMNS] for label in self.labels if label},
            relation_columns={table.label: [*EDGE_COLUMNS] for table in relations},
        )


def _own_labels(table: Table) -> list[str]:
    """Return the labels of nodes that only have their table's label."""
    return [table.label] if table.label else []


def _times(total: int, n_read: int) -> int:
    """Return how many rows of a table each sampled row represents."""
    return max(1, round(total / max(1, n_read)))


def _with_node_columns(node: Node) -> Node:
    """Return a node with its fields among its properties, as queries read them."""
    return replace(
        node, properties=_columns(node, id=node.id, name=node.name, text=node.text)
    )


def _with_edge_columns(edge: Edge) -> Edge:
    """Return an edge with its weight, if it is not 1, among its properties."""
    weight = edge.weight if edge.weight != 1.0 else None
    return replace(edge, properties=_columns(edge, weight=weight))


def _columns(item: Node | Edge, **fields: Any) -> dict[str, Any]:
    """Return properties by the names that queries have for them, and fields.

    Fields that are empty are left out.
    """
    filled = {name: value for name, value in fields.items() if value}
    return filled | {column_of(name): value for name, value in item.properties.items()}
