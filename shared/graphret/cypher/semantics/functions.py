"""The functions and procedures of Neo4j: how many arguments, their kinds, the result.

Taken from a Neo4j 5.26 server (``SHOW FUNCTIONS``, ``SHOW PROCEDURES``), and from its
verdicts on each function with each number of arguments and with each kind of argument
in each place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphret.cypher.semantics.values import (
    ANYTHING,
    BOOLEAN,
    FLOAT,
    NODE,
    NUMBERS,
    RELATIONSHIP,
    STORABLE,
    STRING,
    Kind,
    list_of,
)

#: What a kind is called below: its name in one small word, or one of these.
_KINDS: dict[str, frozenset[str] | None] = {
    **{
        name.lower().replace(" ", ""): frozenset((name,))
        for name in STORABLE | {"NODE", "PATH"}
    },
    "any": None,
    "int": frozenset(("INTEGER",)),
    "num": NUMBERS,
    "str": frozenset(("STRING",)),
    "bool": frozenset(("BOOLEAN",)),
    "rel": frozenset(("RELATIONSHIP",)),
    "entity": frozenset(("NODE", "RELATIONSHIP")),
    "map": frozenset(("MAP", "NODE", "RELATIONSHIP")),
    "sum": NUMBERS | {"DURATION"},
    "strlist": frozenset(("STRING", "LIST")),
    "sized": frozenset(("STRING", "LIST", "MAP", "NODE", "RELATIONSHIP")),
    "shown": STORABLE - {"LIST"},
    "truth": frozenset(("BOOLEAN", "STRING", "INTEGER")),
    "toint": NUMBERS | {"BOOLEAN", "STRING", "LIST"},
    "tofloat": NUMBERS | {"STRING"},
}

# What functions take and give, and their names: of the arguments those after / may be
# left out, and … means any number; what comes back is a kind, [kind] for a list, = for
# the kind of the first argument, =[] for a list of it, =0 for an item of it.
_TABLE = """
num -> num: abs
num -> float: acos asin atan ceil cos cot degrees exp floor haversin log log10 radians
num -> float: sin sqrt tan
num num -> float: atan2
str / str -> str: btrim ltrim rtrim
str -> int: char_length character_length
any … -> any: coalesce
any -> duration: duration
any any -> duration: duration.between duration.inDays
any any -> duration: duration.inMonths duration.inSeconds
-> float: e pi rand
entity -> str: elementId
rel -> node: endNode startNode
-> str: randomUUID
list -> =0: head last
entity -> int: id
sized -> bool: isEmpty
num -> bool: isNaN
map -> [str]: keys
node -> [str]: labels
str int -> str: left right
path -> int: length
str -> str: lower normalize toLower toUpper upper
path -> [node]: nodes
any any -> any: nullIf
map -> point: point
any any -> float: point.distance
any any any -> bool: point.withinBBox
map -> map: properties
int int / int -> [int]: range
path -> [rel]: relationships
str str str -> str: replace
strlist -> =: reverse
num / num str -> float: round
num -> int: sign
strlist -> int: size
str strlist -> [str]: split
str int / int -> str: substring
list -> =: tail
/ any any any any -> int: timestamp
truth -> bool: toBoolean
list -> [bool]: toBooleanList
any -> bool: toBooleanOrNull
tofloat -> float: toFloat
list -> [float]: toFloatList
any -> float: toFloatOrNull
toint -> int: toInteger
list -> [int]: toIntegerList
any -> int: toIntegerOrNull
shown -> str: toString
list -> [str]: toStringList
any -> str: toStringOrNull valueType
str / str str -> str: trim
rel -> str: type
list list -> float: vector.similarity.cosine vector.similarity.euclidean
"""
_AGGREGATES = """
sum -> sum: avg sum
any -> =[]: collect
any -> int: count
any -> =: max min
num num -> float: percentileCont
num num -> num: percentileDisc
num -> float: stDev stDevP
"""
_TEMPORAL = ("date", "datetime", "localdatetime", "localtime", "time")


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the kinds of its arguments, how many it needs, and its result."""

    name: str
    arguments: tuple[frozenset[str] | None, ...]
    least: int
    most: int | None
    result: str
    aggregates: bool = False

    def kind(self, first: Kind | None) -> Kind:
        """The kind of the result, where the first argument is of a kind."""
        if self.result == "=":
            return first or ANYTHING
        if self.result == "=[]":
            return list_of(first or ANYTHING)
        if self.result == "=0":
            return first.item() if first else ANYTHING
        if self.result.startswith("["):
            return list_of(Kind(_KINDS[self.result[1:-1]]))
        return Kind(_KINDS[self.result])


