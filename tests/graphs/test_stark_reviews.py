"""Amazon's products of STaRK, with their reviews as a property, as tables or as
nodes.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import graphret, refused
from stark_files import AMAZON, write_amazon, write_stark

from graphret.errors import InvalidInput
from graphret.graphs.stark import read_stark
from graphret.search import NodeText
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

pytestmark = pytest.mark.xdist_group("torch")


def of(store: MemoryStore) -> tuple[dict[str, Node], set[Edge]]:
    nodes = {node.id: node for block in store.nodes() for node in block}
    return nodes, {edge for block in store.edges() for edge in block}


def test_by_default_products_keep_their_reviews(tmp_path: Path) -> None:
    nodes, edges = of(read_stark(write_amazon(tmp_path)).store())
    assert {node.labels for node in nodes.values()} == {("product",)}
    cap = nodes["0"]
    assert (cap.name, cap.text) == ("Wool cap", "A cap.\nFor winter.")
    assert [one["summary"] for one in cap.properties["review"]] == ["Warm", "Too small"]
    assert "vote" not in cap.properties["review"][1]
    assert edges == {Edge("0", "also_buy", "1"), Edge("0", "also_view", "2")}


def test_reviews_are_one_table_of_each_product_that_has_some(tmp_path: Path) -> None:
    nodes, edges = of(read_stark(write_amazon(tmp_path), "table").store())
    assert sorted(nodes) == ["0", "0/reviews", "1", "2", "2/reviews"]
    table = nodes["0/reviews"]
    assert (table.labels, table.name) == (("review",), "Reviews of Wool cap")
    header, rows = (table.properties[key] for key in ("table_header", "table_rows"))
    assert header == [
        "summary",
        "reviewText",
        "overall",
        "vote",
        "verified",
        "reviewTime",
    ]
    assert rows == [
        ["Warm", "Keeps my head warm.", "5.0", "1,002", "True", "01 1, 2015"],
        ["Too small", "Does not fit.", "2.0", "", "True", "01 1, 2015"],
    ]
    assert NodeText().fields(table)["header"]  # it is searched as a table
    assert "Warm | Keeps my head warm. | 5.0" in table.text
    assert "review" not in nodes["0"].properties
    assert nodes["0"].properties["qa"] == AMAZON[0]["qa"]
    assert Edge("0", "has_review", "0/reviews") in edges


def test_reviews_are_a_node_each(tmp_path: Path) -> None:
    nodes, edges = of(read_stark(write_amazon(tmp_path), "nodes").store())
    reviews = {id_ for id_, node in nodes.items() if node.labels == ("review",)}
    assert reviews == {"0/review-0", "0/review-1", "2/review-0"}
    first = nodes["0/review-0"]
    assert (first.name, first.text) == ("Warm", "Keeps my\nhead warm.")
    assert first.properties == {
        "reviewerID": "A1",
        "overall": 5.0,
        "verified": True,
        "reviewTime": "01 1, 2015",
        "vote": "1,002",
    }
    assert {edge for edge in edges if edge.relation == "has_review"} == {
        Edge(id_.partition("/")[0], "has_review", id_) for id_ in reviews
    }


def test_brands_that_numpy_wrote_are_read(tmp_path: Path) -> None:
    info = {0: {"brand_name": np.str_("Ørsted & Søn")}}
    files = {"node_types__pt": [2], "edge_index__pt": [[], []], "edge_types__pt": []}
    folder = write_stark(tmp_path, **files)
    (folder / "node_info.pkl").write_bytes(pickle.dumps(info))
    import torch

    torch.save(torch.zeros((2, 0), dtype=torch.long), folder / "edge_index.pt")
    torch.save(torch.zeros(0, dtype=torch.long), folder / "edge_types.pt")
    nodes, _ = of(read_stark(folder).store())
    assert nodes["0"].name == "Ørsted & Søn"


def test_bad_reviews_are_named(tmp_path: Path) -> None:
    folder = write_amazon(tmp_path)
    bad = {**AMAZON, 1: {"review": ["loved it"], "title": "Scarf"}}
    (folder / "node_info.pkl").write_bytes(pickle.dumps(bad))
    with pytest.raises(InvalidInput, match=r"node 1: .*'review': expected a list of"):
        read_stark(folder, "nodes")
    with pytest.raises(InvalidInput, match="reviews: expected one of property, table"):
        read_stark(folder, "rows")  # type: ignore[arg-type]


def test_reviews_on_the_command_line(tmp_path: Path) -> None:
    source, out = write_amazon(tmp_path / "processed"), tmp_path / "amazon"
    ran = graphret("import", source, "--out", out, "--reviews", "nodes", "--json")
    assert ran.json["labels"] == {"product": 3, "review": 3}
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,name\na,Ann\n")
    said = refused(2, "import", nodes, "--out", tmp_path / "x", "--reviews", "table")
    assert "--reviews: is for the format stark, not for csv" in said
