"""The kinds of paths in a graph, and how well each fits the words around a name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.linking.words import ALIKE, Lexicon, is_person, names_source
from graphret.planning.patterns import Hop
from graphret.planning.question import QuestionReading

#: Longest path that is looked for, and paths of one length that are looked at.
MOST_HOPS, MOST_PATHS = 3, 2_000
#: A relation that is not known yet; words that name nothing known may name it, and it
#: is the last of a path.
UNKNOWN = "?"

_ANYONE = ("who", "whom", "person", "persons", "people", "somebody", "someone")

# What a path costs. Only their order of size matters: an end of another kind than asked
# for costs most, then a word that names a relation and goes unread, then a hop that no
# word names.
_HOP, _BACK, _ALONE = 0.1, 0.3, 0.4
_UNREAD, _UNREAD_AMONG, _UNREAD_TWICE, _UNREAD_UNKNOWN, _UNREAD_RELATIONAL = (
    1.0,
    0.4,
    0.2,
    0.2,
    0.8,
)
_TYPE, _TURNED, _OTHER_PART = 0.1, 0.05, 0.6
_WRONG_END, _UNKNOWN_END = 2.5, 1.0
_UNNAMED, _UNNAMED_BACK, _UNNAMED_SHARED, _UNNAMED_TYPED, _UNNAMED_ASKED = (
    0.8,
    0.3,
    0.1,
    0.1,
    0.2,
)

_Floats: TypeAlias = NDArray[np.float64]
_Hops: TypeAlias = NDArray[np.int64]


class _WordKinship(NamedTuple):
    """How near a word is to each relation and label.

    Also whether it names a relation, anything known, or any person.
    """

    relations: _Floats
    labels: _Floats
    relational: bool
    known: bool
    anyone: bool


class PathSpace:
    """The kinds of paths in a graph, by its relations and the labels that they join.

    Parameters
    ----------
    triples
        How many edges join each ``(source label, relation, target label)``; one counts
        under every pair of labels.
    totals
        How many edges each relation has, where nodes may have several labels: of the
        pairs of labels those then count that account for its edges; in others the same
        nodes play another part.
    lexicon
        Which words may name which relations and labels.
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
            kin = sum(
                self.lexicon.kinship(end.lower(), relation)
                for end in (source, target)
                if end
            )
            pairs[relation].append((-n, -kin, source, target))
        hops: set[Hop] = set()
        for relation, label_pairs in pairs.items():
            remaining = (totals or {}).get(relation, math.inf)
            for n, _, source, target in sorted(label_pairs):
                if remaining > 0:
                    remaining += n
                    hop = Hop(relation, True, source, target)
                    hops |= {hop, hop.back}
        self.hops = sorted(hops)
        self.relations = sorted({hop.relation for hop in hops})
        self.labels = sorted(
            {label for hop in hops for label in (hop.start, hop.label)}
        )
        self.number = {hop: i for i, hop in enumerate(self.hops)}
        label_at = {label: i for i, label in enumerate(self.labels)}
        self.relation_of = np.asarray(
            [self.relations.index(hop.relation) for hop in self.hops], dtype=np.int64
        )
        self.start_of = np.asarray(
            [label_at[hop.start] for hop in self.hops], dtype=np.int64
        )
        self.label_of = np.asarray(
            [label_at[hop.label] for hop in self.hops], dtype=np.int64
        )
        self.back_of = np.asarray(
            [self.number.get(hop.back, -1) for hop in self.hops], dtype=np.int64
        )
        self.person = np.asarray([is_person(name) for name in self.labels], dtype=bool)
        self.unknown = np.asarray(
            [name == UNKNOWN for name in self.relations], dtype=bool
        )
        self._onward = [
            [
                j
                for j, after in enumerate(self.hops)
                if self._same(hop.label, after.start) and hop.relation != UNKNOWN
            ]
            for hop in self.hops
        ]
        self.word = lru_cache(maxsize=4096)(self._word)
        self.table = lru_cache(maxsize=256)(self._table)

    @staticmethod
    def _same(label: str, other: str) -> bool:
        """Whether nodes of a label may have the other: a director may act as well."""
        return label == other or (is_person(label) and is_person(other))

    def _word(self, word: str) -> _WordKinship:
        relations, labels = (
            np.asarray(
                [self.lexicon.kinship(word, name) for name in names], dtype=np.float64
            )
            for names in (self.relations, self.labels)
        )
        relational = bool(relations.any())
        # the name of people may well name a relation to come
        if not relational and not labels[~self.person].any():
            relations[self.unknown] = ALIKE
        return _WordKinship(
            relations,
            labels,
            relational,
            relational or bool(labels.any()),
            word in _ANYONE,
        )

    def _table(self, labels: tuple[str, ...]) -> _Hops:
        """The paths from nodes of some labels, as hop numbers, ``(paths, 3)``.

        -1 where a path is shorter.
        """
        begin = (
            i
            for i, hop in enumerate(self.hops)
            if hop.start in labels and hop.relation != UNKNOWN
        )
        level, paths = (
            list[tuple[int, ...]](zip(begin, strict=True)),
            list[tuple[int, ...]](),
        )
        for _ in range(MOST_HOPS):
            paths += level
            level = [(*path, j) for path in level for j in self._onward[path[-1]]][
                :MOST_PATHS
            ]
        hops = np.full((len(paths), MOST_HOPS), -1, dtype=np.int64)
        for place, path in enumerate(paths):
            hops[place, : len(path)] = path
        return hops

    def path(self, row: _Hops) -> tuple[Hop, ...]:
        """The hops of a row of a table."""
        return tuple(self.hops[i] for i in row.tolist() if i >= 0)

    def costs(
        self, read: Sequence[QuestionReading], labels: Sequence[str], hops: _Hops
    ) -> _Floats:
        """Return the cost of each path of a table under its best reading."""
        return np.asarray(
            np.min(
                [_PathCosts(self, reading, labels, hops).costs() for reading in read],
                axis=0,
            )
        )


