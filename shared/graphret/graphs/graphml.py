"""GraphML: a graph as XML, for Gephi, yEd, Cytoscape, igraph, networkx."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from graphret._checked import require_properties
from graphret.errors import InvalidInput
from graphret.graphs.kinds import Kinds, kind_of, plain_text
from graphret.graphs.rows import json_text
from graphret.graphs.writing import Exported, Progress, no_progress, replacing
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node

_TYPES = {"string": "string", "integer": "long", "float": "double", "boolean": "boolean"}
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_NODE_FIELDS = ("label", "labels", "name", "text")
_EDGE_FIELDS = ("relation", "weight")
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(store: GraphStore, path: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as GraphML.

    A node has the keys ``label`` (its primary label), ``labels`` (all of them, as JSON), ``name`` and ``text``, an edge
    ``relation`` and ``weight``; both have one for each property. A property of one of these names is written as
    ``properties.name``. Lists, maps and properties of several types are JSON in a string. Characters that XML forbids
    become U+FFFD; `Exported.replaced` says in how many values.

    Parameters
    ----------
    store
        The graph; it is gone through twice, in blocks.
    path
        The file, written beside what is there and put in its place when it is whole.

    Raises
    ------
    InvalidInput
        If an id holds a character that XML forbids, or the file cannot be written.
    """
    path = Path(path)
    nodes, edges = Kinds(), Kinds()
    for node_block in store.nodes():
        nodes.observe(node.properties for node in node_block)
    for edge_block in store.edges():
        edges.observe(edge.properties for edge in edge_block)
    writer = _Writer(nodes, edges)
    with replacing(path) as file:
        writer.write(file, store, progress)
    return Exported([path], writer.nodes, writer.edges, writer.replaced)


class _Writer:
    def __init__(self, nodes: Kinds, edges: Kinds) -> None:
        self.nodes = self.edges = self.replaced = 0
        self._keys: list[str] = []
        self._of_nodes = self._declare("node", [*_NODE_FIELDS, *nodes], nodes, _NODE_FIELDS)
        self._of_edges = self._declare("edge", [*_EDGE_FIELDS, *edges], edges, _EDGE_FIELDS)

    def _declare(
        self, domain: str, names: list[str], kinds: Kinds, own: tuple[str, ...]
    ) -> dict[tuple[str, bool], tuple[str, str]]:
        """Give every field and property a key; returns its id and its kind."""
        declared: dict[tuple[str, bool], tuple[str, str]] = {}
        for i, name in enumerate(names):
            is_own = i < len(own)
            kind = ("float" if name == "weight" else "string") if is_own else kinds.single(name)
            shown = f"properties.{name}" if not is_own and name in own else name
            key = f"{domain[0]}{i}"
            declared[name, is_own] = key, kind
            about = f'attr.name={quoteattr(self._clean(shown))} attr.type="{_TYPES[kind]}"'
            self._keys.append(f'<key id="{key}" for="{domain}" {about}/>\n')
        return declared

    def write(self, file: IO[str], store: GraphStore, progress: Progress) -> None:
        total = sum(store.count())
        file.write(_HEAD)
        file.writelines(self._keys)
        file.write('<graph id="G" edgedefault="directed">\n')
        for node_block in store.nodes():
            file.writelines(self._node(node) for node in node_block)
            self.nodes += len(node_block)
            progress("write", self.nodes, total)
        for edge_block in store.edges():
            file.writelines(self._edge(edge) for edge in edge_block)
            progress("write", self.nodes + self.edges, total)
        file.write("</graph>\n</graphml>\n")

    def _node(self, node: Node) -> str:
        own = {"label": node.label, "labels": json_text(list(node.labels)), "name": node.name, "text": node.text}
        try:
            data = "".join(self._data(self._of_nodes, own, node.properties))
        except ValueError:
            require_properties(node.properties, f"node {node.id!r}")
            raise
        return f"<node id={self._id(node.id)}>{data}</node>\n"

    def _edge(self, edge: Edge) -> str:
        own = {"relation": edge.relation, "weight": edge.weight}
        try:
            data = "".join(self._data(self._of_edges, own, edge.properties))
        except ValueError:
            require_properties(edge.properties, f"edge {edge.source!r} to {edge.target!r}")
            raise
        self.edges += 1
        ends = f"source={self._id(edge.source)} target={self._id(edge.target)}"
        return f'<edge id="e{self.edges - 1}" {ends}>{data}</edge>\n'

    def _data(
        self, keys: Mapping[tuple[str, bool], tuple[str, str]], own: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> Iterator[str]:
        for fields, is_own in ((own, True), (properties, False)):
            for name, value in fields.items():
                if value is None or (is_own and value == ""):
                    continue
                key, kind = keys[name, is_own]
                yield f'<data key="{key}">{escape(self._clean(_text(value, kind)), {chr(13): "&#13;"})}</data>'

    def _clean(self, text: str) -> str:
        if not _ILLEGAL.search(text):
            return text
        self.replaced += 1
        return _ILLEGAL.sub("\ufffd", text)

    def _id(self, node_id: str) -> str:
        if _ILLEGAL.search(node_id):
            raise InvalidInput(f"node {node_id!r}: the id holds a character that XML forbids")
        return quoteattr(node_id)


def _text(value: Any, kind: str) -> str:
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "float" and kind_of(value) == "integer":
        return repr(float(value))
    return plain_text(value)
