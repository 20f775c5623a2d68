"""Store dates and times in metadata as ISO text, as properties are JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

#: The property that lists which others were dates and times, with their types' names.
TEMPORAL = "chunk_temporal"

_TYPES = (datetime, date, time)  # a datetime is a date too
_BY_NAME: dict[str, Any] = {kind.__name__: kind for kind in _TYPES}


def with_iso_text(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with dates and times as text, and their types."""
    types = {
        key: next(kind.__name__ for kind in _TYPES if isinstance(value, kind))
        for key, value in metadata.items()
        if isinstance(value, _TYPES)
    }
    if not types:
        return dict(metadata)
    texts = {key: metadata[key].isoformat() for key in types}
    return {**metadata, **texts, TEMPORAL: types}


def as_given(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties with their dates and times; undoes `with_iso_text`."""
    types = properties.get(TEMPORAL, {})
    return {
        key: _BY_NAME[types[key]].fromisoformat(value) if key in types else value
        for key, value in properties.items()
        if key != TEMPORAL
    }
