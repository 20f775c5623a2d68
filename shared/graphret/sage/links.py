"""Links that a corpus states in passing: a cell or a text that says another node's name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what each kind of link is worth.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from graphret.corpus.chunks import number_of
from graphret.corpus.readers import file_id
from graphret.edges import NO_PART, EdgeTable
from graphret.executors import LOCAL, Executor, cut
from graphret.expansion.frontier import MENTIONS, SHARES_NAME
from graphret.linking.gazetteer import Gazetteer
from graphret.nodes import NodeTable
from graphret.sage.entities import Bearers
from graphret.sage.settings import KIND_WEIGHTS, LinkSettings
from graphret.sage.structure import sources_of
from graphret.text import normalize_name, short_names
from graphret.text import words as words_of
from graphret.types import Node

#: Longer names are not looked for.
MAX_NAME_WORDS = 12

# What completes a cell to a name: cells of so many words at most, by words that begin so many names at most, where cell
# and context cover this share of the name's rarity; and so many links of a cell.
_MAX_CELL_WORDS, _MAX_POSTINGS, _MIN_COMPLETED, _MAX_COMPLETED = 6, 3000, 0.6, 3
# An alias by which more than this share of all sources say a node, and more than this many, is an everyday word
# ("World" for "World (TV channel)"): it makes no links from longer cells and running text.
_COMMON_SHARE, _COMMON_LEAST = 0.01, 20
# A name that texts share is said by this share of the sources at most, in any corpus by two; one that stands in so many
# titles at most leads there.
_SHARED_BY, _MAX_TITLED = 0.05, 3
_ALIASES = ("text_alias", "inside_alias")
_RANK = {kind: rank for rank, kind in enumerate(KIND_WEIGHTS)}
_STOP = frozenset("the a an of in on at to and or for by is was are with from as it its this that be".split())

Words = tuple[str, ...]


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


def name_links(nodes: NodeTable, settings: LinkSettings | None = None, executor: Executor = LOCAL) -> EdgeTable:
    """Return a ``MENTIONS`` edge for every row that says the name of a node, and every source whose text does.

    The edge leaves the chunk that says the name first, or the row, ``source_part``, where a table says it, and leads to
    the first chunk of what is named: a ranking finds out which of the chunks the question means. Its properties are the
    kind of the link, the name and, in a table, the column. Names are titles, with and without brackets and what
    follows a comma, the property ``aliases``, and the ids of records. They are found by
    hash and by an inverted index over the words of names; no two nodes are ever compared.
    """
    weights = (settings := settings or LinkSettings()).kind_weights
    sources: list[str] = []
    places: list[int] = []
    heads: dict[str, tuple[bool, int, int]] = {}  # of each source the first chunk, texts before tables
    for i, node in enumerate(nodes):
        sources.append(file_id(str(node.properties.get("source_id", node.id))))
        places.append(number_of(node, "chunk_index"))
        key = "table_rows" in node.properties, places[i], i
        heads[sources[i]] = min(key, heads.get(sources[i], key))
    named = np.sort(np.asarray([i for _, _, i in heads.values()], dtype=np.int64))
    names = _Names([*zip(named.tolist(), map(_names_of, nodes.at(named)), strict=True)], settings)
    units = sorted(_units(nodes), key=lambda unit: places[unit.owner])
    found: list[tuple[_Unit, int, _Mention]] = []
    known: set[tuple[str, int, bool]] = set()
    for unit, mentions in zip(units, chain.from_iterable(executor.map(names, cut(units))), strict=True):
        for target, mention in mentions.items():
            link = sources[unit.owner], target, mention.kind in _ALIASES
            if unit.part == NO_PART:
                if link[0] == sources[target] or link in known:
                    continue
                known.add(link)
            found.append((unit, target, mention))
    said = Counter(target for _, target, mention in found if mention.kind == "text_alias")
    limit = max(_COMMON_LEAST, _COMMON_SHARE * len(heads))
    found = [one for one in found if said[one[1]] <= limit or one[2].kind not in _ALIASES]
    measured = [(weights[mention.kind], mention.share) for _, _, mention in found]
    strength = np.asarray(measured, dtype=np.float32).reshape(-1, 2)
    weight = strength.prod(axis=1) / (strength[:, 0].max(initial=0) or 1)  # a corpus of text alone loses nothing
    properties = [
        {"kind": mention.kind, "name": mention.name}
        | ({"column": unit.header[mention.column]} if mention.column < len(unit.header) else {})
        for unit, _, mention in found
    ]
    ends = np.asarray([(unit.owner, target, unit.part) for unit, target, _ in found], np.int32).reshape(-1, 3)
    codes = np.zeros(len(found), dtype=np.int16)
    columns = ends[:, 0], ends[:, 1], codes, [MENTIONS], weight, ends[:, 2]
    return EdgeTable.build(len(nodes), *columns, properties=properties)


def shared_name_links(nodes: NodeTable, entities: Bearers, settings: LinkSettings | None = None) -> EdgeTable:
    """Return a ``SHARES_NAME`` edge for every two sources that share a name which no node bears.

    Such a name joins what a chain of facts needs: a film and another one of its director, who has no page; a town in
    Maryland and *History of Maryland*. Either few texts say it, or few titles hold it. The edge joins the first chunks
    that say it; its property is the rarest such name. Names are the entities that metadata found, without those that
    are part of the names of both: a series has its name in all its titles.
    """
    settings = settings or LinkSettings()
    tables = ["table_rows" in given for given in nodes.properties]
    found = _shared_names(nodes, entities, settings, tables) if settings.shared_weight else {}
    low, high = np.asarray([*found], dtype=np.int32).reshape(-1, 2).T
    text = settings.kind_weights.get("text", 1.0)
    weight = settings.shared_weight * (text / max(settings.kind_weights.values()) if any(tables) else 1.0)
    about = [{"name": name} for name in found.values()]
    codes = np.zeros(len(low), dtype=np.int16)
    return EdgeTable.build(len(nodes), low, high, codes, [SHARES_NAME], np.full(len(low), weight), properties=about)


def _shared_names(
    nodes: NodeTable, entities: Bearers, settings: LinkSettings, tables: Sequence[bool]
) -> dict[tuple[int, int], str]:
    """Return the rarest name of every two texts to be linked, the lower position first."""
    source, place = (column.tolist() for column in sources_of(nodes))

    def first_of(chosen: Iterable[int]) -> list[int]:
        first: dict[int, int] = {}
        for node in sorted((node for node in chosen if not tables[node]), key=lambda node: (place[node], node)):
            first.setdefault(source[node], node)
        return [*first.values()]

    borne = {normalize_name(name) for node in nodes for name in _names_of(node)}
    unborne = {normalize_name(name) for name in entities.names if speaks(words_of(name))} - borne
    titles = [f" {normalize_name(name)} " for name in nodes.names]
    titled: dict[str, list[int]] = defaultdict(list)
    for node, title in enumerate(titles):
        for name in unborne.intersection(() if tables[node] else _parts_of(title)):
            titled[name].append(node)
    most = min(settings.max_sharers, max(2, int(_SHARED_BY * len(set(source)))))
    found: dict[tuple[int, int], str] = {}
    incidence = entities.incidence.tocsc()
    for name, (start, stop) in zip(entities.names, pairwise(incidence.indptr.tolist()), strict=True):  # rarest first
        if (key := normalize_name(name)) not in unborne:
            continue
        sayers, heads = first_of(incidence.indices[start:stop].tolist()), first_of(titled[key])
        pairs = [*combinations(sayers, 2)] if len(sayers) <= most else []
        if len(heads) <= _MAX_TITLED and len(sayers) <= settings.max_bearers:
            pairs += product(sayers, heads)
        for one, other in pairs:
            if source[one] != source[other] and not all(f" {key} " in titles[node] for node in (one, other)):
                found.setdefault((min(one, other), max(one, other)), name)
    return found


def _parts_of(title: str) -> Iterator[str]:
    words = title.split()
    for start in range(len(words)):
        for stop in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1):
            yield " ".join(words[start:stop])


def _names_of(node: Node) -> list[str]:
    """Return what a node is called, its name first; a record also by its id, those of chunks and segments are made."""
    aliases = node.properties.get("aliases") or ()
    given = [aliases] if isinstance(aliases, str) else [alias for alias in aliases if isinstance(alias, str)]
    made = "source_id" in node.properties or node.label in ("Document", "Table")
    short = [name for name in short_names(node.name) if not name.isdigit()]  # a year in a cell means no film
    return [node.name, *short, *given, *([] if made else [node.id])]


def _units(nodes: NodeTable) -> Iterator[_Unit]:
    for owner, node in enumerate(nodes):
        rows = node.properties.get("table_rows")
        text = node.text if rows is None else str(node.properties.get("table_context") or "")
        if text:
            yield _Unit(owner, NO_PART, [text])
        header = [str(cell) for cell in node.properties.get("table_header") or ()]
        context = frozenset(words_of(" ".join([node.name, str(node.properties.get("section") or ""), *header])))
        for part, row in enumerate(rows or ()):
            yield _Unit(owner, part, [str(cell) for cell in row], header, context)


def speaks(words: Sequence[str]) -> bool:
    """Whether words can be a name by themselves: not stop words, single letters and numbers alone.

    Of Chinese characters and kana, which are a word each, two are enough; so is a code such as “P-1234”.
    """
    if sum(not word.isascii() and word.isalpha() for word in words) > 1:
        return True
    if any(word not in _STOP and len(word) > 1 and not word.isdigit() for word in words):
        return True
    return len(words) == 2 and len(words[0]) == 1 and words[0].isalpha() and words[1].isdigit() and len(words[1]) > 2


class _Names:
    """The names of nodes: who bears one, which a text holds, and which a cell and its context make up."""

    def __init__(self, names: Sequence[tuple[int, Sequence[str]]], settings: LinkSettings) -> None:
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
            for words in [words for words, nodes in table.items() if len(nodes) > settings.max_bearers]:
                del table[words]
        self.rarity = {word: math.log(1 + len(self.bags) / len(bags)) for word, bags in self.postings.items()}
        self._spoken = [words for words in dict.fromkeys([*self.full, *self.alias]) if speaks(words)]
        self._gazetteer = Gazetteer([" ".join(words) for words in self._spoken])

    def __reduce__(self) -> Any:  # the names alone go to other processes
        return _Names, self._made_of

    def __call__(self, units: Sequence[_Unit]) -> list[dict[int, _Mention]]:
        """Return the nodes that each unit of a block names."""
        return [self._mentions(unit) for unit in units]

    def _mentions(self, unit: _Unit) -> dict[int, _Mention]:
        """Return the nodes that a unit names, each by the first of the kinds that applies."""
        best: dict[int, _Mention] = {}

        def add(nodes: Iterable[int], kind: str, column: int, name: Words, share: float = 1.0) -> None:
            if kind not in self._kinds:
                return
            for node in nodes:
                known = best.get(node)
                if node != unit.owner and (known is None or (_RANK[kind], -share) < (_RANK[known.kind], -known.share)):
                    best[node] = _Mention(kind, share, column, self.spelled.get(name, " ".join(name)))

        inside = "text" if unit.context is None else "inside"
        for column, cell in enumerate(unit.cells):
            words = tuple(words_of(cell))
            if unit.context is not None and words:
                add(self.full.get(words, ()), "exact", column, words)
                add(self.alias.get(words, ()), "alias", column, words)
                for node, share in self._completed(words, unit.context):
                    add([node], "completed", column, words, share)
            for match in self._gazetteer.find_words(words):
                name = self._spoken[match.name_index]
                if unit.context is None or name != words:
                    add(self.full.get(name, ()), inside, column, name)
                    add(self.alias.get(name, ()), f"{inside}_alias", column, name)
        return best

    def _completed(self, cell: Words, context: frozenset[str]) -> list[tuple[int, float]]:
        """Return the nodes whose name holds every word of a cell and otherwise mostly words of its context.

        With each comes the share of the name's rarity that cell and context cover.
        """
        need, rarity = frozenset(word for word in cell if word not in _STOP), self.rarity
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
            if need <= bag:
                rest = sorted(bag - need)
                said = sum(rarity[word] for word in rest if word in context)
                share = (got + said) / (got + sum(rarity[word] for word in rest))
                if said and share >= _MIN_COMPLETED:
                    out.append((node, share))
        return sorted(out, key=lambda found: (-found[1], found[0]))[:_MAX_COMPLETED]
