"""The edges of one node in columns, of which a hub's are read many times as fast as one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.stores.incidence import Part
from graphret.stores.ladybug.catalog import Catalog, NodeTable, RelationTable
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.keys import by_key, keys_of
from graphret.stores.ladybug.names import quoted
from graphret.stores.ladybug.records import EdgeReader, NodeReader, id_expression, node_id
from graphret.stores.ladybug.sampling import Condition


@dataclass(frozen=True, slots=True)
class Spokes:
    """Reads the edges of a node.

    The node is found by its key alone and each relation is read by itself: the database then goes through the edges of
    that node, and through nothing else.

    Parameters
    ----------
    table, node
        The table of the node, and its id.
    conditions
        Writes for a table of neighbours the condition on what may be read of it.
    """

    session: Session
    catalog: Catalog
    table: NodeTable
    node: str
    conditions: Callable[[NodeTable], Iterator[Condition]]

    def degree(self) -> int:
        """How many edges there are, whatever the neighbours; a loop counts twice."""
        given = {"i": self._key}
        return sum(self.session.rows(f"{edges} RETURN count(*)", given)[0][0] for *_, edges in self._edges())

    def parts(self) -> Iterator[Part]:
        """Go through the edges by relation, direction and table of the neighbours."""
        for relation, outgoing, far, edges in self._edges():
            reader = NodeReader(far)
            own = id_expression(far, "m")
            columns = [own, *(["m.labels"] if far.native else []), EdgeReader([relation]).weight]
            for condition in self.conditions(far):
                # as one case, or the database may decide its parts for every node of the table
                where = [] if condition.text == "true" else [f"CASE WHEN {condition.text} THEN true ELSE false END"]
                if not outgoing and far is self.table:
                    where.append("id(n) <> id(m)")  # a loop has been read
                clause = f"WHERE {' AND '.join(where)} " if where else ""
                found = self.session.table(
                    f"{edges} {clause}RETURN {', '.join(columns)}", {"i": self._key, **condition.parameters}
                )
                ids, *labels, weights = (column.combine_chunks() for column in found.columns)
                text = far.id_column is not None and far.columns[far.id_column] == "STRING" and not ids.null_count
                codes, sets = (
                    coded(labels[0], reader.labels) if labels else (np.zeros(len(ids), np.int32), [reader.labels(None)])
                )
                listed = ids if text else [node_id(value) for value in ids.to_pylist()]
                yield Part(relation.relation, outgoing, listed, codes, sets, np.asarray(weights, dtype=np.float64))

    @property
    def _key(self) -> Any:
        return keys_of(self.table, [self.node])[0]

    def _edges(self) -> Iterator[tuple[RelationTable, bool, NodeTable, str]]:
        key, condition = by_key(self.table, "$i")
        by_place = "" if key else f"MATCH (n:{quoted(self.table.name)}) WHERE {condition} "
        for relation, outgoing, far, edges in self.patterns(key):
            yield relation, outgoing, far, f"{by_place}MATCH {edges}"

    def patterns(self, key: str = "") -> Iterator[tuple[RelationTable, bool, NodeTable, str]]:
        """Go through the patterns of the edges, of which each is for one relation, direction and table."""
        for relation in self.catalog.relations.values():
            for end, outgoing in ((0, True), (1, False)):
                for far in sorted({pair[1 - end] for pair in relation.pairs if pair[end] == self.table.name}):
                    edge = f"-[r:{quoted(relation.name)}]-"
                    arrow = f"{edge}>" if outgoing else f"<{edge}"
                    yield (
                        relation,
                        outgoing,
                        self.catalog.nodes[far],
                        (f"(n:{quoted(self.table.name)} {key}){arrow}(m:{quoted(far)})"),
                    )


def coded(
    column: Any, named: Callable[[Sequence[str] | None], tuple[str, ...]]
) -> tuple[NDArray[np.int32], list[tuple[str, ...]]]:
    """Return the code of each list of labels in an Arrow column, and the tuple of labels of each code."""
    lengths = np.asarray(column.value_lengths().fill_null(-1))
    flat = column.drop_null().flatten().dictionary_encode()
    words, values = flat.dictionary.to_pylist(), np.asarray(flat.indices)
    starts = np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
    codes = np.zeros(len(lengths), dtype=np.int32)
    sets: list[tuple[str, ...]] = []
    for length in np.unique(lengths).tolist():
        at = np.flatnonzero(lengths == length)
        rows = values[starts[at][:, None] + np.arange(max(length, 0))]
        inverse = np.zeros(len(at), dtype=np.int64)
        for column_of_rows in rows.T:
            inverse = np.unique(inverse * len(words) + column_of_rows, return_inverse=True)[1]
        first = np.unique(inverse, return_index=True)[1]
        codes[at] = len(sets) + inverse
        sets += [named(None if length < 0 else [words[i] for i in row]) for row in rows[first].tolist()]
    return codes, sets


def hubs(session: Session, catalog: Catalog, above: int) -> list[tuple[str, int]]:
    """Return the nodes with more than `above` edges, the most first, and how many; a loop counts twice."""
    found: dict[str, int] = {}
    for table in catalog.nodes.values():
        counts: Counter[Any] = Counter()
        patterns = [*Spokes(session, catalog, table, "", lambda _: iter(())).patterns()]
        least = above // max(len(patterns), 1)  # a node with more has more than this by one of them
        for *_, edges in patterns:
            query = f"MATCH {edges} WITH id(n) AS own, count(*) AS edges WHERE edges > $least RETURN offset(own), edges"
            counts.update(dict(session.rows(query, {"least": least})))
        wanted = f"MATCH (n:{quoted(table.name)}) WHERE offset(id(n)) = $i RETURN {id_expression(table, 'n')}"
        for offset in [at for at, n in counts.items() if n > least]:
            found[node_id(session.rows(wanted, {"i": offset})[0][0])] = counts[offset]
    return sorted(((node, n) for node, n in found.items() if n > above), key=lambda one: (-one[1], one[0]))
