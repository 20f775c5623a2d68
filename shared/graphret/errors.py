"""The errors that graphret raises; catch `GraphretError` for all of them."""

from __future__ import annotations

from typing import Any


class GraphretError(Exception):
    """Base class of every error that graphret raises on purpose."""


class InvalidInput(GraphretError, ValueError):
    """An argument, document or record is malformed; the message names the field."""


class MissingDependency(GraphretError, ImportError):
    """An optional package is absent; the message names the extra that installs it."""

    def __init__(
        self, package: str, extra: str, purpose: str, *, without: str = ""
    ) -> None:
        install = (
            f"{purpose} needs the package {package!r}: pip install 'graphret[{extra}]'"
        )
        super().__init__(f"{install}; to go without: {without}" if without else install)

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingDependency.__new__, (MissingDependency, *self.args)


class StorageError(GraphretError):
    """A folder cannot be read or written as a graphret index."""


class NotAnIndex(StorageError):
    """The folder holds no graphret index."""


class NewerVersion(StorageError):
    """The index was written by a newer graphret than this one."""


class CorruptIndex(StorageError):
    """A file of the index is missing, truncated or altered."""


class IndexLocked(StorageError):
    """Another process is writing the same index."""


class IndexChanged(StorageError):
    """Another process has saved the index since it was loaded."""


class ModelError(GraphretError):
    """A language model or an encoder failed, or gave an unusable answer."""


class ClusterError(GraphretError):
    """A cluster cannot be reached, or could not finish a block."""


class RetrievalFailed(GraphretError):
    """A retriever failed and was set to raise rather than to fall back."""


class StoreError(GraphretError):
    """A graph store cannot do what it was asked."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or the connection was lost."""


class StoreMismatch(StoreError):
    """The database cannot be used: too old, missing, or its index has another size."""


class AccessDenied(StoreError):
    """The database refuses the user, the password or the right to do this."""


class QueryRefused(StoreError):
    """A Cypher query was refused, by the guard, the database, or a view of the store.

    `report` is the guard's `graphret.cypher.CypherReport`, `None` if something else
    refused.
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class QueryTimeout(StoreError):
    """A query took longer than its limit."""
