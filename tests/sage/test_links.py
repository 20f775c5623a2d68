"""Names that one node says of another, and rows of tables that share the value of a
key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from graphret import Document, SageGraph, SageSettings, Table
from graphret.corpus import HeuristicMetadata, describe
from graphret.nodes import NodeTable
from graphret.sage.joins import JOINS, MAX_JOINS, join_links
from graphret.sage.links import name_links
from graphret.sage.settings import LinkSettings
from graphret.sage.shared_names import shared_name_links
from graphret.types import Edge, Hit, Node


def passage(id_: str, name: str, text: str = "", **properties: Any) -> Node:
    return Node(id_, ("Document",), name, text, properties)


def table(*cells: str, name: str = "Results", section: str = "") -> Node:
    properties = {
        "section": section,
        "table_header": ["what"],
        "table_rows": [["filler"], *([cell] for cell in cells)],
    }
    return Node("t", ("Table",), name, properties=properties)


def links(*nodes: Node, settings: LinkSettings | None = None) -> list[Edge]:
    table = NodeTable.of(nodes)
    return list(name_links(table, settings).edges(table.ids))


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
    (edge,) = links(
        table(cell, name="1911 Christians football team results"), passage("p", name)
    )
    assert (edge.source, edge.target, edge.relation) == ("t", "p", "MENTIONS")
    assert edge.properties["kind"] == kind
    assert edge.properties["source_row"] == 1
    assert edge.properties["column"] == "what"


def test_running_text_names_the_longest_name() -> None:
    links_found = links(
        passage("a", "A", "She lives in New York City."),
        passage("n", "New York"),
        passage("c", "New York City"),
    )
    assert [(e.source, e.target, e.properties["kind"]) for e in links_found] == [
        ("a", "c", "text")
    ]
    links_found = links(
        passage("a", "東京都"),
        passage("b", "隅田川", "隅田川は東京都を流れる川です。"),
        passage("c", "川"),
    )
    assert [(e.source, e.target) for e in links_found] == [("b", "a")]


def test_texts_share_a_name_that_few_say_and_no_node_bears() -> None:
    def edges(*nodes: Node, **settings: Any) -> list[Any]:
        named = NodeTable.of(
            [*nodes, *(passage(f"other {i}", f"Other {i}") for i in range(60))]
        )
        links_found = shared_name_links(named, LinkSettings(**settings)).edges(
            named.ids
        )
        return [
            (e.source, e.target, e.properties["name"], round(e.weight, 2))
            for e in links_found
        ]

    director, city = (
        {"entities": ["Tim Burton"]},
        {"entities": ["Tim Burton", "Oslo", "1990"]},
    )
    films = [
        passage("a", "Big Eyes", **city),
        passage("b", "Apes", **director),
        passage("c", "Oslo", **city),
    ]
    assert edges(*films) == [
        (*pair, "Tim Burton", 0.85) for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert (
        edges(*films, table("Ed"))[0][3] == 0.68
    )  # as a text that says a name counts less beside tables
    assert not edges(*films, max_sharers=2)
    assert not edges(*films, shared_weight=0)
    chunks = [
        passage(f"a{i}", "Big Eyes", source_id="a", chunk_index=i, **director)
        for i in (1, 0)
    ]
    assert edges(*chunks, films[1]) == [
        (f"a{i}", "b", "Tim Burton", 0.85) for i in (0, 1)
    ]
    assert not edges(
        *chunks, films[1], max_sharers=2
    )  # as rare as the chunks that say it are few
    assert not edges(
        films[0], passage("d", "Big eyes", **director)
    )  # what bears one title is one thing
    bearer = passage("t", "T. Burton", aliases=["Tim Burton"])
    assert not edges(*films, bearer)  # who bears it is linked by it
    series = [passage(f"s{i}", f"Tim Burton {i}", **director) for i in range(2)]
    assert [edge[:2] for edge in edges(*series, films[1])] == [("b", "s0"), ("b", "s1")]
    towns = [
        passage(f"t{i}", f"Town {i}", entities=["Maryland"]) for i in range(6)
    ]  # more than few, of few titles
    history = [passage(f"h{i}", f"History of Maryland {i}") for i in range(3)]
    assert {edge[:2] for edge in edges(*towns, *history)} == {
        (h.id, t.id) for h in history for t in towns
    }
    assert not edges(*towns, *history, passage("h4", "Law in Maryland"))


#: Texts that show how the corpus uses the words of the titles below.
PROSE = """Two examples follow. Keep a seat free, so that you keep the time; there is a system prompt in each.
The next steps are few. Den meisten fallen zwei ein."""


@pytest.mark.parametrize(
    ("title", "text", "linked"),
    [
        ("Examples", "There are examples of it.", False),
        (
            "Examples",
            "Examples of it are below.",
            False,
        ),  # every sentence begins with a capital
        ("Examples", "## Examples\n\nThe list is long.", False),
        ("Examples", "It was seen in Examples of it.", True),
        ("Examples", "It is told in “examples” at length.", True),
        ("Examples", "See `examples`, which is long.", True),
        ("Examples", "See [examples](x.md) at length.", True),
        ("Examples", 'It has {"examples": 3} as ever.', False),  # a key
        (
            "Time",
            "It was bought by Time Warner last year.",
            False,
        ),  # part of a longer name
        ("Time", "It was told in Time last year.", True),
        ("SEAT", "A seat was made by them.", False),
        ("SEAT", "It was made by SEAT in Spain.", True),
        ("Next Steps", "Next steps are below.", False),
        ("Next Steps", "It is told in Next Steps below.", True),
        (
            "System prompt",
            "It has another system prompt today.",
            True,
        ),  # no everyday words, but a term of two
        (
            "Boston",
            "Boston is old, and they left.",
            True,
        ),  # no text has it in lower case
        ("Boston", "BOSTON, 12 MAY", True),
        ("東京", "東京は大きい。", True),
    ],
)
def test_an_everyday_word_is_a_title_only_where_the_text_uses_it_as_one(
    title: str, text: str, linked: bool
) -> None:
    links_found = links(
        passage("asker", "A", text),
        passage("bearer", title),
        passage("prose", "Z", PROSE),
    )
    assert ("asker" in {edge.source for edge in links_found}) is linked


def test_a_name_of_its_own_first_words_is_shown_and_not_looked_for() -> None:
    nodes = [
        passage("a", "", "They sail. It is old."),
        passage("b", "Sea", "Here they sail with others."),
    ]
    described = describe(nodes, HeuristicMetadata())
    assert [node.name for node in described] == ["They sail", "Sea"]
    assert links(*described) == []
    assert len(links(passage("a", "They sail", "They sail. It is old."), nodes[1])) == 1


@pytest.mark.parametrize(
    "titles", [("Super Bowl 50", "super bowl 50"), ("Super Bowl 50", "Super  Bowl 50")]
)
def test_no_link_within_what_bears_one_title(titles: tuple[str, str]) -> None:
    nodes = [
        passage(f"n{i}", title, "In Super Bowl 50 they won.")
        for i, title in enumerate(titles)
    ]
    links_found = links(*nodes, passage("x", "Denver", "They won Super Bowl 50."))
    assert {(edge.source, edge.target) for edge in links_found} == {
        ("x", "n0"),
        ("x", "n1"),
    }


@pytest.mark.parametrize(
    ("sayers", "others", "linked"), [(20, 0, True), (21, 0, False), (21, 190, True)]
)
def test_a_title_that_many_sources_say_is_a_hub_and_makes_no_links(
    sayers: int, others: int, linked: bool
) -> None:
    sayers_nodes = [
        passage(f"s{i:03}", f"Page {i}", "As Graphret has it.") for i in range(sayers)
    ]
    links_found = links(
        passage("hub", "Graphret"),
        *sayers_nodes,
        *(passage(f"o{i:03}", f"Other {i}") for i in range(others)),
    )
    assert len(links_found) == (sayers if linked else 0)


@pytest.mark.parametrize(
    ("name", "texts", "linked"),
    [
        ("NASA", ["It was built by NASA for this.", "They went to NASA in May."], True),
        ("NASA", ["## NASA\n\nIt is old.", "NASA\n\nIt is old."], False),  # headings
        (
            "SEVERABILITY",
            [
                "8. SEVERABILITY. Should a part not hold.",
                "9. SEVERABILITY. The others hold.",
            ],
            False,
        ),
        (
            "Definition",
            ["See Definition before that.", "The Definition says that."],
            False,
        ),  # PROSE has the word
        (
            "Section 3",
            ["As Section 3 has it, they may.", "Under Section 3 they will."],
            False,
        ),
        ("Ask Ada", ["Ask Ada for the rest.", "Then wait. Ask Ada when done."], False),
        (
            "Inc",
            [
                "It was sold to Acme, Inc. in May.",
                "They work for Foo, Inc. since then.",
            ],
            False,
        ),
        (
            "XIX",
            ["In the century XIX they met.", "It was built in XIX by them."],
            False,
        ),
        ("PRAGMA", ["#PRAGMA once\ncode", "#PRAGMA once\nmore"], False),
        (
            "Tim Burton",
            ["It was made by Tim Burton then.", "Tim Burton made it."],
            True,
        ),
    ],
)
def test_a_shared_name_is_one_that_both_texts_say_as_a_name(
    name: str, texts: list[str], linked: bool
) -> None:
    nodes = [
        passage(f"n{i}", f"Title {i}", text, entities=[name])
        for i, text in enumerate(texts)
    ]
    prose = "a definition is given in each section here and you may ask for it"
    nodes += [passage(f"p{i}", f"Prose {i}", prose) for i in range(3)]
    table = NodeTable.of(nodes)
    assert len(shared_name_links(table)) == linked


def test_a_place_that_every_text_names_joins_no_texts() -> None:
    def joined(sayers: int) -> int:
        texts = [
            passage(f"t{i:02}", f"Filing {i}", entities=["Delaware"])
            for i in range(sayers)
        ]
        table = NodeTable.of([*texts, passage("law", "Law of Delaware")])
        return len(shared_name_links(table))

    assert (joined(20), joined(21)) == (20, 0)


def test_a_report_tells_the_commonest_and_the_least_believed_names_with_examples() -> (
    None
):
    films = [
        Document("It was made by Ada Ames then.", title=f"Film {i}", id=f"{i:02}")
        for i in range(15)
    ]
    document = Document(
        "See `keep` there. One may keep it, and others keep it too.", title="Told"
    )
    graph = SageGraph.build(
        [
            *films,
            Document("x", title="Ada Ames"),
            document,
            Document("y", title="Keep"),
        ],
        encoder=None,
    )
    names = json.loads(json.dumps(graph.report().to_dict()))["link_names"]
    first, *_ = names["commonest"]
    last, *_ = names["doubtful"]
    weight = pytest.approx(1 - 0.005 * math.log(1.5), abs=1e-4)
    assert first == {
        "name": "Ada Ames",
        "relation": "MENTIONS",
        "kind": "text",
        "edges": 15,
        "weight": weight,
        "source": "Film 0",
        "target": "Ada Ames",
    }
    assert (last["name"], last["source"], last["target"]) == ("Keep", "Told", "Keep")
    assert last["weight"] == pytest.approx(1 - 0.1 * 2 / 3, abs=1e-4)
    assert "15  1.00  Ada Ames  (MENTIONS text: Film 0 → Ada Ames)" in str(
        graph.report()
    )


def test_aliases_and_the_ids_of_records_are_names() -> None:
    record = Node("P-1234", ("Product",), "Drill", "A drill.")
    links_found = links(
        passage("a", "Manual", "Fits the P-1234 and the Big Blue."),
        record,
        passage("b", "Saw", aliases=["Big Blue"]),
    )
    assert {(e.source, e.target) for e in links_found} == {("a", "P-1234"), ("a", "b")}


@pytest.mark.parametrize(
    ("name", "text", "linked"),
    [
        ("IT", "Ask the IT team about it.", True),
        ("IT", "We use it, and it is what it is.", False),
        ("IT", "MAKE IT WORK", False),
        ("IT", "WITH it we came.", False),
        ("AT&T", "They called AT&T at noon.", True),
        ("AT&T", "They looked at t shirts.", False),
    ],
)
def test_stop_words_in_capitals_are_names_where_a_text_uses_them_so(
    name: str, text: str, linked: bool
) -> None:
    links_found = links(passage("a", "A", text), passage("n", name))
    assert [(e.source, e.target) for e in links_found] == [("a", "n")] * linked


def test_a_name_that_too_many_bear_says_nothing() -> None:
    bearers = [passage(f"b{i}", "John Smith") for i in range(4)]
    text_node = passage("a", "A", "Here is John Smith.")
    assert (
        len(links(text_node, *bearers, settings=LinkSettings(max_nodes_per_name=4)))
        == 4
    )
    assert links(text_node, *bearers, settings=LinkSettings(max_nodes_per_name=3)) == []


def test_numbers_are_no_names_in_text_and_no_short_names_and_stop_words_are_none() -> (
    None
):
    assert links(table("2001"), passage("p", "2001 (film)")) == []
    assert (
        links(
            passage("a", "A", "It was in 12 of the year."),
            passage("b", "12"),
            passage("c", "It"),
        )
        == []
    )


CAPITALS = """Poland Warsaw,Austria Vienna,Hungary Budapest,Portugal Lisbon,Egypt Cairo,Iraq Baghdad,Italy Rome,
Germany Berlin,Serbia Belgrade,Ireland Dublin,Russia Moscow,Latvia Riga,Spain Madrid,Syria Damascus"""
RIVERS = """Kraków Vistula,Warsaw Vistula,Linz Danube,Vienna Danube,Budapest Danube,Lisbon Tagus,Toledo Tagus,
Cairo Nile,Luxor Nile,Baghdad Tigris,Mosul Tigris,Rome Tiber,Berlin Spree,Belgrade Sava,Dublin Liffey,
Moscow Moskva,Riga Daugava,Madrid Manzanares,Damascus Barada,Cologne Rhine,Basel Rhine,Dresden Elbe"""
TOWNS = (
    "Leeds Bristol York Bath Derby Exeter Lincoln Truro Oxford Durham Chester Ripon"
    " Wells Ely".split()
)
GOODS = "ovens shelves lamps trestles bags ladders scales signs".split()


def pairs(text: str) -> list[list[str]]:
    return [line.split() for line in text.split(",")]


def corpus() -> list[Document | Table]:
    customers = [
        [f"C{i + 41:03d}", f"{town} Stores", town] for i, town in enumerate(TOWNS)
    ]
    orders = [
        [f"A-{1000 + i}", f"C{i * 5 % 14 + 41:03d}", GOODS[i % 8], str(i % 4 + 1)]
        for i in range(42)
    ]
    return [
        Table(
            ["Country", "Capital"], pairs(CAPITALS), id="capitals", title="Countries"
        ),
        Table(["City", "River"], pairs(RIVERS), id="rivers", title="Cities on rivers"),
        Table(
            ["Customer", "Company", "Town"],
            customers,
            id="customers",
            title="Customers",
        ),
        Table(
            ["Order", "Ordered by", "Goods", "Quantity"],
            orders,
            id="orders",
            title="Orders",
        ),
        Document(
            "Poland and Latvia lie on its shore, and many a river flows into it.",
            title="Baltic Sea",
        ),
        Document(
            "Capitals of Europe rebuilt theirs after the war; a river is spanned every"
            " mile.",
            title="Bridges",
        ),
        Document(
            "A company pays for the goods that it ordered within a month.",
            title="Terms of trade",
        ),
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
        found = (
            SageGraph.build(corpus(), encoder=None, settings=settings)
            .retriever()
            .retrieve(question, k=2)
            .hits
        )
        shown = [hit for hit in found if hit.id.startswith(table)]
        return [
            hit
            for hit in shown
            if row in [cells[0] for cells in hit.node.properties["table_rows"]]
        ]

    (hit,) = hits()
    (join,) = [evidence for evidence in hit.evidence if evidence.relation == JOINS]
    assert (join.properties["name"], join.properties["columns"]) == (row, columns)
    assert not hits(join_weight=0)


def rows(
    id_: str, header: str, *cells: str, name: str = "", source: str | None = None
) -> Node:
    """A table whose header and rows are written with ``|`` between the cells."""
    properties = {
        "table_header": header.split("|"),
        "table_rows": [row.split("|") for row in cells],
    }
    return Node(
        id_,
        ("Table",),
        name or id_,
        properties=properties | ({"source_id": source} if source else {}),
    )


def joins(*nodes: Node) -> list[Edge]:
    table = NodeTable.of(nodes)
    return list(join_links(table).edges(table.ids))


@pytest.mark.parametrize(
    ("left", "right", "linked"),
    [
        (
            ("Order|Customer", "A-1|C041", "A-2|C041", "A-3|C042"),
            ("No.|Name", "C041|Ann", "C042|Bob"),
            3,
        ),
        (
            ("Film|Star", "Dawn|Ann Ames", "Dusk|Bob Bates"),
            ("Actor|Born", "ann ames|1970", "BOB BATES|1980"),
            2,
        ),
        (
            ("order_id|customer_id", "1|17", "2|17", "3|18"),
            ("customer_id|name", "17|Ann", "18|Bob"),
            3,
        ),
        (("id|customerId", "1|17", "2|17", "3|18"), ("id|name", "17|Ann", "18|Bob"), 3),
        (
            ("id|customer_id", "1|17.0", "2|", "3|18.0"),
            ("id|name", "17|Ann", "18|Bob"),
            2,
        ),
        (
            ("id|supplier_id", "1|17", "2|17", "3|18"),
            ("id|name", "17|Ann", "18|Bob"),
            0,
        ),  # ids of something else
        (
            ("id|item", "17|oven", "18|lamp"),
            ("id|name", "17|Ann", "18|Bob"),
            0,
        ),  # of what its own table has
        (
            ("Year|Film", "1970|Dawn", "1971|Dusk"),
            ("Year|Song", "1970|Rain", "1971|Snow"),
            0,
        ),
        (
            ("Rank|Team", "1st|Reds", "2nd|Blues"),
            ("Rank|Club", "1st|Owls", "2nd|Bats"),
            0,
        ),
        (
            ("Team|Colour", "Reds|red", "Red Sox|red", "Owls|red"),
            ("Car|Paint", "Beetle|red", "Mini|red"),
            0,
        ),  # no key
        (
            ("Team|City", "Reds|Leeds", "Owls|Bath"),
            ("City|River", "Leeds|Aire", "Rome|Tiber"),
            0,
        ),  # one value
        (("Word|Note", "|", "|"), ("Word|Note", "|", "|"), 0),
        (
            ("Item|Note", f"oven|{'very ' * 20}hot", f"lamp|{'very ' * 20}bright"),
            ("Thing|Note", f"kiln|{'very ' * 20}hot", f"sun|{'very ' * 20}bright"),
            0,
        ),
    ],
)
def test_rows_join_by_a_key(
    left: Sequence[str], right: Sequence[str], linked: int
) -> None:
    assert (
        len(joins(rows("orders", *left), rows("t", *right, name="Customers"))) == linked
    )
    assert (
        len(joins(rows("orders", *left), rows("a", *right, name="Customers"))) == linked
    )  # in whichever order


def test_the_edge_leads_from_the_row_that_refers_to_the_row_whose_key_it_is() -> None:
    orders = rows("z", "Order|By", "A-1|C041", "A-2|C042", "A-3|C042")
    joined = joins(orders, rows("b", "Customer|Name", "C042|Bob", "C041|Ann"))
    endpoints = [
        (e.source, e.properties["source_row"], e.target, e.properties["target_row"])
        for e in joined
    ]
    assert endpoints == [("z", 0, "b", 1), ("z", 1, "b", 0), ("z", 2, "b", 0)]
    assert joined[0].properties["columns"] == [["By", "Customer"]]


@pytest.mark.parametrize("size", [1, 2])
def test_however_a_table_is_cut_its_rows_join_another_and_never_each_other(
    size: int,
) -> None:
    """Loaders make one document of each row."""

    def cut(source: str, header: str, cells: Sequence[str]) -> list[Node]:
        parts = [cells[i : i + size] for i in range(0, len(cells), size)]
        return [
            rows(f"{source}#{i}", header, *part, source=source)
            for i, part in enumerate(parts)
        ]

    cities = cut(
        "cities", "City|Twin", ["Leeds|Lille", "Lille|Leeds", "Bath|Aix", "Aix|Bath"]
    )
    joined = joins(
        *cities,
        *cut(
            "rivers",
            "Town|River",
            ["Leeds|Aire", "Bath|Avon", "Lille|Deûle", "Aix|Arc"],
        ),
    )
    assert {(e.source.split("#")[0], e.target.split("#")[0]) for e in joined} == {
        ("cities", "rivers")
    }
    assert len(joined) == 8


def test_a_value_that_many_key_columns_have_says_nothing() -> None:
    tables = [
        rows(f"t{i}", f"Land|Note {i}", f"Chad|{i} a", f"Mali|{i} b")
        for i in range(MAX_JOINS + 1)
    ]
    assert len(joins(*tables[1:])) == 2 * 3
    assert joins(*tables) == []


def test_a_row_leads_to_no_more_rows_than_three_the_rarest_values_first() -> None:
    many = rows(
        "a", "P|Q|R|S", "Ann|Oslo|Fiat|Hull", "Bob|Rome|Saab|Hull", "Cay|Rome|Fiat|Bath"
    )
    keys = [
        rows("b", "Person|Age", "Ann|3", "Bob|4"),
        rows("c", "City|Land", "Oslo|Norway", "Rome|Italy"),
        rows("d", "Car|Doors", "Fiat|3", "Saab|5"),
        rows("e", "Town|River", "Hull|Humber", "Bath|Avon"),
    ]
    joined_rows = sorted(
        (e.properties["source_row"], e.properties["name"]) for e in joins(many, *keys)
    )
    names_by_row = (
        ["Ann", "Fiat", "Oslo"],
        ["Bob", "Rome", "Saab"],
        ["Bath", "Fiat", "Rome"],
    )
    assert joined_rows == [
        (row, name) for row, names in enumerate(names_by_row) for name in names
    ]
