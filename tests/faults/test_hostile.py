"""The attack that users can repeat, and what others found: each of these failed
once.
"""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from chat_clients import CLIENTS, chat_model

from graphret import Ark, Expand, ScriptedExplorer
from graphret.ark.observation import Observation
from graphret.ark.session import ArkSession
from graphret.ark.tools import CallOutcome
from graphret.corpus import Document
from graphret.cypher import run_checked
from graphret.errors import (
    CorruptIndex,
    GraphretError,
    IndexChanged,
    ModelError,
    StoreError,
)
from graphret.llm import ChatError, OpenAIChat
from graphret.llm.chat import Message, Reply, ToolCall
from graphret.sage import SageGraph
from graphret.storage import writing
from graphret.stores import LadybugStore, MemoryStore, Neo4jStore, open_store
from graphret.testing.openai_server import OpenAIServer, body
from graphret.types import Edge, Node

TEXTS = [
    Document("Leeds is a city.", id="leeds"),
    Document("Malham is near Leeds.", id="malham"),
]


def test_the_attack_that_users_can_repeat_gets_nowhere() -> None:
    command = [sys.executable, str(Path(__file__).parents[1] / "bounded_attack.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(" 0 got through") == 2


def test_graphs_and_what_reads_them_go_to_other_processes(tmp_path: Path) -> None:
    graph = SageGraph.build(TEXTS, encoder=None)
    read = graph.store, graph.index
    for retriever in (
        graph.retriever(),
        Expand(None, *read),
        Ark(ScriptedExplorer(), *read),
    ):
        answers = [
            one.retrieve("Malham?", 2).ids
            for one in (retriever, pickle.loads(pickle.dumps(retriever)))
        ]
        assert (
            answers[0]
            == answers[1]
            == copy.deepcopy(retriever).retrieve("Malham?", 2).ids
        )
    graph.save(tmp_path / "graph")
    for one in (graph, SageGraph.load(tmp_path / "graph")):
        again = pickle.loads(pickle.dumps(one))
        again.add([Document("Skipton has a castle.", id="skipton")])
        assert len(again) == len(graph) + 1


def test_a_store_in_a_database_says_that_it_cannot_be_pickled(
    tmp_path: Path, neo4j_empty: Any
) -> None:
    neo4j = Neo4jStore.from_driver(neo4j_empty)
    with LadybugStore(tmp_path / "g.lbug") as ladybug:
        for store in (ladybug, neo4j, neo4j.view({"label": "A"})):
            with pytest.raises(TypeError, match=r"Store.*open it in each process"):
                pickle.dumps(store)


def test_a_save_that_would_lose_another_is_refused(tmp_path: Path) -> None:
    SageGraph.build(TEXTS, encoder=None).save(tmp_path)
    mine, other = SageGraph.load(tmp_path), SageGraph.load(tmp_path)
    other.add([Document("Skipton has a castle.", id="skipton")])
    other.save(tmp_path)
    mine.add([Document("Bingley has locks.", id="bingley")])
    with pytest.raises(IndexChanged, match="load it again"):
        mine.save(tmp_path)
    with writing(tmp_path):
        again = SageGraph.load(tmp_path)
        again.add([Document("Bingley has locks.", id="bingley")])
        again.save(tmp_path)
    again.save(tmp_path)  # what it saved itself is no change by another
    assert {"skipton#0", "bingley#0"} <= set(SageGraph.load(tmp_path).nodes.ids)


def test_bytes_are_capped_as_rows_are(tmp_path: Path, neo4j_empty: Any) -> None:
    with LadybugStore(tmp_path / "g.lbug") as ladybug:
        for store in (ladybug, Neo4jStore.from_driver(neo4j_empty)):
            rows = run_checked(
                store,
                "UNWIND range(1, 500) AS i RETURN range(1, 2000) AS list",
                max_bytes=100_000,
            )
            assert rows.truncated
            assert 0 < len(rows) < 50
            assert not run_checked(
                store, "UNWIND range(1, 5) AS i RETURN range(1, 20) AS list"
            ).truncated


def test_a_server_without_memory_is_not_asked_again(
    neo4j_empty: Any, neo4j_uri: str, neo4j_auth: Any
) -> None:
    query, x = (
        "UNWIND range(1, 9000000) AS i WITH collect(i + $x) AS list",
        {"x": "x" * 4_000},
    )
    options = {"max_transaction_retry_time": 60.0}
    with Neo4jStore(neo4j_uri, auth=neo4j_auth, options=options, timeout=50.0) as store:
        for call in (
            lambda: store.query(f"{query} RETURN list", x),
            lambda: store.write(
                lambda graph: graph.run(f"{query} CREATE ({{size: size(list)}})", x)
            ),
        ):
            with pytest.raises(StoreError, match="memory"):
                call()


@contextmanager
def endpoint(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """An endpoint that answers each request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


async def test_an_endpoint_that_redirects_is_not_followed_and_headers_stay_secret() -> (
    None
):
    asked: list[str] = []

    def redirect(to: Any) -> None:
        asked.append(to.path)
        to.send_response(307)
        to.send_header("location", f"http://localhost:{to.server.server_port}/other")
        to.send_header("content-length", "0")
        to.end_headers()

    with endpoint(redirect) as base:
        model = OpenAIChat(
            "m", base, "none", headers={"x-token": "tok-3141592"}, max_retries=0
        )
        with pytest.raises(ChatError, match="redirects to") as error:
            model.chat([Message.user("tok-3141592?")])
        assert "tok-3141592" not in str(error.value)
        with pytest.raises(ChatError, match="redirects to"):
            await model.achat([Message.user("tok-3141592?")])
    assert asked == ["/v1/chat/completions"] * 2
    assert "tok-3141592" not in repr(model)


async def test_a_reply_without_an_end_is_cut() -> None:
    def endless(to: BaseHTTPRequestHandler) -> None:
        to.send_response(200)
        to.send_header("content-type", "application/json")
        to.end_headers()
        with suppress(OSError):
            while True:
                to.wfile.write(b" ")
                time.sleep(0.05)

    with endpoint(endless) as base:
        model = OpenAIChat("m", base, "none", max_retries=0, max_seconds=0.5)
        with pytest.raises(ChatError, match=r"no answer within 0\.5 s"):
            model.chat([Message.user("hi")])
        with pytest.raises(ChatError, match=r"no answer within 0\.5 s"):
            await model.achat([Message.user("hi")])


def test_names_steer_no_terminal(tmp_path: Path) -> None:
    bad = "[red]x[/red]\x1b[31mRED\u202eevil"
    graph = MemoryStore.of(
        [Node("a", (bad,), bad), Node("b", ("t",), "b")], [Edge("a", bad, "b")]
    )
    graph.save(tmp_path)
    command = [
        sys.executable,
        "-m",
        "graphret.cli",
        "inspect",
        "--graph",
        str(tmp_path),
    ]
    printed = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=True
    ).stdout
    assert "[red]x[/red]" in printed
    assert not {"\x1b", "\u202e"} & set(printed)


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {"format_version": 4},
        {"generation": "../x"},
        {"files": [{"file": "../../passwd"}]},
        {"files": ["a.npy"]},
    ],
)
def test_a_manifest_that_is_none_is_named(tmp_path: Path, manifest: Any) -> None:
    MemoryStore.of([Node("a")]).save(tmp_path)
    path = tmp_path / "CURRENT"
    if isinstance(manifest, dict) and "format_version" not in manifest:
        manifest = json.loads(path.read_text().splitlines()[0]) | manifest
    line = json.dumps(manifest)
    path.write_text(f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n")
    with pytest.raises(CorruptIndex, match="CURRENT"):
        open_store(tmp_path)


def test_a_reply_of_many_or_long_calls_costs_no_more_than_its_bounds() -> None:
    session = ArkSession("Malham?", "Explore.")
    calls = [
        ToolCall(str(i), "global_search", json.dumps({"query": f"x {i}"}))
        for i in range(10_000)
    ]
    to_run = session.receive(Reply("x" * 10**7, tuple(calls)))
    assert len(to_run) == session.settings.max_calls
    session.observe([CallOutcome(call, Observation("{}")) for call in to_run])
    assert len(session.messages) < 100
    session.receive(
        Reply("", (ToolCall("a", "global_search", json.dumps({"query": "x" * 10**7})),))
    )
    session.observe()
    assert "100,000 characters" in session.messages[-1].content
    assert (
        sum(
            len(message.content) + len(json.dumps(message.to_dict()))
            for message in session.messages
        )
        < 10**6
    )


@pytest.mark.parametrize("choices", ["[null]", "[{}]"])
@pytest.mark.parametrize("client", CLIENTS)
def test_choices_that_are_none_are_a_typed_error(client: str, choices: str) -> None:
    streams = client == "langchain_streaming"
    kind, mime = (
        ("chat.completion.chunk", "text/event-stream")
        if streams
        else ("chat.completion", "application/json")
    )
    reply = (
        f'{{"id": "c", "object": "{kind}", "created": 0, "model": "m", "choices":'
        f" {choices}}}"
    )
    sent = body(f"data: {reply}\n\ndata: [DONE]\n\n" if streams else reply, mime)
    with OpenAIServer(default=sent) as server, pytest.raises(ModelError):
        chat_model(client, server.base_url, retries=0).chat([Message.user("hi")])


def test_a_query_that_needs_more_memory_than_it_may_have_is_refused(
    tmp_path: Path,
) -> None:
    with LadybugStore(tmp_path / "g.lbug", buffer_pool_size=2**26) as store:
        store.upsert([Node("a")])
        with pytest.raises(GraphretError, match="buffer pool"):
            store.query_in_subprocess(
                "UNWIND range(1, 30000000) AS i RETURN count(DISTINCT i)", timeout=60
            )
        assert store.count() == (1, 0)
