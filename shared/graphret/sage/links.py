"""Links that a corpus states in passing: a cell or a text says another node's name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what
each kind of link is worth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import Records, TextArray, to_json
from graphret.edges import NO_ROW, EdgeTable
from graphret.executors.blocks import BLOCK, LOCAL, SMALL_BLOCK, Executor
from graphret.expansion.frontier import MENTIONS
from graphret.linking.usage import UseCounts, can_be_everyday, may_be_word
from graphret.nodes import NodeTable
from graphret.numeric import flags, marked, padded, renumbered, unique
from graphret.sage.belief import beliefs
from graphret.sage.codes import Codes, counted, recounted
from graphret.sage.facts import NodeFacts
from graphret.sage.mentions import (
    MIN_COMPLETED,
    Mention,
    NodeNames,
    Renamed,
    TextUnit,
    units_of,
)
from graphret.sage.names import reference_names
from graphret.sage.relinked import Relinked
from graphret.sage.settings import KIND_WEIGHTS, LinkSettings
from graphret.sage.words_said import WordsSaid
from graphret.splice import Merge, Splice
from graphret.storage import Bundle, Parts

# An alias by which more than this share of all sources say a node, and more than
# `_COMMON_LEAST`, is an everyday word ("World" for "World (TV channel)"): it makes no
# links from longer cells and running text.
_COMMON_SHARE, _COMMON_LEAST = 0.01, 20
# A title that more than this share of all sources say, and more than that many, such as
# the product's own, is a hub.
_HUB_SHARE = 0.1
# An everyday word is a word among others in more than this share of its occurrences.
_MOSTLY = 0.5
_KINDS = tuple(KIND_WEIGHTS)
_ALIASES = ("text_alias", "inside_alias")
_TEXTS = ("text", "text_alias")
_SAID = (*_TEXTS, "inside", "inside_alias")
#: Of texts that name a node: by which kind of mention they are counted, the share of
#: all sources that is too much, and the kinds that then make no link.
_MOST_NAMING = (
    ("text_alias", _COMMON_SHARE, _ALIASES),
    ("text", _HUB_SHARE, ("text", "inside")),
)

#: In place of what stands above a column.
NO_HEADER = -1
#: Of what is said: no mention of another source, one of what too many mention, a link.
DROPPED, COMMON, LINKS = 0, 1, 2


def name_links(
    nodes: NodeTable, settings: LinkSettings | None = None, executor: Executor = LOCAL
) -> EdgeTable:
    """Return a ``MENTIONS`` edge for every row and source that says a node's name.

    The edge leaves the chunk that says the name first, or the row, ``source_row``,
    where a table says it, and leads to the first chunk of what is named: a ranking
    finds out which of the chunks the question means. Its properties are the kind of the
    link, the name and, in a table, the column. Names are titles, with and without
    brackets and what follows a comma, the property ``aliases``, and the ids of records.
    They are found by hash and by an inverted index over the words of names; no two
    nodes are ever compared.
    """
    change = Change.whole(nodes)
    facts, words = NodeFacts().changed(change), WordsSaid().changed(change)
    mentions = Mentions(NodeNames(settings or LinkSettings()))
    return mentions.changed(change, NodeFacts(), facts, words, executor)[1].edges


@dataclass(frozen=True, eq=False)
class Said:
    """That a unit names a node, in columns, ``(s,)`` each.

    Parameters
    ----------
    owner, target, row
        Both nodes, and the row that says it.
    kind, share, name, header
        The kind of the link, by its place in `KIND_WEIGHTS`, how much of the name is
        said, the name, and what stands above its column in a table, `NO_HEADER` without
        one.
    words, names, may_be_word, text
        Of a name that can be an everyday word, how often the unit uses it as a word and
        as a name, whether it may at all, and which text it is.
    standing
        Whether it makes a link: `DROPPED`, `COMMON` or `LINKS`.
    """

    owner: NDArray[np.int32]
    target: NDArray[np.int32]
    row: NDArray[np.int32]
    kind: NDArray[np.int8]
    share: NDArray[np.float32]
    name: NDArray[np.int32]
    header: NDArray[np.int32]
    words: NDArray[np.int16]
    names: NDArray[np.int16]
    may_be_word: NDArray[np.bool_]
    text: NDArray[np.uint64]
    standing: NDArray[np.int8]

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Said:
        """Put rows in columns."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(_SAID_TYPES)
        return cls(
            *(
                np.asarray(column, kind)
                for column, kind in zip(columns, _SAID_TYPES.values(), strict=True)
            )
        )

    @classmethod
    def concat(cls, parts: Sequence[Said]) -> Said:
        """Return the rows of all parts, in their order."""
        columns = ([getattr(part, name) for part in parts] for name in _SAID_TYPES)
        return cls(*map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.owner)

    def at(self, chosen: NDArray[Any]) -> Said:
        """Return some of the rows."""
        return Said(*(getattr(self, name)[chosen] for name in _SAID_TYPES))

    def named(self, chosen: NDArray[np.int64], kind: str) -> NDArray[np.int32]:
        """Return what those of some rows name that are of a kind."""
        of_kind = chosen[self.kind[chosen] == _KINDS.index(kind)]
        named: NDArray[np.int32] = self.target[of_kind]
        return named

    def spliced(self, splice: Splice, others: Said) -> Said:
        """Return these rows and others in the order of a splice."""
        return Said(
            *(
                splice.of(getattr(self, name), getattr(others, name))
                for name in _SAID_TYPES
            )
        )

    def joined(self, others: Said) -> Said:
        """Return these rows, and others behind them."""
        none = np.zeros(0, np.int64)
        return self.spliced(
            Merge(len(self), none, np.full(len(others), len(self))), others
        )


