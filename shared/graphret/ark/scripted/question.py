"""What a question says around a name: the words that may lead on from it, in order, and the kind of thing asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphret.linking.everyday import FUNCTION_WORDS
from graphret.text import Token, tokenize

#: Most words that are read on either side of a name, the nearest.
NEAREST = 24

_ASKING = frozenset("who whom when where which what whose".split())
_COPULA = frozenset("is are was were".split())
_AUXILIARY = _COPULA | frozenset("be been do does did has have had can could will also".split())
_ARTICLES = _COPULA | frozenset("the a an some all".split())
#: Words that say that two things have something in common, so that a relation is followed there and back.
_TOGETHER = frozenset("same share shared shares together co common fellow also another".split())
#: Words of asking and telling, which no relation is called by.
_IDLE = frozenset(
    """
    give find show tell list listed name named know known call called fall main primary please few applicable
    world get see want look looking similar different related other associated
    """.split()
)
#: Verbs that may follow "which films", so that the noun ends before them.
_VERBS = frozenset(
    """
    act star appear direct write wrote written describe apply cite treat make made play produce work use contain
    belong come go publish
    """.split()
)
_WORKS = frozenset("screenplay script story plot".split())
_SECOND = 0.15  # what a reading costs that puts last what follows the name, where it may as well come first


@dataclass(frozen=True, slots=True)
class Cue:
    """A word that may name a relation or a type.

    Parameters
    ----------
    word
        As normalised.
    weak
        Whether it may well mean nothing: the work in "wrote the script for".
    title
        Whether it stands right before the name and may say what that is: "the actor Ann Ames".
    """

    word: str
    weak: bool = False
    title: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a question outward from a name.

    Parameters
    ----------
    cues
        The words that may lead on, the nearest to the name first.
    asked
        What kind of thing is asked for, in words each of which may say it: "who", "directors"; empty where none does.
    together
        Whether something is shared, so that a relation may be followed there and back.
    cost
        How much less likely than the likeliest this reading is.
    """

    cues: tuple[Cue, ...]
    asked: tuple[str, ...] = ()
    together: bool = False
    cost: float = 0.0


def readings(question: str, start: int, end: int) -> list[Reading]:
    """Return the ways to read a question outward from the name at ``question[start:end]``, the likeliest first.

    Words that follow the name at once are nearest to it ("the Kismet actors"), then those before it from right to
    left ("the director of Kismet"), then what is said of the whole ("… were released when").
    """
    tokens = tokenize(question)
    before = [token for token in tokens if token[2] <= start]
    behind = [token for token in tokens if token[1] >= end]
    asked, used = _asked(before, behind)
    left = _cues(reversed(before), used)
    if left and left[0].word == before[-1][0] and not left[0].word.endswith(("ed", "ing")):
        left[0] = Cue(left[0].word, left[0].weak, title=True)
    right = _cues(behind, used)
    said = [word for word, _, _ in behind]
    together = not _TOGETHER.isdisjoint([word for word, _, _ in before] + said)
    if not left or not right or said[0] in _AUXILIARY or not _ASKING.isdisjoint(said):
        return [Reading((*left, *right), asked, together)]
    return [Reading((*right, *left), asked, together), Reading((*left, *right), asked, together, _SECOND)]


def _cues(tokens: Iterator[Token] | Sequence[Token], used: set[int]) -> list[Cue]:
    words = [word for word, start, _ in tokens if start not in used and _leads(word)]
    return [Cue(word, word in _WORKS) for word in words[:NEAREST]]


def _leads(word: str) -> bool:
    if word == "about":
        return True
    return len(word) > 1 and word not in FUNCTION_WORDS and word not in _IDLE and word not in _TOGETHER


def _asked(before: Sequence[Token], behind: Sequence[Token]) -> tuple[tuple[str, ...], set[int]]:
    """What is asked for, and where the words stand that say so and nothing else."""
    for side in (before, behind):
        for place, (word, start, _) in enumerate(side):
            if word not in _ASKING or (word == "whose" and place):  # "the films whose directors …" asks for nothing
                continue
            rest = side[place + 1 :]
            general = word in ("who", "whom", "when", "where")
            noun = _noun(rest) if not general else _noun(rest[1:]) if rest and rest[0][0] in _COPULA else []
            if general:
                return (word, *(token[0] for token in noun[-1:])), {start}
            if noun:
                after = rest.index(noun[-1]) + 1
                sort = noun[0] if after < len(rest) and rest[after][0] == "of" else noun[-1]  # "what kind of film is"
                return tuple(dict.fromkeys((noun[-1][0], sort[0]))), {start, noun[-1][1]}
    return (), set()


def _noun(tokens: Sequence[Token]) -> list[Token]:
    """The words of the noun that a text begins with, what stands before it aside."""
    noun: list[Token] = []
    for token in tokens:
        word = token[0]
        if not noun and word in _ARTICLES:
            continue
        if word in _TOGETHER:
            continue
        if word in FUNCTION_WORDS or word in _VERBS or word.endswith("ed"):
            break
        noun.append(token)
    return noun
