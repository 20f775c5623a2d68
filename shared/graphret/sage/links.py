"""Links that a corpus states in passing: a cell or a text that says another node's
name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what
each kind of link is worth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from graphret.corpus.chunks import number_of
from graphret.corpus.readers import file_id
from graphret.edges import NO_ROW, EdgeTable
from graphret.executors import LOCAL, Executor, batched
from graphret.expansion.frontier import MENTIONS
from graphret.linking.usage import Uses, can_be_everyday, may_be_word
from graphret.nodes import NodeTable
from graphret.sage.belief import beliefs
from graphret.sage.mentions import Mention, Names, Unit, units_of
from graphret.sage.names import names_of, title_of
from graphret.sage.settings import LinkSettings

# An alias by which more than this share of all sources say a node, and more than this
# many, is an everyday word ("World" for "World (TV channel)"): it makes no links from
# longer cells and running text.
_COMMON_SHARE, _COMMON_LEAST = 0.01, 20
# A title that more than this share of all sources say, and more than that many, such as
# the product's own, is a hub.
_HUB_SHARE = 0.1
# An everyday word is a word among others in more than this share of its occurrences.
_MOSTLY = 0.5
_ALIASES = ("text_alias", "inside_alias")
_TEXTS = ("text", "text_alias")
_SAID = (*_TEXTS, "inside", "inside_alias")

#: A unit, the node that it names, and by what.
Said: TypeAlias = tuple[Unit, int, Mention]


def name_links(
    nodes: NodeTable, settings: LinkSettings | None = None, executor: Executor = LOCAL
) -> EdgeTable:
    """Return a ``MENTIONS`` edge for every row that says the name of a node, and every
    source whose text does.

    The edge leaves the chunk that says the name first, or the row, ``source_row``,
    where a table says it, and leads to the first chunk of what is named: a ranking
    finds out which of the chunks the question means. Its properties are the kind of the
    link, the name and, in a table, the column. Names are titles, with and without
    brackets and what follows a comma, the property ``aliases``, and the ids of records.
    They are found by hash and by an inverted index over the words of names; no two
    nodes are ever compared.
    """
    weights = (settings := settings or LinkSettings()).kind_weights
    sources: list[str] = []
    places: list[int] = []
    titles: list[str] = []
    heads: dict[
        str, tuple[bool, int, int]
    ] = {}  # of each source the first chunk, texts before tables
    for i, node in enumerate(nodes):
        sources.append(file_id(str(node.properties.get("source_id", node.id))))
        places.append(number_of(node, "chunk_index"))
        titles.append(title_of(node))
        key = "table_rows" in node.properties, places[i], i
        heads[sources[i]] = min(key, heads.get(sources[i], key))
    named = np.sort(np.asarray([i for _, _, i in heads.values()], dtype=np.int64))
    names = Names(
        [*zip(named.tolist(), map(names_of, nodes.at(named)), strict=True)], settings
    )
    units = sorted(units_of(nodes), key=lambda unit: places[unit.owner])
    mentions = chain.from_iterable(executor.map(names, batched(units)))
    said = [
        (unit, target, mention)
        for unit, of_unit in zip(units, mentions, strict=True)
        for target, mention in of_unit.items()
    ]
    used = _uses(said)
    everyday = _everyday(used)
    found = _between_sources(_as_names(said, everyday, used), sources, titles)
    found = _without_hubs(found, len(heads))
    measured = [(weights[mention.kind], mention.share) for _, _, mention in found]
    strength = np.asarray(measured, dtype=np.float32).reshape(-1, 2)
    weight = strength.prod(axis=1) / (
        strength[:, 0].max(initial=0) or 1
    )  # a corpus of text alone loses nothing
    weight *= beliefs([mention.name for _, _, mention in found], everyday)
    properties = [
        {"kind": mention.kind, "name": mention.name}
        | (
            {"column": unit.header[mention.column]}
            if mention.column < len(unit.header)
            else {}
        )
        for unit, _, mention in found
    ]
    ends = np.asarray(
        [(unit.owner, target, unit.row) for unit, target, _ in found], np.int32
    ).reshape(-1, 3)
    codes = np.zeros(len(found), dtype=np.int16)
    columns = ends[:, 0], ends[:, 1], codes, [MENTIONS], weight, ends[:, 2]
    return EdgeTable.build(len(nodes), *columns, properties=properties)


def _uses(said: Sequence[Said]) -> dict[str, dict[str, Uses]]:
    """Return how texts use the names that at least one of them may use as a word, by
    name and text.
    """
    used: dict[str, dict[str, Uses]] = {}
    for name, texts in _texts_by_name(said).items():
        if can_be_everyday(name) and any(may_be_word(name, text) for text in texts):
            used[name] = {text: Uses.of(name, text) for text in texts}
    return used


def _everyday(used: Mapping[str, Mapping[str, Uses]]) -> dict[str, float]:
    """Return how everyday names are, where texts use them as words at all."""
    shares: dict[str, float] = {}
    for name, by_text in used.items():
        total = Uses()
        for uses in by_text.values():
            total.add(uses)
        if total.words:
            shares[name] = total.everyday
    return shares


def _as_names(
    said: Sequence[Said],
    everyday: Mapping[str, float],
    used: Mapping[str, Mapping[str, Uses]],
) -> list[Said]:
    """Return the mentions without those that use an everyday word as a word.

    An everyday word is a name that the texts of the corpus say more often as a word
    among others. A cell may begin with its capital.
    """
    found: list[Said] = []
    for unit, target, mention in said:
        name, text = mention.name, unit.cells[mention.column]
        if everyday.get(name, 0) > _MOSTLY and mention.kind in _SAID:
            uses = used[name].get(text) or Uses.of(name, text)
            if not uses.names and (uses.words or mention.kind in _TEXTS):
                continue
        found.append((unit, target, mention))
    return found


def _texts_by_name(said: Iterable[Said]) -> dict[str, list[str]]:
    """Return the running texts that say each name, each once."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for unit, _, mention in said:
        if mention.kind in _TEXTS:
            texts[mention.name][unit.cells[mention.column]] = None
    return {name: [*of_name] for name, of_name in texts.items()}


def _between_sources(
    said: Sequence[Said], sources: Sequence[str], titles: Sequence[str]
) -> list[Said]:
    """Return the mentions of another source, which bears another title; of those by a
    source's text the first.
    """
    found: list[Said] = []
    known: set[tuple[str, int, bool]] = set()
    for unit, target, mention in said:
        same_title = titles[target] and titles[unit.owner] == titles[target]
        if same_title or unit.owner == target:
            continue
        if unit.row == NO_ROW:
            link = sources[unit.owner], target, mention.kind in _ALIASES
            if link[0] == sources[target] or link in known:
                continue
            known.add(link)
        found.append((unit, target, mention))
    return found


def _without_hubs(found: Sequence[Said], n_sources: int) -> list[Said]:
    """Return the mentions without those of what so many sources say that it tells
    nothing of them.
    """
    said = Counter(
        (target, mention.kind) for _, target, mention in found if mention.kind in _TEXTS
    )
    most = max(_COMMON_LEAST, _COMMON_SHARE * n_sources)
    most_hub = max(_COMMON_LEAST, _HUB_SHARE * n_sources)
    return [
        (unit, target, mention)
        for unit, target, mention in found
        if (mention.kind not in _ALIASES or said[target, "text_alias"] <= most)
        and (mention.kind not in ("text", "inside") or said[target, "text"] <= most_hub)
    ]
