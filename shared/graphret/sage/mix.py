"""How much words and meaning count in a corpus, fitted to what its own links say: no questions are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from zlib import crc32

import numpy as np

from graphret.corpus.chunkers import split_sentences
from graphret.edges import NO_PART, EdgeTable
from graphret.expansion.frontier import MENTIONS
from graphret.sage.structure import sources_of
from graphret.search.hybrid import HybridIndex
from graphret.search.index import min_max

#: At most so many links are asked, one for so many nodes, so that embedding them costs little beside embedding these;
#: fewer than the least say nothing.
_MOST, _ONE_IN, _LEAST = 300, 15, 50
#: What names are left out of wants more meaning than questions do: farther from 0.6 nothing is believed.
_SHARES = np.linspace(0.4, 0.8, 5)
_MIN_WORDS = 5


def fitted_alpha(index: HybridIndex, links: EdgeTable) -> float:
    """Return the share of BM25 with which texts find what they name, the names left out.

    A sentence, or a row of a table, that names a node is a question whose answer is known. For each share the mean
    reciprocal rank of what a few hundred name is taken, the asking sources left out. Of the shares that are no worse
    than the best by more than a standard error it is the one nearest to that of the index; that of the index where
    there are fewer than 50 such questions among its ``MENTIONS`` edges, or nothing to embed them with.
    """
    dense = index.dense
    most = min(_MOST, len(index.table) // _ONE_IN)
    if dense is None or dense.encoder is None or most < _LEAST:
        return index.alpha
    source, _ = sources_of(index.table)
    questions = (one for one in _questions(index, links) if source[one[1]] != source[one[2]])
    asked = list(islice(questions, most))
    if len(asked) < _LEAST:
        return index.alpha
    vectors = dense.encoder.encode_queries([text for text, _, _ in asked])
    ranks = np.zeros((len(asked), len(_SHARES)))
    for row, ((text, asker, target), vector) in enumerate(zip(asked, vectors, strict=True)):
        others = source != source[asker]
        right = source[others] == source[target]
        words = min_max(index.lexical.scores(text)[others], index.lexical.least)
        meaning = min_max((dense.vectors @ vector)[others])
        for i, share in enumerate(_SHARES):
            scores = share * words + (1 - share) * meaning
            ranks[row, i] = 1 + np.count_nonzero(scores[~right] > scores[right].max())
    found = 1 / ranks
    worse = found[:, [found.mean(axis=0).argmax()]] - found
    good = _SHARES[worse.mean(axis=0) <= worse.std(axis=0) / len(asked) ** 0.5]
    return round(float(good[np.abs(good - index.alpha).argmin()]), 1)


def _questions(index: HybridIndex, links: EdgeTable) -> Iterator[tuple[str, int, int]]:
    """Yield what a text says around a name, who says it and who is named, each named node once."""
    if MENTIONS not in links.relations:
        return
    edges = np.flatnonzero(links.relation == links.relations.index(MENTIONS))
    ends = (index.table.names.take(column[edges]) for column in (links.source, links.target))
    keys = [crc32(f"{asker} {named}".encode("utf-8", "replace")) for asker, named in zip(*ends, strict=True)]
    seen = set[int]()
    for edge in edges[np.argsort(keys, kind="stable")].tolist():  # by names, as ids may be drawn anew each time
        asker, target, part = int(links.source[edge]), int(links.target[edge]), int(links.source_part[edge])
        if target in seen:
            continue
        [node] = index.table.at([asker])
        name = str(links.properties.take([edge])[0].get("name") or "")
        if part == NO_PART:
            said = [node.text[start:end] for start, end in split_sentences(node.text)]
            text = next((one for one in said if name.casefold() in one.casefold()), "")
        else:
            text = " ".join([node.name, *map(str, node.properties["table_rows"][part])])
        masked = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE)
        if len(masked.split()) >= _MIN_WORDS:
            seen.add(target)
            yield masked, asker, target
