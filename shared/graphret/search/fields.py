"""`NodeText`: the one place where a node becomes text, for indexes, prompts and rerankers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphret.types import Node

#: A field of a node: a text, or a list of texts that are its parts, such as the rows of a table.
FieldText: TypeAlias = str | list[str]

#: Weights of fields in BM25F; a field that is not named weighs 1.
FIELD_WEIGHTS: Mapping[str, float] = {"title": 3.0, "section": 2.0, "header": 2.0, "rows": 2.0}


@dataclass(frozen=True)
class NodeText:
    """Turn nodes into weighted fields for lexical search, and into one text for encoders, prompts and rerankers.

    A table segment has the fields title, section, header, introduction and, part by part, rows; anything else has its
    name as the title and its text as the body. String properties named in `properties` become fields too.

    Parameters
    ----------
    weights
        Weight of each field in BM25F.
    properties
        Further properties to read, such as ``("brand", "category")``.
    max_chars
        Longest text that `text` returns.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(FIELD_WEIGHTS))
    properties: tuple[str, ...] = ()
    max_chars: int = 4000

    def fields(self, node: Node) -> dict[str, FieldText]:
        """Return the fields of a node; those without text are left out."""
        properties = node.properties
        fields: dict[str, FieldText] = {"title": node.name}
        aliases = properties.get("aliases")
        if aliases:
            fields["aliases"] = _flat(aliases)
        if "table_rows" in properties:
            fields["section"] = _flat(properties.get("section"))
            fields["header"] = _flat(properties.get("table_header"))
            fields["introduction"] = " ".join(
                _flat(properties.get(key)) for key in ("introduction", "section_text", "column_descriptions")
            ).strip()
            fields["rows"] = [_flat(row) for row in properties["table_rows"]]
        else:
            fields["body"] = node.text
        fields.update({name: _flat(properties.get(name)) for name in self.properties})
        return {name: text for name, text in fields.items() if text}

    def text(self, node: Node) -> str:
        """Return the node as one text: its name, then what it says."""
        extra = [f"{name}: {_flat(node.properties[name])}" for name in self.properties if node.properties.get(name)]
        body = node.text
        title = node.name if node.name and not body.startswith(node.name) else ""
        return "\n".join(part for part in (title, body, *extra) if part)[: self.max_chars]


def _flat(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, Iterable):
        return " ".join(_flat(item) for item in value)
    return str(value)
