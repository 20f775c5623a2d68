"""`CausalChat`: a causal model of transformers, in this process, as a chat model."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from graphret.errors import GraphretError
from graphret.llm.causal import chat_tokens, end_of, load_model
from graphret.llm.chat import ChatError, ChatOptions, Message, Reply, Usage
from graphret.llm.event_loop import in_thread
from graphret.llm.shared_beginning import n_in_common


@dataclass
class LastConversation:
    """The tokens of a conversation, and what the model computed of them."""

    tokens: list[int] = field(default_factory=list)
    cache: Any = None

    def cache_for(self, tokens: list[int]) -> dict[str, Any]:
        """Return the cache of what both conversations begin with, for ``generate``.

        It is given away: the model writes into it. There is none where a layer keeps
        only the last tokens, from which it cannot go back.
        """
        from transformers.cache_utils import DynamicLayer

        cache, self.cache = self.cache, None
        if cache is None or any(
            type(each) is not DynamicLayer for each in cache.layers
        ):
            return {}
        n_read = cache.get_seq_length()
        # the last token is read in any case: the reply follows from it
        n_common = n_in_common([self.tokens[:n_read], tokens[:-1]])
        if not n_common:
            return {}
        if n_common < n_read:
            cache.crop(n_common - n_read)
        return {"past_key_values": cache}


class CausalChat:
    """A causal model in this process, such as one by ``graphret train student``.

    It takes no tools: an agent asks it for JSON in their place. Replies are greedy,
    unless a temperature is asked for. One reply is written at a time. What it begins
    with as the last conversation did, such as all turns but the newest, is not read
    again.

    Parameters
    ----------
    model
        A name on the Hugging Face hub, a folder or a ``.gguf`` file, loaded by
        `graphret.llm.causal.load_model` when first used.
    context, max_tokens
        Longest conversation with its reply (ARK, section 4.3: 16,384), and longest
        reply where no other is asked for, in tokens.
    device
        Where it runs, such as ``cuda``; by default there if there is one.

    Raises
    ------
    ChatError
        On use, for tools, for a conversation that is too long, or when the model cannot
        be loaded or fails.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        context: int = 16_384,
        max_tokens: int = 512,
        device: str | None = None,
    ) -> None:
        self.source, self.device = model, device
        self.context, self.max_tokens = context, max_tokens
        self.name = Path(model).name
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._last = LastConversation()

    def chat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """Answer a conversation; see `ChatModel.chat`."""
        if options.get("tools"):
            raise self._error("it takes no tools", "bad_request")
        try:
            with self._lock:
                if self._loaded is None:
                    self._loaded = load_model(self.source, self.device)
                return self._written(*self._loaded, messages, options)
        except ChatError:
            raise
        except GraphretError as error:
            raise self._error(str(error), "not_found") from error
        except Exception as error:
            raise self._error(f"{type(error).__name__}: {error}", "server") from error

    async def achat(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        """`chat` in a thread; an abandoned reply is still written to its end."""
        return await in_thread(lambda: self.chat(messages, **options))

    def _written(
        self,
        model: Any,
        tokenizer: Any,
        messages: Sequence[Message],
        options: ChatOptions,
    ) -> Reply:
        import torch

        began, timeout = time.perf_counter(), options.get("timeout")
        read = chat_tokens(tokenizer, messages)
        most = min(
            options.get("max_tokens") or self.max_tokens, self.context - len(read)
        )
        if most < 1:
            raise self._error(
                f"the conversation has {len(read)} tokens, of a context of"
                f" {self.context}",
                "bad_request",
            )
        temperature = options.get("temperature")
        drawn = {"do_sample": True, "temperature": temperature, "top_k": 0}
        end = end_of(tokenizer)
        with torch.inference_mode():
            generated = model.generate(
                input_ids=torch.tensor([read], device=model.device),
                attention_mask=torch.ones(1, len(read), device=model.device),
                max_new_tokens=most,
                max_time=timeout,
                eos_token_id=end,
                pad_token_id=end,
                return_dict_in_generate=True,
                **self._last.cache_for(read),
                **(drawn if temperature else {"do_sample": False}),
            )
        tokens = generated.sequences[0].tolist()
        self._last = LastConversation(tokens, generated.past_key_values)
        written = tokens[len(read) :]
        ended = bool(written) and written[-1] == end
        if not ended and timeout and time.perf_counter() - began >= timeout:
            raise self._error(f"no whole reply in {timeout:g} s", "timeout")
        return Reply(
            tokenizer.decode(written[: -1 if ended else None]),
            usage=Usage(len(read), len(written)),
            finish_reason="stop" if ended else "length",
            model=self.name,
        )

    def _error(self, what: str, reason: str) -> ChatError:
        return ChatError(what, model=self.name, reason=reason)
