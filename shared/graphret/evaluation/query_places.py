"""Where the names of a query stand, read from its tokens alone.

The seeded mistakes of `graphret.evaluation.mutations` are placed by this reading and not by the guard's own, so
that what the guard misreads is not left out of what it is asked to find.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphret.cypher.tokens import END, Token, tokenise

_AFTER_AN_ITEM = frozenset(("AS", "ORDER", "SKIP", "LIMIT", "WHERE", "ASC", "DESC"))
_FUNCTIONS = frozenset(("COUNT", "COLLECT", "SIZE", "LABELS", "ID", "PROPERTIES"))
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_CLOSERS.values())


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node in a pattern: its variable, its labels and the keys of its map.

    `plain` where it has one label and no operator.
    """

    variable: Token | None
    labels: tuple[Token, ...]
    keys: tuple[Token, ...]
    plain: bool


@dataclass(frozen=True, slots=True)
class RelationPlace:
    """A relationship between two nodes of a pattern.

    `before` and `after` are its dashes; `direction` is ``out``, ``in`` or ``both``; `hops` whether it may repeat.
    """

    variable: Token | None
    types: tuple[Token, ...]
    direction: str
    hops: bool
    before: Token
    after: Token
    left: NodePlace
    right: NodePlace


@dataclass(slots=True)
class Places:
    """What a query names, and where.

    Parameters
    ----------
    pieces
        Its tokens.
    nodes, relations
        The nodes and relationships of its patterns.
    uses
        For each variable the places where an expression reads it, as in ``n.name``, ``RETURN n`` and ``count(n)``.
    properties
        Pairs of a variable and the property that is read from it, as in ``n.name``.
    aliases
        The names that ``AS`` gives.
    """

    pieces: list[Token]
    nodes: list[NodePlace] = field(default_factory=list)
    relations: list[RelationPlace] = field(default_factory=list)
    uses: dict[str, list[Token]] = field(default_factory=lambda: defaultdict(list))
    properties: list[tuple[Token, Token]] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)

    def declared(self) -> dict[str, list[Token]]:
        """For each variable of the patterns that `AS` does not name as well, where patterns have it."""
        found: dict[str, list[Token]] = defaultdict(list)
        for node in self.nodes:
            if node.variable is not None and node.variable.name not in self.aliases:
                found[node.variable.name].append(node.variable)
        for relation in self.relations:
            if relation.variable is not None and relation.variable.name not in self.aliases:
                found[relation.variable.name].append(relation.variable)
        return found

    def label_of(self) -> dict[str, str]:
        """The label of each node variable that has exactly one in the whole query."""
        names: dict[str, set[str]] = defaultdict(set)
        doubtful = set(self.aliases)
        doubtful |= {r.variable.name for r in self.relations if r.variable is not None}
        for node in self.nodes:
            if node.variable is not None:
                names[node.variable.name] |= {label.name for label in node.labels}
                if node.labels and not node.plain:
                    doubtful.add(node.variable.name)
        return {name: min(labels) for name, labels in names.items() if len(labels) == 1 and name not in doubtful}


def places_of(query: str) -> Places:
    """Read a query. Raises `graphret.cypher.tokens.Unreadable` where its text cannot be cut in one way."""
    pieces = tokenise(query)
    places = Places(pieces)
    closing = _matching(pieces)
    opening = {end: start for start, end in closing.items()}
    nodes: dict[int, NodePlace] = {}
    for i in _node_starts(pieces, closing):
        nodes[i] = _node(pieces, i, closing[i])
        places.nodes.append(nodes[i])
    for i, piece in enumerate(pieces):
        if piece.operator == "[" and i in closing:
            relation = _relation(pieces, i, closing[i], closing, opening, nodes)
            if relation is not None:
                places.relations.append(relation)
        if not piece.name or i == 0:
            continue
        before, after = pieces[i - 1], pieces[i + 1]
        if before.word == "AS":
            places.aliases.add(piece.name)
        elif after.operator == "." and before.operator not in (".", ":", "$") and pieces[i + 2].name:
            places.uses[piece.name].append(piece)
            if pieces[i + 3].operator != "(":
                places.properties.append((piece, pieces[i + 2]))
        elif _is_read(pieces, i):
            places.uses[piece.name].append(piece)
    return places


