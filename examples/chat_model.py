"""Describe documents with a chat model: any endpoint that speaks OpenAI's protocol."""

from graphret import Document, SageGraph
from graphret.corpus.llm_metadata import LLMMetadata
from graphret.llm import OpenAIChat
from graphret.testing.openai_server import OpenAIServer, json_text

documents = [
    Document("Outage of 3 May: writes failed for an hour.", id="outage", title="P1"),
    Document("The ledger is a PostgreSQL cluster.", id="ledger", title="Ledger"),
]
described = {
    "topic": "An outage of the database that keeps payments.",
    "summary": "Writes failed for an hour on 3 May.",
    "entities": ["Ledger"],
}

# The server stands for your endpoint, and always says the same.
with OpenAIServer(lambda request: json_text(described)) as server:
    model = OpenAIChat("gpt-4o-mini", base_url=server.base_url)
    metadata = LLMMetadata(model, cache="answers")  # what was answered costs nothing
    graph = SageGraph.build(documents, metadata=metadata, encoder=None)

for node in graph.nodes:
    print(node.id, "·", node.properties["topic"])
print("asked:", metadata.report.asked, "failed:", metadata.report.failed)
