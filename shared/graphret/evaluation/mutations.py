"""Seeded mistakes: each takes a right query and makes it wrong in one known way.

Each changes the query's own text at places that its tokens give. A mistake is made only where it is one for sure: a
direction is turned only where the schema has no such relation the other way, a variable is renamed only where the new
name is then read with nothing to define it, or the old one is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

from graphret.cypher.tokens import QUOTED_NAME, STRING, Token, Unreadable, tokenise
from graphret.evaluation.query_places import NodePlace, Places, RelationPlace, places_of
from graphret.schema import GraphSchema

Mutation = Callable[[str, Places, GraphSchema, Random], str | None]


def mutate(query: str, kind: str, schema: GraphSchema, rng: Random) -> str | None:
    """Return the query with one mistake of a kind, or `None` where it has no place for one.

    Parameters
    ----------
    query
        A query that is right.
    kind
        One of `MUTATIONS`.
    schema
        What is right and what is wrong.
    rng
        Chooses the place and the mistake.
    """
    try:
        places = places_of(query)
    except Unreadable:
        return None
    return MUTATIONS[kind](query, places, schema, rng)


def _replaced(query: str, piece: Token, text: str) -> str:
    return query[: piece.start] + text + query[piece.end :]


def _renamed(query: str, piece: Token, known: Collection[str], rng: Random) -> str | None:
    """The query with another name at a place: one that people and models write by mistake, and that is not known."""
    name = piece.value
    middle = len(name) // 2
    swapped = name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :] if middle else name
    wrong = [f"{name}s", name[:-1], name.swapcase(), swapped, f"has_{name}", f"{name}_id", name[0] + name]
    wrong = [text for text in wrong if text and text != name and text not in known]
    if not wrong:
        return None
    text = rng.choice(wrong)
    return _replaced(query, piece, f"`{text}`" if piece.kind == QUOTED_NAME else text)


def _turn(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    """Turn a relationship round, where the schema has none the other way."""
    labels = places.label_of()
    turned = [r for r in places.relations if _one_way(r, labels, schema)]
    if not turned:
        return None
    relation = rng.choice(turned)
    if relation.direction == "out":
        after = query[relation.after.end :].split(">", 1)[1]
        return f"{query[: relation.before.start]}<{query[relation.before.start : relation.after.end]}{after}"
    before = query[: relation.before.start].rsplit("<", 1)[0]
    return f"{before}{query[relation.before.start : relation.after.end]}>{query[relation.after.end :]}"


def _one_way(relation: RelationPlace, labels: dict[str, str], schema: GraphSchema) -> bool:
    if relation.direction == "both" or relation.hops or not relation.types:
        return False
    ends = [_label(relation.left, labels), _label(relation.right, labels)]
    source, target = ends if relation.direction == "out" else reversed(ends)
    if source is None and target is None:
        return False
    names = {piece.value for piece in relation.types}
    return _has(schema, source, names, target) and not _has(schema, target, names, source)


def _label(node: NodePlace, labels: dict[str, str]) -> str | None:
    if node.variable is not None:
        return labels.get(node.variable.name)
    return node.labels[0].name if node.plain else None


def _has(schema: GraphSchema, source: str | None, relations: set[str], target: str | None) -> bool:
    return any(r in relations and source in (None, s) and target in (None, t) for s, r, t in schema.relations)


def _rename_label(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    labels = [label for node in places.nodes for label in node.labels]
    return _renamed(query, rng.choice(labels), schema.labels, rng) if labels else None


def _rename_relation(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    types = [name for relation in places.relations for name in relation.types]
    return _renamed(query, rng.choice(types), schema.relation_names, rng) if types else None


def _rename_property(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    declared = places.declared()
    read = [name for owner, name in places.properties if owner.name in declared]
    read += [key for node in places.nodes for key in node.keys]
    return _renamed(query, rng.choice(read), _properties(schema), rng) if read else None


def _properties(schema: GraphSchema) -> set[str]:
    kinds = (*schema.properties.values(), *schema.relation_properties.values())
    return {name for properties in kinds for name in properties}


def _move_property(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    """Read from a node a property that the graph has, but not nodes of its label."""
    labels = places.label_of()
    known = sorted(_properties(schema))
    read = [(labels[owner.name], name) for owner, name in places.properties if owner.name in labels]
    read += [(label, key) for node in places.nodes if (label := _label(node, labels)) for key in node.keys]
    read = [(label, name) for label, name in read if name.name in schema.properties.get(label, ())]
    if not read:
        return None
    label, name = rng.choice(read)
    others = [other for other in known if other not in schema.properties[label] and other.isidentifier()]
    return _replaced(query, name, rng.choice(others)) if others else None


def _drop(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    """Leave out a bracket, or one quote of a string."""
    dropped = [p.start for p in places.pieces if p.operator in tuple("()[]{}")]
    for piece in places.pieces:
        if piece.kind == STRING:
            dropped += [at for at in (piece.start, piece.end - 1) if _never_ends(query[:at] + query[at + 1 :])]
    if not dropped:
        return None
    at = rng.choice(dropped)
    return query[:at] + query[at + 1 :]


def _never_ends(query: str) -> bool:
    try:
        tokenise(query)
    except Unreadable as problem:
        return "does not end" in problem.reason
    return False


def _rename_variable(query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    """Rename a variable once: where it is read, or where its only pattern has it while something reads it."""
    names = {piece.value for piece in places.pieces}
    chosen: list[Token] = []
    for name, patterns in places.declared().items():
        uses = places.uses.get(name, [])
        chosen += uses
        if len(patterns) == 1 and uses:
            chosen += patterns
    if not chosen:
        return None
    piece = rng.choice(chosen)
    new = rng.choice(
        [n for n in (f"{piece.value}1", f"{piece.value}{piece.value[0]}", f"my_{piece.value}") if n not in names]
    )
    return _replaced(query, piece, new)


_WRITES = (
    "{head}SET {variable}.name = 'x' {tail}",
    "{head}SET {variable}:{label} {tail}",
    "{head}SET {variable} += {{name: 'x'}} {tail}",
    "{head}set {variable}.name = null {tail}",
    "{head}REMOVE {variable}.name {tail}",
    "{head}DETACH DELETE {variable}",
    "{head}DELETE {variable}",
    "{head}CREATE (:{label}) {tail}",
    "{head}MERGE (:{label} {{name: 'x'}}) {tail}",
    "{head}FOREACH (i IN [1] | CREATE (:{label})) {tail}",
    "{head}CALL {{ CREATE (:{label}) }} {tail}",
    "{head}CALL apoc.create.node(['{label}'], {{}}) YIELD node {tail}",
    "CREATE (:{label}) WITH 1 AS one {head}{tail}",
    "{head}{tail} UNION CREATE (n:{label}) RETURN n",
    "{head}{tail}; CREATE (:{label})",
    "{head}{tail}; MATCH (n) DETACH DELETE n",
    "{head}/* */ CREATE /* */ (:{label}) {tail}",
    "{head}\\u0043REATE (:{label}) {tail}",
)
_ACCESSES = (
    "LOAD CSV FROM 'file:///etc/passwd' AS line {head}{tail}",
    "LOAD CSV WITH HEADERS FROM 'http://192.0.2.1/x.csv' AS line {head}{tail}",
    "load csv from 'https://example.org/x.csv' as line {head}{tail}",
    "{head}LOAD CSV FROM 'file:///x.csv' AS line {tail}",
    "{head}LOAD/**/CSV FROM 'ftp://example.org/x.csv' AS line {tail}",
    "{head}CALL {{ LOAD CSV FROM 'file:///x.csv' AS line RETURN count(*) AS lines }} {tail}",
    "{head}CALL apoc.load.json('http://192.0.2.1/') YIELD value {tail}",
    "{head}CALL apoc.load.csv('file:///x.csv') YIELD list {tail}",
    "{head}CALL apoc.export.csv.all('x.csv', {{}}) YIELD file {tail}",
    "{head}{tail} UNION ALL LOAD CSV FROM 'file:///x.csv' AS line RETURN line",
    "{head}{tail}; LOAD CSV FROM 'http://192.0.2.1/' AS line RETURN line",
    "\\u004cOAD CSV FROM 'file:///x.csv' AS line {head}{tail}",
)


def _add(templates: tuple[str, ...], query: str, places: Places, schema: GraphSchema, rng: Random) -> str | None:
    """Put a clause in: before the query, before its last RETURN, or after it."""
    returns = [piece.start for piece in places.pieces if piece.word == "RETURN"]
    declared = sorted(places.declared())
    if not returns or not declared:
        return None
    head, tail = query[: returns[-1]], query[returns[-1] :].rstrip("; \n")
    label = f"`{rng.choice(sorted(schema.labels))}`"
    return rng.choice(templates).format(head=head, tail=tail, variable=f"`{rng.choice(declared)}`", label=label)


#: The kinds of mistakes, by the name of their metric.
MUTATIONS: dict[str, Mutation] = {
    "direction": _turn,
    "label": _rename_label,
    "relation": _rename_relation,
    "property": _rename_property,
    "property_moved": _move_property,
    "bracket": _drop,
    "variable": _rename_variable,
    "write": lambda *given: _add(_WRITES, *given),
    "access": lambda *given: _add(_ACCESSES, *given),
}
