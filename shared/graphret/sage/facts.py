"""What the links of a graph ask of its nodes, in columns.

A property is read once, when its node is added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.corpus.chunks import DOCUMENT, source_of
from graphret.corpus.names import file_of
from graphret.corpus.readers import file_id
from graphret.numeric import flags, marked, unique
from graphret.sage.codes import Codes
from graphret.sage.names import title_of
from graphret.storage import Bundle, Parts
from graphret.types import Node

#: In place of the place of a node in its source, where it is not known.
NO_PLACE = np.iinfo(np.int64).min
_READ = ("source", "file", "kin", "document", "path", "title", "place", "is_table")
_COLUMNS = (*_READ, "is_head")


@dataclass(frozen=True, eq=False)
class NodeFacts:
    """What nodes were made from, their place in it, and their titles, ``(n,)`` each.

    The columns are numbers of `strings`: `source`, the item that a node was made from,
    itself where none is known; `file`, the file of that; `kin`, what tells the chunks
    that are one source for `graphret.corpus.chunks`; `document`, the item before it was
    put with others; `path`, the file or address that its metadata name, and `title`, 0
    where there is none. `place` is the place in the source, or `NO_PLACE`; `is_head`
    says which node is the first of its file, texts before tables.
    """

    strings: Codes = field(default_factory=lambda: Codes([""]))
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    file: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    kin: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    document: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    path: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    title: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    place: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    is_table: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    is_head: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def changed(self, change: Change) -> NodeFacts:
        """Return the facts after a change, reading the fresh nodes."""
        rows = (_facts(node, self.strings) for node in change.nodes)
        made = np.fromiter(rows, np.dtype((np.int64, len(_READ)))).T
        columns = {
            name: change.column(before := getattr(self, name), new.astype(before.dtype))
            for name, new in zip(_READ, made, strict=True)
        }
        no_heads = np.zeros(len(change.fresh), np.bool_)
        columns["is_head"] = change.column(self.is_head, no_heads)
        facts = NodeFacts(self.strings.packed(), **columns)
        touched = np.append(facts.file[change.fresh], self.file[change.left])
        are_touched = flags(touched, len(self.strings))
        members = marked(are_touched, facts.file)
        facts.is_head[members] = False
        facts.is_head[facts._first_of_files(members)] = True
        return facts

    def _first_of_files(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first of each file among some nodes: texts before tables."""
        file = self.file[nodes]
        keys = nodes, self.number[nodes], self.is_table[nodes], file
        order = np.lexsort(keys)
        first: NDArray[np.int64] = nodes[order[np.diff(file[order], prepend=-1) != 0]]
        return first

    def parts(self) -> Parts:
        """The facts as they are saved."""
        parts = Parts({name: getattr(self, name) for name in _COLUMNS})
        parts.add("strings", self.strings.parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> NodeFacts:
        """Open saved facts."""
        columns: dict[str, Any] = {name: bundle.arrays[name] for name in _COLUMNS}
        return cls(Codes.from_bundle(bundle.sub("strings")), **columns)

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """The number of each node among its source's chunks, 0 where it has none."""
        return np.where(self.place == NO_PLACE, 0, self.place)

    @property
    def heads(self) -> NDArray[np.int64]:
        """The first node of each file, ascending."""
        return np.flatnonzero(self.is_head)

    def of_items(self, items: Collection[str]) -> Iterator[tuple[str, int]]:
        """Yield items and files with each node that was made of them."""
        asked = flags(self.strings.find(items), len(self.strings))
        for column in (self.source, self.file, self.document):
            for position in marked(asked, column).tolist():
                yield self.strings[column[position]], position

    def of_documents(self, names: Collection[str]) -> NDArray[np.int64]:
        """Return the nodes of documents, by id or by file, that may have some names."""
        asked = flags(self.strings.find(names), len(self.strings))
        asked[0] = False
        columns = self.source, self.document, self.path
        return unique(*(marked(asked, column) for column in columns))

    def of_kin(self, kin: Collection[tuple[str, ...]]) -> NDArray[np.int64]:
        """Return the nodes that are chunks of one of the sources."""
        asked = flags(self.strings.find(map(_KIN.join, kin)), len(self.strings))
        return marked(asked, self.kin)


_KIN = "\0"


def _facts(node: Node, strings: Codes) -> tuple[int, ...]:
    """Return the row of a node, in the order of the columns."""
    given = node.properties
    item = given.get("source_id")
    source = f"\0{node.id}" if item is None else str(item)  # no item's name
    document = given.get(DOCUMENT)
    texts = (
        source,
        file_id(node.id if item is None else source),
        _KIN.join(source_of(node)),
        "" if document is None else str(document),
        file_of(given),
        title_of(node),
    )
    place = given.get("chunk_index")
    return (
        *map(strings.of, texts),
        place if isinstance(place, int) else NO_PLACE,
        "table_rows" in given,
    )
