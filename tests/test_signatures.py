"""What a type checker and an editor know of the public names, and what pydantic does."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests_support import BALLPARKS

import graphret
import langchain_graphret
import llama_index_graphret
from graphret import (
    BM25Index,
    InvalidInput,
    Propagate,
    ScriptedExplorer,
)
from langchain_graphret import (
    ArkRetriever,
    GraphRAFTRetriever,
    GraspRetriever,
    SageRetriever,
    SparkRetriever,
)

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "core": graphret,
    "llama": llama_index_graphret,
    "lang": langchain_graphret,
}
# A right call of each public name; a wrong one is made of it.
CALLS = """
core.Ark(model, store, index, temperature=0.7)
core.ArkSettings(n_agents=2)
core.BM25Index.of_store(store)
core.Corpus(items=())
core.Coverage(weight=2.0)
core.DenseIndex.build(graph.nodes, encoder=None)
core.Document("text", id="a")
core.Edge("a", "CITES", "b", weight=1.0)
core.Evidence("seed", rank=1)
core.Expand(None, store, index, policy="auto")
core.Fallback(retriever, second=retriever)
core.FieldIndex.of_store(store)
core.Fuse([retriever], weights=[1.0])
core.GraphRAFT(store, index, fallback=retriever, fill=False)
core.GraphSchema({}, relations={})
core.GraphretError("message")
core.Grasp(None, store, index, reranker=None)
core.HeuristicMetadata(corpus_wide=False)
core.Hit(node, 1.0, relevance=0.5)
core.HybridIndex(index, alpha=0.5)
core.IndexRetriever(index, store, name="text")
core.InvalidInput("message")
core.LadybugStore("folder", read_only=True)
core.Linker(index, dense=None)
core.MemoryStore(graph=None)
core.Neo4jStore("bolt://localhost", timeout=1.0)
core.Neo4jTextIndex(neo4j, alpha=0.5)
core.Node("a", name="A")
core.NodeText(max_chars=100)
core.Propagate(inherit=0.5)
core.Record(id="a", name="A")
core.Rerank(retriever, reranker, weight=0.5)
core.Retrieval("question", 1, hits=[])
core.Retriever()
core.SageGraph.build([], encoder=None)
core.SageRanking(seed_share=0.5)
core.SageRetriever(graph, on_failure="raise")
core.SageSettings(alpha=0.5)
core.ScriptedExplorer(choice=1)
core.Signals(candidates=1)
core.Spark(model, neo4j, index, fallback=retriever)
core.Table(["a"], [["1"]], title="t")
core.Trace(stages=[])
core.Where("$eq", field="year", value=1)
core.read(sources="folder")
llama.ArkRetriever(model, store, index, n_agents=1, k=3)
llama.EncoderEmbedding("default", embed_batch_size=8)
llama.GraphNode(name="A", id_="a")
llama.GraphRAFTRetriever(store, index, entities=model, fill=False)
llama.GraphRelation(label="CITES", source_id="a", target_id="b")
llama.GraphReranker("model", top_n=3)
llama.GraphretPropertyGraphStore(store=store)
llama.GraspRetriever(None, store, index, similarity_top_k=3)
llama.LlamaIndexChat(llm=llm)
llama.LlamaIndexSeeds(found_by_llama, name="mine")
llama.RRFFusion(retriever, weights=[1.0, 2.0], top_n=3)
llama.RRFFusionRetriever([retriever], weights=[1.0], verbose=True)
llama.RelationsAsText(preamble="")
llama.SageExpansion(graph, top_n=3)
llama.SageExpansion(store, index, top_n=3)
llama.SageGraph.from_documents([], encoder=None)
llama.SageIngestion(llama.SageGraph.from_documents([]))
llama.SageNodeParser(encoder=None, include_metadata=False)
llama.SageRetriever(graph, similarity_top_k=3, filters={"year": 1969})
llama.SparkRetriever(model, neo4j, index, expand="auto")
llama.ark_tools(store, index, where={"year": 1969})
llama.as_llama_index_retriever(retriever, k=3)
llama.to_llama_node(node=node)
llama.from_property_graph_store(llama_store, name_property="title")
llama.to_where(filters=None)
lang.ArkRetriever(model, store, index, n_agents=1, k=3)
lang.EncoderEmbeddings(encoder="default")
lang.GraphRAFTRetriever(store, index, entities=model, fill=False)
lang.GraphReranker("model", weight=1.0)
lang.GraspRetriever(None, store, index, k=3)
lang.LangChainChat(model=chat_model)
lang.LangChainSeeds(found_by_langchain, name="mine")
lang.RRFFusionRetriever([retriever, found_by_langchain], rrf_k=10.0)
lang.SageExpansion(store, index, k=3)
lang.SageGraph.from_documents([], embedding=None)
lang.SageRetriever(graph, seeds=found_by_langchain, where={"year": 1969})
lang.ScriptedExplorer(choice=1)
lang.SparkRetriever(chat_model, neo4j, index, expand="auto")
lang.ark_tools(store, index, where={"year": 1969})
lang.as_langchain_retriever(retriever, k=3)
lang.create_ark_agent(model, store, index, approve=True)
lang.create_ark_graph([chat_model], store, index, n_agents=1)
lang.create_ark_tool(found_by_langchain, name="tool")
lang.create_graphraft_graph(store, index, reasoner=chat_model)
lang.create_plan_node(model, store=store)
lang.create_spark_graph(model, neo4j, index, approve=True)
lang.from_document(document, strict=False)
lang.to_document(item=node)
""".split("\n")[1:-1]
# Of these an instance is an outcome, which users do not make; `open_store` hands its
# options on to the store that it opens.
UNCALLED = {
    "SageNodeWithScore",
    "SageRetrievalEvent",
    "evidence_of",
    "from_llama_node",
    "open_store",
    "retrieval_of",
}
HEAD = """
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.graph_stores.types import PropertyGraphStore
from llama_index.core.llms import LLM

