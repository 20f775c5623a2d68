"""What a question says around a name: the words that may lead on from it, in order, and the kind of thing asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphret.ark.scripted.words import root
from graphret.linking.everyday import FUNCTION_WORDS
from graphret.text import Token, tokenize

_ASKING = frozenset("who whom when where which what whose how".split())
_AUXILIARY = frozenset("is are was were be been do does did has have had can could will also".split())
_COPULA = frozenset("is are was were".split())
#: Words that say that two things have something in common, so that a relation is followed there and back.
_TOGETHER = frozenset("same share shared shares together co common fellow both another".split())
#: Function words that can lead on: "what is it about".
_LEADING = frozenset(("about",))
#: Words of asking and telling, which no relation is called by.
_IDLE = frozenset(
    """
    give find show tell list listed name named know known call called fall main primary please few applicable
    world good like get see want look looking similar different related other associated
    """.split()
)
_VERBS = frozenset(
    """
    act star appear direct write wrote written describe share apply cite treat make made play produce work use contain
    belong come go publish
    """.split()
)
_WORKS = frozenset("screenplay script story plot".split())
#: Extra cost of reading what stands behind the name after what stands before it, where both would do.
_SECOND = 0.15


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
        What kind of thing is asked for, in the question's words, each of which may say it; none where it does not say.
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
    asked, used = _asked(question, before, behind)
    left = list(reversed(_cues(before, used, question[:start])))
    if left and before and left[0].word == before[-1][0] and not left[0].word.endswith(("ed", "ing")):
        left[0] = Cue(left[0].word, left[0].weak, title=True)
    right = _cues(behind, used)
    together = any(word in _TOGETHER for word, _, _ in (*before, *behind))
    said = [word for word, _, _ in behind]
    outer = Reading((*left, *right), asked, together)
    if not left or not right or said[0] in _AUXILIARY or _ASKING.intersection(said):
        return [outer]
    inner = Reading((*right, *left), asked, together)
    return [inner, Reading(outer.cues, asked, together, _SECOND)]


def _cues(tokens: Sequence[Token], used: set[int], text: str = "") -> list[Cue]:
    words = [(word, start) for word, start, _ in tokens if start not in used and _leads(word)]
    return [Cue(word, word in _WORKS) for word, _ in words]


def _leads(word: str) -> bool:
    if word in _LEADING:
        return True
    return word not in FUNCTION_WORDS and word not in _IDLE and word not in _TOGETHER and len(word) > 1


def _asked(question: str, before: Sequence[Token], behind: Sequence[Token]) -> tuple[tuple[str, ...], set[int]]:
    """What is asked for, and where the words stand that say so and nothing else."""
    for side in (before, behind):
        for place, (word, start, _) in enumerate(side):
            if word not in _ASKING or (word == "whose" and place) or (word == "how"):
                continue
            rest = side[place + 1 :]
            if word in ("who", "whom", "when", "where"):
                noun = list(_noun(rest[1:])) if rest and rest[0][0] in _COPULA else []
                return (word, *(token[0] for token in noun[-1:])), {start}
            noun = list(_noun(rest))
            if not noun and rest and rest[0][0] in _COPULA:
                noun = list(_noun(rest[1:]))
            if not noun:
                continue
            sort = noun[0] if len(rest) > len(noun) and rest[len(noun)][0] == "of" else noun[-1]
            return tuple(dict.fromkeys((noun[-1][0], sort[0]))), {start, noun[-1][1]}
    return (), set()


def _noun(tokens: Sequence[Token]) -> Iterator[Token]:
    """The words of the noun that a text begins with, articles aside."""
    begun = False
    for token in tokens:
        word = token[0]
        if not begun and word in ("the", "a", "an", "some", "all", "are", "is", "was", "were"):
            if word in _COPULA and begun:
                return
            continue
        if word in FUNCTION_WORDS or word in _VERBS or word.endswith("ed") or re.search(r"[?!.,]", word):
            return
        if word in _TOGETHER:
            continue
        begun = True
        yield token


def is_known(cue: Cue, names: Sequence[str]) -> bool:
    """Whether a cue has the root of any word among some names."""
    return any(root(cue.word) == root(name) for name in names)