_SAID_TYPES: dict[str, Any] = {
    "owner": np.int32,
    "target": np.int32,
    "row": np.int32,
    "kind": np.int8,
    "share": np.float32,
    "name": np.int32,
    "header": np.int32,
    "words": np.int16,
    "names": np.int16,
    "may_be_word": np.bool_,
    "text": np.uint64,
    "standing": np.int8,
}


@dataclass(frozen=True, eq=False)
class Mentions:
    """Which rows and texts name which nodes, and which of that makes links.

    Parameters
    ----------
    said
        What is said, links or not.
    spelled, headers
        What `said` has numbers for: names as they are spelled, and headers of columns.
    everyday, believed
        How everyday each name is, by its number, and how far its links are believed.
    strongest
        The weight of the kind of link that weighs most, of those that there are.
    n_links, n_naming
        How many links each name makes, and how many mentions of each node count for
        whether it is too common, ``(2, n)``, by `_MOST_NAMING`.
    """

    names: NodeNames
    said: Said = field(default_factory=lambda: Said.of([]))
    spelled: Codes = field(default_factory=Codes)
    headers: Codes = field(default_factory=Codes)
    everyday: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    believed: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros(0, np.float32)
    )
    strongest: float = 0.0
    n_links: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    n_naming: NDArray[np.int32] = field(
        default_factory=lambda: np.zeros((len(_MOST_NAMING), 0), np.int32)
    )

    def changed(
        self,
        change: Change,
        old_facts: NodeFacts,
        facts: NodeFacts,
        words: WordsSaid,
        executor: Executor = LOCAL,
    ) -> tuple[Mentions, Relinked]:
        """Return the mentions after a change of the nodes, and the links it makes anew.

        `facts` and `words` are those after the change. Read anew are the fresh nodes,
        and those that say a name which others bear now.
        """
        names, renamed = self.names.changed(*_renaming(change, old_facts, facts))
        names = names if names.rarity else names.fitted()
        again = flags(change.fresh, len(change.after))
        reads_all = bool(again.all())
        if not reads_all:
            again[words.saying(renamed.phrases)] = True
            again[_completing(renamed, names, words, facts)] = True
        before = replace(
            self.said,
            owner=renumbered(self.said.owner, change.places),
            target=renumbered(self.said.target, change.places),
        )
        # what names a node that is gone is read again, as the name changed
        gone = np.flatnonzero(before.owner < 0)
        void = unique(gone, marked(again, before.owner))
        made = self._read(change, np.flatnonzero(again), names, executor)
        behind = np.full(len(made), len(before))
        said = before.spliced(Merge(len(before), void, behind), made)
        differing = before.at(void).joined(made)
        after = replace(
            self,
            names=names.packed() if reads_all else names,
            spelled=self.spelled.packed(),
            headers=self.headers.packed(),
            n_naming=np.stack([change.carried(one) for one in self.n_naming]),
        )
        return after._relinked(said, differing, change.fresh, facts)

    def refitted(self, nodes: NodeTable, facts: NodeFacts) -> tuple[Mentions, Relinked]:
        """Return the mentions after the rarity of words in names is fitted anew.

        The names that a cell and what stands around it make up depend on this rarity.
        """
        names, of_tables = self.names.fitted(), facts.is_table[self.said.owner]
        change, tables = Change.reading(nodes, ()), np.flatnonzero(facts.is_table)
        made = self._read(change, tables, names, LOCAL)
        said = self.said.at(~of_tables).joined(made)
        differing = self.said.at(of_tables).joined(made)
        after = replace(self, names=names)
        return after._relinked(said, differing, np.zeros(0, np.int64), facts)

    def _relinked(
        self, said: Said, differing: Said, fresh: NDArray[np.int64], facts: NodeFacts
    ) -> tuple[Mentions, Relinked]:
        """Return the mentions, marked by what makes links, and the links made anew.

        `said` is what is said now; the links are those to the nodes that a change
        touches. `differing` is said no more, or only now. Which mentions of a node make
        links hangs on how everyday its names are, and on who else mentions it; how far
        one is believed, on how many links its name makes.
        """
        n_names, n_nodes = len(self.spelled), len(facts.file)
        everyday, names = padded(self.everyday, n_names, 0.0), unique(differing.name)
        by_name = marked(flags(names, n_names), said.name)
        of_names = said.at(by_name)
        which = np.searchsorted(names, of_names.name).astype(np.int32)
        shares = _everyday(replace(of_names, name=which), len(names))
        used_otherwise = (shares != everyday[names])[which]
        everyday[names] = shares
        targets = flags(differing.target[differing.target >= 0], n_nodes)
        targets[fresh] = True
        targets[of_names.target[used_otherwise]] = True
        at = marked(targets, said.target)
        supposed = said.standing.copy()  # that none of these is common
        supposed[at] = _standing(said.at(at), everyday, facts)
        counts = supposed != DROPPED
        n_naming = self._n_naming_after(said, counts, differing)
        links = counts & ~_are_common(said, n_naming, len(facts.heads))
        standing = np.add(counts, links, dtype=np.int8)  # DROPPED, COMMON or LINKS
        touched = targets.copy()
        touched[said.target[np.flatnonzero(standing != supposed)]] = True
        n_links = self._n_links_after(said, links, differing)
        believed = beliefs(n_links, everyday)
        is_other = believed != padded(self.believed, n_names, 0.0)
        of_other = marked(is_other, said.name)
        touched[said.target[of_other[links[of_other]]]] = True
        strongest = self._strongest_of(said.kind, links)
        touched |= strongest != self.strongest
        after = replace(
            self,
            said=replace(said, standing=standing),
            everyday=everyday,
            believed=believed,
            strongest=strongest,
            n_links=n_links,
            n_naming=n_naming,
        )
        chosen = unique(at, marked(touched & ~targets, said.target))
        chosen = chosen[links[chosen]]
        edges = after._edges(said.at(chosen), n_nodes)
        return after, Relinked((MENTIONS,), touched, edges, ("target",))

    def _n_naming_after(
        self, said: Said, counts: NDArray[np.bool_], differing: Said
    ) -> NDArray[np.int32]:
        """Return `n_naming` where those of what is said count that `counts` marks.

        What is said, and `differing`, have the standing of before.
        """
        counted_before = said.standing != DROPPED
        came = np.flatnonzero(counts & ~counted_before)
        went = np.flatnonzero(counted_before & ~counts)
        left = np.flatnonzero((differing.standing != DROPPED) & (differing.target >= 0))
        after = []
        for n_naming, (kind, _, _) in zip(self.n_naming, _MOST_NAMING, strict=True):
            named, no_more = said.named(came, kind), said.named(went, kind)
            no_more = np.concatenate([no_more, differing.named(left, kind)])
            after.append(recounted(n_naming, named, no_more, len(n_naming)))
        return np.stack(after)

    def _n_links_after(
        self, said: Said, links: NDArray[np.bool_], differing: Said
    ) -> NDArray[np.int32]:
        """Return `n_links` where those of what is said make links that `links` marks.

        What is said, and `differing`, have the standing of before.
        """
        turned = np.flatnonzero(links != (said.standing == LINKS))
        name, link = said.name[turned], links[turned]
        no_more = differing.name[differing.standing == LINKS]
        went = np.concatenate([no_more, name[~link]])
        return recounted(self.n_links, name[link], went, len(self.spelled))

    def _strongest_of(self, kind: NDArray[np.int8], links: NDArray[np.bool_]) -> float:
        """Return the weight of the kind of link that weighs most, of those made."""
        weights = self._weight_of_kind()
        by_weight = np.argsort(-weights).tolist()
        made = (one for one in by_weight if (links & (kind == one)).any())
        return float(max(0.0, weights[next(made)])) if links.any() else 0.0

    def _read(
        self,
        change: Change,
        chosen: NDArray[np.int64],
        names: NodeNames,
        executor: Executor,
    ) -> Said:
        """Return what some nodes name after a change."""
        waiting = deque[Sequence[TextUnit]]()  # blocks whose results are still to come

        def blocks() -> Iterator[Sequence[TextUnit]]:
            units = units_of(change.read(chosen))
            size = SMALL_BLOCK if executor is LOCAL else BLOCK
            while block := [*islice(units, size)]:
                waiting.append(block)
                yield block

        said = [Said.of([])]
        for found in executor.map(names, blocks()):
            named = [*{id_ for by_target in found for id_ in by_target}]
            positions = change.after.positions(named).tolist()
            place = dict(zip(named, positions, strict=True))
            rows = [
                (unit.owner, place[id_], unit.row, *self._told(unit, mention))
                for unit, by_target in zip(waiting.popleft(), found, strict=True)
                for id_, mention in by_target.items()
            ]
            said.append(Said.of(rows))
        return Said.concat(said)

    def _told(self, unit: TextUnit, mention: Mention) -> tuple[Any, ...]:
        """Return a mention without its ends, in the order of `Said`."""
        has_header = mention.column < len(unit.header)
        return (
            _KINDS.index(mention.kind),
            mention.share,
            self.spelled.of(mention.name),
            self.headers.of(unit.header[mention.column]) if has_header else NO_HEADER,
            *_used(mention, unit.cells[mention.column]),
            DROPPED,
        )

    def parts(self) -> Parts:
        """The mentions as they are saved."""
        parts = Parts(
            {
                **{f"said.{name}": getattr(self.said, name) for name in _SAID_TYPES},
                "everyday": self.everyday,
                "believed": self.believed,
            },
            {"strongest": self.strongest},
        )
        parts.add("spelled", self.spelled.parts())
        parts.add("headers", self.headers.parts())
        parts.add("names", self.names.parts())
        return parts

    @classmethod
    def from_bundle(
        cls, bundle: Bundle, settings: LinkSettings, n_nodes: int
    ) -> Mentions:
        """Open saved mentions of `n_nodes` nodes."""
        said = Said(*(bundle.arrays[f"said.{name}"] for name in _SAID_TYPES))
        spelled = Codes.from_bundle(bundle.sub("spelled"))
        count = np.flatnonzero(said.standing != DROPPED)
        n_naming = [
            counted(said.named(count, kind), n_nodes) for kind, _, _ in _MOST_NAMING
        ]
        return cls(
            names=NodeNames.from_bundle(bundle.sub("names"), settings),
            said=said,
            spelled=spelled,
            headers=Codes.from_bundle(bundle.sub("headers")),
            everyday=bundle.arrays["everyday"],
            believed=bundle.arrays["believed"],
            strongest=bundle.meta["strongest"],
            n_links=counted(said.name[said.standing == LINKS], len(spelled)),
            n_naming=np.stack(n_naming),
        )

    def _weight_of_kind(self) -> NDArray[np.float32]:
        """Return the weight of each kind of link, by its number."""
        weights = self.names.settings.kind_weights
        return np.asarray([weights.get(kind, 0) for kind in _KINDS], np.float32)

    def _edges(self, links: Said, n_nodes: int) -> EdgeTable:
        """Return the edges that some mentions make."""
        strength = self._weight_of_kind()[links.kind]
        # a corpus of text alone loses nothing
        weight = strength * links.share / np.float32(self.strongest or 1)
        weight *= self.believed[links.name]
        return EdgeTable.build(
            n_nodes,
            source=links.owner,
            target=links.target,
            relation=np.zeros(len(links), dtype=np.int16),
            relations=[MENTIONS],
            weight=weight,
            source_row=links.row,
            properties=self._properties(links),
        )

    def _properties(self, links: Said) -> Records:
        """Return what the edge of each link tells: its kind, its name, its column."""
        every_told = len(_KINDS), 1 + len(self.spelled), 1 + len(self.headers)
        numbers = np.ravel_multi_index(
            (links.kind, links.name, links.header + 1), every_told
        )
        distinct, which = np.unique(numbers, return_inverse=True)
        kinds, names, headers = np.unravel_index(distinct, every_told)
        columns = iter(self.headers.at(headers[headers > 0] - 1))
        told = zip(
            kinds.tolist(), self.spelled.at(names), headers.tolist(), strict=True
        )
        records = (
            {"kind": _KINDS[kind], "name": name}
            | ({"column": next(columns)} if header else {})
            for kind, name, header in told
        )
        return Records(TextArray.of(map(to_json, records)).take(which))


