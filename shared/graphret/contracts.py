"""Whether what is given fits: protocols, keywords, views of one condition."""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Collection, Iterable
from typing import Any, Self

from typing_extensions import get_protocol_members

from graphret.errors import InvalidInput
from graphret.where import Where

# What one thing is called here, in LangChain, in LlamaIndex and in vector stores.
_SAME_THING = (
    ("similarity_top_k", "top_n", "k", "top_k", "n_results", "limit", "num_results"),
    ("where", "filters", "filter", "metadata_filter"),
    ("model", "llm", "chat_model", "cross_encoder", "reranker"),
    ("embedding", "encoder", "embed_model", "embeddings"),
    ("weight", "weights", "alpha"),
    ("rrf_k", "c"),
)


def require_keywords(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise an `InvalidInput` that names a keyword which is not known, and the right
    one.
    """
    for name in given:
        if name in known:
            continue
        alike = [one for group in _SAME_THING if name in group for one in group]
        alike += difflib.get_close_matches(name, known, n=1)
        meant = next((one for one in alike if one in known), None)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise InvalidInput(
            f"{what}: expected one of {', '.join(known)}, got {name!r}{hint}"
        )


class CheckedKeywords:
    """A class whose constructor names, for a wrong keyword, the right one."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Make an instance; what it is made of is left to ``__init__``."""
        if keywords:
            known = [*inspect.signature(cls.__init__).parameters][1:]
            require_keywords(keywords, known, cls.__name__)
        return super().__new__(cls)


class Lock:
    """A lock that a thread may take again, and that is pickled and copied as a new one,
    as what holds it may be.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def implements(value: Any, contract: type) -> bool:
    """Whether an object has all members of a protocol; a store need not be able to take
    edges away.

    ``isinstance`` says so too, but from Python 3.12 on not of a wrapper that hands them
    on by ``__getattr__``.
    """
    return all(
        hasattr(value, name)
        for name in get_protocol_members(contract) - {"delete_edges"}
    )


def restriction_of(one: object) -> Where | None:
    """The condition of a view, which it keeps as `restriction`; `None` for what shows
    all.
    """
    found = getattr(one, "restriction", None)
    return found if isinstance(found, Where) else None


def require_same_view(store: object, index: object) -> None:
    """Raise an `InvalidInput` unless store and index are views of one condition, or
    neither is a view.
    """
    seen, found = restriction_of(store), restriction_of(index)
    if _parts(seen) != _parts(found):
        of_store, of_index = (
            "no view" if one is None else f"a view of {one.to_dict()}"
            for one in (seen, found)
        )
        raise InvalidInput(
            "store and index: both must be view(where) of one condition, not"
            f" {of_store} and {of_index}"
        )


def _parts(where: Where | None) -> set[Where]:
    """The conditions that must all hold, in whatever order they were joined."""
    return (
        set()
        if where is None
        else set(where.children)
        if where.operator == "$and"
        else {where}
    )
