"""`NodeTable`: the nodes of a store or an index in columns, sorted by id, never changed once made."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.storage import Bundle, Parts, Records, Strings
from graphret.types import Node, require_id
from graphret.where import Where

_MASKS_KEPT = 32
_VIEWS_KEPT = 8


class NodeTable(Sequence[Node]):
    """Nodes by position, in the order of their ids.

    Since positions follow ids, a stable sort by score breaks ties by id everywhere, and a table to which nodes were
    added equals one that was built with them.

    Parameters
    ----------
    ids, names, texts
        String columns, ``n`` each; `ids` sorted and distinct.
    labels
        For each node the position of its tuple of labels in `label_sets`, ``(n,)``.
    label_sets
        The distinct tuples of labels.
    properties
        The properties of each node, as JSON objects.
    """

    def __init__(
        self,
        ids: Strings,
        names: Strings,
        texts: Strings,
        labels: NDArray[np.int32],
        label_sets: Sequence[tuple[str, ...]],
        properties: Records,
    ) -> None:
        self.ids = ids
        self.names = names
        self.texts = texts
        self.labels = labels
        self.label_sets = list(label_sets)
        self.properties = properties
        self._positions: dict[str, int] | None = None
        self._masks: OrderedDict[Where, NDArray[np.bool_]] = OrderedDict()
        self._restricted: OrderedDict[Where, tuple[NodeTable, NDArray[np.int64]]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> NodeTable:
        """Make a table of nodes in any order.

        Raises
        ------
        InvalidInput
            When an id is not a string or comes twice, or a text, a name or a property is not what it must be.
        """
        ordered = sorted(_checked(nodes), key=lambda node: node.id)
        for one, other in itertools.pairwise(ordered):
            if one.id == other.id:
                raise InvalidInput(f"node {one.id!r}: the id comes twice")
        sets: dict[tuple[str, ...], int] = {}
        codes = [sets.setdefault(tuple(node.labels), len(sets)) for node in ordered]
        return cls(
            Strings.of(node.id for node in ordered),
            Strings.of(node.name for node in ordered),
            Strings.of(node.text for node in ordered),
            np.asarray(codes, dtype=np.int32),
            list(sets),
            Records.of(dict(node.properties) for node in ordered),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        i = int(position)
        labels = self.label_sets[self.labels[i]]
        return Node(self.ids[i], labels, self.names[i], self.texts[i], self.properties[i])

    def at(self, positions: Sequence[int] | NDArray[np.int64]) -> list[Node]:
        """Return the nodes at `positions`, in that order; quicker than one at a time."""
        chosen = np.asarray(positions, dtype=np.int64)
        columns = (column.take(chosen) for column in (self.ids, self.names, self.texts, self.properties))
        labels = (self.label_sets[code] for code in self.labels[chosen].tolist())
        return [
            Node(node_id, own, name, text, properties)
            for (node_id, name, text, properties), own in zip(zip(*columns, strict=True), labels, strict=True)
        ]

    def __iter__(self) -> Iterator[Node]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._index

    @property
    def _index(self) -> dict[str, int]:
        if self._positions is None:
            self._positions = {node_id: i for i, node_id in enumerate(self.ids)}
        return self._positions

    def find(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids, -1 for those that are not here."""
        index = self._index
        return np.asarray([index.get(i, -1) for i in ids], dtype=np.int64)

    def positions(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids; an `InvalidInput` names one that is not here."""
        ids = list(ids)
        found = self.find(ids)
        if (found < 0).any():
            raise InvalidInput(f"node {ids[int(np.argmin(found))]!r}: there is no such node")
        return found

    def take(self, positions: NDArray[np.int64]) -> NodeTable:
        """Return the table of the nodes at `positions`, which must be ascending."""
        chosen = np.asarray(positions, dtype=np.int64)
        return NodeTable(
            Strings.of(self.ids.take(chosen)),
            Strings.of(self.names.take(chosen)),
            Strings.of(self.texts.take(chosen)),
            self.labels[chosen],
            self.label_sets,
            Records.of(self.properties.take(chosen)),
        )

    def changed(self, upserts: Iterable[Node], deletes: Collection[str] = ()) -> NodeTable:
        """Return a table with nodes added or replaced, and others taken away; unknown ids in `deletes` are ignored."""
        fresh = {node.id: node for node in _checked(upserts)}
        gone = set(deletes)
        kept = (node for node in self if node.id not in gone and node.id not in fresh)
        return NodeTable.of([*kept, *fresh.values()])

    def mask(self, where: Where | None, labels: Collection[str] | None = None) -> NDArray[np.bool_] | None:
        """Return which nodes satisfy the condition and bear one of `labels`, ``(n,)``; `None` if all do.

        Raises
        ------
        InvalidInput
            When the condition does not apply to the nodes' values.
        """
        if labels is not None:
            if isinstance(labels, str):
                raise InvalidInput(f"labels: a list of labels is expected, not the string {labels!r}")
            chosen = Where("$in", "label", tuple(labels))
            where = chosen if where is None else chosen & where
        if where is None:
            return None
        with self._lock:
            mask = self._masks.get(where)
            if mask is not None:
                self._masks.move_to_end(where)
                return mask
        mask = self._evaluate(where)
        mask.flags.writeable = False
        with self._lock:
            self._masks[where] = mask
            while len(self._masks) > _MASKS_KEPT:
                self._masks.popitem(last=False)
        return mask

    def _evaluate(self, where: Where) -> NDArray[np.bool_]:
        if where.operator == "$and":
            return np.asarray(np.all([self._evaluate(child) for child in where.children], axis=0))
        if where.operator == "$or":
            return np.asarray(np.any([self._evaluate(child) for child in where.children], axis=0))
        if where.operator == "$not":
            return ~self._evaluate(where.children[0])
        if where.field == "label":  # few distinct sets of labels, many nodes
            fits = [where.matches(Node("-", labels)) for labels in self.label_sets]
            return np.asarray(fits, dtype=bool)[self.labels]
        return np.fromiter((where.matches(node) for node in self), dtype=bool, count=len(self))

    def restricted(self, where: Where | None) -> tuple[NodeTable, NDArray[np.int64]] | None:
        """Return the table of the nodes that satisfy `where` and their positions here; `None` if all do.

        The same condition gives the same table, so that a store and an index cut to it still share one.
        """
        mask = self.mask(where)
        if where is None or mask is None:
            return None
        with self._lock:
            known = self._restricted.get(where)
        if known is None:
            positions = np.flatnonzero(mask)
            known = self.take(positions), positions
            with self._lock:
                known = self._restricted.setdefault(where, known)
                while len(self._restricted) > _VIEWS_KEPT:
                    self._restricted.popitem(last=False)
        return known

    def label_counts(self) -> Counter[str]:
        """How many nodes bear each label."""
        counts: Counter[str] = Counter()
        for labels, n in zip(
            self.label_sets, np.bincount(self.labels, minlength=len(self.label_sets)).tolist(), strict=True
        ):
            counts.update({label: n for label in labels if n})
        return counts

    def parts(self) -> Parts:
        """The table as it is saved."""
        return Parts(
            arrays={"labels": self.labels},
            strings={name: getattr(self, name) for name in ("ids", "names", "texts")},
            records={"properties": self.properties},
            meta={"label_sets": [list(labels) for labels in self.label_sets]},
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> NodeTable:
        """Open a saved table; the columns stay on disk until they are read."""
        return cls(
            bundle.strings("ids"),
            bundle.strings("names"),
            bundle.strings("texts"),
            bundle.array("labels"),
            [tuple(labels) for labels in bundle.meta["label_sets"]],
            bundle.records("properties"),
        )


def _checked(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        require_id(node.id, "node")
        for what, value in (("name", node.name), ("text", node.text)):
            if not isinstance(value, str):
                raise InvalidInput(f"node {node.id!r}: the {what} must be a string, not {type(value).__name__}")
        if isinstance(node.labels, str) or not all(isinstance(label, str) for label in node.labels):
            raise InvalidInput(f"node {node.id!r}: the labels must be a tuple of strings")
        if not isinstance(node.properties, Mapping):
            raise InvalidInput(f"node {node.id!r}: the properties must be a mapping")
        yield node
