"""Values of properties as the types of columns, and back."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from graphret.columns import to_json
from graphret.stores.ladybug.names import is_text

#: The type of a property of which only empty lists were seen.
EMPTY = "EMPTY[]"

#: Column types with values that conditions are written for in Cypher, by what Python makes of them.
KINDS = {
    "STRING": str,
    "BOOL": bool,
    "DOUBLE": float,
    "FLOAT": float,
    **dict.fromkeys(("INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "SERIAL"), int),
}

#: Those of numbers of which some are not finite, or none at all (NaN).
FLOATS = ("DOUBLE", "FLOAT")

#: What a JSON object of lines begins with; version 0.1.0 wrote all without lines.
OPENING = "{\n"

#: In JSON of lines, lists and maps lie no deeper in each other.
DEEPEST = 8

#: A property that is nested deeper is refused: a reader with less of Python's stack left than the writer could not
#: read it.
KEPT = 200

#: What is read of an infinite number, which JSON lacks.
INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_SCALARS = {str: "STRING", bool: "BOOL", int: "INT64", float: "DOUBLE"}


def type_of(value: Any) -> str | None:
    """Return the type of the column that can hold the value as it is, `None` if none can."""
    scalar = _SCALARS.get(type(value))
    if scalar == "INT64":
        return scalar if _LOWEST <= value <= _HIGHEST else None
    if scalar == "DOUBLE":
        return scalar if math.isfinite(value) else None
    if scalar == "STRING":
        return scalar if is_text(value) else None
    if scalar is not None:
        return scalar
    if isinstance(value, (list, tuple)):
        merged: str | None = EMPTY
        for item in value:
            of_item = None if isinstance(item, (list, tuple)) else type_of(item)
            merged = merged_type(merged, f"{of_item}[]") if of_item and merged else None
        if merged == "DOUBLE[]" and not all(fits(item, "DOUBLE") for item in value):
            return None
        return merged
    return None


def merged_type(left: str | None, right: str | None) -> str | None:
    """Return the type that holds the values of both, `None` if there is none."""
    if left == right or right is None or left is None:
        return left if left == right else None
    pair = {left, right}
    if EMPTY in pair:
        (other,) = pair - {EMPTY}
        return other if other.endswith("[]") else None
    return {frozenset({"INT64", "DOUBLE"}): "DOUBLE", frozenset({"INT64[]", "DOUBLE[]"}): "DOUBLE[]"}.get(
        frozenset(pair)
    )


def fits(value: Any, column: str) -> bool:
    """Whether a value of a mergeable type is held exactly: an integer in a column of doubles may not be."""
    if column == "DOUBLE" and isinstance(value, int):
        return abs(value) <= 2**53 or (abs(value) < 2**1000 and int(float(value)) == value)
    if column == "DOUBLE[]":
        return all(fits(item, "DOUBLE") for item in value)
    return True


def arrow_type(column: str) -> Any:
    """Return the Arrow type of a column that graphret writes."""
    import pyarrow as pa

    scalars = {"STRING": pa.string(), "BOOL": pa.bool_(), "INT64": pa.int64(), "DOUBLE": pa.float64()}
    if column.endswith("[]"):
        return pa.list_(scalars[column[:-2]])
    return scalars[column]


def arrow_array(values: list[Any], column: str) -> Any:
    """Return values as an Arrow array for a column; integers become doubles where it holds doubles."""
    import pyarrow as pa

    if column == "DOUBLE":
        values = [None if v is None else float(v) for v in values]
    elif column == "DOUBLE[]":
        values = [None if v is None else [float(item) for item in v] for v in values]
    return pa.array(values, type=arrow_type(column))


def json_object(properties: Mapping[str, Any]) -> str:
    """Return properties as a JSON object with a line for each, so that a query can read one in its line.

    No line feed stands in JSON but between its parts, and within the value of a property there is none. What is nested
    deeper than `DEEPEST` is beyond what a query can read; then there are no lines.

    Raises
    ------
    TypeError, ValueError, RecursionError
        If it is not JSON, or nested too deeply.
    """
    lines = [f"{to_json(name)}:{to_json(value)}" for name, value in properties.items()]
    if any(_deeper(value, DEEPEST) for value in properties.values()):
        if any(_deeper(value, KEPT) for value in properties.values()):
            raise ValueError(f"nested deeper than {KEPT} levels")
        return "{" + ",".join(lines) + "}"
    return OPENING + "\n,\n".join(lines) + "\n}"


def _deeper(value: Any, levels: int) -> bool:
    """Whether more than so many lists and maps lie in each other."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return levels == 0 or any(_deeper(item, levels - 1) for item in value)


def json_value(value: Any) -> Any:
    """Return what a database column holds as a JSON value: dates and the like as ISO text, structures as objects.

    JSON has no NaN, which stands for a missing number and is `None`, and nothing infinite, which is a text.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else INFINITE.get(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {json_key(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):  # without decimals, it is a whole number of many digits
        return float(value) if value.as_tuple().exponent else int(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return str(value)


def conversions(
    columns: Mapping[str, str], properties: Mapping[str, str], *, native: bool
) -> list[tuple[str, Callable[[Any], Any]]]:
    """Return what makes JSON values of those of a table's properties, for those that need it.

    In columns that graphret made, only something else can have put what does: a number that is not finite.

    Parameters
    ----------
    columns
        The type of each column.
    properties
        The column of each property.
    """
    if not native:
        return [(name, json_value) for name in properties]
    kinds = {name: columns[column] for name, column in properties.items()}
    made = {"DOUBLE": json_value, "DOUBLE[]": _json_numbers}
    return [(name, made[kind]) for name, kind in kinds.items() if kind in made]


def convert(found: dict[str, Any], conversions: Iterable[tuple[str, Callable[[Any], Any]]]) -> None:
    """Make JSON values of properties that were read, and take away those that have none."""
    for name, converted in conversions:
        if name in found:
            found[name] = converted(found[name])
            if found[name] is None:
                del found[name]


def _json_numbers(values: list[Any]) -> list[Any]:
    try:
        finite = math.isfinite(sum(values))
    except TypeError:  # there is a null
        finite = False
    return values if finite else [json_value(value) for value in values]


def number_type(kind: str | None) -> type[int] | type[float] | None:
    """Return what Python makes of the numbers in a column, of no decimals an `int`; `None` for another column."""
    if kind is None or kind.endswith("]"):
        return None
    if kind in ("UINT64", "INT128"):
        return int
    if kind.startswith("DECIMAL("):
        return int if kind.endswith(", 0)") else float
    found = KINDS.get(kind)
    return found if found is int or found is float else None


def json_key(value: Any) -> str:
    """Return the key of a map as the name of a member of a JSON object."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value if isinstance(value, float) else json_value(value))
