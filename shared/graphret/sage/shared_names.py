"""Texts that say the same name which no node bears: by that name a chain of facts goes
on.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np

from graphret.edges import EdgeTable
from graphret.expansion.frontier import SHARES_NAME
from graphret.linking.usage import stands_in_sentence
from graphret.nodes import NodeTable
from graphret.sage.belief import beliefs
from graphret.sage.entities import EntityIncidence
from graphret.sage.names import names_of, parts_of, title_of
from graphret.sage.settings import LinkSettings
from graphret.sage.structure import sources_of
from graphret.stopwords import NAME_STOP_WORDS, is_informative
from graphret.text import normalize_name
from graphret.text import words as words_of

# A name that texts share is said by this share of them at most, in any corpus by two;
# one that stands in so many titles at most leads there, where this share of the texts
# at most says it.
_SHARED_BY, _MAX_TITLED, _TITLED_BY, _TITLED_LEAST = 0.05, 3, 0.02, 20
# An everyday word is in lower case in this share of the texts that say it.
_MOSTLY = 0.5
_NUMERAL = re.compile(r"[ivx]+")


class _NameOccurrences(NamedTuple):
    """A name for comparison, as it is spelled, and the positions of the texts that say
    it.
    """

    key: str
    name: str
    chunks: list[int]


def shared_name_links(
    nodes: NodeTable, entities: EntityIncidence, settings: LinkSettings | None = None
) -> EdgeTable:
    """Return a ``SHARES_NAME`` edge for every two texts that share a name which no node
    bears.

    Such a name joins what a chain of facts needs: a film and another one of its
    director, who has no page; a town in Maryland and *History of Maryland*. Either few
    texts say it, or few titles hold it. The edge joins the chunks that say it; its
    property is the rarest such name. Names are the entities that metadata found,
    without everyday words, headings and abbreviations, and without those that are part
    of the names of both: a series has its name in all its titles. Chunks of one source,
    or of sources of one title, are not joined.
    """
    settings = settings or LinkSettings()
    tables = ["table_rows" in given for given in nodes.properties]
    found, everyday = (
        _shared_names(nodes, entities, settings, tables)
        if settings.shared_weight
        else ({}, {})
    )
    low, high = np.asarray([*found], dtype=np.int32).reshape(-1, 2).T
    text = settings.kind_weights.get("text", 1.0)
    heaviest = max(settings.kind_weights.values(), default=1.0)
    share = text / heaviest if any(tables) else 1.0
    weight = settings.shared_weight * share * beliefs([*found.values()], everyday)
    about = [{"name": name} for name in found.values()]
    codes = np.zeros(len(low), dtype=np.int16)
    return EdgeTable.build(
        len(nodes), low, high, codes, [SHARES_NAME], weight, properties=about
    )


def _shared_names(
    nodes: NodeTable,
    entities: EntityIncidence,
    settings: LinkSettings,
    tables: Sequence[bool],
) -> tuple[dict[tuple[int, int], str], dict[str, float]]:
    """Return the rarest name of every two texts to be linked, the lower position first,
    and how everyday names are.
    """
    source = sources_of(nodes)[0].tolist()
    borne: set[str] = set()
    titles: list[str] = []
    for node in nodes:
        borne.update(map(normalize_name, names_of(node)))
        titles.append(title_of(node))
    said = _said(entities, borne, tables)
    n_texts = len(titles) - sum(tables)
    few = min(settings.max_sharers, max(2, int(_SHARED_BY * n_texts)))
    many = min(settings.max_bearers, max(_TITLED_LEAST, int(_TITLED_BY * n_texts)))
    in_titles = _in_titles(said.keys(), titles, tables)
    heads: dict[str, list[int]] = {}
    for key, shared in said.items():
        first = _first_of_each(in_titles.get(key, ()), source)
        if len(shared.chunks) <= many and 0 < len(first) <= _MAX_TITLED:
            heads[key] = first
    linking = [
        shared
        for key, shared in said.items()
        if len(shared.chunks) <= few or key in heads
    ]
    texts = nodes.texts.tolist()
    everyday = _everyday(linking, texts)
    rarest: dict[tuple[int, int], str] = {}
    for shared in _as_names(linking, everyday, texts):  # rarest first
        pairs = [*product(shared.chunks, heads.get(shared.key, ()))]
        if len(said[shared.key].chunks) <= few:
            pairs = [*combinations(shared.chunks, 2), *pairs]
        for left, right in pairs:
            if source[left] != source[right] and _tells(
                shared.key, titles[left], titles[right]
            ):
                rarest.setdefault((min(left, right), max(left, right)), shared.name)
    return rarest, {
        shared.name: everyday[shared.key]
        for shared in linking
        if shared.key in everyday
    }


def _tells(key: str, left_title: str, right_title: str) -> bool:
    """Return whether a name joins two titles: not one title, nor part of both."""
    if left_title and left_title == right_title:
        return False
    return not all(f" {key} " in f" {title} " for title in (left_title, right_title))


def _in_titles(
    keys: AbstractSet[str], titles: Sequence[str], tables: Sequence[bool]
) -> dict[str, list[int]]:
    """Return for each name the texts that have it in their title."""
    texts: dict[str, list[int]] = defaultdict(list)
    for position, title in enumerate(titles):
        if not tables[position]:
            for key in keys & set(parts_of(title)):
                texts[key].append(position)
    return texts


def _first_of_each(chosen: Iterable[int], source: Sequence[int]) -> list[int]:
    """Return of the nodes of each source the first."""
    first: dict[int, int] = {}
    for node in chosen:
        first.setdefault(source[node], node)
    return [*first.values()]


def _said(
    entities: EntityIncidence, borne: set[str], tables: Sequence[bool]
) -> dict[str, _NameOccurrences]:
    """Return the names that no node bears, the rarest first, with the texts that say
    them.
    """
    incidence = entities.incidence.tocsc()
    found: dict[str, _NameOccurrences] = {}
    for name, (start, stop) in zip(
        entities.names, pairwise(incidence.indptr.tolist()), strict=True
    ):
        key = normalize_name(name)
        words = words_of(key)
        if (
            key in borne
            or not is_informative(words, NAME_STOP_WORDS)
            or all(map(_NUMERAL.fullmatch, words))
        ):
            continue
        chunks = [
            node for node in incidence.indices[start:stop].tolist() if not tables[node]
        ]
        found[key] = _NameOccurrences(key, name, sorted(chunks))
    return found


def _as_names(
    said: Sequence[_NameOccurrences],
    everyday: Mapping[str, float],
    texts: Sequence[str],
) -> Iterator[_NameOccurrences]:
    """Yield names with those texts that say them as names, without everyday words:
    “Definition”, “Section 3”.
    """
    for one in said:
        first, *others = one.key.split()
        is_word = everyday.get(first, 0) >= _MOSTLY
        if is_word and all(word.isdigit() for word in others):
            continue
        kept = [
            node
            for node in one.chunks
            if stands_in_sentence(one.name, texts[node], first_is_word=is_word)
        ]
        yield one._replace(chunks=kept)


def _everyday(
    said: Iterable[_NameOccurrences], texts: Iterable[str]
) -> dict[str, float]:
    """Return how everyday the first words of names are, where they are so at all.

    It is the number of texts that have the word in lower case, as a share of these and
    of those that say a name which begins with it.
    """
    named: Counter[str] = Counter()
    for one in said:
        first = one.key.split()[0]
        named[first] = max(named[first], len(one.chunks))
    lower: Counter[str] = Counter()
    words = frozenset(named)
    for text in texts:
        lower.update(
            words & set(text.split())
        )  # between spaces: no parts of paths and code
    return {word: n / (n + named[word]) for word, n in lower.items()}
