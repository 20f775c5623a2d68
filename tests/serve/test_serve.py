"""``graphret serve`` on real sockets: answers, streams, keys, limits, faults, and a
graph replaced while it serves.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_helpers import built, graphret, refused
from serving import answer_of, command, events, key_file, serving, until
from spark_parts import EDGES, NODES, plan

from graphret import Document, Node, SageGraph
from graphret.serve.graph import GraphVersion
from graphret.stores import LadybugStore
from graphret.testing.openai_server import OpenAIServer, slow, status

QUESTION = "Where was the director of Dawn born?"
ASKED = {"query": QUESTION, "k": 3}
MB = 1_000_000


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="module")
def papers_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("papers") / "papers.lbug"
    with LadybugStore(file) as store:
        store.upsert(NODES, EDGES)
    return file


@pytest.fixture(scope="module")
def service(documents: Path) -> Iterator[httpx.Client]:
    with serving(documents, loopback=True, body=100_000) as client:
        yield client


@pytest.mark.parametrize("method", [None, "ark", "grasp", "graphraft"])
def test_answers_are_those_of_the_command_at_once_and_as_a_stream(
    service: httpx.Client, documents: Path, method: str | None
) -> None:
    request = ASKED | {"where": {"label": "Document"}, "method": method}
    method_options = [] if method is None else ["--method", method]
    ran = graphret(
        "query",
        QUESTION,
        "--graph",
        documents,
        *method_options,
        "-k",
        3,
        "--where",
        json.dumps(request["where"]),
        "--json",
    )
    answered = service.post("/retrieve", json=request)
    assert answered.headers["content-type"] == "application/json"
    assert answer_of(answered.json()) == answer_of(ran.json)
    *stages, result = events(service.post("/retrieve/stream", json=request).text)
    assert (result[0], answer_of(result[1])) == ("result", answer_of(ran.json))
    assert {name for name, _ in stages} == {"stage"}
    stage_names = {stage["name"] for stage in result[1]["trace"]["stages"]}
    assert {stage["name"] for _, stage in stages} <= stage_names | {
        name.rsplit("/", 1)[-1] for name in stage_names
    }
    assert len([stage for _, stage in stages if "/step " in stage["name"]]) == (
        6 if method == "ark" else 0
    )


def test_a_plan_is_streamed_and_drawn(papers_file: Path) -> None:
    written = plan("MATCH (a:Author {name: 'Ada Ames'})-[:WROTE]->(p:Paper) RETURN p")
    with (
        OpenAIServer(default=written) as model,
        serving(papers_file, model="m", base_url=model.base_url) as client,
    ):
        stream_events = events(
            client.post(
                "/retrieve/stream?drawn=true",
                json={"query": "Ada?", "method": "spark"},
            ).text
        )
        assert client.get("/schema").json()["dialect"] == "ladybug"
    names = [value.get("name") for _, value in stream_events]
    assert names[: names.index("rank") + 1] == ["plan", "check", "step 1", "rank"]
    assert [name for name, _ in stream_events][-2:] == ["result", "drawing"]
    assert stream_events[-2][1]["hits"][0]["evidence"][0]["kind"] == "query"
    assert "Ada" in stream_events[-1][1]["pages"][0]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"query": "half', 400, "body: "),
        (b"", 422, "body: "),
        ({"query": " "}, 422, "query: "),
        ({"query": 7}, 422, "query: "),
        ({"query": "x" * 50_000}, 422, "query: "),
        (ASKED | {"k": 10**9}, 422, "k: expected at most 100, got 1000000000"),
        (ASKED | {"k": 0}, 422, "k: "),
        (ASKED | {"k": "5"}, 422, "k: "),
        (
            ASKED | {"where": {"year": {"$like": 1}}},
            422,
            "where: 'year': expected operators",
        ),
        (ASKED | {"method": "magic"}, 422, "method: "),
        (ASKED | {"method": "spark"}, 422, "method: spark needs"),
        (ASKED | {"api_key": "secret"}, 422, "api_key: "),
        ({"query": "x" * 10 * MB}, 413, "a request may have 100000 bytes"),
        (
            [b'{"query": "', *[b"x" * MB] * 10, b'"}'],
            413,
            "a request may have 100000 bytes",
        ),
    ],
)
@pytest.mark.parametrize("route", ["/retrieve", "/retrieve/stream"])
def test_what_is_wrong_with_a_question_is_a_problem_that_says_so(
    service: httpx.Client, route: str, body: Any, status: int, said: str
) -> None:
    content: Any = body if not isinstance(body, dict) else json.dumps(body).encode()
    answered = service.post(
        route, content=content, headers={"Content-Type": "application/json"}
    )
    _require_problem(answered, status, said)
    assert service.get("/health").json()["status"] == "ok"


def _require_problem(answered: httpx.Response, status: int, said: str) -> None:
    assert (answered.status_code, answered.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    problem = answered.json()
    assert problem.keys() == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert problem["detail"].startswith(said)
    assert len(answered.text) < 2000


def test_what_is_not_there_and_who_calls_by_another_name(service: httpx.Client) -> None:
    _require_problem(service.get("/nothing"), 404, "Not Found")
    _require_problem(service.get("/retrieve"), 405, "Method Not Allowed")
    _require_problem(
        service.get("/schema", headers={"Host": "elsewhere.example"}),
        403,
        "without a key",
    )


def test_a_graph_introduces_itself_with_what_it_holds(
    service: httpx.Client, documents: Path
) -> None:
    introduction = service.get("/introduction").json()
    assert (introduction["name"], introduction["nodes"]) == (documents.name, 4)
    assert introduction["labels"] == {"Document": 3, "Table": 1}
    assert len(introduction["questions"]) == len(set(introduction["questions"])) == 3
    assert "What does Films of 1999 say about Ann Ames?" in introduction["questions"]
    fields = {property_["field"]: property_ for property_ in introduction["properties"]}
    assert fields["year"]["kind"] == "number"
    assert fields["year"]["values"] == [1999]
    assert not any(name.startswith(("table_", "chunk_")) for name in fields)
    for property_ in introduction["properties"]:
        operator = "$contains" if property_["kind"] == "list" else "$eq"
        where = {property_["field"]: {operator: property_["values"][0]}}
        payload = {"query": "Ann", "where": where}
        assert service.post("/retrieve", json=payload).json()["hits"], where


def test_the_examples_of_the_description_can_be_asked(service: httpx.Client) -> None:
    described = service.get("/openapi.json").json()
    for example in described["components"]["schemas"]["RetrieveRequest"]["examples"]:
        assert service.post("/retrieve", json=example).status_code == 200
    for route in ("/retrieve", "/retrieve/stream"):
        (answer,) = described["paths"][route]["post"]["responses"]["200"][
            "content"
        ].values()
        assert "hits" in str(answer["example"])
    assert service.get("/schema").json()["labels"] == {"Document": 3, "Table": 1}


def test_each_key_sees_its_view_and_nothing_else(
    documents: Path, tmp_path: Path
) -> None:
    ours, empty = (hashlib.sha256(key).hexdigest() for key in (b"ours", b"empty"))
    keys = key_file(
        tmp_path, ours=(ours, "{year: {$gte: 1990}}"), empty=(empty, "{year: 1800}")
    )
    with serving(documents, key="whole", keys=keys) as client:

        def get(route: str, key: str) -> httpx.Response:
            return client.get(route, headers={"Authorization": f"Bearer {key}"})

        def ids(key: str, **more: str) -> list[str]:
            response = client.post(
                "/retrieve",
                json=ASKED | more,
                headers={"Authorization": f"Bearer {key}"},
            )
            return [hit["id"] for hit in response.json()["hits"]]

        for wrong in (
            {},
            {"Authorization": "Bearer other"},
            {"Authorization": f"Bearer {ours}"},
        ):
            refusal = client.post("/retrieve", json=ASKED, headers=wrong)
            _require_problem(refusal, 401, "a key is needed")
            assert refusal.headers["www-authenticate"] == "Bearer"
        for method in ("sage", "ark", "grasp", "graphraft"):
            assert len(ids("whole", method=method)) == 3
            assert ids("ours", method=method) == ["bob#0"]
            assert ids("empty", method=method) == []
        assert get("/schema", "ours").json()["labels"] == {"Document": 1}
        assert get("/schema", "empty").json()["labels"] == {}
        commonest = get("/links", "whole").json()["commonest"]
        assert [(link["name"], link["target"]) for link in commonest] == [
            ("Ann Ames", "Ann Ames"),
            ("Bob Bale", "Bob Bale"),
        ]
        assert get("/links", "ours").json() == {"commonest": [], "doubtful": []}
        _require_problem(
            get("/metrics", "ours"), 403, "the metrics are of the whole graph"
        )
        assert 'route="/retrieve",status="401"' in get("/metrics", "whole").text
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ours: {where: {a: 1}}", "ours: expected sha256 and where"),
        ("ours: {sha256: abc, where: {a: 1}}", "ours: expected a sha256 in hex"),
        (
            "ours: {sha256: " + "0" * 64 + ", where: {}}",
            "ours: expected a sha256 in hex that no other tenant has, and a condition",
        ),
        (
            "ours: {sha256: " + "0" * 64 + ", where: {a: {$like: 1}}}",
            "ours: expected sha256 and where (where: ",
        ),
        ("- ours", "expected tenants by name"),
        ("ours: [", "cannot be read: "),
    ],
)
def test_a_file_of_tenants_that_is_malformed_is_named(
    documents: Path, tmp_path: Path, written: str, said: str
) -> None:
    (tmp_path / "keys.yaml").write_text(written)
    assert f"keys.yaml: {said}" in refused(
        2, "serve", "--graph", documents, "--keys", tmp_path / "keys.yaml"
    )


def test_the_command_refuses_to_be_open_to_others(
    documents: Path, tmp_path: Path
) -> None:
    assert "set GRAPHRET_API_KEY" in refused(
        2, "serve", "--graph", documents, "--host", "0.0.0.0"
    )
    assert "no such file or folder" in refused(
        3, "serve", "--graph", tmp_path / "nothing"
    )


def test_a_slow_model_keeps_nobody_else_waiting_and_is_left_when_the_client_hangs_up(
    papers_file: Path,
) -> None:
    def active(client: httpx.Client) -> int:
        return (
            int(
                float(
                    client.get("/metrics")
                    .text.split("\ngraphret_active ")[1]
                    .split("\n")[0]
                )
            )
            - 1
        )

    with (
        OpenAIServer(default=slow(60)) as model,
        serving(papers_file, model="m", base_url=model.base_url, requests=2) as client,
    ):
        spark = ASKED | {"method": "spark"}
        for _ in range(3):
            with (
                client.stream("POST", "/retrieve/stream", json=spark),
                client.stream("POST", "/retrieve/stream", json=spark),
            ):
                until(lambda: active(client) == 2)
                answered = client.post("/retrieve", json=spark)
                _require_problem(answered, 503, "too many questions at once")
                assert answered.headers["retry-after"] == "1"
                assert client.get("/schema").status_code == 200
            until(lambda: active(client) == 0)
        until(lambda: not model.in_flight)


@pytest.mark.parametrize(
    ("reply", "given", "code", "said"),
    [
        (slow(60), {"seconds": 0.2}, 504, "the request took too long"),
        (
            status(401, "no sk-secret"),
            {"on_failure": "raise", "expand": "no"},
            502,
            "the method, or a service it used, failed",
        ),
    ],
)
def test_what_goes_wrong_behind_is_told_in_a_few_words(
    papers_file: Path, reply: Any, given: dict[str, Any], code: int, said: str
) -> None:
    with (
        OpenAIServer(default=reply) as model,
        serving(papers_file, model="m", base_url=model.base_url, **given) as client,
    ):
        spark = ASKED | {"method": "spark"}
        _require_problem(client.post("/retrieve", json=spark), code, said)
        *_, (name, problem) = events(client.post("/retrieve/stream", json=spark).text)
        assert (name, problem["status"]) == ("problem", code)
        assert "secret" not in str(problem)


def test_an_error_that_nobody_foresaw_tells_nothing(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a secret")

    with serving(documents) as client:
        monkeypatch.setattr(GraphVersion, "retriever", broken)
        _require_problem(
            client.post("/retrieve", json=ASKED), 500, "an unexpected error"
        )
        assert "secret" not in client.post("/retrieve", json=ASKED).text


def _put(graph: Path, *names: str) -> None:
    """Put a graph of people in the place of another, all at once."""
    if graph.suffix:
        with LadybugStore(graph.with_name("fresh.lbug")) as store:
            store.upsert([Node(name, ("Person",), name) for name in names])
        os.replace(graph.with_name("fresh.lbug"), graph)
    else:
        SageGraph.build(
            [Document(f"{name}.", id=name, title=name) for name in names], encoder=None
        ).save(graph)


@pytest.mark.parametrize("graph", ["documents", "people.lbug"])
def test_a_graph_is_replaced_while_it_serves(tmp_path: Path, graph: str) -> None:
    where, request = tmp_path / graph, {"query": "Who is Eve Ames?", "k": 1}
    _put(where, "Ann Ames", "Bo")
    with (
        command("--graph", where) as (process, client),
        ThreadPoolExecutor(1) as executor,
    ):

        def name() -> str:
            return str(client.post("/retrieve", json=request).json()["hits"][0]["name"])

        ended = threading.Event()

        def asking() -> set[int]:
            statuses = set()
            while not ended.is_set():
                statuses.add(client.post("/retrieve", json=request).status_code)
            return statuses

        future = executor.submit(asking)
        _put(where, "Ann Ames", "Bo", "Eve Ames")
        assert name() == "Ann Ames"
        process.send_signal(signal.SIGHUP)
        until(lambda: client.get("/health").json()["reloads"] == 1)
        assert name() == "Eve Ames"
        damaged = where / "CURRENT" if where.is_dir() else where
        damaged.rename(tmp_path / "gone")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        assert "the previous one stays" in next(
            line for line in process.stderr if "ERROR" in line
        )
        assert name() == "Eve Ames"
        ended.set()
        assert future.result() == {200}
