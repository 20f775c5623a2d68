"""Let agents explore a graph in LangGraph, with their steps as they are made."""

from langgraph.checkpoint.memory import InMemorySaver

from graphret import BM25Index, open_store
from graphret.graphs import import_graph
from graphret.graphs.example import KB  # an excerpt of MetaQA: put your graph here
from langchain_graphret import ScriptedExplorer, create_ark_graph

import_graph(KB, "movies")
store = open_store("movies")
agents = create_ark_graph(
    ScriptedExplorer(),  # needs no model; or any chat model that calls tools
    store,
    BM25Index.of_store(store),
    k=3,
    checkpointer=InMemorySaver(),
)

question = {"question": "who starred in the films directed by Jane Campion"}
thread = {"configurable": {"thread_id": "campion"}}
for update in agents.stream(question, thread, stream_mode="updates"):
    print("finished:", *update)

for hit in agents.get_state(thread).values["hits"]:
    print(hit["name"], hit["evidence"][1])
