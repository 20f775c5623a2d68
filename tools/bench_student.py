"""A student of ARK on the one-hop questions of MetaQA, before and after its training.

``python tools/bench_student.py questions --data DIR --out FILE`` draws as many training
questions of each type, for ``graphret train trajectories``. ``python
tools/bench_student.py measure --data DIR --graph DIR --model NAME`` lets a model
explore for questions of the development split, and counts those for which it selects a
right answer; nothing is filled up.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphret import Ark, ArkSettings
from graphret.evaluation.metaqa import MetaQuestion, load_questions
from graphret.llm import ChatModel
from graphret.llm.causal_chat import CausalChat
from graphret.methods import opened_graph

SEED = 0


def drawn_by_type(
    questions: Sequence[MetaQuestion], n: int, seed: int = SEED
) -> list[MetaQuestion]:
    """Draw up to `n` questions of each relation and direction."""
    by_type = defaultdict[object, list[MetaQuestion]](list)
    for question in questions:
        by_type[question.path].append(question)
    draw = random.Random(seed)
    drawn = [
        question
        for of_type in by_type.values()
        for question in draw.sample(of_type, min(n, len(of_type)))
    ]
    draw.shuffle(drawn)
    return drawn


def measure(
    model: ChatModel, graph: Path, questions: Sequence[MetaQuestion], record: Path
) -> dict[str, Any]:
    """Let one agent explore for each question, and write what it selected as it goes.

    Returns shares in percent, and means and medians a question.
    """
    found, first, steps, seconds, tokens = [], [], [], [], []
    with opened_graph(str(graph)) as opened, record.open("w", encoding="utf-8") as out:
        ark = Ark(model, opened.store, opened.index, settings=ArkSettings.small())
        for question in questions:
            began = time.perf_counter()
            [session] = ark.explore(question.text).sessions
            seconds.append(time.perf_counter() - began)
            found.append(bool(question.gold.intersection(session.selection)))
            first.append(bool(question.gold.intersection(session.selection[:1])))
            steps.append(len(session.steps))
            tokens.append(session.tokens)
            line = {
                "question": question.text,
                "gold": sorted(question.gold),
                "selected": session.selection,
                "stop": session.stop,
                "found": found[-1],
                "seconds": round(seconds[-1], 2),
            }
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()
    return {
        "questions": len(questions),
        "selected_a_right_answer": 100 * statistics.mean(found),
        "selected_it_first": 100 * statistics.mean(first),
        "steps": statistics.mean(steps),
        "tokens": statistics.mean(tokens),
        "median_seconds": statistics.median(seconds),
        "seconds": sum(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    drawing = commands.add_parser("questions")
    drawing.add_argument("--data", type=Path, required=True)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--each", type=int, default=16)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--data", type=Path, required=True)
    measuring.add_argument("--graph", type=Path, required=True)
    measuring.add_argument("--model", required=True)
    measuring.add_argument("--record", type=Path, required=True)
    measuring.add_argument("--limit", type=int, default=200)
    measuring.add_argument("--seed", type=int, default=SEED)
    measuring.add_argument("--max-tokens", type=int, default=256)
    given = parser.parse_args()
    if given.command == "questions":
        asked = drawn_by_type(load_questions(given.data, 1, "train"), given.each)
        lines = [json.dumps({"question": each.text}) + "\n" for each in asked]
        given.out.write_text("".join(lines), encoding="utf-8")
        return
    asked = load_questions(given.data, 1, "dev", limit=given.limit, seed=given.seed)
    model = CausalChat(given.model, max_tokens=given.max_tokens)
    print(json.dumps(measure(model, given.graph, asked, given.record), indent=2))


if __name__ == "__main__":
    main()
