"""Conditions as Neo4j's Cypher."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graphret.stores.conditions import SIGNS, Conditions
from graphret.stores.neo4j.layout import Layout, escaped, quote
from graphret.where import PROPERTIES, Where

_TEMPORAL = "DATE | LOCAL TIME | ZONED TIME | LOCAL DATETIME | ZONED DATETIME | DURATION"
#: What begins as the text of a date, a time or a duration does.
_ISO = re.compile(r"-?\d{4}(-|$)|\d\d:|-?P\d")


class Filter(Conditions):
    """Conditions on a node whose fields are where `layout` has them."""

    def __init__(self, layout: Layout, variable: str, prefix: str = "where") -> None:
        super().__init__(variable, prefix)
        self.layout = layout

    def bears(self, labels: Sequence[str] | None) -> str:
        """Write that the node bears one of the labels, or any that is not of the store's own use."""
        if labels is None:
            unseen = self.parameter(sorted(self.layout.unseen_labels))
            return f"any(l IN labels({self.variable}) WHERE NOT l IN {unseen})"
        shown = [label for label in labels if label and label not in self.layout.unseen_labels]
        return f"({' OR '.join(f'{self.variable}:{quote(label)}' for label in shown) or 'false'})"

    def value(self, where: Where) -> tuple[str, bool] | None:
        """Return what stands for a field, and whether it is always a text; `None` for what may lie in a map."""
        if where.field == "id":
            return self.layout.id_of(self.variable), True
        if where.field in ("name", "text"):
            return self.layout.text_of(self.variable, getattr(self.layout, where.field)), True
        name = where.field.removeprefix(PROPERTIES)
        if "." in name:  # a map is kept as JSON
            return None
        value = f"{self.variable}.{quote(escaped(name, self.layout.taken(written=False)), 'where')}"
        operands = where.value if isinstance(where.value, tuple) else (where.value,)
        dated = any(isinstance(one, str) and _ISO.match(one) for one in operands)
        if not self.layout.own and (dated or where.operator == "$contains"):
            value = f"CASE WHEN {value} IS :: {_TEMPORAL} THEN split(toString({value}), '[')[0] ELSE {value} END"
        return value, False

    def compared(self, op: str, operands: Sequence[Any], value: str, kind: bool) -> str:
        """Write a comparison with a value of any type, or with one that is always a text."""
        sent = self.parameter(operands if op == "$in" else operands[0])
        if op == "$contains":
            in_text = f"{value} CONTAINS {sent}" if isinstance(operands[0], str) else "false"
            in_list = f"CASE WHEN {value} IS :: LIST<ANY> THEN {sent} IN {value} ELSE"
            found = in_text if kind else f"{in_list} CASE WHEN {value} IS :: STRING THEN {in_text} END END"
        else:
            found = f"{value} {SIGNS.get(op, 'IN' if op == '$in' else '=')} {sent}"
        return f"coalesce({found}, false)"
