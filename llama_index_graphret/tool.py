"""`GraphTool`: a graph as a tool of an agent."""

from __future__ import annotations

from typing import Any

from llama_index.core.tools import RetrieverTool, ToolOutput

#: The description of the tool for the model.
DESCRIPTION = (
    "Find passages that answer a question, together with those that they are linked to."
    " Ask one whole question, with the names that it is about."
)


class GraphTool(RetrieverTool):
    """A `RetrieverTool` that passes on the model's question alone.

    LlamaIndex's own puts the argument's name before it (“input is …”), and a search
    would look for that word.
    """

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Return the nodes that a question finds, as text and as raw output."""
        return super().call(*args, *kwargs.values())

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what `call` does without blocking the event loop."""
        return await super().acall(*args, *kwargs.values())
