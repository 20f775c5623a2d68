"""Fine-tuning of a yes/no reranker on pools of candidates (GRASP, section 3.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from graphret.rerank import CausalReranker, Judgement
from graphret.training.lora import FineTunedModel, LoRASettings, fine_tune, save
from graphret.training.objectives import CandidateGroup, RightCandidate
from graphret.training.pools import read_pools
from graphret.training.trainer import Progress
from graphret.training.tuned import divided

#: How the paper fine-tunes it (appendix A): rank 32, which makes alpha 64, two epochs
#: of a cosine from 3e-5, 16 groups a step, 1024 tokens.
RERANKER_TUNING = LoRASettings(
    epochs=2.0,
    batch=1,
    rate=3e-5,
    rank=32,
    accumulated=16,
    schedule="cosine",
    max_tokens=1024,
)
#: Candidates of a group (section 3.3).
GROUP = 24


@dataclass(frozen=True)
class TrainedReranker:
    """A fine-tuned reranker, and its metrics on the held-out questions in percent.

    `untrained` are those of the model before, `trained` those after.
    """

    tuned: FineTunedModel
    metrics: dict[str, dict[str, float]]


def train_reranker(
    data: str | Path,
    out: str | Path,
    tuning: LoRASettings = RERANKER_TUNING,
    *,
    judgement: Judgement = Judgement(),
    group: int = GROUP,
    limit: int | None = None,
    test: float = 0.0,
    progress: Progress | None = None,
) -> TrainedReranker:
    """Fine-tune a causal model to prefer the right candidate of each group.

    The right one should get the highest logit of yes against no. Pools without a right
    or a wrong candidate are left out.

    Parameters
    ----------
    data
        What ``graphret train pools`` wrote; see `collect_pools`.
    out
        The folder of the reranker, for `CausalReranker`, which asks as it was trained.
    judgement, group
        What the model is asked of a candidate, and how many candidates stand against
        each other.
    limit, test
        Only so many questions, drawn at random; the share of them that is kept apart,
        and that the model is measured on before and after.

    Raises
    ------
    InvalidInput, MissingDependency, ModelError
        As `fine_tune`, and for a malformed line.
    """
    pools = [pool for pool in read_pools(data) if pool.positives and pool.negatives]
    random.Random(tuning.seed).shuffle(pools)
    pools = pools[:limit]
    held_out, learned = divided(pools, test)
    objective = partial(RightCandidate, size=group, judgement=judgement)
    tuned = fine_tune(learned, out, tuning, progress, objective)
    purpose = (
        "Judges whether a node answers a question, by the probability of a yes:"
        " `graphret.rerank.CausalReranker`."
    )
    judged_by = {"judgement": asdict(judgement), "max_tokens": tuning.max_tokens}
    save(tuned, out, data, purpose, judged_by)
    if not held_out:
        return TrainedReranker(tuned, {})
    longest = tuning.max_tokens
    metrics = {
        name: pool_metrics(
            CausalReranker(model, judgement=judgement, max_tokens=longest), held_out
        )
        for name, model in (("untrained", tuning.model), ("trained", out))
    }
    return TrainedReranker(tuned, metrics)


def pool_metrics(
    reranker: CausalReranker, pools: Sequence[CandidateGroup]
) -> dict[str, float]:
    """Return Hit@1, Hit@5 and MRR of a reranker's order of each pool, in percent.

    Of equal scores the worst order counts.
    """
    ranks = []
    for pool in pools:
        texts = [*pool.positives, *pool.negatives]
        scores = reranker.judge(pool.question, texts)
        best = max(scores[: len(pool.positives)])
        wrong = np.asarray(scores[len(pool.positives) :])
        ranks.append(1 + int((wrong >= best).sum()))
    first = np.asarray(ranks)
    return {
        "hit@1": 100 * float((first == 1).mean()),
        "hit@5": 100 * float((first <= 5).mean()),
        "mrr": 100 * float((1 / first).mean()),
    }
