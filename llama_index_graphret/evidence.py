"""Where the evidence for a node is kept: with the node, where neither its hash nor any
text has it.

Metadata would enter the node's hash and its text, and `QueryFusionRetriever` would take
one node for two. A node's relation to its source has metadata of its own, which enter
neither, and which LlamaIndex keeps wherever it copies a node, writes it as JSON or
makes others of it, as `CitationQueryEngine` does. One without a source gets itself for
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, field_validator
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
)
from pydantic import SkipValidation

from graphret.types import Evidence, Hit, Retrieval
from llama_index_graphret.nodes import CLASSES

_KEY = "graphret_evidence"


class SageNodeWithScore(NodeWithScore):
    """A node and how well it answers; to LlamaIndex a `NodeWithScore` like any other.

    Its `score` is the relevance of a `Hit`, 0 … 1. Copies, pickles and JSON keep the
    evidence, not the retrieval.
    """

    fill: bool = Field(
        default=False,
        description="Whether it only fills a place, and nothing speaks for it.",
    )
    raw_score: float | None = Field(
        default=None, description="What the method ranked by."
    )
    retrieval: SkipValidation[Retrieval | None] = Field(
        default=None,
        exclude=True,
        repr=False,
        description="The retrieval it came from, with its trace.",
    )

    @field_validator("node", mode="before")
    @classmethod
    def _read_node(cls, value: Any) -> Any:
        return (
            CLASSES[value["class_name"]].from_dict(value)
            if isinstance(value, dict)
            else value
        )

    @classmethod
    def of(
        cls, hit: Hit, node: BaseNode, retrieval: Retrieval | None
    ) -> SageNodeWithScore:
        """Return a hit whose node is a LlamaIndex node, which is copied to carry the
        evidence.
        """
        score = hit.score if hit.relevance is None else hit.relevance
        return cls(
            node=mark(node, hit.evidence),
            score=score,
            raw_score=hit.score,
            fill=hit.fill,
            retrieval=retrieval,
        )


class SageRetrievalEvent(BaseEvent):
    """A graphret retriever or postprocessor answered: the question, the trace and each
    node's evidence, as JSON.
    """

    query: str
    trace: dict[str, Any] = Field(default_factory=dict)
    evidence: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)

    @classmethod
    def of(cls, retrieval: Retrieval) -> SageRetrievalEvent:
        evidence = {
            hit.id: [one.to_dict() for one in hit.evidence] for hit in retrieval.hits
        }
        return cls(
            query=retrieval.query, trace=retrieval.trace.to_dict(), evidence=evidence
        )

    @classmethod
    def class_name(cls) -> str:
        return "SageRetrievalEvent"


def evidence_of(node: NodeWithScore | BaseNode) -> list[Evidence]:
    """Return why a node was returned; empty where graphret did not return it.

    Evidence outlives fusion, reranking, copies, JSON and citations. Only where another
    retriever's copy of the node took the place of graphret's is it gone:
    `QueryFusionRetriever` keeps one copy of a node that several retrievers found, by
    reciprocal ranks the last one's, in its other modes the first's.
    """
    inner = node.node if isinstance(node, NodeWithScore) else node
    source = inner.relationships.get(NodeRelationship.SOURCE)
    said = source.metadata.get(_KEY) if isinstance(source, RelatedNodeInfo) else None
    return [Evidence(**one) for one in said or ()]


def retrieval_of(nodes: Sequence[NodeWithScore]) -> Retrieval | None:
    """Return the retrieval that nodes came from, with its trace; `None` where no node
    remembers one.
    """
    return next(
        (
            n.retrieval
            for n in nodes
            if isinstance(n, SageNodeWithScore) and n.retrieval is not None
        ),
        None,
    )


def mark(node: BaseNode, evidence: Sequence[Evidence]) -> BaseNode:
    """Return a copy of a node with evidence, or none, in place of what it had; itself
    where it has none to have.
    """
    source = node.relationships.get(NodeRelationship.SOURCE)
    known = (
        source
        if isinstance(source, RelatedNodeInfo)
        else RelatedNodeInfo(node_id=node.node_id)
    )
    if not evidence and _KEY not in known.metadata:
        return node
    metadata = {key: value for key, value in known.metadata.items() if key != _KEY}
    if evidence:
        metadata[_KEY] = [one.to_dict() for one in evidence]
    relationships = {
        **node.relationships,
        NodeRelationship.SOURCE: known.model_copy(update={"metadata": metadata}),
    }
    if not evidence and known.node_id == node.node_id and known.node_type is None:
        del relationships[NodeRelationship.SOURCE]
    return node.model_copy(update={"relationships": relationships})
