"""The part of the contract of graph stores on values: what is written comes back, or is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.stores.base import CypherStore, GraphStore
from graphret.testing.graphs import HOSTILE, TEXTS, VALUES, all_edges, all_nodes, edge_key
from graphret.types import Edge, Node
from graphret.where import Where


def _quoted(store: CypherStore, name: str | None) -> str:
    """Return a name as Cypher writes it; Neo4j's replaces Unicode escapes first."""
    assert name is not None
    if store.dialect == "neo4j":
        name = name.replace("\\", "\\u005c")
    return "`" + name.replace("`", "``") + "`"


def _without_null(item: Any) -> Any:
    return replace(item, properties={name: value for name, value in item.properties.items() if value is not None})


#: Hostile names are tried in so many parts, since a database plans every query anew that has another name in its text.
_PARTS = 2


class StoreValues:
    """Values, weights, texts and names in every `GraphStore`; part of `GraphStoreSuite`."""

    def test_values_come_back_as_they_were(self, store: GraphStore) -> None:
        """Each under a name of its own, since a database may have one type for a name."""
        values = [{f"value {i}": VALUES[name]} for i, name in enumerate(VALUES)]
        nodes = [Node(name, ("Thing",), name, "", value) for name, value in zip(VALUES, values, strict=True)]
        edges = [Edge(node.id, "OWNS", node.id, 0.25, node.properties) for node in nodes]
        store.upsert(nodes, edges)
        found = store.get(list(VALUES))
        assert found == nodes
        assert all_edges(store) == sorted(edges, key=edge_key)
        kinds = [
            [type(value) for node in some if node for value in node.properties.values()] for some in (found, nodes)
        ]
        assert kinds[0] == kinds[1]  # True equals 1, and 3.0 equals 3

    def test_null_is_no_value(self, store: GraphStore) -> None:
        """A condition takes it for absent, a schema does not see it, and a database may leave it out."""
        nodes = [
            Node("a", ("Thing",), properties={"x": None, "y": 1}),
            Node("b", ("Thing",), properties={"y": 2}),
            Node("c", ("Thing",), properties={"x": 3, "z": None}),
        ]
        store.upsert(nodes, [Edge("a", "R", "b", 1.0, {"p": None, "q": 0.0})])
        assert [_without_null(node) for node in all_nodes(store)] == [_without_null(node) for node in nodes]
        for condition in ({"x": None}, {"x": {"$ne": 3}}, {"x": {"$exists": True}}, {"z": {"$exists": True}}):
            where = Where.parse(condition)
            assert where is not None
            assert [n.id for n in all_nodes(store, where=condition)] == [n.id for n in nodes if where.matches(n)]
        schema = store.schema()
        assert schema.properties["Thing"]["x"].coverage == pytest.approx(1 / 3)
        assert "z" not in schema.properties["Thing"]

    @pytest.mark.parametrize("value", [{"a": {"b": [1, None]}}, [[1, 2], [3]], [1, "two"]], ids=repr)
    def test_nested_values_come_back_or_are_refused_by_name(self, store: GraphStore, value: Any) -> None:
        node = Node("deep", ("Thing",), properties={"nested": value})
        try:
            store.upsert([node])
        except InvalidInput:
            with pytest.raises(InvalidInput, match=r"(?s)deep.*nested"):
                store.upsert([Node("plain", ("Thing",)), node])
            assert store.count() == (0, 0)
        else:
            assert store.get(["deep"]) == [node]

    @pytest.mark.parametrize("names", [HOSTILE[i::_PARTS] for i in range(_PARTS)], ids=range(_PARTS))
    def test_hostile_names_are_only_names(self, store: GraphStore, names: list[str]) -> None:
        """As id, name, text and value they are kept; as label, relation or property kept or refused, never obeyed.

        A schema has the names that nodes and edges bear, and says what a query calls those that it calls otherwise.
        """
        canary = Node("canary", ("Canary",))
        texts = [*names, *TEXTS]
        data = [Node(name, ("Thing",), name, name, {"value": name, "list": [name]}) for name in texts]
        sees = [Edge("canary", "SEES", name, 1.0, {"value": name}) for name in texts]
        store.upsert([canary, *data], sees)
        assert store.get([*texts, "canary"]) == [*data, canary]
        assert all_edges(store) == sorted(sees, key=edge_key)
        for name in texts:
            assert [n.id for n in all_nodes(store, where={"name": name})] == [name]
            assert [e.target for e in store.neighbors(["canary"], where={"value": name})] == [name]
            assert [n.id for n in all_nodes(store, where={"list": {"$contains": name}})] == [name]
        assert store.neighbors(["canary"], relations=names) == []
        assert store.neighbors(["canary"], labels=names) == []
        assert all_nodes(store, where={"$or": [{f"properties.{name}": i} for i, name in enumerate(names)]}) == []
        store.delete(texts)
        assert store.count() == (1, 0)
        odd: dict[str, tuple[Node, Edge]] = {}
        for i, name in enumerate(names):
            node = Node(f"odd-{i}", (name,), properties={name: i})
            try:
                store.upsert([node], [Edge(node.id, name, "canary", 1.0, {name: -i})])
            except InvalidInput:
                continue
            odd[name] = node, Edge(node.id, name, "canary", 1.0, {name: -i})
        assert store.count() == (1 + len(odd), len(odd))
        assert store.get(["canary", *(node.id for node, _ in odd.values())]) == [canary, *(n for n, _ in odd.values())]
        for some in (list(odd)[:1], list(odd)[1:]):  # parts, so that a name that finds what bears another is seen
            if not some:
                continue
            edges = store.neighbors([node.id for node, _ in odd.values()], relations=some)
            assert sorted(edges, key=edge_key) == [odd[name][1] for name in some]
            either = {"$or": [{f"properties.{name}": odd[name][0].properties[name]} for name in some]}
            assert all_nodes(store, labels=some) == [odd[name][0] for name in some]
            assert all_nodes(store, labels=list(odd), where=either) == [odd[name][0] for name in some]
        schema = store.schema()
        for name, (node, edge) in odd.items():
            assert (schema.labels[name], schema.relations[name, name, "Canary"]) == (1, 1)
            if isinstance(store, CypherStore):
                label, relation = schema.cypher_labels.get(name, name), schema.cypher_relations.get(name, name)
                pattern = f"(n:{_quoted(store, label)})-[r:{_quoted(store, relation)}]->(:Canary)"
                assert store.query(f"MATCH {pattern} RETURN n.id, r").rows == [(node.id, edge)]

    def test_several_labels_keep_their_order(self, store: GraphStore) -> None:
        nodes = [Node("a", ("B", "A", "C")), Node("b", ("A", "B")), Node("c", ("C",))]
        store.upsert(nodes)
        assert store.get(["a", "b", "c"]) == nodes
        assert [n.id for n in all_nodes(store, labels=["B"])] == ["a", "b"]
