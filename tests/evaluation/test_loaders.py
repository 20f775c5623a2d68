"""Public benchmarks as nodes and questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.evaluation import load_multihop, load_ottqa
from graphret.evaluation.ottqa import half


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def table(uid: str, n_rows: int, links: list[str]) -> dict[str, Any]:
    return {
        "uid": uid,
        "title": "Songs of 1999",
        "section_title": "Winners",
        "section_text": "",
        "intro": "A list.",
        "header": [["Song", []], ["Year", []]],
        "data": [[[f"Song {i}", links], ["1999", []]] for i in range(n_rows)],
    }


@pytest.fixture
def ottqa(tmp_path: Path) -> Path:
    tables, requests = tmp_path / "data/traindev_tables_tok", tmp_path / "data/traindev_request_tok"
    write(tables / "t_0.json", table("t_0", 12, ["/wiki/Secret_link"]))
    write(tables / "t_1.json", table("t_1", 3, []))
    write(requests / "t_0.json", {"/wiki/Caf%C3%A9_%28song%29": "A song of a café.", "/wiki/Other": "Other."})
    write(requests / "t_1.json", {"/wiki/Other": "Other."})
    asked = [
        {
            "question": "Which song has a café?",
            "table_id": "t_0",
            "answer-node": [["x", [11, 0], "/wiki/Caf%C3%A9_%28song%29", "passage"], ["1999", [3, 1], None, "table"]],
        },
        {"question": "And which not?", "table_id": "t_1", "answer-node": [["x", [2, 0], "/wiki/Gone", "passage"]]},
    ]
    write(tmp_path / "released_data/dev.traced.json", asked)
    return tmp_path


def test_ottqa_has_a_node_a_passage_and_one_each_ten_rows(ottqa: Path) -> None:
    data = load_ottqa(ottqa)
    nodes = {node.id: node for node in data.nodes}
    assert set(nodes) == {"t_0#0", "t_0#1", "t_1#0", "/wiki/Caf%C3%A9_%28song%29", "/wiki/Other"}
    assert nodes["/wiki/Caf%C3%A9_%28song%29"].name == "Café (song)"
    assert nodes["/wiki/Caf%C3%A9_%28song%29"].text == "A song of a café."
    assert nodes["t_0#1"].properties["table_rows"] == [["Song 10", "1999"], ["Song 11", "1999"]]
    first, second = data.questions
    assert first.gold == {"t_0#0", "t_0#1", "/wiki/Caf%C3%A9_%28song%29"}
    assert second.gold == {"t_1#0"}
    assert data.counts["gold_not_in_corpus"] == 1
    assert not [node for node in data.nodes if "Secret" in json.dumps(node.to_dict())]  # the links of cells
    assert [q.half for q in data.questions] == [half("t_0"), half("t_1")]
    assert len(data.limited(1).questions) == 1
    assert len(data.limited(1).nodes) == len(data.nodes)


def test_nodes_may_be_left_without_titles(ottqa: Path) -> None:
    untitled = load_ottqa(ottqa, titled=False)
    for node in untitled.nodes:  # a name may still be made from what the text says
        said = json.dumps([node.name, node.text, dict(node.properties)]).replace(node.id, "")
        assert not [title for title in ("(song)", "Songs of 1999") if title in said]
    assert [q.gold for q in untitled.questions] == [q.gold for q in load_ottqa(ottqa).questions]


def test_what_is_missing_or_malformed_is_named(ottqa: Path) -> None:
    with pytest.raises(InvalidInput, match=r"test\.traced\.json"):
        load_ottqa(ottqa, "test")
    with pytest.raises(InvalidInput, match="no tables"):
        load_ottqa(ottqa / "nowhere")
    write(ottqa / "data/traindev_tables_tok/bad.json", {"uid": "bad"})
    with pytest.raises(InvalidInput, match=r"bad\.json"):
        load_ottqa(ottqa)
    with pytest.raises(InvalidInput, match="_corpus"):
        load_multihop(ottqa)
    write(ottqa / "x_corpus.json", {"A": ["One."]})
    write(ottqa / "x.json", [{"question": "q?", "supporting_facts": [["B", 0]]}])
    with pytest.raises(InvalidInput, match="question 0"):
        load_multihop(ottqa)


A_TWICE = [{"title": "A", "text": "one"}, {"title": "A", "text": "two"}]
SHOWN = [{"title": "A", "paragraph_text": text, "is_supporting": text == "two"} for text in ("one", "two")]
FACTS = {"question": "q?", "supporting_facts": [["A", 0]]}


@pytest.mark.parametrize(
    ("corpus", "asked", "texts", "gold"),
    [
        ({"A": ["One.", " Two."], "B": ["Three."]}, [FACTS], ["One. Two.", "Three."], [["One. Two."]]),  # HotpotQA
        ([*A_TWICE, A_TWICE[0]], [{"question": "q?", "paragraphs": SHOWN}], ["one", "two"], [["two"]]),  # MuSiQue
        (
            A_TWICE,
            [FACTS | {"context": [["A", ["t", "wo"]]]}, FACTS],
            ["one", "two"],
            [["two"], ["one", "two"]],
        ),  # 2Wiki
    ],
)
def test_passages_of_one_title_are_told_apart_by_what_a_question_shows(
    tmp_path: Path, corpus: Any, asked: Any, texts: list[str], gold: list[list[str]]
) -> None:
    write(tmp_path / "some_corpus.json", corpus)
    write(tmp_path / "some.json", asked)
    write(tmp_path / "notes.json", [])
    (data,) = load_multihop(tmp_path)
    assert data.name == "some"
    by_id = {node.id: node.text for node in data.nodes}
    assert list(by_id.values()) == texts
    assert [sorted(by_id[id_] for id_ in question.gold) for question in data.questions] == gold
