"""Split texts into sentences, by rules without a model, and into chunks of sentences.

The ids of chunks depend on these rules: no update of a library may move every chunk of
a corpus.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Protocol

import numpy as np

from graphret.errors import InvalidInput
from graphret.search.encoder import Encoder
from graphret.search.vectors import check_vectors, normalize
from graphret.stopwords import FUNCTION_WORDS

Span = tuple[int, int]
"""Start and end of a piece of text, end exclusive."""

_STOPS = ".!?…؟۔।॥։።"
# The character that each begins with comes first, since a search skips to it.
_END = re.compile(
    rf"""[{_STOPS}。！？｡\n\#](?:
        (?<=(?<![{_STOPS}])[{_STOPS}])[{_STOPS}]*+ (?:["'”’»)\]]++ | [ ](?:''|[”»)\]])++)* (?=\s|$)  # a stop, quotes or brackets that close
      | (?<=[。！？｡])[。！？｡]* [」』）”’】》]*             # these need no space behind them
      | (?<=\n)\s*\n                                      # a paragraph
      | (?m:(?<=^\#))\#{{0,5}}[ \t].*\n                    # a heading
      | (?<=\n)(?=[ \t]*(?:[-*+•#|>]|\d+[.)])[ \t])        # a list, heading or table row
    )""",
    re.VERBOSE,
)
_SENTENCE = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_LAST_WORD = re.compile(r"([^\s(\[\"'“‘]++)\s?$")
_DOTTED = re.compile(r"(?:\w\.)++\w?")
_LOOK_BACK = 24
_OPENERS = "\"'“‘«([¿¡`"
# Never the end of a sentence, whatever follows.
_TITLES = frozenset(
    "mr mrs ms dr prof st rev hon gen col maj capt lt cmdr sgt cpl pvt adm gov sen rep"
    " pres supt mt ft vs univ ca cf eds e.g i.e viz feat lit arr orig hr z.b d.h u.a"
    " mme mlle".split()
)
# Not the end of a sentence before a number.
_NUMBERED = frozenset(
    "no nos fig figs eq vol vols p pp ch sec art nr ed op jan feb mar apr jun jul aug"
    " sep sept oct nov dec approx".split()
)
# The end of a sentence only before a function word, which begins most sentences.
_OPEN = frozenset("etc al inc jr sr ltd co corp bros esq dept ph.d".split())


class Chunker(Protocol):
    """Cuts texts into chunks, hundreds at once, so that a model is called few times."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text in order, losing nothing but whitespace."""
        ...


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs whole sentences into chunks that end at paragraphs; needs no model.

    Parameters
    ----------
    min_chars, max_chars
        A chunk grows to at least `min_chars`, if the next sentence fits, and to at most
        `max_chars`; a longer sentence is cut at whitespace. A shorter last chunk is
        joined to the one before if both fit.
    """

    min_chars: int = 200
    max_chars: int = 1000

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        chunks = []
        for text in texts:
            units = _units(text, self.max_chars)
            paragraphs = {
                i
                for i, (a, b) in enumerate(pairwise(units))
                if text.count("\n", a[1], b[0]) > 1
            }
            chunks.append(_packed(units, paragraphs, self.min_chars, self.max_chars))
        return chunks


@dataclass(frozen=True, slots=True)
class KnownCuts:
    """Cuts texts as they were cut before, and others by a chunker.

    Parameters
    ----------
    chunker
        What cuts a text that is not known.
    cuts
        The spans of the known texts.
    """

    chunker: Chunker
    cuts: Mapping[str, list[Span]]

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        new = [text for text in texts if text not in self.cuts]
        of_new = iter(self.chunker.spans(new) if new else ())
        return [
            self.cuts[text] if text in self.cuts else next(of_new) for text in texts
        ]


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Splits documents where neighbouring sentences are least similar.

    This is section 2.1 A 1 of the SAGE paper. Windows ``w_i = [s_{i-1}, s_i, s_{i+1}]``
    are embedded, cut off at both ends of the document; with ``sim_i = cos(h_i,
    h_{i+1})``, the document is split after every sentence i whose ``sim_i`` is at most
    the 20th percentile of the document's similarities. The limits on length are not the
    paper's; they work as in `SentenceChunker`.

    Parameters
    ----------
    encoder
        Embeds the windows; it has to return one row a window.
    percentile
        Share of a document's sentences, in percent, after which it is split.
    """

    encoder: Encoder
    percentile: float = 20
    min_chars: int = 200
    max_chars: int = 2000

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the chunks of each text."""
        chunks: list[list[Span]] = []
        units_by_text = [_units(text, self.max_chars) for text in texts]
        # A single sentence is not embedded.
        counts = [len(units) if len(units) > 1 else 0 for units in units_by_text]
        windows = [
            text[units[max(0, i - 1)][0] : units[min(n - 1, i + 1)][1]]
            for text, units, n in zip(texts, units_by_text, counts, strict=True)
            for i in range(n)
        ]
        embedded = (
            self.encoder.encode_documents(windows) if windows else np.zeros((0, 1))
        )
        rows = normalize(
            check_vectors(embedded, len(windows), what="sentence embedding")
        )
        vectors_by_text = np.split(rows, np.cumsum(counts)[:-1].astype(int))
        for units, vectors in zip(units_by_text, vectors_by_text, strict=False):
            similarities = np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
            threshold = (
                np.percentile(similarities, self.percentile) if len(similarities) else 0
            )
            breakpoints = np.flatnonzero(similarities <= threshold).tolist()
            chunks.append(
                _packed(units, set(breakpoints), self.min_chars, self.max_chars)
            )
        return chunks


def _packed(
    units: Sequence[Span], breakpoints: Collection[int], min_chars: int, max_chars: int
) -> list[Span]:
    """Return chunks of whole units, each ending at a breakpoint if long enough."""
    chunks: list[Span] = []
    for i, (start, end) in enumerate(units):
        first, last = chunks[-1] if chunks else (start, start)
        if (
            chunks
            and end - first <= max_chars
            and (i - 1 not in breakpoints or last - first < min_chars)
        ):
            chunks[-1] = (first, end)
        else:
            chunks.append((start, end))
    if (
        len(chunks) > 1
        and chunks[-1][1] - chunks[-1][0] < min_chars
        and chunks[-1][1] - chunks[-2][0] <= max_chars
    ):
        chunks[-2:] = [(chunks[-2][0], chunks[-1][1])]
    return chunks


def _units(text: str, max_chars: int) -> list[Span]:
    """Return the sentences of a text, those over `max_chars` cut at whitespace."""
    piece = re.compile(
        rf"\S(?:.{{,{max(0, max_chars - 2)}}}\S)?(?=\s|\Z)|\S{{{max_chars}}}", re.DOTALL
    )
    units: list[Span] = []
    for start, end in split_sentences(text):
        fits = end - start <= max_chars
        units += (
            [(start, end)]
            if fits
            else [match.span() for match in piece.finditer(text, start, end)]
        )
    return units


def named_chunker(name: str, encoder: Encoder | None) -> Chunker | None:
    """Return a chunker by name; the default is semantic if there is an encoder."""
    if name not in ("default", "semantic", "sentence", "none") or (
        name == "semantic" and encoder is None
    ):
        raise InvalidInput(
            "chunker: expected 'semantic', which needs an encoder, 'sentence' or"
            f" 'none', got {name!r}"
        )
    if name == "none":
        return None
    return (
        SentenceChunker()
        if encoder is None or name == "sentence"
        else SemanticChunker(encoder)
    )


def chunker_name(chunker: Chunker | None) -> str:
    """Return the name under which `named_chunker` finds a chunker of this kind."""
    return (
        "none"
        if chunker is None
        else "semantic"
        if isinstance(chunker, SemanticChunker)
        else "sentence"
    )


def split_sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a text, in order, losing nothing but whitespace.

    The rules know the stops of Latin, Greek, Cyrillic, Arabic, Devanagari, Chinese and
    Japanese script, common abbreviations, initials, and text with spaces around its
    punctuation (``"It ended . He left ."``).
    """
    sentence_ends = (
        match.end()
        for match in _END.finditer(text)
        if text[match.start()] not in _STOPS or _ends_sentence(text, *match.span())
    )
    pieces = (
        _SENTENCE.search(text, *place)
        for place in pairwise(chain([0], sentence_ends, [len(text)]))
    )
    return (piece.span() for piece in pieces if piece)


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether a stop ends a sentence, by the words before and after it."""
    following = text[end : end + 2 * _LOOK_BACK].lstrip().lstrip(_OPENERS)
    if following[:1].islower():
        return False
    if text[start] != "." or text.startswith("..", start):
        return True
    word = _LAST_WORD.search(text, max(0, start - _LOOK_BACK), start)
    last = word[1].lower() if word else ""
    if last in _TITLES or (last in _NUMBERED and following[:1].isdigit()):
        return False
    if last in _OPEN or (len(last) == 1 and last.isalpha()) or _DOTTED.fullmatch(last):
        return (
            not (words := following.split(maxsplit=1))
            or words[0].lower().rstrip(",'’") in FUNCTION_WORDS
        )
    return True
