"""``graphret mcp``: a graph for any agent that speaks the Model Context Protocol."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import remark, stderr
from graphret.cli.options import option
from graphret.cli.query import EncoderName, method_options
from graphret.methods import opened_graph

_VIEW = (
    'Serve only nodes that match, such as {"tenant": "acme"}; nothing else can be read,'
    " counted or found."
)
HTTP = "With --transport http"


def mcp(
    context: typer.Context,
    graph: options.Graph,
    name_property: options.NameProperty = None,
    where: Annotated[Any, option(_VIEW, metavar="JSON", parser=json.loads)] = None,
    transport: Annotated[
        Literal["stdio", "http"],
        option("How clients connect; http is streamable HTTP."),
    ] = "stdio",
    host: Annotated[str, option("The address to listen on.", panel=HTTP)] = "127.0.0.1",
    port: Annotated[
        int, option("The port; 0 picks a free one.", min=0, max=65535, panel=HTTP)
    ] = 8765,
    encoder: EncoderName = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
) -> None:
    """Serve a graph to agents over the Model Context Protocol (MCP)."""
    from graphret.serve.access import LOOPBACK
    from graphret.serve.mcp_server import (
        GraphTools,
        make_server,
        serve_http,
        serve_stdio,
    )

    methods = method_options(context)
    names = options.names_of(name_property)
    with opened_graph(
        graph, encoder, name_property=names, remark=remark, busy=stderr().status
    ) as opened:
        view = opened if where is None else opened.view(where)
        if where is not None and not any(view.store.nodes()):
            remark("there is nothing to serve: no node matches --where")
        server = make_server(GraphTools(view, methods))
        if transport == "stdio":
            asyncio.run(serve_stdio(server))
            return
        if host not in LOOPBACK:
            remark(
                f"anyone who can reach {host} can read what is served: put a proxy with"
                " authentication in front of it"
            )
        asyncio.run(
            serve_http(server, host, port, lambda url: remark(f"serving at {url}"))
        )
