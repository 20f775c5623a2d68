"""What a question names, found with no model or named by one, then linked (GraphRAFT,
section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graphret.graphraft.counts import Entity
from graphret.linking import Linker
from graphret.llm import ChatModel, Message, aask_json, ask_json
from graphret.llm.structured import StructuredReply
from graphret.planning import PathPlanner
from graphret.retriever import Call
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore

#: Questions and what they name, as the paper has them for STaRK-Prime (appendix A.1).
_EXAMPLES = [
    Message.user(
        "Which genes or proteins are linked to melanoma and also interact with TNFSF8?"
    ),
    Message.assistant('{"names": ["melanoma", "TNFSF8"]}'),
    Message.user(
        "What liquid drugs target the A2M gene/protein and bind to the PDGFR-beta"
        " receptor?"
    ),
    Message.assistant('{"names": ["A2M gene/protein", "PDGFR-beta receptor"]}'),
    Message.user(
        "Show me publications by A.J. Turvey on the topic of supersymmetry particle"
        " searches."
    ),
    Message.assistant('{"names": ["A.J. Turvey", "supersymmetry particle searches"]}'),
]
_TASK = (
    "You name the entities of a knowledge graph that a question mentions, in the"
    " question's own words. Leave out what is asked for."
)
#: Names that a model may give, nodes that are looked at for each, and characters of a
#: name.
_NAMES, _FOUND, _CHARS = 6, 20, 100


@dataclass(frozen=True)
class _Named:
    names: list[str]


def entities_of(
    store: GraphStore, linked: Iterable[tuple[tuple[int, int], Mapping[str, float]]]
) -> list[Entity]:
    """Return the entities of places in a question, from the nodes that each may mean:
    one for each name.

    Nodes of one name are one entity: which of them is meant nothing tells.
    """
    found: dict[str, Entity] = {}
    for place, scores in linked:
        for node, score in zip(store.get(list(scores)), scores.values(), strict=True):
            if node is not None:
                name = node.name or node.id
                name = name if len(name) <= _CHARS else f"{name[:_CHARS]}…"
                known = found.get(name, Entity(name, {}, (), place))
                labels = tuple(sorted({*known.labels, *(node.labels or ("",))}))
                found[name] = replace(
                    known, nodes={**known.nodes, node.id: score}, labels=labels
                )
    return list(found.values())


def mentioned_entities(planner: PathPlanner, question: str) -> list[Entity]:
    """Return what a planner finds named in a question, with no model."""
    return entities_of(
        planner.store,
        [((one.start, one.end), one.nodes) for one in planner.mentions(question)],
    )


class EntityNamer:
    """Has a chat model name what a question mentions, and finds the nodes: by exact
    name, else the most similar one.

    Parameters
    ----------
    model
        The chat model.
    store
        The graph.
    names
        A `Linker`, which compares by meaning too if it has an encoder, or a text index
        over the graph.
    """

    def __init__(
        self, model: ChatModel, store: GraphStore, names: Linker | TextIndex
    ) -> None:
        self.model, self.store, self.names = model, store, names

    def ask(self, question: str) -> Call[StructuredReply[_Named]]:
        """Return the step in which the model names what a question mentions."""
        messages = [Message.system(_TASK), *_EXAMPLES, Message.user(question)]
        return Call(
            lambda: ask_json(self.model, messages, _Named),
            lambda: aask_json(self.model, messages, _Named),
        )

    def link(self, question: str, names: Sequence[str]) -> list[Entity]:
        """Return the entities of names that a model gave; one that nothing is like is
        left out.
        """
        linked, given = (
            [],
            list(dict.fromkeys(one.strip() for one in names if one.strip())),
        )
        for number, name in enumerate(given[:_NAMES]):
            start = question.lower().find(name.lower())
            place = (
                (start, start + len(name))
                if start >= 0
                else (len(question) + number, len(question) + number)
            )
            linked.append((place, self._nodes(name)))
        return entities_of(self.store, linked)

    def _nodes(self, name: str) -> dict[str, float]:
        if isinstance(self.names, Linker):
            return {one.id: one.score for one in self.names.link(name, k=1)}
        found = self.names.search(name, _FOUND)
        exact = {
            one.id: 1.0
            for one in self.store.get(found.ids)
            if one and one.name.casefold() == name.casefold()
        }
        shares = found.scores / max(found.scores.max(initial=0.0), 1e-9)
        return exact or dict(zip(found.ids[:1], shares.tolist(), strict=False))
