"""Training of GraphRAFT's writer (section 4.2) and reasoner (section 4.3)."""

from __future__ import annotations

import json
import random
from pathlib import Path

from graphret.errors import InvalidInput
from graphret.graphraft.writer import prompt_of
from graphret.llm import Message
from graphret.planning.patterns import bare_pattern
from graphret.training.candidates import best_of, read_queries
from graphret.training.lora import FineTunedModel, LoRASettings, fine_tune, save
from graphret.training.objectives import Example
from graphret.training.questions import json_lines
from graphret.training.trainer import Progress


def train_writer(
    data: str | Path,
    out: str | Path,
    tuning: LoRASettings = LoRASettings(),
    *,
    limit: int | None = None,
    test: float = 0.0,
    progress: Progress | None = None,
) -> FineTunedModel:
    """Fine-tune a model to write the best query of a question.

    The best has the most hits, then the fewest results.

    Questions that no candidate answers are left out.

    Parameters
    ----------
    data
        What ``graphret train queries`` wrote; see `read_records`.
    out
        The folder of the writer, for `Writer.load`.
    limit
        Only so many questions, drawn at random.
    test
        A share of the questions, drawn at random, that is not learned of: it is written
        to ``out/test.jsonl``, and the rest to ``out/train.jsonl``.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        As `fine_tune`, and for a malformed line.
    """
    records, folder = read_queries(data), Path(out)
    drawn = random.Random(tuning.seed)
    drawn.shuffle(records)
    if test:
        folder.mkdir(parents=True, exist_ok=True)
        cut = int(test * len(records))
        for name, part in (("test", records[:cut]), ("train", records[cut:])):
            text = "".join(
                f"{json.dumps(record, ensure_ascii=False)}\n" for record in part
            )
            (folder / f"{name}.jsonl").write_text(text, "utf-8")
        records = records[cut:]
    records = [record for record in records if max(record["hits"])][:limit]
    examples = [
        Example(
            prompt_of(record["question"]),
            bare_pattern(record["cypher_queries"][best_of(record)]),
        )
        for record in records
    ]
    tuned = fine_tune(examples, out, tuning, progress)
    purpose = (
        "Writes the query of a knowledge graph that finds what answers a question:"
        " `graphret.graphraft.Writer`."
    )
    save(tuned, out, data, purpose)
    return tuned


def train_reasoner(
    data: str | Path,
    out: str | Path,
    tuning: LoRASettings = LoRASettings(),
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> FineTunedModel:
    """Fine-tune a model on conversations that end in the right answer.

    The answers are what GraphRAFT's reasoner writes.

    Parameters
    ----------
    data
        JSON Lines of ``{"messages": [{"role", "content"}, …]}``, the format of OpenAI's
        fine-tuning, as `write_conversations` writes them; without messages, a line is
        left out.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        As `fine_tune`, and for a malformed line.
    """
    examples = []
    for where, record in json_lines(data):
        try:
            if not record["messages"]:  # nothing right was found
                continue
            *prompt, answer = [Message.from_dict(turn) for turn in record["messages"]]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f'{where}: expected {{"messages": [turns]}}: {error}'
            ) from error
        if answer.role != "assistant" or not prompt:
            raise InvalidInput(
                f"{where}: expected several turns, the last one by the assistant"
            )
        examples.append(Example(prompt, answer.content))
    random.Random(tuning.seed).shuffle(examples)
    tuned = fine_tune(examples[:limit], out, tuning, progress)
    save(
        tuned,
        out,
        data,
        "Chooses among nodes that were found, with the paths to them: GraphRAFT's"
        " reasoner.",
    )
    return tuned
