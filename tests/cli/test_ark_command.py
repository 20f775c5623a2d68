"""``graphret query --method ark``: agents on graphs of every kind, with the policy without a model and with models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_helpers import built, graphret

from graphret.ark.trajectory import read_runs
from graphret.graphs.example import KB
from graphret.search import Neo4jTextIndex
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.openai_server import Behaviour, OpenAIServer, Request, status, tool_calls

QUESTION = "who acted in the films directed by Kathryn Bigelow?"
ARK, SAGE = ("--method", "ark"), ("--method", "sage")


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("graphs") / "movies"
    assert graphret("import", KB, "--to", out).code == 0
    return out


def answers(request: Request) -> Behaviour:
    """A model that searches, explores, selects two actors and finishes."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return [
        tool_calls(("global_search", {"query": "The Loveless"})),
        tool_calls(("explore_neighborhood", {"node": "The Loveless", "relation_types": ["starred_actors"]})),
        tool_calls(("select", {"nodes": ["Willem Dafoe", "Robert Gordon"]}), ("finish", {})),
    ][turn]


def stages(found: Any, name: str) -> list[Any]:
    return [stage for stage in found["trace"]["stages"] if stage["name"].startswith(name)]


def test_the_policy_explores_the_films(movies: Path) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-k", 5, "--json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["query"], found["k"], len(found["hits"])) == (QUESTION, 5, 5)
    assert {label for hit in found["hits"] for label in hit["labels"]} == {"Actor"}
    votes, reached = found["hits"][0]["evidence"][:2]
    assert votes["kind"] == "votes"
    assert votes["properties"] == {"votes": 3, "of": 3, "agents": [1, 2, 3]}
    assert (reached["kind"], reached["relation"]) == ("neighbor", "starred_actors")
    assert len(stages(found, "explore/agent 3/step")) >= 3
    assert stages(found, "vote")[0]["ranking"][0]["id"] == found["hits"][0]["id"]
    assert ran.err == ""


def test_hits_come_with_votes_and_how_they_were_reached_and_verbose_with_the_steps(movies: Path) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-k", 2)
    assert "3 of 3 votes, place 1" in " ".join(ran.out.split())
    assert "↳ starred_actors ← " in ran.out
    assert "global_search" not in ran.out
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-v", "--agents", 2)
    for said in ("agent 1", "finished", 'explore_neighborhood(node="Kathryn Bigelow"', "Vote", "2 of 2"):
        assert said in ran.out
    assert ran.err == ""


def test_a_run_is_recorded_and_drawn(movies: Path, tmp_path: Path) -> None:
    record, page = tmp_path / "new" / "runs.jsonl", tmp_path / "drawn" / "ark.html"
    for agents in (3, 1):
        ran = graphret(
            *("query", QUESTION, "--graph", movies, *ARK, "--record", record, "--explain", page, "--agents", agents)
        )
        assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert f"drawn in {page}" in said
    assert f"recorded in {record}" in said
    assert [len(run.sessions) for run in read_runs(record)] == [3, 1]
    text = page.read_text(encoding="utf-8")
    assert QUESTION in text
    assert "Kathryn Bigelow" in text


def test_a_neo4j_with_and_without_its_own_index(
    neo4j_empty: object, neo4j_uri: str, neo4j_auth: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert graphret("import", KB, "--to", neo4j_uri).code == 0
    command = ["query", QUESTION, "--graph", neo4j_uri, *ARK, "--agents", 1, "-k", 3, "--json"]
    ran = graphret(*command)
    assert ran.code == 0, ran.err
    assert "indexed here" in ran.err
    with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
        Neo4jTextIndex.create(store)
    again = graphret(*command)
    assert (again.code, again.err) == (0, "")
    assert {label for hit in again.json["hits"] for label in hit["labels"]} == {"Actor"}


def test_a_model_explores_through_the_endpoint(movies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with OpenAIServer(answers) as server:
        ran = graphret(
            *("query", QUESTION, "--graph", movies, *ARK, "--model", "m1", "--base-url", server.base_url),
            *("--agents", 2, "--hints", "Actors are people.", "-k", 3, "--json"),
        )
        requests = list(server.requests)
    assert ran.code == 0, ran.err
    assert [hit["id"] for hit in ran.json["hits"]][:2] == ["Willem Dafoe", "Robert Gordon"]
    assert ran.json["hits"][2]["evidence"][-1]["kind"] == "fill"
    assert {request.body["model"] for request in requests} == {"m1"}
    assert {request.headers["authorization"] for request in requests} == {"Bearer sk-mine"}
    assert requests[0].body["tools"][0]["function"]["name"] == "global_search"
    assert "Actors are people." in requests[0].messages[0]["content"]
    assert requests[0].messages[1]["content"] == QUESTION
    assert stages(ran.json, "explore")[0]["agents"] == 2


def test_a_model_that_fails_is_fallen_back_from_or_is_5(movies: Path) -> None:
    with OpenAIServer(lambda _: status(401, "who are you?")) as server:
        command = ["query", QUESTION, "--graph", movies, *ARK, "--model", "m", "--base-url", server.base_url]
        ran = graphret(*command, "-k", 3)
        raised = graphret(*command, "--on-failure", "raise")
    assert ran.code == 5
    assert "fallback: agent 1: " in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith("the model 'm' selected nothing, and the hits are those of plain search: ")
    assert "401" in last
    assert ran.out
    assert (raised.code, raised.out) == (5, "")
    assert len(raised.err.splitlines()) == 1
    assert "who are you?" in raised.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ARK, "--ranking", "coverage"], "--ranking: it is for --method sage"),
        ([*SAGE, "--agents", "3"], "--agents: it is for --method ark"),
        ([*SAGE, "--model", "m"], "--model: it is for --method ark"),
        ([*SAGE, "-v"], "--verbose: it is for --method ark"),
        ([*ARK, "--base-url", "u"], "--base-url and --method spark need --model"),
        ([*ARK, "--model", "m", "--base-url", "not a url"], "base_url: 'not a url' is no address"),
        ([*ARK, "--encoder", "saved"], "--encoder saved: "),
        ([*ARK, "--agents", "0"], "--agents"),
        ([*ARK, "--record", "."], ".: cannot be written"),
        (["--method", "arc"], "Invalid value for '--method'"),
    ],
)
def test_options_of_another_method_are_refused_by_name(movies: Path, arguments: list[str], said: str) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_method_is_that_of_the_graph_unless_it_is_named(movies: Path, tmp_path: Path) -> None:
    file = tmp_path / "movies.lbug"
    assert graphret("import", KB, "--to", file).code == 0
    for where in (movies, file):
        ran = graphret("query", QUESTION, "--graph", where, "-k", 3, "--agents", 1, "--json")
        assert (ran.code, ran.err) == (0, "")
        assert stages(ran.json, "vote")
        assert graphret("query", QUESTION, "--graph", where, *SAGE).code == 3
    documents = built(tmp_path)
    assert not stages(graphret("query", "Dawn", "--graph", documents, "--json").json, "vote")
    assert stages(graphret("query", "Dawn", "--graph", documents, *ARK, "--json").json, "vote")
    assert graphret("query", QUESTION, "--graph", "bolt://127.0.0.1:9").code == 6
