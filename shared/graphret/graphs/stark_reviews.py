"""STaRK's product reviews as a property, a table or nodes (SAGE, appendix A.2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from graphret.errors import InvalidInput
from graphret.graphs.tables import GraphTables

#: How reviews are read: as the property that they are; as a node for each product that
#: holds them as a table, which search reads (table 9); or as a node each, which queries
#: count and average (table 10).
Reviews: TypeAlias = Literal["property", "table", "nodes"]
FORMS: tuple[Reviews, ...] = get_args(Reviews)
#: The relation from a product to its reviews, and their label.
HAS_REVIEW, REVIEW = "has_review", "review"
#: The fields of a review that a table has as columns.
COLUMNS = ("summary", "reviewText", "overall", "vote", "verified", "reviewTime")

_FIELD = "review"  # of a product


def pop_reviews(properties: dict[str, Any], form: Reviews) -> list[dict[str, Any]]:
    """Take the reviews of a product from its properties, unless they are to stay there.

    An `InvalidInput` says that they are no list of objects.
    """
    if form == "property":
        return []
    given = properties.pop(_FIELD, [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InvalidInput(f"{_FIELD!r}: expected a list of objects, got {given!r}")
    return given


def add_reviews(
    tables: GraphTables,
    product: str,
    title: str,
    reviews: Sequence[Mapping[str, Any]],
    form: Reviews,
) -> None:
    """Add reviews of a product, whose node is there, as one table or as nodes."""
    if form == "nodes":
        for number, review in enumerate(reviews):
            _add_node(tables, product, f"{product}/review-{number}", review)
    elif reviews:
        _add_table(tables, product, title, reviews)


def _add_node(
    tables: GraphTables, product: str, review_id: str, review: Mapping[str, Any]
) -> None:
    """Add a review with its summary as the name, and what it says as the text."""
    rest = dict(review)
    summary, said = (str(rest.pop(name, "")) for name in ("summary", "reviewText"))
    tables.node(review_id, (REVIEW,), summary, said, rest)
    tables.edge(product, HAS_REVIEW, review_id)


def _add_table(
    tables: GraphTables, product: str, title: str, reviews: Sequence[Mapping[str, Any]]
) -> None:
    """Add all reviews of a product as the rows of one table."""
    rows = [[_cell(review.get(name, "")) for name in COLUMNS] for review in reviews]
    name = f"Reviews of {title}" if title else "Reviews"
    lines = [name, *(" | ".join(row) for row in (COLUMNS, *rows))]
    properties = {"title": name, "table_header": list(COLUMNS), "table_rows": rows}
    node_id = f"{product}/reviews"
    tables.node(node_id, (REVIEW,), name, "\n".join(lines), properties)
    tables.edge(product, HAS_REVIEW, node_id)


def _cell(value: Any) -> str:
    """Return a value on one line."""
    return " ".join(str(value).split())
