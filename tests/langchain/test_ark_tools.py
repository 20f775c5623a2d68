"""Methods in LangChain: ARK's operations and agents as tools, and ARK, GRASP and SPARK
as retrievers and graphs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ark_support import Follows
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_parts import (
    FULL,
    INDEX,
    QUESTION,
    STORE,
    RetrieverSuite,
    graph,
    models,
    thread,
)
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.checkpoint.memory import InMemorySaver, MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from spark_parts import EDGES, NODES, plan
from typing_extensions import TypedDict

from graphret.ark import Ark, ArkRun, ArkSettings, make_tools
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.grasp import GraspSettings, PlanRetriever, StaticWeights
from graphret.llm.chat import ChatError
from graphret.planning import GraphPlan
from graphret.search import BM25Index
from graphret.spark import SparkSettings
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from langchain_graphret import (
    ArkRetriever,
    GraspRetriever,
    SageRetriever,
    ScriptedExplorer,
    SparkRetriever,
    ark_tools,
    create_ark_tool,
    create_plan_node,
    create_spark_graph,
    evidence_of,
    to_document,
)

SEARCH, EXPLORE = ark_tools(STORE, INDEX)


class _Explore:
    @property
    def tool_constructor(self) -> BaseTool:
        return EXPLORE

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {
            "node": "p1",
            "query": "red",
            "node_types": ["movie"],
            "relation_types": ["directed_by"],
            "k": 3,
        }


class TestExploreUnit(_Explore, ToolsUnitTests):
    """LangChain's own suite."""


class TestExplore(_Explore, ToolsIntegrationTests):
    """The other one."""


def test_models_are_told_of_them_as_arks_agents_are() -> None:
    expected = [
        tool.to_dict()
        for tool in make_tools()
        if tool.name in ("global_search", "explore_neighborhood")
    ]
    assert [convert_to_openai_tool(tool) for tool in (SEARCH, EXPLORE)] == expected
    seven = ark_tools(STORE, INDEX, settings=ArkSettings(search_k=7))[0]
    assert "; 7 unless" in json.dumps(convert_to_openai_tool(seven))


async def test_text_and_ids_come_back_in_both_forms() -> None:
    called: Any = {
        "type": "tool_call",
        "id": "1",
        "name": EXPLORE.name,
        "args": {"node": "p1"},
    }
    message = EXPLORE.invoke(called)
    assert message == await EXPLORE.ainvoke(called)
    header, *lines = map(json.loads, message.content.splitlines())
    assert header["explored"] == "p1"
    assert [line["id"] for line in lines] == message.artifact["nodes"] == ["f1", "f4"]
    assert message.artifact["edges"] == [
        ["f1", "directed_by", "p1"],
        ["f4", "directed_by", "p1"],
    ]
    assert (message.artifact["total"], message.artifact["failed"]) == (2, False)
    json.dumps(message.artifact)


async def test_a_wrong_call_is_answered_with_an_instruction() -> None:
    called: Any = {
        "type": "tool_call",
        "id": "1",
        "name": EXPLORE.name,
        "args": {"node": "Bob"},
    }
    for message in (EXPLORE.invoke(called), await EXPLORE.ainvoke(called)):
        assert message.artifact["failed"]
        assert "p1" in json.loads(message.content)["error"]


# -- a graph of agents as a tool of another agent


