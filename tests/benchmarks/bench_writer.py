"""What GraphRAFT's grounded decoding costs.

Run ``PYTHONPATH=tests python -m benchmarks.bench_writer [MODEL]``.

The mask of 1,000 and of 100,000 candidates for four beams, beside a scan of all
candidates for each beam, as the method's public code does it, and beside a forward
pass; and exact ranking of all candidates around two films beside reading each alone.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence

import torch

from graphret.graphraft import CandidateFinder
from graphret.graphraft.entities import mentioned_entities
from graphret.graphraft.trie import GroundedLogits, Trie
from graphret.graphraft.writer import Writer, prompt_of
from graphret.graphs import read_metaqa
from graphret.graphs.example import KB
from graphret.llm.causal import SMALL, answer_tokens, chat_tokens, load_model
from graphret.planning import PathPlanner
from graphret.planning.patterns import bare_pattern

BEAMS, STEPS, QUESTION = (
    4,
    12,
    "which people worked on both Near Dark and Zero Dark Thirty",
)
WORDS = (
    "neutron emission star merger quark plasma lattice photon gamma decay field theory"
    " model deep sky survey".split()
)
PATHS = [
    "-[:CITES]-(T:Paper)",
    "-[:WRITES]-(:Author)-[:WRITES]-(T:Paper)",
    "-[:HAS_TOPIC]-(T:FieldOfStudy)",
]


def patterns(n: int) -> list[str]:
    """As many different patterns, of a handful of paths a name."""
    drawn = random.Random(0)
    names = {" ".join(drawn.choices(WORDS, k=4)) for _ in range(n)}
    return [
        f'(:Paper {{name: "{name}"}}){path}' for name in sorted(names) for path in PATHS
    ][:n]


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The median of some runs."""
    runs = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        runs.append(time.perf_counter() - start)
    return sorted(runs)[times // 2]


def scan(
    candidates: Sequence[torch.Tensor], tokens: torch.Tensor, scores: torch.Tensor
) -> torch.Tensor:
    """Mask by comparing what each beam wrote with every candidate."""
    masked = torch.full_like(scores, -torch.inf)
    for row, begun in enumerate(tokens):
        size = len(begun)
        fits = [
            candidate
            for candidate in candidates
            if len(candidate) > size and torch.equal(candidate[:size], begun)
        ]
        allowed = list({int(candidate[size]) for candidate in fits})
        masked[row, allowed] = scores[row, allowed]
    return masked


def main(source: str = SMALL) -> None:
    torch.set_num_threads(1)
    model, tokenizer = load_model(source)
    vocabulary, prompt = (
        model.config.vocab_size,
        chat_tokens(tokenizer, prompt_of(QUESTION)),
    )
    scores = torch.randn(BEAMS, vocabulary)
    for n in (1_000, 100_000):
        trie = Trie(answer_tokens(tokenizer, patterns(n)))
        begins = [
            torch.tensor(trie.sequences[i * n // BEAMS][:STEPS]) for i in range(BEAMS)
        ]
        rows = torch.stack(begins)

        def masks() -> None:
            mask = GroundedLogits([trie], 0, -1)
            for step in range(STEPS):
                mask(rows[:, :step], scores)

        print(f"mask of {n:,} candidates: {1e3 * seconds(masks) / STEPS:.3f} ms a step")
        if n == 1_000:
            sequences = [torch.tensor(sequence) for sequence in trie.sequences]
            scanned = (
                seconds(
                    lambda: [
                        scan(sequences, rows[:, :step], scores)
                        for step in (1, STEPS - 1)
                    ],
                    3,
                )
                / 2
            )
            print(f"scan of {n:,} candidates: {1e3 * scanned:.3f} ms a step")
    planner = PathPlanner(store := read_metaqa(KB).store())
    candidates = CandidateFinder(store, planner.space).find(
        mentioned_entities(planner, QUESTION)
    )
    writer, texts = (
        Writer(model, tokenizer),
        [candidate.text for candidate in candidates],
    )
    with torch.inference_mode():
        cache = model(torch.tensor([prompt] * BEAMS), use_cache=True).past_key_values
        token = torch.tensor([[prompt[0]]] * BEAMS)
        print(
            f"forward pass of {BEAMS} beams:"
            f" {1e3 * seconds(lambda: model(token, past_key_values=cache)):.1f} ms"
        )
        for most in (1, 10, len(texts)):
            spent = seconds(lambda: writer.rank(QUESTION, candidates, most), 3)
            print(f"the best {most} of {len(texts)}: {spent:.2f} s")
        answers = [
            torch.tensor([[*prompt, *answer]])
            for answer in answer_tokens(tokenizer, [*map(bare_pattern, texts)])
        ]
        print(
            f"each of {len(texts)} alone:"
            f" {seconds(lambda: [model(sequence) for sequence in answers], 1):.2f} s"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
