"""Fields weighted by the query, after Multi-Field Adaptive Retrieval (mFAR).

The method is that of Li et al. (2025); GRASP fuses with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphret import storage
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.arrays import ArrayIndex, table_of
from graphret.search.dense import DenseIndex
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import ALIASES, NEIGHBORS, NodeText, is_kept_for_use
from graphret.search.hybrid import CombinedIndex, FieldIndex
from graphret.search.vectors import Floats
from graphret.storage import Parts
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import PROPERTIES

_KIND = "fields"
#: Where the weights lie in the folder of trained fields, and the encoder that was
#: trained along with them.
WEIGHTS, ENCODER = "weights", "encoder"
#: What a segment of a table is read by, besides the fields of every node.
_TABLE_FIELDS = ("header", "introduction", "rows")
#: Fields of a node itself: a property of such a name is told apart by a prefix.
_OWN_FIELDS = ("title", "body", NEIGHBORS, *_TABLE_FIELDS)


@dataclass(frozen=True, eq=False)
class TrainedFields:
    """Fields, and what was learned about how much each scorer counts for a query.

    This is what ``graphret train fields`` writes.

    The share of a scorer is ``softmax(directions · q)`` of the query's embedding q, and
    its score counts ``scale`` times.

    Parameters
    ----------
    fields
        What each field reads.
    directions
        For each of `scorers` what the embedding of a query is held against, ``(n, d)``.
    scales
        For each of them what its score is multiplied by, ``(n,)``: one over its
        deviation in training, times what was learned.
    encoder
        The `Encoder.name` of the encoder that it was trained with.
    source
        What opens that encoder: a name or a folder; `None` where it was an object.
    metrics
        What was measured on questions that it was not trained on, in percent.
    """

    fields: Mapping[str, NodeText]
    directions: Floats = field(repr=False)
    scales: Floats = field(repr=False)
    encoder: str
    source: str | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)

    @property
    def scorers(self) -> list[str]:
        """The scorers, two a field, as ``field/bm25`` and ``field/dense``."""
        return [f"{name}/{kind}" for name in self.fields for kind in ("bm25", "dense")]

    def shares(self, query_vector: Floats) -> dict[str, float]:
        """Return how much each scorer counts for a query, in sum 1."""
        logits = self.directions @ query_vector
        powers = np.exp(logits - logits.max())
        shares = (powers / powers.sum()).tolist()
        return dict(zip(self.scorers, shares, strict=True))

    def opened_encoder(self, encoder: Any = None) -> Encoder:
        """Return the encoder that the fields were trained with.

        It is opened from `source` unless it is passed. An `InvalidInput` says that
        another one was passed, or that there is none.
        """
        model = as_encoder(self.source if encoder is None else encoder)
        if model is None:
            raise InvalidInput(
                f"encoder: the fields were trained with {self.encoder!r}, which has to"
                " be passed"
            )
        if model.name != self.encoder:
            raise InvalidInput(
                f"encoder: the fields were trained with {self.encoder!r}, not with"
                f" {model.name!r}"
            )
        return model

    def save(self, folder: str | Path) -> None:
        """Write it to a folder, for `load`, beside an encoder that was trained too."""
        within = self.source == str(Path(folder) / ENCODER)
        meta = {
            "fields": {name: text.to_dict() for name, text in self.fields.items()},
            "encoder": self.encoder,
            "source": None if within else self.source,
            "encoder_within": within,
            "metrics": self.metrics,
        }
        arrays = {"directions": self.directions, "scales": self.scales}
        storage.save(Path(folder) / WEIGHTS, Parts(arrays, meta), kind=_KIND)

    @classmethod
    def load(cls, folder: str | Path) -> TrainedFields:
        """Read what `save` wrote; raises what `graphret.storage.load` raises."""
        held = storage.load(Path(folder) / WEIGHTS, kind=_KIND)
        within, source = held.meta["encoder_within"], held.meta["source"]
        return cls(
            {name: NodeText(**text) for name, text in held.meta["fields"].items()},
            held.arrays["directions"],
            held.arrays["scales"],
            held.meta["encoder"],
            str(Path(folder) / ENCODER) if within else source,
            held.meta["metrics"],
        )


class AdaptiveFieldIndex(CombinedIndex):
    """A sum of scores over fields, in which the query decides how much each counts.

    The scorers are lexical and dense, as in mFAR (Li et al. 2025).

    ``score = Σ share(query) · scale · s`` over the scorers; the shares and the scales
    were learned.

    Parameters
    ----------
    members
        Indexes of the same table of nodes, as `TrainedFields.scorers` names them.
    trained
        What was learned.
    """

    def __init__(
        self, members: Mapping[str, ArrayIndex], trained: TrainedFields
    ) -> None:
        if list(members) != trained.scorers:
            raise InvalidInput(
                f"members: expected {', '.join(trained.scorers)}, got"
                f" {', '.join(members)}"
            )
        super().__init__(members)
        self.trained = trained

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        trained: TrainedFields,
        *,
        encoder: Any = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by the fields.

        `encoder` is the one that the fields were trained with, where it cannot be
        opened by its name; `source` is the store in which neighbours are looked up.
        """
        model = trained.opened_encoder(encoder)
        fields = FieldIndex.build(nodes, trained.fields, encoder=model, source=source)
        return cls(fields.members, trained)

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        trained: TrainedFields,
        *,
        labels: Collection[str] | None = None,
        encoder: Any = None,
    ) -> Self:
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
        """
        table = table_of(store, labels)
        index = cls.build(table, trained, encoder=encoder, source=store)
        return index.limited_to(labels)

    def prepare(self, queries: Sequence[str]) -> None:
        """Embed queries once for all fields."""
        first, *others = self._dense_members
        first.prepare(queries)
        for query in queries if len(self.table) else ():
            for member in others:
                if not member.remembers(query):
                    member.remember(query, first.query_vector(query))

    @property
    def _dense_members(self) -> list[DenseIndex]:
        parts = [member.dense_part() for member in self.members.values()]
        return [part for part in parts if part is not None]

    def shares(self, query: str) -> dict[str, float]:
        return self.trained.shares(self._dense_members[0].query_vector(query))

    def _scores(self, query: str) -> NDArray[np.float32]:
        total = np.zeros(len(self.table), dtype=np.float32)
        if not len(self.table):
            return total
        self.prepare([query])
        scales = self.trained.scales.tolist()
        for (name, share), scale in zip(
            self.shares(query).items(), scales, strict=True
        ):
            total += np.float32(share * scale) * self.members[name].scores(query)
        return total


def fields_of(store: GraphStore) -> dict[str, NodeText]:
    """Return the fields that can be made of the nodes of a graph.

    They are the names, the texts, each property with words, for each relation the names
    of neighbours, and the parts of table segments where there are any.
    """
    schema = store.schema()
    properties = schema.textual_properties()
    fields = {"name": NodeText.names(), "text": NodeText.one_field("body")}
    if "table_rows" in properties:
        fields |= {name: NodeText.one_field(name) for name in _TABLE_FIELDS}
    for name in properties:
        if name != ALIASES and not is_kept_for_use(name):  # names have the aliases
            fields[PROPERTIES + name if name in fields else name] = _of_property(name)
    for name in schema.relation_names:
        named = f"relations.{name}" if name in fields else name
        fields[named] = NodeText.relation(name)
    return fields


def _of_property(name: str) -> NodeText:
    read_as = PROPERTIES + name if name in _OWN_FIELDS else name
    return NodeText(weights={}, properties=(name,), only=(read_as,))
