"""What is saved comes back, or is refused by name; no failure of a writer costs the previous index."""

from __future__ import annotations

import errno
import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphret.errors import CorruptIndex, IndexLocked, NewerVersion, NotAnIndex, StorageError
from graphret.storage import Bundle, Parts, load, save, verify, writing


def numbered(n: int, size: int = 4000) -> Parts:
    """Parts that say `n` in each of their files, so that a mixture of two saves shows."""
    table = pa.table({"s": [str(n)] * 50, "d": pa.array([str(n)] * 50).dictionary_encode()})
    return Parts({"a": np.full(size, n), "b": np.full((3, 2), n, "f4")}, {"t": table}, {"n": n})


def put(folder: Path, n: int, **more: Any) -> None:
    save(folder, numbered(n, **more), kind="test", version=1)


def get(folder: Path, **more: Any) -> Bundle:
    return load(folder, kind="test", version=1, **more)


def number(folder: Path) -> int:
    """The number in a folder, after making sure that every part of it says the same."""
    bundle = get(folder)
    seen = {
        *bundle.arrays["a"].tolist(),
        *bundle.arrays["b"].ravel().tolist(),
        *(int(value) for column in bundle.columns("t").values() for value in column.to_pylist()),
        bundle.meta["n"],
    }
    assert len(seen) == 1
    return int(seen.pop())


def generations(folder: Path) -> list[Path]:
    return sorted(folder.glob("gen-*"))


