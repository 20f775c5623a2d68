"""Replies to several conversations at once: a processor reads its weights for all."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import torch

from graphret.llm import ChatError, Message, Reply, Usage
from graphret.llm.causal import chat_tokens, end_of
from graphret.llm.chat import ChatOptions
from graphret.llm.event_loop import in_thread
from graphret.llm.shared_beginning import n_in_common


class SideBySide:
    """Greedy replies to `n` conversations, which are written when all await one.

    What a conversation has in common with its last request is not read again, and what
    all begin with is read once.
    """

    def __init__(self, model: Any, tokenizer: Any, n: int, max_tokens: int) -> None:
        self.model, self.tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self.present, self.waiting = set(range(n)), dict[int, list[int]]()
        self.written, self._changed = dict[int, list[int]](), threading.Condition()
        self.read: list[list[int]] = [[] for _ in range(n)]  # tokens in the cache
        self.columns: list[list[int]] = [[] for _ in range(n)]  # where they are in it
        self.cache: Any = None
        self.mask = torch.zeros(n, 0, dtype=torch.long)

    def reply(self, number: int, tokens: list[int]) -> list[int]:
        """Return what follows a conversation, once all that are present asked."""
        with self._changed:
            self.waiting[number] = tokens
            self._write_if_all_wait()
            self._changed.wait_for(lambda: number in self.written)
            return self.written.pop(number)

    def leave(self, number: int) -> None:
        """End a conversation, for which the others no longer wait."""
        with self._changed:
            self.present.discard(number)
            self._write_if_all_wait()

    def _write_if_all_wait(self) -> None:
        if self.waiting and self.present <= self.waiting.keys():
            with torch.inference_mode():
                self.written |= self._replies(self.waiting)
            self.waiting = {}
            self._changed.notify_all()

    def _replies(self, requests: Mapping[int, list[int]]) -> dict[int, list[int]]:
        if self.cache is None:
            self._begin(list(requests.values()))
        end, new = end_of(self.tokenizer), dict[int, list[int]]()
        for number, tokens in requests.items():
            kept = n_in_common([self.read[number], tokens[:-1]])
            self.mask[number, self.columns[number][kept:]] = 0
            del self.read[number][kept:], self.columns[number][kept:]
            new[number] = tokens[kept:]
        written: dict[int, list[int]] = {number: [] for number in requests}
        for _ in range(self.max_tokens):
            chosen = self._next(new)
            for number in new:
                written[number].append(chosen[number])
            new = {i: [chosen[i]] for i in new if chosen[i] != end}
            if not new:
                break
        return written

    def _begin(self, requests: Sequence[list[int]]) -> None:
        """Read what all conversations begin with."""
        shared = requests[0][: n_in_common([tokens[:-1] for tokens in requests])]
        began = self.model(input_ids=torch.tensor([shared]), use_cache=True)
        self.cache, n = began.past_key_values, len(self.read)
        self.cache.batch_repeat_interleave(n)
        self.mask = torch.ones(n, len(shared), dtype=torch.long)
        self.read = [list(shared) for _ in range(n)]
        self.columns = [list(range(len(shared))) for _ in range(n)]

    def _next(self, new: Mapping[int, list[int]]) -> list[int]:
        """Read tokens of some conversations; return the likeliest next of each."""
        n, width = len(self.read), max(map(len, new.values()))
        ids, block, positions = (torch.zeros(n, width, dtype=torch.long) for _ in "123")
        for number, tokens in new.items():
            begin, n_read = width - len(tokens), len(self.read[number])
            ids[number, begin:], block[number, begin:] = torch.tensor(tokens), 1
            positions[number, begin:] = torch.arange(n_read, n_read + len(tokens))
            n_columns = self.mask.shape[1]
            self.columns[number] += range(n_columns + begin, n_columns + width)
            self.read[number] += tokens
        self.mask = torch.cat([self.mask, block], dim=1)
        logits = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return list(logits[:, -1].argmax(-1).tolist())


class Seat:
    """One of the conversations as a chat model, which takes no tools."""

    name = "side-by-side"

    def __init__(self, table: SideBySide, number: int) -> None:
        self.table, self.number = table, number

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        if options.get("tools"):
            raise ChatError("it takes no tools", model=self.name, reason="bad_request")
        tokenizer = self.table.tokenizer
        read = chat_tokens(tokenizer, messages)
        written = self.table.reply(self.number, read)
        ended = written[-1] == end_of(tokenizer)
        return Reply(
            tokenizer.decode(written[: -1 if ended else None]),
            usage=Usage(len(read), len(written)),
            finish_reason="stop" if ended else "length",
            model=self.name,
        )

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` in a thread."""
        return await in_thread(lambda: self.chat(messages, **options))
