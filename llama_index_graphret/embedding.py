"""graphret's encoders as LlamaIndex embedding models."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from pydantic import SkipValidation

from graphret.errors import InvalidInput
from graphret.search.resolve import resolve_encoder


class EncoderEmbedding(BaseEmbedding):
    """Give a vector index the embeddings that a graph uses.

    The other way needs no adapter: ``embed_model=`` and everything in graphret that takes an encoder take LlamaIndex
    embedding models.

    Parameters
    ----------
    encoder
        ``"default"`` for all-MiniLM-L6-v2, or anything that `graphret.search.encoder.as_encoder` takes.
    embed_batch_size
        How many texts the encoder is given at once.

    Raises
    ------
    InvalidInput
        When the encoder is `None` or none.
    MissingDependency
        When the default encoder is asked for and is not installed.
    """

    encoder: SkipValidation[Any] = Field(exclude=True, repr=False, description="What embeds.")

    def __init__(self, encoder: Any = "default", *, embed_batch_size: int = 512, **options: Any) -> None:
        resolved = resolve_encoder(encoder)
        if resolved is None:
            raise InvalidInput("encoder: embeddings need one")
        super().__init__(  # type: ignore[call-arg]
            encoder=resolved, model_name=resolved.name, embed_batch_size=embed_batch_size, **options
        )

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "EncoderEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self.encoder.encode_queries([query])[0].tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.encoder.encode_documents(texts).tolist() if texts else []
        return vectors

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
