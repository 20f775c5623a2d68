"""Graphs that somebody else loaded into Neo4j, asked through both frameworks as a new
user would: Northwind, in which nothing has a property ``name``, and films.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import neo4j
import pytest
from foreign_graphs import load, movies, northwind
from langchain_core.documents import Document
from langchain_core.tools import create_retriever_tool
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import langchain_graphret as lang
import llama_index_graphret as llama
from graphret import BM25Index, Expand, Grasp, MemoryStore, Node, NodeText
from graphret.errors import InvalidInput
from graphret.graphraft import GraphRAFT
from graphret.retriever import Retriever
from graphret.search import Neo4jTextIndex
from graphret.stores import Neo4jStore
from graphret.testing.graphs import all_nodes

pytestmark = pytest.mark.neo4j


class Asked(NamedTuple):
    """A question, the name of a node that answers it, and what a model has to read."""

    question: str
    name: str
    read: str


NORTHWIND = [
    Asked("What is the phone number of Exotic Liquids?", "Exotic Liquids", "555-2222"),
    Asked("Which supplier supplies Chai?", "Exotic Liquids", "Chai"),
    Asked("Which products are in the category Seafood?", "Ikura", "PART_OF: Seafood"),
    Asked("Which category is Tofu part of?", "Produce", "Tofu"),
    Asked(
        "Who is the contact at Alfreds Futterkiste?",
        "Alfreds Futterkiste",
        "contactName: Maria Anders",
    ),
    Asked("What is the unit price of Ikura?", "Ikura", "unitPrice: 31.0"),
    Asked(
        "Which products does Tokyo Traders supply?",
        "Mishi Kobe Niku",
        "SUPPLIES of: Tokyo Traders",
    ),
    Asked("Which employees report to Fuller?", "Peacock", "REPORTS_TO: Fuller"),
    Asked("Who sold order 10250?", "Dodsworth", "firstName: Anne"),
    Asked("Which customers ordered Tofu?", "Consolidated Holdings", "PURCHASED: "),
]
MOVIES = [
    Asked("What is the tagline of Top Gun?", "Top Gun", "the need for speed"),
    Asked("When was Tom Hanks born?", "Tom Hanks", "born: 1956"),
    Asked("In which year was Apollo 13 released?", "Apollo 13", "released: 1995"),
    Asked("Who directed The Matrix?", "Lana Wachowski", "DIRECTED: "),
    Asked("Which movies did Tom Hanks act in?", "Apollo 13", "Tom Hanks"),
    Asked("Who acted in Stand By Me?", "River Phoenix", "ACTED_IN: Stand By Me"),
    Asked("Which movies did Ron Howard direct?", "Frost/Nixon", "of: Ron Howard"),
    Asked("Who produced Jerry Maguire?", "Cameron Crowe", "PRODUCED: Jerry Maguire"),
    Asked("films with Keanu Reeves and Al Pacino", "The Devil's Advocate", "Al Pacino"),
    Asked("Who acted in movies directed by Nora Ephron?", "Meg Ryan", "ACTED_IN: "),
]


class Opened(NamedTuple):
    """A graph in Neo4j with its index, the questions put to it and what was logged."""

    store: Neo4jStore
    index: Neo4jTextIndex
    questions: list[Asked]
    logged: list[str]


@pytest.fixture(scope="module", params=["northwind", "movies"])
def opened(request: pytest.FixtureRequest, neo4j_driver: neo4j.Driver) -> Opened:
    """A graph that somebody else loaded, opened in the README's lines."""
    neo4j_driver.execute_query("MATCH (n) DETACH DELETE n")
    load(neo4j_driver, northwind() if request.param == "northwind" else movies())
    questions = NORTHWIND if request.param == "northwind" else MOVIES
    logged: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record.getMessage())

    logger, log_handler = logging.getLogger("graphret.stores.neo4j.naming"), Kept()
    logger.addHandler(log_handler)
    logger.setLevel(logging.INFO)
    store = Neo4jStore.from_driver(neo4j_driver)
    index = Neo4jTextIndex.create(store)
    logger.removeHandler(log_handler)
    return Opened(store, index, questions, logged)


def _first_five(retriever: Retriever, question: str) -> list[tuple[str, str]]:
    """The names and what a model reads of five hits, through each framework."""
    chain = lang.as_langchain_retriever(retriever, k=5)
    documents = chain.invoke(question)
    nodes = llama.as_llama_index_retriever(retriever, k=5).retrieve(question)
    assert [one.id for one in documents] == [one.node.node_id for one in nodes]
    for document, node in zip(documents, nodes, strict=True):
        assert document.page_content == node.text
        assert node.node.get_content(MetadataMode.LLM).count(f"{node.text}") == 1
    names = [document.metadata["graphret"]["name"] for document in documents]
    return list(zip(names, [one.page_content for one in documents], strict=True))


def test_ten_questions_have_their_answer_in_the_first_five(opened: Opened) -> None:
    grasp = Grasp(None, opened.store, opened.index)
    for case in opened.questions:
        texts_by_name = dict(_first_five(grasp, case.question))
        assert case.name in texts_by_name, (case, [*texts_by_name])
        assert case.read in texts_by_name[case.name], (case, texts_by_name[case.name])


def test_names_are_chosen_by_label_and_logged_once(opened: Opened) -> None:
    (choice,) = opened.logged
    if opened.questions is MOVIES:
        assert choice == "nodes are named by: Movie: title; Person: name"
    else:
        assert "Customer: companyName, customerID; Employee: lastName" in choice
        assert "Order: orderID; Product: productName" in choice
    assert all(node.name for node in all_nodes(opened.store))


