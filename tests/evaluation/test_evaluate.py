"""Methods side by side: what is measured, kept, resumed and drawn, and what is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import built, graphret, refused
from scripted_parts import FILMS
from stark_files import write_stark

from graphret.evaluation import evaluate, read_evaluation_questions
from graphret.methods import METHODS, Method, MethodOptions, opened_graph
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    json_text,
    status,
    tool_calls,
)
from graphret.types import Hit

ASKED: list[dict[str, Any]] = [
    {"question": "who directed Dawn", "answers": ["Ann Ames"], "kind": "1-hop"},
    {"question": "Noon Train", "answer_ids": ["Noon Train"], "kind": "search"},
    {"question": "Dawn", "answers": ["Dawn", "Dusk"], "kind": "search"},
    {"question": "how many films are there", "answers": [], "kind": "count"},
    {"question": "who wrote Dusk", "answers": ["Nobody At All"], "kind": "1-hop"},
]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    (folder / "kb.txt").write_text("\n".join(filter(None, FILMS)), encoding="utf-8")
    ran = graphret("import", folder / "kb.txt", "--out", folder / "graph")
    assert ran.code == 0, ran.err
    return folder / "graph"


def written(folder: Path, asked: Sequence[Any] = ASKED) -> Path:
    path = folder / "asked.jsonl"
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in asked), encoding="utf-8"
    )
    return path


def test_methods_are_measured_over_all_questions_and_by_kind(
    films: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    arguments = ("--graph", films, "--questions", written(tmp_path), "--out", out)
    ran = graphret("evaluate", *arguments, "--method", "bm25,ark", "--json")
    assert ran.code == 0, ran.err
    result = ran.json
    assert result["counts"]["questions"] == 4
    assert result["rows"].keys() == {
        f"{group}/{method}"
        for group in ("all", "1-hop", "search")
        for method in ("bm25", "ark")
    }
    # ARK finds the director; nobody finds who is not there; search finds both names,
    # of the two answers to the third question the one that is called so first.
    assert result["rows"]["1-hop/ark"]["hit@1"] == 50.0
    assert result["rows"]["1-hop/bm25"]["hit@1"] == 0.0
    assert result["rows"]["search/bm25"]["hit@1"] == 100.0
    assert result["intervals"]["1-hop/ark"]["hit@1"]["gain"] == 50.0
    assert result["shown"] == ["hit@1", "hit@5", "recall@20", "mrr", "seconds"]
    notes = " ".join(result["notes"])
    assert "1 questions have no answers" in notes
    assert "'Nobody At All' of question 5" in notes
    assert json.loads((out / "result.json").read_text()) == result
    page = (out / "result.html").read_text()
    assert page.count('<svg class="plot"') == 3
    assert "search, 2 questions" in page


def test_a_run_goes_on_where_it_was_cut_and_no_answer_is_of_another_run(
    films: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    questions_path = written(tmp_path)
    arguments = (
        "evaluate",
        "--graph",
        films,
        "--questions",
        questions_path,
        "--out",
        out,
    )
    uncut = graphret(*arguments, "--method", "bm25", "--json").json
    answers_path = out / "answers.jsonl"
    lines = answers_path.read_text().splitlines(keepends=True)
    assert len(lines) == 5
    answers_path.write_text("".join(lines[:3]) + lines[3][:20])
    again = graphret(*arguments, "--method", "bm25,grasp", "--json").json
    assert answers_path.read_text().startswith("".join(lines[:3]))
    for measure in ("hit@1", "hit@5", "recall@20", "mrr"):
        row = "all/bm25"
        assert again["rows"][row][measure] == uncut["rows"][row][measure]
    before = answers_path.read_bytes()
    message = refused(2, *arguments, "--method", "bm25", "--preset", "paper")
    assert "answers of another run" in message
    assert "preset None, now 'paper'" in message
    questions_path.write_text(
        questions_path.read_text().replace("who directed Dawn", "who made Dawn")
    )
    assert "another question '1'" in refused(2, *arguments, "--method", "bm25")
    assert answers_path.read_bytes() == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([{"question": "Dawn"}], "line 1: expected"),
        ([{"question": "Dawn", "answers": "Dawn"}], "line 1: expected"),
        ([], "expected questions, found none"),
        ([{"question": "q", "answers": ["Dawn"], "id": 7}] * 2, "got '7' 2 times"),
        ([{"question": "q", "answers": ["Nobody"]}], "in the graph, found none"),
    ],
)
def test_questions_that_cannot_be_measured_are_named(
    films: Path, tmp_path: Path, asked: list[Any], said: str
) -> None:
    path = written(tmp_path, asked)
    arguments = ("--graph", films, "--questions", path, "--method", "bm25")
    assert said in refused(2, "evaluate", *arguments)


def test_methods_that_the_graph_or_the_options_cannot_serve_are_named(
    films: Path, tmp_path: Path
) -> None:
    arguments = ("evaluate", "--graph", films, "--questions", written(tmp_path))
    for method, error in (
        ("bm26", "expected some of bm25"),
        ("bm25,bm25", "each once"),
        ("dense", "needs a graph opened with an encoder"),
        ("sage", "needs a graph of documents"),
        ("spark", "needs the name of a model"),
    ):
        assert error in refused(2, *arguments, "--method", method)
    for option in (("--steps", 3), ("--price", "1"), ("--split", "test")):
        assert option[0].strip("-") in refused(
            2, *arguments, "--method", "bm25", *option
        )


def explorer(request: Request) -> Behaviour:
    """A model that selects Dawn's director, whatever is asked."""
    return (
        tool_calls(("global_search", {"query": "Ann Ames"}))
        if len(request.messages) < 3
        else tool_calls(("select", {"nodes": ["Ann Ames"]}), ("finish", {}))
    )


