"""Names that try to end a string and write, and queries that try to leave the graph, on
real databases.

`attacks/names.json` and `attacks/queries_*.jsonl` hold them. In them ``CANARY_FILE`` is
a file with a secret, ``CANARY_URL`` a listening port of this machine, and ``OUT_FILE``
a file that must not come to be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from bounded_attack import SECRET, Attacked, Canary

from graphret.cypher import run_checked
from graphret.errors import GraphretError, QueryRefused

ATTACKS = Path(__file__).parent / "attacks"
TEMPLATES = (
    "MATCH (n:Person) WHERE n.name = '{name}' RETURN n LIMIT 3",
    'MATCH (n:Person {{name: "{name}"}}) RETURN n LIMIT 3',
    "MATCH (n:`{name}`) RETURN n LIMIT 3",
    "MATCH (n:{name})-[:{name}]->() RETURN n.{name} LIMIT 3 // {name}",
    "MATCH (n:Person) /* {name} */ RETURN n.name AS `{name}` LIMIT 3",
)


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    folder = tmp_path / "canary"
    folder.mkdir()
    with Canary(folder) as running:
        yield running
        running.shutdown()


@pytest.fixture
def attacked(database: Any) -> Attacked:
    return Attacked(database)


def queries(dialect: str, canary: Canary) -> list[str]:
    lines = (
        (ATTACKS / f"queries_{dialect}.jsonl").read_text(encoding="utf-8").splitlines()
    )
    return [canary.put_in(json.loads(line)["query"]) for line in lines]


def names(canary: Canary) -> list[str]:
    return [
        canary.put_in(name)
        for name in json.loads((ATTACKS / "names.json").read_text(encoding="utf-8"))
    ]


def require_untouched(attacked: Attacked, canary: Canary) -> None:
    assert not canary.touched
    assert attacked.state() == attacked.before


def test_with_no_guard_the_databases_read_files_call_ports_and_write(
    neo4j_driver: Any, canary: Canary, tmp_path: Path
) -> None:
    import ladybug

    with neo4j_driver.session(default_access_mode="READ") as session:
        assert session.run(
            f"LOAD CSV FROM 'file://{canary.file}' AS row RETURN row[0]"
        ).values() == [[SECRET]]
        with suppress(Exception):  # nothing is answered there
            session.run(f"LOAD CSV FROM '{canary.url}' AS row RETURN row[0]").values()
    assert canary.calls > 0
    bare: Any = ladybug.Connection(ladybug.Database(str(tmp_path / "bare.lbug")))
    assert bare.execute(
        f"LOAD FROM '{canary.file}' (file_format='csv', header=false) RETURN *"
    ).get_all() == [[SECRET]]
    bare.execute(f"COPY (RETURN 1) TO '{canary.out}.csv'")
    assert list(canary.out.parent.glob("out*")) != []


def test_no_query_leaves_the_graph(attacked: Attacked, canary: Canary) -> None:
    attacks = queries(attacked.store.dialect, canary)
    assert len(attacks) > 100
    for query in attacks:
        with pytest.raises(QueryRefused) as refused:
            run_checked(attacked.store, query)
        assert refused.value.report is not None, query
        assert refused.value.report.errors, query  # the guard, not the database
        assert SECRET not in str(refused.value)
    require_untouched(attacked, canary)


def test_no_name_pasted_into_a_query_leaves_it(
    attacked: Attacked, canary: Canary
) -> None:
    """Each name in one of the templates in turn, as databases plan each query anew."""
    ran: Counter[str] = Counter()
    for template, name in zip(cycle(TEMPLATES), names(canary), strict=False):
        with suppress(GraphretError):
            assert SECRET not in repr(
                run_checked(attacked.store, template.format(name=name))
            )
            ran[template] += 1
    # Plain strings for the guard must be so for the database as well.
    assert (
        min(
            ran[template]
            for template in TEMPLATES
            if "'" in template or '"' in template
        )
        > 3
    )
    require_untouched(attacked, canary)


def test_names_that_are_given_are_values_and_only_looked_for(
    attacked: Attacked, canary: Canary
) -> None:
    """As ids, texts, labels and relations the suite of stores tries them."""
    store, attack_names = attacked.store, names(canary)
    query = (
        "UNWIND $names AS name MATCH (n:Person) WHERE n.name = name OR n.name = 'Ann'"
        " RETURN name, n.name LIMIT 999"
    )
    assert run_checked(store, query, {"names": attack_names}).rows == [
        (name, "Ann") for name in attack_names
    ]
    looked_for = [
        name for name in attack_names if name != "Person" and "\0" not in name
    ]  # which no database takes
    for options in (
        {"relations": looked_for},
        {"labels": looked_for},
        {"where": {"name": {"$in": looked_for}}},
    ):
        assert store.neighbors(["ann", "bob"], **options) == []
    fields = [
        {name: name}
        for name in looked_for
        if name and not name.startswith("$") and "." not in name
    ]
    assert store.view({"$or": fields[::2]}).get(["ann"]) == [None]
    require_untouched(attacked, canary)


def test_names_as_texts_to_search_for(neo4j_empty: Any, canary: Canary) -> None:
    """Lucene has a language of its own: in an index of the database it is no more than
    words, too.
    """
    from graphret.search.neo4j_index import Neo4jTextIndex
    from graphret.stores.neo4j import Neo4jStore

    def scoring(
        hits: Any,
    ) -> list[str]:  # what has a word of the question; the rest fills up to k
        return [
            node_id
            for node_id, score in zip(hits.ids, hits.scores, strict=True)
            if score > 0
        ]

    odd = [
        "*:*",
        "graphret_title:*",
        "ann OR bob",
        "a~",
        "[a TO z]",
        "/.*/",
        "+ann -bob",
        "(",
        "AND",
    ]
    queries = [*names(canary)[::2], *odd]
    queries = [name for name in queries if "\0" not in name]
    attacked = Attacked(store := Neo4jStore.from_driver(neo4j_empty))
    index = Neo4jTextIndex.create(store)
    assert scoring(index.search("ann", 5)) == ["ann"]
    results = index.search(queries, 5)
    assert {node_id for hits in results for node_id in hits.ids} <= {
        "ann",
        "bob",
        "cat",
    }
    assert [len(scoring(hits)) for hits in results[-9:]] == [0, 0, 2, 0, 0, 0, 2, 0, 0]
    assert (
        index.search(
            "ann", 5, labels=[name for name in queries if name != "Person"]
        ).ids
        == []
    )
    assert index.search("ann", 5, where={"name": {"$in": queries}}).ids == []
    require_untouched(attacked, canary)
