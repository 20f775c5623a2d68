"""`RelationsAsText`: the relations by which nodes were found, told to whoever reads."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import Field
from llama_index.core.indices.property_graph.sub_retrievers.base import DEFAULT_PREAMBLE
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from graphret.types import Evidence
from llama_index_graphret.evidence import evidence_of


class RelationsAsText(BaseNodePostprocessor):
    """Put the relations by which nodes were found in front of their texts, as the
    retrievers of `PropertyGraphIndex` do: ``Big -> starred_actors -> Tom Hanks``.

    A node that came by no relation is left as it is; the others are copies, with the
    same id, evidence and score, and with another hash. Put it last.

    Parameters
    ----------
    preamble
        What comes before the relations; LlamaIndex's words by default.
    """

    preamble: str = Field(
        default=DEFAULT_PREAMBLE, description="What comes before the relations."
    )

    def __init__(self, *, preamble: str = DEFAULT_PREAMBLE) -> None:
        super().__init__(preamble=preamble)  # type: ignore[call-arg]

    @classmethod
    def class_name(cls) -> str:
        return "RelationsAsText"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [self._told(one) for one in nodes]

    def _told(self, found: NodeWithScore) -> NodeWithScore:
        relations = dict.fromkeys(
            triplet_text(one) for one in evidence_of(found) if one.direction
        )
        if not relations:
            return found
        node = found.node.model_copy()
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        node.set_content(self.preamble + "\n".join(relations) + "\n\n" + text)
        return found.model_copy(update={"node": node})


def triplet_text(edge: Evidence) -> str:
    """Return an edge that was walked as LlamaIndex writes a triplet, in its own
    direction, by the names of its ends.
    """
    ends = [edge.source_name or edge.source, edge.target_name or edge.target]
    if edge.direction == "in":
        ends.reverse()
    return f"{ends[0]} -> {edge.relation} -> {ends[1]}"
