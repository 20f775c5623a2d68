"""Checks of arguments: protocols, keywords, views of one condition."""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Collection, Iterable
from typing import Any, Self

from typing_extensions import get_protocol_members

from graphret.errors import InvalidInput
from graphret.where import Where

# The names of one thing here, in LangChain, in LlamaIndex and in vector stores.
_SAME_THING = (
    ("similarity_top_k", "top_n", "k", "top_k", "n_results", "limit", "num_results"),
    ("where", "filters", "filter", "metadata_filter"),
    ("model", "llm", "chat_model", "cross_encoder", "reranker"),
    ("embedding", "encoder", "embed_model", "embeddings"),
    ("weight", "weights", "alpha"),
    ("rrf_k", "c"),
)


def require_keywords(names: Iterable[str], allowed: Collection[str], what: str) -> None:
    """Raise `InvalidInput` that names an unknown keyword, and the right one."""
    for name in names:
        if name in allowed:
            continue
        similar = [
            synonym for group in _SAME_THING if name in group for synonym in group
        ]
        similar += difflib.get_close_matches(name, allowed, n=1)
        suggestion = next((word for word in similar if word in allowed), None)
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        raise InvalidInput(
            f"{what}: expected one of {', '.join(allowed)}, got {name!r}{hint}"
        )


class CheckedKeywords:
    """A class whose constructor suggests the right keyword for a wrong one."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Make an instance, leaving the rest to ``__init__``."""
        if keywords:
            allowed = [*inspect.signature(cls.__init__).parameters][1:]
            require_keywords(keywords, allowed, cls.__name__)
        return super().__new__(cls)


class Lock:
    """A reentrant lock that pickles and copies as a new one, as its owner may."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def implements(value: Any, contract: type) -> bool:
    """Whether an object has all members of a protocol, apart from ``delete_edges``.

    A store need not be able to delete edges. From Python 3.12 on ``isinstance`` does
    not see members that a wrapper provides by ``__getattr__``.
    """
    return all(
        hasattr(value, name)
        for name in get_protocol_members(contract) - {"delete_edges"}
    )


def restriction_of(view: object) -> Where | None:
    """Return the condition of a view, its `restriction`; `None` if it is not a view."""
    restriction = getattr(view, "restriction", None)
    return restriction if isinstance(restriction, Where) else None


def require_same_view(store: object, index: object) -> None:
    """Raise `InvalidInput` unless both are views of one condition, or neither is."""
    restrictions = restriction_of(store), restriction_of(index)
    if _parts(restrictions[0]) != _parts(restrictions[1]):
        of_store, of_index = (
            "no view" if where is None else f"a view of {where.to_dict()}"
            for where in restrictions
        )
        raise InvalidInput(
            f"store and index: expected views of the same condition, got {of_store}"
            f" and {of_index}"
        )


def _parts(where: Where | None) -> set[Where]:
    """Return the conditions that must all hold, in any order."""
    return (
        set()
        if where is None
        else set(where.children)
        if where.operator == "$and"
        else {where}
    )
