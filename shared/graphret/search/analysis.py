"""From text to terms: the analysis that every lexical index shares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.text import words


@lru_cache(maxsize=8)
def _stopwords(language: str) -> frozenset[str]:
    if not language:
        return frozenset()
    from bm25s.tokenization import _infer_stopwords  # importing bm25s takes a tenth of a second

    return frozenset(_infer_stopwords(language))


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Any:
    import Stemmer

    try:
        return Stemmer.Stemmer(language)
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise InvalidInput(f"analyzer: no stemmer for {language!r}; known are {known}") from None


@dataclass(frozen=True)
class Analyzer:
    """Words, case and accents folded, stop words out, stemmed.

    Parameters
    ----------
    language
        A Snowball stemmer by name, or ``""`` for none.
    stopwords
        A stop-word list of bm25s by name, or ``""`` for none.
    """

    language: str = "english"
    stopwords: str = "english"
    _cache: dict[str, str] = field(default_factory=dict, repr=False, compare=False, hash=False)

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text, in order, repeated as often as they occur."""
        return [term for term in map(self._term, words(text)) if term]

    def all_in(self, text: str, terms: Collection[str]) -> bool:
        """Whether a text has terms, and all of them are among `terms`."""
        cache, found = self._cache, False
        for word in words(text):
            known = cache.get(word)
            term = self._term(word) if known is None else known
            if term:
                if term not in terms:
                    return False
                found = True
        return found

    def _term(self, word: str) -> str:
        term = self._cache.get(word)
        if term is None:
            stop = word in _stopwords(self.stopwords)
            term = "" if stop else _stemmer(self.language).stemWord(word) if self.language else word
            if len(self._cache) < 2_000_000:  # bounds the memory of a long-lived process
                self._cache[word] = term
        return term

    def to_dict(self) -> dict[str, str]:
        """The settings, as they are saved with an index."""
        return {"language": self.language, "stopwords": self.stopwords}


class Vocabulary:
    """Terms and their positions; it only grows, so that positions stay valid."""

    def __init__(self, terms: Sequence[str] = ()) -> None:
        self._terms: Sequence[str] = terms
        self._positions: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._terms if self._positions is None else self._positions)

    @property
    def positions(self) -> dict[str, int]:
        """Term to position; built when first asked for, since a saved vocabulary is read lazily."""
        if self._positions is None:
            self._positions = {term: i for i, term in enumerate(self._terms)}
        return self._positions

    def terms(self) -> list[str]:
        """All terms by position."""
        return list(self._terms) if self._positions is None else list(self._positions)

    def grown(self, documents: Sequence[Sequence[str]]) -> tuple[Vocabulary, NDArray[np.int32], NDArray[np.int64]]:
        """Return a vocabulary that also holds the terms of `documents`.

        Returns
        -------
        vocabulary, term_ids, indptr
            The terms of all documents as positions, concatenated, and where each document begins, ``(n + 1,)``.
        """
        vocabulary = self.copy()
        return vocabulary, *vocabulary.grow(documents)

    def copy(self) -> Vocabulary:
        """Return a vocabulary of the same terms that can grow without this one."""
        other = Vocabulary()
        other._positions = dict(self.positions)
        return other

    def grow(self, documents: Sequence[Sequence[str]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Add the terms of `documents` here, and return them as `grown` does."""
        positions = self.positions
        lengths = np.fromiter((len(d) for d in documents), dtype=np.int64, count=len(documents))
        total = int(lengths.sum())
        ids = np.fromiter(
            (positions.setdefault(term, len(positions)) for term in chain.from_iterable(documents)),
            dtype=np.int32,
            count=total,
        )
        return ids, np.concatenate([[0], np.cumsum(lengths)])
