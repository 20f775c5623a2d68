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
    """A text in a query that a property is compared with: where it stands, and the
    labels of what bears it; `partial` where it is to be a part of the property.
    """

    text: str
    place: tuple[int, int]
    key: str
    labels: tuple[str, ...]
    lowered: bool
    partial: bool = False


def with_known_values(
    mended: RepairedQuery, store: CypherStore, index: TextIndex
) -> RepairedQuery | None:
    """Return a query with its values as the graph spells them, as parameters; `None`
    where it knows none better.

    Each text that a property is compared with is searched for among the nodes of its
    label; what comes close enough takes its place.
    """
    values = [value for value in compared(mended.report.tree) if value.text.strip()]
    changes, parameters, notes = [], dict(mended.parameters), list(mended.notes)
    for number, value in enumerate(values, 1):
        known = known_text(value, store, index)
        if known is not None and known != value.text:
            parameters[f"value{number}"] = known.lower() if value.lowered else known
            changes.append(Edit(*value.place, f"$value{number}"))
            notes.append(f"{value.text!r} is {known!r} in the graph")
    if not changes:
        return None
    report = check(
        edits.apply(mended.query, changes), None, dialect=mended.report.dialect
    )
    return replace(mended, report=report, parameters=parameters, notes=tuple(notes))


def known_text(
    value: ComparedText, store: CypherStore, index: TextIndex, *, elsewhere: bool = True
) -> str | None:
    """Return the text of the graph that is most like one of a query, itself perhaps;
    `None` where none is like it. Nodes of the label that is asked for come first, then
    all others, unless not `elsewhere`.

    A text index finds no word that is misspelt; where it finds nothing that is like the
    text, all values of the property are compared, if the label has few enough.
    """
    for labels in dict.fromkeys((value.labels, ()) if elsewhere else (value.labels,)):
        found = index.search(value.text, _CANDIDATES, labels=labels or None)
        nodes = [node for node in store.get(found.ids) if node is not None]
        texts = [text for node in nodes for text in _texts(node, value.key)]
        known = _closest(value, texts)
        if known is not None:
            return known
    return _closest(value, _all_texts(value, store))


def _all_texts(value: ComparedText, store: CypherStore) -> list[str]:
    """Return the texts that nodes of a label have under a key; none where they are too
    many to compare, or the label is not known.
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


def _parts(text: str, wanted: str) -> Iterator[str]:
    """The parts of a text that may be meant by another: where it stands but for case,
    and all runs of as many words.
    """
    place = text.lower().find(wanted.lower())
    if place >= 0:
        yield text[place : place + len(wanted)]
    words, n = text.split(), len(wanted.split())
    for start in range(len(words) - n + 1):
        yield " ".join(words[start : start + n])


def compared(tree: AstNode) -> Iterator[ComparedText]:
    """The texts of a query that properties of nodes are compared with."""
    labels: dict[str | None, tuple[str, ...]] = {}
    for node in walk(tree):
        if isinstance(node, ast.NodePattern):
            own = (
                tuple(
                    str(part.this)
                    for part in walk(node.labels)
                    if isinstance(part, LabelName)
                )
                if node.labels
                else ()
            )
            name = variable_name(node.variable)
            labels[name] = labels.get(name) or own
            if isinstance(node.args.get("properties"), ast.Map):
                for key, given in node.properties.entries:
                    if isinstance(given, ast.String):
                        yield ComparedText(
                            str(given.this),
                            span(given),
                            str(key.this),
                            own,
                            lowered=False,
                        )
    for node in walk(tree):
        if isinstance(node, Chain | Test):
            parts = [part for child in children(node) for part in _within(child)]
            asked = [part for part in parts if isinstance(part, ast.Property)]
            if len(asked) == 1 and variable_name(asked[0].this) in labels:
                lowered = any(
                    isinstance(part, Name) and str(part.this).lower() in _LOWERING
                    for part in parts
                )
                for part in parts:
                    if isinstance(part, ast.String):
                        owner = labels[variable_name(asked[0].this)]
                        yield ComparedText(
                            str(part.this),
                            span(part),
                            str(asked[0].name.this),
                            owner,
                            lowered,
                            partial=node.args.get("operator") in _PARTIAL,
                        )


def _within(node: AstNode) -> Iterator[AstNode]:
    """The parts of an operand: those of a list and of what is lowered or trimmed. The
    arguments of other functions, such as ``'year'`` in ``date_part('year', x)``, are no
    texts of the graph.
    """
    yield node
    if isinstance(node, ast.List) or _keeps_text(node):
        for child in children(node):
            yield from _within(child)


def _keeps_text(node: AstNode) -> bool:
    """Whether a function returns its text but for case and blanks around it."""
    return isinstance(node, ast.FunctionCall) and str(node.name.this).lower() in (
        *_LOWERING,
        "trim",
    )


def _texts(node: Node, key: str) -> list[str]:
    """What a node has under a key that a query asks for; its name, where that is kept
    elsewhere.
    """
    value = node.properties.get(key, node.name)
    return [
        text
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and text
    ]


def _closest(value: ComparedText, texts: Iterable[str]) -> str | None:
    """Return the text, or part of one, that is most like that of a query: the same but
    for case, accents and signs, or nearly.
    """
    known = list(texts)
    if value.partial:
        known = [part for text in known for part in _parts(text, value.text)]
    wanted, best = plainly(value.text), (_ALIKE, "")
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for candidate in dict.fromkeys(known):
        matcher.set_seq1(plainly(candidate))
        if matcher.real_quick_ratio() > best[0] and matcher.quick_ratio() > best[0]:
            best = max(best, (matcher.ratio(), candidate), key=lambda one: one[0])
    return best[1] or None
