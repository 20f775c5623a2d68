"""The page: it needs nothing but itself, and nothing that a node says becomes markup."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from explain_helpers import EVIL, QUESTION, asked
from page_parsing import Parsed

from graphret import Evidence, Hit, Node, Retrieval
from graphret.explain import Panel, html_page, store_lookup, write_html
from graphret.explain.html import Figures


def page_of(k: int = 3, **options: object) -> str:
    graph, sage, flat = asked(k)
    panel = Panel(sage, flat, {"ann", "nowhere"}, "Ohio <u>", "A note <s>")
    return html_page(panel, lookup=store_lookup(graph.store), **options)  # type: ignore[arg-type]


def test_nothing_is_fetched() -> None:
    page = page_of(figures=Figures({"flat": {"recall@5": 50.0}}, "Recall"))
    parsed = Parsed(page)
    used = {key for _, attributes in parsed.elements for key in attributes}
    assert not used & {"src", "href", "action", "srcset", "data", "xlink:href"}
    assert parsed.of("link") == []
    assert not re.search(r"url\(|@import|https?:|import\(|fetch\(", page)
    policy = next(a["content"] for a in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_what_nodes_say_is_never_markup() -> None:
    page = page_of(title="<h1>title", lead="<h1>lead")
    parsed = Parsed(page)
    assert len(parsed.of("script")) == len(parsed.script_texts) == 2  # the page's own data and program
    assert Counter(tag for tag, _ in parsed.elements)["h1"] == 1
    for tag in ("img", "em", "u", "s", "hr"):
        assert parsed.of(tag) == []
    assert not [key for _, attributes in parsed.elements for key in attributes if key.startswith("on")]
    assert QUESTION in parsed.text
    assert "</script><script>alert(1)</script>" in parsed.text  # shown as it is
    assert 'Films of 1999 · List "A" <hr>' in parsed.text


def test_the_text_of_every_node_is_there_to_be_read() -> None:
    records = json.loads(Parsed(page_of()).script_texts[0])
    by_id = {record["id"]: record for record in records}
    assert by_id["ann"]["text"].endswith(EVIL)
    assert by_id["films#0"]["rows"][2] == ["<script>x</script>", EVIL]
    numbers = {int(n) for n in re.findall(r'data-node="(\d+)"', page_of())}
    assert numbers == set(range(len(records)))


def test_the_picture_shows_edges_with_what_they_know() -> None:
    parsed = Parsed(page_of())
    cards = [a for a in parsed.of("button") if "card" in (a.get("class") or "")]
    assert {"Ann Ames", 'Films of 1999 · List "A" <hr>'} <= {card["title"] for card in cards}
    lines = [a for a in parsed.of("path") if "data-from" in a]
    assert lines
    ends = {card["data-node"] for card in cards}
    assert {end for line in lines for end in (line["data-from"], line["data-to"])} <= ends
    assert "MENTIONS “Ann Ames” · row 1 · column “Director <i>”" in parsed.text


def test_gold_is_marked_and_what_is_missing_is_named() -> None:
    parsed = Parsed(page_of())
    golden = [a for a in parsed.of("li") if a.get("class") == "gold"]
    assert golden
    assert "★ Not among these 3: nowhere" in parsed.text


def test_the_lists_stand_side_by_side() -> None:
    graph, sage, flat = asked()
    both = Parsed(html_page(Panel(sage, flat)))
    assert len(both.of("ol")) == 2
    assert len(both.of("li")) == len(sage.hits) + len(flat.hits)
    alone = Parsed(html_page([Panel(sage), Panel(flat)]))
    assert len(alone.of("section")) == 2
    assert len(graph) == 4


def test_the_question_is_marked_in_what_is_quoted() -> None:
    page = page_of()
    assert "<mark>Dawn</mark>" in page
    assert "<mark>born</mark>" in page


def test_figures_are_bars_as_long_as_they_are_high() -> None:
    rows = {"flat <": {"recall@5": 62.44, "recall@10": 70.0}, "sage": {"recall@5": 140.0}}
    page = html_page([], figures=Figures(rows, "Recall", best="sage"))
    assert "<td>flat &lt;</td>" in page
    assert "62.4<span" in page
    assert "width:62.4%" in page
    assert "width:100.0%" in page  # never beyond the cell
    assert page.count('<tr class="best">') == 1


def test_the_same_retrieval_makes_the_same_page() -> None:
    assert page_of() == page_of()


def test_a_retrieval_of_nothing_makes_a_page() -> None:
    assert "nothing" in Parsed(html_page(Panel(Retrieval("nothing", 5, [])))).text


def test_a_node_that_is_gone_is_drawn_by_its_id() -> None:
    hit = Hit(Node("b", ("X",), "B", "text"), 1.0, (Evidence("neighbor", "a<gone>", "KNOWS", 0.5),))
    parsed = Parsed(html_page(Panel(Retrieval("q", 1, [hit]))))
    assert "a<gone>" in parsed.text
    assert "KNOWS" in parsed.text


def test_a_file_is_written_with_its_folder(tmp_path: Path) -> None:
    _, sage, _ = asked()
    path = write_html(tmp_path / "a" / "b.html", Panel(sage))
    assert path.read_text(encoding="utf-8") == html_page(Panel(sage))
