"""Dates, times and durations of Neo4j as Cypher's ``toString`` writes them, those that Python has no room for too."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

_DAY = 86_400
#: What the driver calls the day before the year 1.
_ZERO = "0000-00-00"
#: The calendar, and with it the rules of a time zone, come again after 400 years.
_CYCLE = 146_097 * _DAY
_FIRST, _LAST = -62_135_596_800, 253_370_764_800  # the years 1 to 9998 begin and end, in seconds since 1970


def temporal_text(value: Any) -> str:
    """Return a date, a time or a duration of the driver as text."""
    text = str(value.iso_format()).replace(_ZERO, "0000-12-31")
    if text.startswith(("P", "-P")):
        return text
    date, at, clock = text.partition("T") if "T" in text else ("", "", text)
    if not at and ":" not in clock:
        return text
    body, offset = clock, ""
    for sign in "+-":
        if sign in clock:
            body, _, rest = clock.partition(sign)
            offset = sign + rest
    zone = getattr(getattr(value, "tzinfo", None), "key", None) or getattr(getattr(value, "tzinfo", None), "zone", None)
    return f"{date}{at}{_clock(body)}{_zoned(offset, zone)}"


def is_unreadable(value: Any) -> bool:
    """Whether the driver could not make a value of what the server sent: a year that Python lacks, an unknown zone."""
    return hasattr(value, "raw_data") and hasattr(value, "error")


def unreadable_text(value: Any) -> str:
    """Return what the driver could not read as text, from what the server sent; see the Bolt protocol's structures."""
    sent = value.raw_data
    tag, fields = getattr(sent, "tag", None), list(getattr(sent, "fields", ()))
    if tag == b"D":
        return _date(fields[0])
    if tag == b"d":
        return _date_time(*fields)
    if tag == b"I":
        seconds, nanoseconds, offset = fields
        return _date_time(seconds + offset, nanoseconds) + _zoned(_offset(offset), None)
    if tag == b"i":
        seconds, nanoseconds, zone = fields
        offset = _offset_at(seconds, zone)
        return _date_time(seconds + offset, nanoseconds) + _zoned(_offset(offset), zone)
    return f"{tag!r}{fields}"


def _date(days: int) -> str:
    cycles, rest = divmod(days, _CYCLE // _DAY)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=rest)
    year = date.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{date:%m-%d}"


def _date_time(seconds: int, nanoseconds: int) -> str:
    days, rest = divmod(seconds, _DAY)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.{nanoseconds:09}"
    return f"{_date(days)}T{_clock(clock)}"


def _clock(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    text = f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"
    return f"{text}:{rest % 60:02}" if rest % 60 else text


def _offset_at(seconds: int, zone: str) -> int:
    """Return the offset of a zone at a time in seconds since 1970 UTC; 0 where the zone is unknown here."""
    while seconds < _FIRST + _DAY:
        seconds += _CYCLE
    while seconds >= _LAST - _DAY:
        seconds -= _CYCLE
    try:
        there = datetime.datetime.fromtimestamp(seconds, zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return 0
    return int(there.utcoffset().total_seconds())  # type: ignore[union-attr]


def _zoned(offset: str, zone: str | None) -> str:
    if offset in ("+00:00", "-00:00"):
        offset = "Z"
    return offset + (f"[{zone}]" if zone and offset and zone != "UTC" else "")
