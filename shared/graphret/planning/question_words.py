"""The words of a question while it is read, and which properties they mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from graphret.linking.words import Lexicon, is_person
from graphret.planning.properties import Properties, Property
from graphret.planning.stated import Condition, Stated, Test
from graphret.text import tokenize

#: How much says that a label is meant at a place: the nearest noun before it, what is
#: asked for, and the nodes that the question names.
_NEAREST, _ASKED, _NAMED = 0.6, 0.4, 0.2
#: The least that is enough where no word names a property.
ENOUGH = 0.4
#: How much more a word counts that names the property, and what each word between it
#: and the value takes away.
_NAMES_PROPERTY, _DISTANCE = 2.0, 0.05
_WHO, _BE = (["who"], ["whom"]), (["is"], ["are"], ["was"], ["were"])


class GraphWords(NamedTuple):
    """The words of a graph: its properties, labels and relations.

    `relations` are ``(source, relation, target)``.
    """

    properties: Properties
    labels: Sequence[str]
    relations: Sequence[tuple[str, str, str]]
    lexicon: Lexicon

    def labels_of(self, word: str) -> list[str]:
        """The labels that a word may name, the likeliest first."""
        near = [(-self.lexicon.kinship(word, label), label) for label in self.labels]
        return [label for kinship, label in sorted(near) if kinship < 0]

    def goes_with(self, word: str, asked_label: str) -> str:
        """The label that a word joins to nodes of another label; "" for none.

        It names that label, or a relation that leads to it.
        """
        for label in self.labels_of(word):
            if label != asked_label:
                return label
        for source, relation, target in self.relations:
            touches = asked_label in (source, target)
            if touches and self.lexicon.kinship(word, relation):
                return target if asked_label == source else source
        return ""


class Choice(NamedTuple):
    """A property that may be meant, how much says so, and the words that name it."""

    score: float
    owner: Property
    words: tuple[int, ...] = ()


class QuestionWords:
    """The words of a question but those of names, and what was read of them so far.

    Parameters
    ----------
    graph
        The words of the graph.
    question
        The question.
    names
        Where it names nodes, in characters.
    named_labels
        The labels of those nodes.

    Attributes
    ----------
    words
        The words in their order; a place is a number in it.
    nouns
        The label that the word at a place names.
    used
        The places of the words that were read.
    stated
        What was read.
    """

    def __init__(
        self,
        graph: GraphWords,
        question: str,
        names: Collection[tuple[int, int]],
        named_labels: Collection[str],
    ) -> None:
        self.graph, self.question = graph, question
        self.names, self.named_labels = names, named_labels
        self.tokens = [
            token
            for token in tokenize(question)
            if not any(first < token[2] and token[1] < last for first, last in names)
        ]
        self.words = [word for word, _, _ in self.tokens]
        self.nouns = {
            place: labels[0]
            for place, word in enumerate(self.words)
            if (labels := graph.labels_of(word))
        }
        self.used: set[int] = set()
        self.stated = Stated(
            asked_label=self._asked_label(), asks_who=self.words[:1] == ["who"]
        )
        for place in sorted(self.nouns, reverse=True):
            self.stated.nouns[self.nouns[place]] = self.tokens[place][1:]

    def _asked_label(self) -> str:
        """The label of the first noun; of "who" only behind a form of "be"."""
        if self.words[:1] in _WHO and self.words[1:2] not in _BE:
            return ""
        return self.nouns[min(self.nouns)] if self.nouns else ""

    def word(self, place: int) -> str:
        """The word at a place, "" beyond the ends."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def said(self, first: int, last: int) -> str:
        """What the question says from one word to another."""
        return self.question[self.tokens[first][1] : self.tokens[last][2]]

    def free(self, places: Iterable[int]) -> list[int]:
        """Those of some places whose words are there and were not read."""
        return [
            place
            for place in places
            if 0 <= place < len(self.words) and place not in self.used
        ]

    def nearest_noun(self, place: int) -> str:
        """The label of the last noun before a place."""
        before = [at for at in self.nouns if at < place]
        return self.nouns[max(before)] if before else ""

    def hint(self, label: str, place: int) -> float:
        """How much says that a label is meant at a place."""
        hint = _NEAREST * (label == self.nearest_noun(place))
        hint += _ASKED * (label == self.stated.asked_label) + _NAMED * (
            label in self.named_labels
        )
        if self.stated.asks_who and not self.stated.asked_label:
            hint += _ASKED * is_person(label)
        return hint

    def judged(
        self, owner: Property, near: Iterable[int], first: int, last: int
    ) -> Choice:
        """How much says that a property is meant from one word to another.

        Parameters
        ----------
        near
            The places of the words that may name it.
        """
        naming, best = list[int](), 0.0
        for place in near:
            kinship = self.graph.properties.kinship(self.words[place], owner)
            if kinship:
                naming.append(place)
                between = first - place if place < first else place - last
                best = max(best, kinship - _DISTANCE * between)
        score = self.hint(owner.label, first) + _NAMES_PROPERTY * best
        return Choice(score, owner, tuple(naming))

    def state(self, owner: Property, test: Test, first: int, last: int) -> None:
        """Add a condition that some words state, and note that these were read."""
        start, end = self.tokens[first][1], self.tokens[last][2]
        self.stated.conditions.append(Condition(owner, test, first, start, end))
        self.used.update(range(first, last + 1))

    def read_names_of(self, choice: Choice) -> None:
        """Note that the words for a property were read, except nouns."""
        self.used.update(place for place in choice.words if place not in self.nouns)

    def doubt(self, reason: str) -> None:
        """Note that a part of the question cannot be answered.

        A question that speaks neither of a kind of nodes nor of one of them is for the
        text to answer, whatever it says.
        """
        if self.stated.asked_label or self.names:
            self.stated.doubts.append(reason)

    def unread_text(self) -> str:
        """The question with the words that were read as spaces."""
        characters = list(self.question)
        for place in self.used:
            _, start, end = self.tokens[place]
            characters[start:end] = " " * (end - start)
        return "".join(characters)
