"""`RayExecutor`: blocks as tasks of a Ray cluster, with retries and saved results."""

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
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic

from graphret.errors import ClusterError, MissingDependency
from graphret.executors.blocks import B, Progress, R
from graphret.executors.reported import awaited, reporting
from graphret.storage import Folder, storing

# How many blocks for each processor are submitted at once, so that all are busy while
# the oldest is awaited.
_AHEAD = 4
_DIGEST = 16


class RayExecutor:
    """Runs blocks as tasks of a Ray cluster.

    The machines of the cluster need the same version of graphret. The graph equals that
    of a build on one machine. A block whose worker dies is run again. With a folder for
    finished blocks, an interrupted build resumes from them.

    Parameters
    ----------
    address
        The address of a cluster, as `ray.init` takes it: ``"auto"`` for the one that
        this machine belongs to. By default that of ``$RAY_ADDRESS``, or a new one on
        this machine. An initialised Ray is used as it is.
    blocks
        A folder on this machine for the results of finished blocks, by their content.
        Results of a function or object that cannot be pickled by name, such as a
        lambda, are not saved.
    retries
        How often a block is run again after its worker died.
    options
        Further options of `ray.init`, such as ``num_cpus`` and ``object_store_memory``.

    Raises
    ------
    MissingDependency
        Without the extra `ray`.
    ClusterError
        If there is no cluster at the address. In a build, if a block lost its worker
        too often, or neither the memory nor the disks of the cluster have room for a
        block.
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
        init_options: dict[str, Any] = {
            "logging_level": logging.ERROR,
            "log_to_driver": False,
        } | options
        if not ray.is_initialized():
            with _cluster_errors(
                f"the Ray cluster {address or 'of this machine'} cannot be used"
            ):
                host, _, port = (
                    (address or os.environ.get("RAY_ADDRESS", ""))
                    .removeprefix("ray://")
                    .rpartition(":")
                )
                if port.isdecimal():  # Ray would try for a quarter of an hour
                    socket.create_connection((host, int(port)), timeout=5.0).close()
                is_local = not host and address != "auto"
                local_options = {"include_dashboard": False} if is_local else {}
                ray.init(address, **local_options | init_options)

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, gpu: bool = False
    ) -> Iterator[R]:
        """Yield a function's result for each block, in order.

        With `gpu` each block has a GPU to itself, if there are any.
        """
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        processor = "GPU" if gpu and resources.get("GPU") else "CPU"
        ahead = _AHEAD * int(resources.get(processor, 1))
        tasks = self._tasks(function, on_gpu=processor == "GPU")
        waiting: deque[_Block[B]] = deque()
        try:
            for value in blocks:
                waiting.append(tasks.submit(value))
                if len(waiting) > ahead:
                    yield tasks.finish(waiting.popleft())
            while waiting:
                yield tasks.finish(waiting.popleft())
        finally:
            for block in waiting:  # only after a failure
                tasks.give_up(block)

    def run(
        self,
        function: Callable[[B, Progress], R],
        source: Callable[[], B],
        progress: Progress,
    ) -> R:
        """Return ``function(source(), progress)``, both computed by the cluster.

        The source runs on this machine and in this folder, as it may read files, and
        the function on the machine with the most memory. Of what they make only the
        result comes into this process; log messages and progress do while they run. A
        task whose worker dies is not run again.

        Raises
        ------
        ClusterError
            When a worker dies, or the cluster fails. An error of a function is raised
            here as it is.
        """
        import ray
        from ray.util.queue import Queue

        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        alive = (node for node in nodes if node["Alive"])
        largest = max(alive, key=lambda node: node["Resources"].get("memory", 0.0))
        here = ray.get_runtime_context().get_node_id()
        with _cluster_errors(self._failed(_name_of(function))):
            queue = Queue(actor_options={"num_cpus": 0})
            try:
                value = _placed(_source, here).remote(queue, source, os.getcwd())
                task = _placed(_work, largest["NodeID"]).remote(queue, function, value)
                result: R = awaited(task, queue, progress)
            finally:
                queue.shutdown()
        return result

    def _tasks(self, function: Callable[[B], R], *, on_gpu: bool) -> _Tasks[B, R]:
        """Return a function as tasks of the cluster, under its name."""
        import ray

        name = _name_of(function)
        # With no limit of calls a process keeps what the function cached, such as a
        # model on its GPU.
        options: Any = {
            "max_retries": self.retries,
            "num_gpus": int(on_gpu),
            "max_calls": 0,
            "num_cpus": 1,
        }
        remote = ray.remote(**options)(_run).options(name=name)
        place = self._place_of(name, function)
        return _Tasks(function, remote, place, self._failed(name))

    def _failed(self, name: str) -> str:
        """Return the beginning of the message when Ray fails at a function."""
        failed = f"the Ray cluster failed at {name}"
        if self.blocks is None:
            return failed
        return (
            f"{failed}; build again, and it goes on from the finished blocks in"
            f" {self.blocks}"
        )

    def _place_of(self, name: str, function: Any) -> Callable[[Any], Path | None]:
        """Return the file of a block's result, by content of block and function."""
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
    """A block, the file for its result, and its task, if one was submitted."""

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
        Returns the file for the result of a block, `None` for none.
    failed
        The message when Ray fails.
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

    def submit(self, value: B) -> _Block[B]:
        """Submit a block, unless its result is saved."""
        path = self.place(value)
        if path is not None and path.exists():
            return _Block(value, path)
        return _Block(value, path, self._submit(value))

    def _submit(self, value: B) -> Any:
        import ray

        with _cluster_errors(self.failed):
            if not self.shared:
                self.shared.append(ray.put(self.function))
            return self.remote.remote(self.shared, value)

    def finish(self, block: _Block[B]) -> R:
        """Return the result of a block, and save it if it has a file."""
        import ray

        if block.path is not None and block.task is None:
            saved = _read(block.path)
            if saved is not None:
                return saved[0]  # type: ignore[no-any-return]
        with _cluster_errors(self.failed):
            result: R = ray.get(block.task or self._submit(block.value))
        if block.path is not None:
            _write(block.path, result)
        return result

    def give_up(self, block: _Block[B]) -> None:
        """Save the result of a block if it is finished, and else cancel it."""
        import ray

        if block.task is None:
            return
        with suppress(Exception):
            if block.path is not None and ray.wait([block.task], timeout=0)[0]:
                self.finish(block)
            else:
                ray.cancel(block.task)


