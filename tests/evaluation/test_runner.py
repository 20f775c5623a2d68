"""Public benchmarks as nodes and questions, measures, results from folder to page, and
the tools that make figures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_loaders import bench_loaders
from rich.console import Console
from tests_support import VENUE_QUESTION, HashingEncoder, write_venues

from graphret.errors import InvalidInput
from graphret.evaluation import (
    all_at_k,
    bench_multihop,
    bench_ottqa,
    hit_at_k,
    load_multihop,
    load_ottqa,
    mrr,
    paired_bootstrap,
    recall_at_k,
    render,
)
from graphret.evaluation.ottqa import half
from graphret.evaluation.runner import SingleFieldText
from graphret.search import BM25Index
from graphret.types import Node


def test_worked_by_hand() -> None:
    ranked, right = ["a", "b", "c", "d"], {"b", "d", "z"}
    assert recall_at_k(ranked, right, 1) == 0
    assert recall_at_k(ranked, right, 2) == pytest.approx(1 / 3)
    assert recall_at_k(ranked, right, 9) == pytest.approx(2 / 3)
    assert [hit_at_k(ranked, right, k) for k in (1, 2, 4)] == [0, 1, 1]
    assert all_at_k(ranked, right, 4) == 0
    assert all_at_k(ranked, {"b", "a"}, 2) == 1
    assert mrr(ranked, right) == 0.5
    assert mrr(ranked, {"z"}) == 0


def test_the_interval_holds_the_mean_of_pairs_and_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.random(400)
    ours = theirs + rng.normal(0.05, 0.1, 400)
    first = paired_bootstrap(ours, theirs)
    assert first == paired_bootstrap(ours, theirs)
    assert first["gain"] == pytest.approx(
        100 * float((ours - theirs).mean()), abs=0.005
    )
    assert 0 < first["low"] < first["gain"] < first["high"]
    assert first["high"] - first["low"] == pytest.approx(
        2 * 1.96 * 100 * (ours - theirs).std() / 20, rel=0.1
    )
    assert (
        paired_bootstrap(theirs + 0.01, theirs)["low"]
        > 0
        > paired_bootstrap(theirs[::-1] + 0.01, theirs)["low"]
    )


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
def two_tables(tmp_path: Path) -> Path:
    tables, requests = (
        tmp_path / "data/traindev_tables_tok",
        tmp_path / "data/traindev_request_tok",
    )
    write(tables / "t_0.json", table("t_0", 12, ["/wiki/Secret_link"]))
    write(tables / "t_1.json", table("t_1", 3, []))
    write(
        requests / "t_0.json",
        {"/wiki/Caf%C3%A9_%28song%29": "A song of a café.", "/wiki/Other": "Other."},
    )
    write(requests / "t_1.json", {"/wiki/Other": "Other."})
    questions = [
        {
            "question": "Which song has a café?",
            "table_id": "t_0",
            "answer-node": [
                ["x", [11, 0], "/wiki/Caf%C3%A9_%28song%29", "passage"],
                ["1999", [3, 1], None, "table"],
            ],
        },
        {
            "question": "And which not?",
            "table_id": "t_1",
            "answer-node": [["x", [2, 0], "/wiki/Gone", "passage"]],
        },
    ]
    write(tmp_path / "released_data/dev.traced.json", questions)
    return tmp_path


def test_ottqa_has_a_node_a_passage_and_one_each_ten_rows(two_tables: Path) -> None:
    data = load_ottqa(two_tables)
    nodes = {node.id: node for node in data.nodes}
    assert set(nodes) == {
        "t_0#0",
        "t_0#1",
        "t_1#0",
        "/wiki/Caf%C3%A9_%28song%29",
        "/wiki/Other",
    }
    assert nodes["/wiki/Caf%C3%A9_%28song%29"].name == "Café (song)"
    assert nodes["/wiki/Caf%C3%A9_%28song%29"].text == "A song of a café."
    assert nodes["t_0#1"].properties["table_rows"] == [
        ["Song 10", "1999"],
        ["Song 11", "1999"],
    ]
    first, second = data.questions
    assert first.gold == {"t_0#0", "t_0#1", "/wiki/Caf%C3%A9_%28song%29"}
    assert second.gold == {"t_1#0"}
    assert data.counts["gold_not_in_corpus"] == 1
    assert not [
        node for node in data.nodes if "Secret" in json.dumps(node.to_dict())
    ]  # the links of cells
    assert [q.half for q in data.questions] == [half("t_0"), half("t_1")]
    assert len(data.limited(1).questions) == 1
    assert len(data.limited(1).nodes) == len(data.nodes)


def test_nodes_may_be_left_without_titles(two_tables: Path) -> None:
    untitled = load_ottqa(two_tables, titled=False)
    for node in untitled.nodes:  # a name may still be made from what the text says
        text = json.dumps([node.name, node.text, dict(node.properties)]).replace(
            node.id, ""
        )
        assert not [title for title in ("(song)", "Songs of 1999") if title in text]
    assert [q.gold for q in untitled.questions] == [
        q.gold for q in load_ottqa(two_tables).questions
    ]


def test_what_is_missing_or_malformed_is_named(two_tables: Path) -> None:
    with pytest.raises(InvalidInput, match=r"test\.traced\.json"):
        load_ottqa(two_tables, "test")
    with pytest.raises(InvalidInput, match="expected tables"):
        load_ottqa(two_tables / "nowhere")
    write(two_tables / "data/traindev_tables_tok/bad.json", {"uid": "bad"})
    with pytest.raises(InvalidInput, match=r"bad\.json"):
        load_ottqa(two_tables)
    with pytest.raises(InvalidInput, match="_corpus"):
        load_multihop(two_tables)
    write(two_tables / "x_corpus.json", {"A": ["One."]})
    write(two_tables / "x.json", [{"question": "q?", "supporting_facts": [["B", 0]]}])
    with pytest.raises(InvalidInput, match="question 0"):
        load_multihop(two_tables)


A_TWICE = [{"title": "A", "text": "one"}, {"title": "A", "text": "two"}]
SHOWN = [
    {"title": "A", "paragraph_text": text, "is_supporting": text == "two"}
    for text in ("one", "two")
]
FACTS = {"question": "q?", "supporting_facts": [["A", 0]]}


@pytest.mark.parametrize(
    ("corpus", "asked", "texts", "gold"),
    [
        (
            {"A": ["One.", " Two."], "B": ["Three."]},
            [FACTS],
            ["One. Two.", "Three."],
            [["One. Two."]],
        ),  # HotpotQA
        (
            [*A_TWICE, A_TWICE[0]],
            [{"question": "q?", "paragraphs": SHOWN}],
            ["one", "two"],
            [["two"]],
        ),  # MuSiQue
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
    assert [
        sorted(by_id[id_] for id_ in question.gold) for question in data.questions
    ] == gold


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def multihop(tmp_path: Path, born: dict[str, str]) -> Path:
    folder = tmp_path / "multihop"
    folder.mkdir()
    corpus = {
        person: [f"{person} was born in {place}."] for person, place in born.items()
    }
    corpus |= {
        place: [f"{place} is a city with a river, number {i}."]
        for i, place in enumerate(born.values())
    }
    questions = [
        {
            "question": f"Which river has the place where {person} was born?",
            "supporting_facts": [[person, 0], [place, 0]],
        }
        for person, place in born.items()
    ]
    (folder / "people_corpus.json").write_text(json.dumps(corpus))
    (folder / "people.json").write_text(json.dumps(questions))
    return folder


def test_the_plain_row_knows_no_fields() -> None:
    node = Node("a", ("Person",), "Ann Lee", "Ann writes.", {"aliases": ["Annie"]})
    plain = BM25Index.build([node], text=SingleFieldText())
    assert set(plain.terms.fields) == {"text"}
    assert "annie" not in plain.terms.positions


ALL = {
    "bm25",
    "bm25f",
    "dense",
    "flat",
    "hybrid",
    "paper",
    "propagate",
    "coverage",
    "lexical",
    "fixed",
    "default",
}


def test_the_figures_of_ottqa_and_a_second_run_embeds_nothing(ottqa: Path) -> None:
    first, second = HashingEncoder(), HashingEncoder()
    result = bench_ottqa(ottqa, k=(1, 2, 5), encoder=first)
    bench_ottqa(ottqa, k=(1,), limit=2, encoder=second)
    assert (bool(first.encoded), bool(second.encoded)) == (True, False)
    assert (result["name"], set(result["rows"])) == ("ottqa", ALL)
    assert json.loads(json.dumps(result)) == result
    for values in result["rows"].values():
        assert (
            0 <= values["recall@1"] <= values["recall@2"] <= values["recall@5"] <= 100
        )
        assert {"hit@1", "mrr"} < set(values)
    counts = result["counts"]
    assert (counts["nodes"], counts["gold"]) == (10, 48)
    assert (
        counts["questions"]
        == 24
        == counts["questions_tuned"] + counts["questions_held"]
    )
    for name, part in result["halves"].items():
        assert (part["questions"], set(part["rows"])) == (
            counts[f"questions_{name}"],
            ALL,
        )
    mean_recall = (
        sum(
            part["questions"] * part["rows"]["default"]["recall@5"]
            for part in result["halves"].values()
        )
        / 24
    )
    assert mean_recall == pytest.approx(result["rows"]["default"]["recall@5"], abs=0.02)
    for row, intervals in result["intervals"].items():
        gain = intervals["recall@5"]
        assert gain["low"] <= gain["gain"] <= gain["high"]
        difference = (
            result["rows"][row]["recall@5"] - result["rows"]["flat"]["recall@5"]
        )
        assert gain["gain"] == pytest.approx(difference, abs=0.02)
    assert result["rows"]["default"]["recall@2"] > result["rows"]["flat"]["recall@2"]
    out = StringIO()
    Console(file=out, width=200).print(render(result))
    for row, values in result["rows"].items():
        assert row in out.getvalue()
        assert f"{values['recall@5']:.1f}" in out.getvalue()


def test_a_reranker_is_a_row_whose_gain_is_over_the_default(multihop: Path) -> None:
    queries: list[str] = []

    class Names:
        """Likes what names the person that the question is about."""

        def predict(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            queries.append(pairs[0][0])
            return [
                float(len({*query.split()} & {*text.split()})) for query, text in pairs
            ]

    result = bench_multihop(multihop, encoder=None, reranker=Names())
    assert (
        result["rows"]["people/reranked"].keys()
        == result["rows"]["people/default"].keys()
    )
    assert result["baseline"] == "default"
    assert result["intervals"].keys() >= {"people/reranked", "people/bm25"}
    assert (
        len(queries) == len(set(queries)) == 6
    )  # hits are scored once, however many are asked for


def test_without_an_encoder_the_dense_rows_are_left_out_with_a_note(
    multihop: Path,
) -> None:
    result = bench_multihop(multihop, encoder=None)
    assert set(result["rows"]) == {
        f"people/{row}" for row in ALL - {"dense", "flat", "hybrid"}
    }
    assert result["baseline"] == "bm25"
    assert "encoder" in result["notes"][0]
    assert result["rows"]["people/lexical"] == result["rows"]["people/default"]
    assert (
        result["rows"]["people/default"]["all@8"]
        > result["rows"]["people/bm25"]["all@8"]
    )
    assert result["counts"]["people/questions"] == result["counts"]["questions"] == 6
    assert {"recall@2", "recall@5", "recall@8", "recall@20", "all@8"} < set(
        result["rows"]["people/bm25"]
    )


def test_five_ways_find_the_same_files(tmp_path: Path) -> None:
    for part in ("tables", "passages"):
        (tmp_path / part).mkdir()
    write_venues(tmp_path / "passages")
    table = tmp_path / "passages" / "European Athletics Championships.csv"
    table.rename(tmp_path / "tables" / table.name)
    questions = [{"question": VENUE_QUESTION, "gold": [table.name, "poljud.md"]}]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    result = bench_loaders(tmp_path, encoder=None, k=(2,), chunk_size=128)
    assert list(result["rows"]) == [
        "native",
        "llama_index",
        "langchain",
        "from_index",
        "chroma",
    ]
    assert {row["recall@2"] for row in result["rows"].values()} == {100.0}
    assert {row["MENTIONS"] for row in result["rows"].values()} == {4}
