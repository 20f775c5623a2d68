"""Loading a whole graph into an empty Ladybug database, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, Strings
from graphret.edges import NO_ROW
from graphret.executors import batched
from graphret.numeric import unique
from graphret.stores.ladybug.database import Session
from graphret.stores.ladybug.tables import PROPERTIES, Catalog, column_of
from graphret.stores.ladybug.writer import (
    Item,
    TablePlan,
    Writer,
    arrow_column,
    arrow_table,
    type_of,
)
from graphret.stores.memory import Graph
from graphret.types import ROW_KEYS, Edge, Node

#: So many nodes, or edges of one pair of tables, are handed over at once.
_ROWS = 500_000
#: From so many rows on a copy is quicker than to create each, as a checkpoint comes
#: anyway.
_COPIED = 100

Positions = NDArray[np.int64]


class Loader:
    """Copies a graph into empty tables: it is read twice, first for the columns.

    Ids, names, texts, labels and weights go from the graph's arrays into those of
    Arrow. Only rows with properties become Python objects, as JSON has to be read.
    """

    def __init__(self, session: Session, catalog: Catalog, graph: Graph) -> None:
        self._session, self._graph = session, graph
        self._writer = Writer(session, catalog)
        self._ids = _arrow_texts(graph.nodes.ids)

    def load(self) -> None:
        """Write it all, each relation in a transaction of its own."""
        graph, node_parts = self._graph, [*self._node_parts()]
        relation_parts = self._edge_parts([plan for plan, _ in node_parts])
        for plan, positions in node_parts:
            self._observe(plan, graph.nodes.properties, positions, self._node)
        for parts in relation_parts:
            for plan, ends, positions in parts:
                plan.pairs[ends] = None
                self._observe(plan, graph.edges.properties, positions, self._edge)
        self._session.do("BEGIN TRANSACTION")
        self._writer.define()
        for plan, positions in node_parts:
            for block in batched(positions, _ROWS):
                rows = self._node_rows(plan, block)
                self._writer.insert_rows(plan, (), rows, _COPIED)
        # one relation at a time: each pair of labels takes 8 MB of memory until a
        # checkpoint
        for parts in relation_parts:
            self._checkpoint()
            for plan, ends, positions in parts:
                for block in batched(positions, _ROWS):
                    rows = self._edge_rows(plan, block)
                    self._writer.insert_rows(plan, ends, rows, _COPIED)
        self._session.do("COMMIT")
        self._session.do("CHECKPOINT")

    def _checkpoint(self) -> None:
        self._session.do("COMMIT")
        self._session.do("CHECKPOINT")
        self._session.do("BEGIN TRANSACTION")

    # -- which rows go to which table

    def _node_parts(self) -> Iterator[tuple[TablePlan, Positions]]:
        """Yield each table with its nodes.

        `_table_of` then has the number of every node's table.
        """
        nodes, numbers = self._graph.nodes, dict[str, int]()
        table_of_set = np.zeros(len(nodes.label_sets), np.int64)
        for code in unique(nodes.labels).tolist():
            labels = nodes.label_sets[code]
            label = labels[0] if labels else ""
            table_of_set[code] = numbers.setdefault(label, len(numbers))
        self._table_of = table_of_set[nodes.labels]
        for number in numbers.values():
            positions = np.flatnonzero(self._table_of == number)
            yield self._writer.plan(self._node(int(positions[0]))), positions

    def _edge_parts(
        self, node_plans: Sequence[TablePlan]
    ) -> list[list[tuple[TablePlan, tuple[str, str], Positions]]]:
        """Return for each relation its pairs of tables, with the edges of each."""
        edges, n_tables = self._graph.edges, len(node_plans)
        if not len(edges):
            return []
        codes = edges.relation.astype(np.int64)
        for end in (edges.source, edges.target):
            codes = codes * n_tables + self._table_of[end]
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order])) + 1
        parts: dict[int, list[tuple[TablePlan, tuple[str, str], Positions]]] = {}
        for positions in np.split(order, starts):
            first = int(positions[0])
            relation, pair = divmod(int(codes[first]), n_tables * n_tables)
            source, target = (node_plans[i].name for i in divmod(pair, n_tables))
            plan = self._writer.plan(self._edge(first))
            parts.setdefault(relation, []).append((plan, (source, target), positions))
        return [*parts.values()]

    def _node(self, position: int) -> Node:
        node: Node = self._graph.nodes.at([position])[0]
        return node

    def _edge(self, position: int) -> Edge:
        nodes, edges = self._graph.nodes, self._graph.edges
        return edges.at(np.array([position]), nodes.ids)[0]

    # -- the columns that are needed

    def _observe(
        self,
        plan: TablePlan,
        records: Records,
        positions: Positions,
        item_at: Callable[[int], Item],
    ) -> None:
        """Add the columns for the properties of nodes or of edges."""
        for block in batched(positions[_filled(records, positions)], _ROWS):
            for name, values in _by_name(records.take(block)).items():
                for kind, place in _kinds(values).items():
                    plan.add_column(name, kind, item_at(int(block[place])))

    # -- rows as Arrow tables

    def _node_rows(self, plan: TablePlan, positions: Positions) -> Any:
        import pyarrow as pa

        nodes = self._graph.nodes
        label_sets = pa.array([*map(list, nodes.label_sets)], pa.list_(pa.string()))
        columns = {
            "id": self._ids.take(pa.array(positions)),
            "name": _arrow_texts(nodes.names, positions),
            "text": _arrow_texts(nodes.texts, positions),
            "labels": label_sets.take(pa.array(nodes.labels[positions])),
        }
        filled = _filled(nodes.properties, positions)
        if filled.any():
            texts = _arrow_texts(nodes.properties, positions)
            columns[PROPERTIES] = _null_where(~filled, texts)
            columns |= _property_columns(plan, nodes.properties.take(positions))
        return arrow_table(plan.types, columns, len(positions))

    def _edge_rows(self, plan: TablePlan, positions: Positions) -> Any:
        import pyarrow as pa

        edges = self._graph.edges
        columns = {
            "from": self._ids.take(pa.array(edges.source[positions])),
            "to": self._ids.take(pa.array(edges.target[positions])),
            "weight": pa.array(edges.weight[positions].astype(np.float64)),
        }
        rows = [part[positions] for part in (edges.source_row, edges.target_row)]
        filled = _filled(edges.properties, positions)
        has_row = (rows[0] != NO_ROW) | (rows[1] != NO_ROW)
        if has_row.any():
            for key, part in zip(ROW_KEYS, rows, strict=True):
                columns[key] = pa.array(part.astype(np.int64), mask=part == NO_ROW)
        if filled.any() or has_row.any():
            texts = edges.properties.array.take(positions).tolist()
            joined = pa.array(_with_rows(texts, rows), pa.large_string())
            columns[PROPERTIES] = _null_where(~(filled | has_row), joined)
        if filled.any():
            columns |= _property_columns(plan, edges.properties.take(positions))
        kinds = {"from": "STRING", "to": "STRING"} | plan.types
        return arrow_table(kinds, columns, len(positions))


def _filled(records: Records, positions: Positions) -> NDArray[np.bool_]:
    """Tell which of the records at positions are not empty, without reading them."""
    return records.array.take(positions).lengths > len("{}")


def _by_name(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each property, `None` where a record has it not."""
    names = dict.fromkeys(chain.from_iterable(records))
    return {name: [record.get(name) for record in records] for name in names}


