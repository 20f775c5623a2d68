"""The entities of a question, with or without a model (GraphRAFT, section 4.1)."""

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
    """Return an entity for each name among the nodes that places may mean.

    Nodes of one name are one entity: which of them is meant nothing tells.
    """
    entities: dict[str, Entity] = {}
    for place, scores in linked:
        for node, score in zip(store.get(list(scores)), scores.values(), strict=True):
            if node is not None:
                name = node.name or node.id
                name = name if len(name) <= _CHARS else f"{name[:_CHARS]}…"
                entity = entities.get(name, Entity(name, {}, (), place))
                labels = tuple(sorted({*entity.labels, *(node.labels or ("",))}))
                entities[name] = replace(
                    entity, nodes={**entity.nodes, node.id: score}, labels=labels
                )
    return list(entities.values())


def mentioned_entities(planner: PathPlanner, question: str) -> list[Entity]:
    """Return what a planner finds named in a question, with no model."""
    return entities_of(
        planner.store,
        [
            ((mention.start, mention.end), mention.nodes)
            for mention in planner.mentions(question)
        ],
    )


def nearest_entities(
    store: GraphStore, index: TextIndex, question: str, n: int
) -> list[Entity]:
    """Return the `n` nodes nearest to a question, each as an entity (section 5.4).

    Nodes that are unlike it in every way are left out.
    """
    found = index.search(question, n)
    end = len(question)  # the question names none of them at a place
    linked = [
        ((end + rank, end + rank), {node_id: score})
        for rank, (node_id, score) in enumerate(
            zip(found.ids, found.scores.tolist(), strict=True)
        )
        if score > 0
    ]
    return entities_of(store, linked)


class EntityNamer:
    """Has a chat model name what a question mentions, and finds the nodes.

    They are found by exact name, or else by likeness.

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
        """Return the entities of names from a model, without unknown ones."""
        linked, distinct = (
            [],
            list(dict.fromkeys(name.strip() for name in names if name.strip())),
        )
        for number, name in enumerate(distinct[:_NAMES]):
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
            return {node.id: node.score for node in self.names.link(name, k=1)}
        hits = self.names.search(name, _FOUND)
        exact = {
            node.id: 1.0
            for node in self.store.get(hits.ids)
            if node and node.name.casefold() == name.casefold()
        }
        shares = hits.scores / max(hits.scores.max(initial=0.0), 1e-9)
        return exact or dict(zip(hits.ids[:1], shares.tolist(), strict=False))
