"""``graphret query --method spark``, against a server that replies with a plan."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import graphret
from spark_parts import EDGES, NODES, plan

from graphret.stores.ladybug import LadybugStore
from graphret.testing.openai_server import OpenAIServer, status

BY_ADA = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p ORDER BY p.year"


def test_a_plan_is_run_printed_and_drawn(tmp_path: Path) -> None:
    graph, page = str(tmp_path / "papers.lbug"), tmp_path / "page.html"
    with LadybugStore(graph) as store:
        store.upsert(NODES, EDGES)
    asked = ["query", "papers by Ada Ames", "--method", "spark", "--graph", graph, "-k", "5", "--model", "m"]
    with OpenAIServer(default=plan(BY_ADA)) as server:
        told = graphret(*asked, "--base-url", server.base_url, "--explain", page)
        found = graphret(*asked, "--base-url", server.base_url, "--json", "--expand", "-edge").json
    assert "row 1 of MATCH (a:Author)" in " ".join(told.out.split())
    assert "Graph Retrieval 0" in page.read_text()
    assert [hit["id"] for hit in found["hits"]][:3] == ["p0", "p3", "p6"]
    with OpenAIServer(default=status(401)) as server:
        failed = graphret(*asked, "--base-url", server.base_url)
    assert failed.code == 5
    assert "HTTP 401" in failed.err


def test_what_it_needs_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# A\n\nText.")
    graphret("build", tmp_path / "notes.md", "--out", tmp_path / "g", "--encoder", "none")
    for more, said in ([], "--model"), (["--model", "m", "--base-url", "http://localhost:1/v1"], "answers no Cypher"):
        told = graphret("query", "a", "--method", "spark", "--graph", tmp_path / "g", *more)
        assert told.code
        assert said in " ".join(told.err.split())
