"""Chat models that speak to an OpenAI-compatible server, of all three packages.

LangChain's answers whole and as a stream, as it does under a graph that streams. None
of them loads certificates: that takes long, and a server on this machine has none.
"""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI
from llama_index.llms.openai import OpenAI
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from pydantic import SecretStr

from graphret.llm import ChatModel, OpenAIChat
from langchain_graphret.chat import LangChainChat
from llama_index_graphret import LlamaIndexChat

CLIENTS = ["openai", "langchain", "langchain_streaming", "llama_index"]


def chat_model(
    client: str,
    base_url: str,
    *,
    model: str = "gpt-4o",
    retries: int = 1,
    timeout: float = 5.0,
) -> ChatModel:
    """A `ChatModel` of one of the `CLIENTS`, which asks again `retries` times."""
    options: dict[str, Any] = {"retries": retries, "timeout": timeout}
    if client == "openai":
        return OpenAIChat(
            model, base_url, api_key="none", max_retries=retries, timeout=timeout
        )
    if client == "llama_index":
        return LlamaIndexChat(llama_index_openai(base_url, model, **options))
    return LangChainChat(
        langchain_openai(
            base_url, model, streaming=client == "langchain_streaming", **options
        )
    )


def langchain_openai(
    base_url: str,
    model: str = "gpt-4o",
    *,
    retries: int = 1,
    timeout: float = 5.0,
    streaming: bool = False,
) -> ChatOpenAI:
    """LangChain's own model; one that is not told to stream does where a graph does."""
    return ChatOpenAI(
        model=model,
        base_url=base_url,
        api_key=SecretStr("none"),
        max_retries=retries,
        timeout=timeout,
        **({"streaming": True} if streaming else {}),
        stream_usage=True,
        http_client=DefaultHttpxClient(verify=False),
        http_async_client=DefaultAsyncHttpxClient(verify=False),
    )


def llama_index_openai(
    base_url: str, model: str = "gpt-4o", *, retries: int = 1, timeout: float = 5.0
) -> OpenAI:
    """LlamaIndex's own model."""
    return OpenAI(
        model=model,
        api_base=base_url,
        api_key="none",
        max_retries=retries,
        timeout=timeout,
        http_client=DefaultHttpxClient(verify=False),
        async_http_client=DefaultAsyncHttpxClient(verify=False),
    )
