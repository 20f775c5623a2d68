"""Which column of a table is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphret.errors import InvalidInput

#: The columns that are looked for where none is named, the first that is there.
USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "label": ("labels", "label", "type"),
    "name": ("name",),
    "text": ("text",),
    "source": ("source", "from"),
    "target": ("target", "to"),
    "relation": ("relation", "type"),
    "weight": ("weight",),
    "properties": ("properties",),
}
TYPES = ("string", "integer", "float", "boolean", "json")
_OF_NODES = ("id", "label", "name", "text", "properties")
_OF_EDGES = ("source", "target", "relation", "weight", "properties")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what; the other columns are properties. A table with a source and a target holds edges.

    Parameters
    ----------
    id, label, name, text
        Columns of node tables. Where one is `None`, a column of the usual name is taken: ``id``; ``labels``, ``label``
        or ``type``; ``name``; ``text``.
    source, target, relation, weight
        Columns of edge tables; ``source`` or ``from``, ``target`` or ``to``, ``relation`` or ``type``, ``weight``.
    properties
        A column of JSON objects, whose fields become properties; ``properties``.
    label_separator
        What stands between the labels of a node with several, where they are one string.
    default_label, default_relation
        The label of nodes and the relation of edges in tables with no such column; with no relation such a table is
        refused.
    types
        The types of CSV columns that are not to be guessed: ``string``, ``integer``, ``float``, ``boolean``, ``json``.
    delimiter
        What stands between the fields of CSV; a comma, or in ``.tsv`` files a tab.
    """

    id: str | None = None
    label: str | None = None
    name: str | None = None
    text: str | None = None
    source: str | None = None
    target: str | None = None
    relation: str | None = None
    weight: str | None = None
    properties: str | None = None
    label_separator: str = ";"
    default_label: str = "Node"
    default_relation: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None

    def __post_init__(self) -> None:
        for column, kind in self.types.items():
            if kind not in TYPES:
                raise InvalidInput(f"type of column {column!r}: one of {', '.join(TYPES)} is expected, not {kind!r}")

    def named(self) -> dict[str, str]:
        """Return the columns that were named, by role."""
        given = {role: getattr(self, role) for role in USUAL}
        return {role: column for role, column in given.items() if column is not None}

    def of(self, header: Sequence[str], role: str) -> str | None:
        """Return the column of a table that has a role, `None` if there is none."""
        named = getattr(self, role)
        return next((name for name in ([named] if named is not None else USUAL[role]) if name in header), None)

    def has_edges(self, header: Sequence[str]) -> bool:
        """Whether a table with these columns holds edges."""
        return self.of(header, "source") is not None and self.of(header, "target") is not None

    def roles(self, header: Sequence[str]) -> dict[str, str]:
        """Return the column of each role that a table has.

        Raises
        ------
        InvalidInput
            If a node table has no id, an edge table no relation, or one column was named for two roles.
        """
        edges = self.has_edges(header)
        found: dict[str, str] = {}
        for role in _OF_EDGES if edges else _OF_NODES:
            column = self.of(header, role)
            if column is not None and column not in found.values():
                found[role] = column
            elif column is not None and role in self.named():
                raise InvalidInput(f"the column {column!r} cannot be two things")
        needed = "relation" if edges else "id"
        if needed not in found and not (edges and self.default_relation):
            more = "one relation for all edges (--relation)" if edges else "for edges --source-column, --target-column"
            raise InvalidInput(
                f"no column holds the {needed}; the columns are {', '.join(map(repr, header))}; "
                f"name one (--{needed}-column), or {more}"
            )
        return found

    def require_in(self, header: Sequence[str], source: str) -> None:
        """Raise an `InvalidInput` if a column was named that is not among those that a source has."""
        shown = f"; the columns are {', '.join(map(repr, header))}" if header else ""
        for role, column in self.named().items():
            if column not in header:
                raise InvalidInput(f"--{role}-column: {source} has no column {column!r}{shown}")
        for column in self.types:
            if column not in header:
                raise InvalidInput(f"--type: {source} has no column {column!r}{shown}")
