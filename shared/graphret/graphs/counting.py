"""How many edges of each relation a store has, and how many edges are one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from graphret.stores.base import CypherStore, GraphStore
from graphret.stores.cutting import identity
from graphret.stores.memory import MemoryStore
from graphret.types import Edge


def relation_counts(store: GraphStore) -> dict[str, int]:
    """Return how many edges there are of each relation, by relation.

    A schema cannot tell where nodes have several labels and none is the primary one: an edge then counts under every
    pair of them. A Neo4j keeps the counts, and is asked for them; of a store without Cypher the edges are read.
    """
    if isinstance(store, MemoryStore):
        edges = store.graph.edges
        counts = np.bincount(edges.relation, minlength=len(edges.relations)).tolist()
        return {name: n for name, n in zip(edges.relations, counts, strict=True) if n}
    if not isinstance(store, CypherStore):
        return dict(sorted(Counter(edge.relation for block in store.edges() for edge in block).items()))
    found = store.schema()
    if store.dialect == "neo4j":
        from graphret.stores.neo4j import quote

        asked = {name: f"MATCH ()-[r:{quote(name)}]->() RETURN count(r)" for name in found.relation_names}
        return {name: int(store.query(text).rows[0][0]) for name, text in asked.items()}
    relations = dict.fromkeys(found.relation_names, 0)
    for (_, relation, _), n in found.relations.items():
        relations[relation] += n
    return relations


def key_of(edge: Edge) -> int:
    """Return the hash of what identifies an edge, eight bytes."""
    *ends, source_row, target_row = identity(edge)
    rows = (row if isinstance(row, int) else None for row in (source_row, target_row))  # else refused later
    return hash((*ends, *rows))


class Identities:
    """Counts edges of the same identity as they pass, in eight bytes for each, by the hash of what identifies it."""

    def __init__(self) -> None:
        self._seen = array("q")

    def counted(self, blocks: Iterable[list[Edge]]) -> Iterator[list[Edge]]:
        """Go through blocks of edges, and forget those that passed before."""
        self._seen = array("q")
        for block in blocks:
            self._seen.extend(map(key_of, block))
            yield block

    def merged(self) -> int:
        """How many of the edges that passed are of an identity that passed again."""
        return len(self._seen) - len(np.unique(np.frombuffer(self._seen, dtype=np.int64)))
