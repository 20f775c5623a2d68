"""Links that a corpus states in passing: a cell or a text says another node's name.

Beyond the SAGE paper, whose edges are similarities; docs/concepts/expansion.md has what
each kind of link is worth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.corpus.chunks import number_of
from graphret.corpus.readers import file_id
from graphret.edges import NO_ROW, EdgeTable
from graphret.executors import LOCAL, Executor, batched
from graphret.expansion.frontier import MENTIONS
from graphret.linking.usage import UseCounts, can_be_everyday, may_be_word
from graphret.nodes import NodeTable
from graphret.sage.belief import beliefs
from graphret.sage.mentions import Mention, NodeNames, TextUnit, units_of
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
Said: TypeAlias = tuple[TextUnit, int, Mention]


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
    settings = settings or LinkSettings()
    chunks = _Chunks.of(nodes)
    said = _mentions(nodes, chunks, settings, executor)
    used = _uses(said)
    everyday = _everyday(used)
    links = _as_names(said, everyday, used)
    links = _between_sources(links, chunks.sources, chunks.titles)
    links = _without_hubs(links, len(chunks.heads))
    return _edges(links, len(nodes), settings.kind_weights, everyday)


@dataclass(frozen=True, eq=False)
class _Chunks:
    """What the nodes are chunks of, by position: source, number there and title.

    `heads` are the first chunks of the sources, ascending: texts before tables.
    """

    sources: list[str]
    numbers: list[int]
    titles: list[str]
    heads: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: NodeTable) -> _Chunks:
        sources: list[str] = []
        numbers: list[int] = []
        titles: list[str] = []
        first: dict[str, tuple[bool, int, int]] = {}
        for position, node in enumerate(nodes):
            source = file_id(str(node.properties.get("source_id", node.id)))
            number = number_of(node, "chunk_index")
            sources.append(source)
            numbers.append(number)
            titles.append(title_of(node))
            order = "table_rows" in node.properties, number, position
            first[source] = min(order, first.get(source, order))
        heads = [position for _, _, position in first.values()]
        return cls(sources, numbers, titles, np.sort(np.asarray(heads, dtype=np.int64)))


def _mentions(
    nodes: NodeTable, chunks: _Chunks, settings: LinkSettings, executor: Executor
) -> list[Said]:
    """Return which sources cells and texts name, those of first chunks first."""
    bearers = zip(
        chunks.heads.tolist(), map(names_of, nodes.at(chunks.heads)), strict=True
    )
    names = NodeNames([*bearers], settings)
    units = sorted(units_of(nodes), key=lambda unit: chunks.numbers[unit.owner])
    mentions = chain.from_iterable(executor.map(names, batched(units)))
    return [
        (unit, target, mention)
        for unit, by_target in zip(units, mentions, strict=True)
        for target, mention in by_target.items()
    ]


def _edges(
    links: Sequence[Said],
    n_nodes: int,
    weights: Mapping[str, float],
    everyday: Mapping[str, float],
) -> EdgeTable:
    """Return an edge for each link, weighed by its kind and by belief in its name."""
    ends = np.asarray(
        [(unit.owner, target, unit.row) for unit, target, _ in links], np.int32
    ).reshape(-1, 3)
    measured = [(weights[mention.kind], mention.share) for _, _, mention in links]
    strength = np.asarray(measured, dtype=np.float32).reshape(-1, 2)
    # a corpus of text alone loses nothing
    weight = strength.prod(axis=1) / (strength[:, 0].max(initial=0) or 1)
    weight *= beliefs([mention.name for _, _, mention in links], everyday)
    return EdgeTable.build(
        n_nodes,
        source=ends[:, 0],
        target=ends[:, 1],
        relation=np.zeros(len(links), dtype=np.int16),
        relations=[MENTIONS],
        weight=weight,
        source_row=ends[:, 2],
        properties=[_properties(unit, mention) for unit, _, mention in links],
    )


def _properties(unit: TextUnit, mention: Mention) -> dict[str, str]:
    """Return the kind of a link, the name and, in a table, the column."""
    properties = {"kind": mention.kind, "name": mention.name}
    if mention.column < len(unit.header):
        properties["column"] = unit.header[mention.column]
    return properties


def _uses(said: Sequence[Said]) -> dict[str, dict[str, UseCounts]]:
    """Return, by name and text, how texts use names.

    They are the names that at least one text may use as a word.
    """
    used: dict[str, dict[str, UseCounts]] = {}
    for name, texts in _texts_by_name(said).items():
        if can_be_everyday(name) and any(may_be_word(name, text) for text in texts):
            used[name] = {text: UseCounts.of(name, text) for text in texts}
    return used


def _everyday(used: Mapping[str, Mapping[str, UseCounts]]) -> dict[str, float]:
    """Return how everyday names are, where texts use them as words at all."""
    shares: dict[str, float] = {}
    for name, by_text in used.items():
        total = UseCounts()
        for uses in by_text.values():
            total.add(uses)
        if total.words:
            shares[name] = total.everyday
    return shares


def _as_names(
    said: Sequence[Said],
    everyday: Mapping[str, float],
    used: Mapping[str, Mapping[str, UseCounts]],
) -> list[Said]:
    """Return the mentions without those that use an everyday word as a word.

    An everyday word is a name that the texts of the corpus say more often as a word
    among others. A cell may begin with its capital.
    """
    names: list[Said] = []
    for unit, target, mention in said:
        name, text = mention.name, unit.cells[mention.column]
        if everyday.get(name, 0) > _MOSTLY and mention.kind in _SAID:
            uses = used[name].get(text) or UseCounts.of(name, text)
            if not uses.names and (uses.words or mention.kind in _TEXTS):
                continue
        names.append((unit, target, mention))
    return names


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
    """Return the mentions of another source, which bears another title.

    Of those by a source's text only the first is returned.
    """
    links: list[Said] = []
    linked: set[tuple[str, int, bool]] = set()
    for unit, target, mention in said:
        same_title = titles[target] and titles[unit.owner] == titles[target]
        if same_title or unit.owner == target:
            continue
        if unit.row == NO_ROW:
            link = sources[unit.owner], target, mention.kind in _ALIASES
            if link[0] == sources[target] or link in linked:
                continue
            linked.add(link)
        links.append((unit, target, mention))
    return links


def _without_hubs(links: Sequence[Said], n_sources: int) -> list[Said]:
    """Return the mentions without those of what too many sources say."""
    said = Counter(
        (target, mention.kind) for _, target, mention in links if mention.kind in _TEXTS
    )
    most = max(_COMMON_LEAST, _COMMON_SHARE * n_sources)
    most_hub = max(_COMMON_LEAST, _HUB_SHARE * n_sources)
    return [
        (unit, target, mention)
        for unit, target, mention in links
        if (mention.kind not in _ALIASES or said[target, "text_alias"] <= most)
        and (mention.kind not in ("text", "inside") or said[target, "text"] <= most_hub)
    ]
