"""Match relations and labels with a question: `DIRECTED` with “Who directed …?”.

In a knowledge graph the texts of nodes are short: the relation says how two nodes are
related, and the labels say what they are. So both count as words of a linked pair, by
their stems and the thesaurus that planning uses.
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

# Relations that graphret derives from texts and tables: their names mean nothing to a
# question.
_FOUND_IN_TEXTS = frozenset(
    {MENTIONS, SHARES_NAME, SAME_SOURCE, "NEXT", "JOINS", "IS_SIMILAR", "SHARES_ENTITY"}
)
# The weight of a word in the name of a relation or a label, as a share of the word's
# rarity: about as much as in a title.
_NAME_WEIGHT = 0.67
_ASKS_FOR_A_PERSON = ("who", "whom")
_LEXICON = Lexicon()


class _Word(NamedTuple):
    """A word of a question, its place among the terms of the index, and its rarity."""

    text: str
    column: int | None
    rarity: float


class NamedTerms:
    """The weights of a question's terms in the names of relations and in labels.

    They are on the scale of BM25F, ``(names, t + 1)``: a column for each term that
    occurs in the texts, and one for all the others.
    """

    def __init__(self, frontier: Frontier) -> None:
        edges, nodes = frontier.graph.edges, frontier.graph.nodes
        question = _words(frontier)
        n_terms = len(frontier.index.lexical.term_ids(frontier.query))
        relations = [
            [] if relation in _FOUND_IN_TEXTS else [relation]
            for relation in edges.relations
        ]
        self._graph = frontier.graph
        self._relations = _weights([*relations, []], question, n_terms)
        self._labels = _weights(nodes.label_sets, question, n_terms)

    @classmethod
    def of(cls, frontier: Frontier) -> NamedTerms | None:
        """Return the weights, or `None` where all relations come from texts."""
        meaningful = set(frontier.graph.edges.relations) - _FOUND_IN_TEXTS
        return cls(frontier) if meaningful else None

    def added(
        self, weights: Floats, edges: Positions, *node_columns: Positions
    ) -> Floats:
        """Return term weights of texts with those of names added, ``(m, t + b + 1)``.

        Parameters
        ----------
        weights
            The weights in the texts, ``(m, t + b)``: terms, then phrases.
        edges
            The edges, `NO_EDGE` for none, ``(m,)``.
        node_columns
            The nodes, ``(m,)`` each.
        """
        table = self._graph.edges
        codes = np.full(len(edges), len(table.relations))
        codes[edges != NO_EDGE] = table.relation[edges[edges != NO_EDGE]]
        in_names = self._relations[codes]
        for nodes in node_columns:
            of_labels = self._labels[self._graph.nodes.labels[nodes]]
            in_names = np.maximum(in_names, of_labels)
        n_terms = in_names.shape[1] - 1
        total = weights.copy()
        total[:, :n_terms] = np.maximum(total[:, :n_terms], in_names[:, :-1])
        return np.hstack([total, in_names[:, -1:]])


def _weights(
    names: Iterable[Sequence[str]], question: Sequence[_Word], n_terms: int
) -> Floats:
    """Return the weights of a question's words in sets of names, ``(names, t + 1)``."""
    rows = []
    for name_set in names:
        row = np.zeros(n_terms + 1, dtype=np.float32)
        for word in question:
            near = max((_kinship(word.text, name) for name in name_set), default=0.0)
            weight = _NAME_WEIGHT * near * word.rarity
            if word.column is None:
                row[-1] += weight
            else:
                row[word.column] = max(row[word.column], weight)
        rows.append(row)
    return np.stack(rows)


def _kinship(word: str, name: str) -> float:
    """Return how close a word is to a name, from 0 to 1; “who” means a person."""
    if word in _ASKS_FOR_A_PERSON:
        return float(is_person(name))
    return _LEXICON.kinship(word, name)


def _words(frontier: Frontier) -> list[_Word]:
    """Return the words of a question that may name a relation or a label."""
    lexical, query = frontier.index.lexical, frontier.query
    columns = {term: at for at, term in enumerate(lexical.term_ids(query).tolist())}
    question_words = []
    for word in dict.fromkeys(words_of(query)):
        terms = lexical.term_ids(word).tolist()
        column = columns.get(terms[0]) if terms else None
        if word not in QUESTION_WORDS:
            question_words.append(_Word(word, column, lexical.ceiling(word)))
    rarities = [word.rarity for word in question_words]
    rarity = float(np.mean(rarities)) if rarities else 0.0
    who_words = [word for word in words_of(query) if word in _ASKS_FOR_A_PERSON]
    return [*question_words, *(_Word(word, None, rarity) for word in who_words[:1])]
