"""LangGraph's compiled graph with what ARK's need besides: room for one step, and word of runs that die."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.graph.state import CompiledStateGraph
from langgraph.typing import InputT, OutputT, StateT
from pydantic import BaseModel

from graphret.errors import InvalidInput
from langchain_graphret.ark.as_tool import Answers
from langchain_graphret.ark.live import Live

# LangGraph leaves out of what it tells of a configuration whatever begins as its own keys do.
_WATCH = "__pregel_graphret_run"
_UNSEEN = "__pregel_graphret_unseen"


@dataclass(slots=True)
class Watch:
    """What a call of a graph has come to: a question that no agent has been sent, and the run under way, once it is."""

    unsent: str = ""
    live: Live | None = None


def watched(config: RunnableConfig | None = None) -> Watch | None:
    """Return who watches the run that the node is part of; a branch has to say how it was called."""
    watch: Watch | None = (get_config() if config is None else config).get("configurable", {}).get(_WATCH)
    return watch


def is_unseen() -> bool:
    """Whether nobody sees the single steps of the call that the node is part of, while it runs or in a checkpoint."""
    return bool(get_config().get("configurable", {}).get(_UNSEEN))


class Compiled(CompiledStateGraph[StateT, None, InputT, OutputT]):
    """A compiled graph that ends by itself under any recursion limit, and hands back from it what its output names.

    LangGraph compares a step with the limit before it looks whether there is anything left to do (`PregelLoop.tick`),
    and counts from the step that takes the input: with a recursion limit of 1 it raises even where the first node has
    ended the graph. Here one of 1 is taken for one of 2, with which the nodes see that there is no room. A graph around
    this one would raise all the same, after its work: there it is an `InvalidInput`, before it.

    Attributes
    ----------
    on_death
        Called with what a call has come to when it raises, is cancelled, or its stream is closed before the end. An
        interrupt is no end.
    answers
        How the graph answers as a tool.
    """

    on_death: Callable[[Watch, BaseException], None] | None = None
    answers: Answers | None = None

    @classmethod
    def of(cls, compiled: CompiledStateGraph[StateT, None, InputT, OutputT], *also: str) -> Self:
        """Return the graph as one of this class, whose state shows its output, and `also` these channels."""
        made = cls(**{name: value for name, value in vars(compiled).items() if name != "__orig_class__"})
        # A node that is a graph is streamed under `astream_events`, and what it streams is written to the graph around
        # it: its whole state, and with it the question, once an agent, which no plain channel takes.
        made.stream_channels = [*compiled.output_channels, *also]
        return made

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy, as `with_config` does."""
        made = super().copy(update)
        made.on_death, made.answers = self.on_death, self.answers
        return made

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return the graph as a tool for a model: it reads the hits as text, and the artifact has them and the trace.

        Parameters
        ----------
        args_schema, arg_types
            What the tool is asked, where it is something else; LangChain's own tool is returned then, whose answer is
            the whole output.
        name, description
            What the model knows it by: ``explore_graph``, and what it does, by default. Say what the graph holds.
        """
        if self.answers is None or args_schema is not None or arg_types is not None:
            return super().as_tool(args_schema, name=name, description=description, arg_types=arg_types)
        return self.answers.tool(self, name, description)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph; see `CompiledStateGraph.invoke`."""
        return super().invoke(input, self._unseen(config, options), **options)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph; see `CompiledStateGraph.ainvoke`."""
        return await super().ainvoke(input, self._unseen(config, options), **options)

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream the graph; see `CompiledStateGraph.stream`."""
        watch, config = self._watching(input, config)
        try:
            with closing(super().stream(input, config, **options)) as chunks:  # type: ignore[type-var]
                for chunk in chunks:
                    try:
                        yield chunk
                    except GeneratorExit:
                        if watch.live is not None and not watch.live.waits:
                            watch.live.stop()  # LangGraph waits for its threads
                        raise
        except GraphBubbleUp:
            raise
        except BaseException as error:
            self._died(watch, error)
            raise

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream the graph; see `CompiledStateGraph.astream`."""
        watch, config = self._watching(input, config)
        try:
            async with aclosing(super().astream(input, config, **options)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    yield chunk
        except GraphBubbleUp:
            raise
        except BaseException as error:
            self._died(watch, error)
            raise

    def _unseen(self, config: RunnableConfig | None, options: Mapping[str, Any]) -> RunnableConfig | None:
        """Say to the nodes whether nobody sees their single steps; one that is a node itself has been told."""
        inherited = ensure_config(config)
        kept = bool(options or self.checkpointer)
        if ("langgraph_node" in inherited["metadata"] and not kept) or self._lacks_thread(config):
            return config
        return {**(config or {}), "configurable": {**inherited["configurable"], _UNSEEN: not kept}}

    def _watching(self, input: Any, config: RunnableConfig | None) -> tuple[Watch, RunnableConfig | None]:
        watch = Watch()
        given: dict[str, Any] = {**(config or {})}
        is_node = "langgraph_node" in (given.get("metadata") or {})
        question = input.get("question") if isinstance(input, Mapping) else None
        if isinstance(question, str) and not is_node:  # a node is given its input again when it goes on
            watch.unsent = question.strip() and question
        if given.get("recursion_limit", (self.config or {}).get("recursion_limit")) == 1:
            if is_node:
                raise InvalidInput(f"recursion_limit: 1 lets no graph with {self.name} as a node end; 2 is the least")
            given["recursion_limit"] = 2
        if self.on_death is not None and not self._lacks_thread(config):
            given["configurable"] = {**given.get("configurable", {}), _WATCH: watch}
        return watch, given or None  # type: ignore[return-value]

    def _lacks_thread(self, config: RunnableConfig | None) -> bool:
        """Whether nothing is configured, by which LangGraph knows that a checkpointer has been given no thread."""
        return bool(self.checkpointer) and not ensure_config(merge_configs(self.config, config))["configurable"]

    def _died(self, watch: Watch, error: BaseException) -> None:
        if self.on_death is not None:
            self.on_death(watch, error)
