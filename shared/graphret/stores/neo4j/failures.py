"""What goes wrong with a database, as graphret's errors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from graphret.errors import (
    AccessDenied,
    GraphretError,
    InvalidInput,
    MissingDependency,
    QueryRefused,
    QueryTimeout,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
)

#: The oldest server that knows the types of values (``IS ::``) as graphret asks for them.
OLDEST = (5, 13)
#: The oldest that takes relations from parameters (``$($relation)``), the long-term release of Neo4j 5.
DYNAMIC = (5, 26)
_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")


def require_driver() -> None:
    """Raise a `MissingDependency` if the driver is not installed."""
    try:
        import neo4j  # noqa: F401
    except ImportError as error:
        raise MissingDependency("neo4j", "neo4j", "a store in Neo4j") from error


def is_at_least(agent: str, version: tuple[int, int], *, unknown: bool = False) -> bool:
    """Whether a server, by the name it gives itself, is of this version or later; `unknown` if that does not say."""
    found = _AGENT.match(agent)
    return unknown if found is None else (int(found[1]), int(found[2])) >= version


def require_version(agent: str) -> None:
    """Raise a `StoreMismatch` if a server, by the name it gives itself, is too old."""
    if not is_at_least(agent, OLDEST, unknown=True):
        raise StoreMismatch(f"Neo4j {OLDEST[0]}.{OLDEST[1]} or later is needed; the server says it is {agent}")


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Raise the driver's errors as graphret's."""
    import neo4j.exceptions as driver

    try:
        yield
    except (driver.Neo4jError, driver.DriverError) as error:
        raise _translate(error, uri) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a text holds half of a surrogate pair, which Neo4j cannot hold: {error}") from error
    except ValueError as error:
        if isinstance(error.__cause__, OSError) and str(error).startswith("Cannot resolve address"):
            raise StoreUnavailable(f"{uri} cannot be reached: {error} ({error.__cause__})") from error
        raise


@contextmanager
def sending() -> Iterator[None]:
    """Raise what the driver says of values that it cannot send as an `InvalidInput`."""
    try:
        yield
    except GraphretError:
        raise
    except (OverflowError, ValueError, TypeError) as error:
        raise InvalidInput(f"a parameter cannot be sent to Neo4j: {error}") from error


def _unsecured(error: BaseException | None, uri: str) -> GraphretError | None:
    """What is wrong with TLS, which the driver says in a cause of its error; `None` where nothing is."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return StoreUnavailable(
                f"{uri}: the server's certificate is not trusted: {error.verify_message}; name the file of the "
                "authority that signed it in SSL_CERT_FILE, or hand it to the driver (options=)"
            )
        if isinstance(error, ssl.SSLError):
            return StoreUnavailable(f"{uri}: the connection cannot be encrypted: {error}")
        error = error.__cause__
    return None


def _translate(error: Exception, uri: str) -> GraphretError:
    import neo4j.exceptions as driver

    if (unsecured := _unsecured(error, uri)) is not None:
        return unsecured
    code = getattr(error, "code", None) or ""
    # the message of a `DriverError` is one of GQL's that says nothing, and warns that it is a preview
    said = (isinstance(error, driver.Neo4jError) and error.message) or " ".join(str(error).split())
    if isinstance(error, driver.Forbidden) and code.endswith(".AccessMode"):
        return QueryRefused(f"the query would write: {said}")
    impersonation = code.endswith(".ArgumentError") and said.startswith("Impersonation is not supported")
    if impersonation or isinstance(error, (driver.AuthError, driver.Forbidden)) or ".Security." in code:
        return AccessDenied(f"{uri} refuses access: {said}")
    if "TransactionTimedOut" in code:
        return QueryTimeout(f"the query took longer than it was given: {said}")
    if "DatabaseNotFound" in code:
        return StoreMismatch(f"{uri}: {said}")
    if isinstance(error, driver.ConfigurationError):
        return InvalidInput(f"{uri}: {said}")
    if isinstance(error, (driver.ServiceUnavailable, driver.SessionExpired, driver.TransientError)):
        return StoreUnavailable(f"{uri} cannot be reached, or the connection was lost: {said}")
    if ".Statement." in code or ".Procedure." in code:
        return QueryRefused(said)
    return StoreError(f"{uri}: {said}")
