"""The kinds of paths that a graph has, and how well each fits the words around a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.planning.question import Cue, Reading
from graphret.planning.words import Lexicon, is_person, means_person, names_source

#: Longest path that is looked for, and paths of one length that are looked at.
MOST_HOPS, MOST_PATHS = 3, 2_000
#: Nodes looked at for a relation that is not known yet: where a word names one for sure, and where one may be of texts.
MANY, FEW = 64, 3

# What a path costs. Only their order of size matters: a word that names a relation and goes unread costs most, then an
# end of another kind than asked for, then a hop that no word names.
_HOP, _BACK, _ALONE, _OPEN, _ODD_PART = 0.1, 0.3, 0.4, 0.05, 0.6
_UNREAD, _UNREAD_TYPE, _UNREAD_AMONG = 1.0, 0.15, 0.4
_UNREAD_TWICE, _UNREAD_TWICE_OPEN = 0.2, 0.5
_UNKNOWN, _UNKNOWN_RELATIONAL = 0.2, 0.8
_TYPE, _TYPE_AT_START = 0.1, 0.6
_WRONG_END, _UNKNOWN_END = 2.5, 1.0
_UNNAMED, _UNNAMED_BACK, _UNNAMED_SHARED, _UNNAMED_TYPED, _UNNAMED_ASKED = 0.8, 0.3, 0.1, 0.1, 0.2

# Of the edges of a relation, the share that its main pairs of labels account for, and the share of them from which on
# two labels are seen to be borne by the same nodes.
_COVER, _ALSO = 0.98, 0.01

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """A relation followed in one direction, from nodes of a label to nodes of a label."""

    relation: str
    outgoing: bool
    start: str = ""
    label: str = ""

    @property
    def back(self) -> Hop:
        """The same relation the other way."""
        return Hop(self.relation, not self.outgoing, self.label, self.start)

    def __str__(self) -> str:
        return f"–{self.relation}→" if self.outgoing else f"←{self.relation}–"


@dataclass(frozen=True, slots=True)
class PathTable:
    """Paths from nodes of some labels: for each the numbers of its hops, -1 where it is shorter, ``(paths, 3)``.

    Parameters
    ----------
    odd
        What each costs where a node plays another part for one hop than for the next.
    open
        Whether a relation that is not known yet is to follow.
    """

    hops: NDArray[np.int64]
    odd: _Floats
    open: NDArray[np.bool_]


class _Word(NamedTuple):
    """How near a word is to each relation and to each label, and whether it names one at all."""

    relations: _Floats
    labels: _Floats

    @property
    def named(self) -> bool:
        return bool(self.relations.any() or self.labels.any())


class PathSpace:
    """The kinds of paths in a graph, by its relations and the labels that they join.

    Parameters
    ----------
    triples
        How many edges join each ``(source label, relation, target label)``; one counts under every pair of labels.
    totals
        How many edges each relation has, where nodes may bear several labels: of the pairs of labels those then count
        that account for its edges, and the others are other parts that the same nodes play.
    """

    def __init__(
        self,
        triples: Mapping[tuple[str, str, str], int],
        totals: Mapping[str, int] | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.lexicon = lexicon or Lexicon()
        pairs: dict[str, list[tuple[int, float, str, str]]] = defaultdict(list)
        for (source, relation, target), n in triples.items():
            kin = sum(self.lexicon.kinship(end.lower(), relation) for end in (source, target) if end)
            pairs[relation].append((-n, -kin, source, target))
        found: list[Hop] = []
        also: set[tuple[str, str]] = set()
        for relation, known in pairs.items():
            wanted, seen = _COVER * (totals or {}).get(relation, sum(-one[0] for one in known)), 0
            main: dict[tuple[str, str], int] = {}
            for n, _, source, target in sorted(known):
                if seen < wanted:
                    seen -= n
                    main[source, target] = -n
                    hop = Hop(relation, True, source, target)
                    found += [hop, hop.back]
                    continue
                for (one, other), most in main.items():
                    if -n >= _ALSO * most and (one == source or other == target):
                        also |= {(one, source), (source, one), (other, target), (target, other)}
        self.hops, self._also = sorted(found), also
        self.relations = sorted(pairs)
        self.labels = sorted({hop.label for hop in found})
        number = {hop: i for i, hop in enumerate(self.hops)}
        relation_at = {name: i for i, name in enumerate(self.relations)}
        label_at = {name: i for i, name in enumerate(self.labels)}
        self._relation = np.asarray([relation_at[hop.relation] for hop in self.hops], dtype=np.int64)
        self._label = np.asarray([label_at[hop.label] for hop in self.hops], dtype=np.int64)
        self._back = np.asarray([number[hop.back] for hop in self.hops], dtype=np.int64)
        self._person = np.asarray([is_person(name) for name in self.labels], dtype=bool)
        self._onward = [
            [
                (j, 0.0 if after.start == hop.label else _ODD_PART)
                for j, after in enumerate(self.hops)
                if after.start == hop.label or (hop.label, after.start) in also
            ]
            for hop in self.hops
        ]
        self.word = lru_cache(maxsize=4096)(self._word)
        self.table = lru_cache(maxsize=256)(self._table)

    def _word(self, word: str) -> _Word:
        near = self.lexicon.kinship
        relations, labels = ([near(word, name) for name in names] for names in (self.relations, self.labels))
        return _Word(np.asarray(relations, dtype=np.float64), np.asarray(labels, dtype=np.float64))

    def _table(self, labels: tuple[str, ...], open_ends: bool = False) -> PathTable:
        """The paths from nodes that bear these labels, those first on which each node plays one part."""
        level: list[tuple[tuple[int, ...], float]] = [
            ((i,), 0.0 if hop.start in labels else _ODD_PART)
            for i, hop in enumerate(self.hops)
            if hop.start in labels or any((one, hop.start) in self._also for one in labels)
        ]
        found: list[tuple[tuple[int, ...], float]] = []
        for _ in range(MOST_HOPS):
            found += level
            longer = [((*path, j), odd + more) for path, odd in level for j, more in self._onward[path[-1]]]
            level = sorted(longer, key=lambda one: one[1])[:MOST_PATHS]
        rows = [(path, odd, False) for path, odd in found]
        rows += [(path, odd, True) for path, odd in found if open_ends and len(path) < MOST_HOPS]
        hops = np.full((len(rows), MOST_HOPS), -1, dtype=np.int64)
        for place, (path, _, _) in enumerate(rows):
            hops[place, : len(path)] = path
        return PathTable(hops, np.asarray([odd for _, odd, _ in rows]), np.asarray([one for _, _, one in rows], bool))

    def path(self, row: NDArray[np.int64]) -> tuple[Hop, ...]:
        """The hops of a row of a table."""
        return tuple(self.hops[i] for i in row.tolist() if i >= 0)

    def costs(self, read: Sequence[Reading], labels: Sequence[str], table: PathTable) -> _Floats:
        """Return what each path costs under the reading that fits it best, ``(paths,)``."""
        if not len(table.hops):
            return np.empty(0)
        costs: _Floats = np.min([_Fit(self, reading, labels, table).costs() for reading in read], axis=0)
        return costs

    def lacking(self, reading: Reading) -> int:
        """How many nodes are worth a look for a relation that is not known yet."""
        nouns = [word for word in reading.asked if not means_person(word)]
        if nouns and any(self.labels) and not any(self.word(word).named for word in nouns):
            return MANY
        unknown = [cue.word for cue in reading.cues if not self.names_thing(cue.word)]
        return MANY if any(map(self.lexicon.is_relational, unknown)) else FEW if unknown else 0

    def names_thing(self, word: str) -> bool:
        """Whether a word names a relation or a label of things; one of people may well name a relation to come."""
        known = self.word(word)
        return bool(known.relations.any() or (known.labels[~self._person] > 0).any())


class _Fit:
    """What the paths of a table cost under one reading of a question, from a node of some labels."""

    def __init__(self, space: PathSpace, reading: Reading, labels: Sequence[str], table: PathTable) -> None:
        self.space, self.reading, self.labels, self.table = space, reading, labels, table
        nouns = [word for word in reading.asked if not means_person(word)]
        # of "who are the directors" the noun, if it is known
        self.asked = tuple(word for word in nouns if space.word(word).named) or reading.asked
        self.typed = any(space.labels)
        self.asked_unknown = bool(nouns) and self.typed and not any(space.word(word).named for word in nouns)
        words = [space.word(cue.word) for cue in reading.cues]
        self.near = np.stack([word.relations for word in words]) if words else np.zeros((0, len(space.relations)))
        self.kinds = np.stack([word.labels for word in words]) if words else np.zeros((0, len(space.labels)))
        hops = table.hops
        self.there = hops >= 0
        self.last = hops[np.arange(len(hops)), self.there.sum(axis=1) - 1]
        self.turns = self.there.copy()
        self.turns[:, 0] = False
        self.turns[:, 1:] &= hops[:, 1:] == space._back[hops[:, :-1]]

    def costs(self) -> _Floats:
        reading, table = self.reading, self.table
        cost = table.odd + reading.cost + _HOP * self.there.sum(axis=1)
        if not reading.together:
            cost += _BACK * self.turns.sum(axis=1)
        else:
            cost += np.where(self.turns.any(axis=1) | table.open, 0.0, _ALONE)
        answers = self._answers(generally=True)
        wrong = (_WRONG_END if answers.any() else _UNKNOWN_END) * ~answers[self.last]
        if not reading.asked or not self.typed:
            wrong = np.zeros(len(cost))
        cost += np.where(table.open, _HOP + _OPEN if self.space.lacking(reading) else np.inf, wrong)
        return np.asarray(cost + self._alignment(), dtype=np.float64)

    def _answers(self, *, generally: bool) -> NDArray[np.bool_]:
        """Of which hops the end is of the kind asked for; `generally` if any person will do for "who"."""
        space = self.space
        found = np.zeros(len(space.hops), dtype=bool)
        for word in self.asked:
            if means_person(word):
                if generally:
                    found |= space._person[space._label]
                continue
            known = space.word(word)
            found |= known.labels[space._label] > 0
            if not known.labels.any():
                for i in np.flatnonzero(known.relations[space._relation]).tolist():
                    hop = space.hops[i]
                    found[i] |= hop.outgoing != names_source(word, hop.relation)
        return found

    def _alignment(self) -> _Floats:
        """The least cost of reading the words along each path: each at a hop or a node, in order, or not at all.

        An edit distance: `costs[i]` is that of the first `i` words, after each hop in turn.
        """
        space, cues, n = self.space, self.reading.cues, len(self.reading.cues)
        twice = np.where(self.table.open, _UNREAD_TWICE_OPEN, _UNREAD_TWICE)
        near = [self.near.T[space._relation[self.table.hops[:, place]]] for place in range(MOST_HOPS)]
        elsewhere = np.any([kin * self.there[:, [place]] > 0 for place, kin in enumerate(near)], axis=0)
        unread = [self._unread(i, cue) for i, cue in enumerate(cues)]
        also = np.asarray([again for _, again in unread], dtype=bool)
        skip = np.where(elsewhere & also, twice[:, None], np.asarray([cost for cost, _ in unread], dtype=np.float64))
        start = self._as_type(np.isin(space.labels, list(self.labels))[None, :], _TYPE_AT_START)[0]
        kinds = self._as_type(np.eye(len(space.labels), dtype=bool), _TYPE)
        costs = np.zeros((len(self.table.hops), n + 1))
        costs[:, 1:] = np.cumsum(np.minimum(skip, start), axis=1)
        for place, kin in enumerate(near):
            unnamed = self._unnamed(place)
            at_node = kinds[space._label[self.table.hops[:, place]]]
            named = np.where(kin > 0, (1 - kin) / 2, np.inf)
            pass_by = np.minimum(skip, at_node)
            stay = np.minimum(pass_by, named + twice[:, None])
            after, read = [costs[:, 0] + unnamed], np.full(len(costs), np.inf)  # read: with the hop named by a word
            for i in range(n):
                read = np.minimum(costs[:, i] + named[:, i], read + stay[:, i])
                left = np.minimum(costs[:, i + 1] + unnamed, after[i] + pass_by[:, i])
                typed = costs[:, i] + np.minimum(unnamed, _UNNAMED_TYPED) + at_node[:, i]
                after.append(np.minimum(np.minimum(left, typed), read))
            costs = np.where(self.there[:, [place]], np.stack(after, axis=1), costs)
        return np.asarray((costs + self._ends(skip)).min(axis=1))

    def _unread(self, i: int, cue: Cue) -> tuple[float, bool]:
        """What it costs not to read a word, and whether it costs less where a path reads it elsewhere."""
        if cue.title:
            return 0.0, False
        word = self.space.word(cue.word)
        if not word.named:
            return _UNKNOWN_RELATIONAL if self.space.lexicon.is_relational(cue.word) else _UNKNOWN, False
        if not word.relations.any():
            return _UNREAD_TYPE if self.space.names_thing(cue.word) else _UNKNOWN_RELATIONAL, False
        return _UNREAD_AMONG * (1 - i / len(self.reading.cues) / 2) if self.reading.among else _UNREAD, True

    def _as_type(self, names: NDArray[np.bool_], cost: float) -> _Floats:
        """What it costs to read each word as one of the labels of a row; infinite where it can't be."""
        fits = (self.kinds @ names.T > 0).T
        free = [cue.title or not self.near[i].any() for i, cue in enumerate(self.reading.cues)]
        return np.where(fits, np.where(free, 0.0, cost), np.inf)

    def _unnamed(self, place: int) -> _Floats:
        """What it costs that no word names the hop at a place of each path."""
        hops = self.table.hops[:, place]
        back = _UNNAMED_SHARED if self.reading.together else _UNNAMED_BACK
        cost = np.where(self.turns[:, place], back, _UNNAMED)
        kin = [self.space.word(word).relations for word in self.asked]
        asked = (np.max(kin, axis=0) if kin else np.zeros(len(self.space.relations)))[self.space._relation[hops]]
        ends = (self.there.sum(axis=1) == place + 1) & ~self.table.open & self._answers(generally=False)[hops]
        return np.where(ends, np.where(asked > 0, 0.0, _UNNAMED_ASKED), cost)

    def _ends(self, skip: _Floats) -> _Floats:
        """What it costs to end with the words from each on unread.

        A relation that is not known yet reads the first word that it may be named by, and whatever follows that.
        """
        rows, n = skip.shape
        unread, until = np.zeros(rows), np.full(rows, np.inf)
        ends = np.zeros((rows, n + 1))
        for i in reversed(range(n + 1)):
            if i < n:
                unread = unread + skip[:, i]
                free = not self.space.names_thing(self.reading.cues[i].word)
                until = np.zeros(rows) if free else skip[:, i] + until
            most = np.minimum(until, unread) if self.asked_unknown else until
            ends[:, i] = np.where(self.table.open, np.where(most == np.inf, _UNREAD, most), unread)
        return ends
