"""What relations and labels say of a question: `DIRECTED` of “Who directed …?”.

In a graph of knowledge the texts of nodes are short: how two nodes are related stands
in the relation between them, and what they are in their labels. So both count as words
that a linked pair says, by their stems and the thesaurus that planning has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from graphret.expansion.frontier import (
    MENTIONS,
    NO_EDGE,
    SAME_SOURCE,
    SHARES_NAME,
    Floats,
    Frontier,
    Positions,
)
from graphret.linking.words import Lexicon, is_person
from graphret.stopwords import QUESTION_WORDS
from graphret.text import words as words_of

# Relations that graphret finds in texts and tables: their names say nothing.
_FOUND_IN_TEXTS = frozenset(
    {MENTIONS, SHARES_NAME, SAME_SOURCE, "NEXT", "JOINS", "IS_SIMILAR", "SHARES_ENTITY"}
)
# What a relation or a label says of a word, as a share of the word's rarity: about as
# much as a title does.
_SAID = 0.67
_ASKS_FOR_A_PERSON = ("who", "whom")
_LEXICON = Lexicon()


class _Word(NamedTuple):
    """A word of a question, its place among the terms of the index, and its rarity."""

    text: str
    column: int | None
    rarity: float


class NamedTerms:
    """The weights of a question's terms in the names of relations and in labels.

    They are on the scale of BM25F, ``(names, t + 1)``: a column for each term that the
    texts know, and one for all that they do not.
    """

    def __init__(self, frontier: Frontier) -> None:
        edges, nodes = frontier.graph.edges, frontier.graph.nodes
        question = _words(frontier)
        n_terms = len(frontier.index.lexical.term_ids(frontier.query))
        relations = [[] if one in _FOUND_IN_TEXTS else [one] for one in edges.relations]
        self._graph = frontier.graph
        self._relations = _weights([*relations, []], question, n_terms)
        self._labels = _weights(nodes.label_sets, question, n_terms)

    @classmethod
    def of(cls, frontier: Frontier) -> NamedTerms | None:
        """Return the weights, or `None` where all relations are found in texts."""
        named = set(frontier.graph.edges.relations) - _FOUND_IN_TEXTS
        return cls(frontier) if named else None

    def added(self, weights: Floats, edges: Positions, *ends: Positions) -> Floats:
        """Return what edges and nodes say with their names, ``(m, t + b + 1)``.

        Parameters
        ----------
        weights
            What they say in their texts, ``(m, t + b)``: terms, then phrases.
        edges
            The edges, `NO_EDGE` for none, ``(m,)``.
        ends
            The nodes, ``(m,)`` each.
        """
        table = self._graph.edges
        codes = np.full(len(edges), len(table.relations))
        codes[edges != NO_EDGE] = table.relation[edges[edges != NO_EDGE]]
        named = self._relations[codes]
        for nodes in ends:
            named = np.maximum(named, self._labels[self._graph.nodes.labels[nodes]])
        n_terms = named.shape[1] - 1
        said = weights.copy()
        said[:, :n_terms] = np.maximum(said[:, :n_terms], named[:, :-1])
        return np.hstack([said, named[:, -1:]])


def _weights(
    names: Iterable[Sequence[str]], question: Sequence[_Word], n_terms: int
) -> Floats:
    """Return what each set of names says of the words of a question, ``(names, t +
    1)``.
    """
    rows = []
    for several in names:
        row = np.zeros(n_terms + 1, dtype=np.float32)
        for word in question:
            near = max((_kinship(word.text, name) for name in several), default=0.0)
            weight = _SAID * near * word.rarity
            if word.column is None:
                row[-1] += weight
            else:
                row[word.column] = max(row[word.column], weight)
        rows.append(row)
    return np.stack(rows)


def _kinship(word: str, name: str) -> float:
    """Return how near a word is to a name, from 0 to 1; “who” means a person."""
    if word in _ASKS_FOR_A_PERSON:
        return float(is_person(name))
    return _LEXICON.kinship(word, name)


def _words(frontier: Frontier) -> list[_Word]:
    """Return the words of a question that may name a relation or a label."""
    lexical, query = frontier.index.lexical, frontier.query
    columns = {term: at for at, term in enumerate(lexical.term_ids(query).tolist())}
    found = []
    for word in dict.fromkeys(words_of(query)):
        terms = lexical.term_ids(word).tolist()
        column = columns.get(terms[0]) if terms else None
        if word not in QUESTION_WORDS:
            found.append(_Word(word, column, lexical.ceiling(word)))
    rarity = float(np.mean([word.rarity for word in found])) if found else 0.0
    asked = [word for word in words_of(query) if word in _ASKS_FOR_A_PERSON]
    return [*found, *(_Word(word, None, rarity) for word in asked[:1])]
