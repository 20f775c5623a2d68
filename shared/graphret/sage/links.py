"""Links that a corpus states in passing: a cell or a text that says another node's name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what each kind of link is worth.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from graphret.corpus.chunks import number_of
from graphret.edges import NO_PART, EdgeTable
from graphret.gazetteer import Gazetteer
from graphret.nodes import NodeTable
from graphret.text import short_names
from graphret.text import words as words_of
from graphret.types import Node

MENTIONS = "MENTIONS"

#: How much a link of each kind counts.
#:
#: ``exact``: a cell is the name; ``alias``: a cell is the name without its brackets or what follows a comma, or another
#: name that the node is given; ``inside`` and ``inside_alias``: a longer cell holds it; ``completed``: the words of a
#: cell and of its table's title, section and header make up the name; ``text``, ``text_alias``: running text says it.
KIND_WEIGHTS: Mapping[str, float] = {
    "exact": 1.0,
    "alias": 1.0,
    "inside": 1.0,
    "inside_alias": 0.9,
    "completed": 1.0,
    "text": 0.8,
    "text_alias": 0.8,
}
#: Longer names are not looked for.
MAX_NAME_WORDS = 12

# What completes a cell to a name: cells of so many words at most, by words that begin so many names at most, where cell
# and context cover this share of the name's rarity; and so many links of a cell.
_MAX_CELL_WORDS, _MAX_POSTINGS, _MIN_COMPLETED, _MAX_COMPLETED = 6, 3000, 0.6, 3
# An alias by which more than this share of all sources say a node, and more than this many, is an everyday word
# ("World" for "World (TV channel)"): it makes no links from longer cells and running text.
_COMMON_SHARE, _COMMON_LEAST = 0.01, 20
_TABLE_OF = re.compile(r"/table-\d+$")  # a table of a document is named as that is
_ALIASES = ("text_alias", "inside_alias")
_RANK = {kind: rank for rank, kind in enumerate(KIND_WEIGHTS)}
_STOP = frozenset("the a an of in on at to and or for by is was are with from as it its this that be".split())

Words = tuple[str, ...]


@dataclass(frozen=True)
class LinkSettings:
    """When a name counts as said.

    Parameters
    ----------
    kind_weights
        Weight of a link by kind; a kind that is left out makes no links.
    max_bearers
        A name that more nodes bear says nothing.
    join_weight
        Weight of a link between rows of two tables that share the value of a key (`graphret.sage.joins`); 0 for none.
    """

    kind_weights: Mapping[str, float] = field(default_factory=lambda: dict(KIND_WEIGHTS))
    max_bearers: int = 50
    join_weight: float = 0.8


@dataclass(frozen=True, slots=True)
class _Unit:
    """A stretch of text: the body of a node (one cell), or a row of a table with what stands around it."""

    owner: int
    part: int
    cells: Sequence[str]
    header: Sequence[str] = ()
    context: frozenset[str] | None = None


class _Mention(NamedTuple):
    """By what a unit names a node: the kind of the link, how much of the name is said, in which column."""

    kind: str
    share: float
    column: int
    name: str


def name_links(nodes: NodeTable, settings: LinkSettings | None = None) -> EdgeTable:
    """Return a ``MENTIONS`` edge for every row that says the name of a node, and every source whose text does.

    The edge leaves the chunk that says the name first, or the row, ``source_part``, where a table says it, and leads to
    the first chunk of what is named: a ranking finds out which of the chunks the question means. Its properties are the
    kind of the link, the name and, in a table, the column. Names are titles, with and without brackets and what
    follows a comma, the property ``aliases``, and the ids of records. They are found by
    hash and by an inverted index over the words of names; no two nodes are ever compared.
    """
    settings = settings or LinkSettings()
    places = [number_of(node, "chunk_index") for node in nodes]
    sources = [_TABLE_OF.sub("", str(node.properties.get("source_id", node.id))) for node in nodes]
    heads: dict[str, int] = {}
    for i in sorted(range(len(nodes)), key=lambda i: ("table_rows" in nodes.properties[i], places[i])):
        heads.setdefault(sources[i], i)
    own = [_names_of(node) if heads[sources[i]] == i else [] for i, node in enumerate(nodes)]
    names = _Names(own, settings.max_bearers)
    found: list[tuple[_Unit, int, _Mention]] = []
    known: set[tuple[str, int, bool]] = set()
    for unit in sorted(_units(nodes), key=lambda unit: places[unit.owner]):
        for target, mention in _mentions(unit, names, settings.kind_weights).items():
            link = sources[unit.owner], target, mention.kind in _ALIASES
            if unit.part == NO_PART:
                if link[0] == sources[target] or link in known:
                    continue
                known.add(link)
            found.append((unit, target, mention))
    named = Counter(target for _, target, mention in found if mention.kind == "text_alias")
    limit = max(_COMMON_LEAST, _COMMON_SHARE * len(set(sources)))
    found = [one for one in found if named[one[1]] <= limit or one[2].kind not in _ALIASES]
    factors = np.asarray([settings.kind_weights[mention.kind] for _, _, mention in found], dtype=np.float32)
    shares = np.asarray([mention.share for _, _, mention in found], dtype=np.float32)
    return EdgeTable.build(
        len(nodes),
        np.asarray([unit.owner for unit, _, _ in found], dtype=np.int32),
        np.asarray([target for _, target, _ in found], dtype=np.int32),
        np.zeros(len(found), dtype=np.int16),
        [MENTIONS],
        factors * shares / (factors.max(initial=0) or 1),  # a corpus of text alone loses nothing
        source_part=np.asarray([unit.part for unit, _, _ in found], dtype=np.int32),
        properties=[_about(unit, mention) for unit, _, mention in found],
    )


def _about(unit: _Unit, mention: _Mention) -> dict[str, str]:
    where = {"column": unit.header[mention.column]} if mention.column < len(unit.header) else {}
    return {"kind": mention.kind, "name": mention.name, **where}


def _names_of(node: Node) -> list[str]:
    aliases = node.properties.get("aliases") or ()
    given = [aliases] if isinstance(aliases, str) else [alias for alias in aliases if isinstance(alias, str)]
    return [node.name, *short_names(node.name), *given, *_identifiers(node)]


def _identifiers(node: Node) -> list[str]:
    """Return the id of a record, which people write; those of chunks and segments are made."""
    return [] if "source_id" in node.properties or node.label in ("Document", "Table") else [node.id]


def _units(nodes: NodeTable) -> Iterator[_Unit]:
    for owner, node in enumerate(nodes):
        rows = node.properties.get("table_rows")
        if rows is None:
            yield _Unit(owner, NO_PART, [node.text])
            continue
        if around := node.properties.get("table_context"):
            yield _Unit(owner, NO_PART, [str(around)])
        header = [str(cell) for cell in node.properties.get("table_header") or ()]
        context = frozenset(_words(" ".join([node.name, str(node.properties.get("section") or ""), *header])))
        for part, row in enumerate(rows):
            yield _Unit(owner, part, [str(cell) for cell in row], header, context)


def _words(text: str) -> Words:
    return tuple(words_of(text))


def speaks(words: Sequence[str]) -> bool:
    """Whether words can be a name by themselves: not stop words, single letters and numbers alone.

    Of Chinese characters and kana, which are a word each, two are enough.
    """
    if sum(not word.isascii() and word.isalpha() for word in words) > 1:
        return True
    return any(word not in _STOP and len(word) > 1 and not word.isdigit() for word in words) or _is_code(words)


def _is_code(words: Sequence[str]) -> bool:
    """Whether words are a code such as “P-1234”: one letter and a long number."""
    return len(words) == 2 and len(words[0]) == 1 and words[0].isalpha() and words[1].isdigit() and len(words[1]) > 2


class _Names:
    """The names of all nodes: who bears one, which a text holds, and which a cell and its context make up."""

    def __init__(self, names: Sequence[Sequence[str]], max_bearers: int) -> None:
        self.bearers: tuple[dict[Words, list[int]], dict[Words, list[int]]] = ({}, {})  # by full name, by alias
        self.bags: list[tuple[int, frozenset[str]]] = []
        self.postings: dict[str, list[int]] = defaultdict(list)
        self.spelled: dict[Words, str] = {}
        for node, own in enumerate(names):
            self._enter(node, own)
        for table in self.bearers:
            for words in [words for words, nodes in table.items() if len(nodes) > max_bearers]:
                del table[words]
        n = max(1, len(self.bags))
        self.rarity = {word: math.log(1 + n / len(bags)) for word, bags in self.postings.items()}
        self._spoken = [words for words in dict.fromkeys([*self.bearers[0], *self.bearers[1]]) if speaks(words)]
        self._gazetteer = Gazetteer([" ".join(words) for words in self._spoken])

    def _enter(self, node: int, own: Sequence[str]) -> None:
        seen: set[Words] = set()
        for nth, name in enumerate(own):
            words = _words(name)
            if not words or len(words) > MAX_NAME_WORDS or words in seen:
                continue
            seen.add(words)
            self.spelled.setdefault(words, name)
            self.bearers[min(nth, 1)].setdefault(words, []).append(node)
            if nth == 0:
                bag = frozenset(words)
                for word in bag:
                    self.postings[word].append(len(self.bags))
                self.bags.append((node, bag))

    def inside(self, words: Words) -> list[Words]:
        """Return the names that the words of a text hold, none overlapping."""
        return list(dict.fromkeys(self._spoken[match.name_index] for match in self._gazetteer.find_words(words)))

    def completed(self, cell: Words, context: frozenset[str]) -> list[tuple[int, float]]:
        """Return the nodes whose name holds every word of a cell and otherwise mostly words of its context.

        With each comes the share of the name's rarity that cell and context cover.
        """
        rarity = self.rarity
        need = frozenset(word for word in cell if word not in _STOP)
        if not need or len(cell) > _MAX_CELL_WORDS or any(word not in self.postings for word in need):
            return []
        if all(word.isdigit() and len(word) != 4 for word in need):  # a year says something, another number does not
            return []
        rarest = min(need, key=lambda word: (len(self.postings[word]), word))
        if len(self.postings[rarest]) > _MAX_POSTINGS:
            return []
        got = sum(rarity[word] for word in sorted(need))
        out = []
        for node, bag in map(self.bags.__getitem__, self.postings[rarest]):
            if not need <= bag:
                continue
            rest = sorted(bag - need)
            said = sum(rarity[word] for word in rest if word in context)
            if said == 0:
                continue
            share = (got + said) / (got + sum(rarity[word] for word in rest))
            if share >= _MIN_COMPLETED:
                out.append((node, share))
        out.sort(key=lambda found: (-found[1], found[0]))
        return out[:_MAX_COMPLETED]


def _mentions(unit: _Unit, names: _Names, kinds: Collection[str]) -> dict[int, _Mention]:
    """Return the nodes that a unit names, each by the first of the kinds that applies."""
    best: dict[int, _Mention] = {}

    def add(nodes: Iterable[int], kind: str, column: int, name: Words, share: float = 1.0) -> None:
        if kind not in kinds:
            return
        for node in nodes:
            known = best.get(node)
            if node != unit.owner and (known is None or (_RANK[kind], -share) < (_RANK[known.kind], -known.share)):
                best[node] = _Mention(kind, share, column, names.spelled.get(name, " ".join(name)))

    full, alias = names.bearers
    if unit.context is None:
        for name in names.inside(_words(unit.cells[0])):
            add(full.get(name, ()), "text", 0, name)
            add(alias.get(name, ()), "text_alias", 0, name)
        return best
    for column, cell in enumerate(unit.cells):
        words = _words(cell)
        if not words:
            continue
        add(full.get(words, ()), "exact", column, words)
        add(alias.get(words, ()), "alias", column, words)
        for name in names.inside(words):
            if name != words:
                add(full.get(name, ()), "inside", column, name)
                add(alias.get(name, ()), "inside_alias", column, name)
        for node, share in names.completed(words, unit.context):
            add([node], "completed", column, words, share)
    return best