def asked(tool: BaseTool, **arguments: Any) -> ToolMessage:
    answer = tool.invoke(
        {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
    )
    assert isinstance(answer, ToolMessage)
    return answer


def lines(answer: ToolMessage) -> list[Any]:
    return [json.loads(line) for line in str(answer.content).splitlines()]


async def test_a_model_gives_it_a_question_and_reads_the_hits() -> None:
    tool = create_ark_tool(graph())
    answer = asked(tool, question=QUESTION, k=2)
    first, best, other = lines(answer)
    assert first == {"shown": 2, "of": 2}
    assert best == {
        "id": "f4",
        "name": "Dark Red",
        "type": ["movie"],
        "because": ["3 of 3 votes, place 1", "Dark Red -directed_by→ Bob Bell"],
        "text": "Dark Red is film number 4.",
    }
    assert other["id"] == "f1"
    assert [hit["id"] for hit in answer.artifact["hits"]] == ["f4", "f1"]
    assert await tool.ainvoke({"question": QUESTION, "k": 2}) == answer.content


def test_what_is_asked_wrongly_is_answered_and_what_fails_is_raised() -> None:
    answer = asked(
        create_ark_tool(graph()), question=QUESTION, where={"year": {"$near": 1}}
    )
    assert (answer.status, "$near" in str(answer.content)) == ("error", True)

    def gone(messages: Any) -> Any:
        raise ChatError("it is gone", model="m", reason="server", status=500)

    with pytest.raises(RetrievalFailed, match="it is gone"):
        asked(
            create_ark_tool(graph(Follows(gone), on_failure="raise")), question=QUESTION
        )


def outer(tool: BaseTool, **options: Any) -> Any:
    """An agent that asks the tool once, and then answers."""
    ask: Any = {
        "name": tool.name,
        "args": {"question": QUESTION, "k": 1},
        "id": "a",
        "type": "tool_call",
    }
    model = GenericFakeChatModel(
        messages=iter([AIMessage("", tool_calls=[ask]), AIMessage("Dark Red it is.")])
    )
    builder = StateGraph(MessagesState)
    builder.add_node(
        "model", lambda state: {"messages": [model.invoke(state["messages"])]}
    )
    builder.add_node("tools", ToolNode([tool]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(**options)


def test_a_person_can_be_asked_through_it() -> None:
    compiled = outer(
        create_ark_tool(graph(approve=["global_search"])), checkpointer=InMemorySaver()
    )
    waiting = compiled.invoke({"messages": [HumanMessage(QUESTION)]}, thread())[
        "__interrupt__"
    ]
    assert sorted(pending.value["agent"] for pending in waiting) == [1, 2, 3]
    state = compiled.invoke(
        Command(resume={pending.id: True for pending in waiting}), thread()
    )
    *_, answer, last = state["messages"]
    assert lines(answer)[1]["id"] == "f4"
    assert last.text == "Dark Red it is."


# -- a retriever


def retriever(model: Any = None, **options: Any) -> ArkRetriever:
    options.setdefault("settings", FULL)
    return ArkRetriever(models() if model is None else model, STORE, INDEX, **options)


class TestArk(RetrieverSuite):
    kind, question = ArkRetriever, "which films were directed by [Bob Bell]"
    parts: Mapping[str, Any] = {
        "model": ScriptedExplorer(),
        "store": STORE,
        "index": INDEX,
    }


async def test_it_returns_what_the_core_does_with_its_reasons() -> None:
    expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, 4)
    for documents in (
        retriever(k=4).invoke(QUESTION),
        await retriever(k=4).ainvoke(QUESTION),
    ):
        expected_documents = list(map(to_document, expected.hits))
        assert [document.metadata for document in documents] == [
            document.metadata for document in expected_documents
        ]
        assert "ABOUT of: Speech Synthesis 1" in documents[0].page_content
        assert [evidence_of(document) for document in documents] == [
            list(hit.evidence) for hit in expected.hits
        ]


def test_agents_steps_models_and_runs_can_be_set() -> None:
    runs: list[ArkRun] = []
    single = retriever(
        models()[0],
        n_agents=2,
        settings=ArkSettings(max_steps=2),
        on_run=runs.append,
    )
    assert (
        single.invoke(QUESTION) != []
    )  # nobody selected anything, so that the fallback answers
    assert [session.stop for session in runs[0].sessions] == ["steps", "steps"]


STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.of_store(STORE)
PLAN_BY_ADA = {
    "anchors": [{"var": "a", "text": "Ada Ames", "label": "Author"}],
    "hops": [{"from": "a", "rel": "WROTE", "to_var": "T"}],
    "target": {"labels": ["Paper"]},
}


def model(*plans: Any) -> FakeListChatModel:
    return FakeListChatModel(
        responses=[
            written_plan if isinstance(written_plan, str) else json.dumps(written_plan)
            for written_plan in plans
        ]
    )


class TestGrasp(RetrieverSuite):
    kind, question = GraspRetriever, "papers by Ada Ames"
    parts: Mapping[str, Any] = {"planner": None, "store": STORE, "index": INDEX}


async def test_a_model_or_none_plans_and_each_document_says_why() -> None:
    for planner in (model(PLAN_BY_ADA), None):
        retriever = GraspRetriever(planner, STORE, INDEX, k=3)
        for documents in (
            retriever.invoke("Which papers did Ada Ames write?"),
            await retriever.ainvoke("Which papers did Ada Ames write?"),
        ):
            assert {document.id for document in documents} == {"p0", "p3", "p6"}
            kinds = {
                evidence["kind"]
                for evidence in documents[0].metadata["graphret"]["evidence"]
            }
            assert {"rank", "path"} <= kinds
    narrowed = retriever.invoke(
        "Which papers did Ada Ames write?", k=1, where={"year": {"$gt": 2014}}
    )
    assert [document.id for document in narrowed] == ["p6"]


def test_the_second_opinion_may_be_a_retriever_of_langchain() -> None:
    search = SageRetriever(
        PlanRetriever(GraspRetriever(None, STORE, INDEX).core.plan.planner, STORE),
        k=5,
    )
    settings = GraspSettings(weights=StaticWeights(0.0))
    documents = GraspRetriever(
        model("no plan"), STORE, search, settings=settings, k=3
    ).invoke("papers by Ada Ames")
    assert {document.id for document in documents} == {"p0", "p3", "p6"}


class State(TypedDict, total=False):
    question: str
    plan: Any
    bindings: Any
    problem: str


@pytest.mark.parametrize("reply", [PLAN_BY_ADA, "no plan"])
async def test_the_plan_is_a_node(reply: Any) -> None:
    builder = StateGraph(State)
    builder.add_node("plan", create_plan_node(model(reply), STORE))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", END)
    graph = builder.compile()
    for state in (
        graph.invoke({"question": "papers by Ada"}),
        await graph.ainvoke({"question": "papers by Ada"}),
    ):
        if reply == "no plan":
            assert state["plan"] is None
            assert "JSON" in state["problem"]
        else:
            assert GraphPlan.model_validate(state["plan"]) == GraphPlan.model_validate(
                PLAN_BY_ADA
            )
    with pytest.raises(InvalidInput, match="store"):
        create_plan_node(model(reply))


BY_ADA = (
    "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'ada ames' RETURN p ORDER BY"
    " p.year"
)
ASKED = {"question": "papers by Ada Ames"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture(scope="module")
def parts(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LadybugStore, BM25Index]]:
    with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        yield store, BM25Index.of_store(store)


def model_of(*replies: str) -> GenericFakeChatModel:
    """A model that gives these replies, and fails where it is asked once more."""
    return GenericFakeChatModel(messages=iter(replies))


async def test_a_question_becomes_a_plan_and_hits(parts: Any) -> None:
    graph = create_spark_graph(model_of(*[plan(BY_ADA)] * 4), *parts, k=3)
    assert [name for update in graph.stream(ASKED) for name in update] == [
        "plan",
        "check",
        "run",
        "expand",
    ]
    for answer in (graph.invoke(ASKED), await graph.ainvoke({**ASKED, "k": 2})):
        assert [hit["id"] for hit in answer["hits"]][:2] == ["p0", "p3"]
        assert answer["hits"][0]["evidence"][0]["kind"] == "query"
        assert answer["plan"] == {"steps": [{"cypher": BY_ADA}]}
        assert [stage["name"] for stage in answer["trace"]["stages"]] == [
            "plan",
            "step 1",
            "rank",
        ]
    filtered = graph.invoke({**ASKED, "where": {"year": {"$gt": 2012}}, "k": 2})
    assert [hit["id"] for hit in filtered["hits"]] == ["p3", "p6"]
    thread = create_spark_graph(
        model_of(*[plan(BY_ADA)] * 2), *parts, k=3, checkpointer=MemorySaver()
    )
    assert (
        thread.invoke({**ASKED, "where": {"year": {"$gt": 2012}}, "k": 2}, THREAD)[
            "hits"
        ]
        == filtered["hits"]
    )
    assert (
        len(thread.invoke(ASKED, THREAD)["hits"]) == 3
    )  # how many and of which kind was said of that question alone
    expanded = create_spark_graph(
        model_of(plan(BY_ADA)), *parts, k=6, expand="auto"
    ).invoke(ASKED)
    assert len(expanded["hits"]) == 6
    assert any(
        e["kind"] == "neighbor" for hit in expanded["hits"] for e in hit["evidence"]
    )


def test_a_number_is_in_the_state_the_message_and_the_documents(parts: Any) -> None:
    count = plan("MATCH (a:Author)-[:WROTE]->(p:Paper) RETURN count(p) AS papers")
    graph = create_spark_graph(
        model_of(count, count, plan(BY_ADA)),
        *parts,
        k=3,
        expand="auto",
        checkpointer=MemorySaver(),
    )
    answer = graph.invoke(ASKED, THREAD)
    assert answer["rows"] == [{"papers": 9}]
    assert answer["hits"][0]["labels"] == ["Row"]
    assert len(answer["hits"]) == 3
    state = graph.invoke({"messages": [HumanMessage("How many papers?")]}, THREAD)
    assert "papers: 9" in state["messages"][-1].text
    assert graph.invoke(ASKED, THREAD)["rows"] == []
    first, *_ = SparkRetriever(model_of(count), *parts, k=3).invoke("How many papers?")
    assert first.page_content == "papers: 9"
    assert first.metadata["papers"] == 9
    assert evidence_of(first)[0].properties["cypher"].startswith("MATCH (a:Author)")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("no idea", "no plan"), (plan("MATCH (p:Planet) RETURN p"), "Planet")],
)
def test_what_fails_goes_to_the_fallback_and_one_more_call_where_it_is_allowed(
    parts: Any, reply: str, reason: str
) -> None:
    updates = list(create_spark_graph(model_of(reply), *parts, k=3).stream(ASKED))
    [(last, answer)] = updates[-1].items()
    [fallback] = [
        stage for stage in answer["trace"]["stages"] if stage["name"] == "fallback"
    ]
    assert last == "fallback"
    assert reason in fallback["error"]
    assert len(answer["hits"]) == 3
    if reason == "Planet":
        settings = SparkSettings(repair_calls=1)
        graph = create_spark_graph(
            model_of(reply, plan(BY_ADA)), *parts, k=3, settings=settings
        )
        assert [hit["id"] for hit in graph.invoke(ASKED)["hits"]] == ["p0", "p3", "p6"]
    with pytest.raises(InvalidInput, match="question"):
        create_spark_graph(model_of(), *parts).invoke({"question": " "})


@pytest.mark.parametrize(("word", "run"), [(True, True), ("too broad", False)])
def test_a_person_approves_queries_before_they_run(
    parts: Any, word: Any, run: bool
) -> None:
    model = model_of(plan(BY_ADA), plan(BY_ADA))
    graph = create_spark_graph(
        model, *parts, k=3, approve=True, checkpointer=MemorySaver()
    )
    [waiting] = graph.invoke(ASKED, THREAD)["__interrupt__"]
    assert waiting.value["steps"][0]["cypher"].startswith("MATCH (a:Author)")
    answer = graph.invoke(Command(resume=word), THREAD)
    assert ("step 1" in [stage["name"] for stage in answer["trace"]["stages"]]) is run
    assert len(answer["hits"]) == 3
    assert "__interrupt__" in graph.invoke({"question": "another"}, THREAD)
    assert not list(model.messages)  # the model was not paid twice


class TestSpark(RetrieverSuite):
    kind, question = SparkRetriever, "papers by Ada Ames"

    @pytest.fixture(autouse=True)
    def _parts(self, parts: Any) -> None:
        store, index = parts
        model = FakeListChatModel(responses=[plan(BY_ADA)])
        self.parts = {"model": model, "store": store, "index": index, "expand": "auto"}
