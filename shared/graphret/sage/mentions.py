"""Which nodes a text, or a row of a table, names, and in which way."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphret.columns import TextArray
from graphret.edges import NO_ROW
from graphret.linking.gazetteer import Gazetteer
from graphret.linking.layered import Layered
from graphret.linking.name_table import (
    NamedNode,
    name_table_parts,
    saved_name_table,
    updated_postings,
)
from graphret.linking.usage import NameUse, use_at
from graphret.sage.names import MAX_NAME_WORDS, without_stop_words
from graphret.sage.settings import KIND_WEIGHTS, LinkSettings
from graphret.stopwords import NAME_STOP_WORDS, is_informative
from graphret.storage import Bundle, Parts
from graphret.text import words as words_of
from graphret.text_index import SavedLists, TextIndex, starts_of
from graphret.types import Node

Words: TypeAlias = tuple[str, ...]
#: The id of a node with a word in its full name, and that name.
Posting: TypeAlias = tuple[str, str]

# What completes a cell to a name: cells of so many words at most, by words that begin
# so many names at most, where cell and context cover this share of the name's rarity;
# and so many links of a cell.
_MAX_CELL_WORDS, _MAX_POSTINGS, _MAX_COMPLETED = 6, 3000, 3
MIN_COMPLETED = 0.6
_RANK = {kind: rank for rank, kind in enumerate(KIND_WEIGHTS)}


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A stretch of text: a node's body as one cell, or a table row with its context."""

    owner: int
    row: int
    cells: Sequence[str]
    header: Sequence[str] = ()
    context: frozenset[str] | None = None


class Mention(NamedTuple):
    """How a unit names a node: the kind, the share of the name said, the column."""

    kind: str
    share: float
    column: int
    name: str


def _empty() -> Layered[Any, Any]:
    return Layered({})


class Name(NamedTuple):
    """A name of a node: its words, its spelling, and whether it is the full one."""

    words: Words
    spelled: str
    is_full: bool


def units_of(nodes: Iterable[tuple[int, Node]]) -> Iterator[TextUnit]:
    """Yield the texts and the rows of nodes, which come with their positions."""
    for owner, node in nodes:
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


class WordRarity:
    """How rare a word is in the names of nodes, as it was when this was fitted.

    It stays as thresholds do: else every name that comes would change what the cells of
    all tables make up.
    """

    def __init__(self, n_names: int, counts: Mapping[str, int]) -> None:
        # fitted where nothing had a name, every word is as rare as another
        self.n_names, self.counts = max(1, n_names), dict(counts)

    def __call__(self, word: str) -> float:
        """Return the rarity of a word; one that no name had is as rare as can be."""
        return math.log(1 + self.n_names / self.counts.get(word, 1))

    def parts(self) -> Parts:
        """The rarity as it is saved."""
        counts = np.fromiter(self.counts.values(), np.int64, len(self.counts))
        parts = Parts({"counts": counts}, {"n_names": self.n_names})
        parts.add_texts("words", TextArray.of(self.counts))
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> WordRarity:
        """Open a saved rarity."""
        words = bundle.texts("words").tolist()
        counts = bundle.arrays["counts"].tolist()
        return cls(bundle.meta["n_names"], dict(zip(words, counts, strict=True)))


