"""Nodes that others keep things on: what was written of a node is replaced by what is now, and all else stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphret.stores.neo4j import preparing, writes
from graphret.stores.neo4j.keeping import held_nodes, restored
from graphret.stores.neo4j.layout import INDEXED, JSON, LABELS, NULLS, Layout
from graphret.stores.neo4j.names import quotable, quote
from graphret.stores.neo4j.placing import NOTHING, Held, Said, placed
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.types import Node


@dataclass(slots=True)
class Amended:
    """Nodes ready to be amended, by labels that go: rows of a `Change`, properties that go being null, and the node as
    it was.
    """

    groups: dict[tuple[str, ...], preparing.Change] = field(default_factory=lambda: defaultdict(preparing.Change))


def prepared(
    layout: Layout, changes: Iterable[tuple[Node, Node]], nested: str, writers: Sequence[preparing.Writer]
) -> Amended:
    """Check nodes as they were and are, and lay out the difference; raises as `preparing.prepared` does."""
    pairs = {after.id: (before, after) for before, after in changes}
    fresh = preparing.prepared(layout, [after for _, after in pairs.values()], (), nested, writers)
    amended = Amended()
    rows = {row[0]: (labels, *row[1:]) for labels, of_kind in fresh.nodes.items() for row in of_kind}
    for before, after in pairs.values():
        labels, values, said = rows[layout.id_key(after.id)]
        stale = {LABELS, NULLS, JSON, *INDEXED, *map(layout.place, before.properties)}
        if (before.name, before.text) != (after.name, after.text):
            stale.update(layout.hidden)  # others' embeddings are of the texts that were
        gone = tuple(label for label in before.labels if label not in labels)
        row = [layout.id_key(after.id), {**dict.fromkeys(sorted(stale)), **values}, said, before]
        amended.groups[gone].nodes[labels].append(row)
    return amended


def amend(layout: Layout, amended: Amended) -> Plan[None]:
    """Write what `prepared` laid out."""
    node = f"(n:{quote(layout.label or '')} {{{quote(layout.id or '')}: row[0]}})"
    for gone, laid_out in amended.groups.items():
        removed = "".join(f":{label}" for label in quotable(list(gone)))
        for labels, rows in (yield from writes.renumbered(layout, laid_out)).nodes.items():
            borne = "".join(f":{quote(label)}" for label in labels)
            text = (
                f"UNWIND $rows AS row MERGE {node} SET n += row[1]{f' SET n{borne}' if borne else ''}"
                f"{f' REMOVE n{removed}' if removed else ''}"
            )
            for start in range(0, len(rows), preparing.BATCH):
                batch = rows[start : start + preparing.BATCH]
                held = yield from held_nodes(layout, [row[:3] for row in batch])
                written = [
                    [key, _difference(layout, values, said, before, held.get(key, NOTHING))]
                    for key, values, said, before in batch
                ]
                yield Statement(text, {"rows": written})


def _difference(layout: Layout, values: dict[str, Any], said: Said, before: Node, held: Held) -> dict[str, Any]:
    """Return the properties that are written, those that go being null."""
    fields = (layout.name[0], before.name, said.name, held.name), (layout.text[0], before.text, said.text, held.text)
    for first, was, now, source in fields:
        if was and not now and (source is None or source[0] == first):
            values = {first: None, **values}
    return restored(placed(layout, values, said, held), held.odd)[0]


def as_they_will_be(graph: Graph, changes: Sequence[tuple[Node, Node]]) -> Plan[list[Node]]:
    """Read nodes that will be amended, and return them as they then are, for indexes that follow."""
    held = yield from graph.get([after.id for _, after in changes])
    return [_amended(node, *change) for node, change in zip(held, changes, strict=True)]


def _amended(held: Node | None, before: Node, after: Node) -> Node:
    if held is None:
        return after
    others = {name: value for name, value in held.properties.items() if name not in before.properties}
    labels = [label for label in held.labels if label not in before.labels]
    return replace(
        after, labels=tuple(dict.fromkeys((*after.labels, *labels))), properties={**others, **after.properties}
    )
