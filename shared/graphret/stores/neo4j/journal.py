"""Which transactions of a database a store wrote itself, so that what it read before is brought up to date by them."""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections import OrderedDict
from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import NamedTuple

from graphret.stores.changes import Written

_KEPT = 64
#: A bookmark of one database, decoded: its id, and a transaction's number as Packstream writes integers.
_BOOKMARK = re.compile(rb"\x91\xcc\x10(.{16})([\x00-\x7f]|\xc9..|\xca.{4}|\xcb.{8})\x90", re.DOTALL)


class Position(NamedTuple):
    """A transaction: the id of its database, and its number there; each that writes has the next one."""

    database: bytes
    number: int


def position(bookmarks: Collection[str] | None) -> Position | None:
    """Return the last transaction of some bookmarks; `None` unless all are of one database and in the form of Neo4j 5.

    Nobody promises this form. What is not known by it is read again, which is slower and never wrong.
    """
    found = [_position(bookmark) for bookmark in bookmarks or ()]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({one.database for one in known}) != 1:
        return None
    return max(known)


def _position(bookmark: str) -> Position | None:
    kind, _, text = bookmark.partition(":")
    try:
        match = _BOOKMARK.fullmatch(base64.b64decode(text, validate=True)) if kind == "FB" else None
    except (binascii.Error, ValueError):
        return None
    if match is None:
        return None
    database, number = match.groups()
    return Position(database, int.from_bytes(number[len(number) > 1 :], "big", signed=len(number) > 1))


class Journal:
    """The last transactions that are known to be a store's own, and what each wrote.

    A transaction's bookmark may be of a later one, which somebody else committed meanwhile. So one counts as known only
    where its bookmark is the next after one that was seen before it began: there is no room for another then.
    """

    def __init__(self) -> None:
        self._own: OrderedDict[Position, Written] = OrderedDict()
        self._lock = threading.Lock()

    def wrote(self, before: Position | None, after: Position | None, written: Written | None) -> None:
        """Note a transaction that is through.

        Parameters
        ----------
        before
            The last transaction that had been seen when it began.
        after
            The last one that is seen now.
        written
            What it wrote at most; `None` where that is not known.
        """
        if before is None or written is None or after != before._replace(number=before.number + 1):
            return
        with self._lock:
            self._own[after] = written
            while len(self._own) > _KEPT:
                self._own.popitem(last=False)

    def since(self, before: Position | None, now: Position | None) -> Written | None:
        """Return what was written after one transaction and until another; `None` unless all of it is known."""
        if before is None or now is None or before.database != now.database:
            return None
        numbers = range(before.number + 1, now.number + 1)
        if now < before or len(numbers) > _KEPT:
            return None
        with self._lock:
            own = [self._own.get(before._replace(number=number)) for number in numbers]
        known = [written for written in own if written is not None]
        return reduce(or_, known, Written()) if len(known) == len(own) else None
