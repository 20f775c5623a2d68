from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput
from graphret.search import BM25Index, DenseIndex, FieldIndex, NodeText
from graphret.search.index import min_max
from graphret.types import Node

NODES = [
    Node("shoe", ("Product",), "Sony running shoe", "Light and red.", {"brand": "Acme"}),
    Node("radio", ("Product",), "Pocket radio", "Runs for days.", {"brand": "Sony"}),
    Node("lamp", ("Product",), "Lamp", "Sony made it.", {}),
]
FIELDS = {"name": NodeText.names(), "text": NodeText.one_field("body"), "brand": NodeText.one_field("brand")}


def test_the_score_is_the_weighted_mean_of_scaled_scores(encoder: Any) -> None:
    index = FieldIndex.build(NODES, FIELDS, encoder=encoder, weights={"brand": 3, "name/dense": 0})
    weights = {"name/bm25": 1, "text/bm25": 1, "text/dense": 1, "brand/bm25": 3, "brand/dense": 3}
    expected = np.zeros(3)
    for name, weight in weights.items():
        field, kind = name.split("/")
        one = (
            BM25Index.build(NODES, text=FIELDS[field])
            if kind == "bm25"
            else DenseIndex.build(NODES, encoder, text=FIELDS[field])
        )
        expected += weight * min_max(one.scores("Sony radio"))
    np.testing.assert_allclose(index.scores("Sony radio"), expected / sum(weights.values()), rtol=1e-5)


def test_the_query_may_decide_the_weights() -> None:
    index = FieldIndex.build(
        NODES, FIELDS, weights=lambda query: {"brand": 9} if "brand" in query.split() else {"name": 9}
    )
    assert index.search("Sony brand", 1).ids == ["radio"]
    assert index.search("Sony", 1).ids == ["shoe"]
    assert index.score("Sony brand", ["radio"]) > index.score("Sony brand", ["shoe"])


def test_a_node_without_a_field_is_embedded_by_none(encoder: Any) -> None:
    index = FieldIndex.build(NODES, FIELDS, encoder=encoder)
    assert not index.members["brand/dense"].vectors[0].any()  # type: ignore[attr-defined]  # the lamp
    index.upsert([Node("bulb", name="Bulb")])
    assert encoder.encoded.count("") == 0


@pytest.mark.parametrize(
    "weights", [{"colour": 1}, {"name": -1}, {"name": 0, "text": 0, "brand": 0}, {"name": float("nan")}]
)
def test_weights_that_are_none_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        FieldIndex.build(NODES, FIELDS, weights=weights)


def test_fields_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        FieldIndex.build(NODES, {})
    with pytest.raises(InvalidInput, match="share"):
        FieldIndex({"a/bm25": BM25Index.build(NODES), "b/bm25": BM25Index.build(NODES)})
