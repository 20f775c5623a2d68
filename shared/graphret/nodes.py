"""`NodeTable`: the nodes of a store or an index in columns, sorted by id, never changed
once made.
"""

from __future__ import annotations

import json
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, Strings, TextArray, to_json
from graphret.errors import InvalidInput
from graphret.splice import Splice, spliced_codes
from graphret.storage import Bundle, Parts
from graphret.trace import Trace
from graphret.types import Node
from graphret.validation import checked_nodes, property_column
from graphret.where import Where, both, lookup

T = TypeVar("T")

_CONDITIONS_KEPT = 16
_BLOCK = 1 << 14
_READ_SHARE = 20
_STRIDE = 16
_COLUMNS = ("ids", "names", "texts", "properties")
_OWN_FIELDS = ("id", "name", "text")


class NodeTable(Sequence[Node]):
    """Nodes by position, in the order of their ids.

    Since positions follow ids, a stable sort by score breaks ties by id everywhere, and
    a table to which nodes were added equals one that was built with them.

    It has string columns of ids (sorted and distinct), names and texts, for each node
    the position of its tuple of labels in the distinct `label_sets`, and its properties
    as a JSON object, ``n`` each. `restriction` is the condition of which `restricted`
    made the table; `None` where it was not so made.
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
        self.ids, self.names, self.texts = ids, names, texts
        self.labels = labels
        self.label_sets = list(label_sets)
        self.properties = properties
        self._position: dict[str, int] = {}
        self._asked = 0
        self._masks: dict[Where, NDArray[np.bool_]] = {}
        self._restricted: dict[Where, tuple[NodeTable, NDArray[np.int64]]] = {}

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> NodeTable:
        """Make a table of nodes in any order; an `InvalidInput` names one that is
        malformed or comes twice.
        """
        listed = list(checked_nodes(nodes))
        sets: dict[tuple[str, ...], int] = {}
        codes = [sets.setdefault(tuple(node.labels), len(sets)) for node in listed]
        ids, names, texts = (
            Strings.of([getattr(node, name) for node in listed]) for name in _OWN_FIELDS
        )
        properties = property_column(listed, [node.properties for node in listed])
        table = cls(
            ids, names, texts, np.asarray(codes, dtype=np.int32), list(sets), properties
        )
        return table.take(_order(ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return self.at(np.arange(len(self))[position])
        return self.at([range(len(self))[position]])[0]

    def at(self, positions: Sequence[int] | NDArray[np.int64]) -> list[Node]:
        """Return the nodes at `positions`, in that order; quicker than one at a
        time.
        """
        chosen = np.asarray(positions, dtype=np.int64)
        labels = [self.label_sets[code] for code in self.labels[chosen].tolist()]
        columns = (
            column.take(chosen) for column in (self.names, self.texts, self.properties)
        )
        return [*map(Node, self.ids.take(chosen), labels, *columns)]

    def __iter__(self) -> Iterator[Node]:
        for start in range(0, len(self), _BLOCK):
            yield from self.at(np.arange(start, min(start + _BLOCK, len(self))))

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and bool(self.find([node_id])[0] >= 0)

    def find(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids, -1 for those that are not here.

        They are searched where they lie, on disk or in memory, after a look at every
        16th; once many were asked for beside the length of the table, they are looked
        up in a dictionary instead.
        """
        wanted = ids if isinstance(ids, Sequence) else list(ids)
        self._asked += len(wanted)
        if not self._position and self._asked * _STRIDE >= len(self):
            self._position = dict(zip(self.ids, range(len(self)), strict=True))
        if known := self._position:
            return np.fromiter(
                (known.get(one, -1) for one in wanted), np.int64, len(wanted)
            )
        places = self._places(wanted)
        there = (
            place < len(self) and self.ids[place] == one
            for place, one in zip(places, wanted, strict=True)
        )
        return np.where(np.fromiter(there, bool, len(wanted)), places, -1)

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for those that are not here."""
        found = self.find(ids)
        there = iter(self.at(found[found >= 0]))
        return [next(there) if i >= 0 else None for i in found.tolist()]

    def _places(self, wanted: Sequence[str]) -> NDArray[np.int64]:
        """Where each id is or would have to be put in, ``(w,)``."""
        ends = [bisect_left(self._sample, one) * _STRIDE for one in wanted]
        near = (
            (max(0, end - _STRIDE), end, one)
            for end, one in zip(ends, wanted, strict=True)
        )
        found = (
            start + bisect_left(self.ids[start:end].tolist(), one)
            for start, end, one in near
        )
        return np.fromiter(found, np.int64, len(wanted))

    @cached_property
    def _sample(self) -> list[str]:
        return self.ids[::_STRIDE].tolist()

    def positions(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids; an `InvalidInput` names one that is not here."""
        ids = list(ids)
        found = self.find(ids)
        if (found < 0).any():
            raise InvalidInput(
                f"node {ids[int(np.argmin(found))]!r}: there is no such node"
            )
        return found

    def take(self, positions: NDArray[np.int64]) -> NodeTable:
        """Return the table of the nodes at `positions`, in whose order their ids must
        rise.
        """
        return NodeTable._assembled([self], np.asarray(positions, dtype=np.int64))

    @staticmethod
    def _assembled(tables: Sequence[NodeTable], order: NDArray[np.int64]) -> NodeTable:
        """The nodes at positions in several tables laid end to end; sets of labels that
        none has are left out.
        """
        splice = Splice([len(table) for table in tables], order)
        codes, sets = spliced_codes(
            splice, [(table.labels, table.label_sets) for table in tables]
        )
        ids, names, texts, properties = (
            splice.of_texts(*(getattr(table, name).array for table in tables))
            for name in _COLUMNS
        )
        return NodeTable(
            Strings(ids),
            Strings(names),
            Strings(texts),
            codes,
            sets,
            Records(properties),
        )

    def merged(
        self, fresh: NodeTable, deletes: Collection[str] = ()
    ) -> tuple[NodeTable, NDArray[np.int64]]:
        """Return a table in which the nodes of another take the place of those of the
        same id, and some are gone.

        It is what a table built of the same nodes would be. `deletes` are ids of nodes
        of this table, not of `fresh`; unknown ones are ignored. Returned too is where
        each node of this table is in the new one, -1 if it is gone, ``(n,)``.
        """
        n = len(self)
        replaced, gone = self.find(fresh.ids), self.find(list(deletes))
        kept = np.delete(
            np.arange(n), np.concatenate([replaced[replaced >= 0], gone[gone >= 0]])
        )
        at = np.searchsorted(kept, self._places(fresh.ids))
        order = np.insert(kept, at, n + np.arange(len(fresh)))
        moved = np.full(n, -1, dtype=np.int64)
        old = order < n
        moved[order[old]] = np.flatnonzero(old)
        moved[replaced[replaced >= 0]] = np.flatnonzero(~old)[replaced >= 0]
        table = NodeTable._assembled([self, fresh], order)
        table.restriction = self.restriction
        return table, moved

    def mask(
        self, where: Where | None, labels: Collection[str] | None = None
    ) -> NDArray[np.bool_] | None:
        """Return which nodes satisfy the condition and bear one of `labels`, ``(n,)``;
        `None` if nothing is asked.
        """
        where = _with_labels(where, labels)
        return None if where is None else self._mask(where)

    def _mask(self, where: Where) -> NDArray[np.bool_]:
        mask = _remembered(
            self._masks, where, lambda: self._evaluate(where, np.arange(len(self)))
        )
        mask.flags.writeable = False
        return mask

    def warn_of_unknown(self, where: Where | None, trace: Trace) -> None:
        """Warn of properties that a condition asks for and no node has; found out once
        for a table, as masks are.
        """
        for child in where.children if where else ():
            self.warn_of_unknown(child, trace)
        if (
            not where
            or where.operator == "$exists"
            or where.field in ("", "label", *_OWN_FIELDS)
        ):
            return
        if len(self) and not self._mask(Where("$exists", where.field, True)).any():
            trace.note("unknown_key", key=where.field)
            warnings.warn(
                f"where: no node has {where.field!r}; is it misspelt?", stacklevel=2
            )

    def fits(
        self,
        positions: NDArray[Any],
        where: Where | None,
        labels: Collection[str] | None = None,
    ) -> NDArray[np.bool_] | None:
        """Return which of the nodes at `positions` satisfy the condition and bear one
        of `labels`; `None` if all do.

        Reads only those nodes where they are few.
        """
        where = _with_labels(where, labels)
        if where is None:
            return None
        if where not in self._masks and len(positions) * _READ_SHARE < len(self):
            distinct, inverse = np.unique(positions, return_inverse=True)
            return np.asarray(self._evaluate(where, distinct)[inverse])
        return np.asarray(self._mask(where)[positions])

    def _evaluate(self, where: Where, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Evaluate a condition on the nodes at positions, reading no column that it
        does not ask for.
        """
        if where.operator in ("$and", "$or"):
            conjunction = where.operator == "$and"
            mask = np.full(len(at), conjunction)
            for child in sorted(
                where.children, key=lambda child: child.field != "label"
            ):
                open_ = np.flatnonzero(mask if conjunction else ~mask)
                mask[open_] = self._evaluate(child, at[open_])
            return mask
        if where.operator == "$not":
            return ~self._evaluate(where.children[0], at)
        if where.field == "label":  # few distinct sets of labels, many nodes
            fits = np.asarray(
                [where.matches(Node("-", labels)) for labels in self.label_sets],
                dtype=bool,
            )
            return np.asarray(fits[self.labels[at]])
        if where.field in _OWN_FIELDS:
            return self._compare_strings(where, at, getattr(self, f"{where.field}s"))
        return self._compare_properties(where, at)

    def _compare_strings(
        self, where: Where, at: NDArray[Any], column: Strings
    ) -> NDArray[np.bool_]:
        values = column.array if len(at) == len(column) else column.array.take(at)
        if where.operator in ("$eq", "$in"):
            wanted = where.value if where.operator == "$in" else [where.value]
            return values.is_among({one for one in wanted if isinstance(one, str)})
        return np.fromiter(
            (where.compares(True, one) for one in Strings(values)), bool, len(at)
        )

    def _compare_properties(self, where: Where, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Decode the records that spell the key, as any that has the property does, and
        compare its value.
        """
        records = (
            self.properties.array
            if len(at) == len(self)
            else self.properties.array.take(at)
        )
        mask = np.full(len(at), where.compares(False, None))
        spelt = to_json(where.field.rpartition(".")[2])[1:]
        if where.operator == "$eq" and isinstance(where.value, str):
            spelt += f":{to_json(where.value)}"
        there = np.flatnonzero(records.contain(spelt))
        found = Records(records.take(there))
        mask[there] = np.fromiter(
            (where.compares(*lookup(own, where.field)) for own in found),
            bool,
            len(there),
        )
        return mask

    def restricted(
        self, where: Where | None
    ) -> tuple[NodeTable, NDArray[np.int64]] | None:
        """Return the table of the nodes that satisfy `where` and their positions here;
        `None` if all do.

        The same condition gives the same table, so that a store and an index cut to it
        still share one.
        """
        if where is None:
            return None

        def cut() -> tuple[NodeTable, NDArray[np.int64]]:
            positions = np.flatnonzero(self._mask(where))
            table = self.take(positions)
            table.restriction = both(self.restriction, where)
            return table, positions

        return _remembered(self._restricted, where, cut)

    def label_counts(self) -> Counter[str]:
        """How many nodes bear each label."""
        counts: Counter[str] = Counter()
        for labels, n in zip(
            self.label_sets, np.bincount(self.labels).tolist(), strict=True
        ):  # none is unused
            counts.update(dict.fromkeys(labels, n))
        return counts

    def parts(self) -> Parts:
        """The table as it is saved: its columns, and sets of labels as JSON."""
        parts = Parts({"labels": self.labels})
        for name in _COLUMNS:
            parts.add_texts(name, getattr(self, name).array)
        parts.add_texts("label_sets", TextArray.of(map(to_json, self.label_sets)))
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> NodeTable:
        """Open a saved table; the columns stay on disk until they are read."""
        ids, names, texts = (Strings(bundle.texts(name)) for name in _COLUMNS[:3])
        return cls(
            ids,
            names,
            texts,
            bundle.arrays["labels"],
            [tuple(json.loads(own)) for own in bundle.texts("label_sets").tolist()],
            Records(bundle.texts("properties")),
        )


def _remembered(known: dict[Where, T], where: Where, make: Callable[[], T]) -> T:
    """What is made for a condition, once, whichever thread is first; the oldest is
    forgotten.
    """
    if (found := known.get(where)) is not None:
        return found
    value = make()
    for oldest in list(known)[: 1 - _CONDITIONS_KEPT]:
        known.pop(oldest, None)
    return known.setdefault(where, value)


def _order(ids: Strings) -> NDArray[np.int64]:
    """The order that sorts ids; an `InvalidInput` names one that comes twice."""
    texts = ids.tolist()
    if all(one < other for one, other in pairwise(texts)):
        return np.arange(len(ids))
    order = np.asarray(sorted(range(len(ids)), key=texts.__getitem__), np.int64)
    by_id = (texts[at] for at in order.tolist())
    twice = [at for at, two in enumerate(pairwise(by_id)) if two[0] == two[1]]
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        name = ids[int(first)]
        raise InvalidInput(
            f"node {name!r}: the id comes twice, in the rows {first:,} and {second:,}"
        )
    return order


def _with_labels(where: Where | None, labels: Collection[str] | None) -> Where | None:
    """The condition that a node bears one of `labels` besides."""
    if labels is None:
        return where
    if isinstance(labels, str):
        raise InvalidInput(
            f"labels: expected a list of labels, got the string {labels!r}"
        )
    return both(Where("$in", "label", tuple(labels)), where)
