"""What running ARK's agents costs beside their models: agents at once, each step, and many questions at once.

The core's `Ark` is measured, and the LangGraph graph of `langchain_graphret` with a LangChain chat model. For one
question the model is simulated: always as many replies, each after 50 to 500 ms, drawn anew, or at once. For many at
once it is `ScriptedExplorer`, behind the same delays, on the excerpt of MetaQA that comes with the package.

``python -m benchmarks.bench_ark_latency``
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from benchmarks.figures import Figure, Report
from graphret.ark import Ark, ArkSettings, ScriptedExplorer, Toolbox
from graphret.errors import GraphretError
from graphret.graphs.example import KB
from graphret.graphs.metaqa import read_metaqa
from graphret.llm.chat import Message, Reply, ToolCall, Usage
from graphret.llm.running import in_thread
from graphret.search import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

AGENTS, STEPS, QUESTIONS = 3, 8, 50
FASTEST, SLOWEST = 0.05, 0.5
_NODES, _DEGREE = 5_000, 4
_KINDS = (
    "who starred in the film {}",
    "which films were directed by the director of {}",
    "who are the actors in the films directed by the director of {}",
)
_WORDS = ("red", "blue", "green", "old", "new", "north", "south", "river", "stone", "night", "garden", "winter")

Model: TypeAlias = "Simulated | Explorer"

#: Asks a question of agents with these models, and returns the trace when they have answered.
System = Callable[[Sequence[Model], str], Coroutine[Any, Any, Any]]


class Delayed:
    """How long the replies of an agent's model take.

    Parameters
    ----------
    agent
        Whose delays are drawn.
    waits
        Whether it waits at all.
    """

    def __init__(self, agent: int, *, waits: bool = True) -> None:
        self.agent = agent
        self.waits = waits

    def delay(self, question: str, step: int) -> float:
        """Seconds before the reply of a step, from 0."""
        return random.Random(f"{question}/{self.agent}/{step}").uniform(FASTEST, SLOWEST) if self.waits else 0.0


class Explorer(Delayed):
    """`ScriptedExplorer`, as slow as a model.

    Its own work, of which a model elsewhere has none, is done once for each reply: `replies` keeps them by question and
    step, for several agents and rounds. `thought` has the seconds of this work, `waited` those of delays by question.
    """

    def __init__(self, agent: int, replies: dict[tuple[str, int], Reply], *, waits: bool = True) -> None:
        super().__init__(agent, waits=waits)
        self.policy = ScriptedExplorer()
        self.replies = replies
        self.name = f"{self.policy.name}-{agent}"
        self.waited: Counter[str] = Counter()
        self.thought: list[float] = []

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Answer after a while."""
        time.sleep(self._delay(messages))
        return self._reply(messages, options)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Answer after a while."""
        await asyncio.sleep(self._delay(messages))
        return self._reply(messages, options)

    def _delay(self, messages: Sequence[Message]) -> float:
        step, question, _ = _step(messages)
        seconds = self.delay(question, step)
        self.waited[question] += seconds  # type: ignore[assignment]
        return seconds

    def _reply(self, messages: Sequence[Message], options: dict[str, Any]) -> Reply:
        step, question, _ = _step(messages)
        if (question, step) not in self.replies:
            start = time.perf_counter()
            self.replies[question, step] = self.policy.chat(messages, **options)
            self.thought.append(time.perf_counter() - start)
        return self.replies[question, step]


class Simulated(Delayed):
    """A chat model that takes its time: it searches, explores what it is shown, selects and finishes.

    Parameters
    ----------
    agent, waits
        See `Delayed`.
    steps
        How many replies it gives.
    """

    def __init__(self, agent: int, steps: int = STEPS, *, waits: bool = True) -> None:
        super().__init__(agent, waits=waits)
        self.name = f"simulated-{agent}"
        self.steps = steps

    def seconds(self, question: str) -> float:
        """Seconds that all replies to a question take together."""
        return sum(self.delay(question, step) for step in range(self.steps))

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Answer after a while."""
        step, question, texts = _step(messages)
        time.sleep(self.delay(question, step))
        return self.reply(question, step, texts)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Answer after a while."""
        step, question, texts = _step(messages)
        await asyncio.sleep(self.delay(question, step))
        return self.reply(question, step, texts)

    def reply(self, question: str, step: int, texts: Sequence[str] = ()) -> Reply:
        """The reply of a step to a question, given the texts of the conversation."""
        if step == 0:
            call = ("global_search", {"query": question})
        elif step < self.steps - 1:
            node = f"n{random.Random(f'{self.agent}/{step}').randrange(_NODES)}"
            call = ("explore_neighborhood", {"node": node, "query": _WORDS[step % len(_WORDS)]})
        else:
            shown = json.loads(texts[3].splitlines()[1])["id"]
            chosen = ToolCall("a", "select", json.dumps({"nodes": [shown]}))
            return Reply("", (chosen, ToolCall("b", "finish")), Usage(1000, 20), "tool_calls", self.name)
        return Reply("", (ToolCall("a", call[0], json.dumps(call[1])),), Usage(1000, 20), "tool_calls", self.name)


def _step(messages: Sequence[Message]) -> tuple[int, str, list[str]]:
    """The number of the next reply, the question, and the texts of a conversation."""
    texts = [message.content for message in messages]
    return sum(message.role == "assistant" for message in messages), texts[1], texts


def in_langchain(core: Simulated) -> Any:
    """Return a simulated model as a chat model of LangChain's own kind."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.messages.tool import tool_call
    from langchain_core.outputs import ChatGeneration, ChatResult

    class SimulatedChat(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return core.name

        def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
            return self.bind(tools=tools)

        def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            step, question, texts = self._step(messages)
            time.sleep(core.delay(question, step))
            return self._result(core.reply(question, step, texts))

        async def _agenerate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            step, question, texts = self._step(messages)
            await asyncio.sleep(core.delay(question, step))
            return self._result(core.reply(question, step, texts))

        def _step(self, messages: list[Any]) -> tuple[int, str, list[str]]:
            texts = [message.content for message in messages]
            return sum(message.type == "ai" for message in messages), texts[1], texts

        def _result(self, reply: Reply) -> ChatResult:
            calls = [tool_call(name=call.name, args=call.parsed or {}, id=call.id) for call in reply.tool_calls]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])

    return SimulatedChat()


