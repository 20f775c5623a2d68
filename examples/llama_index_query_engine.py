"""Answer from a folder of files in LlamaIndex: your reader, splitter and engine."""

from pathlib import Path

from llama_index.core import SimpleDirectoryReader
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_graphret import SageGraph, SageRetriever, evidence_of

documents = SimpleDirectoryReader(Path(__file__).parent / "handbook").load_data()
nodes = SentenceSplitter(chunk_size=256).get_nodes_from_documents(documents)

# Leave the encoder out to add similarity of meaning.
graph = SageGraph.from_nodes(nodes, encoder=None)
engine = RetrieverQueryEngine.from_args(
    SageRetriever(graph, similarity_top_k=3),
    llm=MockLLM(),  # your model; this one repeats what it is told
)

response = engine.query("How long are backups kept of the database of Checkout?")
for source in response.source_nodes:
    print(source.metadata["file_name"], *evidence_of(source), sep=" · ")
print("The model was told of 35 days:", "35 days" in str(response))
