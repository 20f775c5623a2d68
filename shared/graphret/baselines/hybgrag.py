"""HybGRAG: retrieval modules, a router and a critic (Lee et al. 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from graphret.baselines.base import DATA, MOST_CHARS, Baseline, Part, fenced, shown
from graphret.graphraft import EntityNamer
from graphret.llm import ChatModel
from graphret.retriever import Compute
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, require_limit
from graphret.trace import Trace
from graphret.types import Hit
from graphret.where import Where

#: Edges of a node that are read, and hits that the critic is shown.
_EDGES, _SHOWN = 200, 10
_SCHEMA_TOKENS = 1_500
_ROUTE = (
    "Choose how to answer a question over a graph. `text` searches what nodes say;"
    " `hybrid` takes the nodes that are joined to every entity that you name, by the"
    " relations that you name, and orders them by what they say. Name entities in the"
    " question's own words, and relations of the schema." + DATA
)
_CRITIC = (
    "Say whether the nodes answer the question (`correct`). If not, say in `feedback`"
    " which entity or relation was wrong or missing, or that the other module fits"
    " better." + DATA
)


@dataclass(frozen=True)
class _Route:
    module: Literal["text", "hybrid"]
    entities: list[str] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Verdict:
    correct: bool
    feedback: str = ""


class HybGRAG(Baseline):
    """Route a question to a text search or to the graph around its entities (HybGRAG).

    A critic may have it routed again.

    Parameters
    ----------
    model, store, index, on_failure
        As `Baseline` has them.
    rounds
        How often a question is routed, at most.
    """

    name = "hybgrag"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        index: TextIndex,
        *,
        rounds: int = 3,
        on_failure: str = "fallback",
    ) -> None:
        super().__init__(model, store, index, on_failure=on_failure)
        self.rounds = require_limit(rounds) or 1
        self.namer = EntityNamer(model, store, index)

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        schema = yield Compute(
            lambda: self.store.schema().text(_SCHEMA_TOKENS, cypher=False, values=False)
        )
        feedback: list[str] = []
        hits: list[Hit] = []
        for number in range(1, self.rounds + 1):
            rejections = "".join(
                f"\nRejected before: {rejected}" for rejected in feedback
            )
            prompt = f"Question: {query}{rejections}\n\n{fenced(schema)}"
            route = yield from self._ask(
                _ROUTE, prompt, _Route, trace, f"route {number}"
            )
            round_hits = yield from self._routed(query, k, where, route, trace)
            hits = round_hits or hits
            if number == self.rounds:
                break
            prompt = f"Question: {query}\n\n{shown(query, round_hits[:_SHOWN])}"
            verdict = yield from self._ask(
                _CRITIC, prompt, _Verdict, trace, f"critic {number}"
            )
            if verdict.correct and round_hits:
                break
            feedback.append(f"{route}: {verdict.feedback}"[:MOST_CHARS])
        return hits

    def _routed(
        self, query: str, k: int, where: Where | None, route: _Route, trace: Trace
    ) -> Part[list[Hit]]:
        """Ask the module that the router chose."""
        if route.module == "text":
            return (yield from self._searched(query, k, where, trace))
        ids = yield Compute(lambda: self._joined(query, route, k))
        return (yield from self._hits(ids))

    def _joined(self, query: str, route: _Route, k: int) -> list[str]:
        """Return the nodes that are joined to every entity, ranked by text."""
        in_schema = set(self.store.schema().relation_names)
        relations = [
            relation for relation in route.relations if relation in in_schema
        ] or None
        around: list[set[str]] = []
        for entity in self.namer.link(query, route.entities):
            near = self._around(list(entity.nodes), relations)
            # the answer may be two hops away, where nothing is joined to it directly
            around.append(near or self._around(list(entity.nodes), None))
        common = set.intersection(*around) if around else set()
        return self._best(query, sorted(common or set().union(*around)), k)

    def _around(self, nodes: Sequence[str], relations: list[str] | None) -> set[str]:
        edges = self.store.neighbors(nodes, relations=relations, limit=_EDGES)
        return {end for edge in edges for end in (edge.source, edge.target)} - {*nodes}
