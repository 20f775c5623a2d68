"""Read files of another type: services described in YAML become records and edges."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from graphret import Edge, Record, SageGraph, read
from graphret.corpus import register_reader

Path("services").mkdir()
Path("services/checkout.yaml").write_text("""
name: Checkout
description: Takes payments, and writes each of them into the ledger.
depends_on: [ledger]
""")
Path("services/ledger.yaml").write_text("""
name: Ledger
description: Keeps accounts. Its data are in two regions.
depends_on: []
""")


def read_service(path: Path, id_: str) -> Iterator[Record | Edge]:
    service = yaml.safe_load(path.read_text())
    upstream = service.pop("depends_on")
    yield Record(path.stem, ("Service",), service["name"], service)
    for name in upstream:
        yield Edge(path.stem, "DEPENDS_ON", name)


# For `graphret build` an entry point of your package registers it: see the docstring.
register_reader(".yaml", read_service)

graph = SageGraph.build(read("services"), encoder=None)
for hit in graph.retriever().retrieve("where are the data of Checkout", k=2):
    print(hit.node.name, *hit.evidence, sep=" · ")
