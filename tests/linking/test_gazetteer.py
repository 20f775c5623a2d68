"""Names that come and go, found as a plain search of all of them at every place finds them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.linking.gazetteer import Gazetteer
from graphret.text import tokenize, words

#: Words that begin, end and lie within one another; accented, wide and unspaced ones, and what is no word.
TEXTS = st.lists(st.sampled_from(["b", "ab", "abb", "É", "Straße", "東京", "𝒳", "!\ud800"]), min_size=5, max_size=9)
#: The words of a text that are names.
SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=5, max_size=5)
#: Whether a name is added or discarded, and which.
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=10, max_size=20)


@settings(max_examples=25)
@given(TEXTS, SPANS, STEPS)
def test_names_that_come_and_go_are_found_as_by_a_plain_search(
    text: list[str], spans: list[tuple[int, int]], steps: list[tuple[bool, int]]
) -> None:
    gazetteer, known, added = Gazetteer(), dict[tuple[str, ...], int](), 0
    said = words(" ".join(text))
    names = [" ".join(text[first : first + length]) for first, length in spans]
    for adds, which in steps:
        name = names[which]
        run = tuple(words(name))
        if adds:
            assert gazetteer.add(name) == (known.setdefault(run, added) if run else None)
            added += 1
        else:
            gazetteer.discard(name)
            known.pop(run, None)
        every = [
            (known[tuple(said[i:j])], i, j)
            for i in range(len(said))
            for j in range(len(said), i, -1)
            if tuple(said[i:j]) in known
        ]
        assert gazetteer.find_every(said) == every
        longest: list[tuple[int, int, int]] = []
        for match in every:
            if not longest or match[1] >= longest[-1][2]:
                longest.append(match)
        assert gazetteer.find_words(said) == longest
        assert gazetteer.position(name) == known.get(run)


def test_names_are_found_in_the_text_as_given() -> None:
    names = ["New York", "New York City", "São Paulo", "York", "!!!", "york", "東京"]
    text = "From NEW YORK (city) to Sao Paulo, not Yorkshire; York, 私は東京に."
    found = Gazetteer(names).find_tokens(tokenize(text))
    assert [(names[m.name_index], text[m.start : m.end]) for m in found] == [
        ("New York City", "NEW YORK (city"),
        ("São Paulo", "Sao Paulo"),
        ("York", "York"),
        ("東京", "東京"),
    ]
