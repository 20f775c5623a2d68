"""How many edges of each relation a store has."""

from __future__ import annotations

from collections import Counter

import numpy as np

from graphret.stores.base import CypherStore, GraphStore
from graphret.stores.memory import MemoryStore


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
