"""Make the corpus of the demo from OTT-QA: ``python tools/make_corpus.py --data DIR``.

DIR has the layout of the public OTT-QA repository. Taken is every table that a traced
question is about and that links to at most `MAX_PASSAGES` passages, all passages that
it links to, and all traced questions about it: a rule about size alone. What the cells
link to decides which passages belong to the corpus; the links themselves are left out.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphret.evaluation.ottqa import title_of

#: Most passages that a table of the corpus links to; at 12 embedding it all takes about
#: 20 s on two cores.
MAX_PASSAGES = 12

DEMO = Path(__file__).parents[1] / "shared/graphret/demo"
_WIKIPEDIA = "https://en.wikipedia.org"


def make(data: Path, folder: Path) -> dict[str, int]:
    """Write the corpus, its questions and the attribution to a folder; return counts."""
    by_table: dict[str, list[dict[str, Any]]] = {}
    for question in _json(data / "released_data" / "dev.traced.json"):
        by_table.setdefault(question["table_id"], []).append(question)
    tables, passages, questions = [], {}, []
    for path in sorted((data / "data" / "traindev_tables_tok").glob("*.json")):
        raw = _json(path)
        linked = linked_pages(raw)
        if not 0 < len(linked) <= MAX_PASSAGES or path.stem not in by_table:
            continue
        texts = _json(data / "data" / "traindev_request_tok" / path.name)
        tables.append(_table(path.stem, raw))
        passages.update(
            {page: _passage(page, texts[page]) for page in linked if page in texts}
        )
        questions += [_question(question) for question in by_table[path.stem]]
    questions.sort(key=lambda question: str(question["id"]))
    folder.mkdir(parents=True, exist_ok=True)
    _write(
        folder / "corpus.jsonl.gz",
        [*tables, *(passages[page] for page in sorted(passages))],
    )
    _write(folder / "questions.jsonl.gz", questions)
    licence = (data / "LICENSE").read_text(encoding="utf-8").strip()
    (folder / "ATTRIBUTION.md").write_text(
        _attribution(tables, len(passages), licence), encoding="utf-8"
    )
    return {
        "tables": len(tables),
        "passages": len(passages),
        "questions": len(questions),
    }


def linked_pages(table: Mapping[str, Any]) -> list[str]:
    """Return the pages that the cells of an OTT-QA table link to, sorted."""
    rows = [table["header"], *table["data"]]
    return sorted({page for row in rows for _, pages in row for page in pages or ()})


def _table(id_: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": id_,
        "title": raw["title"],
        "section": raw["section_title"],
        "section_text": raw["section_text"],
        "introduction": raw["intro"],
        "header": [text for text, _ in raw["header"]],
        "rows": [[text for text, _ in row] for row in raw["data"]],
        "metadata": {"url": raw["url"]},
    }


def _passage(page: str, text: str) -> dict[str, Any]:
    return {
        "id": page,
        "title": title_of(page),
        "text": text,
        "metadata": {"url": _WIKIPEDIA + page},
    }


def _question(raw: Mapping[str, Any]) -> dict[str, Any]:
    nodes = raw["answer-node"]
    return {
        "id": raw["question_id"],
        "question": raw["question"],
        "answer": raw["answer-text"],
        "table": raw["table_id"],
        "rows": sorted({row for _, (row, _), _, _ in nodes}),
        "passages": sorted({page for _, _, page, kind in nodes if kind == "passage"}),
    }


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines, compressed; the same records make the same bytes."""
    out = io.BytesIO()
    with gzip.GzipFile(
        filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0
    ) as zipped:
        for record in records:
            zipped.write(
                json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
                + b"\n"
            )
    path.write_bytes(out.getvalue())


def _attribution(tables: list[dict[str, Any]], passages: int, licence: str) -> str:
    pages = "\n".join(
        f"- [{title}]({url})"
        for title, url in sorted({(t["title"], t["metadata"]["url"]) for t in tables})
    )
    return f"""# Where the corpus of the demo comes from

`corpus.jsonl.gz` holds {len(tables)} tables and {passages} passages, `questions.jsonl.gz` the questions about them.
They are taken from OTT-QA, *Open Question Answering over Tables and Text* (Wenhu Chen, Ming-Wei Chang, Eva Schlinger,
William Wang and William W. Cohen, ICLR 2021), <https://github.com/wenhuchen/OTT-QA>, by
`tools/make_corpus.py` of the repository.

The text of tables and passages is from the English Wikipedia, written by its contributors and licensed
[CC BY-SA 3.0](https://creativecommons.org/licenses/by-sa/3.0/); so are these two files as far as they hold it. Every
table and passage has the address of its page, where its authors are listed, as `metadata.url`. Changes: OTT-QA took the
beginning of each page and split the text into tokens; the links in the cells of the tables were left out here.

The pages that the tables are from:

{pages}

The questions and the selection are OTT-QA's, under this licence:

```
{licence}
```
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="a folder with the layout of the OTT-QA repository",
    )
    parser.add_argument("--out", type=Path, default=DEMO, help="where to write")
    arguments = parser.parse_args()
    counts = make(arguments.data, arguments.out)
    print(", ".join(f"{number} {name}" for name, number in counts.items()))


if __name__ == "__main__":
    main()
