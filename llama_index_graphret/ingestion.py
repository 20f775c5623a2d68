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
    """Add the nodes of an `IngestionPipeline` to a graph, and pass them on unchanged.

    Put it after the step that splits documents, or after the one that embeds nodes.

    Parameters
    ----------
    graph
        The graph, for example the one built from an earlier run. `SageGraph.add_nodes`
        says what happens to the previous nodes of a document. Save the graph when the
        pipeline is done.

    Raises
    ------
    InvalidInput
        If the pipeline runs in other processes (``num_workers``), which would change a
        copy of the graph.
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
                "num_workers: SageIngestion only runs in the process that created it;"
                " run its pipeline without worker processes"
            )
        if nodes:
            self.graph.add_nodes(nodes)
        return nodes

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the step's key for a pipeline's cache.

        It is different each time, so that the cache never skips the step: the graph may
        have lost the nodes in the meantime.
        """
        return super().to_dict(**kwargs) | {"call": uuid.uuid4().hex}
