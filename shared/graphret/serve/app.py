"""The HTTP service: its routes, and the checks before each."""

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
_bearer = HTTPBearer(auto_error=False, description="Required if the service has keys.")
Key = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def create_app(served: ServedGraph, *, loopback: bool = False) -> FastAPI:
    """Return the service of a graph, which reloads the graph on SIGHUP.

    With `loopback` it only answers requests to a loopback name: without a key, a page
    from elsewhere whose host name resolves to this machine could ask it too.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        with suppress(
            AttributeError, RuntimeError, ValueError
        ):  # no such signal, or not the main thread
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
    )  # an included router would match each route twice
    return app


class RetrieveRequest(BaseModel):
    """A question. The default method is sage for documents, otherwise ark."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": _EXAMPLES["questions"]}
    )
    query: str = Field(max_length=20_000, pattern=r"\S")
    k: int = Field(10, ge=1, strict=True, description="Total number of hits.")
    where: dict[str, Any] | None = Field(
        None, description="Which nodes may be returned, by their properties."
    )
    method: Method | None = None


def _reader(
    request: Request, key: HTTPAuthorizationCredentials | None
) -> tuple[GraphVersion, Where | None]:
    """Return the graph for a key, and the condition of what the key may read."""
    state = request.app.state
    if state.loopback and request.url.hostname not in LOOPBACK:
        raise HTTPException(403, "without a key this service only answers to localhost")
    generation, hash_ = state.served.current, hashed(key.credentials if key else "")
    if generation.keys and hash_ not in generation.keys:
        raise HTTPException(
            401,
            "a key is needed, as Authorization: Bearer",
            {"WWW-Authenticate": "Bearer"},
        )
    return generation, generation.keys.get(hash_)


async def _job(
    request: Request, key: Key, body: RetrieveRequest
) -> AsyncIterator[RetrievalJob]:
    """Yield the job of a valid question; reserve its slot and keep the graph open."""
    (generation, view), state, limits = (
        _reader(request, key),
        request.app.state,
        request.app.state.served.limits,
    )
    if body.k > limits.k:
        raise InvalidInput(f"k: expected at most {limits.k}, got {body.k}")
    method = body.method or generation.views[view].method
    waits = generation.options.model is not None and method != "sage"
    question = (body.query, body.k, Where.parse(body.where))
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


_open_job = asynccontextmanager(_job)  # faster than a dependency


_routes = APIRouter(responses=_EXAMPLES["problem"])


@_routes.post("/retrieve", responses=_EXAMPLES["retrieval"])
async def retrieve(request: Request, key: Key, body: RetrieveRequest) -> Response:
    """Return the k best hits for a question, as `graphret query --json` prints them."""
    async with (
        _open_job(request, key, body) as job,
        asyncio.timeout(request.app.state.served.limits.seconds),
    ):
        result = await job.answer(lambda retrieval: as_json(retrieval.to_dict()))
    return Response(result, media_type="application/json")


@_routes.post(
    "/retrieve/stream",
    response_class=EventSourceResponse,
    responses=_EXAMPLES["stream"],
)
async def retrieve_stream(
    request: Request,
    job: Annotated[RetrievalJob, Depends(_job)],
    drawn: Annotated[bool, Query(description="Also send pages that draw it.")] = False,
) -> AsyncIterator[ServerSentEvent]:
    """Send each `stage` as it ends, then the `result` and `drawing`, or a `problem`.

    Each step of an agent is a stage.
    """
    loop, stages = asyncio.get_running_loop(), asyncio.Queue[Stage | None]()

    def emit(stage: Stage | None) -> None:
        with suppress(RuntimeError):  # the loop ended before a thread did
            loop.call_soon_threadsafe(stages.put_nowait, stage)

    def result_events(retrieval: Retrieval) -> list[ServerSentEvent]:
        pages = [_event("drawing", {"pages": job.pages(retrieval)})] if drawn else []
        return [_event("result", retrieval.to_dict()), *pages]

    with on_stage(emit):
        task = asyncio.create_task(
            asyncio.wait_for(
                job.answer(result_events), request.app.state.served.limits.seconds
            )
        )
    task.add_done_callback(lambda _: emit(None))
    try:
        while (stage := await stages.get()) is not None:
            yield _event("stage", Trace([stage]).to_dict()["stages"][0])
        try:
            last_events = task.result()
        except Exception as error:
            last_events = [_event("problem", problem_of(error))]
        for event in last_events:
            yield event
    finally:
        task.cancel()  # if the client disconnected


def _event(name: str, value: Any) -> ServerSentEvent:
    return ServerSentEvent(event=name, raw_data=as_json(value).decode())


@_routes.get("/schema")
async def schema(request: Request, key: Key) -> Response:
    """Return the graph's schema, as `graphret schema --json` prints it."""
    generation, view = _reader(request, key)
    store = generation.views[view].store
    dialect = getattr(store, "dialect", None)
    with generation:
        content = await generation.compute(
            lambda: as_json({**store.schema().to_dict(), "dialect": dialect})
        )
    return Response(content, media_type="application/json")


@_routes.get("/introduction")
async def introduce(request: Request, key: Key) -> Response:
    """Return the graph's name and size, sample questions, and what to filter by."""
    generation, view = _reader(request, key)
    store, name = generation.views[view].store, request.app.state.served.name
    with generation:
        content = await generation.compute(
            lambda: as_json({"name": name, **introduction(store)})
        )
    return Response(content, media_type="application/json")


@_routes.get("/links")
async def links(request: Request, key: Key) -> Response:
    """Return the names behind most links of a document graph, and the most doubtful."""
    generation, view = _reader(request, key)
    documents = generation.views[view].documents
    if documents is None:
        return Response("{}", media_type="application/json")
    with generation:
        content = await generation.compute(
            lambda: as_json(link_names(documents.nodes, documents.edges))
        )
    return Response(content, media_type="application/json")


@_routes.get("/metrics")
async def metrics(request: Request, key: Key) -> Response:
    """Return the metrics for Prometheus; keys of a view are refused."""
    if _reader(request, key)[1] is not None:
        raise HTTPException(
            403, "the metrics are of the whole graph, and this key may see only a part"
        )
    return Response(
        generate_latest(request.app.state.metrics.registry),
        media_type=CONTENT_TYPE_LATEST,
    )


@_routes.get("/health")
async def health(request: Request) -> dict[str, Any]:
    """Return that the service is up, and how often the graph was reloaded."""
    return {"status": "ok", "reloads": request.app.state.served.reloads}


@_routes.get("/", include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """Return the web page, which loads nothing and only runs its own script."""
    served, nonce = request.app.state.served, secrets.token_urlsafe()
    html = _environment.get_template("index.html").render(served=served, nonce=nonce)
    return HTMLResponse(
        html, headers={"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}
    )
