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
from graphret.corpus.readers import items_of
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
        match=r"expected files .* \.jsonl, \.csv, \.tsv, \.md, \.markdown, \.txt, \.html",
    ):
        read(tmp_path)
    (message,) = caplog.messages
    for words in (
        str(tmp_path),
        "4 files of other types",
        "LICENSE",
        "SimpleDirectoryReader",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.docx", b"x", ["got '.docx'", ".jsonl", ".csv", ".md"]),
        ("a.txt", b"\x89PNG\0\xff\0\x01", ["no encoding", "--encoding"]),
        ("a.csv", b"a,b\n1,2\n3\n", ["row 2 has 1 cells", "2"]),
        ("a.ipynb", b'{"worksheets": []}', ["'cells'", "nbformat 4"]),
        ("a.ipynb", b'{"cells": [{"source": 3}]}', ["cell 1", "'source'"]),
        ("c.csv", b'a,b\n"1,2\n', ["line 2"]),
        ("none.txt", b"", ["No such file"]),
    ],
)
def test_malformed_files(
    tmp_path: Path, name: str, content: bytes, words: list[str]
) -> None:
    path = write(tmp_path / name, content) if content else tmp_path / name
    with pytest.raises(InvalidInput) as caught:
        read(path, strict=True)
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


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("excel.csv", "sep=;\nA;B, C\n1;x,y\n", [["A", "B, C"], ["1", "x,y"]]),
        (
            "quoted.csv",
            '"A, B, C, D";E;F\n1;2;3\n',
            [["A, B, C, D", "E", "F"], ["1", "2", "3"]],
        ),
        ("commas.tsv", "a,b,c\td,e\n1\t2\n", [["a,b,c", "d,e"], ["1", "2"]]),
        ("bom.csv", "\ufeffA,B\n1,2\n", [["A", "B"], ["1", "2"]]),
        ("long.csv", f"A,B\n{'x' * 200_000},2\n", [["A", "B"], ["x" * 200_000, "2"]]),
    ],
)
def test_kinds_of_delimited_values(
    tmp_path: Path, name: str, text: str, rows: list[list[str]]
) -> None:
    table = table_of(write(tmp_path / name, text))
    assert [list(row) for row in (table.header, *table.rows)] == rows
    loaded = {"file_path": name}
    [of_loader] = items_of(text, loaded)
    assert isinstance(of_loader, Table)
    assert of_loader.header == table.header


def test_quotes_can_be_literal(tmp_path: Path) -> None:
    path = write(tmp_path / "inches.tsv", 'Size\tName\n5"\tdisk\n"a\tb\n')
    (table,) = read(path, literal_quotes=True).items
    assert isinstance(table, Table)
    assert table.rows == (('5"', "disk"), ('"a', "b"))


def test_ragged_rows_are_read_named_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "r.csv", "A,B\n1,2\n3\n4,5,6\n7,8,,\n")
    table = table_of(path)
    assert table.rows == (("1", "2"), ("3", ""), ("4", "5, 6"), ("7", "8"))
    [message] = caplog.messages
    for words in ("r.csv: 3 of 4 rows", "row 2 with 1", "2 cells"):
        assert words in message
    with pytest.raises(InvalidInput, match=r"r\.csv: .*row 2 has 1 cells"):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Name,City\nJürgen,Köln\nÑandú,São Paulo\n"),
        ("cp1252", "price,of\n5 €,café\n"),
        ("cp1250", "nazwa,miasto\nŁukasz,Łódź\nZażółć,Gdańsk\n"),
        ("cp1251", "Имя,Город\nИван,Москва\nАнна,Санкт-Петербург\n"),
        ("shift_jis", "名前,都市\n太郎,東京\n花子,大阪府の市\n"),
        ("utf-16", "Name,City\nJürgen,Köln\n"),
    ],
)
def test_encodings_are_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str, text: str
) -> None:
    path = write(tmp_path / "a.csv", text.encode(encoding))
    expected = [tuple(line.split(",")) for line in text.splitlines()]
    table, items = table_of(path), read(path, encoding=encoding).items
    assert [table.header, *table.rows] == expected
    assert items == (table,)
    [message] = caplog.messages
    assert "a.csv: is not UTF-8" in message


