"""The graph behind LlamaIndex's `Neo4jPropertyGraphStore`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphret.stores.neo4j import FOREIGN, LLAMA_INDEX, Layout, Neo4jStore

_COUNTS = "MATCH (n) RETURN count(n) AS n UNION ALL MATCH (n:`__Node__`) RETURN count(n) AS n"
_NODE = "__Node__"


def over_neo4j(
    store: Any,
    *,
    id_property: str | None = None,
    name_property: str | None = None,
    text_property: str | None = None,
    label: str | None = None,
    **options: Any,
) -> Neo4jStore:
    """Return a `Neo4jStore` on the driver of a `Neo4jPropertyGraphStore`; see `from_property_graph_store`.

    Nodes that LlamaIndex wrote go by its ids, and nodes that are written into an empty database are such that it reads
    them. Any other graph is read as `Neo4jStore` finds it.
    """
    options = {"database": getattr(store, "_database", None), **options}
    layout: Layout | str | None = options.pop("layout", None)
    if layout is None:
        probe = Neo4jStore.from_driver(store.client, database=options["database"], layout=FOREIGN)
        everything, llama = (row[0] for row in probe.query(_COUNTS).rows)
        given = any(one is not None for one in (id_property, name_property, text_property))
        fresh = not everything and not given and label is None
        if llama or fresh or given or label is not None:
            base = LLAMA_INDEX if llama or fresh or label == _NODE else FOREIGN
            layout = replace(
                base,
                id=id_property or base.id,
                name=(name_property, *base.name) if name_property else base.name,
                text=(text_property, *base.text) if text_property else base.text,
                label=label or (_NODE if fresh or (llama and llama == everything) else None),
                lossless=base.lossless and not given,
            )
    return Neo4jStore.from_driver(store.client, layout=layout or "auto", **options)
