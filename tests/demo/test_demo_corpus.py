"""What is shipped: enough tables, every passage that they link to, no links, and who wrote it."""

from __future__ import annotations

from pathlib import Path

import graphret.demo
from graphret import Document, Table
from graphret.demo import load_corpus, load_questions

HERE = Path(graphret.demo.__file__).parent
CORPUS = load_corpus()
TABLES = {item.id: item for item in CORPUS.items if isinstance(item, Table)}
PASSAGES = {item.id: item for item in CORPUS.items if isinstance(item, Document)}


def test_it_has_forty_tables_their_passages_and_questions_about_them() -> None:
    assert len(TABLES) >= 40
    assert len(PASSAGES) >= 400
    assert CORPUS.edges == ()
    assert all(document.text and document.title for document in PASSAGES.values())
    assert sum((HERE / name).stat().st_size for name in ("corpus.jsonl.gz", "questions.jsonl.gz")) < 1_500_000
    questions = load_questions()
    assert len({question.id for question in questions}) == len(questions) >= 40
    assert {question.table for question in questions} == set(TABLES)
    for question in questions:
        assert 0 <= max(question.rows) < len(TABLES[question.table].rows)
        assert set(question.passages) <= set(PASSAGES)


def test_everyone_is_credited() -> None:
    text = (HERE / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for said in ("CC BY-SA", "MIT License", "github.com/wenhuchen/OTT-QA", "Wikipedia"):
        assert said in text
    assert all(str(table.metadata["url"]) in text for table in TABLES.values())
    assert all(str(page.metadata["url"]).startswith("https://en.wikipedia.org/wiki/") for page in PASSAGES.values())