def graph() -> tuple[MemoryStore, BM25Index]:
    """Return a graph of `_NODES` nodes with random names, texts and edges, and its index."""
    rng = random.Random(0)
    nodes = [
        Node(f"n{i}", ("Place",), " ".join(rng.sample(_WORDS, 3)), " ".join(rng.choices(_WORDS, k=30)))
        for i in range(_NODES)
    ]
    edges = [Edge(f"n{i}", "near", f"n{rng.randrange(_NODES)}") for i in range(_NODES) for _ in range(_DEGREE)]
    return MemoryStore.of(nodes, edges), BM25Index.build(nodes)


def films() -> tuple[MemoryStore, BM25Index, list[str]]:
    """Return the excerpt of MetaQA, its index, and questions of one hop, two and three."""
    store = read_metaqa(KB).store()
    films = sorted(node.name for block in store.nodes() for node in block if "Movie" in node.labels)
    asked = [kind.format(film) for film in films for kind in _KINDS]
    return store, BM25Index.of_store(store), random.Random(0).sample(asked, QUESTIONS)


def systems(store: MemoryStore, index: BM25Index) -> dict[str, System]:
    """Return what is measured: the core, and the LangGraph graph in both of its forms."""
    from langchain_graphret import CoreChat, create_ark_graph

    def settings(models: Sequence[Model]) -> ArkSettings:
        return ArkSettings(n_agents=len(models), early_stop=False)

    @lru_cache(maxsize=1)
    def ark(*models: Model) -> Ark:
        return Ark(models, store, index, settings=settings(models))

    @lru_cache(maxsize=1)
    def compiled(*models: Model) -> Any:
        given = [CoreChat(core=one) if isinstance(one, Explorer) else in_langchain(one) for one in models]
        return create_ark_graph(given, store, index, settings=settings(models))

    async def core(models: Sequence[Model], question: str) -> Any:
        return _finished((await ark(*models).aretrieve(question)).trace.to_dict())

    async def awaited(models: Sequence[Model], question: str) -> Any:
        return _finished((await compiled(*models).ainvoke({"question": question}))["trace"])

    async def blocking(models: Sequence[Model], question: str) -> Any:
        answer = await in_thread(lambda: compiled(*models).invoke({"question": question}))
        return _finished(answer["trace"])

    return {"core": core, "LangGraph, ainvoke": awaited, "LangGraph, invoke": blocking}


