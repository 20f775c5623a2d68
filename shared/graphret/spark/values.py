"""The texts that a query names, as the graph spells them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from typing import NamedTuple

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher import check, edits, run_checked
from graphret.cypher.edits import Edit
from graphret.cypher.suggestions import plainly
from graphret.cypher.tree import (
    Chain,
    LabelName,
    Name,
    Test,
    children,
    span,
    variable_name,
    walk,
)
from graphret.errors import GraphretError
from graphret.schema.text import quote_name
from graphret.search.index import TextIndex
from graphret.spark.repairs import RepairedQuery
from graphret.stores.base import CypherStore
from graphret.types import Node

_ALIKE = 0.8  # the share of equal characters from which a value is taken for another
_CANDIDATES = 10
_MOST_TEXTS, _SECONDS = 5_000, 5.0  # that are compared one by one, and to read them
_LOWERING = ("tolower", "lower")
#: What asks for a part of a text.
_PARTIAL = ("CONTAINS", "STARTS WITH", "ENDS WITH")


class ComparedText(NamedTuple):
    """A text that a query compares a property with, and where it stands.

    `labels` are those of the property's nodes; a `partial` text is a part of it.
    """

    text: str
    place: tuple[int, int]
    key: str
    labels: tuple[str, ...]
    lowered: bool
    partial: bool = False


def with_known_values(
    repaired: RepairedQuery, store: CypherStore, index: TextIndex
) -> RepairedQuery | None:
    """Return a query with its values as the graph spells them, as parameters.

    `None` where there is nothing to change.

    Each text that a property is compared with is searched for among the nodes of its
    label; what comes close enough takes its place.
    """
    values = [value for value in compared(repaired.report.tree) if value.text.strip()]
    changes, parameters, notes = [], dict(repaired.parameters), list(repaired.notes)
    for number, value in enumerate(values, 1):
        graph_text = known_text(value, store, index)
        if graph_text is not None and graph_text != value.text:
            parameters[f"value{number}"] = (
                graph_text.lower() if value.lowered else graph_text
            )
            changes.append(Edit(*value.place, f"$value{number}"))
            notes.append(f"{value.text!r} is {graph_text!r} in the graph")
    if not changes:
        return None
    report = check(
        edits.apply(repaired.query, changes), None, dialect=repaired.report.dialect
    )
    return replace(repaired, report=report, parameters=parameters, notes=tuple(notes))


def known_text(
    value: ComparedText, store: CypherStore, index: TextIndex, *, elsewhere: bool = True
) -> str | None:
    """Return the graph's text that is most like one of a query; `None` without any.

    Nodes of the stated label come first, then all others, unless not `elsewhere`.

    A text index finds no word that is misspelt; where it finds nothing that is like the
    text, all values of the property are compared, if the label has few enough.
    """
    for labels in dict.fromkeys((value.labels, ()) if elsewhere else (value.labels,)):
        hits = index.search(value.text, _CANDIDATES, labels=labels or None)
        nodes = [node for node in store.get(hits.ids) if node is not None]
        texts = [text for node in nodes for text in _texts(node, value.key)]
        closest = _closest(value, texts)
        if closest is not None:
            return closest
    return _closest(value, _all_texts(value, store))


def _all_texts(value: ComparedText, store: CypherStore) -> list[str]:
    """Return the texts of a label's nodes under a key.

    None where there are too many to compare, or the label is unknown.
    """
    label, key = quote_name("".join(value.labels[:1])), quote_name(value.key)
    if label is None or key is None:
        return []
    query = (
        f"MATCH (n:{label}) WHERE n.{key} IS NOT NULL"
        f" RETURN DISTINCT n.{key} LIMIT {_MOST_TEXTS}"
    )
    try:
        rows = run_checked(store, query, timeout=_SECONDS, max_rows=_MOST_TEXTS).rows
    except GraphretError:
        return []  # the text stays as it is
    texts = [text for (text,) in rows if isinstance(text, str)]
    return texts if len(rows) < _MOST_TEXTS else []


def _parts(text: str, other: str) -> Iterator[str]:
    """The parts of a text that another may mean: itself in any case, and word runs."""
    place = text.lower().find(other.lower())
    if place >= 0:
        yield text[place : place + len(other)]
    words, n = text.split(), len(other.split())
    for start in range(len(words) - n + 1):
        yield " ".join(words[start : start + n])


def compared(tree: AstNode) -> Iterator[ComparedText]:
    """The texts of a query that properties of nodes are compared with."""
    labels: dict[str | None, tuple[str, ...]] = {}
    for node in walk(tree):
        if isinstance(node, ast.NodePattern):
            node_labels = (
                tuple(
                    str(part.this)
                    for part in walk(node.labels)
                    if isinstance(part, LabelName)
                )
                if node.labels
                else ()
            )
            name = variable_name(node.variable)
            labels[name] = labels.get(name) or node_labels
            if isinstance(node.args.get("properties"), ast.Map):
                for key, literal in node.properties.entries:
                    if isinstance(literal, ast.String):
                        yield ComparedText(
                            str(literal.this),
                            span(literal),
                            str(key.this),
                            node_labels,
                            lowered=False,
                        )
    for node in walk(tree):
        if isinstance(node, Chain | Test):
            parts = [part for child in children(node) for part in _within(child)]
            properties = [part for part in parts if isinstance(part, ast.Property)]
            if len(properties) == 1 and variable_name(properties[0].this) in labels:
                lowered = any(
                    isinstance(part, Name) and str(part.this).lower() in _LOWERING
                    for part in parts
                )
                for part in parts:
                    if isinstance(part, ast.String):
                        owner = labels[variable_name(properties[0].this)]
                        yield ComparedText(
                            str(part.this),
                            span(part),
                            str(properties[0].name.this),
                            owner,
                            lowered,
                            partial=node.args.get("operator") in _PARTIAL,
                        )


def _within(node: AstNode) -> Iterator[AstNode]:
    """The parts of an operand: of lists, and of texts that are lowered or trimmed.

    The arguments of other functions, such as ``'year'`` in ``date_part('year', x)``,
    are no texts of the graph.
    """
    yield node
    if isinstance(node, ast.List) or _keeps_text(node):
        for child in children(node):
            yield from _within(child)


def _keeps_text(node: AstNode) -> bool:
    """Whether a function returns its text except for case and spaces around it."""
    return isinstance(node, ast.FunctionCall) and str(node.name.this).lower() in (
        *_LOWERING,
        "trim",
    )


def _texts(node: Node, key: str) -> list[str]:
    """The texts that a node has under a key; its name if that is kept elsewhere."""
    value = node.properties.get(key, node.name)
    return [
        text
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and text
    ]


def _closest(value: ComparedText, texts: Iterable[str]) -> str | None:
    """Return the text, or part of one, most like that of a query.

    It is the same except for case, accents and signs, or nearly so.
    """
    candidates = list(texts)
    if value.partial:
        candidates = [part for text in candidates for part in _parts(text, value.text)]
    plain_text, best = plainly(value.text), (_ALIKE, "")
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(plain_text)
    for candidate in dict.fromkeys(candidates):
        matcher.set_seq1(plainly(candidate))
        if matcher.real_quick_ratio() > best[0] and matcher.quick_ratio() > best[0]:
            best = max(best, (matcher.ratio(), candidate), key=lambda pair: pair[0])
    return best[1] or None
