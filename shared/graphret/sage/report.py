"""What a graph looks like in numbers: how many, how connected, how dense."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphret.edges import EdgeTable
from graphret.errors import MissingDependency
from graphret.expansion.frontier import STRENGTH
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.sage.link_names import lines_of, link_names
from graphret.sage.similarity import Thresholds
from graphret.sage.structure import NEXT

# The classes of the histogram of degrees, and their upper ends but the last, which is
# open.
_CLASSES = (
    "0",
    "1",
    "2",
    "3-5",
    "6-10",
    "11-20",
    "21-50",
    "51-100",
    "101-200",
    "201-500",
    "501-1000",
    ">1000",
)
_UP_TO = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_NAMES, _NAME_WIDTH = 10, 60
_FEW_SOURCES = 10
_LINK_NAMES = {"commonest": "the commonest", "doubtful": "the least believed"}

#: A line of the report: what, and how much.
_Figure: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class GraphReport:
    """Figures of a graph, as in SAGE, section 3.3 and table 5.

    Parameters
    ----------
    nodes, edges
        How many there are.
    labels
        Nodes by label; a node with several counts for each.
    relations
        Edges by relation.
    pairs
        Distinct pairs of nodes that an edge joins, in either direction.
    density
        `pairs` as a share of all pairs.
    degree
        ``min``, ``median``, ``mean``, ``p90`` and ``max`` of the number of neighbours
        of a node.
    histogram
        Nodes by number of neighbours: ``{"0": …, "1": …, "2": …, "3-5": …, …, ">1000":
        …}``.
    components, largest_component, isolated
        Connected components, nodes of the largest, and nodes with no edge.
    thresholds
        The thresholds that made the edges: ``{kind of pair: {signal: value}}``.
    alpha
        Share of BM25 in the hybrid score where it is given; `None` where each question
        has its own.
    dense_quality
        What embeddings are worth in this corpus against words; `None` where there are
        none.
    named, names
        Share of the nodes that have a name; the ten commonest names, with how many
        nodes bear each.
    link_names
        The names that make links, the ten commonest and the ten least believed, with an
        example each; see `graphret.sage.link_names`.
    """

    nodes: int
    edges: int
    labels: dict[str, int]
    relations: dict[str, int]
    pairs: int
    density: float
    degree: dict[str, float]
    histogram: dict[str, int]
    components: int
    largest_component: int
    isolated: int
    thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    alpha: float | None = None
    dense_quality: float | None = None
    named: float = 0.0
    names: dict[str, int] = field(default_factory=dict)
    link_names: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        nodes: NodeTable,
        edges: EdgeTable,
        thresholds: Thresholds | None = None,
        alpha: float | None = None,
        dense_quality: float | None = None,
    ) -> GraphReport:
        """Count a graph."""
        n = len(nodes)
        apart = edges.source != edges.target
        ends = edges.source[apart], edges.target[apart]
        joined = sp.csr_array((np.ones(len(ends[0]), bool), ends), shape=(n, n))
        neighbours = joined + joined.T  # each pair once, no node beside itself
        degree = np.diff(neighbours.indptr)
        count, of_node = (
            sp.csgraph.connected_components(neighbours, directed=False)
            if n
            else (0, np.zeros(0, int))
        )
        codes = np.bincount(edges.relation, minlength=len(edges.relations)).tolist()
        classes = np.bincount(
            np.searchsorted(_UP_TO, degree), minlength=len(_CLASSES)
        ).tolist()
        least, median, p90, most = np.percentile(degree if n else [0], (0, 50, 90, 100))
        summary = least, median, degree.mean() if n else 0, p90, most
        pairs = neighbours.nnz // 2
        names = Counter(name for name in nodes.names if name)
        return cls(
            nodes=n,
            edges=len(edges),
            labels=dict(sorted(nodes.label_counts().items())),
            relations=dict(zip(edges.relations, codes, strict=True)),
            pairs=pairs,
            density=pairs / (n * (n - 1) / 2) if n > 1 else 0.0,
            degree=dict(
                zip(
                    ("min", "median", "mean", "p90", "max"),
                    map(float, summary),
                    strict=True,
                )
            ),
            histogram=dict(zip(_CLASSES, classes, strict=True)),
            components=int(count),
            largest_component=int(np.bincount(of_node).max()) if n else 0,
            isolated=int((degree == 0).sum()),
            thresholds={
                kind: {signal: round(value, 6) for signal, value in by_signal.items()}
                for kind, by_signal in (thresholds or {}).items()
            },
            alpha=alpha,
            dense_quality=None if dense_quality is None else round(dense_quality, 4),
            named=names.total() / n if n else 0.0,
            names=dict(names.most_common(_NAMES)),
            link_names=link_names(nodes, edges),
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return dict(vars(self))

    def __str__(self) -> str:
        figures = [*self._sizes(), *self._connections(), *self._scores()]
        left, right = (max(map(len, column)) for column in zip(*figures, strict=True))
        lines = [f"{name:<{left}}  {value:>{right}}" for name, value in figures]
        for which, names in self.link_names.items():
            if names:
                lines.append("")
                lines.append(
                    f"names that make links, {_LINK_NAMES[which]} (links, weight,"
                    " name, example)"
                )
                lines += lines_of(names)
        return "\n".join(lines)

    def _sizes(self) -> Iterator[_Figure]:
        """Yield how many nodes, names and edges there are, by kind."""
        yield "nodes", f"{self.nodes:,}"
        for label, count in self.labels.items():
            yield f"  {label}", f"{count:,}"
        yield "nodes with a name", f"{self.named:.1%}"
        for name, count in self.names.items():
            yield f"  {name[:_NAME_WIDTH]}", f"{count:,}"
        yield "edges", f"{self.edges:,}"
        for relation, count in self.relations.items():
            yield f"  {relation}", f"{count:,}"

    def _connections(self) -> Iterator[_Figure]:
        """Yield how connected and how dense the graph is."""
        yield "joined pairs", f"{self.pairs:,}"
        yield "density", f"{self.density:.6f}"
        yield "components", f"{self.components:,}"
        yield "  largest", f"{self.largest_component:,}"
        yield "isolated nodes", f"{self.isolated:,}"
        for statistic, value in self.degree.items():
            yield f"degree, {statistic}", f"{value:,.6g}"
        for degrees, count in self.histogram.items():
            if count:
                yield f"  nodes of degree {degrees}", f"{count:,}"

    def _scores(self) -> Iterator[_Figure]:
        """Yield what was measured to score nodes and to make edges."""
        if self.alpha is not None:
            yield "share of words in the score", f"{self.alpha:g}"
        if self.dense_quality is not None:
            yield "embeddings against words", f"{self.dense_quality:.2f}"
        for kind, by_signal in self.thresholds.items():
            for signal, threshold in by_signal.items():
                yield f"threshold, {kind}, {signal}", f"{threshold:.4f}"

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the degrees and the relations into a file.

        Its suffix says as what: pdf, png or svg.

        Raises
        ------
        MissingDependency
            If matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingDependency("matplotlib", "plot", "Drawing a report") from error
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.bar(list(self.histogram), list(self.histogram.values()), color="#4878a8")
        left.set(
            xlabel="neighbours",
            ylabel="nodes",
            title=f"{self.nodes:,} nodes, mean {self.degree['mean']:.1f}",
        )
        left.tick_params(axis="x", rotation=45)
        right.barh(list(self.relations), list(self.relations.values()), color="#a87848")
        right.set(
            xlabel="edges",
            title=f"{self.edges:,} edges, {self.components:,} components",
        )
        figure.savefig(path)


def warn_if_flat(
    nodes: NodeTable, edges: EdgeTable, sources: NDArray[np.int32]
) -> None:
    """Warn, with the reason, where few sources have a link that a ranking follows.

    The links are those to another source; the ranking is the default. `sources` tell
    the item that each node was made from.
    """
    names = dict(zip(sources.tolist(), nodes.names, strict=True))
    followed = [
        STRENGTH.get(relation, 1.0) > 0 and relation != NEXT
        for relation in edges.relations
    ]
    ends = sources[
        np.stack([edges.source, edges.target])[
            :, np.asarray(followed, dtype=bool)[edges.relation]
        ]
    ]
    linked = len(unique(ends[:, ends[0] != ends[1]]))
    (name, bearers), *_ = Counter(names.values()).most_common(1)
    n, alike = len(names), bearers >= len(names) / 3
    if n < _FEW_SOURCES or linked >= n / (2 if alike else 10):
        return
    called = f"named {name!r}" if name else "without a name"
    reason = (
        f"{bearers:,} are {called}" if alike else f"{linked:,} are linked to another"
    )
    warnings.warn(
        "links add little to this corpus, and the graph finds little more than flat"
        f" search: of {n:,} documents, tables and records {reason}. Links come of texts"
        " and cells that say the name of another: give each a title of its own"
        " (metadata['title']), or edges; see graph.report() and"
        " docs/concepts/expansion.md, “Links”",
        stacklevel=3,
    )
