"""Cutting documents into chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.corpus.sentences import Span, split_long, split_sentences
from graphret.errors import InvalidInput
from graphret.search.encoder import Encoder
from graphret.search.vectors import check_vectors, normalize

Floats: TypeAlias = NDArray[np.floating[Any]]

_TEXTS_PER_CALL = 1024  # so that the embeddings of their sentences fit in memory


@runtime_checkable
class Chunker(Protocol):
    """Cuts texts into chunks; takes all of a corpus at once, so that a model is called few times."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text as ``(start, end)``, in order, losing nothing but whitespace."""
        ...


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs whole sentences into chunks; needs no model.

    A chunk ends where the next sentence would not fit, or at the end of a paragraph once it is long enough.

    Parameters
    ----------
    min_chars
        A chunk that is shorter is joined to the one before where both fit `max_chars`.
    max_chars
        The most characters of a chunk; a longer sentence is cut at whitespace.
    """

    min_chars: int = 200
    max_chars: int = 1000

    def __post_init__(self) -> None:
        _check_limits(self.min_chars, self.max_chars)

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        return [self._pack(text, _units(text, self.max_chars)) for text in texts]

    def _pack(self, text: str, units: Sequence[Span]) -> list[Span]:
        chunks: list[Span] = []
        for start, end in units:
            if chunks and end - chunks[-1][0] <= self.max_chars:
                first, last = chunks[-1]
                if last - first < self.min_chars or text[last:start].count("\n") < 2:
                    chunks[-1] = (first, end)
                    continue
            chunks.append((start, end))
        if len(chunks) > 1 and chunks[-1][1] - chunks[-1][0] < self.min_chars:
            (first, _), (_, last) = chunks[-2:]
            if last - first <= self.max_chars:
                chunks[-2:] = [(first, last)]
        return chunks


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Splits documents where neighbouring sentences are least alike (SAGE, section 2.1 A 1).

    Windows ``w_i = [s_{i-1}, s_i, s_{i+1}]``, cut off at both ends of the document, are embedded; with
    ``sim_i = cos(h_i, h_{i+1})``, the document is split behind every sentence i whose ``sim_i`` is at most the 20th
    percentile of its own similarities. The paper sets no limits on length; here a chunk above `max_chars` is then split
    at the least similar places, and one below `min_chars` joined to the neighbour that is more like it, where both fit.

    Parameters
    ----------
    encoder
        What embeds the windows.
    percentile
        Share of a document's places, in percent, at which it is split.
    window
        Sentences in a window, an odd number.
    min_chars, max_chars
        Limits on the length of a chunk, of which the second holds always; a longer sentence is cut at whitespace
        before anything else.
    """

    encoder: Encoder
    percentile: float = 20
    window: int = 3
    min_chars: int = 200
    max_chars: int = 2000

    def __post_init__(self) -> None:
        _check_limits(self.min_chars, self.max_chars)
        if not 0 <= self.percentile <= 100:
            raise InvalidInput(f"SemanticChunker: 'percentile' is from 0 to 100, not {self.percentile!r}")
        if self.window < 1 or self.window % 2 == 0:
            raise InvalidInput(f"SemanticChunker: 'window' is an odd number of sentences, not {self.window!r}")

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text.

        Raises
        ------
        InvalidInput
            If the encoder does not answer with one row a window.
        """
        chunks: list[list[Span]] = []
        for first in range(0, len(texts), _TEXTS_PER_CALL):
            cut = [(text, _units(text, self.max_chars)) for text in texts[first : first + _TEXTS_PER_CALL]]
            chunks += [
                self._chunk(units, alike) for (_, units), alike in zip(cut, self._similarities(cut), strict=True)
            ]
        return chunks

    def _similarities(self, documents: Sequence[tuple[str, Sequence[Span]]]) -> list[Floats]:
        """Return ``cos(h_i, h_{i+1})`` of every document; what has one sentence is not embedded."""
        reach = self.window // 2
        windows = [
            text[units[max(0, i - reach)][0] : units[min(len(units) - 1, i + reach)][1]]
            for text, units in documents
            if len(units) > 1
            for i in range(len(units))
        ]
        embedded = self.encoder.encode_documents(windows) if windows else np.zeros((0, 1))
        rows = normalize(check_vectors(embedded, len(windows), what="sentence embedding"))
        similarities: list[Floats] = []
        first = 0
        for _, units in documents:
            if len(units) < 2:
                similarities.append(np.zeros(0, dtype=np.float32))
                continue
            own = rows[first : first + len(units)]
            similarities.append(np.einsum("ij,ij->i", own[:-1], own[1:]))
            first += len(units)
        return similarities

    def _chunk(self, units: Sequence[Span], similarities: Floats) -> list[Span]:
        if not units:
            return []
        cuts = breakpoints(similarities, self.percentile)
        groups = _split_groups(units, similarities, [0, *(i + 1 for i in cuts), len(units)], self)
        groups = _merge_groups(units, similarities, groups, self)
        return [(units[a][0], units[b - 1][1]) for a, b in groups]


def breakpoints(similarities: Floats, percentile: float = 20) -> list[int]:
    """Return every i at which ``similarities[i]`` is at most the percentile of them all (SAGE, section 2.1 A 1)."""
    if not len(similarities):
        return []
    threshold = np.percentile(similarities, percentile)
    return [int(i) for i in np.flatnonzero(similarities <= threshold)]


def _split_groups(
    units: Sequence[Span], similarities: Floats, bounds: Sequence[int], limits: SemanticChunker
) -> list[Span]:
    """Return groups of sentences that fit, split further at the least similar place that leaves no short side."""
    starts = np.array([start for start, _ in units])
    ends = np.array([end for _, end in units])
    groups: list[Span] = []
    stack = list(pairwise(bounds))[::-1]
    while stack:
        a, b = stack.pop()
        if ends[b - 1] - starts[a] <= limits.max_chars or b - a == 1:
            groups.append((a, b))
            continue
        left = ends[a : b - 1] - starts[a]
        right = ends[b - 1] - starts[a + 1 : b]
        short = np.minimum(left, right) < limits.min_chars
        costs = np.where(short & (not short.all()), np.inf, similarities[a : b - 1])
        cut = a + 1 + int(np.argmin(costs))
        stack += [(cut, b), (a, cut)]
    return groups


def _merge_groups(
    units: Sequence[Span], similarities: Floats, groups: Sequence[Span], limits: SemanticChunker
) -> list[Span]:
    """Join every group below the minimum to the neighbour across the more similar boundary, where both fit."""
    waiting = list(reversed(groups))
    done: list[Span] = []

    def fits(a: int, b: int) -> bool:
        return units[b - 1][1] - units[a][0] <= limits.max_chars

    while waiting:
        a, b = waiting.pop()
        if units[b - 1][1] - units[a][0] >= limits.min_chars:
            done.append((a, b))
            continue
        left = similarities[a - 1] if done and fits(done[-1][0], b) else -np.inf
        right = similarities[b - 1] if waiting and fits(a, waiting[-1][1]) else -np.inf
        if left == right == -np.inf:
            done.append((a, b))
        elif left >= right:
            done[-1] = (done[-1][0], b)
        else:
            waiting[-1] = (a, waiting[-1][1])
    return done


def _units(text: str, max_chars: int) -> list[Span]:
    return [piece for span in split_sentences(text) for piece in split_long(text, span, max_chars)]


def _check_limits(min_chars: int, max_chars: int) -> None:
    if not 0 <= min_chars <= max_chars or max_chars < 1:
        raise InvalidInput(
            f"chunk limits: 0 <= min_chars <= max_chars, and 1 or more, not {min_chars!r}, {max_chars!r}"
        )


def named_chunker(name: str, encoder: Encoder | None) -> Chunker | None:
    """Return the chunker that is meant: the paper's semantic one by default, sentences where there is no encoder."""
    if name == "default":
        name = "semantic" if encoder is not None else "sentence"
    if name == "none":
        return None
    if name == "sentence":
        return SentenceChunker()
    if name == "semantic":
        if encoder is None:
            raise InvalidInput("chunker: semantic chunking needs an encoder")
        return SemanticChunker(encoder)
    raise InvalidInput(f"chunker: 'default', 'semantic', 'sentence' or 'none' is expected, not {name!r}")


def chunker_name(chunker: Chunker | None) -> str:
    """Return the name under which `named_chunker` finds a chunker of this kind."""
    if chunker is None:
        return "none"
    return "semantic" if isinstance(chunker, SemanticChunker) else "sentence"
