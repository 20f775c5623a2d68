"""Links that are known rather than inferred: neighbours in a source, the source itself, and the user's own edges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.expansion.frontier import SAME_SOURCE
from graphret.nodes import NodeTable
from graphret.sage.edge_rows import edge_table, join
from graphret.sage.facts import Facts
from graphret.types import Edge

#: The relation from a chunk or segment to the one behind it.
NEXT = "NEXT"

#: Items of at most this many nodes have all pairs of them linked.
ALL_PAIRS_UP_TO = 16
#: In larger items each node is linked to those at most this many places away.
WINDOW = 8


def structure_edges(nodes: NodeTable, explicit: Iterable[Edge] = (), *, facts: Facts | None = None) -> EdgeTable:
    """Return the structural links of nodes, all of weight 1, and explicit edges as they are given.

    "We also preserve parent/structural links (e.g., chunks from the same source) and retain explicit schema edges"
    (SAGE, section 2.1 B). Nodes are of one source when their property ``source_id`` is the same, in the order of
    ``chunk_index``. All pairs of a source of up to 16 nodes are linked; in larger ones, those up to 8 places apart, so
    that the number of edges is linear in the number of nodes.

    Raises
    ------
    InvalidInput
        When an explicit edge names a node that is not in the table.
    """
    facts = facts or Facts.of(nodes, 0)
    first, second, apart, size = _same_source_pairs(facts)
    linked = (size <= ALL_PAIRS_UP_TO) | (apart <= WINDOW)
    low, high = np.minimum(first, second)[linked], np.maximum(first, second)[linked]
    after = apart == 1
    count = int(after.sum())
    tables = [
        edge_table(len(nodes), first[after], second[after], NEXT, np.ones(count), None, ["{}"] * count),
        edge_table(len(nodes), low, high, SAME_SOURCE, np.ones(len(low)), None, ["{}"] * len(low)),
    ]
    given = list(explicit)
    return join(len(nodes), [*tables, EdgeTable.of(nodes, given)] if given else tables)


def _same_source_pairs(
    facts: Facts,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return nodes of one source less than 16 places apart: first, second, distance, and the size of the source."""
    known = np.flatnonzero(facts.source >= 0)
    ordered = known[np.lexsort((known, facts.order[known], facts.source[known]))]
    source = facts.source[ordered]
    sizes = np.bincount(source) if len(source) else np.zeros(0, np.int64)
    none = np.zeros(0, np.int64)
    found: list[tuple[NDArray[np.int64], ...]] = [(none, none, none, none)]
    for apart in range(1, ALL_PAIRS_UP_TO):
        one = np.flatnonzero(source[:-apart] == source[apart:])
        found.append((ordered[one], ordered[one + apart], np.full(len(one), apart), sizes[source[one]]))
    first, second, apart_, size = (np.concatenate(column) for column in zip(*found, strict=True))
    return first, second, apart_, size
