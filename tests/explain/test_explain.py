"""Evidence, answers and runs of agents, in the terminal and on pages that need nothing
but themselves.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from explain_parts import EVIL, QUESTION, WHO, Parsed, asked, explored
from rich.console import Console

from graphret import Edge, Evidence, Hit, Node, Retrieval
from graphret.ark import CallRecord, StepRecord
from graphret.ark.trajectory import Recorder, read_runs
from graphret.errors import InvalidInput
from graphret.explain import (
    Figures,
    Panel,
    html_page,
    render,
    render_timeline,
    store_lookup,
    timeline,
    timeline_page,
    write_html,
    write_timeline,
)
from graphret.explain.pictures import MOST_NODES, run_picture
from graphret.explain.runs import Lane, Timeline
from graphret.explain.words import Marker, edge_text, reasons
from graphret.fusion import VotedNode
from graphret.trace import Trace

ROWS = {
    "table_header": ["Film", "Year"],
    "table_rows": [["Dawn", "1999"], ["Dusk", "2001"]],
}
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
        (
            "MENTIONS",
            {"name": "Ann", "source_row": 3, "column": "By"},
            "MENTIONS “Ann” · row 3 · column “By”",
        ),
        (
            "IS_SIMILAR",
            {"signals": {"topic_similarity": 0.912}},
            "IS_SIMILAR · topic similarity 0.91",
        ),
        (
            "JOINS",
            {
                "name": "Dusk",
                "columns": [["Film", "Title"]],
                "source_row": 12,
                "target_row": 1,
            },
            "JOINS “Dusk” · rows 12 = 1 · columns “Film = Title”",
        ),
        (None, {"name": 3, "signals": [], "columns": "x"}, "LINK"),
    ],
)
def test_an_edge_says_what_it_knows(
    relation: str | None, properties: dict[str, Any], text: str
) -> None:
    assert edge_text(relation, properties) == text


NAMES = Edge(
    "t#1",
    "MENTIONS",
    "p",
    1.0,
    {"kind": "exact", "name": "Ann Ames", "column": "By", "source_row": 1},
)


@pytest.mark.parametrize(
    ("hit", "other", "arrow"), [(PERSON, SEGMENT, "←"), (SEGMENT, PERSON, "→")]
)
def test_an_edge_has_its_direction_and_its_row_is_counted_from_one_in_the_whole_table(
    hit: Node, other: Node, arrow: str
) -> None:
    why = Evidence.of_edge(NAMES, hit, other)
    assert str(why) == "Films row 12 -MENTIONS→ Ann Ames (exact, column By)"
    assert Evidence(**why.to_dict()) == why
    reason = f"MENTIONS “Ann Ames” · row 12 · column “By” {arrow} {other.name}"
    assert reasons(Hit(hit, 1.0, (why,))) == [("neighbor", reason)]


def test_an_answer_is_marked_where_it_stands_word_for_word() -> None:
    marker = Marker("How many live there?", "3,674")
    text = "Many live there. " * 40 + "The village had 3,674 people in 2010."
    hit, other = (
        Node("a", text=text),
        Node("b", text="13,674 people live in the village, or 3,6745."),
    )
    assert (marker.answered(hit), marker.answered(other)) == (True, False)
    quote = "".join(part for part, _ in marker.snippet(hit))
    assert "had «3,674» people" in quote
    assert not Marker("How many live there?").answered(hit)
    row = Marker("Which films?", "1999").snippet(
        SEGMENT, row=1
    )  # another row holds it than the one that an edge is of
    assert "".join(part for part, _ in row) == "Film: Dawn · Year: «1999»"


def test_a_snippet_is_the_part_that_says_most_with_words_of_the_question_marked_whatever_their_form() -> (
    None
):
    pieces = Marker("Which directors were born in Café?").pieces(
        "The Director, BORN in a café, in which."
    )
    assert [text for text, marked in pieces if marked] == ["Director", "BORN", "café"]
    text = (
        "Nothing here. " * 100
        + "Ann Ames was born in Ohio. "
        + "And nothing there. " * 100
    )
    snippet = "".join(
        part
        for part, _ in Marker("Where was Ann Ames born?").snippet(Node("n", text=text))
    )
    assert "Ann Ames was born" in snippet
    assert snippet.startswith("… ")
    assert snippet.endswith(" …")
    assert len(snippet) < 240


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Opening\n\nThe **bridge** opened.", "Opening The bridge opened."),
        ("See [the plan](https://x.example/p).", "See the plan."),
        ("1990. A year\n\n- *one*\n- `two`", "1990. A year one two"),
        ("| Film | Year |\n|---|---|\n| Dawn | 1999 |", "Film Year Dawn 1999"),
        ("snake_case, 5 * 3 and <b>tags</b>", "snake_case, 5 * 3 and <b>tags</b>"),
    ],
)
def test_a_snippet_has_no_marks_of_markdown(text: str, said: str) -> None:
    pieces = Marker("nothing").snippet(Node("n", text=text))
    assert "".join(part for part, _ in pieces) == said


def test_the_terminal_shows_rank_reason_and_snippet() -> None:
    _, sage, _ = asked(2)
    out = printed(render(sage, gold={"ann"}))
    for expected in (
        "★",
        "found by the question",
        "MENTIONS “Ann Ames” · row 1",
        "→ Ann Ames",
        "Film: Dawn",
        "relevance 0 … 1",
        *(f"{hit.relevance:.2f}" for hit in sage),
    ):
        assert expected in out


def test_nothing_steers_the_terminal() -> None:
    hit = Hit(
        Node(
            "n",
            ("L\x1b]0;x",),
            "name\x1b[2J\x9b31m",
            "text \x1b[31m\x07 [bold]kept[/bold]",
        ),
        1.0,
    )
    out = printed(render(Retrieval("q", 1, [hit])))
    assert "[bold]kept[/bold]" in out  # no markup of rich either
    assert not {"\x1b", "\x07", "\x9b"} & set(out)


def searched(*nodes: str, started: float = 0.0) -> StepRecord:
    call = CallRecord("global_search", {"query": "x"}, 0.5, nodes=list(nodes))
    return StepRecord(1, started, 1.0, calls=[call])


def walked(node: str, *nodes: str, number: int = 2, started: float = 2.0) -> StepRecord:
    edges = [[node, "r", other] for other in nodes]
    call = CallRecord(
        "explore_neighborhood", {"node": node}, 0.5, nodes=list(nodes), edges=edges
    )
    return StepRecord(number, started, 1.0, calls=[call])


def test_a_trace_a_retrieval_a_run_and_their_json_tell_the_same(tmp_path: Any) -> None:
    _, retrieval, run = explored()
    Recorder(tmp_path / "r.jsonl")(run)
    read, written = (
        read_runs(tmp_path / "r.jsonl")[0],
        json.loads(json.dumps(retrieval.to_dict()["trace"])),
    )
    lines = [
        timeline(source)
        for source in (retrieval, run, read, retrieval.trace, Trace.from_dict(written))
    ]
    assert [line.question for line in lines] == [WHO, WHO, WHO, "", ""]
    for other in lines[1:]:
        assert (other.lanes, other.ranking) == (lines[0].lanes, lines[0].ranking)
    assert lines[0].ranking == [VotedNode("ann", (0, 1), 1), VotedNode(EVIL, (0,), 2)]
    assert [lane.stop for lane in lines[0].lanes] == ["finished", "finished", "failed"]
    assert [note for note in lines[0].notes if note.startswith("agent 3")]
    for no_trace in (
        None,
        [],
        {"stages": "vote"},
        {"stages": [5]},
        {"stages": [{"seconds": 0}]},
    ):
        with pytest.raises(
            InvalidInput, match="trace: expected an object with a list of stages"
        ):
            Trace.from_dict(no_trace)


def test_a_large_picture_is_cut_and_says_how_much() -> None:
    leaves = [f"n{i:03}" for i in range(200)]
    lane = Lane(1, steps=[searched("a"), walked("a", *leaves)], selection=leaves)
    ranking = [VotedNode(id_, (0,), at) for at, id_ in enumerate(leaves, start=1)]
    drawn = run_picture(Timeline(lanes=[lane], ranking=ranking), {})
    assert len(drawn.cards) == MOST_NODES
    assert drawn.not_drawn == 201 - MOST_NODES
    assert [card.node.id for card in drawn.cards][:3] == ["a", "n000", "n001"]


def test_the_terminal_shows_lanes_steps_and_votes() -> None:
    store, retrieval, _ = explored()
    shown = printed(render_timeline(retrieval, store_lookup(store)))
    for expected in ("agent 1", "failed: ", "Ann <b>Ames</b>", "from memory", "2 of 3"):
        assert expected in shown
    assert 'explore_neighborhood(node="dawn") → 2 shown: ' in shown
    assert (
        'explore_neighborhood(node="nobody <u>") → refused, and the model told why'
        in shown
    )
    assert not {"\x1b", "\x07"} & set(shown)
    assert "select" not in printed(render_timeline(retrieval, steps=False))


FIGURES = Figures(
    {
        "flat <": {"recall@5": 62.44, "recall@10": 70.0},
        "sage": {"recall@5": 140.0, "recall@10": 80.0},
    },
    "Recall",
    "sage",
)


def page_of_retrieval() -> str:
    graph, sage, flat = asked(3)
    panel = Panel(sage, flat, {"ann", "nowhere"}, "Ohio <u>", "A note <s>")
    lookup = store_lookup(graph.store)
    return html_page(
        panel, lookup=lookup, title="<h1>title", lead="<h1>lead", figures=FIGURES
    )


def page_of_run() -> str:
    store, retrieval, _ = explored()
    return timeline_page(retrieval, title="<h1>title", lookup=store_lookup(store))


@pytest.mark.parametrize("page_of", [page_of_retrieval, page_of_run])
def test_nothing_is_fetched_and_nothing_is_markup(page_of: object) -> None:
    page = page_of()  # type: ignore[operator]
    parsed = Parsed(page)
    used = {key for _, attributes in parsed.elements for key in attributes}
    assert not used & {"src", "href", "action", "srcset", "data", "xlink:href"}
    assert not [key for key in used if key.startswith("on")]
    assert not re.search(r"url\(|@import|https?:|import\(|fetch\(", page)
    policy = next(
        a["content"]
        for a in parsed.of("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert (
        len(parsed.of("script")) == len(parsed.script_texts) == 2
    )  # the page's own data and program
    assert len(parsed.of("h1")) == 1
    for tag in ("img", "em", "u", "s", "hr"):
        assert parsed.of(tag) == []
    own_texts = (
        ['Films of 1999 · List "A" <hr>', QUESTION]
        if page_of is page_of_retrieval
        else ["two <s>", "nobody <u>", WHO]
    )
    for expected in ("</script><script>alert(1)</script>", *own_texts):
        assert expected in parsed.text


def test_the_text_of_every_node_is_there_to_be_read() -> None:
    page = page_of_retrieval()
    records = json.loads(Parsed(page).script_texts[0])
    by_id = {record["id"]: record for record in records}
    assert by_id["ann"]["text"].endswith(EVIL)
    assert by_id["films#0"]["rows"][2] == ["<script>x</script>", EVIL]
    assert {int(n) for n in re.findall(r'data-node="(\d+)"', page)} == set(
        range(len(records))
    )
    of_run = {
        record["id"]: record
        for record in json.loads(Parsed(page_of_run()).script_texts[0])
    }
    assert (of_run["ann"]["text"], of_run["dawn"]["text"], of_run[EVIL]["name"]) == (
        "She directs.",
        EVIL,
        "Bob",
    )


def test_the_picture_of_a_retrieval_shows_edges_with_what_they_know() -> None:
    parsed = Parsed(page_of_retrieval())
    cards = [a for a in parsed.of("button") if "card" in (a.get("class") or "")]
    assert {"Ann Ames", 'Films of 1999 · List "A" <hr>'} <= {
        card["title"] for card in cards
    }
    end_ids = {
        end
        for line in parsed.of("path")
        for end in (line["data-from"], line["data-to"])
    }
    assert end_ids
    assert end_ids <= {card["data-node"] for card in cards}
    assert "MENTIONS “Ann Ames” · row 1 · column “Director <i>”" in parsed.text
    assert [a for a in parsed.of("li") if a.get("class") == "gold"]
    assert "★ Not among these 3: nowhere" in parsed.text
    marked = re.findall("<mark>(.*?)</mark>", page_of_retrieval())
    assert {"Dawn", "born"} <= set(marked)


def test_files_are_written_with_their_folders_and_are_the_same_each_time(
    tmp_path: Path,
) -> None:
    _, sage, _ = asked()
    assert write_html(tmp_path / "a" / "b.html", Panel(sage)).read_text(
        "utf-8"
    ) == html_page(Panel(sage))
    _, _, run = explored()
    Recorder(tmp_path / "r.jsonl")(run)
    read = read_runs(tmp_path / "r.jsonl")[0]
    page = write_timeline(tmp_path / "new" / "t.html", read).read_text("utf-8")
    assert page == timeline_page(read) == timeline_page(run)
    assert "Ann <b>Ames</b>" in Parsed(page).text  # as the tools showed it


def test_steps_lead_to_what_they_did_and_to_the_nodes_that_they_showed() -> None:
    parsed = Parsed(page_of_run())
    bars = [a for a in parsed.of("button") if a.get("class") == "step"]
    numbers = {1: 4, 2: 3, 3: 1}  # the third brought no reply
    assert [bar["data-step"] for bar in bars] == [
        f"step-{a}-{n}" for a in numbers for n in range(1, numbers[a] + 1)
    ]
    assert {bar["data-step"] for bar in bars} == {a["id"] for a in parsed.of("li")}
    assert all(bar["aria-label"] for bar in bars)
    cards = {
        a["data-node"] for a in parsed.of("button") if "card" in (a.get("class") or "")
    }
    assert len(cards) == 3
    assert {
        number for bar in bars for number in (bar["data-nodes"] or "").split()
    } <= cards
    assert {
        end
        for path in parsed.of("path")
        for end in (path["data-from"], path["data-to"])
    } <= cards
    for bar in bars:
        left, width = map(float, re.findall(r"([\d.]+)%", bar["style"] or ""))
        assert 0 <= left <= left + width <= 100.01


def test_a_trace_alone_has_a_page_also_without_agents(tmp_path: Path) -> None:
    store, retrieval, _ = explored()
    trace, lookup = retrieval.trace, store_lookup(store)
    written = write_timeline(
        tmp_path / "new" / "t.html", trace, title="Dawn", lookup=lookup
    )
    assert written.read_text("utf-8") == timeline_page(
        trace, title="Dawn", lookup=lookup
    )
    _, sage, _ = asked()
    sage.trace.note("fallback", failed="<b>agent</b>", error="gone")
    parsed = Parsed(timeline_page(sage))
    for expected in ("No agent explored.", sage.query, "<b>agent</b>: gone"):
        assert expected in parsed.text
    assert "No agent explored." in Parsed(timeline_page(Trace())).text
