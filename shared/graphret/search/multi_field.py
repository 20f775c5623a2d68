"""Search over several fields, each with a weight that the query may decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.arrays import ArrayIndex, CombinedIndex
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import min_max
from graphret.stores.base import GraphStore
from graphret.types import Node

#: The weight of each field, or of one scorer of a field as ``field/bm25`` or ``field/dense``; or what gives them for a
#: query.
Weights: TypeAlias = Mapping[str, float] | Callable[[str], Mapping[str, float]]


class FieldIndex(CombinedIndex):
    """A weighted mean of scores over fields, lexical and dense, as in mFAR (Li et al. 2025), which GRASP fuses with.

    ``score = Σ weight · s / Σ weight`` over the scorers, where s is a scorer's score scaled to 0 … 1 over the index.

    Parameters
    ----------
    scorers
        Indexes of the same table of nodes, by ``field/bm25`` or ``field/dense``.
    weights
        The weight of each scorer, of a field (both its scorers) or of what is in neither (1); or a function of the
        query that gives them.
    """

    def __init__(self, scorers: Mapping[str, ArrayIndex], weights: Weights | None = None) -> None:
        if not scorers:
            raise InvalidInput("fields: at least one is needed")
        super().__init__(scorers)
        self.weights: Weights = {} if weights is None else weights
        if not callable(self.weights):
            self._shares("")

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        fields: Mapping[str, NodeText] | None = None,
        *,
        encoder: Any = None,
        weights: Weights | None = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by field.

        Parameters
        ----------
        fields
            What each field reads, such as ``{"name": NodeText.names(), "brand": NodeText.one_field("brand"),
            "directed_by": NodeText.relation("directed_by")}``; by default names and texts.
        encoder
            Gives each field a dense scorer besides; `None` for none.
        source
            The store in which neighbours are looked up.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        read = {"name": NodeText.names(), "text": NodeText.one_field("body")} if fields is None else fields
        model = as_encoder(encoder)
        scorers: dict[str, ArrayIndex] = {}
        for name, text in read.items():
            scorers[f"{name}/bm25"] = BM25Index.build(table, text=text, source=source)
            if model is not None:
                scorers[f"{name}/dense"] = DenseIndex.build(table, model, text=text, source=source)
        return cls(scorers, weights)

    def _shares(self, query: str) -> dict[str, float]:
        """The weight of each scorer, in sum 1."""
        given = self.weights(query) if callable(self.weights) else self.weights
        field_of = {name: name.rpartition("/")[0] for name in self.members}
        unknown = given.keys() - {*field_of, *field_of.values()}
        weights = [given.get(name, given.get(field, 1.0)) for name, field in field_of.items()]
        total = sum(weights)
        if unknown or min(weights) < 0 or not 0 < total < np.inf:
            raise InvalidInput(
                f"weights: numbers of at least 0, not all of them 0, are expected for some of {', '.join(field_of)} or "
                f"for whole fields, not {dict(given)}"
            )
        return {name: weight / total for name, weight in zip(field_of, weights, strict=True)}

    def _scores(self, query: str) -> NDArray[np.float32]:
        total = np.zeros(len(self.table), dtype=np.float32)
        for name, share in self._shares(query).items():
            if share:
                total += np.float32(share) * min_max(self.members[name].scores(query))
        return total
