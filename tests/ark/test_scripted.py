"""`ScriptedExplorer` in whole runs, on films and on graphs with other relations."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_parts import companies, explored, films, graph, papers

from graphret.ark.scripted import ScriptedExplorer
from graphret.llm.chat import Message

FILMS = films()
#: Relations of other names are read from what the tools show, also in camel case.
BOXES = {"films": FILMS, "companies": companies(), "papers": papers()}
QUESTIONS = (
    (Path(__file__).parent / "questions.tsv").read_text(encoding="utf-8").splitlines()
)


@pytest.mark.parametrize("line", QUESTIONS)
def test_questions_of_one_to_three_hops_are_answered(line: str) -> None:
    box, question, answers = line.split("\t")
    session = explored(BOXES[box], question)
    assert (set(session.selection), session.stop) == (
        set(answers.split("|")),
        "finished",
    )


def test_what_more_paths_lead_to_comes_first() -> None:
    triples = [
        ("A One", "starred_actors", "Xi Xu"),
        ("A Two", "starred_actors", "Xi Xu"),
    ]
    triples += [
        ("A One", "directed_by", "Bo By"),
        ("A One", "directed_by", "Al By"),
        ("A Two", "directed_by", "Bo By"),
    ]
    labels = {
        "A One": "Movie",
        "A Two": "Movie",
        "Xi Xu": "Actor",
        "Bo By": "Director",
        "Al By": "Director",
    }
    assert explored(
        graph(triples, labels), "who directed the movies starred by Xi Xu"
    ).selection == ["Bo By", "Al By"]


def test_what_both_names_lead_to_comes_first() -> None:
    assert (
        explored(FILMS, "Which film stars Di Dunn and Hal Hart?").selection[0]
        == "Noon Train"
    )
    assert (
        explored(FILMS, "Which film stars Di Dunn and Cy Cole?").selection[0] == "Dawn"
    )


def test_a_name_of_everyday_words_that_no_index_keeps_is_found_by_its_id() -> None:
    box = graph(
        [("They", "directed_by", "Ann Ames")], {"They": "Movie", "Ann Ames": "Director"}
    )
    assert explored(box, "who directed They").selection == ["Ann Ames"]


def test_without_words_of_relations_it_selects_what_a_search_finds_best() -> None:
    texts = {
        "tent": "A waterproof tent for two, light enough to carry on long hikes.",
        "stove": "A gas stove that folds flat.",
        "boat": "An inflatable boat for two.",
    }
    box = graph(
        [("tent", "also_bought", "stove")], dict.fromkeys(texts, "Product"), texts
    )
    session = explored(
        box, "I need something light and waterproof to sleep in when I am on hikes."
    )
    assert session.selection[0] == "tent"
    assert session.stop == "finished"


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "?",
        "who",
        "🙂🙂",
        "x" * 100_000,
        "who directed " * 8_000,
        "\ud800 Dawn",
    ],
)
def test_odd_questions_end(question: str) -> None:
    reply = ScriptedExplorer().chat([Message.user(question)])
    assert all(call.parsed is not None for call in reply.tool_calls)
    if question.strip() and "\ud800" not in question:  # which a session refuses
        assert explored(FILMS, question).stop == "finished"
        assert (explored(graph([], {}), question).selection) == []
