"""`RayExecutor`: blocks as tasks of a Ray cluster, done again where a worker dies,
finished ones kept in a folder.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import secrets
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic

from graphret.errors import ClusterError, MissingDependency
from graphret.executors.blocks import B, R
from graphret.storage import Folder, storing

# Blocks for each processor that are given out at once: all are busy while the oldest is
# waited for.
_AHEAD = 4
_DIGEST = 16


class RayExecutor:
    """Runs blocks as tasks of a Ray cluster; graphret, of the same version, is
    installed on its machines.

    The graph is the one that a build on one machine makes. A block whose worker dies is
    done again. Where there is a folder to keep finished ones in, a build that broke off
    and is begun again goes on from them.

    Parameters
    ----------
    address
        Of a cluster, as `ray.init` takes it: ``"auto"`` for the one that this machine
        belongs to. By default that of ``$RAY_ADDRESS``, or one that is started on this
        machine. A Ray that is initialised already is used as it is.
    blocks
        A folder on this machine for the results of finished blocks, by their content.
        Those of a function or an object that has no name to be pickled by, such as a
        lambda, are not kept.
    retries
        How often a block is done again whose worker died.
    options
        More for `ray.init`, such as ``num_cpus`` and ``object_store_memory``.

    Raises
    ------
    MissingDependency
        Without the extra `ray`.
    ClusterError
        Where there is no cluster at the address. In a build, where a block lost its
        worker too often, or where neither the memory nor the disks of the cluster have
        room for a block.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        blocks: Folder | None = None,
        retries: int = 3,
        **options: Any,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependency("ray", "ray", "A build on a cluster") from error
        self.blocks = None if blocks is None else Path(blocks)
        self.retries = retries
        given: dict[str, Any] = {
            "logging_level": logging.ERROR,
            "log_to_driver": False,
        } | options
        if not ray.is_initialized():
            with _telling(
                f"the Ray cluster {address or 'of this machine'} cannot be used"
            ):
                host, _, port = (
                    (address or os.environ.get("RAY_ADDRESS", ""))
                    .removeprefix("ray://")
                    .rpartition(":")
                )
                if port.isdecimal():  # Ray would try for a quarter of an hour
                    socket.create_connection((host, int(port)), timeout=5.0).close()
                here = {} if host or address == "auto" else {"include_dashboard": False}
                ray.init(address, **here | given)

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        """Yield what a function returns for each block, in order; each has a GPU to
        itself where there are any.
        """
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        processor = "GPU" if gpu and resources.get("GPU") else "CPU"
        ahead = _AHEAD * int(resources.get(processor, 1))
        tasks = self._tasks(function, on_gpu=processor == "GPU")
        waiting: deque[_Block[B]] = deque()
        try:
            for value in blocks:
                waiting.append(tasks.begun(value))
                if len(waiting) > ahead:
                    yield tasks.finish(waiting.popleft())
            while waiting:
                yield tasks.finish(waiting.popleft())
        finally:
            for block in waiting:  # there are some after a failure
                tasks.give_up(block)

    def _tasks(self, function: Callable[[B], R], *, on_gpu: bool) -> _Tasks[B, R]:
        """Return a function as tasks of the cluster, under its name."""
        import ray

        named: Any = function if hasattr(function, "__qualname__") else type(function)
        name = f"{named.__module__}.{named.__qualname__}"
        # A process that runs without end keeps what it made of the function, such as a
        # model on its GPU.
        options: Any = {
            "max_retries": self.retries,
            "num_gpus": int(on_gpu),
            "max_calls": 0,
            "num_cpus": 1,
        }
        failed = f"the Ray cluster failed at {name}"
        if self.blocks is not None:
            failed += (
                "; build again, and it goes on from the finished blocks in"
                f" {self.blocks}"
            )
        remote = ray.remote(**options)(_run).options(name=name)
        return _Tasks(function, remote, self._place_of(name, function), failed)

    def _place_of(self, name: str, function: Any) -> Callable[[Any], Path | None]:
        """Return where the result of a block is kept, by its content and that of the
        function.
        """
        folder, identity = self.blocks, b""
        with suppress(pickle.PicklingError, AttributeError, TypeError):
            identity = _digest((version("graphret"), name, function))
        if folder is None or not identity:
            return lambda block: None

        def place(block: Any) -> Path:
            key = _digest((identity, block)).hex()
            return folder / key[:2] / key[2:]

        return place


