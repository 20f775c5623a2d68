"""A reranker of OTT-QA's questions in a small size, before and after its training.

``python tools/bench_reranker.py pools --data DIR --out DIR`` writes ``train.jsonl`` for
``graphret train reranker``, of tables that settings are chosen on, and ``held.jsonl``
of the others. ``python tools/bench_reranker.py measure --pools FILE --model NAME
--instruction TEXT --max-tokens N`` orders the candidates of such a file.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from graphret.evaluation.ottqa import HELD, TUNED, load_ottqa
from graphret.index_retriever import IndexRetriever
from graphret.rerank import CausalReranker, Judgement
from graphret.search import BM25Index
from graphret.training import CandidateGroup, collect_pools
from graphret.training.pools import read_pools
from graphret.training.reranker import pool_metrics

SEED, N_NEGATIVES = 0, 30


def write_pools(data: Path, out: Path, trained: int, held: int, size: int) -> None:
    """Write the candidates of a search by words, as many as `size` for those held."""
    dataset = load_ottqa(data)
    words = IndexRetriever(BM25Index.build(dataset.nodes))
    for half, n, name in ((TUNED, trained, "train"), (HELD, held, "held")):
        questions = [asked for asked in dataset.questions if asked.half == half]
        found = out / f"{half}.found.jsonl"
        collect_pools(words, questions, found, negatives=N_NEGATIVES)
        pools = [pool for pool in read_pools(found) if pool.positives]
        drawn = random.Random(SEED).sample(pools, n)
        if half == HELD:
            drawn = [cut(pool, size) for pool in drawn]
        write(out / f"{name}.jsonl", drawn)


def cut(pool: CandidateGroup, size: int) -> CandidateGroup:
    """Return the right candidates of a pool, and the best of the others."""
    return replace(pool, negatives=pool.negatives[: size - len(pool.positives)])


def write(path: Path, pools: Sequence[CandidateGroup]) -> None:
    lines = [json.dumps(asdict(pool), ensure_ascii=False) + "\n" for pool in pools]
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    making = commands.add_parser("pools")
    making.add_argument("--data", type=Path, required=True)
    making.add_argument("--out", type=Path, required=True)
    making.add_argument("--trained", type=int, default=300)
    making.add_argument("--held", type=int, default=60)
    making.add_argument("--size", type=int, default=16)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--pools", type=Path, required=True)
    measuring.add_argument("--model", required=True)
    measuring.add_argument("--instruction", required=True)
    measuring.add_argument("--max-tokens", type=int, default=1024)
    given = parser.parse_args()
    if given.command == "pools":
        write_pools(given.data, given.out, given.trained, given.held, given.size)
        return
    judgement = Judgement(given.instruction, three_turns=True)
    reranker = CausalReranker(
        given.model, judgement=judgement, max_tokens=given.max_tokens, batch_size=16
    )
    print(json.dumps(pool_metrics(reranker, read_pools(given.pools))))


if __name__ == "__main__":
    main()
