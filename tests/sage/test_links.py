"""Names that one node says of another, and rows of tables that share the value of a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from graphret import Document, SageGraph, SageSettings, Table
from graphret.nodes import NodeTable
from graphret.sage.entities import Bearers
from graphret.sage.joins import JOINS, MAX_JOINS, join_links
from graphret.sage.links import LinkSettings, name_links, shared_name_links
from graphret.types import Edge, Hit, Node


def passage(id_: str, name: str, text: str = "", **properties: Any) -> Node:
    return Node(id_, ("Document",), name, text, properties)


def table(*cells: str, name: str = "Results", section: str = "") -> Node:
    properties = {"section": section, "table_header": ["what"], "table_rows": [["filler"], *([cell] for cell in cells)]}
    return Node("t", ("Table",), name, properties=properties)


def links(*nodes: Node, settings: LinkSettings | None = None) -> list[Edge]:
    named = NodeTable.of(nodes)
    return list(name_links(named, settings).edges(named.ids))


@pytest.mark.parametrize(
    ("cell", "name", "kind"),
    [
        ("stadion poljud", "Stadion Poljud", "exact"),
        ("Géza", "Geza", "exact"),
        ("Mercury", "Mercury (planet)", "alias"),
        ("Orange", "Orange, New South Wales", "alias"),
        ("Boris Magaš, with others", "Boris Magaš", "inside"),
        ("won by Orange in May", "Orange, New South Wales", "inside_alias"),
        ("Butler", "1911 Butler Christians football team", "completed"),
    ],
)
def test_a_cell_names_a_node(cell: str, name: str, kind: str) -> None:
    (edge,) = links(table(cell, name="1911 Christians football team results"), passage("p", name))
    assert (edge.source, edge.target, edge.relation) == ("t", "p", "MENTIONS")
    assert edge.properties["kind"] == kind
    assert edge.properties["source_row"] == 1
    assert edge.properties["column"] == "what"


def test_running_text_names_the_longest_name() -> None:
    found = links(
        passage("a", "A", "She lives in New York City."), passage("n", "New York"), passage("c", "New York City")
    )
    assert [(e.source, e.target, e.properties["kind"]) for e in found] == [("a", "c", "text")]
    found = links(passage("a", "東京都"), passage("b", "隅田川", "隅田川は東京都を流れる川です。"), passage("c", "川"))
    assert [(e.source, e.target) for e in found] == [("b", "a")]


def test_texts_share_a_name_that_few_say_and_no_node_bears() -> None:
    def edges(*nodes: Node, **settings: Any) -> list[Any]:
        named = NodeTable.of([*nodes, *(passage(f"other {i}", f"Other {i}") for i in range(60))])
        said = Bearers.of([given.get("entities", ()) for given in named.properties], 50)
        found = shared_name_links(named, said, LinkSettings(**settings)).edges(named.ids)
        return [(e.source, e.target, e.properties["name"], round(e.weight, 2)) for e in found]

    director, city = {"entities": ["Tim Burton"]}, {"entities": ["Tim Burton", "Oslo", "1990"]}
    films = [passage("a", "Big Eyes", **city), passage("b", "Apes", **director), passage("c", "Oslo", **city)]
    assert edges(*films) == [(*pair, "Tim Burton", 0.85) for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    assert edges(*films, table("Ed"))[0][3] == 0.68  # as a text that says a name counts less beside tables
    assert not edges(*films, max_sharers=2)
    assert not edges(*films, shared_weight=0)
    chunks = [passage(f"a{i}", "Big Eyes", source_id="a", chunk_index=i, **director) for i in (1, 0)]
    assert edges(*chunks, films[1]) == [("a0", "b", "Tim Burton", 0.85)]
    bearer = passage("t", "T. Burton", aliases=["Tim Burton"])
    assert not edges(*films, bearer)  # who bears it is linked by it
    series = [passage(f"s{i}", f"Tim Burton {i}", **director) for i in range(2)]
    assert [one[:2] for one in edges(*series, films[1])] == [("b", "s0"), ("b", "s1")]
    towns = [passage(f"t{i}", f"Town {i}", entities=["Maryland"]) for i in range(6)]  # more than few, of few titles
    history = [passage(f"h{i}", f"History of Maryland {i}") for i in range(3)]
    assert {one[:2] for one in edges(*towns, *history)} == {(h.id, t.id) for h in history for t in towns}
    assert not edges(*towns, *history, passage("h4", "Law in Maryland"))


def test_aliases_and_the_ids_of_records_are_names() -> None:
    record = Node("P-1234", ("Product",), "Drill", "A drill.")
    found = links(
        passage("a", "Manual", "Fits the P-1234 and the Big Blue."), record, passage("b", "Saw", aliases=["Big Blue"])
    )
    assert {(e.source, e.target) for e in found} == {("a", "P-1234"), ("a", "b")}


def test_a_name_that_too_many_bear_says_nothing() -> None:
    bearers = [passage(f"b{i}", "John Smith") for i in range(4)]
    said = passage("a", "A", "Here is John Smith.")
    assert len(links(said, *bearers, settings=LinkSettings(max_bearers=4))) == 4
    assert links(said, *bearers, settings=LinkSettings(max_bearers=3)) == []


def test_numbers_are_no_names_in_text_and_no_short_names_and_stop_words_are_none() -> None:
    assert links(table("2001"), passage("p", "2001 (film)")) == []
    assert links(passage("a", "A", "It was in 12 of the year."), passage("b", "12"), passage("c", "It")) == []


CAPITALS = """Poland Warsaw,Austria Vienna,Hungary Budapest,Portugal Lisbon,Egypt Cairo,Iraq Baghdad,Italy Rome,
Germany Berlin,Serbia Belgrade,Ireland Dublin,Russia Moscow,Latvia Riga,Spain Madrid,Syria Damascus"""
RIVERS = """Kraków Vistula,Warsaw Vistula,Linz Danube,Vienna Danube,Budapest Danube,Lisbon Tagus,Toledo Tagus,
Cairo Nile,Luxor Nile,Baghdad Tigris,Mosul Tigris,Rome Tiber,Berlin Spree,Belgrade Sava,Dublin Liffey,
Moscow Moskva,Riga Daugava,Madrid Manzanares,Damascus Barada,Cologne Rhine,Basel Rhine,Dresden Elbe"""
TOWNS = "Leeds Bristol York Bath Derby Exeter Lincoln Truro Oxford Durham Chester Ripon Wells Ely".split()
GOODS = "ovens shelves lamps trestles bags ladders scales signs".split()


def pairs(text: str) -> list[list[str]]:
    return [line.split() for line in text.split(",")]


def corpus() -> list[Document | Table]:
    customers = [[f"C{i + 41:03d}", f"{town} Stores", town] for i, town in enumerate(TOWNS)]
    orders = [[f"A-{1000 + i}", f"C{i * 5 % 14 + 41:03d}", GOODS[i % 8], str(i % 4 + 1)] for i in range(42)]
    return [
        Table(["Country", "Capital"], pairs(CAPITALS), id="capitals", title="Countries"),
        Table(["City", "River"], pairs(RIVERS), id="rivers", title="Cities on rivers"),
        Table(["Customer", "Company", "Town"], customers, id="customers", title="Customers"),
        Table(["Order", "Ordered by", "Goods", "Quantity"], orders, id="orders", title="Orders"),
        Document("Poland and Latvia lie on its shore, and many a river flows into it.", title="Baltic Sea"),
        Document("Capitals of Europe rebuilt theirs after the war; a river is spanned every mile.", title="Bridges"),
        Document("A company pays for the goods that it ordered within a month.", title="Terms of trade"),
    ]


@pytest.mark.parametrize(
    ("question", "table", "row", "columns"),
    [
        (
            "Which river flows through the capital of Syria?",
            "rivers",
            "Damascus",
            [["Capital", "City"]],
        ),
        (
            "In which town is the company that ordered A-1030?",
            "customers",
            "C051",
            [["Ordered by", "Customer"]],
        ),
    ],
)
def test_the_row_of_another_table_that_answers_is_found_with_the_value_and_columns_as_evidence(
    question: str, table: str, row: str, columns: list[list[str]]
) -> None:
    def hits(**links: float) -> list[Hit]:
        settings = SageSettings(links=LinkSettings(**links))  # type: ignore[arg-type]
        found = SageGraph.build(corpus(), encoder=None, settings=settings).retriever().retrieve(question, k=2).hits
        shown = [hit for hit in found if hit.id.startswith(table)]
        return [hit for hit in shown if row in [cells[0] for cells in hit.node.properties["table_rows"]]]

    (hit,) = hits()
    (said,) = [evidence for evidence in hit.evidence if evidence.relation == JOINS]
    assert (said.properties["name"], said.properties["columns"]) == (row, columns)
    assert not hits(join_weight=0)


def rows(id_: str, header: str, *cells: str, name: str = "", source: str | None = None) -> Node:
    """A table whose header and rows are written with ``|`` between the cells."""
    properties = {"table_header": header.split("|"), "table_rows": [row.split("|") for row in cells]}
    return Node(id_, ("Table",), name or id_, properties=properties | ({"source_id": source} if source else {}))


def joins(*nodes: Node) -> list[Edge]:
    table = NodeTable.of(nodes)
    return list(join_links(table).edges(table.ids))


@pytest.mark.parametrize(
    ("left", "right", "linked"),
    [
        (("Order|Customer", "A-1|C041", "A-2|C041", "A-3|C042"), ("No.|Name", "C041|Ann", "C042|Bob"), 3),
        (("Film|Star", "Dawn|Ann Ames", "Dusk|Bob Bates"), ("Actor|Born", "ann ames|1970", "BOB BATES|1980"), 2),
        (("order_id|customer_id", "1|17", "2|17", "3|18"), ("customer_id|name", "17|Ann", "18|Bob"), 3),
        (("id|customerId", "1|17", "2|17", "3|18"), ("id|name", "17|Ann", "18|Bob"), 3),
        (("id|customer_id", "1|17.0", "2|", "3|18.0"), ("id|name", "17|Ann", "18|Bob"), 2),
        (("id|supplier_id", "1|17", "2|17", "3|18"), ("id|name", "17|Ann", "18|Bob"), 0),  # ids of something else
        (("id|item", "17|oven", "18|lamp"), ("id|name", "17|Ann", "18|Bob"), 0),  # of what its own table has
        (("Year|Film", "1970|Dawn", "1971|Dusk"), ("Year|Song", "1970|Rain", "1971|Snow"), 0),
        (("Rank|Team", "1st|Reds", "2nd|Blues"), ("Rank|Club", "1st|Owls", "2nd|Bats"), 0),
        (("Team|Colour", "Reds|red", "Red Sox|red", "Owls|red"), ("Car|Paint", "Beetle|red", "Mini|red"), 0),  # no key
        (("Team|City", "Reds|Leeds", "Owls|Bath"), ("City|River", "Leeds|Aire", "Rome|Tiber"), 0),  # one value
        (("Word|Note", "|", "|"), ("Word|Note", "|", "|"), 0),
        (
            ("Item|Note", f"oven|{'very ' * 20}hot", f"lamp|{'very ' * 20}bright"),
            ("Thing|Note", f"kiln|{'very ' * 20}hot", f"sun|{'very ' * 20}bright"),
            0,
        ),
    ],
)
def test_rows_join_by_a_key(left: Sequence[str], right: Sequence[str], linked: int) -> None:
    assert len(joins(rows("orders", *left), rows("t", *right, name="Customers"))) == linked
    assert len(joins(rows("orders", *left), rows("a", *right, name="Customers"))) == linked  # in whichever order


def test_the_edge_leads_from_the_row_that_refers_to_the_row_whose_key_it_is() -> None:
    orders = rows("z", "Order|By", "A-1|C041", "A-2|C042", "A-3|C042")
    found = joins(orders, rows("b", "Customer|Name", "C042|Bob", "C041|Ann"))
    ends = [(e.source, e.properties["source_row"], e.target, e.properties["target_row"]) for e in found]
    assert ends == [("z", 0, "b", 1), ("z", 1, "b", 0), ("z", 2, "b", 0)]
    assert found[0].properties["columns"] == [["By", "Customer"]]


@pytest.mark.parametrize("size", [1, 2])
def test_however_a_table_is_cut_its_rows_join_another_and_never_each_other(size: int) -> None:
    """Loaders make one document of each row."""

    def cut(source: str, header: str, cells: Sequence[str]) -> list[Node]:
        parts = [cells[i : i + size] for i in range(0, len(cells), size)]
        return [rows(f"{source}#{i}", header, *part, source=source) for i, part in enumerate(parts)]

    cities = cut("cities", "City|Twin", ["Leeds|Lille", "Lille|Leeds", "Bath|Aix", "Aix|Bath"])
    found = joins(*cities, *cut("rivers", "Town|River", ["Leeds|Aire", "Bath|Avon", "Lille|Deûle", "Aix|Arc"]))
    assert {(e.source.split("#")[0], e.target.split("#")[0]) for e in found} == {("cities", "rivers")}
    assert len(found) == 8


def test_a_value_that_many_key_columns_have_says_nothing() -> None:
    tables = [rows(f"t{i}", f"Land|Note {i}", f"Chad|{i} a", f"Mali|{i} b") for i in range(MAX_JOINS + 1)]
    assert len(joins(*tables[1:])) == 2 * 3
    assert joins(*tables) == []


def test_a_row_leads_to_no_more_rows_than_three_the_rarest_values_first() -> None:
    many = rows("a", "P|Q|R|S", "Ann|Oslo|Fiat|Hull", "Bob|Rome|Saab|Hull", "Cay|Rome|Fiat|Bath")
    keys = [
        rows("b", "Person|Age", "Ann|3", "Bob|4"),
        rows("c", "City|Land", "Oslo|Norway", "Rome|Italy"),
        rows("d", "Car|Doors", "Fiat|3", "Saab|5"),
        rows("e", "Town|River", "Hull|Humber", "Bath|Avon"),
    ]
    said = sorted((e.properties["source_row"], e.properties["name"]) for e in joins(many, *keys))
    found = ["Ann", "Fiat", "Oslo"], ["Bob", "Rome", "Saab"], ["Bath", "Fiat", "Rome"]
    assert said == [(row, name) for row, names in enumerate(found) for name in names]
