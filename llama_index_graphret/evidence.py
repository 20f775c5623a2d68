"""Where the evidence for a node is kept: beside it, never in it.

Metadata would enter the node's hash and its text, and `QueryFusionRetriever` would take one node for two. So evidence
travels in `SageNodeWithScore`, and on the node objects that graphret itself makes for one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, NodeWithScore
from pydantic import SkipValidation

from graphret.types import Evidence, Retrieval

_MARK = "_graphret_evidence"


class SageNodeWithScore(NodeWithScore):
    """A node, its score and the evidence for it; to LlamaIndex a `NodeWithScore` like any other.

    Serialised it is a plain `NodeWithScore`; copies and pickles keep the evidence.
    """

    evidence: SkipValidation[tuple[Evidence, ...]] = Field(
        default=(), exclude=True, repr=False, description="Why the node was returned."
    )
    retrieval: SkipValidation[Retrieval | None] = Field(
        default=None, exclude=True, repr=False, description="The retrieval it came from, with its trace."
    )


def evidence_of(node: NodeWithScore | BaseNode, *, within: Retrieval | None = None) -> list[Evidence]:
    """Return why a node was returned; empty where graphret did not return it.

    Evidence outlives fusion, reranking and copies. Only where another retriever's copy of the node took the place of
    graphret's is it gone: then give the retrieval as well, which the retriever's own `retrieval_of` has.
    `QueryFusionRetriever` keeps one copy of a node that several retrievers found, by reciprocal ranks the last one's,
    in its other modes the first one's.

    Parameters
    ----------
    node
        What a retriever, a postprocessor or the ``source_nodes`` of a response gave.
    within
        Where to look for a node that carries no evidence, by its id.

    Examples
    --------
    >>> evidence_of(query_engine.query("Who directed Heat?").source_nodes[0])  # doctest: +SKIP
    """
    if isinstance(node, SageNodeWithScore) and node.evidence:
        return list(node.evidence)
    inner = node.node if isinstance(node, NodeWithScore) else node
    marked = vars(inner).get(_MARK)
    if marked:
        return list(marked)
    if within is not None:
        return [evidence for hit in within.hits if hit.id == inner.node_id for evidence in hit.evidence]
    return []


def retrieval_of(nodes: Sequence[NodeWithScore]) -> Retrieval | None:
    """Return the retrieval that nodes came from, with its trace; `None` where no node remembers one.

    Examples
    --------
    >>> retrieval_of(query_engine.query("Who directed Heat?").source_nodes).trace.html()  # doctest: +SKIP
    """
    return next((n.retrieval for n in nodes if isinstance(n, SageNodeWithScore) and n.retrieval is not None), None)


def mark(node: BaseNode, evidence: Sequence[Evidence]) -> BaseNode:
    """Attach evidence to a node object that belongs to one answer alone.

    It is no field of the node, and so in neither its hash, its texts, its dump nor its equality.
    """
    attributes: dict[str, Any] = vars(node)
    attributes[_MARK] = tuple(evidence)
    return node