def test_files_that_cannot_be_read_are_named_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "good.txt", "text")
    bad = write(tmp_path / "bad.jsonl", '{"text": "x"}\n{')
    write(tmp_path / "binary.md", b"\x89PNG\0\xff\0\x01")
    corpus = read(tmp_path)
    assert [item.id for item in corpus] == ["good.txt"]
    assert [Path(skipped.split(":")[0]).name for skipped in corpus.skipped] == [
        "bad.jsonl",
        "binary.md",
    ]
    assert "bad.jsonl: line 2" in caplog.messages[0]
    assert "2 of 3 files were skipped" in caplog.messages[-1]
    for stops in (lambda: read(tmp_path, strict=True), lambda: read(bad)):
        with pytest.raises(InvalidInput, match=r"bad\.jsonl: line 2"):
            stops()
    with pytest.raises(InvalidInput, match="No such file"):
        read([tmp_path, tmp_path / "missing.txt"])


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder / "notes.md", f"# {folder}")
        write(tmp_path / folder / f"{folder}.md", folder)
    corpus = read([tmp_path / "a", tmp_path / "b"])
    paths = [(tmp_path / folder / "notes.md").as_posix() for folder in "ab"]
    assert [item.id for item in corpus] == ["a.md", paths[0], "b.md", paths[1]]


RST = """\
Guide
=====

The :class:`Graph <graphret.Graph>` and ``code``.

.. versionadded:: 3.2
   It reads cheese.

Data
----

=====  =====
Name   Value
=====  =====
a      1
=====  =====

.. code-block:: python

   # no heading
.. include:: secret.txt
"""
HTML = """\
<html><head><title>Guide</title><style>p {}</style></head><body><nav>Menu</nav>
<h1>Guide</h1><p>The Graph and <code>code</code>. It reads cheese.</p><h2>Data</h2>
<table><tr><th>Name</th><th>Value</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre># no heading</pre></body></html>
"""
NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "markdown",
                "source": ["# Guide\n", "The Graph and `code`.\n"],
            },
            {"cell_type": "code", "source": "# no heading", "outputs": []},
            {"cell_type": "raw", "source": ""},
            {
                "cell_type": "markdown",
                "source": "It reads cheese.\n## Data\n\n|Name|Value|\n|-|-|\n|a|1|",
            },
        ],
        "nbformat": 4,
    }
)


@pytest.mark.parametrize(
    ("name", "content"), [("g.rst", RST), ("g.html", HTML), ("g.ipynb", NOTEBOOK)]
)
def test_rst_html_and_notebooks(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path / "secret.txt", "secret")
    document, table = read(write(tmp_path / name, content)).items
    assert isinstance(document, Document)
    assert isinstance(table, Table)
    assert (document.id, document.title, table.title) == (name, "Guide", "Guide")
    for words in ("The Graph and `code`.", "It reads cheese.", "# no heading"):
        assert words in document.text
    for words in ("secret", "Menu", "p {}"):
        assert words not in document.text
    assert (table.section, table.header, table.rows) == (
        "Data",
        ("Name", "Value"),
        (("a", "1"),),
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


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: >-\n  Folded\n  over lines\n---\n# No\n", "Folded over lines"),
        ('---\ntitle: "A \\"b\\" \\u00e9"  # why\n---\n', 'A "b" é'),
        ("---\n# title: No\ntitle: Yes\n---\n", "Yes"),
        ("---\ntitle: 1984\n...\ntext", "1984"),
        ("---\ntitle: Graphs: an introduction\n---\n", "Graphs: an introduction"),
        ("+++\ntitle = 'Of TOML' # why\n[extra]\na = 1\n+++\n# No\n", "Of TOML"),
        ("---\nauthor: x\n---\n# Heading\n", "Heading"),
        ("---\n[[[\n---\n# Heading\n", "Heading"),
        ("<!-- # Draft -->\n<!--\n# Old\n-->\n# New\n", "New"),
        ("<!-- never closed\n# New\n", "New"),
        ("````md\n```\n# No\n```\n# No\n````\n# Yes\n", "Yes"),
        ("~~~\n```\n~~~\n# Yes\n", "Yes"),
        ("``` not `a` fence\n# Yes\n", "Yes"),
        ("# C#\n", "C#"),
        ("# Closed ##   \n", "Closed"),
        ("# snake_case **and *both* marks**\n", "snake_case and both marks"),
        ("# [Mercury (planet)](a_(b)) ![i](x)\n", "Mercury (planet)"),
        ("<h1 class='a'>In <b>HTML</b></h1>\n", "In HTML"),
        ("<h1>Open\n<h2>Closed</h2>\n<h1>Title</h1>", "Title"),
    ],
)
def test_titles(tmp_path: Path, text: str, title: str) -> None:
    [document] = read(write(tmp_path / "a.md", text)).items
    assert isinstance(document, Document)
    assert document.title == title


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
        read(tmp_path / "a", strict=True)
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
    corpus = Corpus((Record("a"), Record("b")), (edge, Edge("b#1", "r", "b")))
    assert [item.id for item in corpus] == ["a", "b"]
    filtered = corpus.filter(lambda item: item.id == "b")
    assert ([item.id for item in filtered], filtered.edges) == (["b"], corpus.edges[1:])
    with pytest.raises(InvalidInput, match=r"document 'q'.*'when'"):
        read(SimpleNamespace(page_content="x", metadata={"when": object()}, id="q"))
    with pytest.raises(InvalidInput, match="got int"):
        read([3])