def _name_of(function: Any) -> str:
    """Return the module and name of a function, or of the class of an object."""
    while isinstance(function, partial):
        function = function.func
    definition = function if hasattr(function, "__qualname__") else type(function)
    return f"{definition.__module__}.{definition.__qualname__}"


def _placed(function: Callable[..., Any], node: str) -> Any:
    """Return a function as one task, of no processor of its own, on a machine."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # No processor, as it waits for blocks most of the time; and once, as a machine that
    # is too small would kill it again.
    return ray.remote(num_cpus=0, max_retries=0)(function).options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
    )


def _source(queue: Any, source: Callable[[], Any], folder: str) -> Any:
    with reporting(queue), chdir(folder):
        return source()


def _work(queue: Any, function: Callable[..., Any], value: Any) -> Any:
    with reporting(queue) as progress:
        return function(value, progress)


@contextmanager
def _cluster_errors(what: str) -> Iterator[None]:
    """Re-raise a function's own error from a worker, and Ray's as a `ClusterError`."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except (RayError, OSError, RuntimeError, ValueError) as error:
        cause = error.cause if isinstance(error, RayTaskError) else error
        if isinstance(error, RayTaskError) and not isinstance(cause, RayError):
            raise cause from error
        first_line = next(iter(str(cause).splitlines()), "")
        raise ClusterError(f"{what}: {type(cause).__name__}: {first_line}") from error


def _run(shared: list[Any], block: Any) -> Any:
    return _function(shared[0])(block)


@lru_cache(maxsize=2)
def _function(reference: Any) -> Callable[[Any], Any]:
    """Fetch a function once a process, so that it keeps what it caches."""
    import ray

    function: Callable[[Any], Any] = ray.get(reference)
    return function


class _ByValuePickler(pickle.Pickler):
    """Makes the same bytes of equal values, without identities and orders of sets."""

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
    """Reads lists, tuples, dictionaries, strings, numbers and arrays, but no code."""

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
    """Return the result in a file, `None` if it cannot be read or was altered."""
    with suppress(OSError, pickle.UnpicklingError):
        data = path.read_bytes()
        if (
            hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest()
            == data[:_DIGEST]
        ):
            return (_TrustedUnpickler(io.BytesIO(data[_DIGEST:])).load(),)
    return None


def _write(path: Path, result: Any) -> None:
    """Save a result, as a whole or not at all."""
    data = pickle.dumps(result, protocol=5)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(hashlib.blake2b(data, digest_size=_DIGEST).digest() + data)
        os.replace(fresh, path)
