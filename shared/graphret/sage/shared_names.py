"""Texts that say the same name which no node bears.

A chain of facts goes on by that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.columns import Records, TextArray, to_json
from graphret.edges import EdgeTable, row_starts
from graphret.executors import batched
from graphret.expansion.frontier import SHARES_NAME
from graphret.linking.usage import stands_in_sentence
from graphret.nodes import NodeTable
from graphret.numeric import flags, marked, padded, renumbered, unique
from graphret.sage.belief import beliefs
from graphret.sage.codes import CodeLists, Codes, counted, recounted
from graphret.sage.entities import Entities
from graphret.sage.facts import NodeFacts
from graphret.sage.names import parts_of
from graphret.sage.relinked import Relinked
from graphret.sage.settings import LinkSettings, SimilaritySettings
from graphret.search.postings import Postings
from graphret.stopwords import NAME_STOP_WORDS, is_informative
from graphret.storage import Bundle, Parts
from graphret.text import words as words_of

# A name that texts share is said by this share of them at most, in any corpus by two;
# one that stands in so many titles at most leads there, where this share of the texts
# at most says it.
_SHARED_BY, _MAX_TITLED, _TITLED_BY, _TITLED_LEAST = 0.05, 3, 0.02, 20
# An everyday word is in lower case in this share of the texts that say it.
_MOSTLY = 0.5
_TEXTS = 1 << 14  # at once
_COLUMNS = ("lower", "tells", "first_word", "several", "pairs", "believed")
_NUMERAL = re.compile(r"[ivx]+")


#: Two texts, the lower position first, the number of a name that both say, and whether
#: it makes their link: it is the rarest such name.
PAIR = np.dtype(
    [("low", np.int32), ("high", np.int32), ("name", np.int32), ("links", np.bool_)]
)


def shared_name_links(
    nodes: NodeTable, settings: LinkSettings | None = None
) -> EdgeTable:
    """Return a ``SHARES_NAME`` edge for each two texts that share a name no node bears.

    Such a name joins what a chain of facts needs: a film and another one of its
    director, who has no page; a town in Maryland and *History of Maryland*. Either few
    texts say it, or few titles hold it. The edge joins the chunks that say it; its
    property is the rarest such name. Names are the entities that metadata found,
    without everyday words, headings and abbreviations, and without those that are part
    of the names of both: a series has its name in all its titles. Chunks of one source,
    or of sources of one title, are not joined.
    """
    change = Change.whole(nodes)
    facts, entities = NodeFacts().changed(change), Entities().changed(change)
    shared = SharedNames(settings or LinkSettings())
    return shared.changed(change, NodeFacts(), facts, Entities(), entities)[1].edges


@dataclass(frozen=True, eq=False)
class Sharers:
    """Whether each name can join texts, how many texts say it, and how everyday it is.

    The columns are by the number of the name, ``(names,)`` each.

    Parameters
    ----------
    joins
        Whether it joins the texts that say it, or these and those that have it in
        their title.
    is_rare, leads
        Whether it joins all that say it, and these to titles.
    is_word
        Whether its first word is an everyday one.
    everyday
        How everyday it is itself; 0 for several words.
    limits
        How many texts may say a name that joins them, and one that leads to titles.
    """

    joins: NDArray[np.bool_]
    is_rare: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    is_word: NDArray[np.bool_]
    everyday: NDArray[np.float64]
    limits: tuple[int, int]


@dataclass(frozen=True, eq=False)
class SharedNames:
    """Which names join which texts.

    Parameters
    ----------
    titled, called
        For each node the names that are part of its title, where it is a text, and
        those that it bears, as numbers of `Entities.names`.
    in_titles
        Which nodes have each name in their title.
    n_said, n_called, n_titled
        How many texts say each name, how many nodes it is a name of, and how many
        sources have it in a title.
    words, lower
        The words that stand in lower case in texts, and in how many.
    tells, first_word, several
        By the number of a name: whether it says something, -1 where nobody looked yet,
        its first word, and whether it has several.
    pairs
        The texts that each name joins.
    believed
        How far the links are believed that each name makes.
    """

    settings: LinkSettings
    cap: int = SimilaritySettings.entity_cap
    titled: CodeLists = field(default_factory=lambda: CodeLists.of([]))
    called: CodeLists = field(default_factory=lambda: CodeLists.of([]))
    in_titles: Postings = field(default_factory=lambda: Postings.of(CodeLists.of([])))
    n_said: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    n_called: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    n_titled: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    words: Codes = field(default_factory=lambda: Codes([""]))
    lower: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    tells: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    first_word: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    several: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    sharers: Sharers | None = None
    pairs: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, PAIR))
    believed: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros(0, np.float32)
    )

    def changed(
        self,
        change: Change,
        old_facts: NodeFacts,
        facts: NodeFacts,
        old_entities: Entities,
        entities: Entities,
        called: CodeLists | None = None,
    ) -> tuple[SharedNames, Relinked]:
        """Return what names join after a change, and the links that it makes anew.

        `called` is what `Entities.read_called` finds in the fresh nodes, where it is
        known.
        """
        n_nodes = len(change.after)
        if not self.settings.shared_weight:
            nowhere = np.zeros(n_nodes, np.bool_)
            return self, Relinked((SHARES_NAME,), nowhere, EdgeTable.empty(n_nodes))
        if called is None:
            (called,) = CodeLists.read(change.nodes, entities.read_called)
        # which numbers the names in titles too
        read = self._read(change, facts, entities, called)
        n_names = len(entities.names)
        came = _said_by_texts(entities, facts, change.fresh)
        went = _said_by_texts(old_entities, old_facts, change.left)
        n_said = recounted(self.n_said, came, went, n_names)
        met = facts.source[change.fresh], old_facts.source[change.left]
        sources = flags(np.concatenate(met), len(facts.strings))
        are_titled = _in_titles_of(sources, facts, read.titled)
        were_titled = _in_titles_of(sources, old_facts, self.titled)
        n_titled = recounted(self.n_titled, are_titled, were_titled, n_names)
        read = replace(read, n_said=n_said, n_titled=n_titled)
        after = replace(read, sharers=read._sharers(facts, entities))
        chosen = after._touched(self, change, entities, old_entities)
        kept = self.pairs.copy()
        for end in ("low", "high"):
            kept[end] = renumbered(kept[end], change.places)
        gone = kept[chosen[kept["name"]]]
        kept = kept[~chosen[kept["name"]]]
        joined_texts = [
            (low, high, name, False)
            for name, low, high in after._joined(chosen, change.after, facts, entities)
        ]
        made = np.asarray(joined_texts, dtype=PAIR)
        after = replace(after, pairs=np.concatenate([kept, made]))
        lows = np.concatenate([gone["low"][gone["low"] >= 0], made["low"]])
        touched = flags(lows, n_nodes)
        touched |= bool(old_facts.is_table.any() != facts.is_table.any())
        return after._relinked(touched, facts, entities)

    def _relinked(
        self, touched: NDArray[np.bool_], facts: NodeFacts, entities: Entities
    ) -> tuple[SharedNames, Relinked]:
        """Return what names join, marked by what makes links, and the links made anew.

        `touched`, ``(n,)``, marks the lower ends of the pairs that come or go.
        """
        pairs, n_names = self.pairs.copy(), len(entities.names)
        at = np.flatnonzero(touched[pairs["low"]])
        pairs["links"][at] = _are_rarest(pairs[at], entities)
        everyday = self.sharers.everyday if self.sharers else np.zeros(n_names)
        n_links = np.bincount(pairs["name"][pairs["links"]], minlength=n_names)
        believed = beliefs(n_links, everyday)
        is_other = believed != padded(self.believed, n_names, 0.0)
        other = pairs["links"] & is_other[pairs["name"]]
        nodes = touched | flags(pairs["low"][other], len(touched))
        after = replace(self, pairs=pairs, believed=believed)
        links = pairs[pairs["links"] & nodes[pairs["low"]]]
        edges = after._edges(links, facts, entities)
        return after, Relinked((SHARES_NAME,), nodes, edges)

    def _read(
        self, change: Change, facts: NodeFacts, entities: Entities, called: CodeLists
    ) -> SharedNames:
        """Return what is known of nodes and names after a change.

        What follows from it is not worked out yet.
        """
        codes = entities.names.of_each
        is_table, title = facts.is_table[change.fresh], facts.title[change.fresh]
        titled = CodeLists.of(
            codes(dict.fromkeys(parts_of(one)))
            for block in batched(np.where(is_table, 0, title))
            for one in facts.strings.at(block)
        )
        n_names = len(entities.names)
        no_more = self.called.at(change.left)
        n_called = recounted(self.n_called, called.codes, no_more, n_names)
        came = self._count_lower(change.after, change.fresh)
        went = self._count_lower(change.before, change.left)
        tells, first_word, several = self._telling(entities)
        titled = self.titled.changed(change, titled)
        lower, came, went = (
            padded(counts, len(self.words), 0) for counts in (self.lower, came, went)
        )
        return replace(
            self,
            titled=titled,
            in_titles=self.in_titles.changed(change.splice) or Postings.of(titled),
            called=self.called.changed(change, called),
            n_called=n_called,
            lower=lower + came - went,
            tells=tells,
            first_word=first_word,
            several=several,
        )

    def _count_lower(
        self, nodes: NodeTable, chosen: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return in how many texts of some nodes each word is in lower case."""
        counts = np.zeros(0, np.int64)
        for block in batched(chosen, _TEXTS):
            words = chain.from_iterable(map(_lower_words, nodes.texts.take(block)))
            codes = np.asarray(self.words.of_each(words), np.int64)
            n_words = len(self.words)
            counts = padded(counts, n_words, 0) + np.bincount(codes, minlength=n_words)
        return counts

    def _telling(
        self, entities: Entities
    ) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.bool_]]:
        """Return `tells`, `first_word` and `several` after names came to be shared."""
        n = len(entities.names)
        tells = padded(self.tells, n, -1)
        first_word = padded(self.first_word, n, 0)
        several = padded(self.several, n, False)
        new = padded(entities.shared(self.cap), n, False) & (tells < 0)
        for name in np.flatnonzero(new).tolist():
            key = entities.names[name]
            words = words_of(key)
            numeral = all(map(_NUMERAL.fullmatch, words))
            tells[name] = is_informative(words, NAME_STOP_WORDS) and not numeral
            first_word[name] = self.words.of(key.split()[0])
            several[name] = " " in key
        return tells, first_word, several

    def _sharers(self, facts: NodeFacts, entities: Entities) -> Sharers:
        """Return which names can join texts."""
        n, n_said = len(entities.names), self.n_said
        n_texts = int(np.count_nonzero(~facts.is_table))
        few = min(self.settings.max_sharers, max(2, int(_SHARED_BY * n_texts)))
        titled = max(_TITLED_LEAST, int(_TITLED_BY * n_texts))
        many = min(self.settings.max_nodes_per_name, titled)
        can = (self.tells == 1) & (self.n_called == 0)
        can &= padded(entities.shared(self.cap), n, False)
        is_rare = can & (n_said <= few)
        leads = can & (n_said <= many)
        leads &= (self.n_titled > 0) & (self.n_titled <= _MAX_TITLED)
        joins = is_rare | leads
        named = np.zeros(len(self.lower), np.int64)
        np.maximum.at(named, self.first_word.compress(joins), n_said.compress(joins))
        everyday = self.lower / np.maximum(self.lower + named, 1)
        own, is_word = np.zeros(n), np.zeros(n, np.bool_)
        joining = np.flatnonzero(joins)
        of_joining = everyday[self.first_word[joining]]
        own[joining] = np.where(self.several[joining], 0.0, of_joining)
        is_word[joining] = of_joining >= _MOSTLY
        return Sharers(joins, is_rare, leads, is_word, own, (few, many))

    def _heads(
        self, names: NDArray[np.int64], facts: NodeFacts
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return some names and the texts that have them in their title.

        Of each source only the first text is returned. They are ordered by name, then
        position.
        """
        found = self.in_titles.occurrences(names, self.titled)
        owner, name = found.owners, names[found.codes]
        order = np.lexsort((owner, facts.source[owner], name))
        keys = name[order], facts.source[owner[order]]
        first = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
        name, owner = name[order[first]], owner[order[first]]
        order = np.lexsort((owner, name))
        return name[order], owner[order]

    def _touched(
        self,
        before: SharedNames,
        change: Change,
        entities: Entities,
        were: Entities,
    ) -> NDArray[np.bool_]:
        """Return which names may join other texts than before, ``(names,)``."""
        n, now, old = len(entities.names), self.sharers, before.sharers
        if now is None or old is None or now.limits != old.limits:
            return np.ones(n, dtype=bool)
        lists = [
            *(
                one.at(change.fresh)
                for one in (entities.borne, self.titled, self.called)
            ),
            *(
                one.at(change.left)
                for one in (were.borne, before.titled, before.called)
            ),
        ]
        other_use: NDArray[np.bool_] = now.is_word != padded(old.is_word, n, False)
        return flags(np.concatenate(lists), n) | other_use

    def _joined(
        self,
        chosen: NDArray[np.bool_],
        nodes: NodeTable,
        facts: NodeFacts,
        entities: Entities,
    ) -> Iterator[tuple[int, int, int]]:
        """Yield some names, each with two texts that it joins."""
        sharers = self.sharers
        if sharers is None:
            return
        names = np.flatnonzero(chosen & sharers.joins)
        name, head = self._heads(names[sharers.leads[names]], facts)
        heads = row_starts(np.searchsorted(names, name), len(names))
        found = entities.postings.occurrences(names, entities.borne)
        is_text = ~facts.is_table[found.owners]
        sayer = found.owners[is_text]
        sayers = row_starts(found.codes[is_text], len(names))
        said = unique(sayer)
        texts = dict(zip(said.tolist(), nodes.texts.take(said), strict=True))
        spellings = entities.spelling_of(names)
        for nth, one in enumerate(names.tolist()):
            key, spelled = entities.names[one], spellings[nth]
            is_word = bool(sharers.is_word[one])
            if is_word and all(word.isdigit() for word in key.split()[1:]):
                continue  # “Definition”, “Section 3”
            say = [
                node
                for node in sayer[sayers[nth] : sayers[nth + 1]].tolist()
                if stands_in_sentence(spelled, texts[node], first_is_word=is_word)
            ]
            pairs = product(say, head[heads[nth] : heads[nth + 1]].tolist())
            every = combinations(say, 2) if sharers.is_rare[one] else ()
            for pair in {(min(two), max(two)) for two in chain(every, pairs)}:
                if _tells(key, facts, *pair):
                    yield one, *pair

    def parts(self) -> Parts:
        """What names join, and what that follows from, as it is saved."""
        parts = Parts({name: getattr(self, name) for name in _COLUMNS})
        parts.add("words", self.words.parts())
        for of, lists in (("titled", self.titled), ("called", self.called)):
            parts.add(of, lists.parts())
        return parts

    def from_bundle(
        self, bundle: Bundle, facts: NodeFacts, entities: Entities
    ) -> SharedNames:
        """Open what was saved; this one knows of nothing."""
        if not self.settings.shared_weight:
            return self
        columns: dict[str, Any] = {name: bundle.arrays[name] for name in _COLUMNS}
        called = CodeLists.from_bundle(bundle.sub("called"))
        titled = CodeLists.from_bundle(bundle.sub("titled"))
        n_names, n_strings = len(entities.names), len(facts.strings)
        said = _said_by_texts(entities, facts, np.arange(len(facts.file)))
        in_titles = _in_titles_of(np.ones(n_strings, np.bool_), facts, titled)
        read = replace(
            self,
            titled=titled,
            in_titles=Postings.of(titled),
            called=called,
            n_said=counted(said, n_names),
            n_called=counted(called.codes, n_names),
            n_titled=counted(in_titles, n_names),
            words=Codes.from_bundle(bundle.sub("words")),
            **columns,
        )
        return replace(read, sharers=read._sharers(facts, entities))

    def _edges(
        self, links: NDArray[np.void], facts: NodeFacts, entities: Entities
    ) -> EdgeTable:
        """Return the edges that some pairs make."""
        weights, any_table = self.settings.kind_weights, facts.is_table.any()
        text = weights.get("text", 1.0)
        share = text / max(weights.values(), default=1.0) if any_table else 1.0
        names, name_of_link = np.unique(links["name"], return_inverse=True)
        spelled = entities.spelling_of(names.astype(np.int64))
        about = [to_json({"name": name}) for name in spelled]
        return EdgeTable.build(
            len(facts.file),
            links["low"],
            links["high"],
            np.zeros(len(links), dtype=np.int16),
            [SHARES_NAME],
            self.settings.shared_weight * share * self.believed[links["name"]],
            properties=Records(TextArray.of(about).take(name_of_link)),
        )


def _said_by_texts(
    entities: Entities, facts: NodeFacts, nodes: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return the names that the texts among some nodes say, once for each text."""
    return entities.borne.at(nodes[~facts.is_table[nodes]])


def _in_titles_of(
    sources: NDArray[np.bool_], facts: NodeFacts, titled: CodeLists
) -> NDArray[np.int64]:
    """Return the names in titles of nodes of some sources, once for each source."""
    nodes = marked(sources, facts.source)
    names, starts = titled.take(nodes).pack()
    source = np.repeat(facts.source[nodes].astype(np.int64), np.diff(starts))
    n = int(names.max(initial=0)) + 1
    return np.asarray(unique(source * n + names) % n, np.int64)


def _are_rarest(pairs: NDArray[np.void], entities: Entities) -> NDArray[np.bool_]:
    """Return whether each name is the rarest of those that join the same two texts.

    For every two texts in `pairs`, all names that join them are there.
    """
    ranked = entities.rarest_first(unique(pairs["name"]))
    rank = np.zeros(len(entities.names), np.int64)
    rank[ranked] = np.arange(len(ranked))
    order = np.lexsort((rank[pairs["name"]], pairs["high"], pairs["low"]))
    first = np.diff(pairs["low"][order], prepend=-1) != 0
    first |= np.diff(pairs["high"][order], prepend=-1) != 0
    are_rarest = np.zeros(len(pairs), np.bool_)
    are_rarest[order[first]] = True
    return are_rarest


def _tells(key: str, facts: NodeFacts, left: int, right: int) -> bool:
    """Return whether a name joins two texts.

    It does not if they are of one source or title, or if it is part of both titles.
    """
    if facts.source[left] == facts.source[right]:
        return False
    titles = [facts.strings[facts.title[node]] for node in (left, right)]
    if titles[0] and titles[0] == titles[1]:
        return False
    return not all(f" {key} " in f" {title} " for title in titles)


def _lower_words(text: str) -> set[str]:
    """Return the words of a text that stand between spaces and have no capital.

    Parts of paths and code are left out.
    """
    return {
        word
        for word in text.split()
        if word.islower() or word.isdigit()
        if word.isalnum() or not word.isascii()
    }
