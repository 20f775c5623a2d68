"""Search a graph that is in Neo4j, whoever wrote it. Pass the server's address."""

import os
import sys

import neo4j

from graphret import Expand, Neo4jStore, Neo4jTextIndex

address = sys.argv[1] if len(sys.argv) > 1 else "neo4j://localhost"
auth = None
if "NEO4J_PASSWORD" in os.environ:
    auth = (os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ["NEO4J_PASSWORD"])

with neo4j.GraphDatabase.driver(address, auth=auth) as driver:
    # Stands for the graph that you have.
    driver.execute_query("""
        CREATE (magas:Architect {name: 'Boris Magaš', born: 1930})
        CREATE (poljud:Stadium {name: 'Stadion Poljud', city: 'Split'})
        CREATE (games:Event {name: 'European Athletics Championships 1990'})
        CREATE (magas)-[:DESIGNED]->(poljud)-[:HOSTED]->(games)
    """)

    store = Neo4jStore.from_driver(driver)
    search = Neo4jTextIndex.create(store)  # once; Neo4jTextIndex.open(store) later
    retriever = Expand(None, store, search)
    question = "Who designed the stadium of the championships of 1990?"
    for hit in retriever.retrieve(question, k=3):
        print(hit.node.name, *hit.evidence, sep=" · ")
