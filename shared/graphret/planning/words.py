"""Which words mean the same: inflections by rule, and a small list of general English for what rules cannot know."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

#: How near two words are that have one root, and that stand for one another.
SAME, ALIKE = 1.0, 0.9

#: Words that stand for one another when one of them names a relation or a type. By their roots, so any inflection does.
_ALIKE = """
act actor actress star costar appear cast play perform feature
direct filmmaker helm
write writer screenwriter scriptwriter author coauthor novelist pen screenplay script story
produce producer
compose composer music score
movie film picture flick
genre kind type sort category style
language tongue speak
tag keyword topic theme subject about describe description term word
rating rate grade review good bad opinion think consider
vote popular popularity famous
year date when time release
place location where country city
paper article publication
cite citation reference
institution university organization affiliation affiliate
drug medication medicine compound
disease illness condition disorder
treat therapy indication
brand maker manufacturer make
spouse wife husband marry
parent father mother
child son daughter
""".strip().splitlines()

#: People, as types call them.
_PEOPLE = """
person people human who whom actor actress director writer screenwriter author artist player producer composer editor
scientist researcher politician singer musician performer member founder inventor poet painter employee user student
""".split()

_IRREGULAR = {
    "wrote": "write",
    "written": "write",
    "spoke": "speak",
    "spoken": "speak",
    "made": "make",
    "thought": "think",
    "people": "person",
    "children": "child",
    "wives": "wife",
}
_AGENT = re.compile(r"(?<=..)(?:er|or|e)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_LINKS = frozenset("has have is are was be by in of to from with on at the a an for and or as".split())


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def stem(word: str) -> str:
    """Return what inflections of a word share."""
    return str(_stemmer().stemWord(_IRREGULAR.get(word, word)))


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """Return what inflections of a word share, and the one who does it with what is done."""
    return _AGENT.sub("", stem(word))


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[int]]:
    groups: dict[str, set[int]] = {}
    for number, line in enumerate(_ALIKE):
        for word in line.split():
            groups.setdefault(root(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in groups.items()}


@lru_cache(maxsize=1)
def _people() -> frozenset[str]:
    return frozenset(map(root, _PEOPLE))


@lru_cache(maxsize=16384)
def kinship(word: str, name: str) -> float:
    """Return how near a word of the question is to the name of a relation or a type, from 0 to 1."""
    own, groups = root(word), _groups()
    best = 0.0
    for part in name_words(name):
        other = root(part)
        if own == other:
            return SAME
        if groups.get(own, frozenset()) & groups.get(other, frozenset()):
            best = ALIKE
    return best


def is_person(name: str) -> bool:
    """Whether a type by its name is of people."""
    return any(root(part) in _people() for part in name_words(name))


def means_person(word: str) -> bool:
    """Whether a word asks for any person."""
    return word in ("who", "whom", "person", "persons", "people", "somebody", "someone")


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a relation's or a type's name, without those that only link."""
    parts = [part.lower() for part in _CAMEL.split(name) if part]
    return tuple(part for part in parts if part not in _LINKS) or tuple(parts)


@lru_cache(maxsize=4096)
def names_source(word: str, relation: str) -> bool:
    """Whether what a noun means is where a relation of its root comes from, rather than where it leads."""
    parts = [part.lower() for part in _CAMEL.split(relation) if part]
    if parts[-1:] == ["of"]:
        return True
    acts = stem(word).endswith(("er", "or")) and root(word) in map(root, parts)
    return acts and "by" not in parts and stem(word) not in map(stem, parts)


def is_relational(word: str) -> bool:
    """Whether a word is one of those that relations are commonly named by."""
    return root(word) in _groups()
