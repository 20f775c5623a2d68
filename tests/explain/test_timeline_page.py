"""The page of a timeline: it needs nothing but itself, and nothing that nodes, models or questions say is markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

from explain_helpers import EVIL, asked
from page_parsing import Parsed
from timeline_helpers import QUESTION, RELATION, explored

from graphret.ark.trajectory import Recorder, read_runs
from graphret.explain import store_lookup, timeline_page, write_timeline
from graphret.types import Trace


def page_of() -> str:
    store, retrieval, _ = explored()
    return timeline_page(retrieval, title="<h1>title", lookup=store_lookup(store))


def test_nothing_is_fetched_and_nothing_is_markup() -> None:
    page = page_of()
    parsed = Parsed(page)
    used = {key for _, attributes in parsed.elements for key in attributes}
    assert not used & {"src", "href", "action", "srcset", "data", "xlink:href"}
    assert not [key for key in used if key.startswith("on")]
    assert not re.search(r"url\(|@import|https?:|import\(|fetch\(", page)
    policy = next(a["content"] for a in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert len(parsed.of("script")) == len(parsed.script_texts) == 2
    assert len(parsed.of("h1")) == 1
    for tag in ("img", "em", "u", "s", "hr"):
        assert parsed.of(tag) == []
    for said in (QUESTION, "</script><script>alert(1)</script>", "Ann <b>Ames</b>", "two <s>", "nobody <u>"):
        assert said in parsed.text


def test_steps_lead_to_what_they_did_and_to_the_nodes_that_they_showed() -> None:
    _, retrieval, _ = explored()
    parsed = Parsed(page_of())
    bars = [a for a in parsed.of("button") if a.get("class") == "step"]
    ids = {a["id"] for a in parsed.of("li")}
    assert [bar["data-step"] for bar in bars] == [
        *(f"step-1-{number}" for number in range(1, 5)),
        *(f"step-2-{number}" for number in range(1, 4)),
        "step-3-1",  # which brought no reply
    ]
    assert {bar["data-step"] for bar in bars} == ids
    assert all(bar["aria-label"] for bar in bars)
    cards = {a["data-node"] for a in parsed.of("button") if "card" in (a.get("class") or "")}
    shown = {number for bar in bars for number in (bar["data-nodes"] or "").split()}
    assert shown <= cards
    assert len(cards) == 3
    ends = {end for path in parsed.of("path") for end in (path["data-from"], path["data-to"])}
    assert ends <= cards
    assert len({id_ for _, a in parsed.elements if (id_ := a.get("id"))}) == len(
        [1 for _, a in parsed.elements if a.get("id")]
    )
    assert retrieval.ids[0] == "ann"


def test_cards_name_the_edges_that_led_to_them_in_their_direction() -> None:
    run = explored()[2]
    step = run.sessions[0].steps[1]
    step.calls[0].edges += [["ann", "wrote", "dawn"]]
    parsed = Parsed(timeline_page(run))
    assert f"→ {RELATION}, ← wrote" in parsed.text
    assert f"→ {RELATION}" in parsed.text.replace(f"→ {RELATION}, ← wrote", "")


def test_bars_lie_within_the_lanes() -> None:
    for bar in (a for a in Parsed(page_of()).of("button") if a.get("class") == "step"):
        left, width = map(float, re.findall(r"([\d.]+)%", bar["style"] or ""))
        assert 0 <= left <= 100
        assert left + width <= 100.01


def test_the_vote_is_a_table_with_headings() -> None:
    parsed = Parsed(page_of())
    assert [a.get("scope") for a in parsed.of("th")] == ["col"] * 7 + ["row"] * 2
    assert "2 of 3" in parsed.text
    assert "agents" in parsed.text


def test_the_texts_of_nodes_can_be_read() -> None:
    records = json.loads(Parsed(page_of()).script_texts[0])
    by_id = {record["id"]: record for record in records}
    assert by_id["ann"]["text"] == "She directs."
    assert by_id["dawn"]["text"] == EVIL
    assert by_id[EVIL]["name"] == "Bob"


def test_a_recorded_run_makes_the_same_page_each_time_and_knows_names(tmp_path: Path) -> None:
    _, _, run = explored()
    Recorder(tmp_path / "r.jsonl")(run)
    read = read_runs(tmp_path / "r.jsonl")[0]
    path = write_timeline(tmp_path / "new" / "t.html", read)
    page = path.read_text(encoding="utf-8")
    assert page == timeline_page(read) == timeline_page(run)
    assert "Ann <b>Ames</b>" in Parsed(page).text  # as the tools showed it


def test_a_trace_without_agents_makes_a_page_of_its_stages() -> None:
    _, sage, _ = asked()
    sage.trace.note("fallback", failed="<b>agent</b>", error="gone")
    parsed = Parsed(timeline_page(sage))
    for said in ("No agent explored.", sage.query, *(stage.name for stage in sage.trace.stages), "<b>agent</b>: gone"):
        assert said in parsed.text
    assert "No agent explored." in Parsed(Trace().html()).text


def test_a_trace_makes_and_writes_its_page_itself(tmp_path: Path) -> None:
    store, retrieval, _ = explored()
    trace, lookup = retrieval.trace, store_lookup(store)
    path = trace.write_html(tmp_path / "new" / "t.html", title="Dawn", lookup=lookup)
    page = path.read_text(encoding="utf-8")
    assert page == trace.html(title="Dawn", lookup=lookup) == timeline_page(trace, title="Dawn", lookup=lookup)
    assert "Ann <b>Ames</b>" in Parsed(page).text
    shown = Parsed(trace._repr_html_())  # what a notebook shows
    assert [tag for tag, _ in shown.elements] == ["iframe"]
    assert shown.of("iframe")[0]["srcdoc"] == trace.html()
