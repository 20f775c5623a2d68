"""Links that are known, not inferred: neighbours in a source, and the source itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.edges import EdgeTable
from graphret.expansion.frontier import SAME_SOURCE
from graphret.numeric import flags
from graphret.sage.facts import NO_PLACE, NodeFacts
from graphret.sage.relinked import Relinked

#: The relation from a chunk or segment to the one behind it.
NEXT = "NEXT"

#: Items of at most this many nodes have all pairs of them linked.
ALL_PAIRS_UP_TO = 16
#: In larger items each node is linked to those at most this many places away.
WINDOW = 8


def structure_links(change: Change, before: NodeFacts, facts: NodeFacts) -> Relinked:
    """Return the structural links that a change makes anew: `NEXT` and `SAME_SOURCE`.

    They all have weight 1, and are those of the sources that the change touches.

    "We also preserve parent/structural links (e.g., chunks from the same source)"
    (SAGE, section 2.1 B). Nodes are of one source when their property ``source_id`` is
    the same, in the order of ``chunk_index``. All pairs of a source of up to 16 nodes
    are linked; in larger ones, those up to 8 places apart, so that the number of edges
    is linear in the number of nodes.
    """
    touched = np.append(facts.source[change.fresh], before.source[change.left])
    is_member = flags(touched, len(facts.strings))[facts.source]
    edges = _edges_among(np.flatnonzero(is_member), facts)
    return Relinked((NEXT, SAME_SOURCE), is_member, edges)


def _edges_among(nodes: NDArray[np.int64], facts: NodeFacts) -> EdgeTable:
    """Return the structural links among some nodes."""
    place = facts.place[nodes]
    place = np.where(place == NO_PLACE, nodes, place)
    order = np.lexsort((nodes, place, facts.source[nodes]))
    ordered = nodes[order]
    source = facts.source[ordered]
    small = np.bincount(source, minlength=1)[source] <= ALL_PAIRS_UP_TO
    near = [np.zeros((2, 0), np.int64)]
    for apart in range(1, ALL_PAIRS_UP_TO):
        first = np.flatnonzero(
            (source[:-apart] == source[apart:]) & (small[:-apart] | (apart <= WINDOW))
        )
        near.append(np.stack([ordered[first], ordered[first + apart]]))
    following, linked = near[1], np.sort(np.concatenate(near, axis=1), axis=0)
    low, high = np.concatenate([following, linked], axis=1)
    relation = np.repeat([0, 1], [following.shape[1], linked.shape[1]])
    return EdgeTable.build(
        len(facts.source), low, high, relation, [NEXT, SAME_SOURCE], np.ones(len(low))
    )
