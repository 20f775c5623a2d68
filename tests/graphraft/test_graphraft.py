"""GraphRAFT over every store: entities, queries, a writer, what they find, a reasoner;
and what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from spark_parts import EDGES, NODES

from graphret.errors import InvalidInput, QueryTimeout, RetrievalFailed
from graphret.graphraft import (
    Candidate,
    EntityNamer,
    GraphRAFT,
    GraphRAFTSettings,
    Reasoner,
)
from graphret.linking import Linker
from graphret.llm import OpenAIChat
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.testing.openai_server import OpenAIServer, status, text

BY_ADA = "Which papers did Ada Ames write?"
PATTERN = '(a1:Author {name: "Ada Ames"})-[:WROTE]-(T:Paper)'
MEMORY = MemoryStore.of(NODES, EDGES)
ASKED = [
    pytest.param(lambda r, *a, **kw: r.retrieve(*a, **kw), id="sync"),
    pytest.param(lambda r, *a, **kw: asyncio.run(r.aretrieve(*a, **kw)), id="async"),
]
Ask = Callable[..., Any]


def raft(store: GraphStore = MEMORY, **options: Any) -> GraphRAFT:
    return GraphRAFT(store, BM25Index.of_store(store), **options)


def chat(server: OpenAIServer) -> OpenAIChat:
    return OpenAIChat("m", server.base_url, max_retries=0, timeout=5)


class Prefers:
    """A writer that puts what has a word in its text first."""

    name = "prefers"

    def __init__(self, word: str) -> None:
        self.word = word

    def rank(
        self,
        question: str,
        candidates: Sequence[Candidate],
        most: int,
        prior: object = None,
    ) -> list[tuple[int, float]]:
        order = sorted(
            range(len(candidates)), key=lambda i: self.word not in candidates[i].text
        )
        return [(place, 1 / (rank + 2)) for rank, place in enumerate(order[:most])]


class Broken(Prefers):
    def rank(
        self,
        question: str,
        candidates: Sequence[Candidate],
        most: int,
        prior: object = None,
    ) -> list[tuple[int, float]]:
        raise ConnectionError("the writer is away")


@pytest.mark.parametrize("ask", ASKED)
def test_the_best_query_runs_and_each_hit_has_the_queries_that_found_it(
    papers: GraphStore, ask: Ask
) -> None:
    retrieval = ask(raft(papers), BY_ADA, 3)
    assert {hit.id for hit in retrieval} == {"p0", "p3", "p6"}
    first = retrieval.hits[0].evidence[0]
    assert (first.kind, first.properties["pattern"]) == ("query", PATTERN)
    assert first.properties["cypher"] == f"MATCH {PATTERN} RETURN T.name AS name"
    assert retrieval.hits[0].score == first.properties["probability"] > 0
    assert len(retrieval.hits[0].evidence) > 1  # other queries find it too
    stages = {stage.name: stage.details for stage in retrieval.trace.stages}
    assert stages["entities"]["entities"] == {"Ada Ames": ["a0"]}
    assert stages["write"]["queries"][0][0] == first.properties["cypher"]
    assert ("cypher" in stages) != isinstance(papers, MemoryStore)
    if "cypher" in stages:
        assert "Ada" not in stages["cypher"]["query"]  # a name is never part of a query
    assert retrieval.signals.plan_valid
    assert not retrieval.trace.fallbacks


def test_k_is_the_total_and_where_limits_what_is_returned(papers: GraphStore) -> None:
    settings = GraphRAFTSettings(templates=((1,),))
    retrieval = raft(papers, settings=settings).retrieve(BY_ADA, 9)
    assert len(retrieval) == 9
    assert {hit.id for hit in retrieval.hits[:3]} == {"p0", "p3", "p6"}
    assert all(hit.evidence[-1].kind == "fill" for hit in retrieval.hits[3:])
    assert raft(papers).retrieve(BY_ADA, 1, {"year": {"$gt": 2014}}).ids == ["p6"]


def test_a_writer_decides_what_runs_first_and_its_failure_leaves_it_to_the_paths(
    papers: GraphStore,
) -> None:
    retrieval = raft(papers, writer=Prefers("(T:Field)")).retrieve(BY_ADA, 1)
    assert retrieval.hits[0].node.label == "Field"
    failed = raft(papers, writer=Broken("")).retrieve(BY_ADA, 3)
    assert failed.ids == raft(papers).retrieve(BY_ADA, 3).ids
    assert [stage.details["error"] for stage in failed.trace.fallbacks] == [
        "ConnectionError: the writer is away"
    ]
    with pytest.raises(RetrievalFailed, match="the writer is away"):
        raft(papers, writer=Broken(""), on_failure="raise").retrieve(BY_ADA, 3)


@pytest.mark.parametrize("question", ["protein folding of nobody", "?", "x" * 9_000])
def test_with_no_entity_or_no_candidate_the_text_answers_and_the_trace_says_so(
    question: str,
) -> None:
    settings = GraphRAFTSettings(targets=("Nothing",))
    for retriever in (raft(settings=settings), raft(MemoryStore.of(NODES, []))):
        retrieval = retriever.retrieve(question, 2)
        assert retrieval.ids == retriever.fallback.retrieve(question, 2).ids
        assert [stage.details["reason"] for stage in retrieval.trace.fallbacks] == [
            "no query finds anything"
        ]
        assert retrieval.signals.plan_valid is False


def test_queries_that_the_database_is_too_slow_for_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: Any, **__: Any) -> Any:
        raise QueryTimeout("the query took longer than 30 s")

    monkeypatch.setattr("graphret.graphraft.retriever.find_matches", slow)
    retrieval = raft().retrieve("speech synthesis 4", 2)
    assert len(retrieval) == 2
    errors = {stage.details.get("error") for stage in retrieval.trace.fallbacks}
    assert "QueryTimeout: the query took longer than 30 s" in errors


@pytest.mark.parametrize("ask", ASKED)
def test_a_model_names_the_entities_which_are_linked_by_name_or_by_likeness(
    ask: Ask,
) -> None:
    with OpenAIServer(
        [text(json.dumps({"names": ["Ada Ames", "graph retrival", "", "zzz"]}))]
    ) as server:
        retriever = raft(entities=chat(server))
        retrieval = ask(retriever, "What did Ada Ames publish?", 2)
        assert "melanoma" in server.requests[0].messages[1]["content"]
    details = next(
        stage.details for stage in retrieval.trace.stages if stage.name == "entities"
    )
    assert details["entities"]["Ada Ames"] == ["a0"]
    assert details["tokens"] > 0
    names = BM25Index.of_store(MEMORY)
    for where in (Linker.of_store(MEMORY), names):
        linked = EntityNamer(OpenAIChat("m"), MEMORY, where).link(
            "q", ["ada ames", "graph retrieval field"]
        )
        assert linked[0].nodes == {"a0": pytest.approx(1.0, abs=0.05)}
        assert linked[1].name.startswith("Graph Retrieval")
    with OpenAIServer([status(500)]) as server:
        failed = ask(raft(entities=chat(server)), BY_ADA, 3)
    assert {hit.id for hit in failed} == {"p0", "p3", "p6"}
    assert [stage.details["failed"] for stage in failed.trace.fallbacks] == ["entities"]


@pytest.mark.parametrize("ask", ASKED)
def test_a_reasoner_reads_patterns_and_texts_and_selects(ask: Ask) -> None:
    plain = raft().retrieve(BY_ADA, 3).ids
    with OpenAIServer([text(json.dumps({"numbers": [3, 99, 3, -1]}))]) as server:
        retrieval = ask(raft(reasoner=chat(server)), BY_ADA, 3)
        prompt = server.requests[0].messages[1]["content"]
    assert retrieval.ids == [plain[2], plain[0], plain[1]]
    assert PATTERN in prompt
    assert "We study graph retrieval." in prompt
    assert retrieval.hits[0].evidence[-1].retriever == "reasoner"
    scores = [hit.score for hit in retrieval]
    assert scores == sorted(scores, reverse=True)
    with OpenAIServer([text("no idea")] * 2) as server:
        failed = ask(raft(reasoner=chat(server)), BY_ADA, 3)
    assert failed.ids == plain
    assert [stage.details["failed"] for stage in failed.trace.fallbacks] == ["reasoner"]
    few = Reasoner(OpenAIChat("m"), prompt_tokens=60).messages(
        BY_ADA, raft().retrieve(BY_ADA, 3).hits
    )
    assert "1. Graph" in few[1].content
    assert "3. Graph" not in few[1].content


def test_a_reasoner_sees_every_pattern_by_which_a_node_was_found_in_groups() -> None:
    settings = GraphRAFTSettings(nodes=3)
    with OpenAIServer([text('{"numbers": [1]}')]) as server:
        retrieval = raft(reasoner=chat(server), settings=settings).retrieve(BY_ADA, 3)
        prompt = server.requests[0].messages[1]["content"]
    groups = {
        tuple(
            evidence.properties["pattern"]
            for evidence in hit.evidence
            if evidence.kind == "query"
        )
        for hit in retrieval
    }
    assert prompt.count("Found by:") == len(groups) < len(retrieval)
    assert all("Found by:\n" + "\n".join(group) + "\n\n" in prompt for group in groups)
    few = raft(settings=settings).retrieve(BY_ADA, 3)
    assert max(map(len, groups)) > max(len(hit.evidence) for hit in few)


def test_views_hide_from_queries_what_they_hide(papers: GraphStore) -> None:
    only = {"$or": [{"year": {"$lt": 2014}}, {"label": {"$in": ["Author", "Field"]}}]}
    if isinstance(papers, MemoryStore):
        view = papers.view(only)
        retrieval = GraphRAFT(view, BM25Index.of_store(papers).view(only)).retrieve(
            BY_ADA, 3
        )
        assert {hit.id for hit in retrieval.hits[:2]} == {"p0", "p3"}
        with pytest.raises(InvalidInput, match="view"):
            GraphRAFT(view, BM25Index.of_store(papers))
    else:
        with pytest.raises(InvalidInput, match="view"):
            raft(papers.view({"year": {"$lt": 2014}}))
