"""What is saved comes back or is refused; a failing writer keeps the previous index."""

from __future__ import annotations

import errno
import os
import pickle
import random
import re
import shutil
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphret.columns import TextArray
from graphret.errors import (
    CorruptIndex,
    IndexChanged,
    IndexLocked,
    NewerVersion,
    NotAnIndex,
    StorageError,
)
from graphret.splice import Merge
from graphret.storage import (
    Bundle,
    Parts,
    load,
    save,
    save_beside,
    verify,
    writing,
)
from graphret.text_index import TextIndex


def numbered(n: int, size: int = 4000) -> Parts:
    """Parts that say `n` in each of their files, so that mixed saves show."""
    parts = Parts({"a": np.full(size, n), "b": np.full((3, 2), n, "f4")}, {"n": n})
    parts.add_texts("t", TextArray.of([str(n)] * 50))
    return parts


def put(folder: Path, n: int, **more: Any) -> None:
    save(folder, numbered(n, **more), kind="test")


def get(folder: Path, **more: Any) -> Bundle:
    return load(folder, kind="test", **more)


def number(folder: Path) -> int:
    """The number in a folder, after making sure that every part of it says the same."""
    bundle = get(folder)
    seen = {
        *bundle.arrays["a"].tolist(),
        *bundle.arrays["b"].ravel().tolist(),
        *map(int, bundle.texts("t").tolist()),
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


# Round trips

ARRAYS = {
    "ints": np.arange(12).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(20, dtype="f4")[::3],
    "no rows": np.empty((0, 5), "f2"),
    "../../odd: näme/\\\n*" + "x" * 500: np.ones(1, bool),
}


@pytest.mark.parametrize("check", [True, False])
def test_arrays_and_texts_come_back_mapped_and_others_can_open_them(
    folder: Path, check: bool
) -> None:
    meta = {"ü": [1, None, {"x": 0.1}]}
    texts = TextArray.of(["a", "", "näme 🎬", "b"])
    parts = Parts(dict(ARRAYS), meta)
    parts.add_texts("graph/nodes", texts[1:3])
    parts.add_texts("none", texts[:0])
    save(folder, parts, kind="test")
    bundle = get(folder, verify=check)
    assert bundle.meta == meta
    assert bundle.texts("graph/nodes").tolist() == ["", "näme 🎬"]
    assert bundle.texts("none").tolist() == []
    assert not bundle.texts("graph/nodes").numbers.data.flags.owndata
    for name, array in ARRAYS.items():
        loaded = bundle.arrays[name]
        np.testing.assert_array_equal(loaded, array)
        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        assert not loaded.flags.writeable
        assert not loaded.flags.owndata
    for path in files(folder)[1:]:  # by names that any file system takes
        assert re.fullmatch(r"[0-9]{3}-[A-Za-z0-9._-]+", path.name)
        np.load(path, mmap_mode="r", allow_pickle=False)


def test_what_was_loaded_can_be_saved_in_place(folder: Path) -> None:
    put(folder, 1)
    bundle, first = get(folder), [path.read_bytes() for path in files(folder)[1:]]
    for _ in range(2):
        save(folder, bundle, kind="test")
        assert_clean(folder)
    assert number(folder) == 1
    assert [
        path.read_bytes() for path in files(folder)[1:]
    ] == first  # the same parts are the same bytes
    assert bundle.arrays["a"][0] == 1  # its files are gone, its maps are not


# Refusals


@pytest.mark.parametrize(
    ("place", "act", "error", "message"),
    [
        ("absent", get, NotAnIndex, "no such folder"),
        ("file", get, NotAnIndex, "a file, not a folder"),
        ("empty", verify, NotAnIndex, "no graphret index"),
        (
            "one",
            lambda f: load(f, kind="other"),
            NotAnIndex,
            "'test' index, not a 'other'",
        ),
        (
            "one",
            lambda f: save(f, Parts(), kind="other"),
            NotAnIndex,
            r"'test'.*'other'",
        ),
        (
            "one",
            lambda f: save(f, numbered(2), kind="test", replaces="g"),
            IndexChanged,
            "load it again",
        ),
        ("layout", get, NewerVersion, r"version 99.* 15; build it again"),
        ("older", get, NotAnIndex, r"version 4.* 15; build it again"),
        ("layout", verify, NewerVersion, "version 99"),
        ("layout", lambda f: put(f, 2), NewerVersion, "version 99"),
    ],
)
def test_what_cannot_be_opened_or_replaced(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    act: Any,
    error: type[Exception],
    message: str,
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    put(tmp_path / "one", 1)
    for name, version in (("layout", 99), ("older", 4)):
        with monkeypatch.context() as patch:
            patch.setattr("graphret.storage.FORMAT_VERSION", version)
            put(tmp_path / name, 1)
    with pytest.raises(error, match=message):
        act(tmp_path / place)
    assert number(tmp_path / "one") == 1
    assert len(generations(tmp_path / "layout")) == 1


def test_files_of_others_are_left_alone(tmp_path: Path, folder: Path) -> None:
    (mine := tmp_path / "mine").mkdir()
    thesis, current = mine / "thesis.txt", mine / "CURRENT"
    thesis.write_text("mine")
    acts: list[Callable[[], object]] = [
        lambda: writing(mine).__enter__(),
        lambda: put(thesis, 1),
        lambda: put(mine, 1),
    ]
    for act in (
        *acts,
        lambda: current.write_text("MANIFEST-000001\n"),
        acts[-1],
        thesis.unlink,
        acts[-1],
    ):
        if act not in acts:
            act()
            continue
        with pytest.raises(NotAnIndex, match=re.escape(str(mine))):
            act()
    assert list(mine.iterdir()) == [current]
    put(folder, 1)  # and beside an index they stay, and are not counted
    (folder / "notes.txt").write_text("mine")
    (folder / "gen-mine").mkdir()
    put(folder, 2)
    assert (
        number(folder),
        (folder / "notes.txt").read_text(),
        (folder / "gen-mine").is_dir(),
    ) == (2, "mine", True)
    found, written = verify(folder), files(folder)[1:]
    size = sum(path.stat().st_size for path in written)
    assert (
        (found["kind"], found["files"], found["bytes"])
        == ("test", len(written), size)
        == ("test", 4, size)
    )


# Damage


def test_a_file_that_is_altered_cut_grown_or_missing_is_named(folder: Path) -> None:
    parts = numbered(1, size=50)
    parts.arrays["empty"] = np.empty(0)
    save(folder, parts, kind="test")
    acts: list[Callable[[], object]] = [
        lambda: get(folder),
        lambda: get(folder, verify=False),
        lambda: verify(folder),
    ]
    for path in files(folder):
        whole = path.read_bytes()
        places = {0, 7, len(whole) // 3, len(whole) // 2, len(whole) - 1}
        flipped = [
            whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in places
        ]
        for content in (
            *flipped,
            whole[:-1],
            whole[: len(whole) // 2],
            b"",
            whole + b"x",
        ):
            path.write_bytes(content)
            for act in acts:
                with pytest.raises(CorruptIndex, match="^" + re.escape(f"{path}: ")):
                    act()
        path.unlink()
        for act in acts:
            with pytest.raises((CorruptIndex, NotAnIndex), match=re.escape(path.name)):
                act()
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


def test_parts_are_laid_beside_an_index_and_replaced(folder: Path) -> None:
    put(folder, 1)
    files_before = {path: path.stat().st_mtime_ns for path in files(folder)[1:]}
    generation = verify(folder)["generation"]
    for n in (2, 3):
        generation = save_beside(folder, "more", numbered(n), replaces=generation)
        assert len(generations(folder)) == 2
        assert {path: path.stat().st_mtime_ns for path in files_before} == files_before
        bundle = get(folder)
        assert bundle.meta == {"n": 1, "more": {"n": n}}
        assert bundle.arrays["a"][0] == 1
        assert bundle.sub("more").arrays["a"][0] == n
        assert verify(folder)["files"] == 8
    for replaces in ("gen-0123456789abcdef", verify(folder)["generation"]):
        with pytest.raises(IndexChanged, match="load it again"):
            save_beside(folder, "more", numbered(4), replaces=replaces)
        put(folder, 5)  # in whole, and nothing of before stays
        assert_clean(folder)
        assert get(folder).meta == {"n": 5}


def beside(folder: Path, n: int) -> None:
    generation = verify(folder)["generation"]
    save_beside(folder, "more", numbered(n), replaces=generation)


@pytest.mark.parametrize("write", [put, beside])
def test_a_failure_at_any_step_leaves_the_previous_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, int], None]
) -> None:
    left = [0]

    def written() -> bool:
        meta = get(folder).meta
        return 2 in (meta["n"], meta.get("more", meta)["n"])

    def failing(act: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return act(*args, **kwargs)

        return wrapped

    put(folder, 1)
    monkeypatch.setattr(
        np.lib.format, "write_array", failing(np.lib.format.write_array)
    )
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(os, "replace", failing(os.replace))
    monkeypatch.setattr(Path, "mkdir", failing(Path.mkdir))
    failed = 0
    while True:
        left[0] = failed + 1
        caught: list[StorageError] = []
        try:
            write(folder, 2)
        except StorageError as error:
            caught.append(error)
        if not caught:
            break
        failed += 1
        assert str(folder) in str(caught[0])
        # Where only the sync of the last rename failed, both are kept.
        assert len(generations(folder)) == (2 if written() else 1)
    assert failed > 9
    left[0] = 0
    put(folder, 3)
    assert number(folder) == 3
    assert_clean(folder)


# Writers and readers at once


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
        with (
            pytest.raises(IndexLocked, match=re.escape(str(folder))),
            writing(folder, timeout=0.1),
        ):
            pass
    finally:
        done.set()
        thread.join()
    with (
        writing(folder, timeout=1),
        writing(folder, timeout=0),
    ):  # a thread may take it twice
        put(folder, 1)


def test_readers_never_fail_while_a_writer_swaps(folder: Path) -> None:
    put(folder, 0)
    writer, seen = (
        threading.Thread(target=lambda: deque(map(put, [folder] * 20, range(1, 21)))),
        [],
    )
    writer.start()
    while writer.is_alive():
        seen.append(number(folder))
    writer.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert number(folder) == 20


@given(st.lists(st.text(max_size=4), max_size=8), st.data())
def test_an_array_of_texts_is_the_list_of_them(
    texts: list[str], data: st.DataObject
) -> None:
    whole = TextArray.of(["before", *texts, "behind"])
    array = whole[1:-1]
    assert array.tolist() == texts
    assert array.equals(TextArray.of(texts))
    assert not array.equals(whole)
    places = st.lists(st.integers(0, len(texts) - 1)) if texts else st.just([])
    chosen = data.draw(places)
    taken = array.take(np.asarray(chosen, dtype=np.int64))
    assert taken.tolist() == [texts[place] for place in chosen]
    assert TextArray.concat([taken, array]).tolist() == [*taken.tolist(), *texts]
    part = data.draw(st.text(min_size=1, max_size=2))
    assert array.contain(part).tolist() == [part in text for text in texts]
    assert array.is_among({part}).tolist() == [text == part for text in texts]


@given(st.lists(st.text(max_size=4)), st.lists(st.text(max_size=4)), st.data())
def test_arrays_that_share_bytes_keep_their_texts_as_others_are_appended(
    texts: list[str], others: list[str], data: st.DataObject
) -> None:
    array, other = TextArray.of(texts), TextArray.of(others)
    at = data.draw(st.lists(st.integers(0, len(texts) - 1)) if texts else st.just([]))
    chosen = array.take(np.asarray(at, dtype=np.int64))
    first = TextArray.concat([array, other])
    second = TextArray.concat([first, chosen, other])
    taken = [texts[place] for place in at]
    assert array.tolist() == texts
    assert first.tolist() == [*texts, *others]
    assert second.tolist() == [*texts, *others, *taken, *others]
    assert pickle.loads(pickle.dumps(second)).equals(second)
    packed, offsets = second.pack()
    assert packed.tobytes() == "".join(second.tolist()).encode()
    assert TextArray.packed(packed, offsets).tolist() == second.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_texts_are_those_of_after_many_changes_and_what_is_gone_takes_no_room(
    seed: int,
) -> None:
    draw = random.Random(seed)
    names, texts = list[str](), list[str]()
    columns = [TextArray.of(names), TextArray.of(texts)]
    for step in range(200):
        n = len(texts)
        gone = sorted(draw.sample(range(n), min(n, draw.randint(0, 6))))
        at = sorted(draw.randint(0, n) for _ in range(draw.randint(0, 6)))
        fresh = [f"{step}.{i}" for i in range(len(at))], [f"é{step}"] * len(at)
        splice = Merge(n, np.asarray(gone, np.int64), np.asarray(at, np.int64))
        order = [
            place
            for before in range(n + 1)
            for place in (
                *(n + i for i, front in enumerate(at) if front == before),
                *({before} - {*gone, n}),
            )
        ]
        assert splice.order.tolist() == order
        assert splice.others.tolist() == [i for i, at in enumerate(order) if at >= n]
        names, texts = (
            [[*held, *new][place] for place in order]
            for held, new in zip((names, texts), fresh, strict=True)
        )
        columns = [
            splice.of_lists(column, TextArray.of(new))
            for column, new in zip(columns, fresh, strict=True)
        ]
        assert [column.tolist() for column in columns] == [names, texts]
        most = 3 * max(20, len(texts))
        assert all(column.spans.length <= most for column in columns)


@given(st.sets(st.text(max_size=4)), st.text(max_size=4))
def test_a_text_is_found_where_it_is(texts: set[str], unknown: str) -> None:
    ordered = sorted(texts)
    index = TextIndex.of(TextArray.of(ordered))
    parts = index.parts()
    opened = TextIndex.from_bundle(Bundle(parts.arrays, parts.meta))
    for found in (index, opened, pickle.loads(pickle.dumps(index))):
        assert [found.find(text) for text in ordered] == [*range(len(ordered))]
        assert (unknown in found) == (unknown in texts)
        assert dict(found.items()) == dict(found)
        assert list(found) == ordered


def test_a_text_is_found_behind_one_that_two_others_make_together() -> None:
    array = TextArray.of(["xa", "aaxa", "b"])
    assert array.contain("aa").tolist() == [False, True, False]
    with pytest.raises(IndexError, match="out of range"):
        array.take(np.asarray([-1]))