@dataclass(frozen=True, eq=False)
class NodeNames:
    """The names of nodes, and who bears them.

    It finds which names a text holds, and which a cell and its context make up. Never
    changed once made; `changed` makes the next.

    Parameters
    ----------
    full, alias
        Who bears a name, given by its words, as the full one, or as another.
    postings
        Who has a word in the full name, and that name.
    rarity
        That of words; `None` until `fitted`.
    saved
        What they were opened from, where they were.
    """

    settings: LinkSettings
    full: Layered[str, tuple[NamedNode, ...]] = field(default_factory=_empty)
    alias: Layered[str, tuple[NamedNode, ...]] = field(default_factory=_empty)
    postings: Layered[str, tuple[Posting, ...]] = field(default_factory=_empty)
    gazetteer: Gazetteer = field(default_factory=Gazetteer)
    rarity: WordRarity | None = None
    saved: Parts | None = None

    def __reduce__(self) -> Any:  # who bears names alone goes to other processes
        tables = self.full.as_dict(), self.alias.as_dict()
        return NodeNames.of, (self.settings, *tables, self.rarity, [*self.gazetteer])

    @classmethod
    def of(
        cls,
        settings: LinkSettings,
        full: dict[str, tuple[NamedNode, ...]],
        alias: dict[str, tuple[NamedNode, ...]],
        rarity: WordRarity | None,
        spoken_names: Sequence[str],
    ) -> NodeNames:
        """Return the names that nodes bear, in full or as aliases.

        `spoken_names` are those that a text can say.
        """
        postings: dict[str, list[Posting]] = defaultdict(list)
        for spoken, bearers in full.items():
            for word in _bag(spoken):
                postings[word].extend((id_, spoken) for id_, _ in bearers)
        sorted_postings = {word: tuple(sorted(of)) for word, of in postings.items()}
        gazetteer = Gazetteer()
        for spoken in spoken_names:
            gazetteer.add_words(spoken.split(" "))
        return cls(
            settings,
            full=Layered(full),
            alias=Layered(alias),
            postings=Layered(sorted_postings),
            gazetteer=gazetteer,
            rarity=rarity,
        )

    def parts(self) -> Parts:
        """The names as they are saved."""
        if self.saved is not None:
            return self.saved
        parts = Parts()
        parts.add("full", name_table_parts(self.full))
        parts.add("alias", name_table_parts(self.alias))
        parts.add("postings", _posting_parts(self.full))
        spoken = TextIndex.of(TextArray.of_strings(self.gazetteer))
        parts.add("spoken", spoken.parts())
        parts.add("gazetteer", self.gazetteer.parts())
        if self.rarity is not None:
            parts.add("rarity", self.rarity.parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle, settings: LinkSettings) -> NodeNames:
        """Open saved names."""
        full, alias = (saved_name_table(bundle.sub(of)) for of in ("full", "alias"))
        spoken = TextIndex.from_bundle(bundle.sub("spoken"))
        return cls(
            settings,
            full,
            alias,
            _saved_postings(bundle.sub("postings"), bundle.sub("full")),
            Gazetteer.from_bundle(bundle.sub("gazetteer"), spoken),
            WordRarity.from_bundle(bundle.sub("rarity")),
            saved=bundle,
        )

    def packed(self) -> NodeNames:
        """Return the same names in arrays, where they take a third of the memory."""
        return self.from_bundle(Bundle.of(self.parts()), self.settings)

    def changed(
        self, gone: Mapping[str, Sequence[str]], come: Mapping[str, Sequence[str]]
    ) -> tuple[NodeNames, Renamed]:
        """Return the names after nodes lose or gain some, and what changed for texts.

        Both say by the id of a node which names it bore, or bears now. What changed are
        the names that a text may say otherwise now.
        """
        left, new = (
            [(id_, name) for id_, own in nodes.items() for name in _names(own)]
            for nodes in (gone, come)
        )
        lost, found = (
            {id_: name.words for id_, name in names if name.is_full}
            for names in (left, new)
        )
        after = replace(
            self,
            full=updated_postings(self.full, *_bearers(left, new, full=True)),
            alias=updated_postings(self.alias, *_bearers(left, new, full=False)),
            postings=updated_postings(self.postings, _postings(lost), _postings(found)),
            saved=None,
        )
        phrases = {name.words for _, name in (*left, *new)}
        full = [*lost.values(), *found.values()]
        renamed = Renamed(
            [words for words in phrases if self._borne(words) != after._borne(words)],
            full,
            [
                word
                for words in full
                for word in words
                if self._completes(word) != after._completes(word)
            ],
        )
        return replace(after, gazetteer=after._spoken(renamed.phrases)), renamed

    def fitted(self) -> NodeNames:
        """Return the names with the rarity that words have in them now."""
        postings = self.postings.as_dict()
        counts = {word: len(bearers) for word, bearers in postings.items()}
        n_named = sum(map(len, self.full.as_dict().values()))
        return replace(self, rarity=WordRarity(n_named, counts), saved=None)

    def _spoken(self, phrases: Iterable[Words]) -> Gazetteer:
        """Return the gazetteer after some names changed."""
        come, gone = list[Words](), list[Words]()
        for words in phrases:
            full, alias, spelled = self._borne(words)
            said = is_informative(words, NAME_STOP_WORDS) or is_capitals(spelled)
            (come if said and (full or alias) else gone).append(words)
        return self.gazetteer.changed(come, gone)

    def _borne(self, words: Words) -> tuple[Sequence[str], Sequence[str], str]:
        """Return who bears a name in full, who as an alias, and how it is spelled.

        A side that too many nodes bear is empty. The spelling is that of the first
        bearer.
        """
        spoken = " ".join(words)
        sides = self.full.get(spoken, ()), self.alias.get(spoken, ())
        full, alias = (
            [id_ for id_, _ in side]
            if len(side) <= self.settings.max_nodes_per_name
            else []
            for side in sides
        )
        first = min((side[0] for side in sides if side), default=("", spoken))
        return full, alias, first[1]

    def _completes(self, word: str) -> bool:
        """Whether a word is in so few names that a cell of it can be completed."""
        return self.postings.count(word) <= _MAX_POSTINGS

    def __call__(self, units: Sequence[TextUnit]) -> list[dict[str, Mention]]:
        """Return the nodes that each unit of a block names, by id."""
        return [self._mentions(unit) for unit in units]

    def _mentions(self, unit: TextUnit) -> dict[str, Mention]:
        """Return the nodes that a unit names, its own too.

        Each comes with the first of the kinds that applies.
        """
        best: dict[str, Mention] = {}

        def add(
            nodes: Iterable[str],
            kind: str,
            column: int,
            spelled: str,
            share: float = 1.0,
        ) -> None:
            if kind not in self.settings.kind_weights:
                return
            for node in nodes:
                known = best.get(node)
                if known is None or (_RANK[kind], -share) < (
                    _RANK[known.kind],
                    -known.share,
                ):
                    best[node] = Mention(kind, share, column, spelled)

        inside = "text" if unit.context is None else "inside"
        for column, cell in enumerate(unit.cells):
            words = tuple(words_of(cell))
            if unit.context is not None and words:
                full, alias, spelled = self._borne(words)
                add(full, "exact", column, spelled)
                add(alias, "alias", column, spelled)
                for node, share in self._completed(words, unit.context):
                    add([node], "completed", column, spelled, share=share)
            for match in self.gazetteer.find_words(words):
                name = words[match.start : match.end]
                full, alias, spelled = self._borne(name)
                if not is_informative(name, NAME_STOP_WORDS) and not _says_capitals(
                    spelled, cell
                ):
                    continue
                if unit.context is None or name != words:
                    add(full, inside, column, spelled)
                    add(alias, f"{inside}_alias", column, spelled)
        return best

    def _completed(
        self, cell: Words, context: frozenset[str]
    ) -> list[tuple[str, float]]:
        """Return the nodes whose name a cell and its context make up.

        Such a name holds every word of the cell and otherwise mostly words of the
        context. With each comes the share of the name's rarity that cell and context
        cover.
        """
        need, rarity = without_stop_words(cell), self.rarity
        if rarity is None or not need or len(cell) > _MAX_CELL_WORDS:
            return []
        n_names = {word: self.postings.count(word) for word in need}
        if not all(n_names.values()):
            return []
        if all(
            word.isdigit() and len(word) != 4 for word in need
        ):  # a year says something, another number does not
            return []
        rarest, *others = sorted(need, key=lambda word: (n_names[word], word))
        if not self._completes(rarest):
            return []
        # most names with the rarest word lack the next one: they are not cut in words
        next_rarest = others[0] if others else ""
        got = sum(rarity(word) for word in sorted(need))
        out = []
        for node, spoken in self.postings[rarest]:
            if next_rarest not in spoken:
                continue
            words = spoken.split(" ")
            if not context.isdisjoint(words) and need <= (bag := {*words}):
                rest = sorted(bag - need)
                said = sum(rarity(word) for word in rest if word in context)
                share = (got + said) / (got + sum(rarity(word) for word in rest))
                if said and share >= MIN_COMPLETED:
                    out.append((node, share))
        return sorted(out, key=lambda found: (-found[1], found[0]))[:_MAX_COMPLETED]