def assert_clean(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == ["CURRENT", "LOCK"]
    assert len(names) == 3
    assert names[2].startswith("gen-")


def files(folder: Path) -> list[Path]:
    return [folder / "CURRENT", *sorted(generations(folder)[0].iterdir())]


def script(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that runs `code` with the helpers above at hand, and without this file's slower imports."""
    head = """
        from __future__ import annotations
        import errno, os, sys
        from pathlib import Path
        from typing import Any
        import numpy as np
        import pyarrow as pa
        from graphret.errors import StorageError
        from graphret.storage import Bundle, Parts, load, save, writing
    """
    helpers = [inspect.getsource(h) for h in (numbered, put, get, number, generations, assert_clean)]
    source = "\n".join([textwrap.dedent(head), *helpers, textwrap.dedent(code)])
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


# Round trips

ARRAYS = {
    "ints": np.arange(12).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(20, dtype="f4")[::3],
    "no rows": np.empty((0, 5), "f2"),
    "../../odd: näme/\\\n*": np.ones(1, bool),
    "x" * 500: np.ones(2),
}


@pytest.mark.parametrize("check", [True, False, None])
def test_arrays_come_back_mapped_and_read_only(folder: Path, check: bool | None) -> None:
    save(folder, Parts(ARRAYS), kind="test", version=1)
    bundle = get(folder, verify=check)
    assert bundle.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        loaded = bundle.arrays[name]
        np.testing.assert_array_equal(loaded, array)
        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        assert not loaded.flags.writeable
        assert not loaded.flags.owndata
    assert bundle.arrays["fortran"].flags.f_contiguous
    for path in files(folder)[1:]:
        assert re.fullmatch(r"[0-9]{3}-[A-Za-z0-9._-]+\.npy", path.name)
        if path.suffix == ".npy":
            np.load(path, mmap_mode="r", allow_pickle=False)


def test_tables_are_mapped_and_others_can_open_them(folder: Path) -> None:
    table = pa.table(
        {"id": ["a", "b"], "n": pa.array([1, 2], pa.int32()), "k": pa.array(["x", "x"]).dictionary_encode()}
    )
    meta = {"ü": [1, None, {"x": 0.1}]}
    save(folder, Parts(tables={"graph/nodes": table, "none": table[:0]}, meta=meta), kind="test", version=1)
    before = pa.total_allocated_bytes()
    bundle = get(folder)
    assert bundle.tables["graph/nodes"] == table
    assert bundle.columns("none")["n"].to_numpy().dtype == np.int32
    assert pa.total_allocated_bytes() == before  # nothing is read into memory
    assert bundle.meta == meta
    (file,) = generations(folder)[0].glob("*graph-nodes.arrow")
    assert pa.ipc.open_file(pa.memory_map(str(file))).read_all() == table


def test_nested_parts(folder: Path) -> None:
    middle, outer = Parts(meta={"k": 2}), Parts({"a": np.zeros(2)})
    middle.add("inner", numbered(1))
    outer.add("middle", middle)
    save(folder, outer, kind="test", version=1)
    bundle = get(folder)
    assert bundle.sub("middle").meta == {"k": 2, "inner": {"n": 1}}
    found = bundle.sub("middle").sub("inner")
    assert (sorted(found.arrays), sorted(found.tables), found.meta) == (["a", "b"], ["t"], {"n": 1})
    assert found.arrays["a"][0] == 1


def test_what_was_loaded_can_be_saved_in_place(folder: Path) -> None:
    put(folder, 1)
    bundle, first = get(folder), [path.read_bytes() for path in files(folder)[1:]]
    for _ in range(2):
        save(folder, bundle, kind="test", version=1)
        assert_clean(folder)
    assert number(folder) == 1
    assert [path.read_bytes() for path in files(folder)[1:]] == first  # the same parts are the same bytes
    assert bundle.arrays["a"][0] == 1  # its files are gone, its maps are not


# Refusals


def test_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotAnIndex, match="no such folder"):
        get(tmp_path / "absent")
    with pytest.raises(NotAnIndex, match="a file, not a folder"):
        get(tmp_path / "file")
    with pytest.raises(NotAnIndex, match="no graphret index"):
        verify(tmp_path / "empty")
    put(tmp_path / "one", 1)
    with pytest.raises(NotAnIndex, match="'test' index, not a 'other'"):
        load(tmp_path / "one", kind="other", version=1)


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    acts: list[Callable[[], object]] = [
        lambda: put(tmp_path, 1),
        lambda: writing(tmp_path).__enter__(),
        lambda: put(tmp_path / "thesis.txt", 1),
    ]
    for act in acts:
        with pytest.raises(NotAnIndex, match=re.escape(str(tmp_path))):
            act()
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(NotAnIndex):
        put(tmp_path, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["CURRENT", "thesis.txt"]
    (tmp_path / "thesis.txt").unlink()
    with pytest.raises(NotAnIndex):
        put(tmp_path, 1)


def test_files_beside_an_index_stay(folder: Path) -> None:
    put(folder, 1)
    (folder / "notes.txt").write_text("mine")
    (folder / "gen-mine").mkdir()
    put(folder, 2)
    assert number(folder) == 2
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "gen-mine").is_dir()


def test_another_kind_is_not_replaced(folder: Path) -> None:
    put(folder, 1)
    with pytest.raises(NotAnIndex, match=r"'test'.*'other'"):
        save(folder, Parts(), kind="other", version=1)
    assert number(folder) == 1


def test_newer_and_older_versions(folder: Path) -> None:
    save(folder, Parts(), kind="test", version=3)
    with pytest.raises(NewerVersion, match=r"version 3.* 2"):
        load(folder, kind="test", version=2)
    with pytest.raises(NotAnIndex, match=r"version 3.* 4; build it again"):
        load(folder, kind="test", version=4)


def test_a_newer_layout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("graphret.folder.FORMAT_VERSION", 7)
        put(folder, 1)
    for act in (lambda: get(folder), lambda: verify(folder), lambda: put(folder, 2)):
        with pytest.raises(NewerVersion, match=r"version 7.* 3; build it again"):
            act()
    assert len(generations(folder)) == 1


def test_verify_summarises(folder: Path) -> None:
    put(folder, 1)
    found = verify(folder)
    size = sum(p.stat().st_size for p in generations(folder)[0].glob("*-*"))
    assert (found["kind"], found["files"], found["bytes"]) == ("test", 3, size)


# Damage


def test_a_flipped_byte_is_found_and_named_in_every_file(folder: Path) -> None:
    parts = numbered(1, size=50)
    parts.arrays["empty"] = np.empty(0)
    save(folder, parts, kind="test", version=1)
    for path in files(folder):
        whole = path.read_bytes()
        for at in {0, 7, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
            for act in (lambda: get(folder), lambda: verify(folder)):
                with pytest.raises(CorruptIndex, match="^" + re.escape(f"{path}: ")):
                    act()
        path.write_bytes(whole)
    assert number(folder) == 1


@pytest.mark.parametrize("check", [True, False])
def test_a_file_cut_grown_or_missing_is_named(folder: Path, check: bool) -> None:
    put(folder, 1)
    for path in files(folder):
        whole = path.read_bytes()
        for content in (whole[:-1], whole[: len(whole) // 2], b"", whole + b"x"):
            path.write_bytes(content)
            with pytest.raises(CorruptIndex, match=re.escape(path.name)):
                get(folder, verify=check)
        path.unlink()
        with pytest.raises((CorruptIndex, NotAnIndex), match=re.escape(path.name)):
            get(folder, verify=check)
        path.write_bytes(whole)
    assert number(folder) == 1


def test_a_damaged_index_can_be_written_anew(folder: Path) -> None:
    for damage in (
        lambda: (folder / "CURRENT").write_text("garbage"),
        lambda: (folder / "CURRENT").unlink(),
        lambda: shutil.rmtree(generations(folder)[0]),
    ):
        put(folder, 1)
        damage()
        with pytest.raises((CorruptIndex, NotAnIndex)):
            get(folder)
        put(folder, 2)
        assert number(folder) == 2
        assert_clean(folder)


# Writers that fail


@contextmanager
def _watched(folder: Path) -> Iterator[list[int | None]]:
    """Collects the number of the OSError behind a StorageError that names `folder`."""
    errors: list[int | None] = []
    try:
        yield errors
    except StorageError as error:
        if str(folder) in str(error) and isinstance(error.__cause__, OSError):
            errors.append(error.__cause__.errno)
        raise


def test_a_failure_at_any_step_leaves_the_previous_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [0]

    def failing(act: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return act(*args, **kwargs)

        return wrapped

    put(folder, 1)
    monkeypatch.setattr(np.lib.format, "write_array", failing(np.lib.format.write_array))
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(os, "replace", failing(os.replace))
    monkeypatch.setattr(Path, "mkdir", failing(Path.mkdir))
    failed = 0
    while True:
        left[0] = failed + 1
        with suppress(StorageError), _watched(folder) as errors:
            put(folder, 2)
        if not errors:
            break
        failed += 1
        assert errors == [errno.ENOSPC]
        # Where only the sync of the last rename failed, both are kept.
        assert len(generations(folder)) == (2 if number(folder) == 2 else 1)
    assert failed > 9
    left[0] = 0
    put(folder, 3)
    assert number(folder) == 3
    assert_clean(folder)


@pytest.mark.skipif(os.name == "nt", reason="no fork")
def test_a_writer_killed_at_any_moment(folder: Path) -> None:
    code = """
        import random, signal, time
        folder, chance = Path(sys.argv[1]), random.Random(5)
        put(folder, 0, size=100_000)
        last = leftovers = 0
        for _ in range(15):
            pid = os.fork()
            if not pid:
                n = last
                while True:
                    n += 1
                    put(folder, n, size=100_000)
            time.sleep(chance.uniform(0, 0.12))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            n = number(folder)
            assert n >= last
            leftovers += len(generations(folder)) > 1
            put(folder, n + 1, size=100_000)
            last = number(folder)
            assert last == n + 1
            assert_clean(folder)
        print(leftovers)
    """
    assert int(finish(script(code, folder))) > 0  # some died half-way


# Writers and readers at once


def test_threads_take_turns(folder: Path) -> None:
    put(folder, 0)

    def add() -> None:
        for _ in range(4):
            with writing(folder):
                put(folder, number(folder) + 1)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert number(folder) == 12


def test_a_lock_that_is_not_released_in_time(folder: Path) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with writing(folder):
            put(folder, 1)  # takes the lock again, and does not give it back
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        with pytest.raises(IndexLocked, match=re.escape(str(folder))), writing(folder, timeout=0.1):
            pass
    finally:
        done.set()
        thread.join()
    with writing(folder, timeout=1), writing(folder, timeout=0):  # a thread may take it twice
        put(folder, 1)


def test_a_killed_writer_leaves_no_lock(folder: Path) -> None:
    code = """
        import time
        with writing(sys.argv[1]):
            print("held", flush=True)
            time.sleep(60)
    """
    process = script(code, folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(IndexLocked), writing(folder, timeout=0):
        pass
    process.kill()
    process.communicate()
    put(folder, 1)
    assert number(folder) == 1


def test_readers_never_fail_while_a_writer_swaps(folder: Path) -> None:
    put(folder, 0)
    code = """
        for n in range(1, 21):
            put(Path(sys.argv[1]), n)
    """
    process, seen = script(code, folder), []
    while process.poll() is None:
        seen.append(number(folder))
    finish(process)
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert number(folder) == 20
