"""What label expressions say of a node: the sets of labels that it may have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from cypherast.ast import AstNode

from graphret.cypher.tree import LabelAll, LabelAny, LabelName, LabelNot, LabelOne

#: Each set is one way to satisfy the expressions, by the labels that the node then surely has; None where nothing is
#: known, as after ``%`` or ``$(…)``.
Alternatives = tuple[frozenset[str], ...] | None

_MOST = 64


def alternatives(expressions: list[Any], valid: frozenset[str], fold: Callable[[str], str] = str) -> Alternatives:
    """The sets of labels that a node may have of which all the expressions hold; None where they say nothing.

    `fold` makes names equal that the dialect takes for the same.
    """
    found: list[frozenset[str]] | None = None
    for expression in expressions:
        of_this = _of(expression, valid, fold)
        if of_this is None:
            continue
        found = of_this if found is None else [a | b for a, b in product(found, of_this)][:_MOST]
    return None if found is None else tuple(found)


def _of(node: AstNode, valid: frozenset[str], fold: Callable[[str], str]) -> list[frozenset[str]] | None:
    if isinstance(node, LabelName):
        return [frozenset((fold(node.this),))]
    if isinstance(node, LabelOne):
        parts = [_of(part, valid, fold) for part in node.parts]
        if any(part is None for part in parts):
            return None
        return [labels for part in parts for labels in part or ()][:_MOST]
    if isinstance(node, LabelAll):
        known = [part for part in (_of(part, valid, fold) for part in node.parts) if part is not None]
        return [frozenset().union(*combined) for combined in product(*known)][:_MOST] if known else None
    if isinstance(node, LabelNot) and isinstance(node.this, LabelName):
        return [frozenset((name,)) for name in sorted(valid - {fold(node.this.this)})][:_MOST] or None
    if isinstance(node, LabelAny):
        return None
    return None
