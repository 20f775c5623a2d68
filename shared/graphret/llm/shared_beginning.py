"""What follows texts that begin alike, whose common beginning is read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any


def n_in_common(sequences: Sequence[Sequence[int]]) -> int:
    """Return how many tokens sequences have in common at their beginning."""
    columns = zip(*sequences, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))


def left_padded(sequences: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """Return sequences of tokens as a batch in which they end at one place."""
    import torch

    longest = max(map(len, sequences))
    tokens = torch.full((len(sequences), longest), pad)
    mask = torch.zeros_like(tokens)
    for i, sequence in enumerate(sequences):
        tokens[i, longest - len(sequence) :] = torch.tensor(sequence)
        mask[i, longest - len(sequence) :] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return {"input_ids": tokens, "attention_mask": mask, "position_ids": positions}


def grouped_batch(groups: Sequence[Sequence[list[int]]], pad: int) -> dict[str, Any]:
    """Return groups as a batch for `next_logits`.

    It has the common beginning of each group, what each sequence goes on with, and how
    many sequences a group has.
    """
    import torch

    beginnings, rests = list[list[int]](), list[list[int]]()
    for sequences in groups:
        # at least one token of each is left to go on with
        n_common = n_in_common([sequence[:-1] for sequence in sequences])
        beginnings.append(sequences[0][:n_common])
        rests += [sequence[n_common:] for sequence in sequences]
    common = left_padded(beginnings, pad)
    return {
        **left_padded(rests, pad),
        **{f"common_{name}": tensor for name, tensor in common.items()},
        "sizes": torch.tensor([len(sequences) for sequences in groups]),
    }


def next_logits(model: Any, batch: Mapping[str, Any]) -> Any:
    """Return the logits of the token after each sequence of a `grouped_batch`."""
    import torch

    names = ("input_ids", "attention_mask", "position_ids")
    read = {name: batch[name] for name in names}
    common = {name: batch[f"common_{name}"] for name in names}
    if common["attention_mask"].any():
        began = model(**common, use_cache=True, logits_to_keep=1)
        cache = began.past_key_values
        cache.batch_repeat_interleave(batch["sizes"])
        mask = common["attention_mask"].repeat_interleave(batch["sizes"], dim=0)
        read["position_ids"] = read["position_ids"] + mask.sum(-1, keepdim=True)
        read["attention_mask"] = torch.cat([mask, read["attention_mask"]], dim=-1)
        read["past_key_values"] = cache
    return model(**read, logits_to_keep=1).logits[:, -1]
