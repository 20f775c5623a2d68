"""`SageNodeParser` and the graphs made of what it gives."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeRelationship

from llama_index_graphret import SageNodeParser, from_llama_node

ROWS = "\n".join(f"| Team {i} | Park {i} | {1900 + i} |" for i in range(12))
PAGE = f"""# Ballparks

Ballparks are fields for baseball. Each of them has a story of its own.

## Teams

These are the teams.

| Team | Park | Opened |
| --- | --- | --- |
{ROWS}

## After

The story goes on here. It is a long one.
"""


def relation(node: Any, name: str) -> str | None:
    found = node.relationships.get(NodeRelationship[name])
    return None if found is None else found.node_id


def test_a_document_with_a_table_is_cut_into_text_and_rows() -> None:
    document = LlamaDocument(text=PAGE, id_="page", metadata={"lang": "en", "when": 3})
    nodes = SageNodeParser().get_nodes_from_documents([document])
    assert [node.node_id for node in nodes] == ["page#0", "page/table-0#0", "page/table-0#1"]
    assert all(relation(node, "SOURCE") == "page" for node in nodes)
    assert all(node.relationships[NodeRelationship.SOURCE].hash == document.hash for node in nodes)  # type: ignore[union-attr]
    assert [relation(node, "NEXT") for node in nodes] == ["page/table-0#0", "page/table-0#1", None]
    assert [relation(node, "PREVIOUS") for node in nodes] == [None, "page#0", "page/table-0#0"]
    assert all((node.metadata["lang"], node.metadata["when"]) == ("en", 3) for node in nodes)
    text, first, second = nodes
    assert "Team 1 " not in text.get_content()
    assert "Team 0 | Park 0 | 1900" in first.get_content()
    assert "Team 11 | Park 11 | 1911" in second.get_content()
    segment = from_llama_node(first)
    assert segment.labels == ("Table",)
    assert segment.properties["table_header"] == ["Team", "Park", "Opened"]
    assert segment.properties["section"] == "Teams"
    assert len(segment.properties["table_rows"]) == 6
