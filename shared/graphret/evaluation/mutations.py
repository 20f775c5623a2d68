"""Seeded mistakes: each takes a right query and makes it wrong in one known way.

A mistake is placed by patterns over the query's text and not by the guard's own
reading, so that what the guard misreads is not left out of what it is asked to find;
what the patterns do not cover (quoted names, paths of several hops) is left alone. It
is made only where it is one for sure: a direction is turned only where the schema has
no such relation the other way, a variable is renamed only where the new name is then
read with nothing to define it, or the old one is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from random import Random

from graphret.cypher.edits import NamePlace
from graphret.cypher.tokens import STRING, Unreadable, tokenise
from graphret.schema import GraphSchema


def _node(end: str) -> str:
    """The pattern of a node; its groups are named after `end`."""
    return rf"\(\s*(?P<{end}>\w+)?\s*(?P<{end}_labels>:[\w\s:&|!]+)?(?P<{end}_map>\{{[^{{}}]*\}})?\s*\)"


_NODE = re.compile(rf"(?<![\w`.]){_node('node')}")
_RELATION = re.compile(
    rf"{_node('left')}\s*(?P<into><)?-\[\s*(?P<variable>\w+)?\s*(?P<types>:[\w\s:|]+)?(?:\{{[^{{}}]*\}})?\s*\]-(?P<out>>)?"
    rf"\s*(?={_node('right')})"
)
_WORD = re.compile(r"\w+")
_KEY = re.compile(r"[{,]\s*(\w+)\s*:")
_READ = re.compile(r"(?<![\w`.:$])([^\W\d]\w*)\.([^\W\d]\w*)\b(?!\s*[(.])")
_ALONE = re.compile(
    r"(?:\b(?:RETURN|WITH|DISTINCT|BY)\s+|\b(?:COUNT|COLLECT|SIZE|LABELS|ID|PROPERTIES)\(\s*)([^\W\d]\w*)\b"
    r"(?=\s*(?:,|\)|$|(?:AS|ORDER|SKIP|LIMIT|WHERE|ASC|DESC)\b))",
    re.IGNORECASE,
)
_ALIAS = re.compile(r"\bAS\s+(\w+)", re.IGNORECASE)
_RETURN = re.compile(r"\bRETURN\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QueryNames:
    """What a query names, and where: `text` is the query with its strings blanked.

    `variables` has for each variable of a pattern, but those that `AS` names too, where
    patterns have it; `labels` the label of each that has exactly one in the whole
    query; `reads` pairs of a variable and the property read from it.
    """

    query: str
    text: str
    nodes: list[re.Match[str]]
    relations: list[re.Match[str]]
    variables: dict[str, list[NamePlace]]
    labels: dict[str, str]
    reads: list[tuple[NamePlace, NamePlace]]

    def with_(self, place: NamePlace, text: str) -> str:
        return self.query[: place.start] + text + self.query[place.end :]

    def label(self, match: re.Match[str], end: str) -> str | None:
        return (
            self.labels.get(match[end]) if match[end] else _only(match[f"{end}_labels"])
        )

    def places(self, matches: Iterable[re.Match[str]], group: str) -> list[NamePlace]:
        """The labels or types that a group of patterns holds."""
        words = (
            word
            for match in matches
            if match[group]
            for word in _WORD.finditer(self.text, *match.span(group))
        )
        return [_place(word, 0) for word in words]

    def map_keys(self) -> list[tuple[str | None, NamePlace]]:
        """The keys of the maps of nodes, each with the label of its node if that has one."""
        keys = (
            (node, key)
            for node in self.nodes
            for key in _KEY.finditer(self.text, *node.span("node_map"))
        )
        return [(self.label(node, "node"), _place(key, 1)) for node, key in keys]


def mutate(query: str, kind: str, schema: GraphSchema, rng: Random) -> str | None:
    """Return a right query with one mistake of `MUTATIONS`; `None` if there is no place.

    The schema says what is right and what is wrong; `rng` chooses the place and the
    mistake.
    """
    try:
        return MUTATIONS[kind](_reading(query), schema, rng)
    except Unreadable:
        return None


def _reading(query: str) -> QueryNames:
    text = query
    for token in tokenise(query):
        if token.kind == STRING:
            text = (
                text[: token.start]
                + "'"
                + " " * (token.end - token.start - 2)
                + "'"
                + text[token.end :]
            )
    if "//" in text or "/*" in text:
        raise Unreadable("comments may hold anything", 0, len(text))
    relations = list(_RELATION.finditer(text))
    matched = re.compile(r"\bMATCH\s*$", re.IGNORECASE)
    nodes = [
        node
        for node in _NODE.finditer(text)
        if node["node_labels"]
        or node["node_map"]
        or matched.search(text[: node.start()])
    ]
    aliases = set(_ALIAS.findall(text))
    relation_groups = [
        (match, end) for match in relations for end in ("left", "variable", "right")
    ]
    variables: dict[str, list[NamePlace]] = {}
    labels: dict[str, set[str]] = {}
    for match, end in [*((node, "node") for node in nodes), *relation_groups]:
        name, place = match[end], _place(match, end)
        if name and name not in aliases and place not in variables.setdefault(name, []):
            variables[name].append(place)
            if end == "variable":
                labels[name] = {""}
            elif label_text := match[f"{end}_labels"]:
                labels.setdefault(name, set()).add(_only(label_text) or "")
    single_labels = {
        name: min(label_text)
        for name, label_text in labels.items()
        if len(label_text) == 1 and "" not in label_text
    }
    reads = [(_place(match, 1), _place(match, 2)) for match in _READ.finditer(text)]
    return QueryNames(query, text, nodes, relations, variables, single_labels, reads)


def _place(match: re.Match[str], group: str | int) -> NamePlace:
    return NamePlace(match[group], *match.span(group))


def _only(labels: str | None) -> str | None:
    """The label where a node has one, and no operator."""
    return (
        match[1] if (match := re.fullmatch(r"\s*:\s*(\w+)\s*", labels or "")) else None
    )


def _rename(
    read: QueryNames, places: list[NamePlace], known_names: Collection[str], rng: Random
) -> str | None:
    """Rename something at one place to an unknown name, as people and models do."""
    if not places:
        return None
    place = rng.choice(places)
    name, middle = place.name, len(place.name) // 2
    swapped = (
        name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :]
        if middle
        else name
    )
    wrong = [
        f"{name}s",
        name[:-1],
        name.swapcase(),
        swapped,
        f"has_{name}",
        f"{name}_id",
        name[0] + name,
    ]
    wrong = [
        text for text in wrong if text and text != name and text not in known_names
    ]
    return read.with_(place, rng.choice(wrong)) if wrong else None


def _turn(read: QueryNames, schema: GraphSchema, rng: Random) -> str | None:
    """Turn a relationship round, where the schema has none the other way."""
    turned = [
        relation for relation in read.relations if _one_way(read, relation, schema)
    ]
    if not turned:
        return None
    relation = rng.choice(turned)
    if relation["out"]:
        dash = read.text.rindex("-[", 0, relation.start("out"))
        return f"{read.query[:dash]}<{read.query[dash : relation.start('out')]}{read.query[relation.end('out') :]}"
    dash = read.text.index("]-", relation.end("into")) + 2
    return f"{read.query[: relation.start('into')]}{read.query[relation.end('into') : dash]}>{read.query[dash:]}"


def _one_way(read: QueryNames, relation: re.Match[str], schema: GraphSchema) -> bool:
    names = {place.name for place in read.places([relation], "types")}
    end_labels = [read.label(relation, "left"), read.label(relation, "right")]
    source, target = end_labels if relation["out"] else reversed(end_labels)

    def has(source_label: str | None, target_label: str | None) -> bool:
        return any(
            r in names and source_label in (None, s) and target_label in (None, t)
            for s, r, t in schema.relations
        )

    directed = bool(relation["into"]) != bool(relation["out"]) and end_labels != [
        None,
        None,
    ]
    return directed and has(source, target) and not has(target, source)


def _rename_property(read: QueryNames, schema: GraphSchema, rng: Random) -> str | None:
    names = [name for owner, name in read.reads if owner.name in read.variables] + [
        key for _, key in read.map_keys()
    ]
    return _rename(read, names, _properties(schema), rng)


def _properties(schema: GraphSchema) -> set[str]:
    kinds = (*schema.properties.values(), *schema.relation_properties.values())
    return {name for properties in kinds for name in properties}


def _move_property(read: QueryNames, schema: GraphSchema, rng: Random) -> str | None:
    """Read from a node a property that the graph has, but not nodes of its label."""
    owned_names = [
        (read.labels.get(owner.name), name) for owner, name in read.reads
    ] + read.map_keys()
    places = [
        (label, name)
        for label, name in owned_names
        if label and name.name in schema.properties.get(label, ())
    ]
    if not places:
        return None
    label, name = rng.choice(places)
    elsewhere = [
        other
        for other in sorted(_properties(schema) - set(schema.properties[label]))
        if other.isidentifier()
    ]
    return read.with_(name, rng.choice(elsewhere)) if elsewhere else None


def _drop(read: QueryNames, schema: GraphSchema, rng: Random) -> str | None:
    """Leave out a bracket, or a quote without which a string does not end."""
    dropped = []
    for at in re.finditer(r"[()\[\]{}]|'", read.text):
        shorter = read.query[: at.start()] + read.query[at.end() :]
        if at[0] != "'" or _never_ends(shorter):
            dropped.append(shorter)
    return rng.choice(dropped) if dropped else None


def _never_ends(query: str) -> bool:
    try:
        tokenise(query)
    except Unreadable as problem:
        return "does not end" in problem.reason
    return False


def _rename_variable(read: QueryNames, schema: GraphSchema, rng: Random) -> str | None:
    """Rename a variable once: where it is read, or in its only pattern if it is read."""
    read_at = [
        *(owner for owner, _ in read.reads),
        *(_place(match, 1) for match in _ALONE.finditer(read.text)),
    ]
    places: list[NamePlace] = []
    for name, patterns in read.variables.items():
        uses = [place for place in read_at if place.name == name]
        places += uses + (patterns if len(patterns) == 1 and uses else [])
    if not places:
        return None
    place = rng.choice(places)
    used_words = set(re.findall(r"\w+", read.text))
    new = [
        n
        for n in (f"{place.name}1", place.name + place.name[0], f"my_{place.name}")
        if n not in used_words
    ]
    return read.with_(place, rng.choice(new))


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
    (
        "{head}CALL {{ LOAD CSV FROM 'file:///x.csv' AS line RETURN count(*) AS lines"
        " }} {tail}"
    ),
    "{head}CALL apoc.load.json('http://192.0.2.1/') YIELD value {tail}",
    "{head}CALL apoc.load.csv('file:///x.csv') YIELD list {tail}",
    "{head}CALL apoc.export.csv.all('x.csv', {{}}) YIELD file {tail}",
    "{head}{tail} UNION ALL LOAD CSV FROM 'file:///x.csv' AS line RETURN line",
    "{head}{tail}; LOAD CSV FROM 'http://192.0.2.1/' AS line RETURN line",
    "\\u004cOAD CSV FROM 'file:///x.csv' AS line {head}{tail}",
)


def _add(
    templates: tuple[str, ...], read: QueryNames, schema: GraphSchema, rng: Random
) -> str | None:
    """Put a clause in: before the query, before its last RETURN, or after it."""
    returns = [match.start() for match in _RETURN.finditer(read.text)]
    if not returns or not read.variables:
        return None
    head, tail = read.query[: returns[-1]], read.query[returns[-1] :].rstrip("; \n")
    label, variable = (
        f"`{rng.choice(sorted(schema.labels))}`",
        rng.choice(sorted(read.variables)),
    )
    return rng.choice(templates).format(
        head=head, tail=tail, variable=variable, label=label
    )


#: The kinds of mistakes, by the name of their metric.
MUTATIONS: dict[str, Callable[[QueryNames, GraphSchema, Random], str | None]] = {
    "direction": _turn,
    "label": lambda read, schema, rng: _rename(
        read, read.places(read.nodes, "node_labels"), schema.labels, rng
    ),
    "relation": lambda read, schema, rng: _rename(
        read, read.places(read.relations, "types"), schema.relation_names, rng
    ),
    "property": _rename_property,
    "property_moved": _move_property,
    "bracket": _drop,
    "variable": _rename_variable,
    "write": lambda *arguments: _add(_WRITES, *arguments),
    "access": lambda *arguments: _add(_ACCESSES, *arguments),
}
