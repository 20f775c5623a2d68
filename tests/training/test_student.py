"""Distilling an exploring agent: trajectories of a teacher, and a student of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_helpers import graphret
from tiny_model import saved_tiny_model, tiny_model

from graphret.ark import Ark, ArkSettings, ScriptedExplorer, read_runs
from graphret.errors import InvalidInput
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.llm import ChatError, ChatModel, Message, Reply, Tool, causal_chat
from graphret.llm.causal_chat import CausalChat
from graphret.methods import MethodOptions, opened_graph
from graphret.search import BM25Index
from graphret.training.student import (
    STUDENT_TUNING,
    collect_trajectories,
    read_conversations,
    read_texts,
    train_student,
)

pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.xdist_group("torch")

STORE = read_metaqa(KB).store()
INDEX = BM25Index.of_store(STORE)
ASKED = ["who directed Zero Dark Thirty", "who directed Near Dark"]
APART = ArkSettings(n_agents=2, max_steps=4, early_stop=False)


SHORT = replace(ArkSettings.small(), n_agents=2, early_stop=False)


def teacher(settings: ArkSettings = APART) -> Ark:
    schema = STORE.schema() if settings.prompt == "short" else None
    rules = ScriptedExplorer(aliases=ALIASES, schema=schema)
    return Ark(rules, STORE, INDEX, settings=settings)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_tiny_model(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    report = collect_trajectories(teacher(), ASKED, out)
    assert (report.questions, report.trajectories, report.finished) == (2, 4, 4)
    return out


def test_trajectories_are_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    first = collect_trajectories(teacher(), ASKED[:1], out)
    text = out.read_text()
    both = collect_trajectories(teacher(), ASKED, out)
    assert (first.trajectories, both.trajectories) == (2, 4)
    assert out.read_text().startswith(text)
    assert [run.question for run in read_runs(out)] == ASKED
    with pytest.raises(InvalidInput, match="early_stop"):
        collect_trajectories(teacher(ArkSettings()), ASKED, out)
    out.write_text(text + '{"question": "q"}\n')
    with pytest.raises(InvalidInput, match=r"runs.jsonl, line 3: .* messages, tools"):
        collect_trajectories(teacher(), ASKED, out)


@pytest.mark.parametrize("settings", [APART, SHORT], ids=["full", "short"])
def test_a_student_learns_what_an_agent_without_tools_reads_and_writes(
    settings: ArkSettings, tmp_path: Path
) -> None:
    """The conversation of a trajectory is, turn by turn, the one that the loop has with
    a model that writes its calls as JSON.
    """
    heard: list[list[Message]] = []
    collect_trajectories(teacher(settings), ASKED[:1], tmp_path / "runs.jsonl")
    [learned, *_] = read_conversations(tmp_path / "runs.jsonl")
    written = [
        message.content for message in learned.messages if message.role == "assistant"
    ]

    class Student:
        name = "student"

        def chat(self, messages: list[Message], **options: object) -> Reply:
            if options.get("tools"):
                raise ChatError("it takes no tools", model="s", reason="bad_request")
            heard.append(list(messages))
            return Reply(written[len(heard) - 1])

        async def achat(self, messages: list[Message], **options: object) -> Reply:
            return self.chat(messages, **options)

    alone = replace(settings, n_agents=1)
    run = Ark(Student(), STORE, INDEX, settings=alone).explore(ASKED[0])  # type: ignore[arg-type]
    [session] = run.sessions
    assert session.stop == "finished"
    assert list(session.selection) == ["Kathryn Bigelow"]
    last = [*heard[-1], Message.assistant(written[-1])]
    read = [(message.role, message.content) for message in last]
    told = [(message.role, message.content) for message in learned.messages]
    assert read == told[: len(read)]  # then what the last calls returned
    assert len(told) == len(read) + 1


def test_a_short_trajectory_is_a_fraction_of_a_full_one(
    recorded: Path, tmp_path: Path
) -> None:
    """It has one search of three nodes, and no schema of what a reply is to be."""
    collect_trajectories(teacher(SHORT), ASKED, tmp_path / "runs.jsonl")
    sizes = [
        sum(len(turn.content) for turn in read_conversations(path)[0].messages)
        for path in (tmp_path / "runs.jsonl", recorded)
    ]
    assert sizes[0] < sizes[1] / 3
    [learned, *_] = read_conversations(tmp_path / "runs.jsonl")
    system, _, searched, found, *_ = learned.messages
    assert "global_search(query, node_types): " in system.content
    assert "\nRelations: has_tags, starred_actors, " in system.content
    assert json.loads(searched.content)["calls"] == [
        {"tool": "global_search", "arguments": {"query": "Zero Dark Thirty"}}
    ]
    assert json.loads(found.content.splitlines()[1])["found"] <= 3


def test_trajectories_of_several_prompts_are_no_data_of_one_student(
    base: str, recorded: Path, tmp_path: Path
) -> None:
    mixed = tmp_path / "runs.jsonl"
    mixed.write_text(recorded.read_text())
    collect_trajectories(teacher(SHORT), ["who directed Frozen"], mixed)
    tuning = replace(STUDENT_TUNING, model=base)
    with pytest.raises(InvalidInput, match="of one prompt, got full, short"):
        train_student(mixed, tmp_path / "student", tuning)


def shortened(recorded: Path, out: Path) -> Path:
    """Write trajectories whose system message is a word: the tokens of the tiny model
    are characters.
    """
    records = [json.loads(line) for line in recorded.read_text().splitlines()]
    for record in records:
        record["messages"][0]["content"], record["tools"] = "Explore.", []
    out.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return out


def test_a_student_that_is_trained_explores_in_the_same_loop(
    base: str, recorded: Path, tmp_path: Path
) -> None:
    tuning = replace(STUDENT_TUNING, model=base, epochs=2, rate=5e-3)
    data = shortened(recorded, tmp_path / "runs.jsonl")
    tuned = train_student(data, tmp_path / "student", tuning)
    losses = [entry["eval_loss"] for entry in tuned.run.curve if "eval_loss" in entry]
    assert losses[-1] < losses[0]
    student = CausalChat(tmp_path / "student", max_tokens=4)
    assert isinstance(student, ChatModel)
    settings = replace(APART, n_agents=1, max_steps=1)
    retrieval = Ark(student, STORE, INDEX, settings=settings).retrieve(ASKED[0], 3)
    # what it writes is no call yet: it is filled
    assert len(retrieval) == 3
    assert retrieval.trace.stages[0].details["output_tokens"] > 0


def test_a_chat_model_in_this_process_says_why_it_cannot_answer(base: str) -> None:
    conversation = [Message.user("asthma")]
    model = CausalChat(base, context=40)
    reply = model.chat(conversation, max_tokens=4)
    assert reply.usage.output_tokens <= 4
    assert reply.finish_reason in ("stop", "length")
    assert model.chat(conversation, max_tokens=4) == reply
    with pytest.raises(ChatError, match="no tools"):
        model.chat(conversation, tools=[Tool("t", "d", {})])
    with pytest.raises(ChatError, match="of a context of 40"):
        model.chat([Message.user("asthma " * 40)])
    with pytest.raises(ChatError, match="nothing"):
        CausalChat(Path(base) / "nothing").chat(conversation)


def test_a_conversation_that_goes_on_is_not_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, tokenizer = tiny_model()
    n_read: list[int] = []
    model.get_input_embeddings().register_forward_hook(
        lambda layer, given, result: n_read.append(given[0].shape[1])
    )
    monkeypatch.setattr(causal_chat, "load_model", lambda *given: (model, tokenizer))
    begun = [Message.system("Write the graph query."), Message.user("asthma")]
    chat = CausalChat("tiny", max_tokens=3)
    first = chat.chat(begun)
    assert n_read[0] == first.usage.input_tokens
    goes_on = [*begun, Message.assistant(first.text), Message.user("ibuprofen")]
    another = [begun[0], Message.user("CYP3A4")]
    for conversation in (goes_on, another, another):
        n_read.clear()
        reply = chat.chat(conversation)
        assert n_read[0] < reply.usage.input_tokens / 2
        assert reply == CausalChat("tiny", max_tokens=3).chat(conversation)


def test_questions_need_no_answers_and_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    lines = [{"question": f"q{i % 5}"} for i in range(10)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in lines))
    assert read_texts(path) == ["q0", "q1", "q2", "q3", "q4"]
    assert read_texts(path, 2, 1) == read_texts(path, 2, 1) != read_texts(path)
    path.write_text('{"question": "q"}\n{"answers": []}\n')
    with pytest.raises(InvalidInput, match=r"line 2: expected"):
        read_texts(path)


def test_the_commands_collect_train_and_ask(base: str, tmp_path: Path) -> None:
    films, runs = tmp_path / "films", tmp_path / "runs.jsonl"
    import_graph(KB, str(films))
    qa = tmp_path / "qa.jsonl"
    qa.write_text(
        "".join(f"{json.dumps({'question': question})}\n" for question in ASKED)
    )
    made = graphret(
        *("train", "trajectories", "--graph", films, "--qa", qa, "--out", runs),
        *("--aliases", ALIASES, "--runs", 1, "--prompt", "short", "--json"),
    )
    assert made.json == {"questions": 2, "trajectories": 2, "finished": 2}, made.err
    data, out = shortened(runs, tmp_path / "short.jsonl"), tmp_path / "student"
    ran = graphret(
        *("train", "student", "--data", data, "--out", out, "--model", base, "--json"),
    )
    assert ran.json["counts"]["trained"] == 1, ran.err
    options = MethodOptions(model=str(out), agents=1)  # as query --model has it
    chat = options.chat_model()
    assert isinstance(chat, CausalChat)
    assert chat.chat([Message.user("asthma")], max_tokens=2).usage.output_tokens <= 2
    assert (
        ArkSettings.of_student(base) == ArkSettings()
    )  # of a model that is no student
    with opened_graph(str(films)) as opened:
        for prompt, expected in ((None, "short"), ("short", "short"), ("full", "full")):
            explores = opened.retriever("ark", replace(options, prompt=prompt))
            assert isinstance(explores, Ark)
            assert explores.settings.prompt == expected
            assert explores.settings.search_k == (3 if expected == "short" else 5)