def _kinds(values: Sequence[Any]) -> dict[str, int]:
    """Return the types of values, each with the place of the first."""
    places: dict[str, int] = {}
    for place, value in enumerate(values):
        if value is not None:
            places.setdefault(type_of(value), place)
    return places


def _property_columns(
    plan: TablePlan, records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the columns of the properties, as arrays of their types."""
    columns = {}
    for name, values in _by_name(records).items():
        if (column := column_of(name)) in plan.types:  # some value is not None
            stored = [plan.as_stored(column, value) for value in values]
            columns[column] = arrow_column(column, plan.types[column], stored)
    return columns


def _with_rows(texts: Sequence[str], rows: Sequence[NDArray[np.int32]]) -> list[str]:
    """Add to JSON objects the rows of tables that edges are about, where they are."""
    for key, part in zip(ROW_KEYS, rows, strict=True):
        added = ["" if row == NO_ROW else f'"{key}":{row}' for row in part.tolist()]
        texts = [
            text if not row else f"{text[:-1]}{',' if len(text) > 2 else ''}{row}}}"
            for text, row in zip(texts, added, strict=True)
        ]
    return [*texts]


def _arrow_texts(column: Strings | Records, positions: Positions | None = None) -> Any:
    """Return texts as an Arrow array on the same bytes."""
    import pyarrow as pa

    array = column.array if positions is None else column.array.take(positions)
    data, offsets = map(pa.py_buffer, array.pack())
    return pa.LargeStringArray.from_buffers(len(array), offsets, data)


def _null_where(mask: NDArray[np.bool_], array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)
