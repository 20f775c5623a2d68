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
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side import Seat, SideBySide

from graphret import Ark, ArkSettings
from graphret.ark import ArkSession
from graphret.evaluation.metaqa import MetaQuestion, load_questions
from graphret.llm.causal import load_model
from graphret.methods import OpenGraph, opened_graph

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
    name: str,
    graph: Path,
    questions: Sequence[MetaQuestion],
    record: Path,
    at_once: int,
    max_tokens: int,
) -> dict[str, Any]:
    """Let one agent explore for each question, and write what it selected as it goes.

    Returns shares in percent, and means of a question.
    """
    model, tokenizer = load_model(name)
    sessions: list[ArkSession] = []
    began = time.process_time()
    with opened_graph(str(graph)) as opened, record.open("w", encoding="utf-8") as out:
        for begin in range(0, len(questions), at_once):
            asked = questions[begin : begin + at_once]
            table = SideBySide(model, tokenizer, len(asked), max_tokens)
            with ThreadPoolExecutor(at_once) as pool:
                seats = [Seat(table, number) for number in range(len(asked))]
                explored = pool.map(partial(explore, opened), seats, asked)
                for question, session in zip(asked, explored, strict=True):
                    sessions.append(session)
                    out.write(line(question, session) + "\n")
            out.flush()
    pairs = list(zip(questions, sessions, strict=True))
    right = [question.gold.intersection(got.selection) for question, got in pairs]
    first = [question.gold.intersection(got.selection[:1]) for question, got in pairs]
    return {
        "questions": len(questions),
        "selected_a_right_answer": 100 * statistics.mean(map(bool, right)),
        "selected_it_first": 100 * statistics.mean(map(bool, first)),
        "stops": Counter(session.stop for session in sessions),
        "steps": statistics.mean(len(session.steps) for session in sessions),
        "tokens": statistics.mean(session.tokens for session in sessions),
        "processor_seconds": (time.process_time() - began) / len(questions),
    }


def explore(opened: OpenGraph, seat: Seat, question: MetaQuestion) -> ArkSession:
    """Let an agent explore; it is told what students of the short prompt are."""
    settings = ArkSettings.small()
    ark = Ark(seat, opened.store, opened.index, settings=settings)
    try:
        [session] = ark.explore(question.text).sessions
    finally:
        seat.table.leave(seat.number)
    return session


def line(question: MetaQuestion, session: ArkSession) -> str:
    fields = {
        "question": question.text,
        "gold": sorted(question.gold),
        "selected": session.selection,
        "stop": session.stop,
        "error": session.error,
        "written": [
            [call.tool, call.arguments] for step in session.steps for call in step.calls
        ],
    }
    return json.dumps(fields, ensure_ascii=False)


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
    measuring.add_argument("--at-once", type=int, default=20)
    measuring.add_argument("--max-tokens", type=int, default=128)
    given = parser.parse_args()
    if given.command == "questions":
        asked = drawn_by_type(load_questions(given.data, 1, "train"), given.each)
        lines = [json.dumps({"question": each.text}) + "\n" for each in asked]
        given.out.write_text("".join(lines), encoding="utf-8")
        return
    asked = load_questions(given.data, 1, "dev", limit=given.limit, seed=given.seed)
    result = measure(
        *(given.model, given.graph, asked, given.record),
        *(given.at_once, given.max_tokens),
    )
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
