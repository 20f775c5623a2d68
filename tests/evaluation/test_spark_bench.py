"""SPARK measured on a graph small enough to know the answer, and on a few queries of a model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from scripted_parts import FILMS

from graphret.errors import InvalidInput
from graphret.evaluation import bench_spark

SCHEMA = {
    "node_props": {
        "Film": [{"property": "title", "type": "STRING"}, {"property": "year", "type": "INTEGER"}],
        "Person": [],
    },
    "rel_props": {},
    "relationships": [{"start": "Person", "type": "DIRECTED", "end": "Film"}],
}
QUERIES = [
    "MATCH (p:Person)-[:DIRECTED]->(f:Film {title: 'Dawn'}) RETURN p",
    "MATCH (f:Film) WHERE f.year > 5 RETURN f.title",
    "MATCH (f:Film)-[:DIRECTED]->(p:Person) RETURN p",
    "MATCH (f:Film) DETACH DELETE f",
]


def test_plans_and_queries_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"kb\.txt"):
        bench_spark(tmp_path)
    films, queries = tmp_path / "metaqa", tmp_path / "text2cypher"
    (films / "1-hop" / "vanilla").mkdir(parents=True)
    (films / "kb.txt").write_text("\n".join(FILMS))
    (films / "1-hop" / "vanilla" / "qa_dev.txt").write_text("who directed [Dawn]\tAnn Ames\n")
    (films / "1-hop" / "qa_dev_qtype.txt").write_text("movie_to_director\n")
    queries.mkdir()
    rows = dict.fromkeys(("unknown_labels", "unknown_relations", "unknown_properties"), "[]")
    rows |= {"database": "films", "accepted": "True", "error": ""}
    _write(queries / "text2cypher_schemas.csv", [{"database": "films", "structured_schema": repr(SCHEMA)}])
    _write(queries / "text2cypher_model.csv", [{"cypher": query, **rows} for query in QUERIES])
    result = json.loads(json.dumps(bench_spark(tmp_path, hops=[1])))
    assert result["rows"]["queries"] == {"ran": 75.0, "refused": 25.0, "broke": 0.0}
    assert result["rows"]["mistakes"].keys() >= {"label", "relation", "property", "direction", "own"}
    assert set(result["rows"]["mistakes"].values()) == {100.0}
    assert result["rows"]["1-hop"] == {"hit@1": 100.0, "all": 100.0, "parsed": 100.0, "ran": 100.0, "fell_back": 0.0}


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
