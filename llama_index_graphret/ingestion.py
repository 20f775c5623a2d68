"""`SageIngestion`: a graph that is kept up to date by an `IngestionPipeline`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import BaseNode, TransformComponent
from pydantic import SkipValidation

from graphret.errors import InvalidInput
from llama_index_graphret.graph import SageGraph
from llama_index_graphret.retriever import require_graph


class SageIngestion(TransformComponent):
    """Add the nodes that go through an `IngestionPipeline` to a graph; they go on as
    they came.

    Put it behind the step that cuts documents, or behind the one that embeds them.

    Parameters
    ----------
    graph
        The graph, such as one of what an earlier run returned. `SageGraph.add_nodes`
        says what becomes of the nodes that a document had before. Save the graph when
        the pipeline is done.

    Raises
    ------
    InvalidInput
        When the pipeline runs in other processes (``num_workers``), whose graph would
        be another one.
    """

    graph: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="The graph that is added to."
    )
    _process: int = PrivateAttr(default_factory=os.getpid)

    def __init__(self, graph: SageGraph) -> None:
        super().__init__(graph=require_graph(graph))  # type: ignore[call-arg]

    @classmethod
    def class_name(cls) -> str:
        return "SageIngestion"

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Add the nodes to the graph, and return them."""
        if os.getpid() != self._process:
            raise InvalidInput(
                "num_workers: SageIngestion expected the process that made it, got"
                " another; run it as a step of a pipeline of one process"
            )
        if nodes:
            self.graph.add_nodes(nodes)
        return nodes

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what a pipeline's cache knows the step by.

        It is another each time, so that the cache never leaves the step out: the graph
        may have lost since what it was given.
        """
        return super().to_dict(**kwargs) | {"call": uuid.uuid4().hex}
