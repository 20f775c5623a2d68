"""`graphret query --method grasp` and `graphret tune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret, refused

from graphret.graphs import import_graph
from graphret.graphs.example import ALIASES, KB
from graphret.stores import MemoryStore
from graphret.testing.openai_server import OpenAIServer, status, text

QUESTION = "which films share a director with Near Dark"
PLAN = {
    "anchors": [{"var": "A1", "text": "Near Dark", "label": "Movie"}],
    "hops": [
        {"from": "A1", "rel": "directed_by", "to_var": "D"},
        {"from": "T", "rel": "directed_by", "to_var": "D"},
    ],
    "target": {"labels": ["Movie"]},
}


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grasp") / "movies"
    import_graph(KB, str(folder))
    return folder


def asked(graph: Path, *options: object) -> list[str]:
    ran = graphret(
        "query",
        QUESTION,
        "--graph",
        graph,
        "--method",
        "grasp",
        "-k",
        3,
        "--json",
        *options,
    )
    assert ran.code == 0, ran.err
    assert {evidence["kind"] for evidence in ran.json["hits"][0]["evidence"]} >= {
        "path",
        "rank",
    }
    return [hit["name"] for hit in ran.json["hits"]]


def test_plans_with_a_model_and_without_find_the_films_and_draw_the_path(
    movies: Path, tmp_path: Path
) -> None:
    page = tmp_path / "answer.html"
    found = asked(movies, "--explain", page, "--aliases", ALIASES)
    assert "Near Dark" not in found
    assert "Kathryn Bigelow" in page.read_text()
    with OpenAIServer([text(json.dumps(PLAN))]) as server:
        by_model = asked(movies, "--model", "planner", "--base-url", server.base_url)
    assert {*by_model, *found} <= {
        film.source
        for film in MemoryStore.load(movies).neighbors(
            ["Kathryn Bigelow"], relations=["directed_by"]
        )
    }
    with OpenAIServer([status(500)] * 9) as server:
        failed = graphret(
            "query",
            QUESTION,
            "--graph",
            movies,
            "--method",
            "grasp",
            "--model",
            "m",
            "--base-url",
            server.base_url,
        )
    assert failed.code == 5


def test_weights_are_tuned_on_questions_and_read_by_query(
    movies: Path, tmp_path: Path
) -> None:
    store, qa, out = (
        MemoryStore.load(movies),
        tmp_path / "qa.jsonl",
        tmp_path / "grasp.json",
    )
    people = [node for block in store.nodes(["Director"]) for node in block]
    films = {
        one.name: [
            edge.source for edge in store.neighbors([one.id], relations=["directed_by"])
        ]
        for one in people
    }
    lines = [
        json.dumps({"question": f"films directed by {name}", "answers": found})
        for name, found in films.items()
    ]
    qa.write_text("\n".join(lines))
    tuned = graphret("tune", "--graph", movies, "--qa", qa, "--out", out, "--json").json
    assert tuned["metrics"]["tuned"]["hit@1"] >= max(
        90, tuned["metrics"]["default"]["hit@1"]
    )
    shown = graphret(
        "tune", "--graph", movies, "--qa", qa, "--out", out, "--limit", 10
    ).out
    assert "10 questions" in shown
    assert "chosen: " in shown
    assert asked(movies, "--settings", out)
    (tmp_path / "bad.jsonl").write_text('{"question": "q", "answers": []}')
    for told in ("bad.jsonl, line 1", "none.jsonl"):
        name = told.partition(",")[0]
        assert told in refused(
            2, "tune", "--graph", movies, "--qa", tmp_path / name, "--out", out
        )