class _PathCosts:
    """The costs of a table's paths under one reading of a question."""

    def __init__(
        self,
        space: PathSpace,
        reading: QuestionReading,
        labels: Sequence[str],
        hops: _Hops,
    ) -> None:
        self.space, self.reading, self.hops = space, reading, hops
        self.start = np.isin(space.labels, list(labels))
        self.is_hop = hops >= 0
        self.length = self.is_hop.sum(axis=1)
        self.last = hops[np.arange(len(hops)), self.length - 1]
        self.turns = np.zeros_like(self.is_hop)
        self.turns[:, 1:] = self.is_hop[:, 1:] & (
            hops[:, 1:] == space.back_of[hops[:, :-1]]
        )
        self.words = [space.word(cue) for cue in reading.cues]
        # of "who are the directors" the noun, if it is known or may come to be
        noun_kinships = [(noun, space.word(noun)) for noun in reading.asked_nouns]
        nouns = [
            noun
            for noun, word in noun_kinships
            if not word.anyone and (word.known or space.unknown.any())
        ]
        self.asked_nouns = nouns or reading.asked_nouns
        self.answers = self._answers()

    def costs(self) -> _Floats:
        space, hops = self.space, self.hops
        other = self.is_hop[:, 1:] & (
            space.start_of[hops[:, 1:]] != space.label_of[hops[:, :-1]]
        )
        cost = _HOP * self.length + _OTHER_PART * other.sum(axis=1) + self._alignment()
        unknown = space.unknown[space.relation_of]
        if not self.reading.together:
            cost += _BACK * self.turns.sum(axis=1)
        else:
            cost += _ALONE * ~(self.turns.any(axis=1) | unknown[self.last])
        if self.asked_nouns and any(space.labels):
            right = self.answers | (
                space.person[space.label_of]
                & any(space.word(word).anyone for word in self.asked_nouns)
            )
            wrong = _WRONG_END if right[~unknown].any() else _UNKNOWN_END
            cost += wrong * ~(right | unknown)[self.last]
        return np.asarray(cost, dtype=np.float64)

    def _answers(self) -> NDArray[np.bool_]:
        """Of which hops the end is of the kind that a noun asks for."""
        space = self.space
        answering = np.zeros(len(space.hops), dtype=bool)
        for word in self.asked_nouns:
            kinship = space.word(word)
            if kinship.anyone:
                continue
            answering |= kinship.labels[space.label_of] > 0
            if not kinship.labels.any():
                for i in np.flatnonzero(kinship.relations[space.relation_of]).tolist():
                    hop = space.hops[i]
                    answering[i] |= hop.outgoing != names_source(word, hop.relation)
        return answering

    def _alignment(self) -> _Floats:
        """Return the least cost of reading the words in order along each path.

        An edit distance: each word is read at a hop, at a node or not at all.
        `costs[:, i]` is that of the first `i` words, after each hop in turn.
        """
        at_hop = self._costs_at_hops()
        at_label = self._costs_at_labels()
        skip = self._costs_unread(at_hop)
        at_start = np.minimum(skip, at_label[self.start].min(axis=0, initial=np.inf))
        costs = np.zeros((len(self.hops), len(self.words) + 1))
        costs[:, 1:] = np.cumsum(at_start, axis=1)
        for place in range(MOST_HOPS):
            at_node = at_label[self.space.label_of[self.hops[:, place]]]
            unnamed = self._unnamed(place)
            after = _after_hop(costs, at_hop[:, place], at_node, skip, unnamed)
            costs = np.where(self.is_hop[:, [place]], after, costs)
        return costs[:, -1]

    def _costs_at_hops(self) -> _Floats:
        """Return what reading each word at each hop costs, ``(paths, 3, words)``.

        Infinite where the word does not name the relation, or there is no hop.
        """
        space = self.space
        near = _as_columns([word.relations for word in self.words], space.relations)
        naming_costs = np.where(near > 0, (1 - near) / 2, np.inf)[space.relation_of]
        for i, word in np.argwhere(np.isfinite(naming_costs)).tolist():
            hop, cue = space.hops[i], self.reading.cues[word]
            naming_costs[i, word] += _TURNED * (
                hop.outgoing != self._leads_out(cue, hop)
            )
        return np.where(self.is_hop[:, :, None], naming_costs[self.hops], np.inf)

    def _leads_out(self, cue: str, hop: Hop) -> bool:
        """Whether a word, as it stands in the question, follows a relation forward."""
        passive = hop.relation.lower().endswith("by")  # leads to who does it
        forward = (cue in self.reading.forward) != passive
        return forward and not names_source(cue, hop.relation)

    def _costs_at_labels(self) -> _Floats:
        """Return what reading each word at a node of each label costs.

        ``(labels, words)``, infinite where the word does not name the label.
        """
        near = _as_columns([word.labels for word in self.words], self.space.labels)
        cost = [_TYPE * word.relational for word in self.words]
        return np.where(near > 0, cost, np.inf)

    def _costs_unread(self, at_hop: _Floats) -> _Floats:
        """Return what leaving each word unread costs, ``(paths, words)``.

        Less where another hop of the path can read it.
        """
        words = zip(self.reading.cues, self.words, strict=True)
        unread = [self._unread(cue, word) for cue, word in words]
        readable = np.isfinite(at_hop).any(axis=1)
        return np.where(readable, np.minimum(unread, _UNREAD_TWICE), unread)

    def _unread(self, cue: str, word: _WordKinship) -> float:
        """What it costs not to read a word, unless a path reads it elsewhere."""
        if word.relational:
            return _UNREAD_AMONG if self.reading.among else _UNREAD
        return (
            _UNREAD_RELATIONAL
            if self.space.lexicon.is_relational(cue) and not word.known
            else _UNREAD_UNKNOWN
        )

    def _unnamed(self, place: int) -> _Floats:
        """What it costs that no word names the hop at a place of each path."""
        space, hops = self.space, self.hops[:, place]
        back = _UNNAMED_SHARED if self.reading.together else _UNNAMED_BACK
        cost = np.where(self.turns[:, place], back, _UNNAMED)
        answer_costs = np.full(len(space.relations), _UNNAMED_ASKED)
        # what is no label may be a verb: "which papers cite"
        for word in map(space.word, self.asked_nouns):
            answer_costs[word.relations > 0] = (
                0.0 if word.labels.any() else _UNNAMED_ASKED / 2
            )
        at_end = (self.length == place + 1) & self.answers[hops]
        return np.where(at_end, answer_costs[space.relation_of[hops]], cost)