def test_a_property_of_what_is_named_is_answered_by_that_node(opened: Opened) -> None:
    case = opened.questions[0]
    explorer = lang.ArkRetriever(
        lang.ScriptedExplorer(), opened.store, opened.index, n_agents=1, k=1
    )
    ark = explorer.core
    for method in (
        Grasp(None, opened.store, opened.index),
        GraphRAFT(opened.store, opened.index),
        ark,
    ):
        assert method.retrieve(case.question, k=3).hits[0].node.name == case.name


def test_expansion_of_what_another_retriever_found_over_a_store(
    opened: Opened,
) -> None:
    (seed,) = all_nodes(opened.store, where={"name": opened.questions[0].name})
    question = opened.questions[0].question
    around = {
        edge.target if edge.source == seed.id else edge.source
        for edge in opened.store.neighbors([seed.id])
    }
    seed_node = TextNode(id_=seed.id, text="what a vector store holds of it")
    nodes = llama.SageExpansion(
        opened.store, opened.index, top_n=4, fill=False
    ).postprocess_nodes([NodeWithScore(node=seed_node, score=0.5)], query_str=question)
    documents = lang.SageExpansion(
        opened.store, opened.index, k=4, fill=False
    ).compress_documents([Document("what a store holds", id=seed.id)], question)
    for ids in ([one.node_id for one in nodes], [one.id for one in documents]):
        assert ids[0] == seed.id
        assert around.intersection(ids)
    assert nodes[0].node.hash == seed_node.hash
    assert documents[0].page_content == "what a store holds"
    assert "\n" in documents[1].page_content  # more than the name


def test_a_query_shown_as_evidence_runs_when_it_is_pasted(opened: Opened) -> None:
    case = opened.questions[6]
    hit = next(
        hit
        for hit in GraphRAFT(opened.store, opened.index).retrieve(case.question, k=5)
        if hit.node.name == case.name
    )
    cypher = next(
        evidence for evidence in hit.evidence if evidence.kind == "query"
    ).properties
    assert case.name in [name for (name,) in opened.store.query(cypher["cypher"]).rows]


def test_evidence_speaks_of_names(opened: Opened) -> None:
    retrieval = Expand(None, opened.store, opened.index).retrieve(
        opened.questions[0].question, k=5
    )
    words = " ".join(str(evidence) for hit in retrieval for evidence in hit.evidence)
    assert opened.questions[0].name in words
    assert not [hit.id for hit in retrieval if hit.id in words]


def test_what_only_fills_a_place_is_marked_and_can_be_left_out(opened: Opened) -> None:
    case = opened.questions[3]
    chain: Any = lang.GraspRetriever(None, opened.store, opened.index, k=20)
    marked = chain.invoke(case.question)
    real = [one.id for one in marked if not one.metadata["graphret"].get("fill")]
    assert 0 < len(real) < len(marked) == 20
    without = lang.GraspRetriever(None, opened.store, opened.index, k=20, fill=False)
    assert [one.id for one in without.invoke(case.question)] == real
    nodes = llama.GraspRetriever(
        None, opened.store, opened.index, k=20, fill=False
    ).retrieve(case.question)
    assert [one.node_id for one in nodes] == real
    assert not any(one.fill for one in nodes)  # type: ignore[attr-defined]


def test_content_chooses_what_a_model_reads(opened: Opened) -> None:
    case = opened.questions[0]
    core = Expand(None, opened.store, opened.index)
    chosen = NodeText.names()
    tool = create_retriever_tool(
        lang.as_langchain_retriever(core, k=1, content=chosen), "graph", "A graph."
    )
    assert tool.invoke({"query": case.question}) == case.name
    (node,) = llama.as_llama_index_retriever(
        core, k=1, content=lambda node: f"<{node.name}>"
    ).retrieve(case.question)
    assert node.text == f"<{case.name}>"
    assert llama.from_llama_node(node.node).name == case.name


def test_names_can_be_told(opened: Opened) -> None:
    driver = opened.store.driver
    films = opened.questions is MOVIES
    label, key = ("Movie", "tagline") if films else ("Customer", "contactName")
    for name_property in ({label: key}, {label: [key]}, [key, "name"]):
        store = Neo4jStore.from_driver(driver, name_property=name_property)
        names = {node.name for node in all_nodes(store, labels=[label])}
        expected = store.query(f"MATCH (n:{label}) RETURN n.{key}").rows
        assert names == {name for (name,) in expected}
        other_nodes = all_nodes(store, where={"label": {"$ne": label}})
        assert all(node.name for node in other_nodes)  # chosen for these
    for wrong in ("nmae", {label: "nmae"}):
        store = Neo4jStore.from_driver(driver, name_property=wrong)
        with pytest.raises(InvalidInput, match=rf"name_property: .*{key}"):
            store.count()
    with pytest.raises(InvalidInput, match=f"name_property: .*{label}"):
        Neo4jStore.from_driver(driver, name_property={"Nobody": key}).count()


def test_an_index_in_which_nodes_say_nothing_is_refused() -> None:
    store = MemoryStore.of([Node(f"{i}", properties={"size": i}) for i in range(4)])
    with pytest.raises(InvalidInput, match=r"4 of 4 without .* properties size"):
        BM25Index.of_store(store, text=NodeText.names())
    assert BM25Index.of_store(store).search("3", 1).ids == ["3"]
