"""The published methods over a small graph of films, each driven by a model whose
replies are written down: what it is asked, what comes of it, and what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ark_support import Follows
from cli_helpers import graphret, refused
from scripted_parts import FILMS as TRIPLES
from scripted_parts import films
from tests_support import HashingEncoder

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.llm import ChatError, Message, Reply, Usage
from graphret.methods import BASELINES, Method, MethodOptions, OpenGraph
from graphret.search import BM25Index, HybridIndex
from graphret.testing.openai_server import OpenAIServer, json_text, status
from graphret.types import Retrieval
from langchain_graphret import as_langchain_retriever
from llama_index_graphret import as_llama_index_retriever

QUESTION = "who made the films with Cy Cole"
ANSWER = "Ann Ames"
FILMS = films()
GRAPH = OpenGraph(FILMS.store, FILMS.index)
PLAN = {
    "anchors": [{"var": "a", "text": "Cy Cole", "label": "Actor"}],
    "hops": [
        {"from": "m", "rel": "starred_actors", "to_var": "a", "to_label": "Actor"},
        {"from": "m", "rel": "directed_by", "to_var": "T", "to_label": "Director"},
    ],
    "target": {"var": "T", "labels": ["Director"]},
}
#: What a model says, by what it is asked for: the first that the prompt holds.
Script = dict[str, Any]


def numbered(*wanted: str) -> Callable[[str], Any]:
    """Choose the lines that hold all of some words, by their numbers."""

    def choose(prompt: str) -> Any:
        lines = [line for line in prompt.splitlines() if re.match(r"\d+\. ", line)]
        fit = [line for line in lines if all(word in line for word in wanted)]
        return {
            "numbers": [int(line.partition(".")[0]) for line in fit],
            "enough": ANSWER in wanted,
        }

    return choose


def turns(*replies: Any) -> Callable[[str], Any]:
    """One reply after another, over all calls."""
    left = list(replies)
    return lambda prompt: left.pop(0)


def model(script: Script) -> Follows:
    def reply(messages: Sequence[Message]) -> Reply:
        prompt = "\n".join(one.content for one in messages)
        key = next(one for one in script if one in prompt)
        script_entry = script[key]
        value = script_entry(prompt) if callable(script_entry) else script_entry
        return Reply(json.dumps(value), usage=Usage(10, 1))

    return Follows(reply)


def act(action: str, given: str = "", *answers: str) -> dict[str, Any]:
    return {"thought": "so", "action": action, "input": given, "answers": [*answers]}


FOUND = act("finish", "", "Gus Gray", ANSWER)  # the first was never seen
NAMED = {"names": ["Cy Cole"]}
SCRIPTS: dict[Method, tuple[Callable[[], Script], int]] = {
    "hyde": (lambda: {"short passage": {"passages": ["They are by Ann Ames."]}}, 1),
    "rar": (lambda: {"suggest": {"passages": ["Ann Ames", "Dawn by Ann Ames"]}}, 1),
    "agr": (
        lambda: {
            "must be known": {"needs": ["films with Cy Cole", "their director"]},
            "suggest": {"passages": ["Gus Gray"]},
            "Check the passages": {"passages": ["Ann Ames"]},
        },
        3,
    ),
    "kar": (
        lambda: {
            "name the entities": {"names": ["Dawn"]},
            "(Dawn, directed_by, Ann Ames)": {"query": "the director Ann Ames"},
        },
        2,
    ),
    "react": (
        lambda: {
            "action": turns(act("search", "Cy Cole"), act("explore", "Dawn"), FOUND)
        },
        3,
    ),
    "reflexion": (
        lambda: {
            # judged a failure each time, it tries three times
            "reflection": {"success": False, "reflection": "look at Dawn"},
            "Learned before: look at Dawn": turns(act("explore", "Dawn"), FOUND, FOUND),
            "action": act("finish"),
        },
        6,
    ),
    "think-on-graph": (
        lambda: {
            "name the entities": NAMED,
            "directed_by]-> Ann Ames": numbered("directed_by]->", ANSWER),
            "is a path": numbered("starred_actors"),
        },
        3,
    ),
    "4stepfocus": (
        lambda: {"numbered nodes": numbered(ANSWER), "anchors": PLAN},
        2,
    ),
    "focused": (
        lambda: {"numbered nodes": numbered(ANSWER), "anchors": PLAN},
        2,
    ),
    "hybgrag": (
        lambda: {
            "(`correct`)": turns(
                {"correct": False, "feedback": "go by the relations of Dawn"},
                {"correct": True},
            ),
            "Rejected before": {
                "module": "hybrid",
                "entities": ["Dawn"],
                "relations": ["directed_by", "made up"],
            },
            "Choose how": {"module": "text"},
        },
        4,
    ),
}


@pytest.mark.parametrize("method", BASELINES)
@pytest.mark.parametrize("awaited", [False, True])
def test_a_method_finds_what_its_model_leads_it_to(
    method: Method, awaited: bool
) -> None:
    script, calls = SCRIPTS[method]
    chat = model(script())
    retriever = GRAPH.retriever(method, MethodOptions(chat=chat))
    retrieval: Retrieval = (
        asyncio.run(retriever.aretrieve(QUESTION, 3))
        if awaited
        else retriever.retrieve(QUESTION, 3)
    )
    assert retrieval.ids[0] == ANSWER
    assert not retrieval.hits[0].fill
    assert len(retrieval) == 3
    assert chat.asked == calls
    assert sum(stage.details.get("tokens", 0) for stage in retrieval.trace.stages) >= 11
    assert not retrieval.trace.fallbacks


@pytest.mark.parametrize("method", BASELINES)
def test_a_model_that_fails_leaves_the_answer_to_the_search(method: Method) -> None:
    def fail(messages: Sequence[Message]) -> Reply:
        raise ChatError("no route", model="policy", reason="connection")

    options = MethodOptions(chat=Follows(fail))
    retrieval = GRAPH.retriever(method, options).retrieve("Cy Cole", 3)
    assert retrieval.ids[0] == "Cy Cole"
    assert any("no route" in str(stage.details) for stage in retrieval.trace.fallbacks)
    strict = MethodOptions(chat=Follows(fail), on_failure="raise")
    if method not in (
        "4stepfocus",
        "focused",
    ):  # whose planner tells, and search goes on
        with pytest.raises(RetrievalFailed, match="no route"):
            GRAPH.retriever(method, strict).retrieve("Cy Cole", 3)
    with pytest.raises(InvalidInput, match=f"{method} needs the name of a model"):
        GRAPH.retriever(method)


@pytest.mark.parametrize("method", BASELINES)
def test_a_view_and_a_filter_hold_whatever_the_model_asks_for(method: Method) -> None:
    allowed = GRAPH.view({"name": {"$ne": ANSWER}})
    script, _ = SCRIPTS[method]
    prompts: list[str] = []

    def reply(messages: Sequence[Message]) -> Reply:
        prompts.append("\n".join(one.content for one in messages if one.role == "user"))
        return inner_model.chat(messages)

    inner_model = model({**script(), "": {}})
    view = allowed.retriever(method, MethodOptions(chat=Follows(reply)))
    assert ANSWER not in view.retrieve(QUESTION, 5).ids
    shown = [one for one in prompts if "<data>" in one and f'"id":"{ANSWER}"' in one]
    assert not shown
    retriever = GRAPH.retriever(method, MethodOptions(chat=model(script())))
    hits = retriever.retrieve(QUESTION, 3, {"label": "Movie"})
    assert {hit.node.label for hit in hits} == {"Movie"}


@pytest.mark.parametrize("method", ["kar", "think-on-graph", "4stepfocus", "hybgrag"])
def test_nodes_that_the_index_does_not_hold_are_reached_all_the_same(
    method: Method,
) -> None:
    some = BM25Index.of_store(FILMS.store, labels=["Actor", "Movie"])
    script, _ = SCRIPTS[method]
    retriever = OpenGraph(FILMS.store, some).retriever(
        method, MethodOptions(chat=model(script()))
    )
    retrieval = retriever.retrieve(QUESTION, 3)
    assert not retrieval.trace.fallbacks
    assert (ANSWER in retrieval.ids) == (method != "kar")  # which searches at last


def test_hyde_searches_with_the_mean_of_question_and_passage() -> None:
    index = HybridIndex.of_store(FILMS.store, HashingEncoder())
    dense = index.dense
    assert dense is not None
    chat = model({"short passage": {"passages": ["Gus Gray"]}})
    graph = OpenGraph(FILMS.store, index)
    retrieval = graph.retriever("hyde", MethodOptions(chat=chat)).retrieve(
        "Noon Train", 20
    )
    mean = (dense.query_vector("Noon Train") + dense.query_vector("Gus Gray")) / 2
    expected = dense.with_query("Noon Train", mean).search("Noon Train", 20)
    assert retrieval.ids == expected.ids
    assert set(retrieval.ids[:2]) == {"Noon Train", "Gus Gray"}


def test_both_frameworks_take_a_baseline_as_their_retriever() -> None:
    hyde_script = {"short passage": {"passages": ["They are by Ann Ames."]}}
    hyde = GRAPH.retriever("hyde", MethodOptions(chat=model(hyde_script)))
    nodes = as_llama_index_retriever(hyde, k=3).retrieve(QUESTION)
    assert nodes[0].node.node_id == ANSWER
    documents = as_langchain_retriever(hyde, k=3).invoke(QUESTION)
    assert documents[0].id == ANSWER


def test_the_command_line_knows_baselines_by_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("\n".join(filter(None, TRIPLES)), "utf-8")
    graph = tmp_path / "films"
    assert graphret("import", tmp_path / "kb.txt", "--out", graph).code == 0
    arguments = ("query", QUESTION, "--graph", graph, "--method", "rar")
    assert "needs --model" in refused(2, *arguments)
    assert "--agents needs --method ark" in refused(2, *arguments, "--agents", 2)
    replies = {"passages": ["Ann Ames"]}
    with OpenAIServer(lambda request: json_text(replies)) as server:
        model = ("--model", "tiny", "--base-url", server.base_url)
        ran = graphret(*arguments, *model, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["hits"][0]["id"] == ANSWER
    with OpenAIServer(lambda request: status(401)) as server:
        model = ("--model", "tiny", "--base-url", server.base_url)
        ran = graphret(*arguments, *model)
    assert (ran.code, "fallback" in ran.err) == (5, True)
