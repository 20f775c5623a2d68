"""Which property of what it names a question asks for: “What is the tagline of Top
Gun?” is answered by the film itself, and by nothing around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphret.linking.words import Lexicon, root
from graphret.planning.question import ASKING, IDLE, TOGETHER, noun_asked
from graphret.text import name_words, tokenize

#: Words that say what a value is, and not of what: "phone number", "year of birth".
_GENERAL = frozenset("number name value title year date exactly".split())
_IDS = frozenset(("id", "uuid", "key"))


def asked_property(
    question: str,
    place: tuple[int, int],
    keys: Iterable[str],
    labels: Iterable[str],
    relations: Sequence[str],
    lexicon: Lexicon,
) -> str | None:
    """Return the property that a question asks for of what it names; `None` where it
    asks for something else.

    All that the question says besides the name, its kind and the small words has to be
    words of the property's key. What a relation is called by too is left to relations.

    Parameters
    ----------
    place
        Where the question names it, ``(start, end)``.
    keys, labels
        The properties and the labels of what is named.
    relations
        The relations of the graph.
    """
    start, end = place
    tokens = [one for one in tokenize(question) if one[2] <= start or one[1] >= end]
    said = [word for word, _, _ in tokens]
    if not TOGETHER.isdisjoint(said):
        return None
    kinds = {root(word) for label in labels for word in name_words(label)}
    told = {
        root(word)
        for word in said
        if word not in IDLE and word not in ASKING and root(word) not in kinds
    }
    for key in sorted(keys):
        words = name_words(key)
        own = {root(word) for word in words}
        if not own - kinds or words[-1] in _IDS or _names_relation(key, relations):
            continue
        telling = told - (frozenset(map(root, _GENERAL)) - own)
        if telling and telling <= own and _may_be(said, words, question):
            return key
    return None if told else _of_time_or_place(said, keys, relations, lexicon)


def _names_relation(key: str, relations: Sequence[str]) -> bool:
    """Whether a relation has the words of a property."""
    own = {root(word) for word in name_words(key)}
    return any({root(word) for word in name_words(one)} == own for one in relations)


def _may_be(said: Sequence[str], words: Sequence[str], question: str) -> bool:
    """Whether a property may answer: who is asked for is no property, unless its key
    says so too ("who is the contact").
    """
    if {"who", "whom"}.isdisjoint(said):
        return True
    return not set(noun_asked(question)).isdisjoint(words)


def _of_time_or_place(
    said: Sequence[str],
    keys: Iterable[str],
    relations: Sequence[str],
    lexicon: Lexicon,
) -> str | None:
    """The property that says when or where something is, if nothing else is said."""
    for word in {"when", "where"}.intersection(said):
        if any(lexicon.kinship(word, relation) for relation in relations):
            return None
        return next((key for key in sorted(keys) if lexicon.kinship(word, key)), None)
    return None
