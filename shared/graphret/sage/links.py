"""Links that a corpus states in passing: a cell or a text says another node's name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what
each kind of link is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Records, to_json
from graphret.edges import NO_ROW, EdgeTable
from graphret.executors import LOCAL, Executor, batched
from graphret.expansion.frontier import MENTIONS
from graphret.linking.usage import UseCounts, can_be_everyday, may_be_word
from graphret.nodes import NodeTable
from graphret.sage.belief import beliefs
from graphret.sage.change import Change
from graphret.sage.codes import Codes, flags
from graphret.sage.facts import NodeFacts
from graphret.sage.mentions import (
    MIN_COMPLETED,
    Mention,
    NodeNames,
    Renamed,
    TextUnit,
    WordRarity,
    units_of,
)
from graphret.sage.names import reference_names
from graphret.sage.settings import KIND_WEIGHTS, LinkSettings
from graphret.sage.words_said import WordsSaid
from graphret.storage import Bundle, Parts

# An alias by which more than this share of all sources say a node, and more than this
# many, is an everyday word ("World" for "World (TV channel)"): it makes no links from
# longer cells and running text.
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

#: That a unit names a node: both nodes, the row that says it, the kind of the link, by
#: its place in `KIND_WEIGHTS`, how much of the name is said, the name, and what the
#: edge tells. Of a name that can be an everyday word, how often the unit uses it as a
#: word and as a name, whether it may at all, and which text it is.
SAID = np.dtype(
    [
        ("owner", np.int32),
        ("target", np.int32),
        ("row", np.int32),
        ("kind", np.int8),
        ("share", np.float32),
        ("name", np.int32),
        ("about", np.int32),
        ("words", np.int16),
        ("names", np.int16),
        ("may_be_word", np.bool_),
        ("text", np.uint64),
    ]
)
Said: TypeAlias = NDArray[np.void]


def name_links(
    nodes: NodeTable, settings: LinkSettings | None = None, executor: Executor = LOCAL
) -> EdgeTable:
    """Return a ``MENTIONS`` edge for every row and source that says a node's name.

    The edge leaves the chunk that says the name first, or the row, ``source_row``,
    where a table says it, and leads to the first chunk of what is named: a ranking
    finds out which of the chunks the question means. Its properties are the kind of the
    link, the name and, in a table, the column. NodeNames are titles, with and without
    brackets and what follows a comma, the property ``aliases``, and the ids of records.
    They are found by hash and by an inverted index over the words of names; no two
    nodes are ever compared.
    """
    change = Change.whole(nodes)
    facts, words = NodeFacts().changed(change), WordsSaid().changed(change)
    mentions = Mentions(NodeNames(settings or LinkSettings()))
    return mentions.changed(change, NodeFacts(), facts, words, executor).edges(facts)


@dataclass(frozen=True, eq=False)
class Mentions:
    """Which rows and texts name which nodes, before anything that depends on how many
    do; `edges` has what remains of them.
    """

    names: NodeNames
    said: Said = field(default_factory=lambda: np.zeros(0, SAID))
    #: What `said` has numbers for: names as they are spelled, and records of edges.
    spelled: Codes[str] = field(default_factory=Codes)
    about: Codes[str] = field(default_factory=Codes)

    def changed(
        self,
        change: Change,
        before: NodeFacts,
        facts: NodeFacts,
        words: WordsSaid,
        executor: Executor = LOCAL,
    ) -> Mentions:
        """Return the mentions after a change of the nodes, `facts` and `words` being
        those after it.

        Read anew are the fresh nodes, and those that say a name which others bear now.
        """
        names, renamed = self.names.changed(*_renaming(change, before, facts))
        names = names if names.rarity else names.fitted()
        again = flags(change.fresh, len(change.after))
        if not again.all():
            again[words.saying(renamed.phrases)] = True
            again[_completing(renamed, names, words, facts)] = True
        kept = self.said.copy()
        for end in ("owner", "target"):
            kept[end] = change.places[kept[end]]
        # what names a node that is gone is read again, as the name changed
        kept = kept[(kept["owner"] >= 0) & ~again[kept["owner"]]]
        made = self._read(change.after, np.flatnonzero(again), names, executor)
        said = np.concatenate([kept, made])
        return replace(self, names=names, said=said)

    def refitted(self, nodes: NodeTable, facts: NodeFacts) -> Mentions:
        """Return the mentions with words as rare as they are now in names, of which
        those depend that a cell and what stands around it make up.
        """
        names, tables = self.names.fitted(), facts.is_table
        kept = self.said[~tables[self.said["owner"]]]
        made = self._read(nodes, np.flatnonzero(tables), names, LOCAL)
        return replace(self, names=names, said=np.concatenate([kept, made]))

    def _read(
        self,
        nodes: NodeTable,
        chosen: NDArray[np.int64],
        names: NodeNames,
        executor: Executor,
    ) -> Said:
        """Return what some nodes name."""
        units = [*units_of(nodes, chosen)]
        found = [*chain.from_iterable(executor.map(names, batched(units)))]
        ids = [*{id_ for by_target in found for id_ in by_target}]
        place = dict(zip(ids, nodes.positions(ids).tolist(), strict=True))
        rows = [
            (unit.owner, place[id_], unit.row, *self._told(unit, mention))
            for unit, by_target in zip(units, found, strict=True)
            for id_, mention in by_target.items()
        ]
        return np.asarray(rows, dtype=SAID)

    def _told(self, unit: TextUnit, mention: Mention) -> tuple[Any, ...]:
        """Return a mention without its ends, in the order of `SAID`."""
        about = {"kind": mention.kind, "name": mention.name}
        if mention.column < len(unit.header):
            about["column"] = unit.header[mention.column]
        return (
            _KINDS.index(mention.kind),
            mention.share,
            self.spelled.of(mention.name),
            self.about.of(to_json(about)),
            *_used(mention, unit.cells[mention.column]),
        )

    def parts(self) -> Parts:
        """The mentions as they are saved, without the names, which the nodes say."""
        parts = Parts({"said": self.said})
        parts.add_texts("spelled", self.spelled.texts())
        parts.add_texts("about", self.about.texts())
        if self.names.rarity is not None:
            parts.add("rarity", self.names.rarity.parts())
        return parts

    @classmethod
    def from_bundle(
        cls,
        bundle: Bundle,
        nodes: NodeTable,
        facts: NodeFacts,
        settings: LinkSettings,
    ) -> Mentions:
        """Open saved mentions over their nodes."""
        rarity = WordRarity.from_bundle(bundle.sub("rarity"))
        change = Change.whole(nodes)
        named = _renaming(change, NodeFacts(), facts)
        names, _ = NodeNames(settings, rarity=rarity).changed(*named)
        spelled, about = (
            Codes(bundle.texts(name).tolist()) for name in ("spelled", "about")
        )
        return cls(names, bundle.arrays["said"], spelled, about)

    def edges(self, facts: NodeFacts) -> EdgeTable:
        """Return the edges that the mentions make."""
        everyday = _everyday(self.said, len(self.spelled))
        links = _as_names(self.said, everyday)
        links = _between_sources(links, facts)
        links = _without_hubs(links, len(facts.heads))
        weights = self.names.settings.kind_weights
        of_kind = np.asarray([weights.get(kind, 0) for kind in _KINDS], np.float32)
        strength = of_kind[links["kind"]]
        # a corpus of text alone loses nothing
        weight = strength * links["share"] / (strength.max(initial=0) or 1)
        weight *= beliefs(links["name"], everyday)
        return EdgeTable.build(
            len(facts.file),
            source=links["owner"],
            target=links["target"],
            relation=np.zeros(len(links), dtype=np.int16),
            relations=[MENTIONS],
            weight=weight,
            source_row=links["row"],
            properties=Records(self.about.texts().take(links["about"])),
        )


def _completing(
    renamed: Renamed, names: NodeNames, words: WordsSaid, facts: NodeFacts
) -> NDArray[np.int64]:
    """Return the tables in which a cell and what stands around it may make up another
    name than before.
    """
    if names.rarity is None or not facts.is_table.any():
        return np.zeros(0, np.int64)
    least = MIN_COMPLETED - 1e-6  # sums in another order differ
    said = words.saying([word] for word in renamed.words)
    covered = words.covering(renamed.bags, names.rarity, least, facts.is_table)
    return np.union1d(said, covered)


def _renaming(
    change: Change, before: NodeFacts, facts: NodeFacts
) -> tuple[set[str], dict[str, Sequence[str]]]:
    """Return the nodes that bear names no more, and the names of those that do now: the
    first of each source bear them.
    """
    was, now = before.heads, facts.heads
    stays = change.moved[was]
    stays = stays[flags(now, len(change.after))[stays] & (stays >= 0)]
    gone = was[~flags(change.came_from[stays], len(change.before))[was]]
    come = now[~flags(stays, len(change.after))[now]]
    named: dict[str, Sequence[str]] = {}
    for block in batched(come):
        named.update(
            (node.id, reference_names(node)) for node in change.after.at(block)
        )
    return set(change.before.ids.take(gone)), named


def _used(mention: Mention, text: str) -> tuple[int, int, bool, int]:
    """Return how often a text uses a name as a word and as a name, whether it may use
    it as a word, and what tells the text; zeros for a name that is no everyday word.
    """
    if mention.kind not in _SAID or not _can_be_everyday(mention.name):
        return 0, 0, False, 0
    uses = UseCounts.of(mention.name, text)
    told = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    return uses.words, uses.names, may_be_word(mention.name, text), told


_can_be_everyday = lru_cache(1 << 16)(can_be_everyday)


def _of_kinds(said: Said, *kinds: str) -> NDArray[np.bool_]:
    return np.isin(said["kind"], [_KINDS.index(kind) for kind in kinds])


def _everyday(said: Said, n_names: int) -> NDArray[np.float64]:
    """Return how everyday each name is, by its number; 0 where no text uses it as a
    word.
    """
    texts = said[_of_kinds(said, *_TEXTS)]
    texts = texts[flags(texts["name"][texts["may_be_word"]], n_names)[texts["name"]]]
    order = np.lexsort((texts["text"], texts["name"]))
    texts = texts[order]  # each text once
    texts = texts[
        (np.diff(texts["name"], prepend=-1) != 0)
        | (np.diff(texts["text"], prepend=np.uint64(0)) != 0)
    ]
    words, names = (
        np.bincount(texts["name"], texts[use], n_names) for use in ("words", "names")
    )
    shares = np.zeros(n_names)
    np.divide(words, words + names, out=shares, where=words > 0)
    return shares


def _as_names(said: Said, everyday: NDArray[np.float64]) -> Said:
    """Return the mentions without those that use an everyday word as a word.

    An everyday word is a name that the texts of the corpus say more often as a word
    among others. A cell may begin with its capital.
    """
    is_word = (everyday[said["name"]] > _MOSTLY) & _of_kinds(said, *_SAID)
    tells = (said["words"] > 0) | _of_kinds(said, *_TEXTS)
    names: Said = said[~(is_word & (said["names"] == 0) & tells)]
    return names


def _between_sources(said: Said, facts: NodeFacts) -> Said:
    """Return the mentions of another source, which bears another title.

    Of those by a source's text only the first is returned.
    """
    owner, target = said["owner"], said["target"]
    title, file = facts.title, facts.file
    same_title = (title[target] > 0) & (title[owner] == title[target])
    text = said["row"] == NO_ROW
    same_file = text & (file[owner] == file[target])
    said = said[~same_title & (owner != target) & ~same_file]
    by_text = np.flatnonzero(said["row"] == NO_ROW)
    owner, target = said["owner"][by_text], said["target"][by_text]
    alias = _of_kinds(said, *_ALIASES)[by_text]
    keys = alias, target, file[owner]
    order = np.lexsort((owner, facts.number[owner], *keys))
    first = np.any([np.diff(key[order], prepend=-1) != 0 for key in keys], axis=0)
    return np.delete(said, by_text[order[~first]])


def _without_hubs(links: Said, n_sources: int) -> Said:
    """Return the mentions without those of what too many sources say."""
    target, n = links["target"], int(links["target"].max(initial=-1)) + 1
    by_alias, by_title = (
        np.bincount(target[_of_kinds(links, kind)], minlength=n)[target]
        for kind in ("text_alias", "text")
    )
    is_alias = _of_kinds(links, *_ALIASES)
    is_title = _of_kinds(links, "text", "inside")
    common = is_alias & (by_alias > max(_COMMON_LEAST, _COMMON_SHARE * n_sources))
    hub = is_title & (by_title > max(_COMMON_LEAST, _HUB_SHARE * n_sources))
    kept: Said = links[~common & ~hub]
    return kept
