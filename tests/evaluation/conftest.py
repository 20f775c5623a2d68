"""A small OTT-QA."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BORN = {
    "Ada Lovelace": "London",
    "Grace Hopper": "New York",
    "Alan Turing": "Maida Vale",
    "Edsger Dijkstra": "Rotterdam",
    "Barbara Liskov": "Los Angeles",
    "Donald Knuth": "Milwaukee",
}


@pytest.fixture
def born() -> dict[str, str]:
    return BORN


@pytest.fixture(scope="session")
def ottqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tables of prizes and a passage for each who won them, with a question for
    each row.
    """
    folder = tmp_path_factory.mktemp("benchmark") / "ottqa"
    for name in (
        "data/traindev_tables_tok",
        "data/traindev_request_tok",
        "released_data",
    ):
        (folder / name).mkdir(parents=True)
    pages = {person: f"/wiki/{person.replace(' ', '_')}" for person in BORN}
    passages = {
        pages[person]: f"{person} came from {place}." for person, place in BORN.items()
    }
    asked = []
    for t in range(4):
        table = {
            "uid": f"t{t}",
            "title": f"Prize {t}",
            "url": "https://en.wikipedia.org/wiki/Prize",
            **dict.fromkeys(("section_title", "section_text", "intro"), ""),
            "header": [["Winner", []], ["Year", []]],
            "data": [
                [[person, [pages[person]]], [str(1900 + 10 * t + i), []]]
                for i, person in enumerate(BORN)
            ],
        }
        (folder / f"data/traindev_tables_tok/t{t}.json").write_text(json.dumps(table))
        (folder / f"data/traindev_request_tok/t{t}.json").write_text(
            json.dumps(passages)
        )
        for i, (person, place) in enumerate(BORN.items()):
            question = {
                "question_id": f"q{t}{i}",
                "question": (
                    f"Where did the winner of Prize {t} in {1900 + 10 * t + i} come"
                    " from?"
                ),
                "table_id": f"t{t}",
                "answer-text": place,
                "answer-node": [[place, [i, 0], pages[person], "passage"]],
            }
            asked.append(question)
    (folder / "released_data/dev.traced.json").write_text(json.dumps(asked))
    return folder
