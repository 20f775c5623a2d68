"""Values of sources as JSON values: what properties may hold."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

from graphret.errors import InvalidInput
from graphret.strings import members


def json_value(value: Any, where: str) -> Any:
    """Return a value as JSON has it; `None` for what stands for a missing one (`None`, NaN).

    Dates and times become ISO 8601, decimals numbers, tuples and sets lists; maps keep their keys where these are
    strings, and numbers become such. Inside lists and maps `None` stays.

    Raises
    ------
    InvalidInput
        On bytes, infinite numbers, what is nested too deeply to be read and anything else that JSON cannot hold; the
        message begins with `where`.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    try:
        return _json_value(value, where)
    except RecursionError as error:
        raise InvalidInput(f"{where}: lists and maps lie too deep in each other") from error


def _json_value(value: Any, where: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise InvalidInput(f"{where}: an infinite number cannot be kept")
        return None if math.isnan(value) else value
    if isinstance(value, list | tuple):
        return [_json_value(item, where) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_json_value(item, where) for item in value), key=lambda item: (type(item).__name__, str(item)))
    if isinstance(value, dict):
        if not all(isinstance(key, str | int | float) for key in value):
            raise InvalidInput(f"{where}: the keys of a map must be strings or numbers")
        return {str(key): _json_value(item, where) for key, item in value.items()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return _json_value(int(value) if value == value.to_integral_value() else float(value), where)
    raise InvalidInput(f"{where}: a value of the type {type(value).__name__} cannot be kept")


def json_object(text: str, where: str) -> dict[str, Any]:
    """Return the JSON object in a text, and raise an `InvalidInput` that begins with `where` if there is none."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=members)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: a JSON object is expected, not {type(value).__name__}")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
