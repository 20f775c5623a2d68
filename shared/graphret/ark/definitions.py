"""The tools that an exploring agent is offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphret.ark.settings import ArkSettings
from graphret.llm.chat import Tool

SEARCH, EXPLORE, SELECT, FINISH = "global_search", "explore_neighborhood", "select", "finish"

#: How the answer to a call begins that is one too many for its reply.
NOT_RUN = "This call was not run"


def make_tools(settings: ArkSettings = ArkSettings()) -> tuple[Tool, ...]:  # noqa: B008 -- it is frozen
    """Return the tools that an agent is offered, the defaults of `settings` in their descriptions."""

    def count(default: int) -> dict[str, Any]:
        return {
            "type": "integer",
            "minimum": 1,
            "maximum": settings.max_k,
            "description": f"How many nodes to show; {min(default, settings.max_k)} by default.",
        }

    def names(what: str) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "description": what}

    def schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }

    return (
        Tool(
            SEARCH,
            "Find nodes anywhere in the graph by their names and texts, best match first. Use it to get from words to "
            "node ids, and to start again elsewhere.",
            schema(
                ["query"],
                query={"type": "string", "description": "Words that the node's name or text should hold."},
                k=count(settings.search_k),
            ),
        ),
        Tool(
            EXPLORE,
            "Show the neighbours of one node, in both directions, with the relations that join them to it, and count "
            "its relations. Narrow a large neighbourhood by type or relation, or rank it by a query.",
            schema(
                ["node"],
                node={"type": "string", "description": "The id of a node, exactly as a tool has shown it."},
                query={"type": "string", "description": "Ranks the neighbours by how well they match these words."},
                node_types=names("Show only neighbours of these types."),
                relation_types=names(
                    'Show only neighbours by these relations, such as "r"; "-[r]->" or "<-[r]-" for one direction.'
                ),
                k=count(settings.neighbors_k),
            ),
        ),
        Tool(
            SELECT,
            "Add nodes to your answer, best first. Only nodes that a tool has shown can be selected, and what is "
            "selected stays selected.",
            schema(["nodes"], nodes=names("Ids of nodes, exactly as a tool has shown them.")),
        ),
        Tool(FINISH, "End your work. Call it once what you selected answers the question.", schema([])),
    )


#: The tools with the paper's defaults.
TOOLS = make_tools()
