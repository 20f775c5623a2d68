"""The parts of a question: possible names, the words around them, what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile, pairwise
from typing import NamedTuple

from graphret.linking.mentions import MARKED_TEXT, SYMBOLS
from graphret.linking.names import SIGNS
from graphret.linking.words import Lexicon, stem
from graphret.stopwords import FUNCTION_WORDS, STOP_WORDS
from graphret.text import Token, tokenize, words

#: Most parts that are searched for, and most words that are read on either side of a
#: name, the nearest.
MOST, NEAREST = 4, 12

_ENDS = " ,.;:?!"
ASKING = frozenset("who whom when where which what whose".split())
_COPULA = frozenset("is are was were".split())
_ARTICLES = _COPULA | frozenset("the a an some all".split())
#: Words that say that two things have something in common, so that a relation is
#: followed there and back.
TOGETHER = frozenset(
    "same share shared shares together co common fellow also another other others"
    " else".split()
)
#: Words which no relation is called by: those of asking and telling, and those that
#: hold a sentence together.
IDLE = (
    (FUNCTION_WORDS - {"about", "own"})
    | TOGETHER
    | frozenset(
        """
    give find show tell list listed name named know known call called fall main primary
    please few applicable make made world get see seen want look looking similar
    different related other associated
""".split()
    )
)


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """One way to read a question outward from a name, the nearest words first.

    `asked_nouns` are words for the kind of thing that is asked for. `together` says
    that something is shared, so that a relation may be followed there and back; `among`
    that there are other names, to which some of the words belong. `forward` are the
    words that what is nearer does, as in "cited by X" and "does X cite"; else it is
    done to it.
    """

    cues: tuple[str, ...]
    asked_nouns: tuple[str, ...] = ()
    together: bool = False
    among: bool = False
    forward: frozenset[str] = frozenset()


def spans(question: str, lexicon: Lexicon) -> list[str]:
    """Return the parts of a question that may be names, the likeliest first.

    Marked text, words in capitals, runs of uncommon words, without any of these runs of
    words that name no relation, and symbols between white space ("who acted in $?").
    """

    def capital(token: Token) -> bool:
        opens = (
            not question[: token[1]].strip() and token[0] in STOP_WORDS
        )  # as sentences do
        return question[token[1]].isdigit() or (
            question[token[1]].isupper() and not opens
        )

    parts = [
        next(filter(None, match.groups())) for match in MARKED_TEXT.finditer(question)
    ]
    parts += _runs(question, capital, FUNCTION_WORDS) + _runs(
        question, lambda token: token[0] not in STOP_WORDS
    )
    if not parts:  # "which films are about love"
        parts = _runs(
            question,
            lambda token: (
                token[0] not in FUNCTION_WORDS and not lexicon.is_relational(token[0])
            ),
        )
    parts += [part for part in SYMBOLS.findall(question) if not SIGNS.issuperset(part)]
    cleaned = (
        part.strip(_ENDS) or part.strip() for part in parts
    )  # a band is called "!!!"
    return list(dict.fromkeys(part for part in cleaned if part and part != question))[
        :MOST
    ]


def _runs(
    question: str, tells: Callable[[Token], bool], between: Collection[str] = ()
) -> list[str]:
    """The runs of telling words, with small words in between, the longest first."""
    runs: list[tuple[int, int]] = []
    goes_on = False
    for token in tokenize(question):
        if telling := tells(token):
            begin = runs.pop()[0] if goes_on else token[1]
            runs.append((begin, token[2]))
        goes_on = telling or (goes_on and token[0] in between)
    return [
        question[start:end]
        for start, end in sorted(runs, key=lambda run: run[0] - run[1])
    ]


def place_of(question: str, name: str) -> tuple[int, int, float]:
    """Return where a question says a name, and which share of its words.

    Most of the words of the name are enough.
    """
    tokens, name_stems = (
        tokenize(question),
        {stem(word) for word in words(name) if word not in FUNCTION_WORDS},
    )
    stems, size = [stem(word) for word, _, _ in tokens], len(words(name)) + 2
    windows = [
        (len(name_stems.intersection(stems[i : i + size])), -i)
        for i in range(len(stems))
    ]
    most, first = max(windows, default=(0, 0))
    if not most:
        return len(question), len(question), 0.0
    name_tokens = [
        tokens[i]
        for i in range(-first, min(len(stems), size - first))
        if stems[i] in name_stems
    ]
    return name_tokens[0][1], name_tokens[-1][2], most / len(name_stems)


@lru_cache(maxsize=256)
def readings(
    question: str,
    start: int,
    end: int,
    other_names: frozenset[tuple[int, int]],
    lexicon: Lexicon,
) -> tuple[QuestionReading, ...]:
    """Return the ways to read a question outward from ``question[start:end]``.

    Other names are passed over.

    Words before the name are read from right to left ("the director of Kismet"), those
    behind it after them ("… were released when"), or before them, if one follows the
    name at once and the question does not ask there ("the Kismet actors").
    """
    tokens = [
        token
        for token in tokenize(question)
        if not any(first < token[2] and token[1] < last for first, last in other_names)
    ]
    before = [token for token in tokens if token[2] <= start]
    behind = [token for token in tokens if token[1] >= end]
    together = not TOGETHER.isdisjoint(word for word, _, _ in before + behind)
    forward = {word for word, _, _ in behind} | {
        token[0]
        for token, following in pairwise(before)
        if following[0] in ("by", "of")
    }
    ways: list[QuestionReading] = []
    for noun, used in _answer_words(before, behind, lexicon):
        left, right = _cues(before[::-1], used), _cues(behind, used)
        nearest = (
            bool(right)
            and right[0] == behind[0][0]
            and ASKING.isdisjoint(word for word, _, _ in behind)
        )
        orders = [left + right, right + left] if left and nearest else [left + right]
        ways += [
            QuestionReading(cues, noun, together, bool(other_names), frozenset(forward))
            for cues in orders
        ]
    return tuple(ways)


def _cues(tokens: Sequence[Token], used: Collection[int]) -> tuple[str, ...]:
    return tuple(
        word for word, start, _ in tokens if start not in used and word not in IDLE
    )[:NEAREST]


class _AnswerWords(NamedTuple):
    """Words for what is asked for, and where the words stand that say that alone."""

    words: tuple[str, ...] = ()
    used: frozenset[int] = frozenset()


def _answer_words(
    before: Sequence[Token], behind: Sequence[Token], lexicon: Lexicon
) -> list[_AnswerWords]:
    """What may be asked for, by a word that asks or by a noun before all else."""
    asks = False
    for side in (before, behind):
        for place in _asking_places(side):
            asks = True
            answer_words = _asked_by(side[place], side[place + 1 :])
            if answer_words:
                return answer_words
    return [_AnswerWords() if asks else _named_first(before, behind, lexicon)]


def noun_asked(question: str) -> list[str]:
    """Return the words of the noun that a question asks for.

    That is "contact" in "who is the contact at X".
    """
    tokens = tokenize(question)
    place = next(iter(_asking_places(tokens)), None)
    return [] if place is None else [token[0] for token in _noun(tokens[place + 1 :])]


def _asking_places(tokens: Sequence[Token]) -> list[int]:
    """Return where words stand that ask for something."""
    return [
        place
        for place, (word, _, _) in enumerate(tokens)
        # "the films whose directors …" asks for nothing
        if word in ASKING and not (word == "whose" and place)
    ]


def _asked_by(asking: Token, following: Sequence[Token]) -> list[_AnswerWords]:
    """What a word asks for by itself or with the noun behind it; empty for nothing."""
    word, start, _ = asking
    if word in ("who", "whom"):
        copula = bool(following) and following[0][0] in _COPULA
        noun = _noun(following[1:]) if copula else []  # "who are the directors"
        return [
            _AnswerWords((word, *(token[0] for token in noun[-1:])), frozenset({start}))
        ]
    if word in ("when", "where"):
        return [_AnswerWords((word,), frozenset({start}))]
    noun = _noun(following)
    if not noun:
        return []
    # "which film genre", "which paper cites"
    nouns = dict.fromkeys([noun[-1], noun[0]])
    return [_AnswerWords((token[0],), frozenset({start, token[1]})) for token in nouns]


def _named_first(
    before: Sequence[Token], behind: Sequence[Token], lexicon: Lexicon
) -> _AnswerWords:
    """What is asked for where no word asks: "papers about Dawn", "Dawn actors"."""
    left, right = _without_idle(before), _without_idle(behind)
    right_opens = right == list(behind)
    noun = _noun(left or (right if right_opens else []))
    if not noun or noun[-1:] == before[-1:]:
        return _AnswerWords()  # of "the film Dawn" the noun says what that is
    word, start, _ = noun[-1]
    several = word.endswith("s") and (before or behind)[0][0] != "the"
    relational = lexicon.is_relational(word) and not (left and right)
    return (
        _AnswerWords((word,), frozenset({start}))
        if several or relational
        else _AnswerWords()
    )


def _without_idle(tokens: Sequence[Token]) -> list[Token]:
    """Leave out the first words, up to one that a relation may be called by."""
    return list(dropwhile(lambda token: token[0] in IDLE, tokens))


def _noun(tokens: Sequence[Token]) -> list[Token]:
    """The words of the noun that a text begins with, what stands before it aside."""
    noun: list[Token] = []
    for token in tokens:
        word = token[0]
        if (not noun and word in _ARTICLES) or (
            word in TOGETHER and stem(word) != "share"
        ):
            continue
        if word in FUNCTION_WORDS or word in TOGETHER or word.endswith("ed"):
            break
        noun.append(token)
    return noun
