"""How labels, relations and properties are named in a Ladybug database, and written in its Cypher."""

from __future__ import annotations

from graphret.errors import InvalidInput

#: The columns of a node table of graphret's layout, and of a relation table, before the properties.
NODE_COLUMNS = {"id": "STRING", "name": "STRING", "text": "STRING", "labels": "STRING[]"}
EDGE_COLUMNS = {"weight": "DOUBLE", "source_row": "INT64", "target_row": "INT64"}

#: The column of the properties that no typed column holds, as a JSON object.
OVERFLOW = "properties"

#: The column of the names of the properties that are null, which a column of their own cannot tell from absent ones.
NULLS = "_nulls"

#: The table of the nodes without a label.
UNLABELLED = "_unlabelled"

_PREFIX = "properties."
_COMMENTS = ("graphret label: ", "graphret relation: ")
_RESERVED = frozenset(
    {
        *NODE_COLUMNS,
        *EDGE_COLUMNS,
        OVERFLOW,
        NULLS,
        "_id",
        "_label",
        "_src",
        "_dst",
        "_nodes",
        "_rels",
        "from",
        "to",
        "*",
    }
)
_FOLD = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def quoted(name: str) -> str:
    """Return a name as it is written in a query."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a string as it is written in a query; only where the grammar takes no parameter."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def folded(name: str) -> str:
    """Return what the database compares names by: it does not tell a from A, but é from É."""
    return name.translate(_FOLD)


def column_of(name: str) -> str:
    """Return the column of a property: its own name, behind a prefix where a column of the layout has that name."""
    return _PREFIX + name if folded(name) in _RESERVED or name.startswith(_PREFIX) else name


def property_of(column: str) -> str:
    """Return the property that a column of graphret's layout holds."""
    return column.removeprefix(_PREFIX)


def require_name(name: str, what: str) -> str:
    """Return a name that a table or a column can have.

    Raises
    ------
    InvalidInput
        When it is empty, holds a null character or is not Unicode text.
    """
    if not name or "\0" in name or not is_text(name):
        raise InvalidInput(f"{what}: {name!r} cannot be a name in a Ladybug database")
    return name


def comment_of(name: str, *, relation: bool) -> str:
    """Return the comment of a table that is not named like its label or relation."""
    return _COMMENTS[relation] + name


def named_in(comment: str, *, relation: bool) -> str | None:
    """Return the label or relation that the comment of a table names, `None` where it names none."""
    head = _COMMENTS[relation]
    return comment[len(head) :] if comment.startswith(head) else None


def is_text(value: str) -> bool:
    """Whether a string can be written as utf-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
