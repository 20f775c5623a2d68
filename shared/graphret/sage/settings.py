"""How a `SageGraph` is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from graphret.errors import InvalidInput
from graphret.sage.links import LinkSettings
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Settings
from graphret.search.fields import NodeText


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity half of a SAGE graph is built.

    Parameters
    ----------
    percentile
        An edge needs a signal at or above this percentile of the signal's distribution over the candidates of its kind
        (SAGE, section 2.1 B and table 5: 95).
    logic
        ``"or"``: one signal suffices; ``"and"``: all that the corpus has are needed (SAGE, section 3.3: or).
    neighbors
        Nearest neighbours of a node by each signal that become candidates, and most edges a node proposes by shared
        entities. The paper bounds candidates without saying how (table 5 counts 3.1 million for 22,700 nodes); 20 is
        graphret's.
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
        if not 0 <= self.percentile <= 100:
            raise InvalidInput(f"percentile: a number from 0 to 100 is expected, not {self.percentile!r}")
        if self.logic not in ("or", "and"):
            raise InvalidInput(f"logic: 'or' or 'and' is expected, not {self.logic!r}")
        if not isinstance(self.neighbors, int) or self.neighbors < 1:
            raise InvalidInput(f"neighbors: an integer of at least 1 is expected, not {self.neighbors!r}")


@dataclass(frozen=True)
class SageSettings:
    """How a `SageGraph` is built; the defaults are the paper's, where it has one.

    Parameters
    ----------
    rows_per_segment
        Rows of a table segment, 5 to 10 (SAGE, section 2.1 A); a short last one is evened out with the one before it.
    alpha
        Share of BM25 in the hybrid score (SAGE, appendix E: 0.6).
    text, analyzer, bm25
        How nodes are indexed.
    similarity
        How similarity edges are chosen.
    links
        When a name counts as said.
    """

    rows_per_segment: int = 10
    alpha: float = 0.6
    text: NodeText = field(default_factory=NodeText)
    analyzer: Analyzer = field(default_factory=Analyzer)
    bm25: BM25Settings = field(default_factory=BM25Settings)
    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    links: LinkSettings = field(default_factory=LinkSettings)
