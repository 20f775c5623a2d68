"""Metrics of requests for Prometheus, which reveal no questions and no users."""

from __future__ import annotations

import time

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
)
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphret.serve.problems import respond

_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    25,
    60,
)


class Metrics:
    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        labels = ["route", "method", "status"]
        self.seconds = Histogram(
            "graphret_seconds",
            "How long requests took.",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )
        self.active = Gauge(
            "graphret_active", "Requests that are being answered.", registry=registry
        )
        self.fallbacks = Counter(
            "graphret_fallbacks",
            "Degradations in traces.",
            ["method"],
            registry=registry,
        )


class MetricsMiddleware:
    """The outermost middleware: measures requests, limits bodies, catches errors."""

    def __init__(self, app: ASGIApp, metrics: Metrics, body: int) -> None:
        self.app, self.metrics, self.body = app, metrics, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, metrics = time.perf_counter(), 0, self.metrics
        remaining = self.body

        async def received() -> Message:
            nonlocal remaining
            message = await receive()
            remaining -= len(message.get("body", b""))
            if remaining < 0:
                raise HTTPException(413, f"a request may have {self.body} bytes")
            return message

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with metrics.active.track_inprogress():
            try:
                await self.app(scope, received, sent)
            except Exception as error:
                response = await respond(None, error)
                if not status:
                    await response(scope, receive, sent)
        route, method = (
            getattr(scope.get("route"), "path", ""),
            scope.get("state", {}).get("method", ""),
        )
        metrics.seconds.labels(route, method, status or 499).observe(
            time.perf_counter() - start
        )
