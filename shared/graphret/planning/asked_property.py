"""The property that a question asks for of what it names.

“What is the tagline of Top Gun?” is answered by the film, and by nothing around it.
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
    """Return the property that a question asks for of the node it names.

    `None` where it asks for something else. Everything the question says besides the
    name, its kind and the function words has to be a word of the property's key. A key
    that is also the name of a relation is left to relations.

    Parameters
    ----------
    place
        Where the question names it, ``(start, end)``.
    keys, labels
        The properties and the labels of the node that is named.
    relations
        The relations of the graph.
    """
    start, end = place
    tokens = [
        token for token in tokenize(question) if token[2] <= start or token[1] >= end
    ]
    question_words = [word for word, _, _ in tokens]
    if not TOGETHER.isdisjoint(question_words):
        return None
    kinds = {root(word) for label in labels for word in name_words(label)}
    telling_roots = {
        root(word)
        for word in question_words
        if word not in IDLE and word not in ASKING and root(word) not in kinds
    }
    for key in sorted(keys):
        words = name_words(key)
        key_roots = {root(word) for word in words}
        if (
            not key_roots - kinds
            or words[-1] in _IDS
            or _names_relation(key, relations)
        ):
            continue
        specific_roots = telling_roots - (frozenset(map(root, _GENERAL)) - key_roots)
        if (
            specific_roots
            and specific_roots <= key_roots
            and _may_be(question_words, words, question)
        ):
            return key
    return (
        None
        if telling_roots
        else _of_time_or_place(question_words, keys, relations, lexicon)
    )


def _names_relation(key: str, relations: Sequence[str]) -> bool:
    """Whether a relation has the words of a property."""
    key_roots = {root(word) for word in name_words(key)}
    return any(
        {root(word) for word in name_words(relation)} == key_roots
        for relation in relations
    )


def _may_be(question_words: Sequence[str], words: Sequence[str], question: str) -> bool:
    """Whether a property may answer: not "who", unless the key is its noun too.

    "Who is the contact" may be answered by a property `contact`.
    """
    if {"who", "whom"}.isdisjoint(question_words):
        return True
    return not set(noun_asked(question)).isdisjoint(words)


def _of_time_or_place(
    question_words: Sequence[str],
    keys: Iterable[str],
    relations: Sequence[str],
    lexicon: Lexicon,
) -> str | None:
    """The property that says when or where something is, if nothing else is said."""
    for word in {"when", "where"}.intersection(question_words):
        if any(lexicon.kinship(word, relation) for relation in relations):
            return None
        return next((key for key in sorted(keys) if lexicon.kinship(word, key)), None)
    return None
