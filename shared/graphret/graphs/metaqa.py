"""MetaQA's layout: lines of ``subject|relation|object`` over names without types (Zhang et al., 2018)."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np

from graphret.errors import InvalidInput
from graphret.graphs.lines import numbered, opened
from graphret.graphs.places import Places, place
from graphret.graphs.tables import GraphTables

FILE = "kb.txt"

#: The label of a subject.
SUBJECT = "Movie"

#: The label of an object, by relation, in the order in which labels stand on a node.
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

    A name is one node, and its id. Its labels are the roles that it plays, in the order of `OBJECTS` behind ``Movie``:
    a director who also acts is one node with the labels ``Director`` and ``Actor``.

    Parameters
    ----------
    source
        The file, or the folder that holds it as ``kb.txt``.

    Raises
    ------
    InvalidInput
        If a line has not three fields, an empty name, an unknown relation, or bytes that are not UTF-8; the
        message names the file and the line.
    """
    path = Path(source)
    path = path / FILE if path.is_dir() else path
    file = str(path)
    position: dict[str, int] = {}
    roles: list[int] = []
    codes = {relation: code for code, relation in enumerate(OBJECTS)}
    triples, numbers = array("q"), array("q")
    with opened(path) as lines:
        for number, line in numbered(lines):
            fields = line.split("|")
            code = codes.get(fields[1], -1) if len(fields) == 3 else -1
            if code < 0:
                if not line.strip():
                    continue
                _refuse(fields, place(file, number))
            for name, role in ((fields[0], 0), (fields[2], code + 1)):
                at = position.get(name)
                if at is None:
                    if not name.strip():
                        _refuse(fields, place(file, number))
                    at = position[name] = len(roles)
                    roles.append(0)
                roles[at] |= 1 << role
                triples.append(at)
            triples.append(code)
            numbers.append(number)
    if not triples:
        raise InvalidInput(f"{path}: holds no triples")
    subject, object_, code_of = np.frombuffer(triples, dtype=np.int64).reshape(-1, 3).T
    sets, labels = np.unique(np.asarray(roles, dtype=np.int64), return_inverse=True)
    used, relation = np.unique(code_of, return_inverse=True)
    names = list(position)
    return GraphTables(
        ids=names,
        names=names,
        texts=None,
        labels=labels.astype(np.int32),
        label_sets=[tuple(label for i, label in enumerate(_LABELS) if bits >> i & 1) for bits in sets.tolist()],
        properties=None,
        source=subject,
        target=object_,
        relation=relation.astype(np.int64),
        relations=[list(OBJECTS)[code] for code in used.tolist()],
        node_places=Places(lambda i, _: place(file, numbers[int(np.argmax((subject == i) | (object_ == i)))])),
        edge_places=Places(lambda i, _: place(file, numbers[i])),
    ).distinct()


def _refuse(fields: list[str], where: str) -> None:
    if len(fields) != 3:
        raise InvalidInput(f"{where}: subject|relation|object is expected, not {len(fields)} fields")
    subject, relation, object_ = fields
    for what, name in (("subject", subject), ("object", object_)):
        if not name.strip():
            raise InvalidInput(f"{where}: the name of the {what} is empty")
    if relation not in OBJECTS:
        raise InvalidInput(f"{where}: unknown relation {relation!r}; known are {', '.join(OBJECTS)}")
