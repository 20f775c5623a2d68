"""How a `SageGraph` is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphret.errors import InvalidInput
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Settings
from graphret.search.fields import NodeText
from graphret.search.hybrid import DEFAULT_ALPHA

#: How much a link by a name counts, by kind.
#:
#: ``exact``: a cell is the name; ``alias``: a cell is the name without its brackets or
#: what follows a comma, or another name that the node is given; ``inside`` and
#: ``inside_alias``: a longer cell holds it; ``completed``: the words of a cell and of
#: its table's title, section and header make up the name; ``text``, ``text_alias``:
#: running text says it.
KIND_WEIGHTS: Mapping[str, float] = {
    "exact": 1.0,
    "alias": 1.0,
    "inside": 1.0,
    "inside_alias": 0.9,
    "completed": 1.0,
    "text": 0.8,
    "text_alias": 0.8,
}


@dataclass(frozen=True)
class LinkSettings:
    """When a name counts as said, and a key as shared.

    Parameters
    ----------
    kind_weights
        Weight of a link by kind; a kind that is left out makes no links.
    max_nodes_per_name
        A name that more nodes have says nothing.
    join_weight
        Weight of a link between rows of two tables that share the value of a key
        (`graphret.sage.joins`); 0 for none.
    shared_weight, max_sharers
        Weight of a link between texts that say the same name that no node has, as a
        share of that of a text that says a node's name; 0 for none. A name that more
        chunks say makes no link.
    """

    kind_weights: Mapping[str, float] = field(
        default_factory=lambda: dict(KIND_WEIGHTS)
    )
    max_nodes_per_name: int = 50
    join_weight: float = 0.8
    shared_weight: float = 0.85
    max_sharers: int = 5


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity half of a SAGE graph is built.

    Parameters
    ----------
    percentile
        An edge needs a signal at or above this percentile of the signal's distribution
        over the candidates of its kind (SAGE, section 2.1 B and table 5: 95).
    logic
        ``"or"``: one signal suffices; ``"and"``: all that the corpus has are needed
        (SAGE, section 3.3: or).
    neighbors
        Nearest neighbours of a node by each signal that become candidates, and most
        edges a node proposes by shared entities. The paper bounds candidates without
        saying how (table 5 counts 3.1 million for 22,700 nodes); 20 is graphret's.
    entity_cap
        An entity that more nodes bear says nothing (graphret's).
    contents_only
        Whether only contents are embedded, and no topics, titles and the like.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    """

    percentile: float = 95.0
    logic: Literal["or", "and"] = "or"
    neighbors: int = 20
    entity_cap: int = 50
    contents_only: bool = False

    def __post_init__(self) -> None:
        if (
            not 0 <= self.percentile <= 100
            or self.logic not in ("or", "and")
            or self.neighbors < 1
        ):
            raise InvalidInput(
                "similarity: a percentile of 0 to 100, a logic 'or' or 'and' and"
                f" neighbors of at least 1, not {self}"
            )


@dataclass(frozen=True)
class SageSettings:
    """How a `SageGraph` is built; the defaults are the paper's, where it has one.

    Parameters
    ----------
    rows_per_segment
        Rows of a table segment, 5 to 10 (SAGE, section 2.1 A); a short last one is
        evened out with the one before it.
    alpha
        Share of BM25 in the hybrid score (SAGE, appendix E: 0.6); `None` to choose it
        for each question, with what embeddings are worth in the corpus
        (`graphret.sage.dense_quality`).
    text, analyzer, bm25
        How nodes are indexed.
    similarity
        How similarity edges are chosen.
    links
        When a name counts as said.
    """

    rows_per_segment: int = 10
    alpha: float | None = None
    text: NodeText = field(default_factory=NodeText)
    analyzer: Analyzer = field(default_factory=Analyzer)
    bm25: BM25Settings = field(default_factory=BM25Settings)
    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    links: LinkSettings = field(default_factory=LinkSettings)

    @classmethod
    def paper(cls) -> SageSettings:
        """Return the settings of the paper.

        These are similarity edges from the 95th percentile by any signal (section 2.1
        B), BM25 with one length normalisation and the share 0.6 (appendix E), segments
        of ten rows (section 2.1 A), and no links by names or keys, which are ours.
        """
        return cls(
            rows_per_segment=10,
            alpha=DEFAULT_ALPHA,
            bm25=BM25Settings(field_b={}),
            similarity=SimilaritySettings(percentile=95.0, logic="or"),
            links=LinkSettings(kind_weights={}, join_weight=0.0, shared_weight=0.0),
        )