def _as_columns(columns: Sequence[_Floats], rows: Sequence[str]) -> _Floats:
    """Return arrays side by side, also where there are none."""
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))


def _after_hop(
    costs: _Floats,
    at_hop: _Floats,
    at_node: _Floats,
    skip: _Floats,
    unnamed: _Floats,
) -> _Floats:
    """Return the costs of the first words after one more hop of each path.

    Parameters
    ----------
    costs
        Those before the hop, ``(paths, words + 1)``.
    at_hop, at_node, skip
        What reading each word at the hop or at its end costs, and what leaving it
        unread does, ``(paths, words)``.
    unnamed
        What it costs that no word names the hop, ``(paths,)``.
    """
    after = [costs[:, 0] + unnamed]
    for i in range(costs.shape[1] - 1):
        at_end_alone = np.minimum(unnamed, _UNNAMED_TYPED) + at_node[:, i]
        hop_reads_word = costs[:, i] + np.minimum(at_hop[:, i], at_end_alone)
        hop_reads_none = costs[:, i + 1] + unnamed
        hop_read_before = after[i] + np.minimum(skip[:, i], at_node[:, i])
        after.append(
            np.minimum(np.minimum(hop_reads_none, hop_reads_word), hop_read_before)
        )
    return np.stack(after, axis=1)
