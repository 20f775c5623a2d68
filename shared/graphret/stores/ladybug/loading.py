"""A graph of millions into an empty database, by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, Strings
from graphret.stores.ladybug.catalog import Catalog, NodeTable, TableNames
from graphret.stores.ladybug.columns import Columns
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import EDGE_COLUMNS, NODE_COLUMNS, literal, quoted
from graphret.stores.ladybug.values import arrow_array
from graphret.stores.memory import Graph

#: Rows copied in one statement.
_ROWS = 500_000
_DECODED = 10_000
#: Edges, and kinds of them by relation and labels, above which a graph is not loaded in one transaction.
_HEAVY_EDGES, _HEAVY_KINDS = 2_000_000, 64
_EMPTY = len("{}")


def load_graph(
    session: Session, catalog: Catalog, graph: Graph, nested: str, between: Callable[[], None] | None = None
) -> None:
    """Copy a graph into a database without nodes, in the transaction that is open.

    Parameters
    ----------
    between
        Called after the nodes and after each relation: what a transaction wrote stays in memory until it ends.

    Raises
    ------
    InvalidInput
        When a label, a relation or a property has no place in a Ladybug database.
    StoreMismatch
        When a table is not of graphret's layout.
    """
    loader = _Loader(session, catalog, graph, nested)
    loader.load_nodes()
    loader.load_edges(between)


def is_heavy(graph: Graph) -> bool:
    """Whether a graph takes too much memory to be loaded in one transaction: many edges, or many kinds of them."""
    edges = graph.edges
    if len(edges) > _HEAVY_EDGES:
        return True
    labels = _primary(graph.nodes.label_sets)[graph.nodes.labels]
    kinds = (edges.relation.astype(np.int64) * 2**24 + labels[edges.source]) * 2**24 + labels[edges.target]
    return len(np.unique(kinds)) > _HEAVY_KINDS


def _primary(label_sets: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
    """The number of the first label of each tuple: its nodes go into one table."""
    numbers: dict[str, int] = {}
    firsts = (labels[0] if labels else "" for labels in label_sets)
    return np.asarray([numbers.setdefault(label, len(numbers)) for label in firsts], dtype=np.int64)


class _Loader:
    def __init__(self, session: Session, catalog: Catalog, graph: Graph, nested: str) -> None:
        self.session = session
        self.graph = graph
        self.nested = nested
        self.catalog = catalog
        self.ids = _strings(graph.nodes.ids)
        nodes = graph.nodes
        self.names = TableNames(catalog)
        primary = [""] * len(nodes.label_sets)
        for number, first in zip(*np.unique(nodes.labels, return_index=True), strict=True):
            labels = nodes.label_sets[number]
            primary[number] = self.names.of(labels[0] if labels else "", f"node {nodes.ids[int(first)]!r}")
        self.tables = sorted(set(primary))
        code_of = {table: code for code, table in enumerate(self.tables)}
        codes = np.asarray([code_of[table] for table in primary], dtype=np.int64)
        self.table = codes[nodes.labels] if len(nodes) else np.empty(0, np.int64)

    def load_nodes(self) -> None:
        import pyarrow as pa

        nodes = self.graph.nodes
        names, texts = _strings(nodes.names), _strings(nodes.texts)
        label_sets = pa.array([list(labels) for labels in nodes.label_sets], type=pa.list_(pa.string()))
        for code, table in enumerate(self.tables):
            chosen = np.flatnonzero(self.table == code)
            if not len(chosen):
                continue
            known = self.catalog.nodes.get(table)
            columns = self._columns(
                nodes.properties,
                chosen,
                NODE_COLUMNS,
                lambda i: f"node {nodes.ids[i]!r}",
                known,
            )
            kinds = columns.final()
            if known is not None:
                self._run(columns.statements(table))
            else:
                listed = ", ".join(f"{quoted(c)} {kind}" for c, kind in kinds.items())
                self.session.do(f"CREATE NODE TABLE {quoted(table)} ({listed}, PRIMARY KEY (id))")
                self._run(self.names.comment(table))
            for part in _parts(chosen):
                own = [column.take(part).cast(pa.string()) for column in (self.ids, names, texts)]
                labels = label_sets.take(pa.array(nodes.labels[part]))
                arrays = dict(zip(NODE_COLUMNS, [*own, labels], strict=True))
                arrays |= self._properties(nodes.properties, part, columns, kinds, NODE_COLUMNS)
                rows = pa.table(list(arrays.values()), names=[f"c{i}" for i in range(len(arrays))])
                self.session.do(f"COPY {quoted(table)}({', '.join(map(quoted, arrays))}) FROM $rows", {"rows": rows})

    def load_edges(self, between: Callable[[], None] | None) -> None:
        import pyarrow as pa

        edges, ids = self.graph.edges, self.graph.nodes.ids
        n = len(self.tables)
        codes = (edges.relation.astype(np.int64) * n + self.table[edges.source]) * n + self.table[edges.target]
        small = codes.astype(np.uint16) if not len(codes) or codes.max() < 2**16 else codes
        order = np.argsort(small, kind="stable")
        pairs, starts = np.unique(codes[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)][: len(starts)]  # none where there are no edges

        def names(code: int) -> tuple[str, str, str]:
            relation, source, target = code // (n * n), code // n % n, code % n
            return edges.relations[relation], self.tables[source], self.tables[target]

        spans: dict[str, list[tuple[str, str, NDArray[np.int64]]]] = {}
        for code, start, end in zip(pairs.tolist(), starts.tolist(), ends, strict=True):
            relation, source, target = names(code)
            spans.setdefault(relation, []).append((source, target, order[start:end]))

        def what(i: int) -> str:
            return f"edge {ids[int(edges.source[i])]!r} to {ids[int(edges.target[i])]!r}"

        for name, found in spans.items():
            if between is not None:
                between()
            relation = self.names.of(name, what(int(found[0][2][0])), relation=True)
            every = np.concatenate([chosen for *_, chosen in found])
            columns = self._columns(edges.properties, every, EDGE_COLUMNS, what, self.catalog.relations.get(relation))
            kinds = columns.final()
            self._define(relation, columns, kinds, [(source, target) for source, target, _ in found])
            for source, target, chosen in found:
                for part in _parts(chosen):
                    arrays = {
                        "from": self.ids.take(pa.array(edges.source[part])).cast(pa.string()),
                        "to": self.ids.take(pa.array(edges.target[part])).cast(pa.string()),
                        "weight": pa.array(edges.weight[part].astype(np.float64)),
                        "source_row": _rows(edges.source_part[part]),
                        "target_row": _rows(edges.target_part[part]),
                    }
                    listed = [*EDGE_COLUMNS]
                    more = self._properties(edges.properties, part, columns, kinds, EDGE_COLUMNS)
                    rows = pa.table(
                        [*arrays.values(), *more.values()], names=[f"c{i}" for i in range(len(arrays) + len(more))]
                    )
                    self.session.do(
                        f"COPY {quoted(relation)}({', '.join(map(quoted, [*listed, *more]))}) FROM $rows "
                        f"(from={literal(source)}, to={literal(target)})",
                        {"rows": rows},
                    )

    def _define(self, relation: str, columns: Columns, kinds: dict[str, str], pairs: list[tuple[str, str]]) -> None:
        known = self.catalog.relations.get(relation)
        if known is None:
            ends = ", ".join(f"FROM {quoted(a)} TO {quoted(b)}" for a, b in pairs)
            listed = ", ".join(f"{quoted(c)} {kind}" for c, kind in kinds.items())
            self.session.do(f"CREATE REL TABLE {quoted(relation)} ({ends}, {listed})")
            self._run(self.names.comment(relation))
            return
        self._run(columns.statements(relation))
        self._run(
            f"ALTER TABLE {quoted(relation)} ADD FROM {quoted(a)} TO {quoted(b)}"
            for a, b in pairs
            if (a, b) not in known.pairs
        )

    def _run(self, statements: Any) -> None:
        for statement in statements:
            self.session.do(statement)

    def _columns(
        self, records: Records, chosen: NDArray[np.int64], own: dict[str, str], what: Any, known: Any
    ) -> Columns:
        """The columns of a table for the properties of rows; those without any are not decoded."""
        pattern = None
        if known is not None:
            known.require_native(what(int(chosen[0])))
            nodes = isinstance(known, NodeTable)
            pattern = f"(x:{quoted(known.name)})" if nodes else f"()-[x:{quoted(known.name)}]->()"
        columns = Columns(pattern, own if known is None else known.columns, self.nested)
        full = chosen[_lengths(records)[chosen] > _EMPTY]
        for start in range(0, len(full), _DECODED):
            part = full[start : start + _DECODED]
            for i, properties in zip(part.tolist(), records.take(part), strict=True):
                columns.place(self.session, what(i), properties)
        return columns

    def _properties(
        self, records: Records, part: NDArray[np.int64], columns: Columns, kinds: dict[str, str], own: dict[str, str]
    ) -> dict[str, Any]:
        """The columns of the properties of rows."""
        names = [column for column in kinds if column not in own]
        if not names:
            return {}
        held: dict[str, list[Any]] = {name: [None] * len(part) for name in names}
        full = np.flatnonzero(_lengths(records)[part] > _EMPTY)
        for start in range(0, len(full), _DECODED):
            at = full[start : start + _DECODED]
            for i, properties in zip(at.tolist(), records.take(part[at]), strict=True):
                for column, value in columns.place(self.session, "", properties).items():
                    held[column][i] = value
        return {name: arrow_array(values, kinds[name]) for name, values in held.items()}


def _parts(chosen: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(chosen), _ROWS):
        yield chosen[start : start + _ROWS]


def _rows(parts: NDArray[np.int32]) -> Any:
    import pyarrow as pa

    return pa.array(parts.astype(np.int64), mask=parts < 0)


def _strings(column: Strings) -> Any:
    return column.array


def _lengths(records: Records) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    lengths: NDArray[np.int64] = pc.binary_length(records.array).to_numpy()
    return lengths
