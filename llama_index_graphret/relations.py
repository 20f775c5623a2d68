"""`RelationsAsText`: the relations by which nodes were found, for the LLM to read."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import Field
from llama_index.core.indices.property_graph.sub_retrievers.base import DEFAULT_PREAMBLE
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from graphret.types import Evidence
from llama_index_graphret.evidence import evidence_of


class RelationsAsText(BaseNodePostprocessor):
    """Prefix each node's text with the relations that led to it.

    The format is that of `PropertyGraphIndex`'s retrievers, such as
    ``Big -> starred_actors -> Tom Hanks``.

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
        return [self._with_relations(node) for node in nodes]

    def _with_relations(self, scored_node: NodeWithScore) -> NodeWithScore:
        relations = dict.fromkeys(
            triplet_text(evidence)
            for evidence in evidence_of(scored_node)
            if evidence.direction
        )
        if not relations:
            return scored_node
        node = scored_node.node.model_copy()
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        node.set_content(self.preamble + "\n".join(relations) + "\n\n" + text)
        return scored_node.model_copy(update={"node": node})


def triplet_text(edge: Evidence) -> str:
    """Return an edge of the evidence as LlamaIndex writes a triplet, by node names."""
    names = [edge.source_name or edge.source, edge.target_name or edge.target]
    if edge.direction == "in":
        names.reverse()
    return f"{names[0]} -> {edge.relation} -> {names[1]}"
