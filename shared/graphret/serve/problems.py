"""Errors as problem details (RFC 9457): only a client's mistakes in full."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from graphret import errors

_log = logging.getLogger(__name__)
#: The status of each kind of error, and a general text where details must not leak.
_KINDS: dict[type[Exception], tuple[int, str]] = {
    errors.InvalidInput: (422, ""),
    TimeoutError: (504, "the request took too long"),
    errors.QueryTimeout: (504, "the database took too long"),
    errors.StoreUnavailable: (503, "the database cannot be reached"),
    errors.GraphretError: (502, "the method, or a service it used, failed"),
    Exception: (500, "an unexpected error"),
}


def problem_of(error: Exception) -> dict[str, Any]:
    """Return what a client may know of an error, and log the rest."""
    if isinstance(error, HTTPException):
        status, detail = error.status_code, error.detail
    elif isinstance(error, RequestValidationError):
        mistakes = error.errors()
        status = 400 if mistakes[0]["type"] == "json_invalid" else 422
        fields = [
            next((part for part in mistake["loc"][1:] if isinstance(part, str)), "body")
            for mistake in mistakes
        ]
        detail = "; ".join(
            f"{field}: {mistake['msg']}"
            for field, mistake in zip(fields, mistakes, strict=True)
        )
    else:
        status, detail = next(
            problem for kind, problem in _KINDS.items() if isinstance(error, kind)
        )
        if detail:
            _log.warning(
                "%s: %s: %s",
                detail,
                type(error).__name__,
                error,
                exc_info=error if status == 500 else None,
            )
        detail = detail or str(error)
    title = HTTPStatus(status).phrase
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail[:1000],  # it may quote the request
    }


async def respond(_: Request | None, error: Exception) -> JSONResponse:
    problem, headers = problem_of(error), getattr(error, "headers", None)
    return JSONResponse(
        problem, problem["status"], headers, media_type="application/problem+json"
    )
