"""Query expansion by HyDE, RAR and AGR (Gao 2023, Shen 2024, Chen 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphret.baselines.base import DATA, MOST_CHARS, Baseline, Part, shown
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Ask, Compute
from graphret.search.dense import DenseIndex
from graphret.trace import Trace
from graphret.types import Hit
from graphret.where import Where

#: Nodes that a model is shown before it writes.
_SHOWN = 10
_WRITE = (
    "Write a short passage that would answer the question. Invent what you do not know:"
    " it is only searched with."
)
_READ = (
    "Write the passages that would answer the question, as the nodes that a search"
    " found suggest. Some of these nodes may have nothing to do with it." + DATA
)
_ANALYZE = (
    "Say what must be known to answer the question: names, kinds of things, relations"
    " and conditions, each as a few words to search for."
)
_REFINE = (
    "Check the passages against the nodes that a search for them found. Correct what"
    " these contradict, leave out what does not help to find the answer." + DATA
)


@dataclass(frozen=True)
class _Passages:
    passages: list[str]

    @property
    def text(self) -> str:
        return " ".join(self.passages)[:MOST_CHARS]


@dataclass(frozen=True)
class _Needs:
    needs: list[str]


class HyDE(Baseline):
    """Search with the embedding of a passage that the model makes up (HyDE).

    The embedding is the mean of the passage's and the question's, as its authors have
    it. Where the index has no embeddings in this process, it is searched for the words
    of both.
    """

    name = "hyde"

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        written = yield from self._ask(_WRITE, query, _Passages, trace, "write")
        local = self.index.local_index()
        dense = None if local is None else local.dense_part()
        if dense is None:
            return (
                yield from self._searched(f"{query} {written.text}", k, where, trace)
            )
        index = yield Compute(lambda: _meaning(dense, query, written.text))
        result = yield Ask(IndexRetriever(index, self.store), query, k, where)
        if isinstance(result, Exception):
            raise result
        return list(result.hits)


def _meaning(dense: DenseIndex, query: str, passage: str) -> DenseIndex:
    """Return an index for which a question means what a passage says, too."""
    dense.prepare([query, passage])
    vectors = [dense.query_vector(query), dense.query_vector(passage)]
    return dense.with_query(query, np.mean(vectors, axis=0))


class RAR(Baseline):
    """Search with what the model writes after reading a first search's hits (RAR)."""

    name = "rar"

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        first = yield from self._searched(query, _SHOWN, None, trace)
        prompt = f"Question: {query}\n\n{shown(query, first)}"
        written = yield from self._ask(_READ, prompt, _Passages, trace, "write")
        return (yield from self._searched(f"{query} {written.text}", k, where, trace))


class AGR(Baseline):
    """Analyze the question, generate passages, refine them, and search with all (AGR).

    They are refined against what a search for them finds.
    """

    name = "agr"

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        analyzed = yield from self._ask(_ANALYZE, query, _Needs, trace, "analyze")
        needs = "; ".join(analyzed.needs)[:MOST_CHARS]
        first = yield from self._searched(f"{query} {needs}", _SHOWN, None, trace)
        prompt = f"Question: {query}\nNeeds: {needs}\n\n{shown(query, first)}"
        drafted = yield from self._ask(_READ, prompt, _Passages, trace, "generate")
        second = yield from self._searched(
            f"{query} {drafted.text}", _SHOWN, None, trace
        )
        prompt = (
            f"Question: {query}\nPassages: {drafted.text}\n\n{shown(query, second)}"
        )
        refined = yield from self._ask(_REFINE, prompt, _Passages, trace, "refine")
        return (yield from self._searched(f"{query} {refined.text}", k, where, trace))
