"""Values of columns as text: what `json_value` makes of them, in Cypher, and what the database makes of operands."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator
from typing import Any

from graphret.stores.ladybug.names import literal
from graphret.stores.ladybug.scalars import exact, scalar_texts
from graphret.stores.ladybug.values import KINDS

#: The characters of bytes that the database writes as such.
_PRINTED = [chr(code) for code in range(32, 127) if chr(code) not in "\"'\\"]
#: Types of whole numbers that no parameter can be.
_WHOLE = ("UINT64", "INT128")
_SPAN = re.compile(r"(?:(-?\d{1,9}) days?, )?(\d\d?):(\d\d):(\d\d)(?:\.(\d{6}))?", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:(?!\.0{6})\.(\d{6}))?(\+00:00)?")


def text_expression(value: str, kind: str) -> str | None:
    """Return the Cypher of the text of a value, as `json_value` makes it; `None` if it makes no text."""
    if kind == "STRING":
        return value
    text = f"CAST({value} AS STRING)"
    if KINDS.get(kind) in (int, bool) or is_whole(kind) or kind in ("DATE", "UUID", "JSON"):
        return text
    if kind == "INTERVAL":
        return _interval(value)
    if kind == "BLOB":
        return _hexadecimal(text)
    zone = ""
    if kind == "TIMESTAMP_TZ":
        text, zone = f"left({text}, size({text}) - 3)", "+00:00"
    elif not kind.startswith("TIMESTAMP"):
        return None
    text = f"regexp_replace(rpad({text}, 26, '0'), '0000000$', '')"  # six decimals or none
    return f"concat(replace({text}, ' ', 'T'), '{zone}')"


def own_text(value: str, kind: str) -> str:
    """Return the Cypher of an id, a name or a text: where `json_value` makes none, as the database writes the value."""
    return text_expression(value, kind) or f"CAST({value} AS STRING)"


def _interval(value: str) -> str:
    """The text of Python's `timedelta`, of which a year has 365 days and another month 30.

    No parentheses but those of functions: in others the database looks for patterns, and takes long to parse.
    """

    def part(name: str) -> str:
        return f"date_part('{name}', {value})"

    rest = f"{part('hour')} % 24 * 3600000000 + {part('minute')} * 60000000 + {part('microsecond')}"
    time = f"timestamp('2000-01-02') + to_microseconds({rest})"  # of the day before, where the rest is negative
    days = f"{_days(value)} + {part('hour')} / 24 + date_part('day', {time}) - 2"
    counted = f"regexp_replace(concat(CAST({days} AS STRING), ' days, '), '^0 days, ', '')"
    for one in ("1", "-1"):
        counted = f"regexp_replace({counted}, '^{one} days', '{one} day')"
    digits = f"regexp_replace(rpad(CAST({time} AS STRING), 26, '0'), '0000000$', '')"  # six decimals or none
    return f"concat({counted}, regexp_replace(substring({digits}, 12, 15), '^0', ''))"


def _days(value: str) -> str:
    return f"date_part('year', {value}) * 365 + date_part('month', {value}) * 30 + date_part('day', {value})"


def interval_length(value: str) -> str:
    """Return the Cypher of the microseconds of an interval, as an INT128: intervals of one length have one text."""
    hours, minutes, rest = (f"date_part('{name}', {value})" for name in ("hour", "minute", "microsecond"))
    days = f"CAST({_days(value)} AS INT128)"
    return f"{days} * 86400000000 + {hours} * 3600000000 + {minutes} * 60000000 + {rest}"


def length_of(text: str) -> int | None:
    """Return the microseconds of the interval of which `json_value` makes a text; `None` if there can be none."""
    if (found := _SPAN.fullmatch(text)) is None:
        return None
    days, hours, minutes, seconds, micros = (int(part or 0) for part in found.groups())
    span = datetime.timedelta(days, seconds, micros, minutes=minutes, hours=hours)
    return span // datetime.timedelta(microseconds=1) if str(span) == text else None


def _hexadecimal(text: str) -> str:
    """The bytes of which this is the database's text: the printed ones as such, ``\\x`` and two digits for others."""
    tokens = f"regexp_extract_all({text}, '[\\\\x5c]x..|.')"
    place = f"list_position([{', '.join(map(literal, _PRINTED))}], t)"
    digits = literal("".join(f"{ord(character):02x}" for character in _PRINTED))
    written = f"concat(lower(substring(t, 3, 2)), substring({digits}, 2 * {place} - 1, 2))"
    return f"list_to_string('', list_transform({tokens}, t -> {written}))"


def is_whole(kind: str) -> bool:
    """Whether a type is of whole numbers that no parameter can be."""
    return kind in _WHOLE or (kind.startswith("DECIMAL(") and kind.endswith(", 0)"))


def cast_list(value: str, kind: str) -> tuple[str, str] | None:
    """Return a list as one that a parameter can be compared with, in Cypher, and the type of what is in it at last.

    `None` where the database writes equal values in several ways.
    """
    inner = kind.partition("[")[0]
    if kind.startswith(("STRUCT(", "MAP(", "UNION(", "DECIMAL(")) or inner in ("INTERVAL", "INTERNAL_ID"):
        return None
    return (value if inner in KINDS else f"CAST({value} AS STRING{kind[len(inner) :]})"), inner


def stored(operand: Any, kind: str) -> Iterator[Any]:
    """Return what a scalar that equals an operand is in a `cast_list`, if there is one."""
    if operand is None:
        yield None
    elif kind in KINDS:
        yield from exact(operand, kind)
    elif is_whole(kind):
        yield from whole_texts(operand)
    elif isinstance(operand, str):
        if kind == "BLOB":
            yield from _bytes_text(operand)
        elif not kind.startswith("TIMESTAMP"):
            yield operand
        elif (found := _TIME.fullmatch(operand)) and (found[4] is not None) == (kind == "TIMESTAMP_TZ"):
            decimals = f".{found[3].rstrip('0')}" if found[3] else ""
            yield f"{found[1]} {found[2]}{decimals}{'+00' if found[4] else ''}"


def whole_texts(operand: Any) -> list[str]:
    """The digits of the whole number that a number equals, if there is one."""
    if isinstance(operand, (str, tuple)):
        return []
    return [text for text in scalar_texts(operand) if text.removeprefix("-").isdigit()]


def _bytes_text(hexadecimal: str) -> Iterator[str]:
    """The database's text of bytes."""
    with contextlib.suppress(ValueError):
        found = bytes.fromhex(hexadecimal)
        if found.hex() == hexadecimal:
            yield "".join(chr(b) if chr(b) in _PRINTED else f"\\x{b:02X}" for b in found)


def as_double(value: str) -> str:
    """Return the Cypher of a decimal as the double that Python reads."""
    return f"CAST(CAST({value} AS STRING) AS DOUBLE)"
