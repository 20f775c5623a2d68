"""The page of ``graphret serve`` in a real Chromium: by keyboard, on a phone, in the
dark, and with no network.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import built
from serving import serving, until
from spark_parts import EDGES, NODES, plan

from graphret.stores import LadybugStore
from graphret.testing.openai_server import OpenAIServer, slow

sync_api = pytest.importorskip("playwright.sync_api")
QUESTION = "Where was the director of Dawn born?"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next(
            filter(None, map(shutil.which, names)), playwright.chromium.executable_path
        )
        if not os.path.exists(found):
            pytest.skip(
                "there is no Chromium: apt-get install chromium, or playwright install"
                " chromium"
            )
        launched = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )  # which root has to do without
        yield launched
        launched.close()


class Visit:
    """A page that is open, and what it asked for and complained of."""

    def __init__(self, chromium: Any, base: str, **context: Any) -> None:
        self.page = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}} | context
        ).new_page()
        self.page.set_default_timeout(60_000)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.errors.append(said.text) if said.type == "error" else None
            ),
        )
        self.page.goto(base)

    def ask(self, question: str = QUESTION, **fields: str) -> None:
        """Fill in the form, and press Enter in the question."""
        for name, value in fields.items():
            if name in ("property", "operator"):
                self.page.select_option(f"[name={name}]", value)
            else:
                self.page.fill(f"[name={name}]", value)
        self.page.fill("#query", question)
        self.page.press("#query", "Enter")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(built(tmp_path_factory.mktemp("documents")), loopback=True) as client:
        yield str(client.base_url)


def test_a_question_is_asked_and_its_answer_read_by_keyboard(
    chromium: Any, service: str
) -> None:
    visit = Visit(chromium, service)
    page, keyboard = visit.page, visit.page.keyboard
    page.wait_for_selector("#about .chip")
    assert page.inner_text("header").split("\n")[0] == "graph"
    assert "4 nodes, " in page.inner_text("header")
    assert "Document 3" in page.inner_text("#about")
    assert (
        "Ann Ames"
        in page.locator(
            "#about details", has_text="Names that link most"
        ).text_content()
    )
    keyboard.type(QUESTION)  # the question has the focus
    keyboard.press("Enter")
    page.wait_for_selector(".times")
    assert page.inner_text("#state").startswith("4 hits, ")
    flat, graph = (page.locator(".lists > div").nth(place) for place in (0, 1))
    assert "Films of 1999" in flat.inner_text()
    assert "MENTIONS" not in flat.inner_text()
    assert "MENTIONS “Ann Ames” · row 1 · column “Director”" in graph.inner_text()
    assert page.locator(".picture .card").count() == 4
    assert page.locator(".picture path").count() >= 1
    assert page.locator(".times").first.inner_text().startswith("seeds")
    page.locator(".picture .card").first.focus()
    assert page.locator(".picture.focus").count() == 1
    keyboard.press("Enter")
    assert page.locator("dialog[open] h2").count() == 1
    keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    keyboard.type("作家 bold")
    keyboard.press("Enter")
    page.wait_for_selector("text=<b>bold</b>")  # what a text says is text
    assert {
        url.split("/", 3)[2] for url in visit.requests if not url.startswith("data:")
    } == {service.split("/")[2]}
    assert visit.errors == []


def test_what_is_written_while_the_page_begins_is_asked_once_and_on_enter(
    chromium: Any, service: str
) -> None:
    visit, held = Visit(chromium, service), list[Any]()
    page = visit.page
    page.route("**/links", lambda route: held.append(route))
    page.reload()
    page.wait_for_selector("#try button")
    page.fill("#query", QUESTION)
    until(lambda: page.evaluate("1") and held)
    held[0].continue_()
    page.wait_for_selector("#about details")
    assert not any("retrieve" in url for url in visit.requests)
    page.press("#query", "Enter")
    page.wait_for_selector(".times")
    assert sum("retrieve" in url for url in visit.requests) == 1


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_it_fits_a_phone_and_is_dark_in_the_dark(
    chromium: Any, service: str, width: int, scheme: str
) -> None:
    visit = Visit(
        chromium, service, viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    for method in ("sage", "ark"):
        visit.page.select_option("[name=method]", method)
        visit.ask()
        visit.page.wait_for_selector(".clock" if method == "ark" else ".times")
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    assert visit.page.locator(".step").count() >= 3
    red = int(
        visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        .split("(")[1]
        .split(",")[0]
    )
    assert (red < 64) == (scheme == "dark")
    assert visit.errors == []


def test_an_address_asks_its_question_again(chromium: Any, service: str) -> None:
    visit = Visit(chromium, service)
    visit.ask(k="2")
    visit.page.wait_for_selector(".times")
    again = Visit(chromium, visit.page.url)
    again.page.wait_for_selector(".times")
    assert again.page.inner_text("#state").startswith("2 hits, ")


def test_an_example_is_asked_and_hits_are_filtered_by_a_picked_value(
    chromium: Any, service: str
) -> None:
    page = Visit(chromium, service).page
    page.wait_for_selector("#try button")
    example = page.locator("#try button").first.inner_text()
    page.locator("#try button").first.click()
    page.wait_for_selector(".times")
    assert page.input_value("#query") == example
    page.select_option("[name=property]", "year")
    assert page.locator("#values option").evaluate_all(
        "all => all.map((one) => one.value)"
    ) == ["1999"]
    page.select_option("[name=operator]", "$gte")
    page.fill("[name=value]", "1990")
    page.click("#go")
    page.wait_for_selector("#state:has-text('1 hit, ')")
    assert "Bob Bale" in page.inner_text(".lists .graph .hits")
    again = Visit(chromium, page.url).page
    again.wait_for_selector("#state:has-text('1 hit, ')")


def test_a_phone_has_edge_labels_and_flat_search_one_tap_away(
    chromium: Any, service: str
) -> None:
    phone = {"width": 390, "height": 800}
    visit = Visit(chromium, service, viewport=phone)
    page = visit.page
    page.wait_for_selector("#try button")
    # What the question does not find is brought by the table that names it.
    visit.ask("Dusk", k="2")
    page.wait_for_selector(".times")
    labels = page.locator(".picture .label")
    assert labels.count() >= 1
    assert all(label.is_visible() for label in labels.all())
    flat, graph = page.locator(".lists .flat"), page.locator(".lists .graph")
    assert (flat.is_visible(), graph.is_visible()) == (False, True)
    page.click("text=Flat search")
    assert (flat.is_visible(), graph.is_visible()) == (True, False)
    shares = [float(one) for one in flat.locator(".score").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert all(0 <= share <= 1 for share in shares)


def test_what_is_wrong_is_said(chromium: Any, service: str) -> None:
    visit = Visit(chromium, service)
    visit.page.wait_for_selector("#try button")
    visit.ask(property="year", value="soon")
    visit.page.wait_for_selector("#problem:has-text('year: expected a number')")
    visit.ask(k="1000")
    assert visit.page.evaluate("document.querySelector(':invalid[name=k]') !== null")
    visit.ask(k="5", value="1800")
    visit.page.wait_for_selector("#state:has-text('Nothing qualifies')")
    assert visit.page.inner_text("#problem") == ""


def test_a_key_is_asked_for_and_a_slow_model_can_be_stopped(
    chromium: Any, tmp_path: Path
) -> None:
    with LadybugStore(tmp_path / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
    written = plan("MATCH (a:Author {name: 'Ada Ames'})-[:WROTE]->(p:Paper) RETURN p")
    with (
        OpenAIServer([slow(60)], default=written) as model,
        serving(
            tmp_path / "papers.lbug", model="m", base_url=model.base_url, key="secret"
        ) as client,
    ):
        visit = Visit(chromium, str(client.base_url))
        visit.ask("papers by Ada", key="wrong")
        visit.page.wait_for_selector("#problem:has-text('a key is needed')")
        assert visit.page.evaluate("document.activeElement.name") == "key"
        visit.page.select_option("[name=method]", "spark")
        visit.ask("papers by Ada", key="secret")
        until(lambda: model.in_flight)
        assert visit.page.inner_text("#state").startswith("Asking, ")
        visit.page.click("#go")
        visit.page.wait_for_selector("#state:has-text('Stopped')")
        visit.page.click("#go")
        visit.page.wait_for_selector(".times tr:has-text('plan')")
        assert "row 1 of MATCH" in visit.page.inner_text("#found")
        assert "secret" not in visit.page.url