def _functions(table: str, aggregates: bool = False) -> Iterator[Function]:
    for line in re.sub(r"\n  +", " ", table.strip()).splitlines():
        signature, names = line.split(": ")
        parameters, result = signature.split("->")
        words = parameters.split()
        endless = "…" in words
        least = (
            words.index("/") if "/" in words else len([w for w in words if w != "…"])
        )
        kinds = tuple(_KINDS[w] for w in words if w not in ("/", "…"))
        for name in names.split():
            yield Function(
                name,
                kinds,
                least,
                None if endless else len(kinds),
                result.strip(),
                aggregates,
            )


def _temporal() -> str:
    lines = [
        "num num -> datetime: datetime.fromEpoch",
        "num -> datetime: datetime.fromEpochMillis",
    ]
    for name in _TEMPORAL:
        lines.append(
            f"/ any -> {name}: {name} {name}.realtime {name}.statement"
            f" {name}.transaction"
        )
        lines.append(f"str / any map -> {name}: {name}.truncate")
    return "\n".join(lines)


def _by_name(table: str, aggregates: str) -> dict[str, Function]:
    functions = (*_functions(table), *_functions(aggregates, aggregates=True))
    return {function.name.lower(): function for function in functions}


#: The functions with no effect and nothing of the server in their result, by their
#: names in lower case: they may run.
READING = _by_name(_TABLE + _temporal(), _AGGREGATES)
FUNCTIONS = READING | _by_name("-> str: file linenumber", "")
#: Names that are called like functions and have a syntax of their own.
SYNTAX_OF_THEIR_OWN = (
    "all",
    "allShortestPaths",
    "any",
    "exists",
    "none",
    "reduce",
    "shortestPath",
    "single",
)


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(": ") for pair in re.split(r",\s+", text))


#: What other dialects and older versions call them.
INSTEAD = _pairs(
    """array_length: size, average: avg, ceiling: ceil, concat: +, current_date: date,
    distance: point.distance, extract: [x IN list | …], filter: [x IN list WHERE …],
    first: head, ifnull: coalesce, label: labels, lcase: toLower, len: size,
    lowercase: toLower, mean: avg, median: percentileCont, now: datetime, nvl: coalesce,
    pow: ^, power: ^, rels: relationships, stddev: stDev, str: toString,
    toint: toInteger, ucase: toUpper, uppercase: toUpper"""
)
#: What Ladybug lacks of Neo4j's functions, and what stands in for it.
LADYBUG_LACKS = _pairs(
    """datetime: timestamp, elementid: id, endnode: end_node, head: list_extract,
    last: list_extract, localdatetime: timestamp, rand: random, split: string_split,
    startnode: start_node, toboolean: to_bool, tofloat: to_double,
    tointeger: to_int64, tostring: to_string, type: label"""
)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure that only reads: how many arguments it takes, and its fields."""

    arguments: tuple[int, int]
    fields: dict[str, Kind]


_PROPERTY = {
    "propertyName": STRING,
    "propertyTypes": list_of(STRING),
    "mandatory": BOOLEAN,
}
PROCEDURES: dict[str, Procedure] = {
    "db.labels": Procedure((0, 0), {"label": STRING}),
    "db.relationshiptypes": Procedure((0, 0), {"relationshipType": STRING}),
    "db.propertykeys": Procedure((0, 0), {"propertyKey": STRING}),
    "db.schema.nodetypeproperties": Procedure(
        (0, 0), {"nodeType": STRING, "nodeLabels": list_of(STRING), **_PROPERTY}
    ),
    "db.schema.reltypeproperties": Procedure((0, 0), {"relType": STRING, **_PROPERTY}),
    "db.schema.visualization": Procedure(
        (0, 0), {"nodes": ANYTHING, "relationships": ANYTHING}
    ),
    "db.index.fulltext.querynodes": Procedure((2, 3), {"node": NODE, "score": FLOAT}),
    "db.index.fulltext.queryrelationships": Procedure(
        (2, 3), {"relationship": RELATIONSHIP, "score": FLOAT}
    ),
    "db.index.vector.querynodes": Procedure((3, 3), {"node": NODE, "score": FLOAT}),
    "db.index.vector.queryrelationships": Procedure(
        (3, 3), {"relationship": RELATIONSHIP, "score": FLOAT}
    ),
}
