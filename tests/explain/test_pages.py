"""The pages: they need nothing but themselves, and nothing that nodes, models or questions say becomes markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from explain_helpers import EVIL, asked
from explain_helpers import QUESTION as ASKED
from page_parsing import Parsed
from timeline_helpers import QUESTION, explored

from graphret.ark.trajectory import Recorder, read_runs
from graphret.explain import Figures, Panel, html_page, store_lookup, timeline_page, write_html, write_timeline
from graphret.types import Trace

FIGURES = Figures(
    {"flat <": {"recall@5": 62.44, "recall@10": 70.0}, "sage": {"recall@5": 140.0, "recall@10": 80.0}}, "Recall", "sage"
)


def page_of_retrieval() -> str:
    graph, sage, flat = asked(3)
    panel = Panel(sage, flat, {"ann", "nowhere"}, "Ohio <u>", "A note <s>")
    lookup = store_lookup(graph.store)
    return html_page(panel, lookup=lookup, title="<h1>title", lead="<h1>lead", figures=FIGURES)


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
    policy = next(a["content"] for a in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert len(parsed.of("script")) == len(parsed.script_texts) == 2  # the page's own data and program
    assert len(parsed.of("h1")) == 1
    for tag in ("img", "em", "u", "s", "hr"):
        assert parsed.of(tag) == []
    own = (
        ['Films of 1999 · List "A" <hr>', ASKED]
        if page_of is page_of_retrieval
        else ["two <s>", "nobody <u>", QUESTION]
    )
    for said in ("</script><script>alert(1)</script>", *own):
        assert said in parsed.text


def test_the_text_of_every_node_is_there_to_be_read() -> None:
    page = page_of_retrieval()
    records = json.loads(Parsed(page).script_texts[0])
    by_id = {record["id"]: record for record in records}
    assert by_id["ann"]["text"].endswith(EVIL)
    assert by_id["films#0"]["rows"][2] == ["<script>x</script>", EVIL]
    assert {int(n) for n in re.findall(r'data-node="(\d+)"', page)} == set(range(len(records)))
    of_run = {record["id"]: record for record in json.loads(Parsed(page_of_run()).script_texts[0])}
    assert (of_run["ann"]["text"], of_run["dawn"]["text"], of_run[EVIL]["name"]) == ("She directs.", EVIL, "Bob")


def test_the_picture_of_a_retrieval_shows_edges_with_what_they_know() -> None:
    parsed = Parsed(page_of_retrieval())
    cards = [a for a in parsed.of("button") if "card" in (a.get("class") or "")]
    assert {"Ann Ames", 'Films of 1999 · List "A" <hr>'} <= {card["title"] for card in cards}
    ends = {end for line in parsed.of("path") for end in (line["data-from"], line["data-to"])}
    assert ends
    assert ends <= {card["data-node"] for card in cards}
    assert "MENTIONS “Ann Ames” · row 1 · column “Director <i>”" in parsed.text
    assert [a for a in parsed.of("li") if a.get("class") == "gold"]
    assert "★ Not among these 3: nowhere" in parsed.text
    marked = re.findall("<mark>(.*?)</mark>", page_of_retrieval())
    assert {"Dawn", "born"} <= set(marked)


def test_files_are_written_with_their_folders_and_are_the_same_each_time(tmp_path: Path) -> None:
    _, sage, _ = asked()
    assert write_html(tmp_path / "a" / "b.html", Panel(sage)).read_text("utf-8") == html_page(Panel(sage))
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
    assert [bar["data-step"] for bar in bars] == [f"step-{a}-{n}" for a in numbers for n in range(1, numbers[a] + 1)]
    assert {bar["data-step"] for bar in bars} == {a["id"] for a in parsed.of("li")}
    assert all(bar["aria-label"] for bar in bars)
    cards = {a["data-node"] for a in parsed.of("button") if "card" in (a.get("class") or "")}
    assert len(cards) == 3
    assert {number for bar in bars for number in (bar["data-nodes"] or "").split()} <= cards
    assert {end for path in parsed.of("path") for end in (path["data-from"], path["data-to"])} <= cards
    for bar in bars:
        left, width = map(float, re.findall(r"([\d.]+)%", bar["style"] or ""))
        assert 0 <= left <= left + width <= 100.01


def test_a_trace_alone_has_a_page_and_without_agents_one_of_its_stages(tmp_path: Path) -> None:
    store, retrieval, _ = explored()
    trace, lookup = retrieval.trace, store_lookup(store)
    written = write_timeline(tmp_path / "new" / "t.html", trace, title="Dawn", lookup=lookup)
    assert written.read_text("utf-8") == timeline_page(trace, title="Dawn", lookup=lookup)
    _, sage, _ = asked()
    sage.trace.note("fallback", failed="<b>agent</b>", error="gone")
    parsed = Parsed(timeline_page(sage))
    for said in ("No agent explored.", sage.query, *(stage.name for stage in sage.trace.stages), "<b>agent</b>: gone"):
        assert said in parsed.text
    assert "No agent explored." in Parsed(timeline_page(Trace())).text