@dataclass(frozen=True)
class Renamed:
    """What a text may say otherwise after names changed.

    Parameters
    ----------
    phrases
        Names that other nodes have now, or none.
    full
        The full names that came or went.
    words
        Words by which cells are completed no longer, or again.
    """

    phrases: Sequence[Words]
    full: Sequence[Words]
    words: Sequence[str]


def is_capitals(name: str) -> bool:
    """Whether a name of stop words, IT or AT&T, is one where a text says it so."""
    return len(name) > 1 and name.isupper()


def _says_capitals(name: str, text: str) -> bool:
    """Whether a text uses stop words in capitals as the name that they are."""
    return any(
        use_at(text, *said.span(), name) is NameUse.NAME
        for said in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    )


def _names(own: Sequence[str]) -> Iterator[Name]:
    """Yield the names of a node, of which the first is its full name, each once."""
    seen: set[Words] = set()
    for nth, name in enumerate(own):
        words = tuple(words_of(name))
        if words and len(words) <= MAX_NAME_WORDS and words not in seen:
            seen.add(words)
            yield Name(words, name, is_full=not nth)


def _bearers(
    *changes: Sequence[tuple[str, Name]], full: bool
) -> Iterator[list[tuple[str, NamedNode]]]:
    """Yield of each change the full names or the others, with who bears them."""
    for change in changes:
        yield [
            (" ".join(name.words), (id_, name.spelled))
            for id_, name in change
            if name.is_full == full
        ]


