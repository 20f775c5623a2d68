"""A small run to record."""

from __future__ import annotations

from graphret.ark.run import Run
from graphret.ark.session import ArkSession, CallRecord, StepRecord
from graphret.llm.chat import Message, ToolCall


def small(question: str = "who?", agents: int = 2) -> Run:
    made = [ArkSession(question, "explore", agent=agent, model="m") for agent in range(agents)]
    for session in made:
        call = ToolCall("c1", "global_search", '{"query": "who"}')
        session.messages += [Message.assistant("", [call]), Message.tool(call, '{"found": 1}\n{"id": "a"}')]
        session.steps = [StepRecord(1, calls=[CallRecord("global_search", {"query": "who"}, nodes=["a"])])]
        session.selection = ["a"]
        session.end("finished")
    return Run(question, made, 1.5)
