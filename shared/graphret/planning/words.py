"""Which words mean the same: inflections and compounds by rule, general English by a list, the rest by aliases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from graphret.errors import InvalidInput

#: How near two words are that have one root, that stand for one another, and of which one ends with the other.
SAME, ALIKE, COMPOUND = 1.0, 0.9, 0.9

#: Words of any field that stand for one another. By their roots, so any inflection does.
_ALIKE = """
write author
kind type sort category class style genre
topic subject theme about keyword tag describe description
year date when time
place location where
country nation
language tongue speak
rating rate grade score review
cite citation reference
organization organisation company firm employer
work job occupation profession
spouse wife husband marry
parent father mother
child son daughter
""".strip().splitlines()

#: People, as labels call them.
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
_LONG = 4  # letters of the root that a compound ends with


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


#: Aliases of relations and labels, a YAML file of them, or a `Lexicon`.
Aliases: TypeAlias = "Mapping[str, Iterable[str]] | str | Path | Lexicon | None"


class Lexicon:
    """Which words of a question may name which relations and labels of a graph.

    Parameters
    ----------
    aliases
        For a relation or a label the words that people use for it, where these say more than its own name does in
        general English: ``{"Movie": ["film", "picture"]}``.

    Raises
    ------
    InvalidInput
        Names the entry that is no list of words.
    """

    def __init__(self, aliases: Mapping[str, Iterable[str]] | None = None) -> None:
        self._groups: dict[str, set[str]] = {}
        for number, line in enumerate(_ALIKE):
            for word in line.split():
                self._groups.setdefault(root(word), set()).add(str(number))
        self._aliases: dict[str, set[str]] = {}
        for name, words in (aliases or {}).items():
            listed = [words] if isinstance(words, str) else words
            if not isinstance(listed, (list, tuple)) or not all(isinstance(word, str) and word for word in listed):
                raise InvalidInput(f"aliases: {name!r}: a list of words is expected, not {words!r}")
            self._aliases[str(name)] = {root(word.lower()) for word in listed}
        self._told = set(self._groups).union(*self._aliases.values())

    @classmethod
    def of(cls, aliases: Aliases) -> Lexicon:
        """Return the lexicon of aliases, or of a file of them."""
        if isinstance(aliases, Lexicon):
            return aliases
        return cls.read(aliases) if isinstance(aliases, (str, Path)) else cls(aliases)

    @classmethod
    def read(cls, path: str | Path) -> Lexicon:
        """Read aliases from a YAML file: the name of a relation or a label, then a list of words."""
        import yaml

        try:
            aliases = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InvalidInput(f"aliases: {path}: {error}") from error
        if not isinstance(aliases, dict):
            raise InvalidInput(f"aliases: {path}: names with lists of words are expected")
        return cls(aliases)

    def kinship(self, word: str, name: str) -> float:
        """How near a word of a question is to the name of a relation or a label, from 0 to 1."""
        own = root(word)
        best = ALIKE if own in self._aliases.get(name, ()) else 0.0
        groups: set[str] = self._groups.get(own, set())
        for part in name_words(name):
            other = root(part)
            if own == other:
                return SAME
            if groups & self._groups.get(other, set()):
                best = max(best, ALIKE)
            elif len(other) >= _LONG and own.endswith(other):
                best = max(best, COMPOUND)
        return best

    def is_relational(self, word: str) -> bool:
        """Whether a word is one of those that relations are commonly named by."""
        return root(word) in self._told


@lru_cache(maxsize=1)
def _people() -> frozenset[str]:
    return frozenset(map(root, _PEOPLE))


def is_person(name: str) -> bool:
    """Whether a label by its name is of people."""
    return any(root(part) in _people() for part in name_words(name))


def means_person(word: str) -> bool:
    """Whether a word asks for any person."""
    return word in ("who", "whom", "person", "persons", "people", "somebody", "someone")


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a relation's or a label's name, without those that only link."""
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
