"""Answer with one plan of a model in LangGraph; its Cypher is checked and repaired."""

from langchain_core.language_models import FakeListChatModel

from graphret import BM25Index, open_store
from graphret.graphs import import_graph
from graphret.graphs.example import KB  # an excerpt of MetaQA: put your graph here
from langchain_graphret import create_spark_graph

import_graph(KB, "movies.lbug")  # an embedded database; or "neo4j://localhost"
store = open_store("movies.lbug")

# Stands for your model, and makes mistakes: the relation points the other way, and the
# name has capitals.
model = FakeListChatModel(
    responses=[
        "MATCH (d:Director {name: 'kathryn bigelow'})-[:directed_by]->(m) RETURN m"
    ]
)
spark = create_spark_graph(model, store, BM25Index.of_store(store), k=3)

answer = spark.invoke({"question": "films directed by Kathryn Bigelow"})
print("ran:", answer["hits"][0]["evidence"][0]["properties"]["cypher"])
for hit in answer["hits"]:
    print("film:", hit["name"])
store.close()