import graphret as core
import langchain_graphret as lang
import llama_index_graphret as llama
from graphret.llm import ChatModel
from graphret.rerank import Reranker


def calls(
    graph: core.SageGraph, store: core.MemoryStore, neo4j: core.Neo4jStore,
    index: core.BM25Index, retriever: core.Retriever, reranker: Reranker,
    node: core.Node, model: ChatModel, llm: LLM, chat_model: BaseChatModel,
    found_by_llama: BaseRetriever, llama_store: PropertyGraphStore,
    found_by_langchain: Runnable[str, list[Document]], document: Document,
) -> None:
"""


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in module.__all__:
        if callable(value := getattr(module, name)):
            yield name, value


def test_a_type_checker_takes_right_calls_and_refuses_misspelt_ones(
    tmp_path: Path,
) -> None:
    called = {tuple(re.split(r"[.(]", call)[:2]) for call in CALLS}
    for package, module in PACKAGES.items():
        for name, _ in public(module):
            assert name in UNCALLED or (package, name) in called, f"{package}.{name}"
    wrong = [f"{call[:-1]}, misspelt=1)".replace("(, ", "(") for call in CALLS]
    file = tmp_path / "calls.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in [*CALLS, *wrong]))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"calls\.py:(\d+): error: (.*)", checked.stdout)
    first = HEAD.count("\n") + 1
    problems = {int(line) - first: message for line, message in found}
    right = {CALLS[at]: problems[at] for at in problems if at < len(CALLS)}
    assert not right, checked.stdout + checked.stderr
    accepted = [call for at, call in enumerate(wrong, len(CALLS)) if at not in problems]
    assert not accepted, checked.stdout[-2000:] + checked.stderr


def test_no_public_callable_takes_any_keyword() -> None:
    for package, module in PACKAGES.items():
        for name, value in public(module):
            if name in UNCALLED or (
                isinstance(value, type) and issubclass(value, Exception)
            ):
                continue
            kinds = [one.kind for one in inspect.signature(value).parameters.values()]
            assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{package}.{name}"


# -- the retrievers of LangChain are pydantic models


@pytest.fixture(scope="module")
def graph() -> langchain_graphret.SageGraph:
    return langchain_graphret.SageGraph.build(BALLPARKS, encoder=None)


@pytest.fixture(params=["sage", "ark", "spark", "grasp", "graphraft"])
def retriever(request: pytest.FixtureRequest, graph: Any) -> Any:
    store, index, model = graph.store, graph.index, ScriptedExplorer()
    if request.param == "spark":
        ladybug = pytest.importorskip("graphret.stores.ladybug").LadybugStore
        folder = request.getfixturevalue("tmp_path") / "graph"
        store = ladybug(folder)
        nodes = list(graph.nodes)
        store.upsert(nodes)
        return SparkRetriever(model, store, BM25Index.of_store(store), fill=True)
    if request.param == "sage":
        return SageRetriever(graph)
    if request.param == "grasp":
        return GraspRetriever(None, store, index)
    if request.param == "graphraft":
        return GraphRAFTRetriever(store, index)
    return ArkRetriever(model, store, index, n_agents=1)


def test_fields_are_dumped_copied_and_configured(retriever: Any) -> None:
    from langchain_core.runnables import ConfigurableField

    question = "Which ballpark is in Seattle?"
    assert retriever.model_dump()["k"] == 10
    assert '"on_failure":"fallback"' in retriever.model_dump_json()
    copied = retriever.model_copy(update={"k": 2, "on_failure": "raise"})
    assert getattr(copied.core, "on_failure", "raise") == "raise"
    assert retriever.core is retriever.core
    assert copied.core is not retriever.core
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"), on_failure=ConfigurableField(id="on_failure")
    )
    found = configurable.invoke(question, {"configurable": {"k": 1}})
    assert len(found) == 1
    with pytest.raises(InvalidInput, match="on_failure"):
        configurable.invoke(question, {"configurable": {"on_failure": "ignore"}})


# -- a ranking that was trained for a graph is the default of all that expands over it


class Watched(Propagate):
    """A ranking that counts its use."""

    used = 0

    def rank(self, *given: Any) -> Any:
        Watched.used += 1
        return super().rank(*given)


def test_the_ranking_of_a_graph_is_the_default() -> None:
    trained: Any = Watched()
    for package in (llama_index_graphret, langchain_graphret):
        Watched.used = 0
        graph = package.SageGraph.build(BALLPARKS, encoder=None)
        graph.ranking = trained
        assert graphret.SageRetriever(graph).ranking is trained
        node = graph.nodes[0]
        if package is langchain_graphret:
            found: Any = [langchain_graphret.to_document(node)]
            langchain_graphret.SageExpansion(graph).compress_documents(found, "Seattle")
        else:
            from llama_index.core.schema import NodeWithScore

            found = [NodeWithScore(node=llama_index_graphret.to_llama_node(node))]
            llama_index_graphret.SageExpansion(graph).postprocess_nodes(
                found, query_str="Seattle"
            )
        assert Watched.used == 1
