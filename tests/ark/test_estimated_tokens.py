"""Where an endpoint does not say what a reply cost, its tokens are estimated: they count, and are called estimates."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows, call, films, index_of, turns
from chat_clients import CLIENTS, chat_model, langchain_openai, llama_index_openai
from rich.console import Console

from graphret.ark import Ark, ArkSession, ArkSettings, Recorder, Run, read_runs
from graphret.explain import render_timeline, timeline_page
from graphret.llm.chat import Message, Reply, Usage
from graphret.schema.text import estimate_tokens
from graphret.testing.openai_server import Behaviour, OpenAIServer, Request, tool_call
from graphret.types import Trace
from langchain_graphret.ark import create_ark_graph
from llama_index_graphret import ArkRetriever

STORE = films()
INDEX = index_of(STORE)
QUESTION = "films by Bob Bell"
BUDGET = ArkSettings(n_agents=1, max_tokens=6000)


def never_done(request: Request) -> Behaviour:
    """Search for something else each time, on a server that says nothing of tokens."""
    return replace(tool_call("global_search", {"query": f"film {len(request.messages)}"}), says_usage=False)


def run_of(model: Any, settings: ArkSettings = ArkSettings(n_agents=1)) -> Run:  # noqa: B008 -- it is frozen
    return Ark(model, STORE, INDEX, settings=settings).explore(QUESTION)


def stages(trace: Trace) -> list[dict[str, Any]]:
    """The run as a whole, and each step."""
    return [stage.details for stage in trace.stages if stage.name == "explore" or "/step" in stage.name]


def of_core(client: str, server: OpenAIServer) -> Trace:
    return run_of(chat_model(client, server.base_url), BUDGET).trace


def of_langgraph(client: str, server: OpenAIServer) -> Trace:
    model = langchain_openai(server.base_url, streaming=client == "langchain_streaming")
    answer = create_ark_graph(model, STORE, INDEX, settings=BUDGET).invoke({"question": QUESTION})
    return Trace.from_dict(answer["trace"])


def of_llama_index(client: str, server: OpenAIServer) -> Trace:
    retriever = ArkRetriever(llama_index_openai(server.base_url), STORE, INDEX, settings=BUDGET)
    retriever.retrieve(QUESTION)
    return retriever.retrieval_of(QUESTION).trace


@pytest.mark.parametrize(
    ("explore", "client"),
    [
        *((of_core, client) for client in CLIENTS),
        (of_langgraph, "langchain"),
        (of_langgraph, "langchain_streaming"),
        (of_llama_index, "llama_index"),
    ],
)
def test_a_budget_of_tokens_ends_a_run_of_which_the_endpoint_tells_none(
    explore: Callable[[str, OpenAIServer], Trace], client: str
) -> None:
    with OpenAIServer(never_done) as server:
        whole, *steps = stages(explore(client, server))
    assert whole["stopped"] == {"tokens": 1}
    assert all(one["tokens_estimated"] is True for one in (whole, *steps))
    spent = [step["input_tokens"] + step["output_tokens"] for step in steps]
    assert sum(spent[:-1]) < 6000 <= sum(spent) == whole["input_tokens"] + whole["output_tokens"]
    sent = server.requests[-1].body  # rather too many than too few, and no more than what is sent
    least = sum(estimate_tokens(str(one["content"] or "")) for one in sent["messages"])
    assert least < steps[-1]["input_tokens"] <= estimate_tokens(json.dumps(sent)) + len(sent["messages"])


def test_what_is_reported_is_used_unchanged() -> None:
    run = run_of(Follows(turns([call("global_search", query="Bob Bell")])))
    assert [(step.input_tokens, step.output_tokens) for step in run.sessions[0].steps] == [(100, 10)] * 2
    assert not any("tokens_estimated" in one for one in stages(run.trace))
    assert "~" not in printed(run)


def test_each_request_of_a_step_is_counted() -> None:
    def talks(messages: Sequence[Message]) -> Reply:
        done = messages[0].content.count("You act by calling tools")
        if not done:
            return Reply("I would search.", usage=Usage(5, 5))
        return Reply('{"calls": [{"tool": "finish", "arguments": {}}]}')

    (step,) = run_of(Follows(talks)).sessions[0].steps
    assert step.tokens_estimated
    assert step.input_tokens > 300
    assert step.output_tokens > 5 + 10


def printed(run: Run) -> str:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(render_timeline(run))
    return out.getvalue()


def test_estimates_are_shown_as_such_and_kept(tmp_path: Path) -> None:
    said = turns(Reply("", (call("global_search", query="Bob Bell \ud83d"),)), [call("finish")])
    run = run_of(Follows(said))
    first, second = run.sessions[0].steps
    assert (first.tokens_estimated, second.tokens_estimated) == (True, False)
    tokens = first.input_tokens + first.output_tokens
    for shown in (printed(run), timeline_page(run)):
        assert f"~{tokens:,} tokens" in shown
        assert f"~{tokens + 110:,} tokens" in shown  # of the agent
        assert "~110 tokens" not in shown

    Recorder(tmp_path / "runs.jsonl")(run)
    (back,) = read_runs(tmp_path / "runs.jsonl")
    assert [step.tokens_estimated for step in back.sessions[0].steps] == [True, False]
    saved = run.sessions[0].to_dict()
    assert ArkSession.from_dict(json.loads(json.dumps(saved))).to_dict() == saved


def test_what_was_kept_before_tokens_were_estimated_is_read(tmp_path: Path) -> None:
    run, path = run_of(Follows(turns())), tmp_path / "runs.jsonl"
    Recorder(path)(run)
    line = json.loads(path.read_text())
    saved = run.sessions[0].to_dict()
    for step in (*line["steps"], *saved["steps"]):
        del step["tokens_estimated"]
    path.write_text(json.dumps(line))
    (back,) = read_runs(path)
    for session in (back.sessions[0], ArkSession.from_dict(saved)):
        assert [step.tokens_estimated for step in session.steps] == [False]
