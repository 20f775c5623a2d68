"""How `ScriptedExplorer` reads: words, the words around a name, spans that may be names, and what tools showed."""

from __future__ import annotations

import json

import pytest

from graphret.ark.scripted.plan import plans
from graphret.ark.scripted.question import Cue, readings
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.spans import spans
from graphret.ark.scripted.transcript import Exploration, Shown, Transcript
from graphret.ark.scripted.words import is_person, kinship, name_words, root
from graphret.llm.chat import Message, ToolCall


@pytest.mark.parametrize(
    "alike",
    [
        "direct directs directed directing director directors",
        "write wrote written writes writing writer",
        "act acts acted actor actors",
        "produce producer producers produced",
        "language languages",
    ],
)
def test_inflections_share_a_root(alike: str) -> None:
    assert len({root(word) for word in alike.split()}) == 1


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("starring", "starred_actors"),
        ("appears", "starred_actors"),
        ("screenwriter", "written_by"),
        ("authors", "writtenBy"),
        ("when", "release_year"),
        ("genres", "has_genre"),
        ("kind", "Genre"),
        ("spoken", "in_language"),
        ("cites", "CITES"),
        ("film", "Movie"),
    ],
)
def test_a_word_names_a_relation_or_a_type(word: str, name: str) -> None:
    assert kinship(word, name) > 0


def test_an_inflection_is_nearer_than_a_synonym_and_linking_words_name_nothing() -> None:
    assert kinship("directors", "directed_by") > kinship("filmmaker", "directed_by") > 0
    assert kinship("by", "directed_by") == kinship("has", "has_genre") == kinship("tree", "directed_by") == 0
    assert name_words("has_imdb_rating") == ("imdb", "rating")
    assert name_words("PUBLISHED_IN") == ("published",)
    assert [is_person(name) for name in ("Actor", "Person", "Movie", "Paper")] == [True, True, False, False]


def read(question: str, name: str) -> list[tuple[list[str], tuple[str, ...], bool]]:
    start = question.index(name)
    return [
        ([cue.word for cue in one.cues], one.asked, one.together)
        for one in readings(question, start, start + len(name))
    ]


def test_words_are_read_outward_from_the_name() -> None:
    assert read("who directed the films starred by Ann", "Ann") == [(["starred", "films", "directed"], ("who",), False)]
    assert read("the director of Dawn also directed which films", "Dawn")[0] == (
        ["director", "directed"],
        ("films",),
        True,
    )
    assert read("the movies written by Ann were released in which years", "Ann")[0] == (
        ["written", "movies", "released"],
        ("years",),
        False,
    )


def test_what_follows_the_name_at_once_is_nearest_unless_it_is_said_of_all() -> None:
    first, second = read("what genres are the films starred by Dawn actors", "Dawn")
    assert first[0] == ["actors", "starred", "films"]
    assert second[0] == ["starred", "films", "actors"]
    assert len(read("the films starred by Ann were directed by who", "Ann")) == 1


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("what kind of film is Dawn", ("kind",)),
        ("what were the release dates of Dawn", ("dates",)),
        ("who are the directors of Dawn", ("who", "directors")),
        ("Dawn, when was it released", ("when",)),
        ("the film Dawn starred which actors", ("actors",)),
        ("what does Dawn star", ()),
        ("describe Dawn", ()),
        ("who starred in the films whose directors also directed Dawn", ("who",)),
        ("which films share actors with Dawn", ("films",)),
        ("films by the director of Dawn", ("films",)),
        ("list all Dawn actors", ("actors",)),
        ("the film Dawn", ()),  # it says what Dawn is
        ("the director of Dawn also wrote films", ()),
    ],
)
def test_what_is_asked_for(question: str, asked: tuple[str, ...]) -> None:
    assert read(question, "Dawn")[0][1] == asked


def test_a_noun_of_several_words_is_read_in_two_ways() -> None:
    assert [asked for _, asked, _ in read("which film genre is Dawn", "Dawn")] == [("genre",), ("film",)]


def test_a_title_stands_right_before_the_name_and_other_names_are_passed_over() -> None:
    question = "who acted with the actor Ann Ames and Bob Bell in films"
    (one, *_) = readings(question, 24, 32, frozenset([(37, 45)]))
    assert Cue("actor", title=True) in one.cues
    assert "bob" not in [cue.word for cue in one.cues]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("who directed The Lord of the Rings", "The Lord of the Rings"),
        ("What is [the film] like", "the film"),
        ('who wrote "it happened"', "it happened"),
        ("which films are about time travel paradoxes", "paradoxes"),
        ("what did Cy Cole star in", "Cy Cole"),
    ],
)
def test_spans_that_may_be_names(question: str, first: str) -> None:
    assert spans(question)[0] == first