def _completing(
    renamed: Renamed, names: NodeNames, words: WordsSaid, facts: NodeFacts
) -> NDArray[np.int64]:
    """Return the tables in which a cell may complete other names than before.

    A cell completes a name together with what stands around it.
    """
    if names.rarity is None or not facts.is_table.any():
        return np.zeros(0, np.int64)
    least = MIN_COMPLETED - 1e-6  # sums in another order differ
    said = words.saying([word] for word in renamed.words)
    covered = words.covering(renamed.full, names.rarity, least, facts.is_table)
    return unique(said, covered)


def _renaming(
    change: Change, before: NodeFacts, facts: NodeFacts
) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    """Return the names of nodes that no longer bear any, and of those that now do.

    Only the first node of each file bears names.
    """
    none_fresh = np.zeros(len(change.fresh), np.bool_)
    was_head = change.column(before.is_head, none_fresh)
    come = np.flatnonzero(facts.is_head & ~was_head)
    stays_without = change.came_from[was_head & ~facts.is_head]
    gone = unique(stays_without, change.left[before.is_head[change.left]])
    return _named(change.before, gone), _named(change.after, come)


def _named(nodes: NodeTable, chosen: NDArray[np.int64]) -> dict[str, Sequence[str]]:
    """Return the names of some nodes, by id."""
    return {node.id: reference_names(node) for node in nodes.each(chosen)}


