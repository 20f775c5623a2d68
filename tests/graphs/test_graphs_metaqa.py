"""MetaQA's layout: labels from roles, and every malformed line named."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphret.errors import InvalidInput
from graphret.graphs.metaqa import OBJECTS, read_metaqa
from graphret.types import Edge

KB = """\
Kismet|directed_by|William Dieterle
Kismet|starred_actors|Marlene Dietrich
Kismet|release_year|1944
Kismet|in_language|English
Kismet|has_tags|bd-r
Kismet|has_genre|Musical
Flags|directed_by|Clint Eastwood
Flags|starred_actors|Clint Eastwood
Flags|written_by|Clint Eastwood
Flags|has_imdb_rating|good
Flags|has_imdb_votes|well known
1944|release_year|1943
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "kb.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_labels_are_the_roles_that_a_name_plays(tmp_path: Path) -> None:
    tables = read_metaqa(write(tmp_path, KB))
    (nodes,) = tables.nodes(100)
    labels = {node.id: node.labels for node in nodes}
    assert labels == {
        "Kismet": ("Movie",),
        "Flags": ("Movie",),
        "William Dieterle": ("Director",),
        "Clint Eastwood": ("Director", "Writer", "Actor"),
        "Marlene Dietrich": ("Actor",),
        "1944": ("Movie", "Year"),
        "1943": ("Year",),
        "English": ("Language",),
        "bd-r": ("Tag",),
        "Musical": ("Genre",),
        "good": ("Rating",),
        "well known": ("Votes",),
    }
    assert all(node.name == node.id for node in nodes)
    assert tables.label_counts()["Director"] == 2
    (edges,) = tables.edges(100)
    assert edges == [Edge(*line.split("|")) for line in KB.splitlines()]
    assert tables.relation_counts() == dict.fromkeys(sorted(OBJECTS), 1) | {
        **dict.fromkeys(("directed_by", "release_year", "starred_actors"), 2)
    }


def test_the_order_of_lines_does_not_matter_for_labels(tmp_path: Path) -> None:
    one = read_metaqa(write(tmp_path, KB))
    other = read_metaqa(write(tmp_path, "\n".join(reversed(KB.splitlines()))))
    (nodes,), (others,) = one.nodes(100), other.nodes(100)
    assert sorted(nodes, key=lambda node: node.id) == sorted(others, key=lambda node: node.id)


def test_a_folder_will_do_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, "\ufeff" + KB.replace("\n", "\r\n") + "\r\n")
    assert read_metaqa(tmp_path).count() == (12, 12)


def test_a_triple_twice_is_one_edge(tmp_path: Path) -> None:
    tables = read_metaqa(write(tmp_path, KB + KB))
    assert (tables.count(), tables.merged) == ((12, 12), 12)


def test_names_keep_their_characters(tmp_path: Path) -> None:
    names = ["naïve\u2028café", 'quo"ted', " padded ", "a\u0085b", "東京🎬"]
    tables = read_metaqa(write(tmp_path, "".join(f"{name}|has_tags|x\n" for name in names)))
    assert set(tables.ids) == {*names, "x"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"Kismet|directed_by", "subject|relation|object is expected, not 2 fields"),
        (b"Kismet|directed_by|A|B", "not 4 fields"),
        (b"Kismet", "not 1 fields"),
        (b"|directed_by|A", "the name of the subject is empty"),
        (b"Kismet|directed_by|", "the name of the object is empty"),
        (b"Kismet|directed_by|  ", "the name of the object is empty"),
        (b"Kismet|edited_by|A", "unknown relation 'edited_by'; known are directed_by"),
        (b"Kismet|directed_by|\xff\xfe", "not UTF-8"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = write(tmp_path, KB.encode() + line + b"\n" + KB.encode())
    with pytest.raises(InvalidInput) as caught:
        read_metaqa(path)
    assert str(caught.value).startswith(f"{path}, line 13: ")
    assert said in str(caught.value)


def test_what_holds_no_triples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no triples"):
        read_metaqa(write(tmp_path, "\n\n"))
    with pytest.raises(InvalidInput, match="no such file"):
        read_metaqa(tmp_path / "nothing.txt")
