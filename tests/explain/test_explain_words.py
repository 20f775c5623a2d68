"""Evidence in words, the marked part of a text, and the places of cards."""

from __future__ import annotations

import io
from typing import Any

import pytest
from explain_helpers import asked
from rich.console import Console

from graphret import Edge, Evidence, Hit, Node, Retrieval
from graphret.explain import render
from graphret.explain.words import Marker, edge_text, name_of, reasons

ROWS = {"table_header": ["Film", "Year"], "table_rows": [["Dawn", "1999"], ["Dusk", "2001"]]}
PLACE = {"section": "List", "table_row_start": 10, "table_row_end": 12}
SEGMENT = Node("t#1", ("Table",), "Films", properties=ROWS | PLACE)
PERSON = Node("p", ("Document",), "Ann Ames", "Ann Ames made Dusk.")


def printed(value: Any, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(value)
    return out.getvalue()


@pytest.mark.parametrize(
    ("relation", "properties", "text"),
    [
        ("MENTIONS", {"kind": "text", "name": "Ann"}, "MENTIONS “Ann”"),
        ("MENTIONS", {"name": "Ann", "source_row": 3, "column": "By"}, "MENTIONS “Ann” · row 3 · column “By”"),
        ("SHARES_ENTITY", {"count": 2, "entities": ["A", "B"]}, "SHARES_ENTITY · both name “A”, “B”"),
        ("IS_SIMILAR", {"signals": {"topic_similarity": 0.912}}, "IS_SIMILAR · topic similarity 0.91"),
        ("IS_SIMILAR", {"columns": [["Year", "Season"]]}, "IS_SIMILAR · columns “Year = Season”"),
        (
            "JOINS",
            {"name": "Dusk", "columns": [["Film", "Title"]], "source_row": 12, "target_row": 1},
            "JOINS “Dusk” · rows 12 = 1 · columns “Film = Title”",
        ),
        (None, {"name": 3, "signals": [], "columns": "x"}, "LINK"),
    ],
)
def test_an_edge_says_what_it_knows(relation: str | None, properties: dict[str, Any], text: str) -> None:
    assert edge_text(relation, properties) == text


NAMES = Edge("t#1", "MENTIONS", "p", 1.0, {"kind": "exact", "name": "Ann Ames", "column": "By", "source_row": 1})


@pytest.mark.parametrize(("hit", "other", "arrow"), [(PERSON, SEGMENT, "←"), (SEGMENT, PERSON, "→")])
def test_an_edge_has_its_direction_and_its_row_is_counted_from_one_in_the_whole_table(
    hit: Node, other: Node, arrow: str
) -> None:
    why = Evidence.of_edge(NAMES, hit, other)
    assert str(why) == "Films row 12 -MENTIONS→ Ann Ames (exact, column By)"
    assert Evidence(**why.to_dict()) == why
    told = f"MENTIONS “Ann Ames” · row 12 · column “By” {arrow} {other.name}"
    assert reasons(Hit(hit, 1.0, (why,))) == [("neighbor", told)]


def test_every_kind_of_evidence_has_words_and_every_node_a_name() -> None:
    assert name_of(SEGMENT) == "Films · List · rows 11–12"
    assert name_of(Node("only-an-id")) == "only-an-id"
    votes = Evidence("votes", rank=2, properties={"votes": 2, "of": 3, "agents": [1, 3]})
    kinds = [Evidence("seed", rank=4), Evidence("fill"), Evidence("rank", rank=2, retriever="bm25"), votes]
    texts = [text for _, text in reasons(Hit(PERSON, 1.0, tuple(kinds)))]
    assert texts == ["found by the question, rank 4", "fills a free place", "rank 2 in bm25", "2 of 3 votes, place 2"]


def test_an_answer_is_marked_where_it_stands_word_for_word() -> None:
    marker = Marker("How many live there?", "3,674")
    text = "Many live there. " * 40 + "The village had 3,674 people in 2010."
    found, other = Node("a", text=text), Node("b", text="13,674 people live in the village, or 3,6745.")
    assert (marker.answered(found), marker.answered(other)) == (True, False)
    quote = "".join(part for part, _ in marker.snippet(found))
    assert "had «3,674» people" in quote
    assert not Marker("How many live there?").answered(found)
    row = Marker("Which films?", "1999").snippet(SEGMENT, row=1)  # another row holds it than the one that an edge is of
    assert "".join(part for part, _ in row) == "Film: Dawn · Year: «1999»"


def test_a_snippet_is_the_part_that_says_most_with_words_of_the_question_marked_whatever_their_form() -> None:
    pieces = Marker("Which directors were born in Café?").pieces("The Director, BORN in a café, in which.")
    assert [text for text, marked in pieces if marked] == ["Director", "BORN", "café"]
    text = "Nothing here. " * 100 + "Ann Ames was born in Ohio. " + "And nothing there. " * 100
    snippet = "".join(part for part, _ in Marker("Where was Ann Ames born?").snippet(Node("n", text=text)))
    assert "Ann Ames was born" in snippet
    assert snippet.startswith("… ")
    assert snippet.endswith(" …")
    assert len(snippet) < 240


def test_a_node_without_a_text_says_what_its_properties_say() -> None:
    properties = {"plot": "A robbery.", "tags": ["crime", "noir"], "year": 1995, "v": [0.5]}
    snippet = Marker("robbery").snippet(Node("n", ("film",), "Heat", "", properties))
    assert "".join(part for part, _ in snippet) == "plot: A robbery. tags: crime noir"
    assert ("robbery", True) in snippet


def test_the_terminal_shows_rank_reason_and_snippet() -> None:
    _, sage, _ = asked(2)
    out = printed(render(sage, gold={"ann"}))
    for said in ("★", "found by the question", "MENTIONS “Ann Ames” · row 1", "→ Ann Ames", "Film: Dawn"):
        assert said in out


def test_nothing_steers_the_terminal() -> None:
    hit = Hit(Node("n", ("L\x1b]0;x",), "name\x1b[2J\x9b31m", "text \x1b[31m\x07 [bold]kept[/bold]"), 1.0)
    out = printed(render(Retrieval("q", 1, [hit])))
    assert "[bold]kept[/bold]" in out  # no markup of rich either
    assert not {"\x1b", "\x07", "\x9b"} & set(out)


def hit(id_: str, *evidence: Evidence) -> Hit:
    return Hit(Node(id_, ("X",), id_.upper()), 1.0, evidence)


def edge(source: str) -> Evidence:
    return Evidence("neighbor", source, "KNOWS", 0.5, properties={"name": "n"})
