"""Names that come and go, found as a plain search of all of them at every place finds them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from graphret.gazetteer import Gazetteer
from graphret.text import words

#: Words that begin, end and lie within one another; accented, wide and unspaced ones, and what is no word.
TEXTS = st.lists(st.sampled_from(["b", "ab", "abb", "É", "Straße", "東京", "𝒳", "!\ud800"]), min_size=5, max_size=9)
#: The words of a text that are names.
SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=5, max_size=5)
#: Whether a name is added or discarded, which, and whether names are looked for after that.
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.booleans()), min_size=10, max_size=20)


def every(known: dict[tuple[str, ...], int], run: Sequence[str]) -> list[tuple[int, int, int]]:
    return [
        (known[tuple(run[i:j])], i, j)
        for i in range(len(run))
        for j in range(len(run), i, -1)
        if tuple(run[i:j]) in known
    ]


def longest(known: dict[tuple[str, ...], int], run: Sequence[str]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for match in every(known, run):
        if not found or match[1] >= found[-1][2]:
            found.append(match)
    return found


@given(TEXTS, SPANS, STEPS)
def test_names_that_come_and_go_are_found_as_by_a_plain_search(
    text: list[str], spans: list[tuple[int, int]], steps: list[tuple[bool, int, bool]]
) -> None:
    gazetteer, known, added = Gazetteer(), dict[tuple[str, ...], int](), 0
    said = words(" ".join(text))
    names = [" ".join(text[first : first + length]) for first, length in spans]
    for adds, which, asks in steps:
        name = names[which]
        run = tuple(words(name))
        if adds:
            assert gazetteer.add(name) == (known.setdefault(run, added) if run else None)
            added += 1
        else:
            gazetteer.discard(name)
            known.pop(run, None)
        if asks:
            assert gazetteer.find_every(said) == every(known, said)
            assert gazetteer.find_words(said) == longest(known, said)
        assert (len(gazetteer), gazetteer.position(name)) == (len(known), known.get(run))


def test_a_write_leaves_the_automaton_of_the_other_names_as_it_is() -> None:
    gazetteer = Gazetteer([f"name {i}" for i in range(1000)])
    assert len(gazetteer.find("name 7, name 8")) == 2
    (most,) = gazetteer._levels
    for i in range(200):
        gazetteer.add(f"later {i}")
        gazetteer.discard(f"name {i}")
        assert [match.name_index for match in gazetteer.find(f"later {i}, name {i}, name 999")] == [1000 + i, 999]
        assert gazetteer._levels[0] is most
        assert len(gazetteer._levels) <= 10
    for i in range(800):
        gazetteer.discard(f"name {200 + i}")
    assert len(gazetteer.find("name 999, later 0, later 199")) == 2
    assert sum(len(names) for _, names in gazetteer._levels) == 200


def test_threads_that_ask_at_once_find_the_same() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            names = [f"{i}th name" for i in range(100)]
            gazetteer, text = Gazetteer(names), " ".join(names)
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(gazetteer.find, [text] * 8))
            assert [len(one) for one in found] == [100] * 8
            assert len(gazetteer._levels) == 1
    finally:
        sys.setswitchinterval(usual)