def _used(mention: Mention, text: str) -> tuple[int, int, bool, int]:
    """Return how often a text uses a name as a word and as a name.

    With these come whether the text may use it as a word, and a hash that identifies
    the text. All are zero for a name that is no everyday word.
    """
    if mention.kind not in _SAID or not _can_be_everyday(mention.name):
        return 0, 0, False, 0
    uses = UseCounts.of(mention.name, text)
    told = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    return uses.words, uses.names, may_be_word(mention.name, text), told


_can_be_everyday = lru_cache(1 << 16)(can_be_everyday)


def _of_kinds(said: Said, *kinds: str) -> NDArray[np.bool_]:
    """Return which mentions are of one of some kinds, ``(s,)``."""
    are_kinds = np.zeros(len(said), np.bool_)
    for kind in kinds:
        are_kinds |= said.kind == _KINDS.index(kind)
    return are_kinds


def _everyday(said: Said, n_names: int) -> NDArray[np.float64]:
    """Return how everyday each name is, by its number.

    It is 0 where no text uses the name as a word.
    """
    texts = said.at(_of_kinds(said, *_TEXTS))
    texts = texts.at(flags(texts.name[texts.may_be_word], n_names)[texts.name])
    order = np.lexsort((texts.text, texts.name))
    texts = texts.at(order)  # each text once
    texts = texts.at(
        (np.diff(texts.name, prepend=-1) != 0)
        | (np.diff(texts.text, prepend=np.uint64(0)) != 0)
    )
    words, names = (
        np.bincount(texts.name, use, n_names) for use in (texts.words, texts.names)
    )
    shares = np.zeros(n_names)
    np.divide(words, words + names, out=shares, where=words > 0)
    return shares