def _is_read(pieces: list[Token], i: int) -> bool:
    """Whether a name stands alone in an expression: as an item of ``RETURN``, or as what a function is given."""
    before, after = pieces[i - 1], pieces[i + 1]
    if before.word in ("RETURN", "WITH", "DISTINCT", "BY"):
        return after.kind == END or after.operator == "," or after.word in _AFTER_AN_ITEM
    return before.operator == "(" and after.operator == ")" and pieces[i - 2].word in _FUNCTIONS


def _matching(pieces: list[Token]) -> dict[int, int]:
    """For each opening bracket the place of its closing one."""
    stack: list[int] = []
    found: dict[int, int] = {}
    for i, piece in enumerate(pieces):
        if piece.operator in _CLOSERS:
            stack.append(i)
        elif piece.operator in _CLOSING and stack and _CLOSERS[pieces[stack[-1]].text] == piece.text:
            found[stack.pop()] = i
    return found


def _node_starts(pieces: list[Token], closing: dict[int, int]) -> Iterator[int]:
    """Brackets that hold a node: those with a label, and those at a relationship or at the head of a pattern."""
    for i, end in closing.items():
        if pieces[i].operator != "(":
            continue
        first = i + 1 + bool(pieces[i + 1].name)
        if pieces[first].operator == ":" or (
            (pieces[first].operator in (")", "{") or pieces[first].word == "WHERE")
            and not (i and pieces[i - 1].name and pieces[i - 1].word != "MATCH")
            and (_joins(pieces, end + 1) or _joined(pieces, i - 1) or (i and pieces[i - 1].word == "MATCH"))
        ):
            yield i


def _joins(pieces: list[Token], i: int) -> bool:
    """Whether a relationship follows: ``-[``, ``<-[``, ``--``, ``<--``."""
    i += pieces[i].operator == "<"
    return pieces[i].operator == "-" and pieces[i + 1].operator in ("[", "-")


def _joined(pieces: list[Token], i: int) -> bool:
    """Whether a relationship comes before: ``]-``, ``]->``, ``--``, ``-->``."""
    i -= i > 0 and pieces[i].operator == ">"
    return i > 0 and pieces[i].operator == "-" and pieces[i - 1].operator in ("]", "-")


def _node(pieces: list[Token], start: int, end: int) -> NodePlace:
    i = start + 1
    variable = pieces[i] if pieces[i].name and pieces[i].word != "WHERE" else None
    i += variable is not None
    labels: list[Token] = []
    plain = True
    while i < end and (pieces[i].operator in (":", "&", "|", "!") or (pieces[i].name and pieces[i].word != "WHERE")):
        if pieces[i].name:
            labels.append(pieces[i])
        elif pieces[i].operator != ":":
            plain = False
        i += 1
    keys = [pieces[j] for j in range(i + 1, end) if pieces[i].operator == "{" and _is_key(pieces, i, j)]
    return NodePlace(variable, tuple(labels), tuple(keys), plain and len(labels) == 1)


def _is_key(pieces: list[Token], start: int, i: int) -> bool:
    """Whether a name is a key of the map that begins at `start`, and of none within it."""
    depth = 0
    for piece in pieces[start:i]:
        depth += (piece.operator in _CLOSERS) - (piece.operator in _CLOSING)
    return (
        depth == 1 and bool(pieces[i].name) and pieces[i - 1].operator in ("{", ",") and pieces[i + 1].operator == ":"
    )


def _relation(
    pieces: list[Token],
    start: int,
    end: int,
    closing: dict[int, int],
    opening: dict[int, int],
    nodes: dict[int, NodePlace],
) -> RelationPlace | None:
    """The relationship within square brackets, or `None` where they hold a list, or its ends are no plain nodes."""
    if start < 2 or not (pieces[start - 1].operator == "-" and pieces[end + 1].operator == "-"):
        return None
    comes, goes = pieces[start - 2].operator == "<", pieces[end + 2].operator == ">"
    left, right = opening.get(start - 2 - comes), end + 2 + goes
    if left is None or left not in nodes or right not in nodes:
        return None
    i = start + 1
    variable = pieces[i] if pieces[i].name else None
    i += variable is not None
    types: list[Token] = []
    while i < end and (pieces[i].operator in (":", "|") or pieces[i].name):
        if pieces[i].name:
            types.append(pieces[i])
        i += 1
    direction = "both" if comes == goes else "out" if goes else "in"
    hops = not (i == end or pieces[i].operator == "{" or pieces[i].word == "WHERE")
    return RelationPlace(
        variable, tuple(types), direction, hops, pieces[start - 1], pieces[end + 1], nodes[left], nodes[right]
    )
