"""`GraphRAFT`: the best queries around entities, run (Clemedtson and Shi 2025)."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from graphret.contracts import require_same_view
from graphret.errors import RetrievalFailed
from graphret.graphraft.candidates import (
    Candidate,
    CandidateFinder,
    GraphRAFTSettings,
    QueryWriter,
    Written,
)
from graphret.graphraft.counts import Entity
from graphret.graphraft.entities import EntityNamer, mentioned_entities
from graphret.graphraft.path_writer import PathWriter
from graphret.graphraft.reasoner import Reasoner
from graphret.index_retriever import IndexRetriever
from graphret.llm import ChatModel
from graphret.planning import PathPlanner, compile_plan, find_matches
from graphret.retriever import (
    Call,
    Compute,
    Retriever,
    Steps,
    backfill,
    require_on_failure,
)
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, as_cypher, require_cypher
from graphret.trace import Trace
from graphret.types import Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where

#: A part of a retrieval: it yields steps, and returns what it made.
_Part: TypeAlias = Generator[Any, Any, Any]


class GraphRAFT(Retriever):
    """Find the queries around a question's entities, rank them, and run the best.

    Every query that runs is a plan made of relations and labels of the graph, with ids
    as parameters: what a model writes only chooses among those. Hits come by the
    probability of the first query that found them, then by how many paths lead to them
    and how like their text is to the question, or in the order that a reasoner gives.

    Parameters
    ----------
    store
        The graph. No view of a database: a query could read past it.
    index
        Fills the places that the queries leave, and tells equals apart: a text index
        over the nodes.
    writer
        Ranks the candidates: `graphret.graphraft.writer.Writer`, a `ChatWriter`, or
        `None` for a `PathWriter`, which needs no model.
    planner
        Spots names and knows the kinds of paths; made of the store by default. Its
        aliases and its scorer are those of the default writer.
    entities
        A chat model that names what a question mentions, or an `EntityNamer`; without
        one the planner spots names.
    reasoner
        A chat model that selects and ranks what was found, or a `Reasoner` (section
        4.3).
    settings
        How much is looked for and run.
    fallback
        Who fills the places below what the queries found, and answers alone where they
        find nothing; by default a search of `index`.
    fill
        Whether it fills: exactly k hits come back then where that many qualify.
    on_failure
        ``"fallback"`` goes on with what did not fail and says so in the trace;
        ``"raise"`` raises `RetrievalFailed`.
    """

    name = "graphraft"

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        *,
        writer: QueryWriter | None = None,
        planner: PathPlanner | None = None,
        entities: ChatModel | EntityNamer | None = None,
        reasoner: ChatModel | Reasoner | None = None,
        settings: GraphRAFTSettings | None = None,
        fallback: Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
    ) -> None:
        if as_cypher(store) is not None:
            require_cypher(store, whole=True)
        require_same_view(store, index)
        self.store = store
        self.index = index
        self.settings = settings or GraphRAFTSettings()
        names = index if store.local_graph() is None else None
        self.planner = planner or PathPlanner(store, names)
        self.fallback = fallback or IndexRetriever(index, store, name="text")
        self.fill = fill
        if entities is not None and not isinstance(entities, EntityNamer):
            entities = EntityNamer(entities, store, self.planner.names)
        self.namer = entities
        self.reasoner = (
            Reasoner(reasoner)
            if reasoner is not None and not isinstance(reasoner, Reasoner)
            else reasoner
        )
        self.finder = CandidateFinder(store, self.planner.space, self.settings)
        self.paths = PathWriter(self.planner.space, self.planner.scorer)
        self.writer: QueryWriter = writer or self.paths
        self.on_failure = require_on_failure(on_failure)

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        entities = yield from self.entities(query, trace)
        candidates = yield from self.candidates(entities, trace)
        written = yield from self.write(query, candidates, trace)
        hits = yield from self.run(query, k, where, candidates, written, trace)
        hits = yield from self.reason(query, hits, trace)
        retrieval: Retrieval = yield from self.answer(query, k, where, hits, trace)
        return retrieval

    def entities(self, query: str, trace: Trace) -> _Part:
        """Find what a question names: a list of `Entity`."""
        entities: list[Entity] | None = None
        with trace.stage("entities") as stage:
            if (namer := self.namer) is not None:
                reply = yield from self._tried("entities", namer.ask(query), trace)
                if reply is not None:
                    stage.details["tokens"] = reply.usage.total_tokens
                    linked = Compute(lambda: namer.link(query, reply.value.names))
                    entities = yield from self._tried("entities", linked, trace)
            if not entities:
                entities = yield from self._tried(
                    "entities",
                    Compute(lambda: mentioned_entities(self.planner, query)),
                    trace,
                )
            stage.details["entities"] = {
                entity.name: list(entity.nodes) for entity in entities or ()
            }
        return entities or []

    def candidates(self, entities: Sequence[Entity], trace: Trace) -> _Part:
        """Find the queries that exist around entities: a list of `Candidate`."""
        with trace.stage("paths") as stage:
            candidates = yield from self._tried(
                "paths", Compute(lambda: self.finder.find(entities, trace=trace)), trace
            )
            stage.details["candidates"] = len(candidates or ())
        return candidates or []

    def write(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> _Part:
        """Have the writer rank candidates: places with probabilities, best first."""
        most = self.settings.queries
        with trace.stage("write", writer=self.writer.name) as stage:
            by_words = dict(
                (
                    yield Compute(
                        partial(self.paths.rank, query, candidates, len(candidates))
                    )
                )
            )
            written: Written = list(by_words.items())[:most]
            if candidates and self.writer is not self.paths:
                prior = [
                    math.log(max(by_words[place], 1e-300))
                    for place in range(len(candidates))
                ]
                step = Compute(
                    partial(self.writer.rank, query, candidates, most, prior)
                )
                chosen = yield from self._tried(self.writer.name, step, trace)
                written = written if chosen is None else chosen
            stage.details["queries"] = [
                [candidates[place].query, round(p, 4)] for place, p in written
            ]
        return written

    def run(
        self,
        query: str,
        k: int,
        where: Where | None,
        candidates: Sequence[Candidate],
        written: Written,
        trace: Trace,
        every: bool = False,
    ) -> _Part:
        """Run the ranked queries until there are enough nodes, or `every` one.

        Returns a list of `Hit`.

        For a reasoner all run, so that it sees every pattern by which a node is found.
        """
        n_hits = max(k, self.settings.nodes)
        with trace.stage("run") as stage:
            itself = Compute(partial(self._property_hits, query, where))
            property_hits = yield from self._tried("property", itself, trace)
            hits = {hit.id: hit for hit in property_hits or ()}
            for place, probability in written:
                if len(hits) >= n_hits and self.reasoner is None and not every:
                    break
                candidate = candidates[place]
                step = Compute(partial(self._nodes, query, candidate, where, trace))
                nodes = yield from self._tried(candidate.query, step, trace)
                about = {
                    "cypher": self.finder.shown(candidate),
                    "pattern": candidate.text,
                    "probability": probability,
                }
                for row, node in enumerate(nodes or (), 1):
                    if node.id in hits or len(hits) < n_hits:
                        earlier = hits.get(node.id, Hit(node, probability))
                        why = Evidence(
                            "query", rank=row, retriever=self.name, properties=about
                        )
                        hits[node.id] = replace(
                            earlier, evidence=(*earlier.evidence, why)
                        )
            stage.details["found"] = len(hits)
        return list(hits.values())

    def _property_hits(self, query: str, where: Where | None) -> list[Hit]:
        """What the question names, where it asks for a property of that."""
        planner = self.planner
        result = planner.property_plan(query, planner.mentions(query))
        if result is None:
            return []
        ids = [node_id for nodes in result.bindings.values() for node_id in nodes]
        why = Evidence(
            "path", retriever=self.name, properties={"plan": str(result.plan)}
        )
        return [
            Hit(node, 1.0, (why,))
            for node in self.store.get(ids)
            if node and (where is None or where.matches(node))
        ]

    def _nodes(
        self, query: str, candidate: Candidate, where: Where | None, trace: Trace
    ) -> list[Node]:
        """What a candidate finds that satisfies `where`, the most relevant first."""
        plan, bindings, schema = candidate.plan, candidate.bindings, self.finder.schema
        matches = find_matches(
            plan, self.store, bindings, schema=schema, timeout=self.settings.timeout
        )
        database = self.finder.database
        if database is not None and matches:
            cypher, _ = compile_plan(plan, database, bindings, schema=schema)
            trace.note("cypher", query=cypher)
        nodes = self.store.get([match.id for match in matches])
        matched = [
            (m, n)
            for m, n in zip(matches, nodes, strict=True)
            if n and (where is None or where.matches(n))
        ]
        ids = [n.id for _, n in matched]
        likeness = dict(zip(ids, self.index.score(query, ids).tolist(), strict=True))
        matched.sort(
            key=lambda pair: (-pair[0].score, -pair[0].paths, -likeness[pair[1].id])
        )
        return [node for _, node in matched]

    def reason(self, query: str, hits: Sequence[Hit], trace: Trace) -> _Part:
        """Have the reasoner select and rank hits; the others come last."""
        if (reasoner := self.reasoner) is None or not hits:
            return list(hits)
        with trace.stage("reason", model=reasoner.model.name) as stage:
            reply = yield from self._tried("reasoner", reasoner.ask(query, hits), trace)
            if reply is None:
                return list(hits)
            numbers = [
                number
                for number in dict.fromkeys(reply.value.numbers)
                if 1 <= number <= len(hits)
            ]
            stage.details |= {
                "tokens": reply.usage.total_tokens,
                "selected": len(numbers),
            }
        chosen = [hits[number - 1] for number in numbers]
        ranked = []
        for rank, hit in enumerate(
            [*chosen, *(hit for hit in hits if hit not in chosen)], 1
        ):
            evidence = (
                (Evidence("rank", rank=rank, retriever="reasoner"),)
                if rank <= len(chosen)
                else ()
            )
            ranked.append(
                replace(hit, score=1 / rank, evidence=hit.evidence + evidence)
            )
        return ranked

    def answer(
        self, query: str, k: int, where: Where | None, hits: Sequence[Hit], trace: Trace
    ) -> _Part:
        """Return a `Retrieval` of the first `k` hits, free places filled."""
        labels = tuple(dict.fromkeys(hit.node.label for hit in hits[:k])) or None
        signals = Signals(len(hits), None, bool(hits), labels, plan_valid=bool(hits))
        if not hits:
            trace.note("fallback", reason="no query finds anything")
        retrieval = Retrieval(query, k, list(hits[:k]), signals, trace)
        if hits and not self.fill:
            return retrieval
        return (yield from backfill(retrieval, self.fallback, self.on_failure, where))

    def _tried(self, what: str, step: Call[Any] | Compute, trace: Trace) -> _Part:
        """What comes of a step; `None` where it fails, which the trace is told."""
        try:
            return (yield step)
        except Exception as error:
            if self.on_failure == "raise":
                raise RetrievalFailed(f"{what} failed: {error}") from error
            trace.note(
                "fallback", failed=what, error=f"{type(error).__name__}: {error}"
            )
            return None
