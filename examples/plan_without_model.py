"""Follow the relations that a question asks for, with no model (GRASP)."""

from graphret import BM25Index, Grasp, open_store
from graphret.graphs import import_graph
from graphret.graphs.example import KB  # an excerpt of MetaQA: put your graph here

import_graph(KB, "movies")
store = open_store("movies")
grasp = Grasp(None, store, BM25Index.of_store(store))  # or a chat model for None

for question in (
    "which films share a director with Near Dark",
    "who wrote the films directed by Kathryn Bigelow",
):
    print(question)
    for hit in grasp.retrieve(question, k=3):
        path = [evidence for evidence in hit.evidence if evidence.relation]
        print("   ", hit.node.name, *path, sep=" | ")
