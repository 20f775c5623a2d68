"""`GraphTool`: a graph as a tool of an agent."""

from __future__ import annotations

from typing import Any

from llama_index.core.tools import RetrieverTool, ToolOutput

#: What a model is told of a graph that is its tool.
DESCRIPTION = (
    "Find passages that answer a question, together with those that they are linked to."
    " Ask one whole question, with the names that it is about."
)


class GraphTool(RetrieverTool):
    """A `RetrieverTool` that asks what the model wrote, and nothing else.

    LlamaIndex's own puts the name of the argument before it (“input is …”), a word that
    a search would look for.
    """

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Return the nodes that a question finds, as text and as they are."""
        return super().call(*args, *kwargs.values())

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what `call` does without blocking the event loop."""
        return await super().acall(*args, *kwargs.values())
