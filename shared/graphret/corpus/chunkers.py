"""Cutting documents into chunks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from graphret.corpus.sentences import Span, split_long, split_sentences
from graphret.errors import InvalidInput
from graphret.search.encoder import Encoder
from graphret.search.vectors import check_vectors, normalize

_TEXTS_PER_CALL = 1024  # so that the embeddings of their sentences fit in memory


@runtime_checkable
class Chunker(Protocol):
    """Cuts texts into chunks; takes all of a corpus at once, so that a model is called few times."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text as ``(start, end)``, in order, losing nothing but whitespace."""
        ...


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs whole sentences into chunks, which end at paragraphs; needs no model.

    Parameters
    ----------
    min_chars, max_chars
        A chunk goes on until it has the one, where the next sentence fits, and has no more than the other; a longer
        sentence is cut at whitespace. A last one that is shorter is joined to the one before, where both fit.
    """

    min_chars: int = 200
    max_chars: int = 1000

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        chunks = []
        for text in texts:
            units = _units(text, self.max_chars)
            gaps = (text[before[1] : after[0]] for before, after in pairwise(units))
            paragraphs = {i for i, gap in enumerate(gaps) if gap.count("\n") > 1}
            chunks.append(_packed(units, paragraphs, self.min_chars, self.max_chars))
        return chunks


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Splits documents where neighbouring sentences are least alike (SAGE, section 2.1 A 1).

    Windows ``w_i = [s_{i-1}, s_i, s_{i+1}]``, cut off at both ends of the document, are embedded; with
    ``sim_i = cos(h_i, h_{i+1})``, the document is split behind every sentence i whose ``sim_i`` is at most the 20th
    percentile of its own similarities. The limits on length are ours, and as those of `SentenceChunker`.

    Parameters
    ----------
    encoder
        What embeds the windows; an answer without one row a window is an `InvalidInput`.
    percentile
        Share of a document's places, in percent, at which it is split.
    """

    encoder: Encoder
    percentile: float = 20
    min_chars: int = 200
    max_chars: int = 2000

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        if not 0 <= self.percentile <= 100:
            raise InvalidInput(f"SemanticChunker: 'percentile' is from 0 to 100, not {self.percentile!r}")
        chunks: list[list[Span]] = []
        for first in range(0, len(texts), _TEXTS_PER_CALL):
            part = texts[first : first + _TEXTS_PER_CALL]
            cut = [_units(text, self.max_chars) for text in part]
            counts = [len(units) if len(units) > 1 else 0 for units in cut]  # a single sentence is not embedded
            windows = [
                text[units[max(0, i - 1)][0] : units[min(n - 1, i + 1)][1]]
                for text, units, n in zip(part, cut, counts, strict=True)
                for i in range(n)
            ]
            embedded = self.encoder.encode_documents(windows) if windows else np.zeros((0, 1))
            rows = normalize(check_vectors(embedded, len(windows), what="sentence embedding"))
            for units, own in zip(cut, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
                similarities = np.einsum("ij,ij->i", own[:-1], own[1:])
                threshold = np.percentile(similarities, self.percentile) if len(similarities) else 0
                breakpoints = np.flatnonzero(similarities <= threshold).tolist()
                chunks.append(_packed(units, set(breakpoints), self.min_chars, self.max_chars))
        return chunks


def _packed(units: Sequence[Span], ends: Collection[int], min_chars: int, max_chars: int) -> list[Span]:
    """Return chunks of whole units that fit, each ending where it may, behind one of `ends`, once it is long enough."""
    chunks: list[Span] = []
    for i, (start, end) in enumerate(units):
        first, last = chunks[-1] if chunks else (start, start)
        if chunks and end - first <= max_chars and (i - 1 not in ends or last - first < min_chars):
            chunks[-1] = (first, end)
        else:
            chunks.append((start, end))
    if len(chunks) > 1 and chunks[-1][1] - chunks[-1][0] < min_chars and chunks[-1][1] - chunks[-2][0] <= max_chars:
        chunks[-2:] = [(chunks[-2][0], chunks[-1][1])]
    return chunks


def _units(text: str, max_chars: int) -> list[Span]:
    if max_chars < 1:
        raise InvalidInput(f"chunker: 'max_chars' is 1 or more, not {max_chars!r}")
    return [piece for span in split_sentences(text) for piece in split_long(text, span, max_chars)]


def named_chunker(name: str, encoder: Encoder | None) -> Chunker | None:
    """Return the chunker that is meant: the paper's semantic one by default, sentences where there is no encoder."""
    if name not in ("default", "semantic", "sentence", "none"):
        raise InvalidInput(f"chunker: 'semantic', 'sentence' or 'none' is expected, not {name!r}")
    if name == "semantic" and encoder is None:
        raise InvalidInput("chunker: 'semantic' needs an encoder")
    semantic = SemanticChunker(encoder) if encoder is not None and name != "sentence" else None
    return None if name == "none" else semantic or SentenceChunker()


def chunker_name(chunker: Chunker | None) -> str:
    """Return the name under which `named_chunker` finds a chunker of this kind."""
    return "none" if chunker is None else "semantic" if isinstance(chunker, SemanticChunker) else "sentence"