def _finished(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace; an agent that failed did not take the time that it is measured by."""
    summary = next(stage for stage in trace["stages"] if stage["name"] == "explore")
    if set(summary["stopped"]) != {"finished"}:
        raise GraphretError(f"agents ended otherwise than they should: {summary['stopped']}")
    return trace


async def _seconds(asking: Awaitable[Any]) -> float:
    start = time.perf_counter()
    await asking
    return time.perf_counter() - start


async def at_once(system: System, rounds: int = 3) -> float:
    """How much longer all agents take than the slowest of them alone; the median of several questions."""
    models = [Simulated(agent) for agent in range(AGENTS)]
    ratios = []
    for number in range(rounds):
        question = f"the old stone by the river {number}"
        slowest = max(models, key=lambda model: model.seconds(question))
        alone = await _seconds(system([slowest], question))
        ratios.append(await _seconds(system(models, question)) / alone)
    return statistics.median(ratios)


async def a_step(system: System, bare: float, steps: int = 20, rounds: int = 15) -> float:
    """Seconds of a step beside those of its call, `bare`, with a model that answers at once; the median round."""
    models = [Simulated(0, steps, waits=False)]
    took = [await _seconds(system(models, "the old stone")) for _ in range(rounds)]
    return statistics.median(took) / steps - bare


def bare_calls(store: MemoryStore, index: BM25Index, steps: int = 20, rounds: int = 15) -> float:
    """Seconds that the calls of `a_step` take by themselves, a step; the median round."""
    toolbox, model = Toolbox(store, index), Simulated(0, steps, waits=False)
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        for step in range(steps - 1):
            call = model.reply("the old stone", step).tool_calls[0]
            toolbox.run(call.name, call.parsed or {})
        took.append(time.perf_counter() - start)
    return statistics.median(took) / steps


async def together(system: System, models: Sequence[Explorer], asked: Sequence[str]) -> tuple[list[float], list[float]]:
    """Ask questions at once; each one's seconds against those that its models waited, of all and of the slowest."""
    took = await asyncio.gather(*(_seconds(system(models, question)) for question in asked))
    spent = [[model.waited[question] for model in models] for question in asked]
    pairs = list(zip(took, spent, strict=True))
    return sorted(one / sum(each) for one, each in pairs), sorted(one / max(each) for one, each in pairs)


def latency(report: Report) -> None:
    """Agents at once, the overhead of a step, and many questions at once, for the core and for LangGraph.

    Figures are those of the median round.
    """
    gc.collect()
    gc.freeze()  # what the parts before this one left in the process is not gone through again and again
    store, index = graph()
    bare = bare_calls(store, index)
    report.seconds["ark/calls of a step, alone"] = bare
    report.counts |= {"ark/agents": AGENTS, "ark/steps": STEPS, "ark/questions at once": QUESTIONS}
    for name, system in systems(store, index).items():
        asyncio.run(system([Simulated(0, waits=False)], "the old stone"))
        ratio = asyncio.run(at_once(system))
        what = f"ARK ({name}): {AGENTS} agents against the slowest of them alone"
        report.figures[f"ark at once, {name}"] = Figure(what, ratio, target=1.15)
        step = asyncio.run(a_step(system, bare)) * 1e3
        what = f"ARK ({name}): a step, without its model and its call"
        report.figures[f"ark step, {name}"] = Figure(what, step, unit="ms", target=5.0)
    _load(report)
    gc.unfreeze()


def _load(report: Report) -> None:
    store, index, asked = films()
    replies: dict[tuple[str, int], Reply] = {}
    policy = Explorer(0, replies, waits=False)
    for question in asked:
        asyncio.run(systems(store, index)["core"]([policy], question))
    report.counts["ark/replies to a question, at most"] = max(step for _, step in replies) + 1
    report.seconds["ark/own work of the policy in a reply"] = statistics.median(policy.thought)
    for name, system in systems(store, index).items():
        asyncio.run(system([policy] * AGENTS, asked[0]))
        rounds = []
        for _ in range(3):
            models = [Explorer(agent, replies) for agent in range(AGENTS)]
            rounds.append(asyncio.run(together(system, models, asked)))
        of_all, of_slowest = sorted(rounds, key=lambda found: found[1][-1])[1]
        what = f"ARK ({name}): {QUESTIONS} questions at once, the longest against the seconds of its models"
        report.figures[f"ark together, {name}"] = Figure(what, of_all[-1], target=1.2)
        what = f"ARK ({name}): the same against its slowest agent's model alone, the longest"
        report.figures[f"ark together slowest, {name}"] = Figure(what, of_slowest[-1])
        what = f"ARK ({name}): the same, the median question"
        report.figures[f"ark together median, {name}"] = Figure(what, statistics.median(of_slowest))


def main() -> int:
    """Run from the command line."""
    report = Report()
    latency(report)
    print(report.to_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
