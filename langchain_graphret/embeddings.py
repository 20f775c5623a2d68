"""A graphret encoder as LangChain embeddings."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from graphret.errors import InvalidInput
from graphret.search.encoder import as_encoder


class EncoderEmbeddings(Embeddings):
    """A graph's encoder as LangChain embeddings, for a vector store.

    The other way needs no adapter: everything in graphret that takes an encoder takes
    LangChain embeddings.

    Parameters
    ----------
    encoder
        ``"default"``, or anything that `graphret.search.encoder.as_encoder` takes.
    """

    def __init__(self, encoder: Any = "default") -> None:
        resolved = as_encoder(encoder)
        if resolved is None:
            raise InvalidInput("encoder: expected an encoder for embeddings, got None")
        self.encoder = resolved

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = (
            self.encoder.encode_documents(texts).tolist() if texts else []
        )
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.encoder.encode_queries([text])[0].tolist()
        return vector
