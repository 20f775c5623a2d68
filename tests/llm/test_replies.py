"""What is read out of a model's reply: the answer behind its reasoning, JSON as models
write it, and what that is wrapped in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from chat_clients import chat_model
from pydantic import TypeAdapter

from graphret.llm import Message, ask_json
from graphret.llm.structured import parse_json
from graphret.planning import GraphPlan
from graphret.spark.plan import read_plan
from graphret.testing.openai_server import OpenAIServer, text


@dataclass
class Score:
    score: int
    why: list[str] = field(default_factory=list)


@dataclass
class Choice:
    numbers: list[int]


SCORE, CHOICE = TypeAdapter(Score), TypeAdapter(Choice)
FINAL = "<|start|>assistant<|channel|>final"
REASONED = [
    "Perhaps {3}?\n</think>\n{9}",
    "<think>{3}</think>{9}",
    "<THINK>\n{3}\n</THINK>\n```json\n{9}\n```",
    "<thinking>Not {3}.</thinking>\n\n{9}",
    '<thinking type="long">{3}</thinking>{9}',
    "<thought>{3}</thought><output>{9}</output>",
    "<reasoning>{3}</reasoning>\n<answer>{9}</answer>\nOr {3}",
    "<seed:think>{3}</seed:think>{9}",
    "[THINK]{3}[/THINK]{9}",
    "◁think▷{3}◁/think▷{9}",
    "<|begin_of_thought|>{3}<|end_of_thought|><|begin_of_solution|>{9}<|end_of_solution|>",
    "<|START_THINKING|>{3}<|END_THINKING|><|START_RESPONSE|>{9}<|END_RESPONSE|>",
    "<|inner_prefix|>{3}<|inner_suffix|>{9}",
    f"<|channel|>analysis<|message|>{{3}}<|end|>{FINAL}<|message|>{{9}}<|return|>",
    f"<|channel|>analysis<|message|>{{3}}<|end|>{FINAL} <|constrain|>json<|message|>{{9}}",
    "<|channel|>commentary<|message|>{3}<|end|><|channel|>final<|message|>{9}",
    "<|channel>thought\n{3}<channel|>{9}",
    "analysisWe may give {3}.assistantfinal{9}",
    "Here is my thought process: {3}\nHere is my response: {9}",
    "Perhaps {3}? No, it is all there.\n\n**Final answer:** {9}",
    "<think>a <think>{3}</think> or {3}</think>{9}",
    "<think>in <answer>{3}</answer>?</think>{9}<think>or {3}?",
    "<think>one</think>{9}<think>{3}</think>",
    "{9}<|im_end|>\n<|im_start|>user\n{3}",
    "<|im_start|>assistant\n{9}<|im_end|>{3}",
    "<|start_header_id|>assistant<|end_header_id|>\n\n{9}<|eot_id|>{3}",
    "<start_of_turn>model\n{9}<end_of_turn>{3}",
    "\ufeff<s>{9}</s>{3}",
    "{9}<｜end▁of▁sentence｜>{3}",
]


def scored(reply: str) -> str:
    return reply.replace("{3}", '{"score": 3}').replace("{9}", '{"score": 9}')


@pytest.mark.parametrize("reply", REASONED)
def test_json_is_read_behind_reasoning_whatever_its_marks(reply: str) -> None:
    assert parse_json(scored(reply), SCORE) == (Score(9), None)


@pytest.mark.parametrize(
    "reply",
    [
        "<think>{3}",
        "<Thinking>\n{3}<|im_end|>\n{3}",
        "[THINK]{3}",
        "<|channel|>analysis<|message|>{3}<|end|>",
        "analysisWe may give {3}.",
        "{3} is not it</think>",
    ],
)
def test_a_thought_that_never_ends_is_no_answer(reply: str) -> None:
    value, problem = parse_json(scored(reply), SCORE)
    assert value is None
    assert problem == "it is reasoning that never ends in an answer"


@pytest.mark.parametrize("client", ["openai", "langchain", "llama_index"])
def test_a_reply_that_is_cut_is_asked_for_again_and_briefer(client: str) -> None:
    cut = text('{"score": 9, "why": ["it', finish_reason="length")
    with OpenAIServer([cut, '{"score": 9}']) as server:
        model = chat_model(client, server.base_url, retries=0)
        value, usage, attempts = ask_json(model, [Message.user("Is it?")], Score)
        said = server.requests[1].messages[-1]["content"]
    assert (value, attempts, usage.output_tokens) == (Score(9), 2, 6)
    assert "cut off at the token limit" in said


def test_marks_within_json_are_text() -> None:
    said = json.dumps({"score": 9, "why": ["it says </think>", "and <answer>"]})
    assert parse_json(said, SCORE)[0] == Score(9, ["it says </think>", "and <answer>"])


@pytest.mark.parametrize(
    "reply",
    [
        '{"score": 9, "why": ["a",],}',
        '{"score": 9, "why": ["a"] // it is\n}',
        "{'score': 9, 'why': ['a']}",
        '{score: 9, why: ["a"]}',
        '{"score": 9, "why": ["""a"""], "sure": True, "else": None}',
        "{&quot;score&quot;: 9, &quot;why&quot;: [&quot;a&quot;]}",
        '{"result": {"score": 9, "why": ["a"]}}',
        '[{"score": 9, "why": ["a"]}]',
        '{"name": "answer", "arguments": {"score": 9, "why": ["a"]}}',
        '{"name": "answer", "arguments": "{\\"score\\": 9, \\"why\\": [\\"a\\"]}"}',
        '<tool_call>{"name": "f", "parameters": {"score": 9, "why": ["a"]}}</tool_call>',
        '"{\\"score\\": 9, \\"why\\": [\\"a\\"]}"',
        '\\boxed{{"score": 9, "why": ["a"]}}',
    ],
)
def test_json_is_read_as_models_write_and_wrap_it(reply: str) -> None:
    assert parse_json(reply, SCORE) == (Score(9, ["a"]), None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("two\nlines", "two\nlines"),
        (r"name = \'Heat\'", "name = 'Heat'"),
        (r"name = 'O\'Hara'", r"name = 'O\'Hara'"),
        (r"=~ '\d+\.\d'", r"=~ '\d+\.\d'"),
        ("it's, so: {a: 'b',}", "it's, so: {a: 'b',}"),
    ],
)
def test_what_stands_in_a_string_is_kept(written: str, meant: str) -> None:
    found, _ = parse_json(f'{{"score": 9, "why": ["{written}",]}}', SCORE)
    assert found == Score(9, [meant])


def test_one_field_may_stand_alone() -> None:
    assert parse_json("9", SCORE)[0] == Score(9)
    assert parse_json("The best: [3, 1]", CHOICE)[0] == Choice([3, 1])


def test_where_all_fields_have_defaults_another_object_is_no_answer() -> None:
    plans = TypeAdapter(GraphPlan)
    plan = {"target": {"var": "T", "labels": ["Paper"]}}
    wrapped, _ = parse_json(json.dumps({"plan": plan}), plans)
    assert wrapped == GraphPlan.model_validate(plan)
    nothing, problem = parse_json('{"question": "who?"}', plans)
    assert nothing is None
    assert "none of anchors, hops, target" in (problem or "")


@pytest.mark.parametrize(
    "part",
    ["<think>", "</think>", "<|channel|>", "<|", "{", "[{'a':", '"\\"', "{/*", ",  "],
)
@pytest.mark.timeout(60)  # it takes minutes where it is not linear
def test_long_replies_are_read_in_time_that_grows_with_their_length(part: str) -> None:
    assert parse_json(part * 20_000, SCORE)[0] is None
    assert read_plan(part * 20_000, 4)[0] is None