def _standing(
    said: Said, everyday: NDArray[np.float64], facts: NodeFacts
) -> NDArray[np.int8]:
    """Return whether each mention counts, ``(s,)``.

    For every node that they name, `said` holds all mentions of it.
    """
    standing = np.full(len(said), DROPPED, np.int8)
    at = np.flatnonzero(_are_names(said, everyday))
    at = at[_are_of_others(said.at(at), facts)]
    standing[at[_first_of_sources(said.at(at), facts)]] = LINKS
    return standing


def _are_names(said: Said, everyday: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which mentions do not use an everyday word as a word, ``(s,)``.

    An everyday word is a name that the texts of the corpus say more often as a word
    among others. A cell may begin with its capital.
    """
    is_word = (everyday[said.name] > _MOSTLY) & _of_kinds(said, *_SAID)
    tells = (said.words > 0) | _of_kinds(said, *_TEXTS)
    return np.asarray(~(is_word & (said.names == 0) & tells), np.bool_)


def _are_of_others(said: Said, facts: NodeFacts) -> NDArray[np.bool_]:
    """Return which mentions are of another source with another title, ``(s,)``."""
    owner, target = said.owner, said.target
    title, file = facts.title, facts.file
    same_title = (title[target] > 0) & (title[owner] == title[target])
    same_file = (said.row == NO_ROW) & (file[owner] == file[target])
    return np.asarray(~same_title & (owner != target) & ~same_file, np.bool_)


def _first_of_sources(said: Said, facts: NodeFacts) -> NDArray[np.bool_]:
    """Return which mentions are by a row, or the first by a file's text, ``(s,)``."""
    by_text = np.flatnonzero(said.row == NO_ROW)
    owner, target = said.owner[by_text], said.target[by_text]
    alias = _of_kinds(said, *_ALIASES)[by_text]
    keys = alias, target, facts.file[owner]
    order = np.lexsort((owner, facts.number[owner], *keys))
    is_first = np.any([np.diff(key[order], prepend=-1) != 0 for key in keys], axis=0)
    first = np.ones(len(said), np.bool_)
    first[by_text[order[~is_first]]] = False
    return first


def _are_common(
    said: Said, n_naming: NDArray[np.int32], n_sources: int
) -> NDArray[np.bool_]:
    """Return which mentions are of what too many sources name, ``(s,)``.

    How many name each node is in `n_naming`, ``(2, n)``, by `_MOST_NAMING`.
    """
    are_common = np.zeros(len(said), np.bool_)
    for n_named, (_, share, kinds) in zip(n_naming, _MOST_NAMING, strict=True):
        common = np.flatnonzero(n_named > max(_COMMON_LEAST, share * n_sources))
        if len(common):
            are_common |= _of_kinds(said, *kinds) & np.isin(said.target, common)
    return are_common