def test_the_capital_of_a_sentence_is_no_name() -> None:
    assert spans("Who directed Heat?") == ["Heat"]
    assert spans("Name the cast of Heat.")[0] == "Heat"
    assert spans("") == spans("who was it?") == []


def test_an_everyday_word_is_a_span_only_for_want_of_others() -> None:
    assert spans("which films are about love") == ["love"]
    assert spans("which films did Ann Ames love") == ["Ann Ames"]


def exploration(node: str, types: tuple[str, ...], *edges: tuple[str, bool, str, str]) -> Exploration:
    shown = tuple(Shown(other, other, (label,), ((relation, out),)) for relation, out, other, label in edges)
    counts = tuple((relation, out, label, 1) for relation, out, _, label in edges)
    return Exploration(node, types, counts, shown, len(shown))


def test_the_best_plan_goes_there_and_back_where_two_share_something() -> None:
    known = Known([exploration("Dawn", ("Movie",), ("directed_by", True, "Ann", "Director"))])
    first = (Hop("directed_by", True),)

    def best(question: str) -> tuple[Hop, ...]:
        start = question.index("Dawn")
        return plans(readings(question, start, start + 4), ("Movie",), first, known)[0].hops

    there = Hop("directed_by", True)
    assert best("who directed Dawn") == (there,)
    assert best("which films share the director of Dawn") == (there, there.back)


def test_a_relation_that_is_not_known_yet_is_looked_for_where_the_plan_ends() -> None:
    known = Known([exploration("Cy", ("Actor",), ("starred_actors", False, "Dawn", "Movie"))])
    question = "who directed the films starred by Cy"
    (best, *_) = plans(readings(question, 34, 36), ("Actor",), (Hop("starred_actors", False),), known)
    assert best.probes > 0
    assert best.hops == (Hop("starred_actors", False),)


def test_the_main_type_of_an_end_is_the_commonest_and_else_the_relations_own() -> None:
    seen = exploration(
        "Dawn", ("Movie",), ("written_by", True, "Ann", "Writer"), ("directed_by", True, "Ann", "Writer")
    )
    assert Known([seen]).reached(Hop("written_by", True)).main == "Writer"
    both = Shown("Ann", "Ann", ("Director", "Writer"), (("written_by", True), ("directed_by", True)))
    known = Known([Exploration("Dawn", ("Movie",), (), (both,), 1)])
    assert known.reached(Hop("written_by", True)).main == "Writer"
    assert known.reached(Hop("directed_by", True)).main == "Director"
    twice = Shown("Dawn", "Dawn", ("Movie", "Writer"), (("directed_by", False),))
    assert (
        Known([Exploration("Ann", ("Director",), (), (twice,), 1)]).reached(Hop("directed_by", False)).main == "Movie"
    )


def test_a_transcript_reads_what_tools_show_and_begins_anew_with_each_question() -> None:
    search = ToolCall("1", "global_search", '{"query": "Dawn"}')
    explore = ToolCall("1", "explore_neighborhood", '{"node": "Dawn", "relation_types": ["-[directed_by]->"]}')
    neighbors = [
        {"explored": "Dawn", "type": ["Movie", "Tag"], "of": "57+", "relations": [["-[directed_by]->", "Director", 1]]},
        {"id": "Ann", "type": "Director", "name": "Ann Ames", "via": ["-[directed_by]->", "<-[knows]-", "both"]},
    ]
    messages = [
        Message.system("You explore."),
        Message.user("who directed Dawn"),
        Message.assistant(tool_calls=[search]),
        Message.tool(search, '{"found": 1}\n{"id": "Dawn", "type": "Movie"}\n{"steps_left": 2}'),
        Message.assistant(tool_calls=[explore]),
        Message.tool(explore, "\n".join(map(json.dumps, neighbors))),
    ]
    seen = Transcript.read(messages)
    assert (seen.question, seen.turns, seen.turns_left) == ("who directed Dawn", 2, 2)
    assert [node.id for node in seen.searches[0].nodes] == ["Dawn"]
    (one,) = seen.explorations
    assert (one.node, one.types, one.asked) == ("Dawn", ("Movie", "Tag"), frozenset({"-[directed_by]->"}))
    assert one.relations == (("directed_by", True, "Director", 1),)
    assert one.neighbors == (Shown("Ann", "Ann Ames", ("Director",), (("directed_by", True), ("knows", False))),)
    anew = Transcript.read([*messages, Message.assistant("Ann."), Message.user("and Dusk?")])
    assert (anew.question, anew.searches, anew.turns) == ("and Dusk?", [], 0)
