"""Build, query, add, remove and inspect through the command, and the shape of what they print."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import built, graphret, write_corpus

from graphret import SageGraph

QUESTION = "Where was the director of Dawn born?"
COUNTS = {"nodes", "edges", "labels", "relations"}


def test_build_add_remove_and_inspect_agree(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path), tmp_path / "graph"
    made = graphret("build", corpus, "--out", out, "--encoder", "none", "--json").json
    assert made.keys() == {"folder", "encoder", "seconds", *COUNTS}
    assert (made["folder"], made["encoder"]) == (str(out), None)
    assert made["labels"] == {"Document": 3, "Table": 1}

    before = graphret("inspect", out, "--json").json
    assert {key: before[key] for key in COUNTS} == {key: made[key] for key in COUNTS}
    assert sum(before["relations"].values()) == before["edges"]

    more = tmp_path / "cy.jsonl"
    more.write_text('{"id": "cy", "title": "Cy Cole", "text": "Cy Cole played in the film Dawn by Ann Ames."}')
    added = graphret("add", out, more, "--json").json
    assert added.keys() == {"folder", "added", *COUNTS}
    assert added["added"] == ["cy#0"]
    assert added["nodes"] == made["nodes"] + 1
    assert added["relations"]["MENTIONS"] == made["relations"]["MENTIONS"] + 1  # its text says Ann Ames

    removed = graphret("remove", out, "cy", "--json").json
    assert removed.keys() == {"folder", "removed", *COUNTS}
    assert removed["removed"] == ["cy#0"]
    after = graphret("inspect", out, "--json").json
    assert after["generation"] != before["generation"]
    assert {key: after[key] for key in COUNTS} == {key: before[key] for key in COUNTS}


def test_query_finds_the_director_by_the_row_that_names_her(tmp_path: Path) -> None:
    graph, page = built(tmp_path), tmp_path / "deep" / "why.html"
    answer = graphret("query", QUESTION, "--graph", graph, "-k", 3, "--json", "--explain", page).json
    assert answer.keys() == {"query", "k", "hits", "trace"}
    assert (answer["query"], answer["k"], len(answer["hits"])) == (QUESTION, 3, 3)
    fields = {"id", "name", "labels", "score", "relevance", "text", "evidence"}
    assert all(hit.keys() == fields for hit in answer["hits"])
    assert {hit["id"] for hit in answer["hits"][:2]} == {"ann#0", "films#0"}
    ann = next(hit for hit in answer["hits"] if hit["id"] == "ann#0")
    edge = next(evidence for evidence in ann["evidence"] if evidence["kind"] == "neighbor")
    assert (edge["source"], edge["relation"]) == ("films#0", "MENTIONS")
    assert edge["properties"] == {"kind": "exact", "name": "Ann Ames", "column": "Director", "source_row": 1}
    assert answer["trace"]["stages"]
    assert "Ann Ames" in page.read_text(encoding="utf-8")
    printed = graphret("query", QUESTION, "--graph", graph, "-k", 2).out
    for said in ("Films of 1999 · List", "row 1", "Film: Dawn · Director: Ann Ames", "found by the question"):
        assert said in printed


def test_query_returns_only_what_the_condition_allows(tmp_path: Path) -> None:
    graph = built(tmp_path)
    answer = graphret("query", QUESTION, "--graph", graph, "--where", '{"year": {"$gte": 1990}}', "--json").json
    assert [hit["id"] for hit in answer["hits"]] == ["bob#0"]
    nothing = graphret("query", QUESTION, "--graph", graph, "--where", '{"year": 2000}')
    assert (nothing.code, nothing.out) == (0, "nothing qualifies\n")


TABLE = "| Film | Director |\n|---|---|\n| {} | Ann Ames |\n"


def listed(graph: Path) -> dict[str, tuple[str, str, int]]:
    found = graphret("list", graph, "--json").json
    assert found["folder"] == str(graph)
    return {one["id"]: (one["name"], one["kind"], one["chunks"]) for one in found["items"]}


def test_a_file_that_is_added_again_takes_the_place_of_all_that_was_read_from_it(tmp_path: Path) -> None:
    notes, graph = tmp_path / "notes", tmp_path / "graph"
    notes.mkdir()
    page, other = notes / "a.md", notes / "b.txt"
    page.write_text(f"# Films\n\nOld words.\n\n{TABLE.format('Dawn')}\nMore.\n\n{TABLE.format('Dusk')}")
    other.write_text("Bob Bale wrote plays in Kent.")
    assert graphret("build", notes, "--out", graph, "--encoder", "none").code == 0
    first = {"a.md": ("Films", "Document", 1), "b.txt": ("b", "Document", 1)}
    tables = {f"a.md/table-{i}": ("Films", "Table", 1) for i in range(2)}
    assert listed(graph) == first | tables

    page.write_text(f"# Films\n\nNew words.\n\n{TABLE.format('Dusk')}")  # an edit that takes a table away
    ran = graphret("add", graph, notes)
    assert (ran.code, ran.err) == (0, "")
    assert listed(graph) == first | {"a.md/table-0": tables["a.md/table-0"]}
    texts = " ".join(SageGraph.load(graph).nodes.texts)
    assert "New words" in texts
    assert "Old words" not in texts
    assert "Dawn" not in texts

    page.write_text(TABLE.format("Noon"))  # now the table alone
    assert graphret("add", graph, page).code == 0
    assert set(listed(graph)) == {"a.md/table-0", "b.txt"}
    assert graphret("remove", graph, "a.md", "--json").json["removed"] == ["a.md/table-0#0"]
    assert set(listed(graph)) == {"b.txt"}


def test_list_shows_every_item_with_its_chunks(tmp_path: Path) -> None:
    long = {"id": "long", "title": "Long", "text": "A sentence that says something new. " * 400}
    record = {"id": "g1", "labels": ["Gene"], "name": "Gata", "properties": {}}
    graph = built(tmp_path, [long, record])
    items = listed(graph)
    assert items["g1"] == ("Gata", "Gene", 1)
    assert items["long"] == ("Long", "Document", len(SageGraph.load(graph)) - 1)
    shown = [line.split() for line in graphret("list", graph).out.splitlines()]
    assert shown == [["g1", "Gene", "1", "Gata"], ["long", "Document", str(items["long"][2]), "Long"]]
    plain = tmp_path / "plain"
    assert graphret("import", graph, "--to", plain).code == 0
    ran = graphret("list", plain)
    assert (ran.code, ran.out) == (3, "")
    assert "not a 'sage' index" in ran.err
