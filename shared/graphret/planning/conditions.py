"""What a question states of properties, read word by word."""

from __future__ import annotations

from collections.abc import Collection

from graphret.planning.comparisons import read_comparisons
from graphret.planning.measures import NOW, TIMES, counting_phrase
from graphret.planning.question_words import GraphWords, QuestionWords
from graphret.planning.rankings import read_ranking
from graphret.planning.stated import Stated
from graphret.planning.values import (
    read_booleans,
    read_missing,
    read_negation,
    read_values,
)


def read_conditions(
    graph: GraphWords,
    question: str,
    names: Collection[tuple[int, int]] = (),
    named_labels: Collection[str] = (),
) -> Stated:
    """Return what a question states of properties.

    Parameters
    ----------
    graph
        The words of the graph.
    names
        Where the question names nodes, in characters.
    named_labels
        The labels of those nodes.
    """
    words = QuestionWords(graph, question, names, named_labels)
    _doubt_counts(words)
    # in this order, since what is read first takes its words
    for read in (
        read_comparisons,
        read_ranking,
        read_booleans,
        read_missing,
        read_values,
        read_negation,
    ):
        read(words)
    _doubt_times(words)
    words.stated.unread_text = words.unread_text()
    return words.stated


def _doubt_counts(words: QuestionWords) -> None:
    """Note that a number is asked for that is made of many nodes."""
    if (phrase := counting_phrase(words.words)) is not None:
        phrase_text = words.said(phrase[0], phrase[1] - 1)
        words.doubt(f"“{phrase_text}” asks for a number over several nodes")


def _doubt_times(words: QuestionWords) -> None:
    """Note what depends on when the question is asked."""
    for place in words.free(range(len(words.words))):
        word, following = words.word(place), words.word(place + 1)
        if word in NOW:
            words.doubt(f"“{word}” depends on the day of asking")
        elif word in ("last", "next", "this") and following in TIMES:
            words.doubt(f"“{word} {following}” depends on the day of asking")
