"""Whatever a model does, ARK's graph makes of it what the core does: the same words, selections and hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ark_support import Follows, call, turns
from langgraph_parts import FULL, INDEX, QUESTION, STORE, graph

from graphret.ark import Ark
from graphret.llm.chat import ChatError, Message, Reply, ToolCall, Usage
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from langchain_graphret import create_ark_graph

LOOK = [call("global_search", query="Bob Bell")]
CHOOSE = [call("select", nodes=["p1"]), call("finish")]


def dying(messages: Sequence[Message]) -> Any:
    if len(messages) > 4:
        raise ChatError("it is gone", model="policy", reason="server", status=500)
    return LOOK


def raising(messages: Sequence[Message]) -> Any:
    raise RuntimeError("a bug in the model's client")


BEHAVIOURS: dict[str, Any] = {
    "finishes at once": turns([call("finish")]),
    "says nothing": turns(*[Reply("")] * 9),
    "only talks": turns(*[Reply("I think it is Red Dawn.")] * 9),
    "talks once, then works": turns(Reply("Let me think."), LOOK, CHOOSE),
    "calls a tool that there is none of": turns([call("web_search", query="x")], LOOK, CHOOSE),
    "writes arguments that are no JSON": turns([ToolCall("c", "global_search", "{query: Bob")], LOOK, CHOOSE),
    "makes up a node": turns(LOOK, [call("explore_neighborhood", node="Bob B.")], CHOOSE),
    "selects what it has not seen": turns([call("select", nodes=["f5", "zz"])], LOOK, CHOOSE),
    "makes 50 calls at once": turns([call("global_search", query=f"film {i}") for i in range(50)], CHOOSE),
    "makes 90 calls at once": turns([call("global_search", query=f"film {i}") for i in range(90)], CHOOSE),
    "repeats itself": turns(LOOK, LOOK, [*LOOK, *LOOK], CHOOSE),
    "gives its calls one id": turns([call("global_search", "a", query=w) for w in ("Ann", "Bob", "Cy")], CHOOSE),
    "never finishes": turns(*([[call("global_search", query=f"film {i}")] for i in range(40)])),
    "dies after a while": dying,
    "raises what is not ours": raising,
    "is cut at its limit of tokens": turns(Reply("", tuple(LOOK), Usage(9, 9), "length"), CHOOSE),
}


def conversation(sessions: Any) -> Any:
    return [
        [*(one[key] for key in ("messages", "selection", "stop", "error")), [step["error"] for step in one["steps"]]]
        for one in sessions
    ]


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_the_graph_makes_of_it_what_the_core_does(behaviour: str) -> None:
    policy = BEHAVIOURS[behaviour]
    core = Ark(Follows(policy), STORE, INDEX, settings=FULL)
    run, expected = core.explore(QUESTION), core.retrieve(QUESTION, 4)
    asked: Any = {"question": QUESTION, "k": 4}
    for found in (graph(Follows(policy)).invoke(asked), await graph(Follows(policy)).ainvoke(asked)):
        assert conversation(found["agents"]) == conversation(session.to_dict() for session in run.sessions)
        assert found["hits"] == [hit.to_dict() for hit in expected]
        stages = [stage["name"] for stage in found["trace"]["stages"]]
        assert stages == [stage.name for stage in expected.trace.stages]
        assert len(found["hits"]) == 4


def test_of_an_empty_graph_and_an_endless_question() -> None:
    store = MemoryStore()
    index = BM25Index.of_store(store)
    policy = turns([call("global_search", query="x" * 100_000)], [call("finish")])
    for question in ("q", "why " * 25_000):
        expected = Ark(Follows(policy), store, index, settings=FULL).retrieve(question, 4)
        found = create_ark_graph(Follows(policy), store, index, settings=FULL).invoke({"question": question, "k": 4})
        assert found["hits"] == [] == expected.hits
        assert [agent["stop"] for agent in found["agents"]] == ["finished"] * 3