@dataclass(frozen=True, slots=True)
class _Block(Generic[B]):
    """A block, the file for its result, and its task, if that was begun."""

    value: B
    path: Path | None
    task: Any = None


class _Tasks(Generic[B, R]):
    """A function as tasks of a cluster, one for each block.

    Parameters
    ----------
    remote
        The task, which takes a reference to the function, and a block.
    place
        Where the result of a block is kept, `None` where it is not.
    failed
        What is said where Ray fails.
    """

    def __init__(
        self,
        function: Callable[[B], R],
        remote: Any,
        place: Callable[[B], Path | None],
        failed: str,
    ) -> None:
        self.function, self.remote, self.place = function, remote, place
        self.failed = failed
        self.shared: list[Any] = []  # the reference, once there is a task

    def begun(self, value: B) -> _Block[B]:
        """Begin a block, unless its result is there."""
        path = self.place(value)
        if path is not None and path.exists():
            return _Block(value, path)
        return _Block(value, path, self._begin(value))

    def _begin(self, value: B) -> Any:
        import ray

        with _telling(self.failed):
            if not self.shared:
                self.shared.append(ray.put(self.function))
            return self.remote.remote(self.shared, value)

    def finish(self, block: _Block[B]) -> R:
        """Return the result of a block, and keep it where there is a place for it."""
        import ray

        if block.path is not None and block.task is None:
            kept = _read(block.path)
            if kept is not None:
                return kept[0]  # type: ignore[no-any-return]
        with _telling(self.failed):
            result: R = ray.get(block.task or self._begin(block.value))
        if block.path is not None:
            _write(block.path, result)
        return result

    def give_up(self, block: _Block[B]) -> None:
        """Keep the result of a block that is finished, and cancel one that is not."""
        import ray

        if block.task is None:
            return
        with suppress(Exception):
            if block.path is not None and ray.wait([block.task], timeout=0)[0]:
                self.finish(block)
            else:
                ray.cancel(block.task)


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Raise what a function raised on a worker as if it had been here, and what failed
    of Ray as a `ClusterError`.
    """
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except (RayError, OSError, RuntimeError, ValueError) as error:
        cause = error.cause if isinstance(error, RayTaskError) else error
        if isinstance(error, RayTaskError) and not isinstance(cause, RayError):
            raise cause from error
        said = next(iter(str(cause).splitlines()), "")
        raise ClusterError(f"{what}: {type(cause).__name__}: {said}") from error


def _run(shared: list[Any], block: Any) -> Any:
    return _function(shared[0])(block)


@lru_cache(maxsize=2)
def _function(reference: Any) -> Callable[[Any], Any]:
    """Fetch a function, once for a process: it keeps what it makes when it is first
    called.
    """
    import ray

    found: Callable[[Any], Any] = ray.get(reference)
    return found


class _ByValuePickler(pickle.Pickler):
    """Makes the same bytes of equal values: it notes nothing of identity, and no order
    of sets.
    """

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=5)
        self.fast = True

    def persistent_id(self, value: Any) -> Any:
        if hasattr(value, "encode_documents"):
            return value.name  # equal names mean equal vectors
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else None


def _digest(value: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST)
    _ByValuePickler(SimpleNamespace(write=digest.update)).dump(value)
    return digest.digest()


class _TrustedUnpickler(pickle.Unpickler):
    """Reads lists, tuples, dictionaries, strings, numbers and arrays: nothing that
    could do anything.
    """

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in (
            "dtype",
            "ndarray",
            "_frombuffer",
            "_reconstruct",
            "scalar",
        ):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def _read(path: Path) -> tuple[Any] | None:
    """Return what a file holds, `None` where that cannot be read or was altered."""
    with suppress(OSError, pickle.UnpicklingError):
        data = path.read_bytes()
        if (
            hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest()
            == data[:_DIGEST]
        ):
            return (_TrustedUnpickler(io.BytesIO(data[_DIGEST:])).load(),)
    return None


def _write(path: Path, result: Any) -> None:
    """Keep a result, in whole or not at all."""
    data = pickle.dumps(result, protocol=5)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(hashlib.blake2b(data, digest_size=_DIGEST).digest() + data)
        os.replace(fresh, path)
