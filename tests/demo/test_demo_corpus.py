"""What is shipped: enough tables, every passage that they link to, no links, and who wrote it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from make_corpus import MAX_PASSAGES, linked_pages, make

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


def test_links_are_not_shipped() -> None:
    with gzip.open(HERE / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if "rows" in record:
                assert all(isinstance(cell, str) for row in [record["header"], *record["rows"]] for cell in row)
                assert "/wiki/" not in json.dumps({**record, "metadata": {}})
            assert record["metadata"].keys() == {"url"}


def test_everyone_is_credited() -> None:
    text = (HERE / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for said in ("CC BY-SA", "MIT License", "github.com/wenhuchen/OTT-QA", "Wikipedia"):
        assert said in text
    assert all(str(table.metadata["url"]) in text for table in load_corpus().tables)
    assert all(str(d.metadata["url"]).startswith("https://en.wikipedia.org/wiki/") for d in load_corpus().documents)


def ottqa(folder: Path, tables: dict[str, int]) -> Path:
    """Write tables that link to so many passages, one question each, in the layout of the OTT-QA repository."""
    for name in ("traindev_tables_tok", "traindev_request_tok"):
        (folder / "data" / name).mkdir(parents=True)
    (folder / "released_data").mkdir()
    (folder / "LICENSE").write_text("MIT License\n")
    asked = []
    for id_, number in tables.items():
        pages = [f"/wiki/{id_}_%C3%A9_{i}" for i in range(number)]
        table = {"url": f"https://en.wikipedia.org/wiki/{id_}", "title": id_, "section_title": "", "section_text": ""}
        table |= {"intro": "", "header": [["name", []]], "data": [[[f"cell {i}", [p]]] for i, p in enumerate(pages)]}
        (folder / "data/traindev_tables_tok" / f"{id_}.json").write_text(json.dumps(table))
        (folder / "data/traindev_request_tok" / f"{id_}.json").write_text(json.dumps(dict.fromkeys(pages, "Its text.")))
        node = ["cell", [0, 0], pages[0], "passage"] if pages else ["cell", [0, 0], None, "table"]
        asked.append(
            {"question_id": f"q-{id_}", "question": "?", "table_id": id_, "answer-text": "a", "answer-node": [node]}
        )
    (folder / "released_data/dev.traced.json").write_text(json.dumps(asked[:-1]))
    return folder


def test_tables_are_chosen_by_size_alone(tmp_path: Path) -> None:
    data = ottqa(
        tmp_path / "data", {"small": 2, "full": MAX_PASSAGES, "large": MAX_PASSAGES + 1, "bare": 0, "unasked": 1}
    )
    first, second = tmp_path / "first", tmp_path / "second"
    assert make(data, first) == {"tables": 2, "passages": 2 + MAX_PASSAGES, "questions": 2}
    make(data, second)
    names = ["ATTRIBUTION.md", "corpus.jsonl.gz", "questions.jsonl.gz"]
    assert sorted(path.name for path in first.iterdir()) == names
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)  # no times, no chance
    records = [json.loads(line) for line in gzip.decompress((first / "corpus.jsonl.gz").read_bytes()).splitlines()]
    assert {record["id"] for record in records if "text" in record} == {
        page
        for id_ in ("small", "full")
        for page in linked_pages(json.loads((data / f"data/traindev_tables_tok/{id_}.json").read_text()))
    }
    assert next(record["title"] for record in records if record["id"].startswith("/wiki/small")) == "small é 0"
