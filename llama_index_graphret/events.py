"""What graphret's parts tell LlamaIndex's instrumentation."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent

from graphret.types import Retrieval


class SageRetrievalEvent(BaseEvent):
    """A graphret retriever answered.

    Parameters
    ----------
    query
        The question.
    trace
        The stages with their seconds, counts and fallbacks, as JSON values.
    evidence
        For each node id the evidence, as JSON values.
    """

    query: str
    trace: dict[str, Any] = Field(default_factory=dict)
    evidence: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)

    @classmethod
    def of(cls, retrieval: Retrieval) -> SageRetrievalEvent:
        """Return the event of a retrieval."""
        evidence = {hit.id: [one.to_dict() for one in hit.evidence] for hit in retrieval.hits}
        return cls(query=retrieval.query, trace=retrieval.trace.to_dict(), evidence=evidence)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised events."""
        return "SageRetrievalEvent"


class ExpansionStartEvent(ReRankStartEvent):
    """`SageExpansion` begins; handlers of reranking events see it too. The model's name is that of the ranking."""

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised events."""
        return "ExpansionStartEvent"


class ExpansionEndEvent(ReRankEndEvent):
    """`SageExpansion` is done; handlers of reranking events see it too."""

    trace: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised events."""
        return "ExpansionEndEvent"
