"""`NodeText`: how a node becomes text, for indexes, prompts and rerankers alike."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import PROPERTIES, Where

#: A field of a node: a text, or a list of texts that are its parts, such as the rows of
#: a table.
FieldText: TypeAlias = str | list[str]

#: Weights of fields in BM25F; a field that is not named weighs 1.
FIELD_WEIGHTS: Mapping[str, float] = {
    "title": 3.0,
    "section": 2.0,
    "header": 3.0,
    "rows": 3.0,
}
#: The field that holds the names of a node's neighbours.
NEIGHBORS = "neighbors"
#: The property that holds what else a node is called, unless another is named.
ALIASES = "aliases"
_OWN = frozenset(("title", "body", NEIGHBORS))
_BLOCK = 2_000  # nodes whose neighbours are read at once
#: Properties that frameworks keep for themselves, and what is longest of the others: a
#: value, a list, and a text without a space, such as a picture's bytes.
_UNSAID = frozenset(("embedding", "source_id", "triplet_source_id", "llama_index"))
_UNSAID_PREFIXES = ("_", "chunk_", "table_", "graphret")
_FIRST_WORDS = 8
_SAID_CHARS, _SAID_ITEMS, _WORD = 300, 20, 100


@dataclass(frozen=True)
class NodeText:
    """Turn nodes into weighted fields, and into one text.

    The fields are for lexical search, the text for encoders, prompts and rerankers.

    A table segment has the fields title, section, header, introduction and, part by
    part, rows; anything else has its name as the title and its text as the body, or its
    properties, ``key: value`` a line, where it has no text and `properties` names none.
    Properties named in `properties` become fields too, where a field of the node itself
    has the same name as ``properties.title`` and so on, and the names of neighbours,
    read from the store that `bound` gives, the field ``neighbors``.

    Parameters
    ----------
    weights
        Weight of each field in BM25F.
    properties
        Further properties to read, such as ``("brand", "category")``.
    max_chars
        Longest text that `text` returns; where it must cut, neighbours keep up to half
        of it.
    neighbors
        Names of neighbours a relation and direction, the heaviest edges first; the
        others are counted (``and 37 more``). 0 reads none.
    relations
        Which edges lead to neighbours, in either direction; `None` for all.
    only
        Keep only these fields; `None` keeps all.
    aliases
        The property that holds what else a node is called, for the field ``aliases``.
    source
        Where neighbours are looked up.
    max_edges
        Edges of a node that are read for its neighbours, the heaviest; `None` for all.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(FIELD_WEIGHTS))
    properties: Sequence[str] = ()
    max_chars: int = 4000
    neighbors: int = 0
    relations: Sequence[str] | None = None
    only: Sequence[str] | None = None
    aliases: str = ALIASES
    source: GraphStore | None = field(default=None, compare=False, repr=False)
    max_edges: int | None = None

    def __post_init__(self) -> None:
        for what in ("properties", "relations", "only"):
            names = getattr(self, what)
            if isinstance(names, str):
                raise InvalidInput(
                    f"{what}: expected a tuple of names, got the string {names!r}"
                )
            if names is not None:
                object.__setattr__(self, what, tuple(names))

    @classmethod
    def names(cls, aliases: str = ALIASES) -> NodeText:
        """Names alone: the name and the aliases, read from a property.

        Lexical search reads both, encoders only the name.
        """
        return cls(weights={}, only=("title", "aliases"), aliases=aliases)

    @classmethod
    def documents(
        cls,
        properties: Sequence[str] = (),
        *,
        neighbors: int = 5,
        relations: Sequence[str] | None = None,
        max_chars: int = 4000,
        aliases: str = ALIASES,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
    ) -> NodeText:
        """Whole documents: name, text, chosen properties and neighbours' names.

        The arguments are those of `NodeText`.
        """
        return cls(
            weights=dict(weights),
            properties=properties,
            max_chars=max_chars,
            neighbors=neighbors,
            relations=relations,
            aliases=aliases,
        )

    @classmethod
    def one_field(cls, name: str) -> NodeText:
        """One field alone: one that `fields` makes, or else a property.

        Among those that `fields` makes are ``title`` and ``body``.
        """
        return cls(weights={}, properties=(name,), only=(name,))

    @classmethod
    def relation(cls, name: str, *, neighbors: int = 20) -> NodeText:
        """The names of the neighbours by one relation alone."""
        return cls(
            weights={}, neighbors=neighbors, relations=(name,), only=(NEIGHBORS,)
        )

    # -- reading nodes

    def fields(self, node: Node) -> dict[str, FieldText]:
        """Return the fields of a node; those without text are left out.

        Raises what `all_fields` does.
        """
        return self.all_fields([node])[0]

    def text(self, node: Node) -> str:
        """Return the node as one text: its name, what it says, then its neighbours.

        Raises what `all_fields` does.
        """
        return self.all_texts([node])[0]

    def all_fields(self, nodes: Sequence[Node]) -> list[dict[str, FieldText]]:
        """Return the fields of a batch of nodes, with two reads of the store at most.

        An `InvalidInput` says that neighbours are to be read and no store is bound.
        """
        made = [self._own_fields(node) for node in nodes]
        for one, groups in zip(made, self._related(nodes), strict=False):
            if names := ", ".join(name for _, names, _ in groups for name in names):
                one[NEIGHBORS] = names
        return made

    def all_texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return the texts of a batch of nodes, with at most two reads of the store.

        It raises what `all_fields` raises.
        """
        made, most = [self._own_text(node) for node in nodes], self.max_chars
        for i, groups in enumerate(self._related(nodes)):
            own = made[i]
            tail = "\n".join(
                f"{relation}: {', '.join(names)}{self._more(more)}"
                for relation, names, more in groups
            )
            if len(own) + len(tail) + 1 > most:
                tail = tail[: max(most // 2, most - len(own) - 1)]
                own = own[: max(most - len(tail) - 1, 0)]
            made[i] = "\n".join(filter(None, (own, tail)))[:most]
        return made

    def _own_fields(self, node: Node) -> dict[str, FieldText]:
        properties = node.properties
        fields: dict[str, FieldText] = {
            "title": node.name,
            "aliases": _flat(properties.get(self.aliases)),
        }
        if "chunk_derived" in properties or "table_rows" in properties:
            fields["section"] = _flat(properties.get("section"))
        fields["body"] = node.text or self._described(node)
        if "table_rows" in properties:
            introduced = (
                properties.get(key)
                for key in ("introduction", "section_text", "column_descriptions")
            )
            fields["body"] = _flat(properties.get("table_context"))
            fields["header"] = _flat(properties.get("table_header"))
            fields["introduction"] = " ".join(map(_flat, introduced)).strip()
            fields["rows"] = [_flat(row) for row in properties["table_rows"]]
        taken = _OWN.union(fields) - {
            "section",
            ALIASES if self.aliases == ALIASES else "",
        }  # these are properties
        for name in self.properties:
            fields[PROPERTIES + name if name in taken else name] = _flat(
                properties.get(name)
            )
        return {
            name: text
            for name, text in fields.items()
            if text and (self.only is None or name in self.only)
        }

    def _own_text(self, node: Node) -> str:
        if self.only is not None:
            made = self._own_fields(node)
            parts = [
                _flat(made[name])
                for name in self.only
                if name in made and name != "aliases"
            ]
        else:
            title = "" if node.text.startswith(node.name) else node.name
            said = (
                (name, _flat(node.properties.get(name))) for name in self.properties
            )
            parts = [
                title,
                node.text or self._described(node),
                *(f"{name}: {value}" for name, value in said if value),
            ]
        return "\n".join(filter(None, parts))[: self.max_chars]

    def _more(self, more: int) -> str:
        """How many neighbours are not named, at least so where not all are read."""
        at_least = "" if self.max_edges is None else "+"
        return f", and {more}{at_least} more" if more else ""

    def _described(self, node: Node) -> str:
        """What a node without text says: its properties, unless some were chosen."""
        return "" if self.properties else described(node)

    # -- neighbours

    @property
    def reads_neighbors(self) -> bool:
        """Whether the text of a node depends on its neighbours."""
        return self.neighbors > 0 and (self.only is None or NEIGHBORS in self.only)

    def bound(self, store: GraphStore | None) -> NodeText:
        """Return this text with the store in which neighbours are looked up.

        A text that reads no neighbours is returned as it is.
        """
        return (
            self
            if store is None or not self.reads_neighbors
            else replace(self, source=store)
        )

    def view(self, where: Where) -> NodeText:
        """Return this text, with neighbours looked up in a view of its store."""
        return (
            self
            if self.source is None
            else replace(self, source=self.source.view(where))
        )

    def naming(self, ids: Sequence[str], where: Where) -> set[str]:
        """Return the nodes whose text may name a neighbour that satisfies `where`."""
        asked, found = set(ids), set()
        for start in range(0, len(ids) if self.reads_neighbors else 0, _BLOCK):
            block = ids[start : start + _BLOCK]
            for edge in self._store.neighbors(
                block, relations=self.relations, where=where
            ):
                found |= asked.intersection((edge.source, edge.target))
        return found

    @property
    def _store(self) -> GraphStore:
        if self.source is None:
            raise InvalidInput(
                "text: it reads the names of neighbours, and no store is bound:"
                " text.bound(store)"
            )
        return self.source

    def _related(
        self, nodes: Sequence[Node]
    ) -> Iterator[list[tuple[str, list[str], int]]]:
        """Yield for each node its neighbours by relation, ``r`` before ``r of``.

        Each relation comes with the names of neighbours, and how many more there are.
        """
        for start in range(0, len(nodes) if self.reads_neighbors else 0, _BLOCK):
            made: dict[str, list[tuple[str, list[str], int]]] = {
                node.id: [] for node in nodes[start : start + _BLOCK]
            }
            found: dict[tuple[str, bool, str], dict[str, float]] = defaultdict(dict)
            for edge in self._store.neighbors(
                list(made), relations=self.relations, limit=self.max_edges
            ):
                for incoming, (own, other) in enumerate(
                    ((edge.source, edge.target), (edge.target, edge.source))
                ):
                    if own in made and not (incoming and own == other):
                        weights = found[own, bool(incoming), edge.relation]
                        weights[other] = max(
                            edge.weight, weights.get(other, edge.weight)
                        )
            heaviest = {
                group: heapq.nsmallest(
                    self.neighbors, weights, key=lambda other: (-weights[other], other)
                )
                for group, weights in sorted(found.items())
            }
            wanted = list(dict.fromkeys(chain.from_iterable(heaviest.values())))
            there = zip(wanted, self._store.get(wanted) if wanted else [], strict=True)
            names = {
                other: other if node is None else _neighbor_name(node)
                for other, node in there
            }
            for (own, incoming, relation), others in heaviest.items():
                more = len(found[own, incoming, relation]) - len(others)
                made[own].append(
                    (
                        f"{relation} of" if incoming else relation,
                        [names[one] for one in others],
                        more,
                    )
                )
            yield from (made[node.id] for node in nodes[start : start + _BLOCK])

    def to_dict(self) -> dict[str, Any]:
        """The settings that are not the default, as they are saved with an index.

        The store is not among them and has to be bound again.
        """
        own, usual = vars(self), vars(NodeText())
        return {
            name: value
            for name, value in own.items()
            if value != usual[name] and name != "source"
        }


def require_texts(texts: Sequence[NodeText], nodes: Sequence[Node]) -> None:
    """Raise an `InvalidInput` if most of the given nodes say nothing.

    A node says something if any of `texts` reads something from it, its neighbours
    aside. The error names the properties that the nodes have.
    """
    if any(NEIGHBORS in (text.only or ()) for text in texts):
        return  # whose neighbours would have to be read
    own = [replace(text, neighbors=0) for text in texts]
    said = [any(text.fields(node) for text in own) for node in nodes]
    there = sorted({name for node in nodes for name in node.properties})
    if not there or 2 * sum(said) >= len(nodes):
        return  # of nodes that have nothing to read either, the ids may be words
    raise InvalidInput(
        f"text: expected nodes that say something, got {len(nodes) - sum(said)} of"
        f" {len(nodes)} without a name or a text; they have the properties"
        f" {', '.join(there)} (NodeText(properties=…), or name_property= and"
        " text_property= of the store)"
    )


def described(node: Node) -> str:
    """Return the properties of a node in words, ``key: value`` a line, by key.

    They are those of `said_properties`; the name and the text are shown elsewhere.
    """
    said = said_properties(node.properties, (node.name, node.text))
    return "\n".join(f"{name}: {_flat(said[name])[:_SAID_CHARS]}" for name in said)


def said_properties(
    properties: Mapping[str, Any], shown_elsewhere: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the properties of a node or an edge that tell a reader something, by key.

    Left out are values that are shown elsewhere, what frameworks keep for themselves,
    and values that say nothing: embeddings, pictures as text.
    """
    said = {}
    for name, value in sorted(properties.items()):
        told_elsewhere = is_kept_for_use(name) or value in shown_elsewhere
        if not told_elsewhere and _is_said(value):
            said[name] = value
    return said


def is_kept_for_use(name: str) -> bool:
    """Whether a property is what frameworks keep for themselves, and says nothing."""
    return name in _UNSAID or name.startswith(_UNSAID_PREFIXES)


def _neighbor_name(node: Node) -> str:
    """What a neighbour is called: a passage without a name by its first words."""
    if node.name or not node.text:
        return node.called
    said = node.text.split(maxsplit=_FIRST_WORDS)
    return " ".join(said[:_FIRST_WORDS]) + (" …" if len(said) > _FIRST_WORDS else "")


def _is_said(value: Any) -> bool:
    """Whether a value says something to a reader."""
    if isinstance(value, str):
        return bool(value.strip()) and (len(value) <= _WORD or " " in value)
    if isinstance(value, list | tuple):
        return 0 < len(value) <= _SAID_ITEMS and all(map(_is_said, value))
    return isinstance(value, bool | int | float)


def _flat(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_flat(item)}" for key, item in value.items())
    return " ".join(map(_flat, value)) if isinstance(value, Iterable) else str(value)
