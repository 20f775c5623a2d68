"""A `GraphSchema` as text for a prompt, within a budget of tokens."""

from __future__ import annotations

import bisect
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from graphret.errors import InvalidInput
from graphret.schema.model import GraphSchema, PropertySchema

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LENGTH = 100
_VALUE_LENGTH = 40
_VALUES = 3
_LIST_ITEMS = 3


class _Piece(NamedTuple):
    """Something to show: its kind is ``label``, ``triple``, ``property``, ``edge property`` or ``examples``."""

    kind: str
    owner: Any
    name: str = ""
    of: str = ""

    @property
    def fits(self) -> bool:
        """Whether all its names can be written; a node may have no label."""
        names = [*(self.owner if self.kind == "triple" else [self.owner]), self.name]
        return any(names) and all(quote_name(name) for name in names if name)


def write(schema: GraphSchema, max_tokens: int | None) -> str:
    """Write as much of a schema as fits; see `GraphSchema.text`."""
    known = _pieces(schema)
    pieces, missing = [p for p in known if p.fits], [p for p in known if not p.fits]
    if max_tokens is None:
        return _render(schema, pieces, missing)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int):
        raise InvalidInput(f"max_tokens: a whole number is expected, not {max_tokens!r}")

    def too_long(n: int) -> bool:
        return estimate_tokens(_render(schema, pieces[:n], [*missing, *pieces[n:]])) > max_tokens

    n = bisect.bisect_left(range(len(pieces) + 1), True, key=too_long) - 1
    if n < 0:
        raise InvalidInput(f"max_tokens: {max_tokens} is too few to say that the schema was left out")
    return _render(schema, pieces[:n], [*missing, *pieces[n:]])


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few: one for every two and a half bytes of UTF-8."""
    return math.ceil(len(text.encode()) / 2.5)


def quote_name(name: str) -> str | None:
    """Return a label, relation or property as Cypher writes it, `None` if it does not fit on a line."""
    if not name or len(name) > _NAME_LENGTH or any(unicodedata.category(c) in _UNFIT for c in name):
        return None
    return name if _IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def quote_value(value: Any) -> str:
    """Return a value from the data as JSON on one line, shortened."""
    if isinstance(value, str):
        clean = " ".join("".join(" " if unicodedata.category(c) in _UNFIT else c for c in value).split())
        return json.dumps(
            clean if len(clean) <= _VALUE_LENGTH else clean[: _VALUE_LENGTH - 1] + "…", ensure_ascii=False
        )
    if isinstance(value, (list, tuple)):
        items = [quote_value(v) for v in value[:_LIST_ITEMS]]
        return "[" + ", ".join(items + ["…"] * (len(value) > _LIST_ITEMS)) + "]"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return quote_value(str(value))


_UNFIT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # line breaks, controls, and what turns the direction of writing


def _pieces(schema: GraphSchema) -> list[_Piece]:
    """Return what there is to write, the most important first."""
    labels = [_Piece("label", label) for label, _ in sorted(schema.labels.items(), key=lambda x: (-x[1], x[0]))]
    triples = [_Piece("triple", key) for key, _ in sorted(schema.relations.items(), key=lambda x: (-x[1], x[0]))]
    frame = [piece for pair in zip_longest(labels, triples) for piece in pair if piece]
    of_relation: Counter[str] = Counter()
    for (_, relation, _), n in schema.relations.items():
        of_relation[relation] += n
    described = [
        *_of_owners("property", schema.properties, schema.labels),
        *_of_owners("edge property", schema.relation_properties, of_relation),
    ]
    described.sort(key=lambda item: item[0])
    properties = [piece for _, piece, _ in described]
    examples = [_Piece("examples", p.owner, p.name, p.kind) for _, p, known in described if known.examples]
    return [*frame, *properties, *examples]


def _of_owners(
    kind: str, properties: Mapping[str, Mapping[str, PropertySchema]], counts: Mapping[str, int]
) -> Iterator[tuple[tuple[float, str, str, str], _Piece, PropertySchema]]:
    for owner, of_owner in properties.items():
        for name, known in of_owner.items():
            borne = known.coverage * counts.get(owner, 0)
            yield (-borne, kind, owner, name), _Piece(kind, owner, name), known


def _render(schema: GraphSchema, shown: list[_Piece], missing: list[_Piece]) -> str:
    with_examples = {(p.of, p.owner, p.name) for p in shown if p.kind == "examples"}
    of_label: dict[str, list[str]] = {p.owner: [] for p in shown if p.kind == "label"}
    of_relation: dict[str, list[str]] = {}
    for p in shown:
        if p.kind in ("property", "edge property"):
            known = (schema.properties if p.kind == "property" else schema.relation_properties)[p.owner][p.name]
            values = known.examples[:_VALUES] if (p.kind, p.owner, p.name) in with_examples else ()
            said = f" e.g. {', '.join(map(quote_value, values))}" if values else ""
            lines = of_label if p.kind == "property" else of_relation
            lines.setdefault(p.owner, []).append(f"{quote_name(p.name)}: {_type(known.type)}{said}")
    out = []
    if of_label:
        out.append("Nodes, how many, and their properties:")
        for label, told in of_label.items():
            count = f" {schema.labels.get(label, 0):,}" if label else ""
            out.append(f"{_node(label)}{count}{_braces(told)}")
    if triples := [p.owner for p in shown if p.kind == "triple"]:
        out.append("Relations and how many:")
        for source, relation, target in triples:
            n = schema.relations[source, relation, target]
            out.append(f"{_node(source)}-[:{quote_name(relation)}]->{_node(target)} {n:,}")
    if of_relation:
        out.append("Properties of relations:")
        out.extend(f"[:{quote_name(relation)}]{_braces(told)}" for relation, told in of_relation.items())
    if not schema.labels and not schema.relations:
        out.append("The graph is empty.")
    if note := _left_out(missing):
        out.append(note)
    if schema.sampled:
        out.append(f"Seen in a sample: there may be more {', '.join(_incomplete(schema))}.")
    return "\n".join(out)


def _incomplete(schema: GraphSchema) -> list[str]:
    relations = schema.sampled_names or bool(schema.sampled_relations)
    properties = bool(schema.sampled_properties or schema.sampled_relation_properties)
    kinds = {"labels": schema.sampled_names, "relations": relations, "properties": properties}
    return [kind for kind, sampled in kinds.items() if sampled]


def _left_out(missing: list[_Piece]) -> str:
    kinds = (("labels", ("label",)), ("relations", ("triple",)), ("properties", ("property", "edge property")))
    counts = {word: sum(p.kind in kinds for p in missing) for word, kinds in kinds}
    said = [f"{n:,} {word}" for word, n in counts.items() if n]
    if not said and missing:
        said = ["examples"]
    return f"Left out: {', '.join(said)}." if said else ""


def _node(label: str) -> str:
    return f"(:{quote_name(label)})" if label else "()"


def _type(kind: str) -> str:
    return kind if re.fullmatch(r"[A-Z_ ]{1,40}", kind) else "ANY"


def _braces(told: list[str]) -> str:
    return f" {{{'; '.join(told)}}}" if told else ""
