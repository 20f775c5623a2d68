"""Which column of a table is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphret.errors import InvalidInput

#: The usual columns of each role where none is named; the first one present counts.
USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "label": ("labels", "label", "type"),
    "name": ("name", "title"),
    "text": ("text", "description"),
    "source": ("source", "from"),
    "target": ("target", "to"),
    "relation": ("relation", "type"),
    "weight": ("weight",),
    "properties": ("properties",),
}
#: The relation of Microsoft GraphRAG's ``relationships.parquet``, which has none.
GRAPHRAG_RELATION = "RELATED_TO"
_OF_NODES = ("id", "label", "name", "text", "properties")
_OF_EDGES = ("source", "target", "relation", "weight", "properties")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what; the other columns are properties.

    A table with a source and a target holds edges.

    Parameters
    ----------
    id, label, name, text
        Columns of node tables. Where one is `None`, a column of a usual name (`USUAL`)
        is taken.
    source, target, relation, weight
        Columns of edge tables.
    properties
        A column of JSON objects, whose fields become properties.
    default_label, default_relation
        The label of nodes and the relation of edges in tables with no such column; with
        no relation such a table is refused, except Microsoft GraphRAG's, whose relation
        is ``RELATED_TO``.
    delimiter
        The delimiter of CSV; by default a comma, or in ``.tsv`` files a tab.
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
    default_label: str = "Node"
    default_relation: str | None = None
    delimiter: str | None = None

    def named(self) -> dict[str, str]:
        """Return the columns that were named, by role."""
        return {
            role: column
            for role in USUAL
            if (column := getattr(self, role)) is not None
        }

    def has_edges(self, header: Sequence[str]) -> bool:
        """Whether a table with these columns holds edges."""
        return {"source", "target"} <= self._present(header).keys()

    def roles(self, header: Sequence[str], table: object) -> dict[str, str]:
        """Return a table's column of each role; `InvalidInput` names a missing one."""
        edges, present = self.has_edges(header), self._present(header)
        roles: dict[str, str] = {}
        for role in _OF_EDGES if edges else _OF_NODES:
            # One column may be named as the id and as the name.
            if role in present and (
                present[role] not in roles.values() or role in self.named()
            ):
                roles[role] = present[role]
        needed = "relation" if edges else "id"
        if needed not in roles and not (edges and self.relation_of(header)):
            options = (
                f"(--{needed}-column{', or --relation for all edges' if edges else ''})"
            )
            raise InvalidInput(
                f"{table}: no column holds the {needed}; name one {options} of:"
                f" {', '.join(header)}"
            )
        return roles

    def relation_of(self, header: Sequence[str]) -> str:
        """Return the relation of edges in a table without a column of it, or empty.

        Microsoft GraphRAG's tables say only that entities are related.
        """
        graphrag = {"human_readable_id", "description"} <= set(header)
        return self.default_relation or (GRAPHRAG_RELATION if graphrag else "")

    def _present(self, header: Sequence[str]) -> dict[str, str]:
        """Return the columns of a table by role, named ones before the usual."""
        usual = {
            role: next((name for name in names if name in header), "")
            for role, names in USUAL.items()
        }
        return {
            role: name
            for role, name in (usual | self.named()).items()
            if name in header
        }

    def require_in(self, header: Sequence[str], source: str) -> None:
        """Raise `InvalidInput` if a named column is missing from a source."""
        for role, column in self.named().items():
            if column not in header:
                raise InvalidInput(
                    f"--{role}-column: {source} has no column {column!r}; it has:"
                    f" {', '.join(header)}"
                )
