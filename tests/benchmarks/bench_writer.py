"""What holding a writer to the candidates costs: ``PYTHONPATH=tests python -m benchmarks.bench_writer [MODEL]``.

Exact ranking of all candidates around two films, beside reading each alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

from graphret.cypher.patterns import bare_pattern
from graphret.graphraft import CandidateFinder
from graphret.graphraft.entities import spotted
from graphret.graphraft.writer import Writer, prompt_of
from graphret.graphs import read_metaqa
from graphret.graphs.example import KB
from graphret.llm.causal import SMALL, answer_tokens, chat_tokens, load_model
from graphret.planning import PathPlanner

QUESTION = "which people worked on both Near Dark and Zero Dark Thirty"


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The median of some runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[times // 2]


def main(source: str = SMALL) -> None:
    torch.set_num_threads(1)
    model, tokenizer = load_model(source)
    prompt = chat_tokens(tokenizer, prompt_of(QUESTION))
    planner = PathPlanner(store := read_metaqa(KB).store())
    candidates = CandidateFinder(store, planner.space).find(spotted(planner, QUESTION))
    writer, texts = Writer(model, tokenizer), [one.text for one in candidates]
    with torch.inference_mode():
        for most in (1, 10, len(texts)):
            taken = seconds(lambda: writer.rank(QUESTION, candidates, most), 3)  # noqa: B023
            print(f"the best {most} of {len(texts)}: {taken:.2f} s")
        wholes = [
            torch.tensor([[*prompt, *answer]]) for answer in answer_tokens(tokenizer, [*map(bare_pattern, texts)])
        ]
        print(f"each of {len(texts)} alone: {seconds(lambda: [model(whole) for whole in wholes], 1):.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
