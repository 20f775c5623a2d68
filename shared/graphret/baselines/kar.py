"""KAR: query expansion with the graph around a question's entities (Xia et al. 2025).

SAGE compares it in appendix C.4.
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

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        entities = yield from self._entities(query, trace)
        with trace.stage("triples") as stage:
            triples = yield Compute(lambda: self._triples(query, entities))
            stage.details["triples"] = len(triples)
        prompt = f"Question: {query}\n\n{fenced(_fitting(triples))}"
        expanded = yield from self._ask(_EXPAND, prompt, _Query, trace, "expand")
        text = f"{query} {expanded.query}"
        return (yield from self._searched(text, k, where, trace))

    def _triples(self, query: str, entities: Sequence[Entity]) -> list[str]:
        """Return the triples around entities whose nodes are most like the question."""
        triples: list[str] = []
        for entity in entities:
            edges = self.store.neighbors(list(entity.nodes), limit=_EDGES)
            node_ids = {end for edge in edges for end in (edge.source, edge.target)}
            near = self._best(query, sorted(node_ids - {*entity.nodes}), _TRIPLES)
            nodes = {
                node.id: node
                for node in self.store.get([*entity.nodes, *near])
                if node is not None
            }
            triples += [
                _written(edge, nodes) for edge in edges if _is_complete(edge, nodes)
            ]
        return list(dict.fromkeys(triples))


def _is_complete(edge: Edge, nodes: dict[str, Node]) -> bool:
    return edge.source in nodes and edge.target in nodes


def _written(edge: Edge, nodes: dict[str, Node]) -> str:
    source, target = nodes[edge.source], nodes[edge.target]
    texts = " ".join(filter(None, (source.text[:_CHARS], target.text[:_CHARS])))
    return f"({source.called}, {edge.relation}, {target.called}) {texts}".strip()


def _fitting(triples: Sequence[str]) -> str:
    """Return as many triples as fit, a line each."""
    lines, tokens_left = list[str](), _TOKENS
    for triple in triples:
        tokens_left -= estimate_tokens(triple)
        if tokens_left < 0:
            break
        lines.append(" ".join(triple.split()))
    return "\n".join(lines)
