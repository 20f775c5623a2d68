"""Read MetaQA's layout: lines of ``subject|relation|object`` (Zhang et al., 2018)."""

from __future__ import annotations

from pathlib import Path

from graphret.errors import InvalidInput
from graphret.graphs.tables import GraphTables
from graphret.graphs.tabular import numbered_lines

FILE = "kb.txt"

#: The label of a subject.
SUBJECT = "Movie"

#: The label of an object by relation, in the order of the labels of a node.
OBJECTS = {
    "directed_by": "Director",
    "written_by": "Writer",
    "starred_actors": "Actor",
    "release_year": "Year",
    "has_genre": "Genre",
    "in_language": "Language",
    "has_tags": "Tag",
    "has_imdb_rating": "Rating",
    "has_imdb_votes": "Votes",
}
_LABELS = (SUBJECT, *OBJECTS.values())


def read_metaqa(source: str | Path) -> GraphTables:
    """Read a knowledge base in MetaQA's layout.

    A name is one node, and its id. Its labels are its roles, ``Movie`` first and then
    in the order of `OBJECTS`: a director who also acts is one node with the labels
    ``Director`` and ``Actor``.

    Parameters
    ----------
    source
        The file, or the folder that holds it as ``kb.txt``.

    Raises
    ------
    InvalidInput
        If a line does not have three fields, or has an empty name, an unknown relation
        or bytes that are not UTF-8; the message names the file and the line.
    """
    path = Path(source)
    path = path / FILE if path.is_dir() else path
    triples: list[tuple[str, str, str]] = []
    roles: dict[str, set[str]] = {}
    for number, line in numbered_lines(path):
        fields = line.split("|")
        if (
            len(fields) != 3
            or not all(map(str.strip, fields))
            or fields[1] not in OBJECTS
        ):
            raise InvalidInput(
                f"{path}, line {number}: expected subject|relation|object; relations"
                f" are {', '.join(OBJECTS)}"
            )
        subject, relation, object_ = fields
        roles.setdefault(subject, set()).add(SUBJECT)
        roles.setdefault(object_, set()).add(OBJECTS[relation])
        triples.append((subject, relation, object_))
    tables = GraphTables()
    for name, node_roles in roles.items():
        tables.node(
            name, tuple(label for label in _LABELS if label in node_roles), name
        )
    for triple in triples:
        tables.edge(*triple)
    return tables
