"""What is saved comes back, or is refused by name; no failure of a writer costs the previous index."""

from __future__ import annotations

import errno
import hashlib
import inspect
import json
import os
import pickle
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
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphret import _current, _files, storage
from graphret.errors import CorruptIndex, IndexLocked, InvalidInput, NewerVersion, NotAnIndex, StorageError
from graphret.storage import Bundle, Parts, Records, Strings, load, save, verify, writing

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def numbered(n: int, size: int = 4000) -> Parts:
    """Parts that say `n` in each of their files, so that a mixture of two saves shows."""
    return Parts(
        {"a": np.full(size, n), "b": np.full((3, 2), n, "f4")},
        {"s": Strings.of([str(n)] * 50)},
        {"r": Records.of([{"n": n}] * 10)},
        {"n": n},
    )


def put(folder: Path, n: int, **more: Any) -> None:
    save(folder, numbered(n, **more), kind="test", version=1)


def get(folder: Path, **more: Any) -> Bundle:
    return load(folder, kind="test", version=1, **more)


def number(folder: Path) -> int:
    """The number in a folder, after making sure that every part of it says the same."""
    bundle = get(folder)
    seen = {
        *bundle.array("a").tolist(),
        *bundle.array("b").ravel().tolist(),
        *map(int, bundle.strings("s")),
        *(r["n"] for r in bundle.records("r")),
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
        from graphret.errors import StorageError
        from graphret.storage import Bundle, Parts, Records, Strings, load, save, writing
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


# Columns


@given(st.lists(st.text()), st.data())
def test_strings_are_the_list_they_were_made_of(values: list[str], data: st.DataObject) -> None:
    column = Strings.of(iter(values))
    assert list(column) == column.tolist() == values
    assert len(column) == len(values)
    assert [column[i] for i in range(-len(values), len(values))] == values + values
    chosen = data.draw(st.slices(len(values)))
    assert list(column[chosen]) == values[chosen]
    assert list(column[chosen][::-1]) == values[chosen][::-1]
    if values:
        at = data.draw(st.lists(st.integers(0, len(values) - 1)))
        assert column.take(at) == column.take(np.array(at, np.uint32)) == [values[i] for i in at]
    assert list(pickle.loads(pickle.dumps(column))) == values


@given(st.lists(JSON))
def test_records_are_the_list_they_were_made_of(values: list[Any]) -> None:
    column = Records.of(values)
    assert column.tolist() == values
    assert [list(r) for r in column if isinstance(r, dict)] == [list(v) for v in values if isinstance(v, dict)]
    assert list(column[1:]) == values[1:]


def test_columns_longer_than_a_block() -> None:
    values = [f"ü{i}" * (i % 3) for i in range(40_000)]
    column = Strings.of(values)
    assert column.tolist() == values
    assert column[20_000:30_000].take([0, 9_999]) == [values[20_000], values[29_999]]
    for step in (-7, 2**63):
        assert list(column[::step]) == values[::step]


@pytest.mark.parametrize("bad", ["\ud800", 7, None, b"bytes"])
def test_what_is_no_string_is_refused_by_position(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="item 20001"):
        Strings.of(["fine"] * 20_001 + [bad, "fine"])


class _Odd:
    pass


circular: list[Any] = []
circular.append(circular)
deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), {1}, _Odd(), {1: 2}, {"a": [{None: 2}]}, "\ud800", np.int64(3), circular, deep]
)
def test_what_is_no_json_is_refused_by_position(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="item 2"):
        Records.of([{}, "fine", bad])


def test_positions_out_of_range() -> None:
    column = Strings.of("abc")
    for bad in ([3], [-1], [0, -1]):
        with pytest.raises(IndexError):
            column.take(bad)
    for index in (3, -4):
        with pytest.raises(IndexError):
            column[index]
    with pytest.raises(TypeError):
        column.take([0.5])
    with pytest.raises(TypeError):
        column.take([True, False, True])
    assert column.take([]) == []


def test_a_column_that_does_not_decode_names_the_item() -> None:
    offsets = np.array([0, 1, 2, 3])
    with pytest.raises(CorruptIndex, match="item 1"):
        list(Strings(np.frombuffer(b"a\xffb", np.uint8), offsets))
    with pytest.raises(CorruptIndex, match="item 2"):
        Records(np.frombuffer(b"12x", np.uint8), offsets).take([0, 2])


def test_a_column_of_arrays_that_do_not_fit() -> None:
    blob, offsets = np.zeros(3, np.uint8), np.array([0, 3])
    for wrong in (offsets[:0], np.array([0, 2]), np.array([1, 3]), offsets.astype("i4"), offsets.reshape(1, 2)):
        with pytest.raises(InvalidInput, match="offsets"):
            Strings(blob, wrong)
    with pytest.raises(InvalidInput, match="blob"):
        Strings(blob.astype("i8"), offsets)


# Round trips

