"""Language models: the contract, the OpenAI client, and JSON that can be relied on."""

from graphret.llm.chat import (
    ChatError,
    ChatModel,
    ChatOptions,
    Message,
    Reply,
    Role,
    Tool,
    ToolCall,
    Usage,
)
from graphret.llm.openai_chat import OpenAIChat
from graphret.llm.structured import StructuredReply, aask_json, ask_json

__all__ = [
    "ChatError",
    "ChatModel",
    "ChatOptions",
    "Message",
    "OpenAIChat",
    "Reply",
    "Role",
    "StructuredReply",
    "Tool",
    "ToolCall",
    "Usage",
    "aask_json",
    "ask_json",
]
