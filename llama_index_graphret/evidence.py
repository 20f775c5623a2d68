"""The evidence for a node, stored in the node outside of its hash and texts.

Metadata would change the node's hash and text, and `QueryFusionRetriever` would take
one node for two. A node's relation to its source has metadata of its own, which change
neither, and which LlamaIndex keeps whenever it copies a node, serializes it, or splits
it as `CitationQueryEngine` does. A node without a source becomes its own source.
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
        """Return a hit with a copy of its LlamaIndex node that carries the evidence."""
        score = hit.score if hit.relevance is None else hit.relevance
        return cls(
            node=mark(node, hit.evidence),
            score=score,
            raw_score=hit.score,
            fill=hit.fill,
            retrieval=retrieval,
        )


class SageRetrievalEvent(BaseEvent):
    """An answer of graphret: question, trace and each node's evidence, as JSON."""

    query: str
    trace: dict[str, Any] = Field(default_factory=dict)
    evidence: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)

    @classmethod
    def of(cls, retrieval: Retrieval) -> SageRetrievalEvent:
        evidence = {
            hit.id: [evidence_item.to_dict() for evidence_item in hit.evidence]
            for hit in retrieval.hits
        }
        return cls(
            query=retrieval.query, trace=retrieval.trace.to_dict(), evidence=evidence
        )

    @classmethod
    def class_name(cls) -> str:
        return "SageRetrievalEvent"


def evidence_of(node: NodeWithScore | BaseNode) -> list[Evidence]:
    """Return why a node was returned; empty if graphret did not return it.

    Evidence survives fusion, reranking, copies, JSON and citations. It is only lost if
    another retriever's copy of the node replaces graphret's: `QueryFusionRetriever`
    keeps one copy of a node that several retrievers found, with reciprocal ranks the
    last one, and in its other modes the first.
    """
    inner = node.node if isinstance(node, NodeWithScore) else node
    source = inner.relationships.get(NodeRelationship.SOURCE)
    stored = source.metadata.get(_KEY) if isinstance(source, RelatedNodeInfo) else None
    return [Evidence(**fields) for fields in stored or ()]


def retrieval_of(nodes: Sequence[NodeWithScore]) -> Retrieval | None:
    """Return the retrieval that nodes came from, or `None` if no node stores one."""
    return next(
        (
            node.retrieval
            for node in nodes
            if isinstance(node, SageNodeWithScore) and node.retrieval is not None
        ),
        None,
    )


def mark(node: BaseNode, evidence: Sequence[Evidence]) -> BaseNode:
    """Return a copy of a node with other evidence, or the node if nothing changes."""
    source = node.relationships.get(NodeRelationship.SOURCE)
    source_info = (
        source
        if isinstance(source, RelatedNodeInfo)
        else RelatedNodeInfo(node_id=node.node_id)
    )
    if not evidence and _KEY not in source_info.metadata:
        return node
    metadata = {
        key: value for key, value in source_info.metadata.items() if key != _KEY
    }
    if evidence:
        metadata[_KEY] = [item.to_dict() for item in evidence]
    relationships = {
        **node.relationships,
        NodeRelationship.SOURCE: source_info.model_copy(update={"metadata": metadata}),
    }
    if (
        not evidence
        and source_info.node_id == node.node_id
        and source_info.node_type is None
    ):
        del relationships[NodeRelationship.SOURCE]
    return node.model_copy(update={"relationships": relationships})
