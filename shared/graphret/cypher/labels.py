"""What label expressions say of a node: the labels that it may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cypherast.ast import AstNode

from graphret.cypher.tree import LabelAll, LabelName, LabelNot, LabelOne

#: The labels of which the node surely has some; None where nothing is known, as after ``%`` or ``$(…)``.
Labels = frozenset[str] | None


def labels_of(expressions: list[Any], valid: frozenset[str], fold: Callable[[str], str] = str) -> Labels:
    """The labels that a node may have of which all the expressions hold; None where they say nothing.

    `fold` makes names equal that the dialect takes for the same. Whether a node has all of these labels or one of them
    is not told apart: of either any may be the one by which the schema knows it.
    """
    known = [found for found in (_of(expression, valid, fold) for expression in expressions) if found is not None]
    return frozenset().union(*known) if known else None


def _of(node: AstNode, valid: frozenset[str], fold: Callable[[str], str]) -> Labels:
    if isinstance(node, LabelName):
        return frozenset((fold(node.this),))
    if isinstance(node, LabelAll):
        return labels_of(node.parts, valid, fold)
    if isinstance(node, LabelOne):
        parts = [_of(part, valid, fold) for part in node.parts]
        return None if None in parts else frozenset().union(*(part or () for part in parts))
    if isinstance(node, LabelNot) and isinstance(node.this, LabelName):
        return valid - {fold(node.this.this)} or None
    return None
