"""What the Model Context Protocol adds to a call: `explore` over stdio, next to the same call of the core."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from benchmarks import synthetic
from benchmarks.bench_ark_hub import hub
from benchmarks.figures import Report, timed
from graphret.ark import Toolbox
from graphret.serve.methods import opened_graph

N, CALLS = 5_000, 200


def explore(report: Report) -> None:
    """The part of the speed benchmark: calls of nodes and with queries that differ, in turn over stdio and not."""
    words = synthetic.words()
    asked = [{"node": f"n{i:07d}", "query": words[i]} for i in range(CALLS)]
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "hub"))
        hub(N).save(Path(place))
        core, over = zip(*asyncio.run(_calls(place, asked)), strict=True)
    added = 1000 * (statistics.median(over) - statistics.median(core))
    what = "MCP: what `explore` over stdio takes more than the core's call, median"
    report.add("mcp explore", what, added, unit="ms", target=5.0)
    report.counts["mcp explore/calls"] = CALLS


async def _calls(place: str, asked: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """How many seconds each call takes, of the core in this process and over stdio in another."""
    program = ["-m", "graphret.cli", "mcp", "--graph", place]
    server = StdioServerParameters(command=sys.executable, args=program, env=dict(os.environ))
    with opened_graph(place) as graph:
        toolbox, taken = Toolbox(graph.store, graph.index), []
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool("explore", asked[0])
            for arguments in asked:
                core = timed(lambda given=arguments: toolbox.run("explore_neighborhood", given))  # type: ignore[misc]
                started = time.perf_counter()
                assert not (await session.call_tool("explore", arguments)).isError
                taken.append((core, time.perf_counter() - started))
    return taken
