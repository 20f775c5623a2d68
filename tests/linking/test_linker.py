"""Names normalised, spotted in questions, and mentions that become nodes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.errors import InvalidInput
from graphret.linking import Linker, MentionSpan, NameIndex
from graphret.linking.mentions import DOUBTFUL, find_mentions
from graphret.search import NodeText
from graphret.stores import MemoryStore
from graphret.text import normalize_name, tokenize, words
from graphret.types import Edge, Node


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("  Beyoncé Knowles-Carter ", "beyonce knowles carter"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Brøndby IF", "brondby if"),
        ("Łódź", "lodz"),
        ("O'Brien & Co.", "o brien co"),
        ("İstanbul", "istanbul"),
        ("Ёлка", "елка"),
        ("ガス", "ガス"),
        ("Ⅳ ﬁne ½", "iv fine 1 2"),
        ("soft\u00adhyphen", "softhyphen"),
        ("—", ""),
        ("❤\ufe0f", ""),
    ],
)
def test_normalize_name(name: str, normal: str) -> None:
    assert normalize_name(name) == normalize_name(normal)
    assert not normal.isascii() or normalize_name(name) == normal
    assert normalize_name("カス") != normalize_name("ガス")
    assert words("東京 tower") == ["東", "京", "tower"]


@settings(max_examples=25)
@given(st.text(max_size=60))
def test_tokens_are_the_normalised_text_cut_up_in_order(text: str) -> None:
    once, tokens = normalize_name(text), tokenize(text)
    assert normalize_name(once) == once == " ".join(once.split())
    assert "".join(word for word, _, _ in tokens) == once.replace(" ", "")
    assert words(text) == [word for word, _, _ in tokens]
    places = [(start, end) for _, start, end in tokens]
    assert places == sorted(places)
    assert all(
        word and " " not in word and 0 <= start < end <= len(text)
        for word, start, end in tokens
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The “Café”, now", [("the", 0, 3), ("cafe", 5, 9), ("now", 12, 15)]),
        ("学院（École", [("学", 0, 1), ("院", 1, 2), ("ecole", 3, 8)]),
        ("か\u3099x1年", [("か\u3099", 0, 2), ("x1", 2, 4), ("年", 4, 5)]),
        ("a\u00ad½b", [("a1", 0, 4), ("2b", 0, 4)]),
    ],
)
def test_tokens_say_where_their_words_stand(
    text: str, tokens: list[tuple[str, int, int]]
) -> None:
    assert tokenize(text) == tokens


EVERYDAY = [
    "It",
    "The",
    "Up",
    "She",
    "You",
    "War",
    "Love",
    "Film",
    "Director",
    "Hanks",
    "Women",
    "Human",
    "1984",
]
NAMES = [
    *EVERYDAY,
    "Tom Hanks",
    "The Girl",
    "Killer Joe",
    "The Killer",
    "In Darkness",
    "8 Women",
    "東京",
    "$",
    "???",
]
NAMES += [
    "$",
    "???",
    "Raiders of the Lost Ark",
    "Beyoncé Knowles-Carter",
    "The 'Human' Factor",
    "What Women Want",
    "I.O.U.S.A.",
]


@pytest.fixture(scope="module")
def book() -> NameIndex:
    return NameIndex((name, name, None) for name in NAMES)


def ids(found: list[MentionSpan]) -> list[str]:
    return [node_id for span in found for node_id in span.ids]


@pytest.mark.parametrize(
    "line",
    (Path(__file__).parent / "spots.tsv").read_text(encoding="utf-8").splitlines(),
)
def test_names_are_spotted_and_everyday_words_need_the_support_of_form(
    book: NameIndex, line: str
) -> None:
    how, question, names = line.split("\t")
    spans = find_mentions(question, book)
    assert ids(spans) == names.split("|") * bool(names)
    assert {span.score for span in spans} <= {DOUBTFUL if how == "doubtful" else 1}


def test_what_is_in_quotes_comes_before_what_overlaps_it() -> None:
    book = NameIndex((name, name, None) for name in ("The Girl", "Girl in Paris Town"))
    assert ids(find_mentions('who saw "The Girl" in Paris Town', book)) == ["The Girl"]
    assert ids(find_mentions("who saw The Girl in Paris Town", book)) == [
        "Girl in Paris Town"
    ]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_longest_of_overlapping_names_is_chosen_and_none_inside_of_it(
    data: st.DataObject,
) -> None:
    telling, small = ["fig", "kiwi", "lime", "plum"], ["the", "of"]
    some = st.lists(st.sampled_from([*telling, *small]), min_size=1, max_size=4)
    names = data.draw(
        st.lists(
            some.filter(lambda run: any(w in telling for w in run)).map(" ".join),
            max_size=8,
        )
    )
    run = data.draw(st.lists(st.sampled_from([*telling, *small, "eat"]), max_size=10))
    question = " ".join(run)

    def length(name: str) -> tuple[int, int]:
        return sum(word in telling for word in name.split()), len(name.split())

    spans = find_mentions(question, NameIndex((name, name, None) for name in names))
    for span, other in itertools.pairwise(spans):
        assert span.end < other.start
    for name in names:
        for first in range(len(run)):
            if run[first : first + len(name.split())] == name.split():
                start = len(" ".join([*run[:first], ""]))
                beside = [
                    span
                    for span in spans
                    if span.start < start + len(name) and start < span.end
                ]
                assert max(length(span.text) for span in beside) >= length(name)


def test_spots_stand_where_the_question_says_them(book: NameIndex) -> None:
    question = "Did  Tom-HANKS meet Beyonce\u0301 Knowles-Carter?"
    for span, text in zip(
        find_mentions(question, book),
        ["Tom-HANKS", "Beyonce\u0301 Knowles-Carter"],
        strict=True,
    ):
        assert question[span.start : span.end] == span.text == text


def test_one_name_of_several_nodes_and_names_that_do_not_count() -> None:
    book = NameIndex(
        [
            ("b", "Kismet", None),
            ("a", "KISMET", None),
            ("c", "Kismet Hardy", ["Oliver"]),
        ]
    )
    assert find_mentions("who saw Kismet", book)[0].ids == ("a", "b")
    assert find_mentions("who saw Kismet Hardy", book)[0].ids == ("c",)
    spans = find_mentions(
        "who saw Kismet Hardy", book, lambda ids: tuple(i for i in ids if i != "c")
    )
    assert [(span.text, span.ids) for span in spans] == [("Kismet", ("a", "b"))]


NODES = [
    Node(
        "hanks",
        ("Person",),
        "Tom Hanks",
        "An actor.",
        {"aliases": ["Thomas Jeffrey Hanks"], "born": 1956},
    ),
    Node("hardy", ("Person",), "Tom Hardy", "An actor from London.", {"born": 1977}),
    Node("matrix", ("Film",), "The Matrix", "A hacker learns what the world is."),
    Node("reloaded", ("Film",), "The Matrix Reloaded", "More of the same."),
    Node(
        "solaris72", ("Film",), "Solaris", "A station above an ocean.", {"year": 1972}
    ),
    Node(
        "solaris02", ("Film",), "Solaris", "A remake about the ocean.", {"year": 2002}
    ),
    Node(
        "mercury",
        ("Planet",),
        "Mercury (planet)",
        "Nearest to the sun.",
        {"aliases": "Hermes (planet)"},
    ),
    Node("god", ("God",), "Mercury", "A messenger."),
    Node("it", ("Film",), "It", "A clown."),
]


@pytest.fixture
def linker() -> Linker:
    return Linker.build(NODES)


def found(linker: Linker, mention: str, **options: Any) -> list[tuple[str, float, str]]:
    return [
        (linked.id, round(linked.score, 2), linked.how)
        for linked in linker.link(mention, **options)
    ]


def test_the_names_themselves_come_first_within_labels_and_conditions(
    linker: Linker,
) -> None:
    assert found(linker, "Tom Hanks") == [("hanks", 1.0, "exact")]
    assert found(linker, "tom  HANKS") == [("hanks", 0.99, "normalised")]
    assert found(linker, "thomas jeffrey hanks") == [("hanks", 0.97, "alias")]
    assert found(linker, "It") == [("it", 1.0, "exact")]
    assert found(linker, "Mercury") == [
        ("god", 1.0, "exact"),
        ("mercury", 0.97, "short"),
    ]
    assert found(linker, "Mercury (Planet)") == [("mercury", 0.99, "normalised")]
    assert found(linker, "Hermes") == [("mercury", 0.97, "short")]
    assert found(linker, "Solaris") == [
        ("solaris02", 1.0, "exact"),
        ("solaris72", 1.0, "exact"),
    ]
    assert found(linker, "Solaris", where={"year": {"$lt": 2000}}) == [
        ("solaris72", 1.0, "exact")
    ]
    assert found(linker, "Mercury", labels=["Planet"]) == [("mercury", 0.97, "short")]
    assert [
        linked.id for linked in linker.link("Tom", tau=0, where={"born": {"$gt": 1960}})
    ] == ["hardy"]


def test_a_name_that_is_like_it_scores_less(linker: Linker) -> None:
    (best,) = linker.link("Matrix Reloaded")
    assert (best.id, best.how) == ("reloaded", "similar")
    assert best.score == pytest.approx(0.9)  # "the" is a stop word
    assert [linked.id for linked in linker.link("Hanks", tau=0)] == ["hanks"]
    assert 0.4 < linker.link("Hanks")[0].score < 0.9
    assert linker.link("Nobody Whatever") == linker.link("???") == linker.link("") == []


def test_grasps_rule_by_mode() -> None:
    many = [Node(f"n{i}", name="Springfield") for i in range(20)]
    linker = Linker.build(many, documents=NodeText())
    assert [linked.id for linked in linker.link("Springfield")] == [
        "n0",
        "n1",
        "n10",
        "n11",
        "n12",
    ]
    assert len(linker.link("Springfield", mode="doc")) == 10
    assert len(linker.link("Springfield", k=7)) == 7


def test_only_what_comes_near_the_best_is_kept(linker: Linker) -> None:
    scores = [linked.score for linked in linker.link("Tom Matrix", tau=0, k=9)]
    assert scores == sorted(scores, reverse=True)
    top_scores = [linked.score for linked in linker.link("Tom Matrix", tau=0.8)]
    assert top_scores == [score for score in scores if score >= 0.8 * scores[0]][:5]
    assert len(top_scores) < len(scores) == 4


def test_an_encoder_takes_part_in_the_likeness(encoder: Any) -> None:
    plain, linker = Linker.build(NODES), Linker.build(NODES, encoder=encoder)
    (best,) = linker.link("Matrix Reloaded", k=1)
    cosine = float(
        encoder.encode_queries(["Matrix Reloaded"])[0]
        @ encoder.encode_documents(["The Matrix Reloaded"])[0]
    )
    assert best.score == pytest.approx(0.9 * (0.5 * 1.0 + 0.5 * cosine), rel=1e-4)
    assert plain.link("Matrix Reloaded", k=1)[0].score > best.score
    assert linker.link("Solaris")[0].how == "exact"


def test_a_description_is_looked_up_in_documents(encoder: Any) -> None:
    for linker in (
        Linker.build(NODES, encoder=model, documents=NodeText())
        for model in (None, encoder)
    ):
        hits = linker.link("station above an ocean", mode="doc")
        assert (hits[0].id, hits[0].how) == ("solaris72", "document")
        assert all(0.9 * hits[0].score <= linked.score <= 1 for linked in hits)


def test_spots_by_label_and_condition(linker: Linker) -> None:
    def spots(**options: Any) -> list[tuple[str, ...]]:
        return [
            span.ids
            for span in linker.find_mentions(
                "did Tom Hanks see Solaris or Mercury", **options
            )
        ]

    assert spots() == [("hanks",), ("solaris02", "solaris72"), ("god", "mercury")]
    assert spots(labels=["Planet", "Film"]) == [
        ("solaris02", "solaris72"),
        ("mercury",),
    ]
    assert spots(where={"year": 2002}) == [("solaris02",)]


def test_names_that_normalise_alike_are_told_apart_by_their_form() -> None:
    linker = Linker.build(
        [
            Node("a", name="Émile"),
            Node("b", name="EMILE"),
            Node("c", name="Emile"),
            Node("d", name="$"),
        ]
    )
    assert found(linker, "Emile") == [
        ("c", 1.0, "exact"),
        ("a", 0.99, "normalised"),
        ("b", 0.99, "normalised"),
    ]
    for name, ids in (("Émile", ("a", "b", "c")), ("EMILE", ("b", "a", "c"))):
        (spot_,) = linker.find_mentions(f"what did {name} write")
        assert (spot_.ids, spot_.scores[0] > spot_.scores[1] == spot_.scores[2]) == (
            ids,
            True,
        )
    assert found(linker, "$") == [("d", 1.0, "exact")]


def test_aliases_are_in_a_property_of_any_name(encoder: Any) -> None:
    bob = Node(
        "1",
        ("P",),
        "Bob",
        properties={"synonyms": ["Robert Miller"], "aliases": ["Nobody Else"]},
    )
    for linker in (
        Linker.of_store(MemoryStore.of([bob]), aliases="synonyms"),
        Linker.build([bob], aliases="synonyms", encoder=encoder).view({}),
    ):
        assert found(linker, "robert miller") == [("1", 0.97, "alias")]
        assert [linked.how for linked in linker.link("Miller", tau=0)] == ["similar"]
        linker.upsert([Node("2", ("P",), "Ann", properties={"synonyms": "Anna Lee"})])
        assert [
            span.ids
            for span in linker.find_mentions(
                "did Robert Miller meet Anna Lee or Nobody Else"
            )
        ] == [("1",), ("2",)]
        linker.delete(["1"])
        assert linker.find_mentions("did Robert Miller sing") == []


def test_it_follows_a_store() -> None:
    store = MemoryStore.of(NODES, [Edge("hanks", "ACTED_IN", "it")])
    linker = Linker.of_store(store, labels=["Film"], documents=NodeText.documents())
    store.attach(linker)
    assert linker.link("Tom Hanks", mode="doc")[0].id == "it"
    store.upsert(
        [Node("hanks", ("Person",), "Colin Farrell"), Node("dune", ("Film",), "Dune")]
    )
    assert linker.link("Tom Hanks", mode="doc") == linker.link("Colin Farrell") == []
    assert linker.link("Farrell", mode="doc")[0].id == "it"
    assert [span.ids for span in linker.find_mentions("was Dune or Solaris first")] == [
        ("dune",),
        ("solaris02", "solaris72"),
    ]
    store.delete(["solaris72", "dune"])
    store.upsert([Node("solaris02", ("Book",), "Solaris")])
    assert (
        linker.find_mentions("was Dune or Solaris first")
        == linker.link("Solaris")
        == []
    )


def test_a_view_knows_nothing_of_the_others(linker: Linker) -> None:
    view = linker.view({"label": "Person"})
    alone = Linker.build([node for node in NODES if node.label == "Person"])
    for mention in ("Tom", "Tom Cruise", "Solaris", "Mercury", "Tom Matrix"):
        assert view.link(mention, tau=0) == alone.link(mention, tau=0)
    assert [span.ids for span in view.find_mentions("Tom Hanks saw Solaris")] == [
        ("hanks",)
    ]
    assert linker.view(None).find_mentions("saw Solaris") == linker.find_mentions(
        "saw Solaris"
    )


def test_what_cannot_be_meant_is_refused(linker: Linker) -> None:
    bad = {
        "mode": ("title", "mode"),
        "tau": (1.5, "tau"),
        "k": (0, "k:"),
        "mention": (7, "mention"),
    }
    for option, (value, message) in (
        *bad.items(),
        ("mode", ("doc", "no index of documents")),
    ):
        with pytest.raises(InvalidInput, match=message):
            linker.link(**{"mention": "x", option: value})  # type: ignore[arg-type]
