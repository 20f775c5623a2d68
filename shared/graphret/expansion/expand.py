"""`Expand`: seeds from any retriever, and what a graph connects them to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from graphret.errors import InvalidInput
from graphret.expansion.coverage import Coverage
from graphret.expansion.frontier import (
    NO_EDGE,
    Frontier,
    Positions,
    RankedNodes,
    Ranking,
)
from graphret.expansion.subgraph import fetch_subgraph
from graphret.fusion import filled
from graphret.index_retriever import IndexRetriever
from graphret.numeric import unique
from graphret.retriever import (
    Ask,
    Compute,
    Retriever,
    Steps,
    require_on_failure,
    sure_of,
    unwrap_or_fallback,
)
from graphret.search.bm25 import BM25Index
from graphret.search.hybrid import HybridIndex
from graphret.search.index import TextIndex, min_max
from graphret.stores.base import GraphStore, require_limit
from graphret.stores.memory import Graph
from graphret.trace import Trace
from graphret.types import Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where

#: When `Expand` walks; see there.
Policy: TypeAlias = Literal["+edge", "-edge", "auto"]


class Expand(Retriever):
    """Ask a retriever for seeds, walk one hop from them and rank the nodes found.

    This is section 2.2 B of the SAGE paper.

    Parameters
    ----------
    seeds
        The retriever that finds the seeds; `None` searches `index`. What a retriever
        reads cannot be checked: over views, pass one that reads nothing else.
    store
        The graph: any `GraphStore`.
    index
        A text index over the same nodes: a `HybridIndex` or `BM25Index`, or any other
        `TextIndex`, such as one of a database. With the latter, the nodes around the
        seeds are indexed anew for each question.
    ranking
        How seeds and neighbours become one list.
    links
        At most this many edges of a node are walked, the heaviest first, where the
        graph is not in this process; `None` walks all.
    policy
        When to walk from seeds that a retriever found by queries (section 3.2).
        ``"+edge"``: always. ``"-edge"``: unless the query that found them walked
        relations itself; then the seeds are the answer. ``"auto"``, beyond the paper:
        nodes that any query found stay in front, and the walk only fills the places
        after them. Rows of values stay in front under every policy.
    fill
        Whether a search of `index` fills the places that seeds and neighbours leave
        empty; SAGE returns their union alone (listing 1).
    on_failure
        ``"fallback"`` seeds from `index` when `seeds` fails, ``"raise"`` does not.

    Notes
    -----
    `where` limits what is returned; the walk passes through the rest. To limit what may
    be read at all, expand over views: ``Expand(None, store.view(where),
    index.view(where))``.

    Raises
    ------
    InvalidInput
        When store and index are not views of the same condition, or an option is
        malformed.
    """

    def __init__(
        self,
        seeds: Retriever | None,
        store: GraphStore,
        index: HybridIndex | BM25Index | TextIndex,
        *,
        ranking: Ranking | None = None,
        links: int | None = 100,
        policy: Policy = "+edge",
        fill: bool = True,
        on_failure: str = "fallback",
    ) -> None:
        if policy not in get_args(Policy):
            raise InvalidInput(
                f"policy: expected one of {', '.join(get_args(Policy))}, got {policy!r}"
            )
        self.policy = policy
        self.store = store
        if isinstance(index, BM25Index):
            index = HybridIndex(index)
        self.index = index
        self._hybrid = index if isinstance(index, HybridIndex) else None
        self.links = require_limit(links)
        self._search = IndexRetriever(self.index, store)
        self.seeds = seeds or self._search
        self.ranking = ranking or Coverage()
        self.fill = fill
        self.on_failure = require_on_failure(on_failure)
        self.name = f"expand({self.seeds}, {self.ranking.name})"

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        local = self._local_graph_and_index()
        if local is not None:
            local[0].nodes.warn_of_unknown(where, trace)
            if self.seeds is self._search:
                from_index: Retrieval = yield Compute(
                    lambda: self._from_index(query, k, where, *local, trace)
                )
                return from_index
        seeds = yield from self._ask_for_seeds(query, k, where, trace)
        answer = seeds.answer
        rows, selected = self._selected(answer, where)
        front = [*rows, *selected]
        skipped = self._why_not_to_walk(rows, selected, k)
        if skipped:
            trace.note("expand", skipped=skipped)
            hits: list[Hit] = yield Compute(
                lambda: self._filled(query, k, where, front[:k])
            )
            return Retrieval(query, k, hits, answer.signals, trace, answer.rows)
        walked_from = self._walked_from(seeds, selected, k)
        labels = answer.signals.answer_labels or ()
        expanded: Retrieval = yield Compute(
            lambda: self._expanded(
                query,
                k,
                where,
                lambda: self._frontier(query, walked_from, seeds.from_index),
                trace,
                labels,
            )
        )
        ranked = _with_seeds(expanded.hits, walked_from)
        if front:
            ranked = filled(front, ranked, k, mark=False)
        doubts = answer.signals.doubts
        confidence = sure_of(expanded.signals.confidence, doubts)
        signals = replace(expanded.signals, confidence=confidence, doubts=doubts)
        return replace(expanded, hits=ranked, signals=signals, rows=answer.rows)

    def _why_not_to_walk(
        self, rows: Sequence[Hit], selected: Sequence[Hit], k: int
    ) -> str:
        """Return why the query's hits are already the answer, or an empty string."""
        if len(rows) + len(selected) >= k:
            return "the query that found the seeds fills all places"
        if selected and self.policy == "-edge":
            return "the query that found the seeds walked relations itself"
        return "the answer is rows of values" if rows and not selected else ""

    def _ask_for_seeds(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Generator[Any, Any, _Seeds]:
        """Ask the retriever for seeds, and the index where the retriever fails."""
        n_seeds = self.ranking.n_seeds(k)
        n_asked = n_seeds if self.policy == "+edge" else max(n_seeds, k)
        from_index = self.seeds is self._search
        with trace.stage("seeds", retriever=str(self.seeds), asked=n_asked):
            # Ask the retriever once: it may be a model that costs money.
            asks = [Ask(self.seeds, query, n_asked)]
            if where is not None:
                # so that k qualifying nodes are among the candidates
                asks.append(Ask(self._search, query, k, where))
            first, *filtered = yield asks
        answer = unwrap_or_fallback(first, self.seeds, self.on_failure, trace)
        if answer is None:
            from_index = True
            answer = yield Ask(self._search, query, n_asked)
        for result in (answer, *filtered):
            if isinstance(result, Exception):
                raise result
        trace.extend(answer.trace, f"{self.seeds}/")
        qualifying = [hit for retrieval in filtered for hit in retrieval]
        return _Seeds(answer, qualifying, from_index)

    def _walked_from(self, seeds: _Seeds, selected: Sequence[Hit], k: int) -> list[Hit]:
        """Return the distinct hits to walk from, the qualifying ones included."""
        # Hits that only filled up a plan's answer say nothing about it.
        walked = selected or [hit for hit in seeds.answer if not hit.is_row]
        hits = (*walked[: self.ranking.n_seeds(k)], *seeds.qualifying)
        return list({hit.id: hit for hit in hits}.values())

    def _selected(
        self, seeds: Retrieval, where: Where | None
    ) -> tuple[list[Hit], list[Hit]]:
        """Return the rows and, by `policy`, the queried nodes that stay first."""
        eligible = [
            hit
            for hit in seeds
            if not hit.fill and (where is None or where.matches(hit.node))
        ]
        rows = [hit for hit in eligible if hit.is_row]
        nodes = [hit for hit in eligible if not hit.is_row]
        if self.policy == "+edge":
            nodes = []
        elif not seeds.signals.walked_edges:
            nodes = [hit for hit in nodes if self.policy == "auto" and _queried(hit)]
        return rows, nodes

    def _local_graph_and_index(self) -> tuple[Graph, HybridIndex] | None:
        """Return graph and index if both are in this process, over the same nodes."""
        graph = self.store.local_graph()
        if graph is None or self._hybrid is None:
            return None
        index, alpha = copy(self._hybrid), getattr(self.ranking, "alpha", None)
        if alpha is not None and alpha != index.alpha:
            index.alpha = alpha
            index.forget()
        alike = graph.nodes is index.table or graph.nodes.ids.array.equals(
            index.table.ids.array
        )
        return (graph, index) if alike else None

    def _from_index(
        self,
        query: str,
        k: int,
        where: Where | None,
        graph: Graph,
        index: HybridIndex,
        trace: Trace,
    ) -> Retrieval:
        """Expand from positions in the index, reading only the nodes to return."""
        n_seeds = self.ranking.n_seeds(k)
        name = str(self.seeds)
        search = trace.stage(f"{name}/search", index=type(index).__name__)
        with trace.stage("seeds", retriever=name, asked=n_seeds), search:
            seeds = index.top(query, n_seeds)
            if where is not None:
                fitting = index.top(query, k, index.table.mask(where))
                seeds = np.concatenate([seeds, fitting[~np.isin(fitting, seeds)]])
        return self._expanded(
            query, k, where, lambda: Frontier(query, graph, index, seeds), trace
        )

    def _expanded(
        self,
        query: str,
        k: int,
        where: Where | None,
        begin: Callable[[], Frontier],
        trace: Trace,
        labels: Sequence[str] = (),
    ) -> Retrieval:
        with trace.stage("expand", ranking=self.ranking.name) as stage:
            frontier = begin()
            stage.details["seeds"] = len(frontier.seeds)
            ranked = _labelled_first(frontier, self.ranking.rank(frontier, k), labels)
            stage.details.update(ranked.details)
            if ranked.details.get("trust") == 0:
                stage.details["answered_by"] = (
                    "hybrid search alone: links add nothing to what one node says"
                )
            hits, confidence = _hits(frontier, ranked, k, where)
        if self.fill and len(hits) < k:
            with trace.stage("fill", missing=k - len(hits)):
                hits = self._filled(query, k, where, hits)
        walked = bool((ranked.via != NO_EDGE).any())
        return Retrieval(
            query, k, hits, Signals(len(ranked.positions), confidence, walked), trace
        )

    def _frontier(self, query: str, seeds: Sequence[Hit], from_index: bool) -> Frontier:
        ids, local = [hit.id for hit in seeds], self._local_graph_and_index()
        if local:
            positions = local[0].nodes.find(ids)
            frontier = Frontier(query, *local, positions[positions >= 0])
        else:
            frontier = fetch_subgraph(self.store, self.index, query, ids, self.links)
        if from_index and frontier.scores is None:
            return frontier
        score_by_id = {hit.id: hit.score for hit in seeds}
        seed_ids = frontier.graph.nodes.ids.take(frontier.seeds)
        scores = min_max(
            np.asarray([score_by_id[seed] for seed in seed_ids], dtype=np.float32)
        )
        return replace(
            frontier, seed_scores=scores if scores.any() else np.ones_like(scores)
        )

    def _filled(
        self, query: str, k: int, where: Where | None, hits: list[Hit]
    ) -> list[Hit]:
        if not self.fill:
            return hits
        matches = self.index.search(query, k + len(hits), where=where)
        table = None if self._hybrid is None else self._hybrid.table
        nodes = (
            self.store.get(matches.ids)
            if table is None
            else table.at(table.find(matches.ids))
        )
        scored = zip(nodes, matches.scores.tolist(), strict=True)
        return filled(
            hits,
            [
                Hit(node, score, (Evidence("fill"),), 0.0)
                for node, score in scored
                if node
            ],
            k,
        )


class _Seeds(NamedTuple):
    """What the seed retriever found, or the index in its place.

    `qualifying` are nodes of the index that satisfy the condition on returned nodes.
    """

    answer: Retrieval
    qualifying: Sequence[Hit]
    from_index: bool


def _queried(hit: Hit) -> bool:
    """Whether a Cypher query returned a hit."""
    return any(evidence.kind == "query" for evidence in hit.evidence)


def _labelled_first(
    frontier: Frontier, ranked: RankedNodes, labels: Sequence[str]
) -> RankedNodes:
    """Return the ranking with neighbours of the given labels before other neighbours.

    Seeds keep their places.
    """
    fits = (
        frontier.graph.nodes.mask(Where.parse({"label": {"$in": list(labels)}}))
        if labels
        else None
    )
    if fits is None:
        return ranked
    places = np.flatnonzero(~np.isin(ranked.positions, frontier.seeds))
    order = np.arange(len(ranked.positions))
    order[places] = places[np.argsort(~fits[ranked.positions[places]], kind="stable")]
    return replace(ranked, positions=ranked.positions[order], via=ranked.via[order])


def _with_seeds(hits: Sequence[Hit], seeds: Sequence[Hit]) -> list[Hit]:
    """Return the hits with the seed retriever's evidence added: votes, paths, plans."""
    seed_evidence = {
        seed.id: [
            evidence
            for evidence in seed.evidence
            if evidence.kind not in ("seed", "fill")
        ]
        for seed in seeds
    }
    return [
        replace(
            hit,
            evidence=(
                *hit.evidence,
                *(
                    evidence
                    for evidence in seed_evidence.get(hit.id, ())
                    if evidence not in hit.evidence
                ),
            ),
        )
        for hit in hits
    ]


def _hits(
    frontier: Frontier, ranked: RankedNodes, k: int, where: Where | None
) -> tuple[list[Hit], float]:
    """Return the hits, and how well the first one answers with the node it links to."""
    mask = frontier.graph.nodes.mask(where)
    chosen = np.arange(len(ranked.positions))
    if mask is not None:
        chosen = np.flatnonzero(mask[ranked.positions])
    chosen = chosen[:k]
    positions, via = ranked.positions[chosen], ranked.via[chosen]
    brought = np.flatnonzero(via != NO_EDGE)
    other_ends = _other_ends(frontier, positions[brought], via[brought])

    first_pair = np.concatenate([positions[:1], other_ends[brought == 0]])
    confidence = frontier.index.confidence(frontier.query, first_pair)
    # Most of the other ends are hits themselves: each node is read once.
    distinct = unique(positions, other_ends)
    nodes_read = frontier.graph.nodes.at(distinct)
    node_at = dict(zip(distinct.tolist(), nodes_read, strict=True))
    evidence = _evidence(frontier, ranked, positions, via, other_ends, node_at)
    nodes = [node_at[position] for position in positions.tolist()]
    scores = ranked.scores[chosen].tolist()
    columns = zip(nodes, scores, evidence, strict=True)
    return [Hit(node, score, tuple(why)) for node, score, why in columns], confidence


def _other_ends(
    frontier: Frontier, positions: Positions, edges: Positions
) -> Positions:
    """Return the node at the other end of the edge that brought each node.

    The brought node may be another chunk of the source at its end.
    """
    table = frontier.graph.edges
    source, target = table.source[edges], table.target[edges]
    is_source = frontier.same_source(positions, source) & (target != positions)
    return np.where(is_source, target, source).astype(np.int64)


def _evidence(
    frontier: Frontier,
    ranked: RankedNodes,
    positions: Positions,
    via: Positions,
    other_ends: Positions,
    node_at: Mapping[int, Node],
) -> list[list[Evidence]]:
    """Return why each node is a hit: its seed rank, the ranking's reason, its edge.

    `via` holds edges or `NO_EDGE`, ``(n,)``; `other_ends` the other ends of the edges.
    """
    seed_rank = {
        seed: rank for rank, seed in enumerate(frontier.seeds.tolist(), start=1)
    }
    evidence: list[list[Evidence]] = [
        [Evidence("seed", rank=seed_rank[position])] if position in seed_rank else []
        for position in positions.tolist()
    ]
    if ranked.explain and len(positions):
        for why, explained in zip(evidence, ranked.explain(positions), strict=True):
            if explained:
                why.append(explained)
    brought = np.flatnonzero(via != NO_EDGE)
    columns = zip(
        brought.tolist(),
        frontier.graph.edges.at(via[brought], frontier.graph.nodes.ids),
        positions[brought].tolist(),
        other_ends.tolist(),
        strict=True,
    )
    for place, edge, position, other in columns:
        reason = Evidence.of_edge(edge, node_at[position], node_at[other])
        evidence[place].append(reason)
    return evidence
