"""Nodes that name the same entities: who bears which names, and who shares the rarest.

It never compares all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.change import Change
from graphret.numeric import padded, unique
from graphret.sage.codes import CodeLists, Codes, counted, recounted
from graphret.sage.names import reference_names
from graphret.sage.neighbors import Neighbors
from graphret.search.postings import Postings
from graphret.storage import Bundle, Parts
from graphret.text import normalize_name
from graphret.types import Node

_CHUNK = 1 << 16  # pairs at once
_PRODUCTS = 1 << 22  # that are in memory at once
_DECIMALS = 5


@dataclass(frozen=True, eq=False)
class Entities:
    """Which nodes name which entities, however many do.

    Parameters
    ----------
    names, spellings
        What the lists have numbers for: names for comparison, and as they are spelled.
    borne, spelled
        For each node its names, each once, and how it spells them.
    postings, counts
        Which nodes bear each name, and how many, ``(names,)``.
    """

    names: Codes = field(default_factory=Codes)
    spellings: Codes = field(default_factory=Codes)
    borne: CodeLists = field(default_factory=lambda: CodeLists.of([]))
    spelled: CodeLists = field(default_factory=lambda: CodeLists.of([]))
    postings: Postings = field(default_factory=lambda: Postings.of(CodeLists.of([])))
    counts: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def changed(self, change: Change, fresh: CodeLists | None = None) -> Entities:
        """Return the entities after a change.

        `fresh` is what `read` finds in the fresh nodes, where it is known.
        """
        if fresh is None:
            (fresh,) = CodeLists.read(change.nodes, self.read)
        pairs, starts = fresh.pack()
        names, spelled = (
            CodeLists.packed(codes, starts // 2)
            for codes in pairs.reshape(-1, 2).T.copy()
        )
        borne, n_names = self.borne.changed(change, names), len(self.names)
        went = self.borne.at(change.left)
        return replace(
            self,
            names=self.names.packed(),
            spellings=self.spellings.packed(),
            borne=borne,
            spelled=self.spelled.changed(change, spelled),
            postings=self.postings.changed(change.splice) or Postings.of(borne),
            counts=recounted(self.counts, names.codes, went, n_names),
        )

    def parts(self) -> Parts:
        """The entities as they are saved."""
        parts = Parts()
        for of, codes in (("names", self.names), ("spellings", self.spellings)):
            parts.add(of, codes.parts())
        for of, lists in (("borne", self.borne), ("spelled", self.spelled)):
            parts.add(of, lists.parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Entities:
        """Open saved entities."""
        names = Codes.from_bundle(bundle.sub("names"))
        borne = CodeLists.from_bundle(bundle.sub("borne"))
        return cls(
            names=names,
            spellings=Codes.from_bundle(bundle.sub("spellings")),
            borne=borne,
            spelled=CodeLists.from_bundle(bundle.sub("spelled")),
            postings=Postings.of(borne),
            counts=counted(borne.codes, len(names)),
        )

    def read(self, node: Node) -> list[int]:
        """Return the names of a node by their numbers, each before its spelling's."""
        given = node.properties.get("entities") or ()
        found: dict[int, int] = {}
        for name in [given] if isinstance(given, str) else given:
            if isinstance(name, str) and (key := normalized(name)):
                code = self.names.of(key)
                if code not in found:
                    found[code] = self.spellings.of(name)
        return [*chain.from_iterable(found.items())]

    def read_called(self, node: Node) -> list[int]:
        """Return, by their numbers, the names by which texts may refer to a node."""
        return self.names.of_each({*map(normalize_name, reference_names(node))})

    def spelling_of(self, names: NDArray[np.int64]) -> list[str]:
        """Return how the first node that bears each of some names spells it."""
        found = self.postings.occurrences(names, self.borne)
        first = found.owners[found.starts[:-1]].astype(np.int64)
        name_of_each = np.repeat(names, self.borne.take(first).lengths)
        is_it = self.borne.at(first) == name_of_each
        return self.spellings.at(self.spelled.at(first)[is_it])

    def shared(self, cap: int) -> NDArray[np.bool_]:
        """Return which names 2 nodes or more bear, and at most `cap`, ``(names,)``."""
        return (self.counts >= 2) & (self.counts <= cap)

    def rarest_first(self, names: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return names in the order of how many bear them, then of the alphabet."""
        words = self.names.at(names)
        by_name = names[sorted(range(len(names)), key=words.__getitem__)]
        return by_name[np.argsort(self.counts[by_name], kind="stable")]

    def bearers(self, cap: int, of: NDArray[np.int64]) -> EntityIncidence:
        """Return who bears the names that the nodes at some positions share.

        Only names that 2 to `cap` nodes bear count.
        """
        names = unique(self.borne.at(of)).astype(np.int64)
        counts = self.counts[names]
        ranked = self.rarest_first(names[(counts >= 2) & (counts <= cap)])
        found = self.postings.occurrences(ranked, self.borne)
        ones = np.ones(len(found.owners), np.float32)
        incidence = sp.csr_array(
            (ones, (found.owners, found.codes)),
            shape=(len(self.borne), len(ranked)),
        )
        return EntityIncidence(incidence, self.spelling_of(ranked), self.counts[ranked])

    def whose_names_changed(
        self, before: Entities, change: Change, cap: int
    ) -> NDArray[np.int64]:
        """Return the nodes that bear a touched name which is shared, now or before.

        A name is touched if a node that left or is fresh bears it.
        """
        touched = [before.borne.at(change.left), self.borne.at(change.fresh)]
        names = unique(*touched).astype(np.int64)
        is_shared = np.zeros(len(names), np.bool_)
        for counts in (self.counts, padded(before.counts, len(self.counts), 0)):
            is_shared |= (counts[names] >= 2) & (counts[names] <= cap)
        return unique(
            self.postings.occurrences(names[is_shared], self.borne).owners
        ).astype(np.int64)


normalized = lru_cache(1 << 18)(normalize_name)  # names and cells repeat


@dataclass(frozen=True, eq=False)
class EntityIncidence:
    """Which nodes bear which names, for names that some nodes share with others.

    Parameters
    ----------
    incidence
        ``(n, v)`` ones, compressed by rows; the rarest names come first.
    names
        The names as the first bearer spells them, ``(v,)``.
    counts
        How many nodes bear each name, ``(v,)``, ascending.
    """

    incidence: Any
    names: Sequence[str]
    counts: NDArray[np.int32]

    @property
    def bearers(self) -> NDArray[np.int64]:
        """The nodes that bear one of the names, ascending."""
        return np.flatnonzero(np.diff(self.incidence.indptr))

    def shared_names(
        self, i: NDArray[np.int64], j: NDArray[np.int64]
    ) -> Iterator[list[str]]:
        """Yield the names that the nodes of each pair share, the rarest first."""
        for start in range(0, len(i), _CHUNK):
            part = slice(start, start + _CHUNK)
            both = sp.csr_array(
                self.incidence[i[part]].multiply(self.incidence[j[part]])
            )
            both.sort_indices()
            names = [self.names[code] for code in both.indices.tolist()]
            yield from (
                names[first:last] for first, last in pairwise(both.indptr.tolist())
            )


def overlapping(
    entities: EntityIncidence,
    role: NDArray[np.int8],
    source: NDArray[np.int32],
    most: int,
    rows: NDArray[np.int64],
    n_fitted: int,
) -> Neighbors:
    """Return the nodes that share the rarest entities with those at `rows`.

    The positions in `rows` are ascending, and each pair comes with its rarity: Σ over
    the shared entities of ``ln(1 + n / bearers) / ln(1 + n / 2)``, their inverse
    document frequency as a share of the highest possible, among the `n_fitted` nodes
    that there were when thresholds were fitted. Each node proposes the `most` best of
    each `role`, ``(n,)``. Pairs of nodes from one `source`, ``(n,)``, are left out:
    they share its title, and structure joins them.
    """
    n_roles = int(role.max(initial=0)) + 1
    rarity = np.log1p(n_fitted / entities.counts) / np.log1p(n_fitted / 2)
    chosen = sp.csr_array(entities.incidence[rows])
    weighted = sp.csr_array(chosen.multiply(rarity[None, :])).astype(np.float32)
    transposed = sp.csr_array(entities.incidence.T)
    cost = np.append(0, np.cumsum(chosen @ entities.counts.astype(np.float64)))
    found, start = [Neighbors.joined([])], 0
    while start < len(rows):
        end = cost[start] + _PRODUCTS
        stop = max(start + 1, int(np.searchsorted(cost, end, side="right")) - 1)
        product = sp.coo_array(weighted[start:stop] @ transposed)
        own, other = rows[start + product.row], product.col
        kept = source[own] != source[other]
        own, other, value = own[kept], other[kept], product.data[kept]
        value = np.round(value, _DECIMALS)
        group = own * n_roles + role[other]
        order = np.lexsort((other, -value, group))
        group = group[order]
        order = order[np.arange(len(group)) - np.searchsorted(group, group) < most]
        pairs = (own[order].astype(np.int32), other[order].astype(np.int32))
        found.append(Neighbors(*pairs, value[order]))
        start = stop
    return Neighbors.joined(found)
