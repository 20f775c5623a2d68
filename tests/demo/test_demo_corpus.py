"""What is shipped: enough tables, every passage that they link to, no links, and who wrote it."""

from __future__ import annotations

from pathlib import Path

import graphret.demo
from graphret.demo import load_corpus, load_questions

HERE = Path(graphret.demo.__file__).parent


def test_it_has_forty_tables_and_their_passages() -> None:
    corpus = load_corpus()
    assert len(corpus.tables) >= 40
    assert len(corpus.documents) >= 400
    assert corpus.edges == ()
    assert all(document.text and document.title for document in corpus.documents)
    assert sum((HERE / name).stat().st_size for name in ("corpus.jsonl.gz", "questions.jsonl.gz")) < 1_500_000


def test_every_question_is_about_a_table_and_passages_that_are_here() -> None:
    corpus = load_corpus()
    tables = {table.id: table for table in corpus.tables}
    passages = {document.id for document in corpus.documents}
    questions = load_questions()
    assert len({question.id for question in questions}) == len(questions) >= 40
    assert {question.table for question in questions} == set(tables)
    for question in questions:
        assert question.rows
        assert max(question.rows) < len(tables[question.table].rows)
        assert set(question.passages) <= passages


def test_everyone_is_credited() -> None:
    text = (HERE / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for said in ("CC BY-SA", "MIT License", "github.com/wenhuchen/OTT-QA", "Wikipedia"):
        assert said in text
    assert all(str(table.metadata["url"]) in text for table in load_corpus().tables)
    assert all(str(d.metadata["url"]).startswith("https://en.wikipedia.org/wiki/") for d in load_corpus().documents)
