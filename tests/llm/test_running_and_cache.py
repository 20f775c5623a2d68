"""Coroutines from synchronous code, and answers on disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from graphret.errors import StorageError
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.running import run_sync


async def which_thread() -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


async def fail() -> None:
    raise ValueError("as it is")


def test_without_a_loop_it_runs_here() -> None:
    assert run_sync(which_thread()) == threading.get_ident()
    with pytest.raises(ValueError, match="as it is"):
        run_sync(fail())


async def test_with_a_loop_it_runs_elsewhere() -> None:
    assert run_sync(which_thread()) != threading.get_ident()
    with pytest.raises(ValueError, match="as it is"):
        run_sync(fail())


def test_answers_stay(tmp_path: Path) -> None:
    key = cache_key("m", {"b": 1, "a": [2]})
    assert key == cache_key("m", {"a": [2], "b": 1})
    assert key != cache_key("m", {"b": 1, "a": ["2"]})
    with AnswerCache(tmp_path / "new") as cache, AnswerCache(tmp_path / "new") as other:
        assert cache.get(key) is None
        cache.put(key, "one")
        other.put(key, "two")
        assert (cache.get(key), len(cache)) == ("two", 1)


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be opened"):
        AnswerCache(tmp_path / "file")
