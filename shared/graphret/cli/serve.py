"""``graphret serve``: a graph over HTTP."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.options import HINTED, option
from graphret.cli.query import EncoderName, method_options
from graphret.errors import InvalidInput, MissingDependency


def serve(
    context: typer.Context,
    graph: options.Graph,
    name_property: options.NameProperty = None,
    host: Annotated[str, option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, option("The port; 0 picks a free one.", min=0, max=65535)
    ] = 8000,
    keys: Annotated[
        Path | None,
        option("API keys of tenants, each with its view.", metavar="FILE.yaml"),
    ] = None,
    encoder: EncoderName = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    hints: Annotated[
        str,
        option(
            "What the model should know about the domain.",
            metavar="TEXT",
            panel=HINTED,
        ),
    ] = "",
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    fields: options.FieldsFolder = None,
    guidance: options.Guidance = None,
    preset: options.PresetName = "default",
    max_k: Annotated[int, option("Maximum hits per question.", min=1)] = 100,
    timeout: Annotated[float, option("Seconds per question.", min=0.001)] = 60.0,
    max_body: Annotated[int, option("Maximum size of a request, in bytes.", min=1)] = 1
    << 16,
    max_requests: Annotated[
        int, option("Maximum number of questions answered at once.", min=1)
    ] = 128,
) -> None:
    """Serve a graph over HTTP, with a web page; SIGHUP reloads the graph."""
    try:
        import uvicorn

        from graphret.serve.access import LOOPBACK
        from graphret.serve.app import create_app
        from graphret.serve.graph import Limits, ServedGraph
    except ModuleNotFoundError as error:
        raise MissingDependency(str(error.name), "serve", "graphret serve") from error
    key = os.environ.get("GRAPHRET_API_KEY")
    locked = key is not None or keys is not None
    if not locked and host not in LOOPBACK:
        raise InvalidInput(
            f"--host {host}: anyone who can reach it could ask questions; set"
            " GRAPHRET_API_KEY or pass --keys"
        )
    limits = Limits(max_k, timeout, max_body, max_requests)
    more: dict[str, Any] = {
        "options": method_options(context),
        "name_property": options.names_of(name_property),
        "key": key,
        "keys": keys,
        "limits": limits,
    }
    app = create_app(ServedGraph(graph, encoder=encoder, **more), loopback=not locked)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.INFO)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=10,
    )
