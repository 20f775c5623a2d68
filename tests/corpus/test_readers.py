"""What can be read, and how it says what it cannot read."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret import SageGraph
from graphret.corpus import (
    Corpus,
    Document,
    Record,
    Table,
    read,
    register_reader,
)
from graphret.corpus.tables import delimited
from graphret.errors import InvalidInput
from graphret.types import Edge

CELLS = st.text(alphabet=st.sampled_from(list('ab,;"\n é|')), max_size=6).map(
    lambda cell: f"x{cell}"
)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table_of(path: Path) -> Table:
    (table,) = read(path).items
    assert isinstance(table, Table)
    return table


def test_json_lines_of_every_shape(tmp_path: Path) -> None:
    lines = [
        {"id": "d", "title": "T", "text": "x", "metadata": {"a": [1]}},
        {
            "id": "t",
            "title": "T",
            "section": "S",
            "header": ["a"],
            "rows": [[1], [None]],
            "metadata": {"b": None},
        },
        {"id": 7, "labels": ["Gene"], "name": "G", "properties": {"c": 1}},
        {
            "source": "d",
            "relation": "cites",
            "target": "t",
            "weight": 2,
            "properties": {"why": "x"},
        },
        {"id": None, "text": "no id"},
    ]
    corpus = read(
        write(
            tmp_path / "a.jsonl",
            "\ufeff" + "\n\n".join(map(json.dumps, lines)) + "\r\n",
        )
    )
    assert corpus.items == (
        Document("x", "d", "T", {"a": [1]}),
        Table(["a"], [["1"], [""]], "t", "T", "S", metadata={"b": None}),
        Record("7", ("Gene",), "G", {"c": 1}),
        Document("no id"),
    )
    assert corpus.edges == (Edge("d", "cites", "t", 2, {"why": "x"}),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", []),
        ("[1]", ["an object", "list"]),
        ("{}", ["none of the keys", "text"]),
        ('{"text": "x", "author": "y"}', ["'author'"]),
        ('{"text": 1}', ["'text'", "int"]),
        ('{"header": ["a"]}', ["'rows'"]),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, line: str, words: list[str]) -> None:
    path = write(tmp_path / "bad.jsonl", f'{{"text": "good"}}\n{line}\n')
    with pytest.raises(InvalidInput) as caught:
        read(path)
    for word in ["bad.jsonl: line 2", *words]:
        assert word in str(caught.value)


def ids(*sources: object) -> list[str]:
    return [item.id for item in read(list(sources)).items]


def test_items_of_files_have_their_paths_as_ids(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = "|a|\n|-|\n|1|\n"
    write(tmp_path / "notes/deep/a.md", f"# A\n\n{table}\nText.\n\n{table}")
    write(tmp_path / "notes/only.markdown", table)
    write(tmp_path / "notes/b.txt", "b")
    write(tmp_path / "notes/c.csv", "x,y\n1,2\n")
    write(tmp_path / "notes/d.jsonl", '{"id": "own", "text": "x"}')
    write(tmp_path / "notes/.hidden/x.txt", "x")
    deep = ["deep/a.md", "deep/a.md/table-0", "deep/a.md/table-1"]
    assert ids(tmp_path / "notes") == [
        "b.txt",
        "c.csv",
        "own",
        *deep,
        "only.markdown/table-0",
    ]
    assert ids(str(tmp_path))[:2] == ["notes/b.txt", "notes/c.csv"]
    assert ids(tmp_path / "notes/deep/a.md") == ["a.md", "a.md/table-0", "a.md/table-1"]
    assert ids([]) == ids(write(tmp_path / "e.jsonl", "")) == []
    assert not caplog.records


def test_files_that_are_not_read_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (
        "p.pdf",
        "sub/q.PDF",
        "w.docx",
        "LICENSE",
        ".git/x.pdf",
        ".hidden.pdf",
    ):
        write(tmp_path / name, "x")
    with pytest.raises(
        InvalidInput,
        match=r"no file .* read: \.jsonl, \.csv, \.tsv, \.md, \.markdown, \.txt",
    ):
        read(tmp_path)
    (said,) = caplog.messages
    for words in (
        str(tmp_path),
        "4 files of other types",
        "LICENSE",
        "SimpleDirectoryReader",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.docx", b"x", ["unknown file type '.docx'", ".jsonl", ".csv", ".md"]),
        ("a.txt", b"ok\n\xff", ["utf-8"]),
        ("a.csv", b"a,b\n1,2\n3\n", ["row 1 has 1 cells", "2"]),
        ("c.csv", b'a,b\n"1,2\n', ["line 2"]),
        ("none.txt", b"", ["No such file"]),
    ],
)
def test_malformed_files(
    tmp_path: Path, name: str, content: bytes, words: list[str]
) -> None:
    path = write(tmp_path / name, content) if content else tmp_path / name
    with pytest.raises(InvalidInput) as caught:
        read(path)
    for word in [name, *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimited_files(tmp_path: Path, delimiter: str) -> None:
    lines = [
        ["City", "People, all", "Year"],
        ["Köln", "1,000", ""],
        ["", 'say "x"', "1999"],
    ]
    path = tmp_path / ("cities.tsv" if delimiter == "\t" else "cities.csv")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)
    table = table_of(path)
    assert (table.title, list(table.header), [list(row) for row in table.rows]) == (
        "cities",
        lines[0],
        lines[1:],
    )


@settings(max_examples=25)
@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=5))
def test_delimited_text_round_trips(rows: list[list[str]]) -> None:
    text = "\r\n".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row)
        for row in [["a", "b", "c"], *rows]
    )
    (table,) = delimited(text, exact=True)
    assert table.rows == rows


MARKDOWN = """\
# Guide

