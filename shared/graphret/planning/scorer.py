"""`PathScorer`: learned weights for which path a question means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.planning.patterns import Hop
from graphret.text import tokenize

#: What a name is in a text whose words are counted.
NAME = "<>"
#: Before any training: what a path costs for how ill it fits, for each power of ten of
#: its ends, and for each share of its name's words that the question lacks.
UNTRAINED = (1.0, 0.6, 3.0)

_Floats = NDArray[np.float64]


def masked(question: str, places: Iterable[tuple[int, int]]) -> list[str]:
    """Return the words of a question, a name for each run of those at some places."""
    names, masked_words = sorted(places), list[str]()
    for word, start, end in tokenize(question):
        inside = any(first <= start and end <= last for first, last in names)
        if not inside or masked_words[-1:] != [NAME]:
            masked_words.append(NAME if inside else word)
    return masked_words


class PathScorer:
    """Path costs, linear in the misfit, the number of results and a question's words.

    A weight for each word, and two words in a row, with each part of a path: the whole,
    a hop at its place from either end, its labels and its length.
    `graphret.training.train_paths` learns them.
    """

    def __init__(
        self,
        words: Sequence[str] = (),
        parts: Sequence[str] = (),
        weights: Any = None,
        facts: Sequence[float] = UNTRAINED,
    ) -> None:
        self._words = {word: i for i, word in enumerate(words)}
        self._parts = {part: i for i, part in enumerate(parts)}
        shape = len(words) + 1, len(parts)
        self.weights = (
            np.zeros(shape)
            if weights is None
            else np.asarray(weights, dtype=np.float64).reshape(shape)
        )
        self.facts = np.asarray(facts, dtype=np.float64)

    def parts_of(self, paths: Sequence[tuple[Hop, ...]]) -> sp.csr_array:
        """Return what each path consists of for `costs`, ``(paths, parts)``."""
        listed = [
            [self._parts[part] for part in parts_of_path(path) if part in self._parts]
            for path in paths
        ]
        return _counts(listed, self._parts)

    def costs(
        self, words: Sequence[str], parts: sp.csr_array, facts: _Floats
    ) -> _Floats:
        """Return the cost of each path, in units of its misfit; ``(paths,)``."""
        costs = facts @ self.facts
        if len(self._parts):
            costs = costs - parts @ (self.rows([words]) @ self.weights)[0]
        return np.asarray(costs / max(self.facts[0], 1e-3), dtype=np.float64)

    def rows(self, texts: Sequence[Sequence[str]]) -> sp.csr_array:
        """The words of each text with equal weights, and a 1.

        ``(texts, words + 1)``.
        """
        listed = [
            [self._words[word] for word in sorted(counted(text)) if word in self._words]
            for text in texts
        ]
        weighed = sp.diags_array(
            [1 / max(1, len(columns)) ** 0.5 for columns in listed]
        ) @ _counts(listed, self._words)
        return sp.csr_array(sp.hstack([weighed, np.ones((len(texts), 1))]))

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        with Path(path).open("wb") as file:
            words, parts = (
                np.asarray(list(keys), "U") for keys in (self._words, self._parts)
            )
            weights = self.weights.astype(np.float32)
            np.savez_compressed(
                file, weights=weights, facts=self.facts, words=words, parts=parts
            )

    @classmethod
    def load(cls, path: str | Path) -> PathScorer:
        """Read what `save` wrote; an `InvalidInput` names a file that is none."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                words, parts = arrays["words"].tolist(), arrays["parts"].tolist()
                return cls(words, parts, arrays["weights"], arrays["facts"].tolist())
        except (OSError, ValueError, KeyError) as error:
            raise InvalidInput(f"scorer: {path}: {error}") from error


def _counts(listed: Sequence[Sequence[int]], columns: Collection[str]) -> sp.csr_array:
    """Rows with a 1 in each of the columns listed."""
    starts = np.cumsum([0, *map(len, listed)])
    filled = np.asarray([column for row in listed for column in row], dtype=np.int64)
    return sp.csr_array(
        (np.ones(len(filled)), filled, starts), shape=(len(listed), len(columns))
    )


def counted(words: Sequence[str]) -> set[str]:
    """The words of a text, and each two in a row."""
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}


def parts_of_path(path: Sequence[Hop]) -> list[str]:
    """The parts of a path: the whole, its hops by place, its ends and its length."""
    steps = [f"{hop}{hop.label}" for hop in path]
    places = [
        part
        for i, hop in enumerate(steps)
        for part in (f"{i} {hop}", f"{i - len(steps)} {hop}")
    ]
    labels = [f"from {path[0].start}", f"to {path[-1].label}"]
    return [path[0].start + "".join(steps), *places, *labels, f"long {len(steps)}"]
