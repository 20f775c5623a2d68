"""Keep a LlamaIndex vector index, and add what its hits are linked to."""

from pathlib import Path

from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.llms import MockLLM

from llama_index_graphret import (
    EncoderEmbedding,
    SageExpansion,
    SageGraph,
    SageNodeParser,
    evidence_of,
)

documents = SimpleDirectoryReader(Path(__file__).parent / "handbook").load_data()
index = VectorStoreIndex(
    SageNodeParser().get_nodes_from_documents(documents),
    embed_model=EncoderEmbedding(),  # any embedding model of LlamaIndex
)

graph = SageGraph.from_index(index)  # nothing is embedded again
engine = index.as_query_engine(
    llm=MockLLM(),
    similarity_top_k=2,
    node_postprocessors=[SageExpansion(graph, top_n=3)],
)

response = engine.query("Which team runs Checkout, and where are its data?")
for source in response.source_nodes:
    print(source.metadata["file_name"], *evidence_of(source), sep=" · ")
