"""Dates and times in the metadata of other people's documents: properties are JSON, so
that they are kept as ISO's text, and given back as what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

#: The property that says which others were dates and times, by the name of their type.
TEMPORAL = "chunk_temporal"

_TYPES = (datetime, date, time)  # a datetime is a date too
_BY_NAME: dict[str, Any] = {kind.__name__: kind for kind in _TYPES}


def with_iso_text(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with the text of dates and times, and of which type they were."""
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
    """Return properties with dates and times as they were given; the inverse of
    `with_iso_text`.
    """
    types = properties.get(TEMPORAL, {})
    return {
        key: _BY_NAME[types[key]].fromisoformat(value) if key in types else value
        for key, value in properties.items()
        if key != TEMPORAL
    }
