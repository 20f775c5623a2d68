"""`NodeTable`: the nodes of a store or an index in columns, sorted by id, never changed once made."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret._checked import (
    checked_nodes,
    label_set,
    property_column,
    refuse_rows_twice,
    refuse_twice,
    text_column,
)
from graphret._matching import matching, reads, with_labels
from graphret.columns import SortedIds, all_empty, assemble, fewest_sets, no_records, no_strings, to_records, to_strings
from graphret.errors import InvalidInput
from graphret.storage import Bundle, Parts, Records, Strings
from graphret.types import Node, Trace, require_id
from graphret.where import Where, both

_MASKS_KEPT = 32
_VIEWS_KEPT = 8
_BLOCK = 1 << 14
_READ_SHARE = 20


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

    `restriction` is the condition of which `restricted` made the table; `None` where it was not so made.
    """

    restriction: Where | None = None

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
        self._sorted = SortedIds(ids)
        self._masks: OrderedDict[Where, NDArray[np.bool_]] = OrderedDict()
        self._restricted: OrderedDict[Where, tuple[NodeTable, NDArray[np.int64]]] = OrderedDict()
        self._lock = threading.Lock()
        self._came: tuple[weakref.ref[NodeTable], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> NodeTable:
        """Make a table of nodes in any order.

        Raises
        ------
        InvalidInput
            When an id is not a string or comes twice, or a text, a name or a property is not what it must be.
        """
        ordered = sorted(checked_nodes(nodes), key=lambda node: node.id)
        sets: dict[tuple[str, ...], int] = {}
        codes = [sets.setdefault(tuple(node.labels), len(sets)) for node in ordered]
        ids = [node.id for node in ordered]
        refuse_twice(ids)
        return cls(
            text_column("id", ids, ids),
            text_column("name", ids, [node.name for node in ordered]),
            text_column("text", ids, [node.text for node in ordered]),
            *fewest_sets(np.asarray(codes, dtype=np.int32), list(sets)),
            property_column(ordered, [node.properties for node in ordered]),
        )

    @classmethod
    def build(
        cls,
        ids: Strings | Sequence[str],
        names: Strings | Sequence[str] | None = None,
        texts: Strings | Sequence[str] | None = None,
        labels: NDArray[Any] | None = None,
        label_sets: Sequence[tuple[str, ...]] = (("Node",),),
        properties: Records | Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[NodeTable, NDArray[np.int64]]:
        """Make a table of columns in any order, without an object for each node.

        Parameters
        ----------
        ids, names, texts, properties
            ``n`` each; names and texts are empty and properties none where they are left out.
        labels
            For each node the position of its tuple of labels in `label_sets`, ``(n,)``; the first where left out.

        Returns
        -------
        table
            The nodes by id.
        positions
            Where each of the given nodes is in the table, ``(n,)``.

        Raises
        ------
        InvalidInput
            When columns differ in length, or an id is empty, no string or comes twice; names the row.
        """
        listed = list(ids)
        n = len(listed)
        if not all(isinstance(node_id, str) and node_id for node_id in listed):
            row = next(i for i, node_id in enumerate(listed) if not isinstance(node_id, str) or not node_id)
            require_id(listed[row], f"ids, row {row}")
        codes = np.zeros(n, dtype=np.int32) if labels is None else np.asarray(labels, dtype=np.int32)
        if len(codes) != n or (n and not 0 <= codes.min() <= codes.max() < len(label_sets)):
            raise InvalidInput(f"labels: a position in label_sets is expected for each of {n:,} nodes")
        sets = [label_set(labels) for labels in label_sets]
        columns = [
            to_strings("ids", ids),
            no_strings(n) if names is None else to_strings("names", names),
            no_strings(n) if texts is None else to_strings("texts", texts),
        ]
        records = no_records(n) if properties is None else to_records("properties", properties)
        for what, column in (("names", columns[1]), ("texts", columns[2]), ("properties", records)):
            if len(column) != n:
                raise InvalidInput(f"{what}: {n:,} rows are expected, not {len(column):,}")
        order = np.arange(n, dtype=np.int64)
        if any(one >= other for one, other in pairwise(listed)):
            order = np.asarray(sorted(range(n), key=listed.__getitem__), dtype=np.int64)
            refuse_rows_twice(listed, order)
            columns = [assemble([column], order) for column in columns]
            records = assemble([records], order)
        positions = np.empty(n, dtype=np.int64)
        positions[order] = np.arange(n)
        return cls(columns[0], columns[1], columns[2], *fewest_sets(codes[order], sets), records), positions

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
        for start in range(0, len(self), _BLOCK):
            yield from self.at(np.arange(start, min(start + _BLOCK, len(self))))

    def __contains__(self, node_id: object) -> bool:
        return bool(self._sorted.find([node_id])[0] >= 0)  # type: ignore[list-item]

    def find(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids, -1 for those that are not here."""
        return self._sorted.find(ids if isinstance(ids, Sequence) else list(ids))

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
            assemble([self.ids], chosen),
            assemble([self.names], chosen),
            assemble([self.texts], chosen),
            *fewest_sets(self.labels[chosen], self.label_sets),
            assemble([self.properties], chosen),
        )

    def changed(self, upserts: Iterable[Node], deletes: Collection[str] = ()) -> NodeTable:
        """Return a table with nodes added or replaced, and others taken away; unknown ids in `deletes` are ignored."""
        fresh = {node.id: node for node in checked_nodes(upserts)}
        return self.merged(NodeTable.of(fresh.values()), deletes)[0]

    def merged(self, fresh: NodeTable, deletes: Collection[str] = ()) -> tuple[NodeTable, NDArray[np.int64]]:
        """Return a table in which the nodes of another take the place of those of the same id, and some are gone.

        Parameters
        ----------
        deletes
            Ids of nodes of this table, not of `fresh`; unknown ones are ignored.

        Returns
        -------
        table
            What a table built of the same nodes would be.
        moved
            Where each node of this table is in the new one, -1 if it is gone, ``(n,)``.
        """
        n = len(self)
        replaced, gone = self.find(fresh.ids), self.find(list(deletes))
        keep = np.ones(n, dtype=bool)
        keep[gone[gone >= 0]] = False
        keep[replaced[replaced >= 0]] = False
        kept = np.flatnonzero(keep)
        at = np.searchsorted(kept, self._sorted.places(fresh.ids))
        order = np.insert(kept, at, n + np.arange(len(fresh)))
        moved = np.full(n, -1, dtype=np.int64)
        old = order < n
        moved[order[old]] = np.flatnonzero(old)
        moved[replaced[replaced >= 0]] = np.flatnonzero(~old)[replaced >= 0]
        sets = list(dict.fromkeys([*self.label_sets, *fresh.label_sets]))
        code = {labels: i for i, labels in enumerate(sets)}
        theirs = np.asarray([code[labels] for labels in fresh.label_sets], dtype=np.int32)[fresh.labels]
        table = NodeTable(
            assemble([self.ids, fresh.ids], order),
            assemble([self.names, fresh.names], order),
            assemble([self.texts, fresh.texts], order),
            *fewest_sets(np.concatenate([self.labels, theirs])[order], sets),
            assemble([self.properties, fresh.properties], order),
        )
        table._came, table.restriction = (weakref.ref(self), moved), self.restriction
        return table, moved

    def relabelled(self, positions: Sequence[int], labels: Sequence[tuple[str, ...]]) -> NodeTable:
        """Return a table in which the nodes at `positions` bear other labels; ids are found as they are here."""
        sets = list(dict.fromkeys([*self.label_sets, *labels]))
        codes = self.labels.copy()
        codes[list(positions)] = [sets.index(own) for own in labels]
        table = NodeTable(self.ids, self.names, self.texts, *fewest_sets(codes, sets), self.properties)
        table._sorted, table.restriction = self._sorted, self.restriction
        return table

    def places_in(self, before: NodeTable, fresh: Iterable[str] = ()) -> NDArray[np.int64]:
        """Return where each node of this table is in another, -1 if it is not there or among `fresh`, ``(n,)``.

        No id is read but those in `fresh` where this table was made of the other by `merged` or `changed`.
        """
        came = self._came
        if before is self:
            places = np.arange(len(self))
        elif came is not None and came[0]() is before:
            places = np.full(len(self), -1, dtype=np.int64)
            kept = np.flatnonzero(came[1] >= 0)
            places[came[1][kept]] = kept
        else:
            places = before.find(self.ids)
        again = self.find(list(fresh))
        places[again[again >= 0]] = -1
        return places

    def mask(self, where: Where | None, labels: Collection[str] | None = None) -> NDArray[np.bool_] | None:
        """Return which nodes satisfy the condition and bear one of `labels`, ``(n,)``; `None` if all do.

        Raises
        ------
        InvalidInput
            When the condition does not apply to the nodes' values.
        """
        where = with_labels(where, labels)
        if where is None:
            return None
        mask = self._known_mask(where)
        if mask is None:
            mask = self._evaluate(where, np.arange(len(self)))
            mask.flags.writeable = False
            with self._lock:
                self._masks[where] = mask
                while len(self._masks) > _MASKS_KEPT:
                    self._masks.popitem(last=False)
        return mask

    def warn_of_unknown(self, where: Where | None, trace: Trace) -> None:
        """Warn of properties that a condition asks for and no node has; found out once for a table, as masks are."""
        for child in where.children if where else ():
            self.warn_of_unknown(child, trace)
        if not where or where.operator == "$exists" or where.field in ("", "id", "name", "text", "label"):
            return
        there = self.mask(Where("$exists", where.field, True))
        if len(self) and there is not None and not there.any():
            trace.note("unknown_key", key=where.field)
            warnings.warn(f"where: no node has {where.field!r}; is it misspelt?", stacklevel=2)

    def fits(
        self, positions: NDArray[Any], where: Where | None, labels: Collection[str] | None = None
    ) -> NDArray[np.bool_] | None:
        """Return which of the nodes at `positions` satisfy the condition and bear one of `labels`; `None` if all do.

        Reads only those nodes where they are few.
        """
        where = with_labels(where, labels)
        if where is None:
            return None
        mask = self._known_mask(where)
        if mask is None and len(positions) * _READ_SHARE < len(self):
            if not reads(where):
                return self._evaluate(where, positions)
            distinct, inverse = np.unique(positions, return_inverse=True)
            return np.asarray(self._evaluate(where, distinct)[inverse])
        mask = self.mask(where) if mask is None else mask
        return None if mask is None else np.asarray(mask[positions])

    def _known_mask(self, where: Where) -> NDArray[np.bool_] | None:
        with self._lock:
            mask = self._masks.get(where)
            if mask is not None:
                self._masks.move_to_end(where)
            return mask

    def _evaluate(self, where: Where, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Evaluate a condition on the nodes at positions, reading no column that it does not ask for."""
        if where.operator in ("$and", "$or"):
            conjunction = where.operator == "$and"
            mask = np.full(len(at), conjunction)
            for child in sorted(where.children, key=reads):
                open_ = np.flatnonzero(mask if conjunction else ~mask)
                mask[open_] = self._evaluate(child, at[open_])
            return mask
        if where.operator == "$not":
            return ~self._evaluate(where.children[0], at)
        if where.field == "label":  # few distinct sets of labels, many nodes
            fits = np.asarray([where.matches(Node("-", labels)) for labels in self.label_sets], dtype=bool)
            return np.asarray(fits[self.labels[at]])
        if where.field in ("id", "name", "text"):
            return matching(getattr(self, f"{where.field}s"), at, where)
        if all_empty(self.properties):
            return np.full(len(at), where.compares(False, None))
        return matching(self.properties, at, where)

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
            known[0].restriction = both(self.restriction, where)
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