ARRAYS = {
    "ints": np.arange(12).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(20, dtype="f4")[::3],
    "zero-dimensional": np.array(2.5),
    "empty": np.empty(0, "i4"),
    "no rows": np.empty((0, 5), "f2"),
    "bools": np.array([True, False]),
    "big-endian": np.arange(3, dtype=">i4"),
    "complex": np.array([1 + 2j]),
    "text": np.array(["ab", "ü"]),
    "bytes": np.array([b"ab", b"c"]),
    "dates": np.array(["2024-01-01", "NaT"], "M8[D]"),
    "fields": np.array([(1, 2.0)], [("x", "i4"), ("y", "f8")]),
    "../../odd: näme/\\\n*": np.ones(1),
    "x" * 500: np.ones(2),
}


@pytest.mark.parametrize("check", [True, False])
def test_arrays_come_back_mapped_and_read_only(folder: Path, check: bool) -> None:
    save(folder, Parts(ARRAYS), kind="test", version=1)
    bundle = get(folder, verify=check)
    assert bundle.names() == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        loaded = bundle.array(name)
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == array.dtype
        assert loaded.shape == array.shape
        assert not loaded.flags.writeable
        if array.size:
            assert isinstance(loaded.base, np.memmap)
            with pytest.raises(ValueError, match="WRITEABLE"):
                loaded.flags.writeable = True
    assert bundle.array("fortran").flags.f_contiguous
    for path in files(folder)[1:]:
        assert re.fullmatch(r"[0-9]{3}-[A-Za-z0-9._-]+\.npy|manifest\.json", path.name)
        if path.suffix == ".npy":
            np.load(path, mmap_mode="r", allow_pickle=False)


def test_columns_are_mapped_too(folder: Path) -> None:
    put(folder, 1)
    column = get(folder).strings("s")
    assert isinstance(column.blob.base, np.memmap)
    assert isinstance(column.offsets.base, np.memmap)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text()), st.lists(JSON), st.dictionaries(st.text(), JSON), st.text(min_size=1))
def test_columns_and_meta_round_trip(
    tmp_path: Path, strings: list[str], records: list[Any], meta: dict[str, Any], name: str
) -> None:
    save(tmp_path, Parts({}, {name: Strings.of(strings)}, {name: Records.of(records)}, meta), kind="test", version=1)
    bundle = get(tmp_path)
    assert bundle.strings(name).tolist() == strings
    assert bundle.records(name).tolist() == records
    assert bundle.meta == meta


def test_nested_parts(folder: Path) -> None:
    inner, middle, outer = numbered(1), Parts(meta={"k": 2}), Parts({"a": np.zeros(2)})
    middle.add("inner", inner)
    outer.add("middle", middle)
    outer.add("nothing", Parts())
    save(folder, outer, kind="test", version=1)
    bundle = get(folder)
    assert bundle.names() == ["a", *(f"middle/inner/{name}" for name in "abrs")]
    assert bundle.sub("middle").meta == {"k": 2, "inner": {"n": 1}}
    found = bundle.sub("middle").sub("inner")
    assert found.names() == list("abrs")
    assert found.meta == {"n": 1}
    assert found.array("a")[0] == 1
    assert found.folder == folder
    assert bundle.sub("nothing").names() == []
    for ask in (lambda: bundle.sub("other"), lambda: bundle.array("x"), lambda: bundle.strings("a")):
        with pytest.raises(CorruptIndex, match="has no"):
            ask()
    for prefix in ("", "a/b", "middle"):
        with pytest.raises(InvalidInput, match="prefix"):
            outer.add(prefix, Parts())


def test_what_was_loaded_can_be_saved_in_place(folder: Path) -> None:
    put(folder, 1)
    bundle = get(folder)
    for _ in range(2):
        save(folder, bundle.parts, kind="test", version=1)
        assert_clean(folder)
    assert number(folder) == 1
    assert bundle.array("a")[0] == 1  # its files are gone, its maps are not


def test_same_parts_same_bytes(tmp_path: Path) -> None:
    put(tmp_path / "one", 1)
    put(tmp_path / "two", 1)
    one, two = (files(tmp_path / name)[1:] for name in ("one", "two"))
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        (Parts({"bad one": np.array([object()])}), "bad one"),
        (Parts({"bad one": np.array([(1, None)], [("x", "i4"), ("y", "O")])}), "bad one"),
        (Parts({"bad one": [1, 2]}), "bad one"),  # type: ignore[dict-item]
        (Parts(strings={"bad one": ["x"]}), "bad one"),  # type: ignore[dict-item]
        (Parts(strings={"bad one": Records.of(["x"])}), "bad one"),  # type: ignore[dict-item]
        (Parts({"\ud800": np.ones(1)}), "names"),
        (Parts({3: np.ones(1)}), "names"),  # type: ignore[dict-item]
        (Parts(meta={"x": float("nan")}), "meta"),
        (Parts(meta={"x": {1: 2}}), "meta"),
        (Parts({"bad one": np.zeros(1, [(f"f{i}" * 20, "i4") for i in range(2000)])}), "bad one"),
    ],
)
def test_parts_that_cannot_be_stored(folder: Path, parts: Parts, named: str) -> None:
    put(folder, 1)
    with pytest.raises(InvalidInput, match=named):
        save(folder, parts, kind="test", version=1)
    assert number(folder) == 1
    assert_clean(folder)
    with pytest.raises(InvalidInput, match="version"):
        save(folder, Parts(), kind="test", version=1.5)  # type: ignore[arg-type]


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
    assert load(folder, kind="test", version=4).version == 3


