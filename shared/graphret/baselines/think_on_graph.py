"""Think-on-Graph: a model controls a beam search over paths (Sun et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from graphret.baselines.base import DATA, Baseline, Part, fenced
from graphret.llm import ChatModel
from graphret.retriever import Compute
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, require_limit
from graphret.trace import Trace
from graphret.types import Hit, Node
from graphret.where import Where

#: Edges of a node that are read, and paths that the model chooses among.
_EDGES, _PATHS = 200, 60
_PRUNE = (
    "Each numbered line is a path in a graph from what a question mentions. Give the"
    " numbers of the paths that lead towards its answer, the best first, and say"
    " whether their ends are the answer already (`enough`)." + DATA
)


@dataclass(frozen=True)
class _Pruned:
    numbers: list[int]
    enough: bool = False


@dataclass(frozen=True)
class _Path:
    """A way from an entity: what it says so far, and the node at its end."""

    text: str
    end: Node
    passed: frozenset[str] = field(default_factory=frozenset)


class ThinkOnGraph(Baseline):
    """Follow the paths from entities that the model keeps (Think-on-Graph).

    It ends once the model says that they are enough.

    The answer is the ends of the paths that are kept at last, the best first.

    Parameters
    ----------
    model, store, index, on_failure
        As `Baseline` has them.
    width, depth
        Paths that are kept, and hops that they may have: 3 and 3 as its authors have
        them.
    """

    name = "think-on-graph"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        index: TextIndex,
        *,
        width: int = 3,
        depth: int = 3,
        on_failure: str = "fallback",
    ) -> None:
        super().__init__(model, store, index, on_failure=on_failure)
        self.width = require_limit(width) or 1
        self.depth = require_limit(depth) or 1

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        entities = yield from self._entities(query, trace)
        starts = [node_id for entity in entities for node_id in entity.nodes]
        nodes = yield Compute(lambda: self.store.get(starts) if starts else [])
        beam = [_Path(node.called, node) for node in nodes if node is not None]
        for hop in range(1, self.depth + 1):
            longer: list[_Path] = yield Compute(partial(self._extended, query, beam))
            if not longer:
                break
            listed = "\n".join(f"{n}. {path.text}" for n, path in enumerate(longer, 1))
            prompt = f"Question: {query}\n\n{fenced(listed)}"
            pruned = yield from self._ask(_PRUNE, prompt, _Pruned, trace, f"hop {hop}")
            numbers = dict.fromkeys(n for n in pruned.numbers if 0 < n <= len(longer))
            # relations of one kind lead to many answers: all that the model names stay
            # where it is done, and so many as the beam is wide where it goes on
            chosen = [longer[n - 1] for n in numbers]
            beam = chosen if pruned.enough else chosen[: self.width]
            if pruned.enough or not beam:
                break
        reached = dict.fromkeys(path.end.id for path in beam if path.passed)
        return (yield from self._hits(list(reached)))

    def _extended(self, query: str, beam: Sequence[_Path]) -> list[_Path]:
        """Return the paths that are one hop longer, to the likeliest ends."""
        longer: list[_Path] = []
        for path in beam:
            edges = self.store.neighbors([path.end.id], limit=_EDGES)
            sides = [
                (edge, edge.target if edge.source == path.end.id else edge.source)
                for edge in edges
            ]
            new = {end for _, end in sides} - {path.end.id} - path.passed
            near = self._best(query, sorted(new), _PATHS)
            neighbors = self.store.get(near) if near else []
            nodes = {node.id: node for node in neighbors if node is not None}
            for edge, end in sides:
                if end in nodes:
                    arrow = ("-[{}]->" if edge.target == end else "<-[{}]-").format(
                        edge.relation
                    )
                    text = f"{path.text} {arrow} {nodes[end].called}"
                    passed = path.passed | {path.end.id}
                    longer.append(_Path(text, nodes[end], passed))
        return longer[:_PATHS]