Intro text.

## Data

The numbers:

| Name | Value \\| unit |
|:-----|--------------:|
| a    | 1 | more |
| b |

### Deeper
x | y
--|--
1 | 2

```
| not | a table |
|-----|---------|
# not a heading
```
After.
"""


def test_markdown(tmp_path: Path) -> None:
    document, first, second = read(
        write(tmp_path / "guide.md", MARKDOWN.replace("\n", "\r\n"))
    ).items
    assert isinstance(document, Document)
    assert isinstance(first, Table)
    assert isinstance(second, Table)
    assert document.title == first.title == "Guide"
    assert document.metadata == {"file_name": "guide.md"}
    assert "Intro text." in document.text
    assert "| not | a table |" in document.text
    assert "| a    |" not in document.text
    assert (first.section, first.section_text) == ("Data", "The numbers:")
    assert first.header == ("Name", "Value | unit")
    assert first.rows == (("a", "1 | more"), ("b", ""))
    assert (second.section, second.header, second.rows) == (
        "Data > Deeper",
        ("x", "y"),
        (("1", "2"),),
    )


HTML_READER = """
import re
from graphret.corpus import Document

def read_html(path, id_):
    title, text = re.search("<h1>(.*)</h1><p>(.*)</p>", path.read_text()).groups()
    yield Document(text, id_, title)
"""


def test_files_of_a_type_of_ones_own_are_read(tmp_path: Path) -> None:
    def read_ini(path: Path, id_: str) -> Iterator[Record | Edge]:
        name, upstream = path.read_text().split()
        yield Record(name)
        yield Edge(name, "DEPENDS_ON", upstream)

    register_reader(".INI", read_ini)
    write(tmp_path / "a/web.ini", "web db")
    write(tmp_path / "a/db.Ini", "db")
    write(tmp_path / "a/notes.txt", "x")
    with pytest.raises(InvalidInput, match=r"db\.Ini: .*unpack"):
        read(tmp_path / "a")
    write(tmp_path / "a/db.Ini", "db disk")
    corpus = read(tmp_path / "a")
    assert [item.id for item in corpus.items] == ["db", "notes.txt", "web"]
    assert corpus.edges[0] == Edge("db", "DEPENDS_ON", "disk")
    with pytest.raises(InvalidInput, match=r"suffix such as '.html', got 'html'"):
        register_reader("html", read_ini)


def test_the_command_line_uses_the_readers_of_installed_packages(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site"
    write(site / "html_notes.py", HTML_READER)
    about = site / "html_notes-1.0.dist-info"
    write(about / "METADATA", "Metadata-Version: 2.1\nName: html-notes\nVersion: 1.0\n")
    write(
        about / "entry_points.txt", "[graphret.readers]\n.html = html_notes:read_html\n"
    )
    write(tmp_path / "notes/poljud.html", "<h1>Poljud</h1><p>By Magaš.</p>")
    out = tmp_path / "notes.sage"
    path = os.pathsep.join([str(site), *sys.path])
    build = ["build", str(tmp_path / "notes"), "--out", str(out), "--encoder", "none"]
    subprocess.run(
        [sys.executable, "-m", "graphret.cli", *build],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
    )
    [node] = SageGraph.load(out).nodes
    assert (node.id, node.name, node.text) == ("poljud.html#0", "Poljud", "By Magaš.")


def test_objects_are_read() -> None:
    edge = Edge("a", "r", "b")
    sources: list[Any] = [
        Document("x", id="a"),
        {"id": "b", "text": "y"},
        edge,
        Corpus((Record("c"),), (edge,)),
    ]
    assert [item.id for item in read(sources).items] == ["a", "b", "c"]
    assert read(sources).edges == (edge, edge)
    langchain = SimpleNamespace(
        page_content="text", metadata={"title": "T", "year": 1}, id="x"
    )
    assert read(langchain).items == (
        Document("text", "x", "T", {"title": "T", "year": 1}),
    )
    with pytest.raises(InvalidInput, match=r"document 'q'.*'when'"):
        read(SimpleNamespace(page_content="x", metadata={"when": object()}, id="q"))
    with pytest.raises(InvalidInput, match="cannot read a int"):
        read([3])
