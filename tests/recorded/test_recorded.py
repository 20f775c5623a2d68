"""What a capable model replied to the prompts, recorded, is parsed and run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphret.ark import Ark, ArkSettings
from graphret.corpus.llm_metadata import LLMMetadata
from graphret.evaluation.plans import load_plan_questions
from graphret.graphraft import EntityNamer, GraphRAFT
from graphret.graphs import read_tables
from graphret.graphs.transfer import copy
from graphret.grasp import Grasp
from graphret.linking import Linker
from graphret.llm import OpenAIChat
from graphret.rerank import ScoringReranker
from graphret.search import BM25Index
from graphret.spark import Spark
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.testing.openai_server import OpenAIServer, text, tool_calls
from graphret.types import Hit, Node, Retrieval

BUSINESS = Path(__file__).parent.parent / "benchmarks" / "plans" / "business"
GOLD = {
    question.text: question.answers
    for question in load_plan_questions(BUSINESS / "questions.jsonl")
}
with (Path(__file__).parent / "exchanges.jsonl").open(encoding="utf-8") as lines:
    EXCHANGES = [json.loads(line) for line in lines]


def recorded(method: str) -> Any:
    """The exchanges of a method, as parameters of a test."""
    return pytest.mark.parametrize(
        "exchange",
        [
            pytest.param(exchange, id=exchange["question"])
            for exchange in EXCHANGES
            if exchange["method"] == method
        ],
    )


def served(exchange: dict[str, Any]) -> OpenAIServer:
    """A server that gives the replies of an exchange, and none besides."""
    return OpenAIServer(
        text(reply) if isinstance(reply, str) else tool_calls(*map(tuple, reply))
        for reply in exchange["replies"]
    )


def model(server: OpenAIServer) -> OpenAIChat:
    return OpenAIChat("recorded", server.base_url, max_retries=0, timeout=5)


@pytest.fixture(scope="module")
def business() -> MemoryStore:
    return read_tables([BUSINESS / "nodes.jsonl", BUSINESS / "edges.jsonl"]).store()


@pytest.fixture(scope="module")
def database(
    business: MemoryStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LadybugStore]:
    with LadybugStore(tmp_path_factory.mktemp("business") / "business.lbug") as store:
        copy(business, store)
        yield store


def assert_answered(found: Retrieval, exchange: dict[str, Any]) -> None:
    """The right answers come first, and no call of the model was made in vain."""
    gold = GOLD[exchange["question"]]
    assert gold
    assert set(found.ids[: len(gold)]) == gold
    assert not found.trace.fallbacks


@recorded("spark")
def test_plans_of_spark(database: LadybugStore, exchange: dict[str, Any]) -> None:
    with served(exchange) as server:
        spark = Spark(model(server), database, BM25Index.of_store(database), fill=False)
        retrieval = spark.retrieve(exchange["question"], 40)
        assert len(server.requests) == 1
    if "values" in exchange:  # reckoned from the nodes, not by a query
        assert [[*row.values()] for row in retrieval.rows] == [
            pytest.approx(values) for values in exchange["values"]
        ]
        return
    assert_answered(retrieval, exchange)
    assert set(retrieval.ids) == GOLD[exchange["question"]]


@recorded("grasp")
def test_plans_of_grasp(business: MemoryStore, exchange: dict[str, Any]) -> None:
    with served(exchange) as server:
        grasp = Grasp(model(server), business, BM25Index.of_store(business))
        retrieval = grasp.plan.retrieve(exchange["question"], 40)
        assert len(server.requests) == 1
    assert_answered(retrieval, exchange)


@recorded("ark")
def test_explorations_of_ark(business: MemoryStore, exchange: dict[str, Any]) -> None:
    with served(exchange) as server:
        ark = Ark(
            model(server),
            business,
            BM25Index.of_store(business),
            settings=ArkSettings(n_agents=1),
            fill=False,
            on_failure="raise",
        )
        retrieval = ark.retrieve(exchange["question"], 40)
        assert len(server.requests) == len(exchange["replies"])
    assert_answered(retrieval, exchange)
    assert set(retrieval.ids) == GOLD[exchange["question"]]


@recorded("reasoner")
def test_choices_of_the_reasoner(
    business: MemoryStore, exchange: dict[str, Any]
) -> None:
    with served(exchange) as server:
        raft = GraphRAFT(
            business, BM25Index.of_store(business), reasoner=model(server), fill=False
        )
        retrieval = raft.retrieve(exchange["question"], 40)
    assert_answered(retrieval, exchange)


@recorded("entities")
def test_entities_of_a_question(
    business: MemoryStore, exchange: dict[str, Any]
) -> None:
    with served(exchange) as server:
        namer = EntityNamer(model(server), business, Linker.of_store(business))
        names = namer.ask(exchange["question"]).run().value.names
        linked = namer.link(exchange["question"], names)
    assert [entity.name for entity in linked] == exchange["names"]


@recorded("metadata")
def test_metadata_of_passages(exchange: dict[str, Any]) -> None:
    header = exchange.get("header")
    node = Node(
        "n",
        name=exchange["question"],
        text=exchange["text"],
        properties={"table_header": header} if header else {},
    )
    with served(exchange) as server:
        extractor = LLMMetadata(model(server))
        [metadata] = extractor.extract([node])
    assert (extractor.report.failed, extractor.report.asked) == (0, 1)
    reply = json.loads(
        exchange["replies"][0][exchange["replies"][0].index("{") :].rstrip("`\n")
    )
    assert metadata["topic"] == reply["topic"]
    assert metadata["entities"] == reply["entities"]
    assert metadata["events"] == reply["events"]
    assert len(metadata["relationships"]) == len(reply["relationships"])
    assert list(metadata["column_descriptions"]) == (header or [])


@recorded("scorer")
def test_scores_of_a_candidate(business: MemoryStore, exchange: dict[str, Any]) -> None:
    node = business.get([exchange["found"]])[0]
    assert node is not None
    with served(exchange) as server:
        reranker = ScoringReranker(model(server))
        scored = reranker.scores(exchange["question"], [Hit(node, 1.0)])
    assert list(scored) == [exchange["score"]]
