"""Questions and what queries find become conversations for a reasoner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret

from graphret.errors import InvalidInput
from graphret.graphraft import GraphRAFT
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.llm import ChatOptions, Message, Reply
from graphret.planning import PathPlanner
from graphret.search import BM25Index
from graphret.training import (
    ConversationReport,
    LabelledQuestion,
    write_conversations,
)

STORE = read_metaqa(KB).store()
INDEX = BM25Index.of_store(STORE)
PLANNER = PathPlanner(STORE, aliases=ALIASES)
ASKED = [
    LabelledQuestion(
        "who directed Near Dark", frozenset({"Kathryn Bigelow", "Eric Red"})
    ),
    LabelledQuestion("who directed Blue Steel", frozenset({"Orson Welles"})),
    LabelledQuestion("what is the meaning of life", frozenset({"Orson Welles"})),
]


class Choosing:
    """A chat model that gives a fixed choice, and keeps what it was asked."""

    name = "choosing"

    def __init__(self, reply: str) -> None:
        self.reply, self.asked = reply, list[Message]()

    def chat(self, messages: list[Message], **options: ChatOptions) -> Reply:
        self.asked = list(messages)
        return Reply(self.reply)

    async def achat(self, messages: list[Message], **options: ChatOptions) -> Reply:
        return self.chat(messages, **options)


def test_a_conversation_is_what_the_reasoner_has_with_the_right_choice(
    tmp_path: Path,
) -> None:
    out = tmp_path / "talks.jsonl"
    raft = GraphRAFT(STORE, INDEX, planner=PLANNER)
    write_conversations(raft, ASKED[:1], out)
    text = out.read_text()
    assert write_conversations(raft, ASKED, out) == ConversationReport(3, 2, 1)
    assert out.read_text().startswith(text)
    [first, *others] = map(json.loads, out.read_text().splitlines())
    assert [one["messages"] for one in others] == [[], []]
    *prompt, answer = map(Message.from_dict, first["messages"])
    model = Choosing(answer.content)
    reasoning = GraphRAFT(STORE, INDEX, planner=PLANNER, reasoner=model)  # type: ignore[arg-type]
    found = reasoning.retrieve(ASKED[0].text, 2)
    assert model.asked == prompt
    assert set(found.ids) == ASKED[0].gold
    out.write_text('{"question": "q"}\n')
    with pytest.raises(InvalidInput, match=r"talks.jsonl, line 1: expected"):
        write_conversations(raft, ASKED, out)


def test_the_command_writes_them(tmp_path: Path) -> None:
    films, qa, out = (tmp_path / name for name in ("films", "qa.jsonl", "talks.jsonl"))
    import_graph(KB, str(films))
    lines = [{"question": one.text, "answers": [*one.gold]} for one in ASKED]
    qa.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    ran = graphret(
        *("train", "conversations", "--graph", films, "--qa", qa, "--out", out),
        *("--aliases", ALIASES, "--json"),
    )
    assert ran.json == {"questions": 3, "found": 2, "kept": 1}, ran.err
