"""`NodeTable`: the nodes of a store or index in columns, sorted by id, immutable."""

from __future__ import annotations

import json
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, Strings, TextArray, to_json
from graphret.errors import InvalidInput
from graphret.executors.blocks import SMALL_BLOCK, batched
from graphret.splice import Splice, spliced_codes
from graphret.storage import Bundle, Parts
from graphret.trace import Trace
from graphret.types import Node
from graphret.validation import checked_nodes, property_column
from graphret.where import Where, both, lookup

T = TypeVar("T")

_CONDITIONS_KEPT = 16
_READ_SHARE = 20
# More lookups than one for so many nodes are worth a dictionary.
_FEW = 32
_COLUMNS = ("ids", "names", "texts", "properties")
_OWN_FIELDS = ("id", "name", "text")


class NodeTable(Sequence[Node]):
    """Nodes by position, in the order of their ids.

    Since positions follow ids, a stable sort by score breaks ties by id everywhere, and
    a table to which nodes were added equals one that was built with them.

    It has string columns of ids (sorted and distinct), names and texts, for each node
    the position of its tuple of labels in the distinct `label_sets`, and its properties
    as a JSON object, ``n`` each. `restriction` is the condition by which `restricted`
    made the table, if it did.
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
        self._n_lookups = 0
        self._masks: dict[Where, NDArray[np.bool_]] = {}
        self._restricted: dict[Where, tuple[NodeTable, NDArray[np.int64]]] = {}

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> NodeTable:
        """Make a table of nodes in any order, refusing malformed or repeated ones."""
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
        """Return the nodes at `positions`, in that order; faster than one by one."""
        chosen = np.asarray(positions, dtype=np.int64)
        labels = [self.label_sets[code] for code in self.labels[chosen].tolist()]
        columns = (
            column.take(chosen) for column in (self.names, self.texts, self.properties)
        )
        return [*map(Node, self.ids.take(chosen), labels, *columns)]

    def __iter__(self) -> Iterator[Node]:
        return self.each(np.arange(len(self)))

    def each(self, positions: NDArray[np.int64]) -> Iterator[Node]:
        """Yield the nodes at `positions`, of which a few are decoded at once."""
        for block in batched(positions, SMALL_BLOCK):
            yield from self.at(block)

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and bool(self.find([node_id])[0] >= 0)

    def find(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids, -1 for unknown ones.

        The ids are searched in place, on disk or in memory. Once there were many
        lookups for the length of the table, a dictionary is built for them.
        """
        listed = ids if isinstance(ids, Sequence) else list(ids)
        self._n_lookups += len(listed)
        if not self._position and self._n_lookups * _FEW >= len(self):
            self._position = dict(zip(self.ids, range(len(self)), strict=True))
        if position_of := self._position:
            found = map(position_of.get, listed, repeat(-1))
            return np.fromiter(found, np.int64, len(listed))
        places = self.places_for(listed)
        present = (
            place < len(self) and self.ids[place] == id_
            for place, id_ in zip(places, listed, strict=True)
        )
        return np.where(np.fromiter(present, bool, len(listed)), places, -1)

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        """Return nodes by id, `None` for unknown ids."""
        positions = self.find(ids)
        nodes = iter(self.at(positions[positions >= 0]))
        return [next(nodes) if i >= 0 else None for i in positions.tolist()]

    def places_for(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the place of each id, or where it would be inserted, ``(w,)``."""
        every = range(len(self))
        places = (
            bisect_left(
                every, id_.encode(errors="surrogatepass"), key=self.ids.array.encoded
            )
            for id_ in ids
        )
        return np.fromiter(places, np.int64)

    def positions(self, ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the positions of ids; `InvalidInput` names an unknown one."""
        ids = list(ids)
        positions = self.find(ids)
        if (positions < 0).any():
            raise InvalidInput(
                f"node {ids[int(np.argmin(positions))]!r}: there is no such node"
            )
        return positions

    def take(self, positions: NDArray[np.int64]) -> NodeTable:
        """Return the table of the nodes at `positions`, whose ids must be ascending."""
        order = np.asarray(positions, dtype=np.int64)
        return NodeTable.spliced([self], Splice([len(self)], order))

    @staticmethod
    def spliced(tables: Sequence[NodeTable], splice: Splice) -> NodeTable:
        """Return the nodes of tables in the order of a splice, without unused labels.

        Their ids must be ascending in it.
        """
        codes, sets = spliced_codes(
            splice, [(table.labels, table.label_sets) for table in tables]
        )
        ids, names, texts, properties = (
            splice.of_lists(*(getattr(table, name).array for table in tables))
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

    def mask(
        self, where: Where | None, labels: Collection[str] | None = None
    ) -> NDArray[np.bool_] | None:
        """Return which nodes satisfy the condition and have one of `labels`, ``(n,)``.

        It is `None` without a condition.
        """
        where = _with_labels(where, labels)
        return None if where is None else self._mask(where)

    def _mask(self, where: Where) -> NDArray[np.bool_]:
        mask = _cached(
            self._masks, where, lambda: self._evaluate(where, np.arange(len(self)))
        )
        mask.flags.writeable = False
        return mask

    def warn_of_unknown(self, where: Where | None, trace: Trace) -> None:
        """Warn of properties in a condition that no node has; cached as masks are."""
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
        """Return which nodes at `positions` satisfy the condition and have a label.

        It is `None` without a condition. If the nodes are few, only they are read.
        """
        where = _with_labels(where, labels)
        if where is None:
            return None
        if where not in self._masks and len(positions) * _READ_SHARE < len(self):
            distinct, inverse = np.unique(positions, return_inverse=True)
            return np.asarray(self._evaluate(where, distinct)[inverse])
        return np.asarray(self._mask(where)[positions])

    def _evaluate(self, where: Where, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Evaluate a condition on the nodes at positions, reading only its columns."""
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
            operands = where.value if where.operator == "$in" else [where.value]
            texts = {operand for operand in operands if isinstance(operand, str)}
            return values.is_among(texts)
        return np.fromiter(
            (where.compares(True, value) for value in Strings(values)), bool, len(at)
        )

    def _compare_properties(self, where: Where, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Compare a property's values, decoding only the records that have its key."""
        records = (
            self.properties.array
            if len(at) == len(self)
            else self.properties.array.take(at)
        )
        mask = np.full(len(at), where.compares(False, None))
        spelt = to_json(where.field.rpartition(".")[2])[1:]
        if where.operator == "$eq" and isinstance(where.value, str):
            spelt += f":{to_json(where.value)}"
        with_key = np.flatnonzero(records.contain(spelt))
        decoded = Records(records.take(with_key))
        mask[with_key] = np.fromiter(
            (where.compares(*lookup(record, where.field)) for record in decoded),
            bool,
            len(with_key),
        )
        return mask

    def restricted(
        self, where: Where | None
    ) -> tuple[NodeTable, NDArray[np.int64]] | None:
        """Return the table of the nodes that satisfy `where`, and their positions here.

        It is `None` without a condition. The same condition gives the same table, so
        that a store and an index restricted to it still share one.
        """
        if where is None:
            return None

        def cut() -> tuple[NodeTable, NDArray[np.int64]]:
            positions = np.flatnonzero(self._mask(where))
            table = self.take(positions)
            table.restriction = both(self.restriction, where)
            return table, positions

        return _cached(self._restricted, where, cut)

    def label_counts(self) -> Counter[str]:
        """Return the number of nodes with each label."""
        counts: Counter[str] = Counter()
        # No set of labels is unused.
        sizes = np.bincount(self.labels).tolist()
        for labels, n in zip(self.label_sets, sizes, strict=True):
            counts.update(dict.fromkeys(labels, n))
        return counts

    def parts(self) -> Parts:
        """Return the table for saving: its columns, and sets of labels as JSON."""
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
            [tuple(json.loads(text)) for text in bundle.texts("label_sets").tolist()],
            Records(bundle.texts("properties")),
        )


def _cached(cache: dict[Where, T], where: Where, make: Callable[[], T]) -> T:
    """Return the cached value of a condition, or make it; the oldest are dropped.

    The value of the first thread stays.
    """
    if (value := cache.get(where)) is not None:
        return value
    computed = make()
    for oldest in list(cache)[: 1 - _CONDITIONS_KEPT]:
        cache.pop(oldest, None)
    return cache.setdefault(where, computed)


def _order(ids: Strings) -> NDArray[np.int64]:
    """Return the order that sorts ids; `InvalidInput` names a repeated one."""
    texts = ids.tolist()
    if all(previous < following for previous, following in pairwise(texts)):
        return np.arange(len(ids))
    order = np.asarray(sorted(range(len(ids)), key=texts.__getitem__), np.int64)
    by_id = (texts[at] for at in order.tolist())
    repeats = [at for at, pair in enumerate(pairwise(by_id)) if pair[0] == pair[1]]
    if repeats:
        first, second = order[repeats[0]], order[repeats[0] + 1]
        name = ids[int(first)]
        raise InvalidInput(
            f"node {name!r}: the id comes twice, in the rows {first:,} and {second:,}"
        )
    return order


def _with_labels(where: Where | None, labels: Collection[str] | None) -> Where | None:
    """Return the condition that a node also has one of `labels`."""
    if labels is None:
        return where
    if isinstance(labels, str):
        raise InvalidInput(
            f"labels: expected a list of labels, got the string {labels!r}"
        )
    return both(Where("$in", "label", tuple(labels)), where)
