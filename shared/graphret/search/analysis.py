"""From text to terms: the analysis that every lexical index shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphret.errors import InvalidInput
from graphret.stopwords import QUESTION_WORDS
from graphret.text import tokenize, words

# Names in code: snake_case, C++, C#, .NET, camelCase.
_CODE = re.compile(
    r"(?<!\w)(?:[A-Za-z][^\W_]*+(?:_\w+|_?(?:\+\+|#)(?![\w+#]))"
    r"|(?<!\.)\.[A-Za-z]\w+|[a-z]++(?:[A-Z][a-z0-9]++)++(?!\w))"
)
# A character that each of them has, soon found as most texts have few: an underscore,
# plus or number sign, a capital behind a small letter, a stop before a letter.
_IN_CODE = re.compile(r"[_+#A-Z.](?:(?<=[_+#])|(?<=[a-z][A-Z])|(?<=\.)(?=[A-Za-z]))")
# A word in capitals, next to none in capitals. Its first letter comes before what is
# asked of the place, since a search skips to it.
_CAPITALS = re.compile(
    r"[A-Z](?<!\w.)(?<![A-Z][A-Z] .)(?<![A-Z][A-Z], .)"
    r"[A-Z]*(?:&[A-Z]+)*+(?!\w|,? [A-Z][A-Z])"
)
# A word that is hyphenated at the end of a line.
_DIVIDED = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-[ \t]*+\r?\n[ \t]*+([^\W\d_]++)")

_WORDS_KEPT = 2_000_000  # bounds the memory of a long-lived process


@dataclass(frozen=True)
class Analyzer:
    """Splits text into words, folds case and accents, drops stop words, and stems.

    Terms by spelling follow at the end: names in code (``snake_case``, ``C++``), stop
    words in capitals (IT, AT&T), and words hyphenated at the end of a line, joined.

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
        return [
            *filter(None, map(term_of, words(text))),
            *_spelled_terms(text, term_of),
        ]

    def of_query(self, query: str) -> list[str]:
        """Return the terms of a question, without English question words.

        Those in names stay, as do all where nothing else is left.
        """
        return [*_of_query(self, query)]


@lru_cache(maxsize=64)  # one retrieval asks some twenty times
def _of_query(analyzer: Analyzer, query: str) -> tuple[str, ...]:
    """Do as `Analyzer.of_query`."""
    if analyzer.stopwords != "english":
        return tuple(analyzer(query))
    content_words = (
        word
        for word, at, _ in tokenize(query)
        if word not in QUESTION_WORDS or (at and query[at].isupper())
    )
    term_of = _terms(analyzer.language, analyzer.stopwords)
    terms = [term for term in map(term_of, content_words) if term]
    return (*terms, *_spelled_terms(query, term_of)) or tuple(analyzer(query))


def _spelled_terms(text: str, term_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the terms that are recognised by their spelling."""
    for code in _CODE.finditer(text) if _IN_CODE.search(text) else ():
        # In lower case, unless case alone tells it from a word.
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
    """Return a function from a word to its term, empty for a stop word."""
    import Stemmer

    # Importing bm25s takes a tenth of a second.
    from bm25s.tokenization import Tokenizer

    try:
        stem = Stemmer.Stemmer(language).stemWord if language else str
        left_out = frozenset(
            Tokenizer(stopwords=stopwords).stopwords if stopwords else ()
        )
    except (KeyError, ValueError) as error:
        raise InvalidInput(f"analyzer: {language!r}, {stopwords!r}: {error}") from None
    return lru_cache(_WORDS_KEPT)(lambda word: "" if word in left_out else stem(word))
