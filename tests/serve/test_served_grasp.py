"""GRASP behind ``graphret serve`` and ``graphret mcp``, with what it was told and
trained on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from cli_helpers import graphret
from fastapi.testclient import TestClient
from mcp.shared.memory import create_connected_server_and_client_session
from spark_parts import EDGES, NODES
from tiny_model import saved_tiny_encoder

from graphret.search import NodeText, TrainedFields
from graphret.search.encoder import as_encoder
from graphret.serve import mcp_server
from graphret.stores import MemoryStore
from graphret.testing.openai_server import OpenAIServer, text

pytest.importorskip("sentence_transformers")
pytestmark = pytest.mark.xdist_group("torch")

QUESTION = "papers by Ada Ames like those of 2014"
PLAN: dict[str, Any] = {
    "anchors": [{"var": "a", "text": "Ada Ames", "label": "Author"}],
    "hops": [{"from": "a", "rel": "WROTE", "to_var": "T"}],
    "target": {"labels": ["Paper"]},
}


def over_http(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> list[str]:
    """The hits of ``graphret serve``, asked as soon as it would listen."""
    hits: list[str] = []

    def asked(app: Any, **options: Any) -> None:
        with TestClient(app, base_url="http://127.0.0.1") as client:
            request = {"query": QUESTION, "k": 4, "method": "grasp"}
            answer = client.post("/retrieve", json=request).json()
            hits.extend(hit["id"] for hit in answer["hits"])

    monkeypatch.setattr(uvicorn, "run", asked)
    assert graphret("serve", *arguments).code == 0
    return hits


def over_mcp(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> list[str]:
    """The hits of ``graphret mcp`` to a client in the place of stdio."""
    hits: list[str] = []

    async def asked(server: Any) -> None:
        async with create_connected_server_and_client_session(server) as session:
            request = {"question": QUESTION, "k": 4, "method": "grasp"}
            result = await session.call_tool("retrieve", request)
            assert result.structuredContent is not None
            hits.extend(node["id"] for node in result.structuredContent["nodes"])

    monkeypatch.setattr(mcp_server, "serve_stdio", asked)
    assert graphret("mcp", *arguments).code == 0
    return hits


@pytest.mark.parametrize("hits_of", [over_http, over_mcp])
def test_grasp_is_served_with_its_guidance_and_its_trained_fields(
    hits_of: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    MemoryStore.of(NODES, EDGES).save(tmp_path / "graph")
    source = str(saved_tiny_encoder(tmp_path / "encoder", QUESTION.lower().split()))
    encoder = as_encoder(source)
    assert encoder is not None
    directions = np.zeros((2, encoder.dimension), np.float32)
    scales = np.array([1, 0], np.float32)  # words alone
    year = NodeText(properties=("year",), only=("year",))
    TrainedFields({"year": year}, directions, scales, encoder.name, source).save(
        tmp_path / "fields"
    )
    guidance = tmp_path / "guidance.json"
    guidance.write_text(json.dumps({"rules": ["A paper is a Paper."]}))
    with OpenAIServer([text(json.dumps(PLAN))]) as model:
        hits = hits_of(
            monkeypatch,
            *("--graph", tmp_path / "graph", "--model", "planner"),
            *("--base-url", model.base_url, "--guidance", guidance),
            *("--fields", tmp_path / "fields"),
        )
        assert "A paper is a Paper." in model.requests[0].messages[0]["content"]
    assert set(hits[:3]) == {"p0", "p3", "p6"}  # of the plan
    assert hits[3] == "p4"  # of the year: the text of the graph has Ada Ames before it