def test_a_newer_layout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_current, "FORMAT_VERSION", 7)
        put(folder, 1)
    for act in (lambda: get(folder), lambda: verify(folder), lambda: put(folder, 2)):
        with pytest.raises(NewerVersion, match=r"version 7.* 1$"):
            act()
    assert len(generations(folder)) == 1


def test_verify_summarises(folder: Path) -> None:
    put(folder, 1)
    found = verify(folder)
    assert found["kind"] == "test"
    assert found["arrays"] == {"a": [4000], "b": [3, 2]}
    assert found["strings"] == {"s": 50}
    assert found["records"] == {"r": 10}
    assert found["files"] == 6
    assert found["bytes"] == sum(p.stat().st_size for p in generations(folder)[0].glob("*.npy"))
    json.dumps(found)


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


def test_a_header_that_disagrees_is_found_without_checksums(folder: Path) -> None:
    save(folder, Parts({"a": np.arange(8)}), kind="test", version=1)
    path = next(generations(folder)[0].glob("*.npy"))
    path.write_bytes(path.read_bytes().replace(b"<i8", b"<f8"))
    with pytest.raises(CorruptIndex, match=path.name):
        get(folder, verify=False)


def reseal(folder: Path, change: Any) -> None:
    """Rewrite a manifest, and CURRENT to match."""
    path = generations(folder)[0] / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))
    current = _current.read_current(folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    _current.swap(folder, {"generation": current["generation"], "kind": "test", "manifest": digest})


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("files"),
        lambda m: m.pop("meta"),
        lambda m: m.update(format="other"),
        lambda m: m.update(strings={"s": ["000-a.npy"]}),
        lambda m: m.update(arrays=[1]),
        lambda m: (
            m["arrays"].update(a="../../x.npy") or m["files"].update({"../../x.npy": m["files"].pop("000-a.npy")})
        ),
    ],
)
def test_a_manifest_that_makes_no_sense(folder: Path, change: Any) -> None:
    put(folder, 1)
    reseal(folder, change)
    with pytest.raises(CorruptIndex, match=r"manifest\.json"):
        get(folder)


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

    def failing(act: Any, partly: bool = False) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if partly:
                    act(args[0], args[1][: len(args[1]) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return act(*args, **kwargs)

        return wrapped

    put(folder, 1)
    monkeypatch.setattr(_files.HashedFile, "write", failing(_files.HashedFile.write, partly=True))
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
    assert failed > 20
    left[0] = 0
    put(folder, 3)
    assert number(folder) == 3
    assert_clean(folder)


def test_an_interrupted_first_save(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            put(folder, 1)
    with pytest.raises(NotAnIndex):
        get(folder)
    assert not generations(folder)
    put(folder, 2)
    assert number(folder) == 2
    assert_clean(folder)


@pytest.mark.skipif(os.name == "nt", reason="no limits on the size of files")
def test_a_file_that_the_system_does_not_let_grow(folder: Path) -> None:
    code = """
        import resource
        folder = Path(sys.argv[1])
        put(folder, 1)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            put(folder, 2, size=1_000_000)
        except StorageError as error:
            assert error.__cause__.errno == errno.EFBIG, error.__cause__
            assert "000-a.npy" in str(error), error
        else:
            raise AssertionError("saved")
        assert number(folder) == 1
        assert_clean(folder)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        put(folder, 3, size=1_000_000)
        assert number(folder) == 3
        assert_clean(folder)
    """
    finish(script(code, folder))


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


def test_two_processes_take_turns(folder: Path) -> None:
    put(folder, 0)
    code = """
        folder = Path(sys.argv[1])
        for _ in range(10):
            with writing(folder):
                put(folder, number(folder) + 1)
    """
    for process in [script(code, folder), script(code, folder)]:
        finish(process)
    assert number(folder) == 20


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


def test_a_generation_removed_while_it_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, 1)
    later, read_manifest = [2, 3], storage._read_manifest

    def overtaken(path: Path, digest: str) -> dict[str, Any]:
        if later:
            put(folder, later.pop(0))
        return read_manifest(path, digest)

    monkeypatch.setattr(storage, "_read_manifest", overtaken)
    assert get(folder).meta["n"] == 3
    later[:] = [4]
    assert verify(folder)["generation"] == generations(folder)[0].name


def test_a_generation_removed_and_none_in_its_place(folder: Path) -> None:
    put(folder, 1)
    shutil.rmtree(generations(folder)[0])
    with pytest.raises(CorruptIndex, match=r"manifest\.json: missing"):
        get(folder)
