"""The HTTP service: its routes, and what stands before each."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.sse import EventSourceResponse, ServerSentEvent
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from graphret import explain
from graphret.errors import GraphretError, InvalidInput
from graphret.methods import Method
from graphret.sage.link_names import link_names
from graphret.serve.access import LOOPBACK, hashed
from graphret.serve.graph import GraphVersion, RetrievalJob, ServedGraph, as_json
from graphret.serve.introduction import introduction
from graphret.serve.metrics import Metrics, MetricsMiddleware
from graphret.serve.problems import problem_of, respond
from graphret.trace import Stage, Trace, on_stage
from graphret.types import Retrieval
from graphret.where import Where

_TEMPLATES = [
    Path(package).parent / "templates" for package in (__file__, explain.__file__)
]
_EXAMPLES: dict[str, Any] = json.loads(
    (_TEMPLATES[0] / "examples.json").read_text(encoding="utf-8")
)
_environment = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_bearer = HTTPBearer(auto_error=False, description="Needed where the service has keys.")
Key = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def create_app(served: ServedGraph, *, loopback: bool = False) -> FastAPI:
    """Return the service of a graph; it opens the graph again on SIGHUP.

    With `loopback` it answers who calls it by this machine's own name alone: without a
    key, a page from elsewhere whose name leads here could ask it too.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        with suppress(
            AttributeError, RuntimeError, ValueError
        ):  # no such signal, or another thread than the main one
            loop.add_signal_handler(
                signal.SIGHUP, lambda: tasks.append(loop.create_task(served.reload()))
            )
        yield
        served.current.__exit__()

    app = FastAPI(
        title="graphret",
        version=version("graphret"),
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (HTTPException, RequestValidationError, GraphretError, TimeoutError),
            respond,
        ),
    )
    app.state.served, app.state.loopback, app.state.busy = (
        served,
        loopback,
        {True: 0, False: 0},
    )
    app.state.metrics = metrics = Metrics()
    app.add_middleware(MetricsMiddleware, metrics=metrics, body=served.limits.body)
    app.router.routes += (
        _routes.routes
    )  # a router within would look for each route twice
    return app


