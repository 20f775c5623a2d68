"""From text to terms: the analysis that every lexical index shares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphret.errors import InvalidInput
from graphret.text import words

_WORDS_KEPT = 2_000_000  # bounds the memory of a long-lived process


@lru_cache(maxsize=8)
def _stopwords(language: str) -> frozenset[str]:
    if not language:
        return frozenset()
    from bm25s.tokenization import Tokenizer  # importing bm25s takes a tenth of a second

    try:
        return frozenset(Tokenizer(stopwords=language).stopwords)
    except ValueError as error:
        raise InvalidInput(f"analyzer: no stop words for {language!r}: {error}") from None


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
        found = False
        for term in map(self._term, words(text)):
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
            if len(self._cache) < _WORDS_KEPT:
                self._cache[word] = term
        return term

    def to_dict(self) -> dict[str, str]:
        """The settings, as they are saved with an index."""
        return {"language": self.language, "stopwords": self.stopwords}
