"""Objectives of a language model: the turns to write, or the right candidate."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from graphret.errors import InvalidInput
from graphret.llm import Message
from graphret.llm.causal import answer_tokens, chat_tokens
from graphret.llm.shared_beginning import grouped_batch, left_padded, next_logits
from graphret.rerank.language_models import Judgement, judged_tokens, verdict_tokens

#: An example as tokens, as `Objective.rows` makes and `BatchLoss.batch` reads it.
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """What a model reads, up to where it answers, and what it should answer."""

    prompt: Sequence[Message]
    answer: str


@dataclass(frozen=True)
class Conversation:
    """A conversation of which every turn of the assistant is to be learned."""

    messages: Sequence[Message]


@dataclass(frozen=True)
class CandidateGroup:
    """A question with the texts of right candidates and of wrong ones."""

    question: str
    positives: Sequence[str]
    negatives: Sequence[str]


class BatchLoss(Protocol):
    """How rows become batches and a loss."""

    #: How the `Trainer` of transformers draws rows.
    sampling: str

    def validation_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows whose loss is the same whenever it is measured."""
        ...

    def batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return tensors of some rows."""
        ...

    def loss(self, model: Any, batch: Mapping[str, Any]) -> Any:
        """Return the loss of a batch."""
        ...


class Objective(BatchLoss, Protocol):
    """How examples become tokens besides, for a language model."""

    def rows(
        self, tokenizer: Any, examples: Sequence[Any], max_tokens: int | None
    ) -> list[Row]:
        """Return the examples as tokens; those that do not fit are left out."""
        ...


class WrittenTurns:
    """The next token of the assistant's turns; what it reads is masked.

    As in ARK (section 3.3) and GraphRAFT (section 4.2).
    """

    sampling = "group_by_length"

    def __init__(self, tokenizer: Any) -> None:
        self._pad = int(tokenizer.pad_token_id)

    def rows(
        self,
        tokenizer: Any,
        examples: Sequence[Example | Conversation],
        max_tokens: int | None,
    ) -> list[Row]:
        """Return the tokens of each example, and which of them are learned.

        A conversation ends before the turn that no longer fits.
        """
        rows: list[Row] = []
        for example in examples:
            if isinstance(example, Example):
                turns = [*example.prompt, Message.assistant(example.answer)]
                learned = [len(example.prompt)]
            else:
                turns = list(example.messages)
                learned = [
                    i for i, turn in enumerate(turns) if turn.role == "assistant"
                ]
            rows += _rows_of(tokenizer, turns, learned, max_tokens)
        return rows

    def validation_rows(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    def batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return rows aligned at their ends; logits are computed where one writes."""
        import torch

        batch = left_padded([row["input_ids"] for row in rows], self._pad)
        learned = torch.zeros_like(batch["input_ids"], dtype=torch.bool)
        for i, row in enumerate(rows):
            learned[i, learned.shape[1] - len(row["learned"]) :] = torch.tensor(
                row["learned"]
            )
        labels = batch["input_ids"].masked_fill(~learned, -100)
        return batch | {"labels": labels}

    def loss(self, model: Any, batch: Mapping[str, Any]) -> Any:
        from torch.nn.functional import cross_entropy

        read = {name: value for name, value in batch.items() if name != "labels"}
        targets = batch["labels"][:, 1:]
        places = (targets >= 0).any(0).nonzero().squeeze(-1)
        logits = model(**read, logits_to_keep=places).logits
        return cross_entropy(
            logits.flatten(0, 1).float(),
            targets[:, places].flatten(),
            ignore_index=-100,
        )


def _rows_of(
    tokenizer: Any,
    turns: Sequence[Message],
    learned_turns: Sequence[int],
    max_tokens: int | None,
) -> list[Row]:
    """Return a conversation as a row.

    If the chat template writes earlier turns differently than they were generated, it
    is several rows.
    """
    rows: list[Row] = []
    ids: list[int] = []
    learned: list[bool] = []
    for turn in learned_turns:
        read = chat_tokens(tokenizer, turns[:turn])
        [written] = answer_tokens(tokenizer, [turns[turn].content])
        if max_tokens is not None and len(read) + len(written) > max_tokens:
            break
        if read[: len(ids)] != ids:
            rows.append({"input_ids": ids, "learned": learned})
            ids, learned = [], []
        learned += [False] * (len(read) - len(ids)) + [True] * len(written)
        ids = [*read, *written]
    return [*rows, {"input_ids": ids, "learned": learned}] if ids else rows


class RightCandidate:
    """The right one of a group of candidates, by listwise softmax (GRASP, section 3.3).

    The loss is the cross-entropy over a logit for each: that of yes minus that of no.

    For each step one positive and ``size - 1`` negatives of the group are drawn anew.

    Parameters
    ----------
    size
        Candidates of a group (section 3.3: G = 24).
    judgement
        What the model is asked of a candidate; the same when it reranks.
    """

    sampling = "random"

    def __init__(self, tokenizer: Any, size: int, judgement: Judgement) -> None:
        if size < 2:
            raise InvalidInput(f"size: expected at least 2 candidates, got {size!r}")
        self.size, self.judgement = size, judgement
        self._verdicts = verdict_tokens(tokenizer)
        self._pad = int(tokenizer.pad_token_id)

    def rows(
        self,
        tokenizer: Any,
        examples: Sequence[CandidateGroup],
        max_tokens: int | None,
    ) -> list[Row]:
        def tokens(group: CandidateGroup, text: str) -> list[int]:
            return judged_tokens(
                tokenizer, self.judgement, group.question, text, max_tokens
            )

        return [
            {
                "positives": [tokens(group, text) for text in group.positives],
                "negatives": [tokens(group, text) for text in group.negatives],
            }
            for group in examples
            if group.positives and group.negatives
        ]

    def validation_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return groups without a draw: the best positive and the hardest negatives."""
        return [
            {
                "positives": row["positives"][:1],
                "negatives": row["negatives"][: self.size - 1],
            }
            for row in rows
        ]

    def batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        import torch

        groups = []
        for row in rows:
            n = min(self.size - 1, len(row["negatives"]))
            right = random.choice(row["positives"])
            groups.append([right, *random.sample(row["negatives"], n)])
        # the Trainer measures a loss only where there are labels: the first is right
        labels = torch.zeros(len(groups), dtype=torch.long)
        return grouped_batch(groups, self._pad) | {"labels": labels}

    def loss(self, model: Any, batch: Mapping[str, Any]) -> Any:
        import torch

        logits = next_logits(model, batch)[:, self._verdicts].float()
        groups = (logits[:, 0] - logits[:, 1]).split(batch["sizes"].tolist())
        return torch.stack([-group.log_softmax(0)[0] for group in groups]).mean()