class RetrieveRequest(BaseModel):
    """What is asked. The method is by default sage for documents, else ark."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": _EXAMPLES["questions"]}
    )
    query: str = Field(max_length=20_000, pattern=r"\S")
    k: int = Field(10, ge=1, strict=True, description="How many hits, in all.")
    where: dict[str, Any] | None = Field(
        None, description="Which nodes may be returned, by their properties."
    )
    method: Method | None = None


def _reader(
    request: Request, key: HTTPAuthorizationCredentials | None
) -> tuple[GraphVersion, Where | None]:
    """Return the graph for who asks, and the condition of what is read for them."""
    state = request.app.state
    if state.loopback and request.url.hostname not in LOOPBACK:
        raise HTTPException(
            403, "without a key this service answers to localhost alone"
        )
    generation, hash_ = state.served.current, hashed(key.credentials if key else "")
    if generation.keys and hash_ not in generation.keys:
        raise HTTPException(
            401,
            "a key is needed, as Authorization: Bearer",
            {"WWW-Authenticate": "Bearer"},
        )
    return generation, generation.keys.get(hash_)


async def _asked(
    request: Request, key: Key, given: RetrieveRequest
) -> AsyncIterator[RetrievalJob]:
    """Keep a place for a question that can be answered, and the graph open."""
    (generation, view), state, limits = (
        _reader(request, key),
        request.app.state,
        request.app.state.served.limits,
    )
    if given.k > limits.k:
        raise InvalidInput(f"k: at most {limits.k} hits may be asked for")
    method, waits = (
        given.method or generation.views[view].method,
        generation.options.model is not None,
    )
    question, waits = (
        (given.query, given.k, Where.parse(given.where)),
        waits and method != "sage",
    )
    if state.busy[waits] >= limits.requests:
        raise HTTPException(503, "too many questions at once", {"Retry-After": "1"})
    request.state.method = method
    state.busy[waits] += 1
    with generation:
        try:
            retriever = await generation.retriever(method, view)
            yield RetrievalJob(
                generation,
                view,
                method,
                retriever,
                waits,
                question,
                state.metrics.fallbacks.labels(method),
            )
        finally:
            state.busy[waits] -= 1


_asking = asynccontextmanager(_asked)  # which takes less time than what depends on it


_routes = APIRouter(responses=_EXAMPLES["problem"])


@_routes.post("/retrieve", responses=_EXAMPLES["retrieval"])
async def retrieve(request: Request, key: Key, given: RetrieveRequest) -> Response:
    """Return the k best hits for a question, with the evidence for each, as `graphret
    query --json` prints them.
    """
    async with (
        _asking(request, key, given) as asked,
        asyncio.timeout(request.app.state.served.limits.seconds),
    ):
        found = await asked.answer(lambda found: as_json(found.to_dict()))
    return Response(found, media_type="application/json")


@_routes.post(
    "/retrieve/stream",
    response_class=EventSourceResponse,
    responses=_EXAMPLES["stream"],
)
async def retrieve_stream(
    request: Request,
    asked: Annotated[RetrievalJob, Depends(_asked)],
    drawn: Annotated[bool, Query(description="Also send pages that draw it.")] = False,
) -> AsyncIterator[ServerSentEvent]:
    """Tell of each `stage` as it ends, steps of agents too, and then the `result` and
    `drawing`, or a `problem`.
    """
    loop, stages = asyncio.get_running_loop(), asyncio.Queue[Stage | None]()

    def emit(stage: Stage | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and a thread has not
            loop.call_soon_threadsafe(stages.put_nowait, stage)

    def told(found: Retrieval) -> list[ServerSentEvent]:
        pages = [_event("drawing", {"pages": asked.drawn(found)})] if drawn else []
        return [_event("result", found.to_dict()), *pages]

    with on_stage(emit):
        task = asyncio.create_task(
            asyncio.wait_for(
                asked.answer(told), request.app.state.served.limits.seconds
            )
        )
    task.add_done_callback(lambda _: emit(None))
    try:
        while (stage := await stages.get()) is not None:
            yield _event("stage", Trace([stage]).to_dict()["stages"][0])
        try:
            last = task.result()
        except Exception as error:
            last = [_event("problem", problem_of(error))]
        for event in last:
            yield event
    finally:
        task.cancel()  # where the client hung up


def _event(name: str, value: Any) -> ServerSentEvent:
    return ServerSentEvent(event=name, raw_data=as_json(value).decode())


@_routes.get("/schema")
async def schema(request: Request, key: Key) -> Response:
    """Return the labels, relations and properties of the graph, as `graphret schema
    --json` prints them.
    """
    generation, view = _reader(request, key)
    store = generation.views[view].store
    dialect = getattr(store, "dialect", None)
    with generation:
        said = await generation.compute(
            lambda: as_json({**store.schema().to_dict(), "dialect": dialect})
        )
    return Response(said, media_type="application/json")


@_routes.get("/introduction")
async def introduce(request: Request, key: Key) -> Response:
    """Return the graph's name and size, three questions to try, and the properties and
    values that a filter may ask for.
    """
    generation, view = _reader(request, key)
    store, name = generation.views[view].store, request.app.state.served.name
    with generation:
        said = await generation.compute(
            lambda: as_json({"name": name, **introduction(store)})
        )
    return Response(said, media_type="application/json")


@_routes.get("/links")
async def links(request: Request, key: Key) -> Response:
    """Return the names that make most links in a graph of documents, and the least
    believed, with examples.
    """
    generation, view = _reader(request, key)
    documents = generation.views[view].documents
    if documents is None:
        return Response("{}", media_type="application/json")
    with generation:
        by_name = await generation.compute(
            lambda: as_json(link_names(documents.nodes, documents.edges))
        )
    return Response(by_name, media_type="application/json")


@_routes.get("/metrics")
async def metrics(request: Request, key: Key) -> Response:
    """Return what was counted and timed, for Prometheus; tenants of a view are
    refused.
    """
    if _reader(request, key)[1] is not None:
        raise HTTPException(
            403, "the figures are of the whole graph, of which this key sees a part"
        )
    return Response(
        generate_latest(request.app.state.metrics.registry),
        media_type=CONTENT_TYPE_LATEST,
    )


@_routes.get("/health")
async def health(request: Request) -> dict[str, Any]:
    """Return that the service answers, and how often the graph was opened again."""
    return {"status": "ok", "reloads": request.app.state.served.reloads}


@_routes.get("/", include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """Return the page, which loads nothing and runs only what stands in it."""
    served, nonce = request.app.state.served, secrets.token_urlsafe()
    shown = _environment.get_template("index.html").render(served=served, nonce=nonce)
    return HTMLResponse(
        shown, headers={"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}
    )
