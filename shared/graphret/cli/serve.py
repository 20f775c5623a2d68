"""``graphret serve``: a graph behind HTTP."""

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
    host: Annotated[str, option("The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, option("The port; 0 takes one that is free.", min=0, max=65535)
    ] = 8000,
    keys: Annotated[
        Path | None, option("Keys of tenants, with their views.", metavar="FILE.yaml")
    ] = None,
    encoder: EncoderName = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    hints: Annotated[
        str,
        option(
            "What else the model should know of the domain.",
            metavar="TEXT",
            panel=HINTED,
        ),
    ] = "",
    settings: options.GraspFile = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    writer: options.WriterFolder = None,
    preset: options.PresetName = "default",
    most: Annotated[
        int, option("Hits that a question may ask for.", "--max-k", min=1)
    ] = 100,
    seconds: Annotated[
        float, option("Seconds that a question may take.", "--timeout", min=0.001)
    ] = 60.0,
    body: Annotated[
        int, option("Bytes that a request may have.", "--max-body", min=1)
    ] = 1 << 16,
    requests: Annotated[
        int, option("Questions that are answered at once.", "--max-requests", min=1)
    ] = 128,
) -> None:
    """Serve a graph over HTTP, with a page to look at; SIGHUP opens it again."""
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
            f"--host {host}: anyone there could ask: set GRAPHRET_API_KEY, or give"
            " --keys"
        )
    limits = Limits(most, seconds, body, requests)
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
