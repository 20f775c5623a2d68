"""Which items of a column satisfy a condition, read as bytes as far as they go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from json import JSONDecoder
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import assemble
from graphret.errors import InvalidInput
from graphret.strings import Column, Records, to_json
from graphret.where import PROPERTIES, Where, lookup

_BLOCK = 1 << 14
_TOKEN = 32
_KEPT = 1 << 16
_scan: Callable[[str, int], tuple[Any, int]] = JSONDecoder().scan_once  # type: ignore[attr-defined]

#: What a key's place in a record says: that the condition fails or holds, that it is no key, or that it cannot be told.
_NO, _YES, _VALUE, _UNCLEAR = range(4)


def with_labels(where: Where | None, labels: Collection[str] | None) -> Where | None:
    """Return the condition that a node bears one of `labels` besides."""
    if labels is None:
        return where
    if isinstance(labels, str):
        raise InvalidInput(f"labels: a list of labels is expected, not the string {labels!r}")
    chosen = Where("$in", "label", tuple(labels))
    return chosen if where is None else chosen & where


def reads(where: Where) -> int:
    """How much has to be read for a condition: nothing for one on labels, least of all for one on ids."""
    if where.children:
        return max(map(reads, where.children))
    return {"label": 0, "id": 1, "name": 2}.get(where.field, 3)


def matching(column: Column[Any], at: NDArray[np.int64], where: Where) -> NDArray[np.bool_]:
    """Return which items at positions satisfy a condition on one field, ``(len(at),)``.

    Parameters
    ----------
    column
        The field itself, or the properties that hold it.
    """
    mask = np.empty(len(at), dtype=bool)
    reader = _Properties(where) if isinstance(column, Records) else None
    fits = _of_strings(where)
    for start in range(0, len(at), _BLOCK):
        block = at[start : start + _BLOCK]
        together = block[-1] - block[0] == len(block) - 1 and bool((np.diff(block) == 1).all())
        items = column[block[0] : block[-1] + 1] if together else assemble([column], block)
        if reader is None:
            fitting: NDArray[np.bool_] | list[bool] = fits(items)
        else:
            fitting, left = reader.mask(items)
            own = [where.compares(*lookup(one, where.field)) for one in column.take(block[left])]
            fitting[left] = own
        mask[start : start + len(block)] = fitting
    return mask


def _of_strings(where: Where) -> Callable[[Column[Any]], list[bool]]:
    if where.operator in ("$eq", "$in"):
        wanted = {v for v in (where.value if where.operator == "$in" else [where.value]) if isinstance(v, str)}
        return lambda values: [value in wanted for value in values]
    return lambda values: [where.compares(True, value) for value in values]


class _Properties:
    """Finds the value of a property in records that are not decoded.

    A record that has no other brace than its first holds the key at most at its top. A quote within a JSON string
    follows a backslash, so that the quoted key is either a key or a whole string; a colon tells which. Records with
    more braces, or with escapes that could spell a key in another way, are decoded where they may hold it.
    """

    def __init__(self, where: Where) -> None:
        self._where = where
        field = where.field
        names = {
            field,
            field.split(".")[0],
            field.removeprefix(PROPERTIES).split(".")[0],
            field.removeprefix(PROPERTIES),
        }
        self._keys = [to_json(name).encode() for name in sorted(names)]
        self._spelt = all(b"\\" not in key for key in self._keys)
        self._plain = self._spelt and len(names) == 1 and (field[:1].isalnum() or field[:1] == "_")
        self._known: dict[bytes, int] = {}

    def mask(self, records: Column[Any]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which records satisfy the condition, and the positions of those that have to be decoded to tell."""
        blob = records.blob.tobytes()
        out = np.full(len(records), self._where.compares(False, None))
        decoded = np.full(len(records), not self._spelt)
        for escape in (b"\\u", b"\\/"):
            decoded[_owners(records, blob, escape)[0]] = True
        if self._plain:
            self._read(records, blob, out, decoded)
        else:
            for key in self._keys:
                decoded[_owners(records, blob, key)[0]] = True
        return out, np.flatnonzero(decoded)

    def _read(self, records: Column[Any], blob: bytes, out: NDArray[np.bool_], decoded: NDArray[np.bool_]) -> None:
        owners, parts = _owners(records, blob, self._keys[0])
        tokens = [part[:_TOKEN].partition(b",")[0] for part in parts]
        told = [*map(self._known.get, tokens)]
        for i in [i for i, known in enumerate(told) if known is None]:
            told[i] = self._known[tokens[i]] if tokens[i] in self._known else self._tell(parts[i], tokens[i])
        said = np.asarray(told, dtype=np.int8)
        out[owners[said == _NO]], out[owners[said == _YES]] = False, True
        decoded[owners[said == _UNCLEAR]] = True
        decoded[_owners(records, blob, b"\\" + self._keys[0])[0]] = True
        if blob.count(b"{") != len(records):
            braces = np.searchsorted(records.offsets, np.flatnonzero(records.blob == ord("{")), side="right") - 1
            nested = np.bincount(braces, minlength=len(records)) != 1
            decoded[owners[nested[owners]]] = True
        twice = owners[1:][np.diff(owners) == 0]
        decoded[twice] = True

    def _tell(self, part: bytes, token: bytes) -> int:
        """What the text after a quoted key says; what its first bytes are enough for is remembered."""
        try:
            text = str(part, "utf-8")
            rest = text.lstrip()
            if not rest.startswith(":"):
                return _VALUE
            rest = rest[1:].lstrip()
            value, used = _scan(rest, 0)
        except (StopIteration, ValueError, RecursionError):
            return _UNCLEAR
        said = _YES if self._where.compares(value is not None, value) else _NO
        end = len(text) - len(rest) + used
        # A token goes to the first comma, if there is one in sight: a number may else be longer than it seems.
        enough = end < len(token) or (end == len(token) and token != part[:_TOKEN])
        if enough and token.isascii() and len(self._known) < _KEPT:
            self._known[token] = said
        return said


def _owners(records: Column[Any], blob: bytes, mark: bytes) -> tuple[NDArray[np.int64], list[bytes]]:
    """The records in which a mark occurs, ascending, once for each place, and the text from there to the next."""
    first, *parts = blob.split(mark)
    if not parts:
        return np.empty(0, dtype=np.int64), parts
    sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)) + len(mark)
    places = len(first) + np.cumsum(sizes) - sizes
    return np.searchsorted(records.offsets, places, side="right") - 1, parts
