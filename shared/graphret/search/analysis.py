"""From text to terms: the analysis that every lexical index shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphret.errors import InvalidInput
from graphret.stopwords import QUESTION_WORDS
from graphret.text import tokenize, words

# What is written in a way of its own: snake_case, C++, C#, .NET, camelCase.
_CODE = re.compile(
    r"(?<!\w)[A-Za-z]\w*_\w+|(?<!\w)[A-Za-z]\w*(?:\+\+|#)(?![\w+#])"
    r"|(?<![\w.])\.[A-Za-z]\w+|(?<!\w)[a-z]+(?:[A-Z][a-z0-9]+)+(?!\w)"
)
# In capitals, and no word beside it is.
_CAPITALS = re.compile(
    r"(?<![A-Z][A-Z] )(?<![A-Z][A-Z], )(?<!\w)[A-Z]+(?:&[A-Z]+)*+(?!\w|,? [A-Z][A-Z])"
)
# A word that is divided at the end of a line.
_DIVIDED = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-[ \t]*+\r?\n[ \t]*+([^\W\d_]++)")

_WORDS_KEPT = 2_000_000  # bounds the memory of a long-lived process


@dataclass(frozen=True)
class Analyzer:
    """Words, case and accents folded, stop words out, stemmed.

    What is found by its spelling is a term besides its words, at the end: names in code
    (``snake_case``, ``C++``), stop words in capitals (IT, AT&T), and a word that a line
    end divides, joined.

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
        found = [term for word in words(text) if (term := term_of(word))]
        return [*found, *_spelled(text, term_of)]

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
        term_of = _terms(self.language, self.stopwords)
        found = [term for term in map(term_of, asked) if term]
        return [*found, *_spelled(query, term_of)] or self(query)


def _spelled(text: str, term_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the terms of what tells by how it is spelled."""
    for code in _CODE.finditer(text):
        # In lower case, unless case is all that tells it from a word.
        plain = code[0].isalnum()
        yield code[0] if plain else code[0].lower()
    for capitals in _CAPITALS.finditer(text):
        word = capitals[0]
        if "&" in word or (len(word) > 1 and not term_of(word.lower())):
            yield word
    if "-" in text and "\n" in text:
        for divided in _DIVIDED.finditer(text):
            for word in words(divided[1] + divided[2]):
                if term := term_of(word):
                    yield term


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