def _postings(full: Mapping[str, Words]) -> list[tuple[str, Posting]]:
    """Return the postings of full names, given by who bears them."""
    bearers = [((id_, " ".join(words)), words) for id_, words in full.items()]
    return [(word, bearer) for bearer, words in bearers for word in words]


def _bag(spoken: str) -> frozenset[str]:
    """Return the words of a name."""
    return frozenset(spoken.split(" "))


def _posting_parts(full: Layered[str, tuple[NamedNode, ...]]) -> Parts:
    """Return which full names have each word, as it is saved: as bearers of `full`."""
    bearers = [(id_, spoken) for spoken, of in full.as_dict().items() for id_, _ in of]
    places: dict[str, list[int]] = defaultdict(list)
    for place in sorted(range(len(bearers)), key=bearers.__getitem__):
        for word in _bag(bearers[place][1]):
            places[word].append(place)
    every = np.fromiter(chain.from_iterable(places.values()), np.int32)
    parts = Parts({"starts": starts_of(places.values()), "places": every})
    parts.add("words", TextIndex.of(TextArray.of_strings(places)).parts())
    return parts


def _saved_postings(bundle: Bundle, full: Bundle) -> Layered[str, tuple[Posting, ...]]:
    """Open what `_posting_parts` saved, given the saved table of full names."""
    ids, names = full.texts("ids"), TextIndex.from_bundle(full.sub("names")).texts
    starts, places = full.arrays["starts"], bundle.arrays["places"]

    def postings(at: slice) -> list[Posting]:
        bearers = places[at].astype(np.int64)
        of_bearers = np.searchsorted(starts, bearers, side="right") - 1
        spoken = names.take(of_bearers).tolist()
        return [*zip(ids.take(bearers).tolist(), spoken, strict=True)]

    words = TextIndex.from_bundle(bundle.sub("words"))
    return Layered(SavedLists(words, bundle.arrays["starts"], postings))
