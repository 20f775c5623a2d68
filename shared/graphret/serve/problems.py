"""Errors as problem details (RFC 9457): what a client did wrong in full, what else went
wrong in a few words.
"""

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
#: The status of an error by its kind, and what a client is told where the rest is none
#: of its business.
_KINDS: dict[type[Exception], tuple[int, str]] = {
    errors.InvalidInput: (422, ""),
    TimeoutError: (504, "it took longer than a request may"),
    errors.QueryTimeout: (504, "the database took too long"),
    errors.StoreUnavailable: (503, "the database cannot be reached"),
    errors.GraphretError: (502, "the method failed, or what it asked"),
    Exception: (500, "an unexpected error"),
}


def problem_of(error: Exception) -> dict[str, Any]:
    """Return what a client is told of an error; the rest of it is logged."""
    if isinstance(error, HTTPException):
        status, said = error.status_code, error.detail
    elif isinstance(error, RequestValidationError):
        wrong = error.errors()
        status = 400 if wrong[0]["type"] == "json_invalid" else 422
        fields = [
            next((part for part in one["loc"][1:] if isinstance(part, str)), "body")
            for one in wrong
        ]
        said = "; ".join(
            f"{field}: {one['msg']}" for field, one in zip(fields, wrong, strict=True)
        )
    else:
        status, said = next(
            told for kind, told in _KINDS.items() if isinstance(error, kind)
        )
        if said:
            _log.warning(
                "%s: %s: %s",
                said,
                type(error).__name__,
                error,
                exc_info=error if status == 500 else None,
            )
        said = said or str(error)
    title = HTTPStatus(status).phrase
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": said[:1000],
    }  # it may quote what came in


async def respond(_: Request | None, error: Exception) -> JSONResponse:
    problem, headers = problem_of(error), getattr(error, "headers", None)
    return JSONResponse(
        problem, problem["status"], headers, media_type="application/problem+json"
    )
