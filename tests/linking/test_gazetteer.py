"""Names that come and go, found in a text as given."""

from __future__ import annotations

from graphret.linking.gazetteer import Gazetteer
from graphret.text import tokenize, words


def test_the_longest_names_are_found_in_the_text_as_given() -> None:
    names = ["New York", "New York City", "São Paulo", "York", "!!!", "york", "東京"]
    text = "From NEW YORK (city) to Sao Paulo, not Yorkshire; York, 私は東京に."
    gazetteer = Gazetteer(names)
    found = [(names[m.name_index], text[m.start : m.end]) for m in gazetteer.find_tokens(tokenize(text))]
    expected = ["New York City", "São Paulo", "York", "東京"]
    assert found == list(zip(expected, ["NEW YORK (city", "Sao Paulo", "York", "東京"], strict=True))
    said = words("new york city")
    assert gazetteer.find_every(said) == [(1, 0, 3), (0, 0, 2), (3, 1, 2)]
    gazetteer.discard("New York City")
    assert gazetteer.find_words(said) == [(0, 0, 2)]
    assert gazetteer.position("New York City") is None
    assert gazetteer.find_words(words("York City")) == [(3, 0, 1)]
    gazetteer.add("york city")
    assert [match[1:] for match in gazetteer.find_words(words("York City"))] == [(0, 2)]
