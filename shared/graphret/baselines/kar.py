"""KAR: query expansion with what a graph says around the entities of a question (Xia et
al. 2025; SAGE, appendix C.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphret.baselines.base import DATA, Baseline, Part, fenced
from graphret.graphraft.counts import Entity
from graphret.retriever import Compute
from graphret.schema.text import estimate_tokens
from graphret.trace import Trace
from graphret.types import Edge, Hit, Node
from graphret.where import Where

#: Edges of an entity that are read, triples of it that are kept, characters of what a
#: node of a triple says, and tokens of all triples.
_EDGES, _TRIPLES, _CHARS, _TOKENS = 200, 10, 200, 3_000
_EXPAND = (
    "Rewrite the question so that a search finds its answer: say it in full, with what"
    " the triples of the graph around its entities add, and nothing that does not help."
    + DATA
)


@dataclass(frozen=True)
class _Query:
    query: str


class KAR(Baseline):
    """Expand the question by triples around its entities, and search once (KAR).

    The model names the entities (step 1); of the neighbours of each those most like the
    question stay (steps 2 and 3); as triples they are what the model expands the
    question with (steps 4 and 5).
    """

    name = "kar"

    def _found(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        entities = yield from self._entities(query, trace)
        with trace.stage("triples") as stage:
            triples = yield Compute(lambda: self._triples(query, entities))
            stage.details["triples"] = len(triples)
        asked = f"Question: {query}\n\n{fenced(_fitting(triples))}"
        expanded = yield from self._ask(_EXPAND, asked, _Query, trace, "expand")
        text = f"{query} {expanded.query}"
        return (yield from self._searched(text, k, where, trace))

    def _triples(self, query: str, entities: Sequence[Entity]) -> list[str]:
        """Return what the graph says around entities, as far as it is like the
        question.
        """
        triples: list[str] = []
        for entity in entities:
            edges = self.store.neighbors(list(entity.nodes), limit=_EDGES)
            ends = {end for edge in edges for end in (edge.source, edge.target)}
            near = self._best(query, sorted(ends - {*entity.nodes}), _TRIPLES)
            nodes = {
                node.id: node
                for node in self.store.get([*entity.nodes, *near])
                if node is not None
            }
            triples += [_said(edge, nodes) for edge in edges if _kept(edge, nodes)]
        return list(dict.fromkeys(triples))


def _kept(edge: Edge, nodes: dict[str, Node]) -> bool:
    return edge.source in nodes and edge.target in nodes


def _said(edge: Edge, nodes: dict[str, Node]) -> str:
    source, target = nodes[edge.source], nodes[edge.target]
    texts = " ".join(filter(None, (source.text[:_CHARS], target.text[:_CHARS])))
    return f"({source.called}, {edge.relation}, {target.called}) {texts}".strip()


def _fitting(triples: Sequence[str]) -> str:
    """Return as many triples as fit, a line each."""
    lines, left = list[str](), _TOKENS
    for triple in triples:
        left -= estimate_tokens(triple)
        if left < 0:
            break
        lines.append(" ".join(triple.split()))
    return "\n".join(lines)
