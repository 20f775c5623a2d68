"""`ScriptedExplorer`: graphret's policy without a model, where LlamaIndex wants an LLM that calls tools."""

from __future__ import annotations

from llama_index.core.callbacks import CallbackManager

from graphret.ark import scripted
from llama_index_graphret.core_llm import CoreLLM


class ScriptedExplorer(CoreLLM):
    """A fixed policy that explores a graph with ARK's tools, as a LlamaIndex LLM; it is no language model.

    See `graphret.ark.ScriptedExplorer`. It drives any LlamaIndex agent that has `ark_tools`, offline, in tests and in
    demonstrations, and ends by naming the nodes that it takes for the answer. It answers nothing else.
    """

    def __init__(self, *, callback_manager: CallbackManager | None = None) -> None:
        super().__init__(scripted.ScriptedExplorer(), context_window=1_000_000, callback_manager=callback_manager)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "ScriptedExplorer"
