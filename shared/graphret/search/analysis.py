"""From text to terms: the analysis that every lexical index shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from graphret.errors import InvalidInput
from graphret.stopwords import QUESTION_WORDS
from graphret.text import tokenize, words

_WORDS_KEPT = 2_000_000  # bounds the memory of a long-lived process


@dataclass(frozen=True)
class Analyzer:
    """Words, case and accents folded, stop words out, stemmed.

    Parameters
    ----------
    language, stopwords
        A Snowball stemmer and a stop-word list of bm25s by name, or ``""`` for none.
    """

    language: str = "english"
    stopwords: str = "english"

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text, in order, repeated as often as they occur."""
        term_of = _terms(self.language, self.stopwords)
        return [term for word in words(text) if (term := term_of(word))]

    def of_query(self, query: str) -> list[str]:
        """Return the terms of a question: without English question words, but those in
        names, if others are left.
        """
        if self.stopwords != "english":
            return self(query)
        asked = (
            word
            for word, at, _ in tokenize(query)
            if word not in QUESTION_WORDS or (at and query[at].isupper())
        )
        return [
            term for term in map(_terms(self.language, self.stopwords), asked) if term
        ] or self(query)


@lru_cache(maxsize=8)
def _terms(language: str, stopwords: str) -> Callable[[str], str]:
    """Return what makes a word a term, empty for a stop word."""
    import Stemmer
    from bm25s.tokenization import (
        Tokenizer,
    )  # importing bm25s takes a tenth of a second

    try:
        stem = Stemmer.Stemmer(language).stemWord if language else str
        left_out = frozenset(
            Tokenizer(stopwords=stopwords).stopwords if stopwords else ()
        )
    except (KeyError, ValueError) as error:
        raise InvalidInput(f"analyzer: {language!r}, {stopwords!r}: {error}") from None
    return lru_cache(_WORDS_KEPT)(lambda word: "" if word in left_out else stem(word))
