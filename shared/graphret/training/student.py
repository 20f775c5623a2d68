"""Distilling an exploring agent from a teacher's trajectories (ARK, 3.3 and 4.3)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.ark import Ark, Recorder
from graphret.ark.tool_caller import as_json_calls
from graphret.errors import GraphretError, InvalidInput
from graphret.llm import Message, Tool
from graphret.training.lora import FineTunedModel, LoRASettings, fine_tune, save
from graphret.training.objectives import Conversation
from graphret.training.questions import json_lines, json_objects
from graphret.training.trainer import Progress as TrainingProgress
from graphret.training.tuned import Progress

#: How the paper distils (section 4.3): one epoch at 1e-5 over trajectories of at most
#: 16,384 tokens.
STUDENT_TUNING = LoRASettings(epochs=1.0, batch=1, rate=1e-5, max_tokens=16_384)
#: The settings of an exploration on which depends what the agent reads.
_TOLD = (
    "prompt",
    "exploration",
    "search_k",
    "neighbors_k",
    "observation_tokens",
    "snippet_chars",
)
#: Questions at most (section 4.3).
QUESTIONS = 6_000


@dataclass
class TrajectoryReport:
    """Counts of questions, of trajectories, and of those that the agent finished."""

    questions: int = 0
    trajectories: int = 0
    finished: int = 0


def read_texts(
    path: str | Path, limit: int | None = QUESTIONS, seed: int = 0
) -> list[str]:
    """Read distinct questions from JSON Lines; of more than `limit`, a random sample.

    Lines are ``{"question": text}`` with any other fields. An `InvalidInput` names a
    line without a question.
    """
    texts = dict[str, None]()
    for where, record in json_lines(path):
        text = record.get("question") if isinstance(record, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f'{where}: expected {{"question": text}}')
        texts[text] = None
    questions = list(texts)
    if limit is not None and limit < len(questions):
        questions = random.Random(seed).sample(questions, limit)
    return questions


def collect_trajectories(
    ark: Ark,
    questions: Sequence[str],
    out: str | Path,
    *,
    progress: Progress = lambda done, of: None,
) -> TrajectoryReport:
    """Let a teacher's agents explore for each question, and append them to a file.

    Each line is one agent; nothing is filtered, and no answers are needed. An existing
    file is continued: questions with as many trajectories as agents are not asked
    again.

    Parameters
    ----------
    ark
        The teacher. It has as many agents as there should be trajectories per question,
        which do not stop each other (``early_stop=False``), at a temperature at which
        they differ (section 4.3: 3 at 0.7). Its `on_run` is replaced.

    Raises
    ------
    InvalidInput
        If the teacher stops its agents early, or the file contains anything but the
        lines of a `Recorder`.
    """
    if ark.settings.early_stop:
        raise InvalidInput(
            "ark: expected early_stop=False, so that each agent explores to its end"
        )
    path, report = Path(out), TrajectoryReport()
    n_recorded = Counter(
        record["question"] for record in (_records(path) if path.exists() else ())
    )
    recorder = Recorder(path)
    ark.on_run = None  # a run that cannot be recorded is an error here
    for number, question in enumerate(questions, 1):
        if n_recorded[question] < ark.settings.n_agents:
            recorder(ark.explore(question))
        progress(number, len(questions))
    texts = set(questions)
    for record in _records(path) if path.exists() else ():
        if record["question"] in texts:
            report.trajectories += 1
            report.finished += record["stop"] == "finished"
    report.questions = len(questions)
    return report


def _records(path: str | Path) -> list[dict[str, Any]]:
    """Read the lines of a `Recorder`."""
    fields = ("question", "stop", "messages", "tools")
    return [record for _, record in json_objects(path, fields)]


def read_conversations(path: str | Path) -> list[Conversation]:
    """Read trajectories as conversations of a student without tool calls.

    Calls are JSON in the student's turn, and results are in the next turn. An
    `InvalidInput` names a malformed line.
    """
    conversations = []
    for number, record in enumerate(_records(path), 1):
        try:
            messages = [Message.from_dict(item) for item in record["messages"]]
            tools = [
                Tool(item["name"], item["description"], item["parameters"])
                for item in (tool["function"] for tool in record["tools"])
            ]
            short = record.get("settings", {}).get("prompt") == "short"
            conversation = Conversation(as_json_calls(messages, tools, short=short))
        except (
            GraphretError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            raise InvalidInput(
                f"{path}, trajectory {number}: {type(error).__name__}: {error}"
            ) from error
        conversations.append(conversation)
    return conversations


def explored_with(path: str | Path) -> dict[str, Any]:
    """Return the settings of trajectories that decide what an agent reads.

    Those that differ are left out; an `InvalidInput` says that prompts do.
    """
    settings: list[dict[str, Any]] = [
        record.get("settings", {}) for record in _records(path)
    ]
    prompts = {each.get("prompt", "full") for each in settings}
    if len(prompts) > 1:
        raise InvalidInput(
            f"{path}: expected trajectories of one prompt, got"
            f" {', '.join(sorted(prompts))}"
        )
    return {
        name: values[0]
        for name in _TOLD
        if (values := [each[name] for each in settings if name in each])
        and all(value == values[0] for value in values)
    }


def train_student(
    data: str | Path,
    out: str | Path,
    tuning: LoRASettings = STUDENT_TUNING,
    *,
    limit: int | None = None,
    progress: TrainingProgress | None = None,
) -> FineTunedModel:
    """Fine-tune a causal model on every turn of a teacher; what it read is masked.

    Parameters
    ----------
    data
        Trajectories, as `collect_trajectories` or ``query --record`` write them.
    out
        The folder of the student, for `graphret.llm.causal_chat.CausalChat`, which
        drives `Ark` as any chat model does.
    limit
        Only so many trajectories, drawn at random.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        As `fine_tune`, and for a malformed line.
    """
    conversations, explored = read_conversations(data), explored_with(data)
    random.Random(tuning.seed).shuffle(conversations)
    tuned = fine_tune(conversations[:limit], out, tuning, progress)
    purpose = (
        "Explores a graph with the tools of ARK, as its teacher did:"
        " `graphret.llm.causal_chat.CausalChat`."
    )
    save(tuned, out, data, purpose, {"explored": explored})
    return tuned
