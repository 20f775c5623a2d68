"""What a text, or a row of a table, names: the names of nodes that it holds, and in
which way.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from graphret.edges import NO_ROW
from graphret.linking.gazetteer import Gazetteer
from graphret.linking.usage import NameUse, use_at
from graphret.nodes import NodeTable
from graphret.sage.names import MAX_NAME_WORDS, without_stop_words
from graphret.sage.settings import KIND_WEIGHTS, LinkSettings
from graphret.stopwords import NAME_STOP_WORDS, is_informative
from graphret.text import words as words_of

Words: TypeAlias = tuple[str, ...]

# What completes a cell to a name: cells of so many words at most, by words that begin
# so many names at most, where cell and context cover this share of the name's rarity;
# and so many links of a cell.
_MAX_CELL_WORDS, _MAX_POSTINGS, _MIN_COMPLETED, _MAX_COMPLETED = 6, 3000, 0.6, 3
_RANK = {kind: rank for rank, kind in enumerate(KIND_WEIGHTS)}


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A stretch of text: the body of a node (one cell), or a row of a table with what
    stands around it.
    """

    owner: int
    row: int
    cells: Sequence[str]
    header: Sequence[str] = ()
    context: frozenset[str] | None = None


class Mention(NamedTuple):
    """By what a unit names a node: the kind of the link, how much of the name is said,
    in which column.
    """

    kind: str
    share: float
    column: int
    name: str


def units_of(nodes: NodeTable) -> Iterator[TextUnit]:
    """Yield the texts and the rows of nodes."""
    for owner, node in enumerate(nodes):
        rows = node.properties.get("table_rows")
        text = (
            node.text
            if rows is None
            else str(node.properties.get("table_context") or "")
        )
        if text:
            yield TextUnit(owner, NO_ROW, [text])
        header = [str(cell) for cell in node.properties.get("table_header") or ()]
        context = frozenset(
            words_of(
                " ".join(
                    [node.name, str(node.properties.get("section") or ""), *header]
                )
            )
        )
        for row, cells in enumerate(rows or ()):
            yield TextUnit(owner, row, [str(cell) for cell in cells], header, context)


class NodeNames:
    """The names of nodes: who bears one, which a text holds, and which a cell and its
    context make up.
    """

    def __init__(
        self, names: Sequence[tuple[int, Sequence[str]]], settings: LinkSettings
    ) -> None:
        self._made_of, self._kinds = (names, settings), settings.kind_weights
        self.full: dict[Words, list[int]] = {}
        self.alias: dict[Words, list[int]] = {}
        self.bags: list[tuple[int, frozenset[str]]] = []  # the words of each full name
        self.postings: dict[str, list[int]] = defaultdict(list)
        self.spelled: dict[Words, str] = {}
        for node, own in names:
            seen: set[Words] = set()
            for nth, name in enumerate(own):
                words = tuple(words_of(name))
                if not words or len(words) > MAX_NAME_WORDS or words in seen:
                    continue
                seen.add(words)
                self.spelled.setdefault(words, name)
                (self.alias if nth else self.full).setdefault(words, []).append(node)
                if nth == 0:
                    for word in set(words):
                        self.postings[word].append(len(self.bags))
                    self.bags.append((node, frozenset(words)))
        for table in (self.full, self.alias):
            for words in [
                words
                for words, nodes in table.items()
                if len(nodes) > settings.max_bearers
            ]:
                del table[words]
        self.rarity = {
            word: math.log(1 + len(self.bags) / len(bags))
            for word, bags in self.postings.items()
        }
        # Stop words in capitals, IT and AT&T, are names where a text says them so.
        self._capitals = {
            words: re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            for words, name in self.spelled.items()
            if len(name) > 1
            and name.isupper()
            and not is_informative(words, NAME_STOP_WORDS)
        }
        self._spoken = [
            words
            for words in dict.fromkeys([*self.full, *self.alias])
            if is_informative(words, NAME_STOP_WORDS) or words in self._capitals
        ]
        self._gazetteer = Gazetteer([" ".join(words) for words in self._spoken])

    def __reduce__(self) -> Any:  # the names alone go to other processes
        return NodeNames, self._made_of

    def __call__(self, units: Sequence[TextUnit]) -> list[dict[int, Mention]]:
        """Return the nodes that each unit of a block names."""
        return [self._mentions(unit) for unit in units]

    def _mentions(self, unit: TextUnit) -> dict[int, Mention]:
        """Return the nodes that a unit names, its own too, each by the first of the
        kinds that applies.
        """
        best: dict[int, Mention] = {}

        def add(
            nodes: Iterable[int],
            kind: str,
            column: int,
            name: Words,
            share: float = 1.0,
        ) -> None:
            if kind not in self._kinds:
                return
            for node in nodes:
                known = best.get(node)
                if known is None or (_RANK[kind], -share) < (
                    _RANK[known.kind],
                    -known.share,
                ):
                    spelled = self.spelled.get(name, " ".join(name))
                    best[node] = Mention(kind, share, column, spelled)

        inside = "text" if unit.context is None else "inside"
        for column, cell in enumerate(unit.cells):
            words = tuple(words_of(cell))
            if unit.context is not None and words:
                add(self.full.get(words, ()), "exact", column, words)
                add(self.alias.get(words, ()), "alias", column, words)
                for node, share in self._completed(words, unit.context):
                    add([node], "completed", column, words, share=share)
            for match in self._gazetteer.find_words(words):
                name = self._spoken[match.name_index]
                if name in self._capitals and not self._says_capitals(name, cell):
                    continue
                if unit.context is None or name != words:
                    add(self.full.get(name, ()), inside, column, name)
                    add(self.alias.get(name, ()), f"{inside}_alias", column, name)
        return best

    def _says_capitals(self, name: Words, cell: str) -> bool:
        """Whether a text uses stop words in capitals as the name that they are."""
        return any(
            use_at(cell, *said.span(), self.spelled[name]) is NameUse.NAME
            for said in self._capitals[name].finditer(cell)
        )

    def _completed(
        self, cell: Words, context: frozenset[str]
    ) -> list[tuple[int, float]]:
        """Return the nodes whose name holds every word of a cell and otherwise mostly
        words of its context.

        With each comes the share of the name's rarity that cell and context cover.
        """
        need, rarity = without_stop_words(cell), self.rarity
        if (
            not need
            or len(cell) > _MAX_CELL_WORDS
            or any(word not in self.postings for word in need)
        ):
            return []
        if all(
            word.isdigit() and len(word) != 4 for word in need
        ):  # a year says something, another number does not
            return []
        rarest = min(need, key=lambda word: (len(self.postings[word]), word))
        if len(self.postings[rarest]) > _MAX_POSTINGS:
            return []
        got = sum(rarity[word] for word in sorted(need))
        out = []
        for node, bag in map(self.bags.__getitem__, self.postings[rarest]):
            if need <= bag:
                rest = sorted(bag - need)
                said = sum(rarity[word] for word in rest if word in context)
                share = (got + said) / (got + sum(rarity[word] for word in rest))
                if said and share >= _MIN_COMPLETED:
                    out.append((node, share))
        return sorted(out, key=lambda found: (-found[1], found[0]))[:_MAX_COMPLETED]
