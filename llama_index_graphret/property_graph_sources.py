"""How the nodes and relations of a LlamaIndex property graph are read and written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from llama_index.core.graph_stores.simple_labelled import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    LabelledNode,
    LabelledPropertyGraph,
    PropertyGraphStore,
    Relation,
)

from graphret.errors import InvalidInput, StoreError
from llama_index_graphret.labelled import MENTIONS

BLOCK = 1000

#: A node and what the property graph calls it.
Named = tuple[str, LabelledNode]
#: A relation between two of them.
Found = tuple[Named, Relation, Named]


class Source(Protocol):
    """Reads and writes a property graph; nodes come with their ids."""

    checked: bool

    def nodes(self, ids: list[str] | None) -> list[Named]: ...

    def triplets(self, ids: list[str] | None) -> list[Found]: ...

    def write(self, nodes: list[LabelledNode], relations: list[Relation]) -> None: ...

    def delete(self, ids: list[str]) -> None: ...

    def restoring(self) -> AbstractContextManager[None]:
        """Undo what is written inside where an error leaves."""
        ...


class Methods:
    """A property graph through the methods that all have."""

    checked = True

    def __init__(self, store: PropertyGraphStore) -> None:
        self.store = store

    def nodes(self, ids: list[str] | None) -> list[Named]:
        if ids is None:
            return [(node.id, node) for node in self.store.get()]
        return [(node.id, node) for block in _blocks(ids) for node in self.store.get(ids=block)]

    def triplets(self, ids: list[str] | None) -> list[Found]:
        wanted = [node_id for node_id, _ in self.nodes(None)] if ids is None else ids
        found = (triplet for block in _blocks(wanted) for triplet in self.store.get_triplets(ids=block))
        return [((left.id, left), relation, (right.id, right)) for left, relation, right in found]

    def write(self, nodes: list[LabelledNode], relations: list[Relation]) -> None:
        if nodes:
            self.store.upsert_nodes(nodes)
        if relations:
            self.store.upsert_relations(relations)

    def delete(self, ids: list[str]) -> None:
        for block in _blocks(ids):
            self.store.delete(ids=block)

    def restoring(self) -> AbstractContextManager[None]:
        raise StoreError(f"{type(self.store).__name__} cannot undo a write, so that no index can be attached to it")


class Simple:
    """LlamaIndex's property graph in memory, through its ``graph``.

    It knows from which chunk a node or a relation was extracted by a property alone, which is read as an edge here.
    """

    checked = False

    def __init__(self, store: SimplePropertyGraphStore) -> None:
        self.store = store

    @property
    def graph(self) -> LabelledPropertyGraph:
        return self.store.graph

    def nodes(self, ids: list[str] | None) -> list[Named]:
        held = self.graph.nodes
        return list(held.items()) if ids is None else [(i, held[i]) for i in ids if i in held]

    def triplets(self, ids: list[str] | None) -> list[Found]:
        graph, wanted = self.graph, None if ids is None else set(ids)
        held, found = graph.nodes, list[Found]()
        for source, label, target in list(graph.triplets):
            if wanted is not None and source not in wanted and target not in wanted:
                continue
            if source in held and target in held:  # its own delete leaves triplets of nodes that it took away
                relation = graph.relations.get(_simple_key(source, label, target))
                if relation is None or relation.label != label:  # two triplets may have one key
                    relation = Relation(label=label, source_id=source, target_id=target)
                found.append(((source, held[source]), relation, (target, held[target])))
        return found + self._mentions(wanted)

    def _mentions(self, wanted: Collection[str] | None) -> list[Found]:
        graph = self.graph
        held = graph.nodes
        said = [(node.properties.get(TRIPLET_SOURCE_KEY), node_id) for node_id, node in list(held.items())]
        for relation in list(graph.relations.values()):
            ends, chunk = (relation.source_id, relation.target_id), relation.properties.get(TRIPLET_SOURCE_KEY)
            said += [(chunk, end) for end in ends if chunk not in ends]
        return [
            ((chunk, held[chunk]), Relation(label=MENTIONS, source_id=chunk, target_id=end), (end, held[end]))
            for chunk, end in dict.fromkeys(said)
            if chunk in held
            and end in held
            and chunk != end
            and (wanted is None or chunk in wanted or end in wanted)
            and (chunk, MENTIONS, end) not in graph.triplets
        ]

    def write(self, nodes: list[LabelledNode], relations: list[Relation]) -> None:
        graph = self.graph
        fresh = {_simple_key(*_ends(relation)): relation for relation in relations}
        for relation in relations:
            key = _simple_key(*_ends(relation))
            held = graph.relations.get(key)
            known = held if held is not None and _ends(held) in graph.triplets else None
            for other in (fresh[key], known):
                if other is not None and _ends(other) != _ends(relation):
                    raise InvalidInput(
                        f"edge {relation.source_id!r} to {relation.target_id!r}: a SimplePropertyGraphStore cannot tell"
                        f" it from the one between {other.source_id!r} and {other.target_id!r}"
                    )
        graph.nodes.update({node.id: node for node in nodes})
        graph.relations.update(fresh)
        graph.triplets.update(map(_ends, relations))

    def delete(self, ids: list[str]) -> None:
        graph, gone = self.graph, set(ids)
        cut = [one for one in graph.triplets if one[0] in gone or one[2] in gone]
        for source, label, target in cut:
            graph.relations.pop(_simple_key(source, label, target), None)
        graph.triplets.difference_update(cut)
        for node_id in gone:
            graph.nodes.pop(node_id, None)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        graph = self.graph
        before = dict(graph.nodes), dict(graph.relations), set(graph.triplets)
        try:
            yield
        except BaseException:
            graph.nodes, graph.relations, graph.triplets = before
            raise


def _blocks(ids: list[str]) -> Iterator[list[str]]:
    return (ids[i : i + BLOCK] for i in range(0, len(ids), BLOCK))


def _ends(relation: Relation) -> tuple[str, str, str]:
    return relation.source_id, relation.label, relation.target_id


def _simple_key(source: str, label: str, target: str) -> str:
    return f"{source}_{label}_{target}"  # as LabelledPropertyGraph makes it
