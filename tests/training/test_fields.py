"""Learned weights of fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests_support import HashingEncoder

from graphret.errors import InvalidInput
from graphret.grasp.field_weights import FieldWeights
from graphret.search import FieldIndex, NodeText
from graphret.training import Question
from graphret.training.fields import fit_fields
from graphret.types import Node

COLORS, BRANDS = ("red", "green", "blue", "black"), ("Acme", "Bolt", "Crux", "Dune")
#: Each word of one field is in the other field of another node, so that only the question tells which field is meant.
NODES = [
    Node(
        f"{i}{j}",
        ("Product",),
        "",
        properties={"color": f"{color} {BRANDS[j - 1]}", "brand": f"{brand} {COLORS[i - 1]}"},
    )
    for i, color in enumerate(COLORS)
    for j, brand in enumerate(BRANDS)
]


QUESTIONS = [Question(f"painted {color}", frozenset(f"{i}{j}" for j in range(4))) for i, color in enumerate(COLORS)]
QUESTIONS += [Question(f"made by {brand}", frozenset(f"{i}{j}" for i in range(4))) for j, brand in enumerate(BRANDS)]


def index(weights: FieldWeights | None = None) -> FieldIndex:
    fields = {name: NodeText.one_field(name) for name in ("color", "brand")}
    return FieldIndex.build(NODES, fields, weights=weights)


@pytest.mark.parametrize("encoder", [None, HashingEncoder()], ids=["words", "encoder"])
def test_the_question_says_which_field_counts(tmp_path: Path, encoder: HashingEncoder | None) -> None:
    fitted = fit_fields(
        index(), [one for one in QUESTIONS if not one.text.endswith(("black", "Dune"))], encoder=encoder
    )
    fitted.save(tmp_path / "fields.npz")
    weights = FieldWeights.load(tmp_path / "fields.npz", encoder=encoder)
    for question in QUESTIONS:  # two of them of words that were not seen
        found = index(weights).search(question.text, 4)
        assert set(found.ids) == set(question.gold)
    assert sum(weights("painted black").values()) == pytest.approx(1)


def test_what_cannot_be_learned_from_or_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none has a right answer"):
        fit_fields(index(), [Question("q", frozenset(["nowhere"]))])
    (tmp_path / "bad.npz").write_bytes(b"PK no")
    with pytest.raises(InvalidInput, match=r"bad\.npz"):
        FieldWeights.load(tmp_path / "bad.npz")
    with pytest.raises(InvalidInput, match="2 rows"):
        FieldWeights(["a", "b"], np.zeros(2), np.zeros((3, 4)))
