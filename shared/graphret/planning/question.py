"""What a question says: parts that may be names, and around a name the words that lead on and the thing asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import dropwhile

from graphret.linking.everyday import COMMON_WORDS, FUNCTION_WORDS
from graphret.linking.names import SIGNS
from graphret.planning.words import Lexicon, stem
from graphret.text import Token, tokenize

#: Most parts that are searched for.
MOST = 4

_ENDS = " ,.;:?!"
_SYMBOLS = re.compile(r"(?<!\S)[^\w\s]+(?!\S)")
_MARKED = re.compile(r"\[([^\[\]]+)\]|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)['‘]([^'‘’]+)['’](?!\w)")


def spans(question: str, lexicon: Lexicon) -> list[str]:
    """Return the parts of a question that may be names, the likeliest first: what is marked as such, what stands in
    capitals, the runs of words that are not everyday ones, or at least none of those that name relations, and symbols
    between white space ("who acted in $?").
    """
    found = [next(filter(None, match.groups())) for match in _MARKED.finditer(question)]
    found += _capitals(question)
    found += _runs(question, lambda word: word not in FUNCTION_WORDS and word not in COMMON_WORDS)
    # "which films are about love"
    found = found or _runs(question, lambda word: word not in FUNCTION_WORDS and not lexicon.is_relational(word))
    found += [part for part in _SYMBOLS.findall(question) if not SIGNS.issuperset(part)]
    cleaned = (part.strip(_ENDS) or part.strip() for part in found)  # a band is called "!!!"
    return list(dict.fromkeys(part for part in cleaned if part and part != question))[:MOST]


def _capitals(question: str) -> list[str]:
    """From the first to the last word of each run in capitals, small words between them included."""
    runs: list[tuple[int, int]] = []
    gap = ""
    for place, (word, start, end) in enumerate(tokenize(question)):
        opens = not place and (word in FUNCTION_WORDS or word in COMMON_WORDS)  # the capital of a sentence
        if (question[start].isupper() and not opens) or question[start].isdigit():
            if runs and (not gap or all(part in FUNCTION_WORDS for part in gap.split())):
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
            gap = ""
        elif runs:
            gap += f" {word}"
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]


def _runs(question: str, tells: Callable[[str], bool]) -> list[str]:
    """The runs of words that tell something, the longest first."""
    runs: list[tuple[int, int]] = []
    told = False
    for word, start, end in tokenize(question):
        if tells(word):
            runs[-1:] = [(runs[-1][0], end)] if told else [*runs[-1:], (start, end)]
        told = tells(word)
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]


#: Most words that are read on either side of a name, the nearest.
NEAREST = 12

_ASKING = frozenset("who whom when where which what whose".split())
_COPULA = frozenset("is are was were".split())
_AUXILIARY = _COPULA | frozenset("be been do does did has have had can could will also".split())
_ARTICLES = _COPULA | frozenset("the a an some all".split())
#: Words that say that two things have something in common, so that a relation is followed there and back.
_TOGETHER = frozenset("same share shared shares together co common fellow also another other others else".split())
#: Words of asking and telling, which no relation is called by.
_IDLE = frozenset(
    """
    give find show tell list listed name named know known call called fall main primary please few applicable
    make made world get see seen want look looking similar different related other associated
    """.split()
)
#: Verbs that may follow "which films", so that the noun ends before them.
_VERBS = frozenset(
    """
    act star appear direct write wrote written describe apply cite treat make made play produce work use contain
    belong come go publish share
    """.split()
)
_FIRST = 0.1  # what a reading costs in which the last word of "which film genre" is not the one asked for
_SECOND = 0.15  # what a reading costs that puts last what follows the name, where it may as well come first


@cache
def _verbs() -> frozenset[str]:
    return frozenset(map(stem, _VERBS))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for, and where the words stand that say so and nothing else."""

    words: tuple[str, ...] = ()
    places: frozenset[int] = frozenset()
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Cue:
    """A word that may name a relation or a type.

    It is a `title` where it stands right before the name and may say what that is: "the actor Ann Ames".
    """

    word: str
    title: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a question outward from a name: the words that may lead on, the nearest first.

    `asked` are words for the kind of thing that is asked for. `together` says that something is shared, so that a
    relation may be followed there and back; `among` that there are other names, to which some of the words belong.
    `cost` is how much less likely than the likeliest this reading is.
    """

    cues: tuple[Cue, ...]
    asked: tuple[str, ...] = ()
    together: bool = False
    among: bool = False
    cost: float = 0.0


@lru_cache(maxsize=256)
def readings(
    question: str, start: int, end: int, others: frozenset[tuple[int, int]], lexicon: Lexicon
) -> tuple[Reading, ...]:
    """Return the ways to read a question outward from the name at ``question[start:end]``, other names passed over.

    Words that follow the name at once are nearest to it ("the Kismet actors"), then those before it from right to
    left ("the director of Kismet"), then what is said of the whole ("… were released when").
    """
    tokens = [
        token for token in tokenize(question) if not any(first < token[2] and token[1] < last for first, last in others)
    ]
    before = [token for token in tokens if token[2] <= start]
    behind = [token for token in tokens if token[1] >= end]
    return tuple(
        reading for asked in _asked(before, behind, lexicon) for reading in _read(before, behind, asked, bool(others))
    )


def _read(before: Sequence[Token], behind: Sequence[Token], asked: _Asked, among: bool) -> list[Reading]:
    left = _cues(list(reversed(before)), asked.places)
    if (
        left
        and left[0].word == before[-1][0]
        and left[0].word not in _VERBS
        and not left[0].word.endswith(("ed", "ing"))
    ):
        left[0] = Cue(left[0].word, title=True)
    right = _cues(behind, asked.places)
    said = [word for word, _, _ in behind]
    together = not _TOGETHER.isdisjoint([word for word, _, _ in before] + said)
    if not left or not right or said[0] in _AUXILIARY or not _ASKING.isdisjoint(said):
        return [Reading((*left, *right), asked.words, together, among, asked.cost)]
    return [
        Reading((*right, *left), asked.words, together, among, asked.cost),
        Reading((*left, *right), asked.words, together, among, asked.cost + _SECOND),
    ]


def _cues(tokens: Sequence[Token], used: Collection[int]) -> list[Cue]:
    words = [word for word, start, _ in tokens if start not in used and _leads(word)]
    return [Cue(word) for word in words[:NEAREST]]


def _leads(word: str) -> bool:
    if word in ("about", "own"):
        return True
    return len(word) > 1 and word not in FUNCTION_WORDS and word not in _IDLE and word not in _TOGETHER


def _asked(before: Sequence[Token], behind: Sequence[Token], lexicon: Lexicon) -> list[_Asked]:
    """What may be asked for."""
    for side in (before, behind):
        for place, (word, start, _) in enumerate(side):
            if word not in _ASKING or (word == "whose" and place):  # "the films whose directors …" asks for nothing
                continue
            rest = side[place + 1 :]
            if word in ("when", "where"):
                return [_Asked((word,), frozenset((start,)))]
            general = word in ("who", "whom")
            noun = _noun(rest) if not general else _noun(rest[1:]) if rest and rest[0][0] in _COPULA else []
            if general:
                return [_Asked((word, *(token[0] for token in noun[-1:])), frozenset((start,)))]
            if noun:
                whole = _Asked((noun[-1][0],), frozenset((start, noun[-1][1])))
                part = _Asked((noun[0][0],), frozenset((start, noun[0][1])), _FIRST)  # "which paper cites"
                return [whole, part] if len(noun) > 1 else [whole]
    return [_phrase(before, behind, lexicon)]


def _phrase(before: Sequence[Token], behind: Sequence[Token], lexicon: Lexicon) -> _Asked:
    """What a question without a word of asking asks for: the noun of "films by the director of Dawn", "Dawn actors"."""
    left, right = (list(dropwhile(lambda token: not _leads(token[0]), side)) for side in (before, behind))
    noun = _noun(left if not right else [] if left or right != list(behind) else right)
    if not noun or noun[-1:] == before[-1:] or not (lexicon.is_relational(noun[-1][0]) or noun[-1][0].endswith("s")):
        return _Asked()  # of "the film Dawn" the noun says what that is
    return _Asked((noun[-1][0],), frozenset((noun[-1][1],)))


def _noun(tokens: Sequence[Token]) -> list[Token]:
    """The words of the noun that a text begins with, what stands before it aside."""
    noun: list[Token] = []
    for token in tokens:
        word = token[0]
        if not noun and word in _ARTICLES:
            continue
        if word in _TOGETHER and stem(word) not in _verbs():
            continue
        if word in FUNCTION_WORDS or stem(word) in _verbs() or word.endswith("ed"):
            break
        noun.append(token)
    return noun