def test_calls_tokens_and_cost_are_counted_and_replies_kept(
    films: Path, tmp_path: Path
) -> None:
    cache = ("--llm-cache", tmp_path / "replies", "--model", "tiny")
    asking = ("evaluate", "--graph", films, "--questions", written(tmp_path))
    arguments = (*asking, "--method", "bm25,ark", "--agents", "1", *cache, "--json")
    with OpenAIServer(explorer) as server:
        url = ("--base-url", server.base_url)
        ran = graphret(*arguments, *url, "--price", "1,2")
        assert ran.code == 0, ran.err
        n_requests = len(server.requests)
    row = ran.json["rows"]["all/ark"]
    assert row["calls"] == 2.0  # an agent that explores and finishes
    assert n_requests == 8
    assert row["tokens"] > 0
    assert row["cost"] > row["tokens"] / 1e6
    assert ran.json["rows"]["all/bm25"]["calls"] == 0
    # the server is gone: every reply comes from the folder
    again = graphret(*arguments, *url, "--price", "1,2")
    assert again.code == 0, again.err
    assert again.json["rows"]["all/ark"]["calls"] == 2.0
    assert again.json["rows"]["all/ark"]["hit@1"] == row["hit@1"]


def test_a_model_that_goes_away_stops_the_run_and_nothing_is_lost(
    films: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    asking = ("evaluate", "--graph", films, "--questions", written(tmp_path))
    model = ("--method", "ark", "--agents", "1", "--model", "tiny")
    arguments = (*asking, *model, "--out", out)

    def gone(request: Request) -> Behaviour:
        return explorer(request) if "Dawn" in request.prompt else status(401)

    with OpenAIServer(gone) as server:
        message = refused(5, *arguments, "--base-url", server.base_url)
    assert "ark, question 2" in message
    assert "the same command goes on" in message
    assert len((out / "answers.jsonl").read_text().splitlines()) == 2
    with OpenAIServer(explorer) as server:
        ran = graphret(*arguments, "--base-url", server.base_url, "--json")
        assert ran.code == 0, ran.err
        assert len(server.requests) == 6  # of the three questions that were left


@pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
def test_starks_own_files_are_evaluated(tmp_path: Path) -> None:
    questions = tmp_path / "qa" / "prime" / "stark_qa"
    split = tmp_path / "qa" / "prime" / "split"
    for folder in (questions, split, tmp_path / "skb" / "prime"):
        folder.mkdir(parents=True)
    write_stark(tmp_path / "skb" / "prime" / "processed")
    rows = 'id,query,answer_ids\n3,PHYHIP,"[0]"\n1,Refsum disease,"[2, 1]"\n'
    (questions / "stark_qa.csv").write_text(rows)
    (questions / "stark_qa_human_generated_eval.csv").write_text(
        'id,query,answer_ids\n0,Acme,"[3]"\n'
    )
    (split / "test.index").write_text("1\n3\n")
    (split / "val.index").write_text("3")
    (split / "train.index").write_text("")
    arguments = ("bench", "stark", "--data", tmp_path, "--dataset", "prime")
    arguments += ("--method", "bm25")
    for name, n in (("test", 2), ("val", 1), ("human", 1)):
        ran = graphret(*arguments, "--split", name, "--json")
        assert ran.code == 0, ran.err
        assert ran.json["counts"]["questions"] == n
        assert ran.json["rows"]["all/bm25"]["hit@1"] == 100.0
    assert "expected questions, found none" in refused(
        2, *arguments, "--split", "train"
    )
    (split / "test.index").write_text("9")
    assert "there is no question '9'" in refused(2, *arguments)
    (questions / "stark_qa.csv").write_text("id,query,answer_ids\n1,q,print()\n")
    assert "row 2: expected id, query and answer_ids" in refused(2, *arguments)


def test_a_document_is_found_by_any_of_its_nodes(tmp_path: Path) -> None:
    graph = built(tmp_path)
    questions = [
        {"question": "who was born in Ohio", "answer_ids": ["ann"]},
        {"question": "Café", "answer_ids": ["cafe#0"]},
    ]
    arguments = ("--graph", graph, "--questions", written(tmp_path, questions))
    ran = graphret("evaluate", *arguments, "--method", "bm25,sage,expand", "--json")
    assert ran.code == 0, ran.err
    for method in ("bm25", "sage", "expand"):
        row = ran.json["rows"][f"all/{method}"]
        assert (row["hit@1"], row["recall@20"]) == (100.0, 100.0)
    assert "not in the graph" not in " ".join(ran.json["notes"])


class Backwards:
    """Puts last what came first."""

    name = "backwards"

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        return [float(place) for place in range(len(hits))]


@pytest.mark.parametrize("method", ["bm25", "grasp"])
def test_a_reranker_orders_what_a_method_found(
    films: Path, tmp_path: Path, method: Method
) -> None:
    questions = read_evaluation_questions(written(tmp_path, ASKED[1:2]))
    with opened_graph(str(films)) as graph:
        plain = evaluate(graph, questions, [method])
        reranked = evaluate(
            graph, questions, [method], MethodOptions(reranker=Backwards())
        )
    row = f"all/{method}"
    assert plain["rows"][row]["mrr"] > reranked["rows"][row]["mrr"] > 0


def test_a_database_is_evaluated_with_recorded_plans(tmp_path: Path) -> None:
    business = Path(__file__).parents[1] / "benchmarks" / "plans" / "business"
    files = [business / "nodes.jsonl", business / "edges.jsonl"]
    assert graphret("import", *files, "--out", tmp_path / "shop.lbug").code == 0
    lines = (business / "questions.jsonl").read_text().splitlines()
    plans = {
        record["question"]: record["cypher"]
        for record in map(json.loads, lines)
        if record.get("cypher")
    }

    def planned(request: Request) -> Behaviour:
        question_text = str(request.messages[-1]["content"])
        return json_text({"steps": [{"cypher": plans.get(question_text, "RETURN 1")}]})

    arguments = ("--graph", tmp_path / "shop.lbug", "--limit", 8, "--json")
    arguments += ("--questions", business / "questions.jsonl", "--model", "recorded")
    with OpenAIServer(planned) as server:
        ran = graphret(
            *("evaluate", *arguments, "--base-url", server.base_url),
            *("--method", "bm25,spark", "--expand", "no"),
        )
    assert ran.code == 0, ran.err
    spark, words = ran.json["rows"]["all/spark"], ran.json["rows"]["all/bm25"]
    assert spark["recall@20"] > words["recall@20"] + 20
    assert (words["calls"], spark["calls"] >= 1) == (0, True)
    assert METHODS[0] == ran.json["baseline"] == "bm25"
