"""Dates, times and durations of Neo4j as Cypher's ``toString`` writes them, those that Python has no room for too."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

_DAY = 86_400
_EPOCH = datetime.date(1970, 1, 1).toordinal()
#: The calendar, and with it the rules of a time zone, come again after 400 years.
_CYCLE = 146_097 * _DAY
_FIRST, _LAST = -62_135_596_800, 253_370_764_800  # the years 1 to 9998 begin and end, in seconds since 1970


def temporal_text(value: Any) -> str:
    """Return a date, a time or a duration of the driver as text."""
    if not hasattr(value, "to_ordinal") and not hasattr(value, "hour"):
        return str(value.iso_format())
    days = value.to_ordinal() - _EPOCH if hasattr(value, "to_ordinal") else 0
    if not hasattr(value, "hour"):
        return _date(days)
    hours, minutes, seconds, nanoseconds = value.hour_minute_second_nanosecond
    seconds += 3600 * hours + 60 * minutes
    away = value.utcoffset()
    if not hasattr(value, "to_ordinal"):
        return _clock(seconds, nanoseconds) + ("" if away is None else _zoned(int(away.total_seconds()), None))
    seconds += days * _DAY
    if away is None:
        return _date_time(seconds, nanoseconds)
    offset, zone = int(away.total_seconds()), _zone_of(value.tzinfo)
    if zone is not None:  # the driver knows the offsets of old times to the minute, and takes some for others
        utc, offset = seconds - offset, _offset_at(seconds - offset, zone)
        seconds = utc + offset
    return _date_time(seconds, nanoseconds) + _zoned(offset, zone)


def is_unreadable(value: Any) -> bool:
    """Whether the driver could not make a value of what the server sent: a year that Python lacks, an unknown zone."""
    return hasattr(value, "raw_data") and hasattr(value, "error")


def is_unwritable(value: Any) -> bool:
    """Whether the driver fails on writing a value that it read: of a year that Python lacks, or the day before them."""
    if isinstance(value, list):
        return any(map(is_unwritable, value))
    return is_unreadable(value) or (hasattr(value, "to_ordinal") and hasattr(value, "hour") and value.to_ordinal() < 1)


def writable(value: Any) -> Any:
    """Return a value as the driver writes it back; it would make a zone of UTC where there was none."""
    if hasattr(value, "to_ordinal") and getattr(getattr(value, "tzinfo", None), "zone", None) == "UTC":
        return value.replace(tzinfo=datetime.UTC)
    return value


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
        return _date_time(seconds + offset, nanoseconds) + _zoned(offset, None)
    if tag == b"i":
        seconds, nanoseconds, zone = fields
        offset = _offset_at(seconds, zone)
        return _date_time(seconds + offset, nanoseconds) + _zoned(offset, zone)
    return f"{tag!r}{fields}"


def _date(days: int) -> str:
    cycles, rest = divmod(days, _CYCLE // _DAY)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=rest)
    year = date.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{date:%m-%d}"


def _date_time(seconds: int, nanoseconds: int) -> str:
    days, rest = divmod(seconds, _DAY)
    return f"{_date(days)}T{_clock(rest, nanoseconds)}"


def _clock(seconds: int, nanoseconds: int) -> str:
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{nanoseconds:09}"
    return text.rstrip("0").rstrip(".")


def _zone_of(tzinfo: object) -> str | None:
    """Return the name of a time zone; `None` for a mere offset, and for UTC, which the driver takes for one."""
    name = getattr(tzinfo, "key", None) or getattr(tzinfo, "zone", None)
    return None if name == "UTC" else name


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


def _zoned(offset: int, zone: str | None) -> str:
    hours, rest = divmod(abs(offset), 3600)
    text = f"{'-' if offset < 0 else '+'}{hours:02}:{rest // 60:02}" if offset else "Z"
    return text + (f":{rest % 60:02}" if rest % 60 else "") + (f"[{zone}]" if zone else "")
