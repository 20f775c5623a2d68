"""The functions of Neo4j 5: how many arguments, of what kinds, and what comes back.

Taken from a Neo4j 5.26 server: ``SHOW FUNCTIONS``, and its verdict on each function with each number of arguments and
with an argument of each kind in each place.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphret.cypher.meaning.values import ANYTHING, NUMBERS, STORABLE, Kind, list_of

_KINDS: dict[str, frozenset[str] | None] = {
    "any": None,
    "int": frozenset(("INTEGER",)),
    "num": NUMBERS,
    "float": frozenset(("FLOAT",)),
    "str": frozenset(("STRING",)),
    "bool": frozenset(("BOOLEAN",)),
    "list": frozenset(("LIST",)),
    "node": frozenset(("NODE",)),
    "rel": frozenset(("RELATIONSHIP",)),
    "entity": frozenset(("NODE", "RELATIONSHIP")),
    "path": frozenset(("PATH",)),
    "map": frozenset(("MAP", "NODE", "RELATIONSHIP")),
    "sum": NUMBERS | {"DURATION"},
    "strlist": frozenset(("STRING", "LIST")),
    "sized": frozenset(("STRING", "LIST", "MAP", "NODE", "RELATIONSHIP")),
    "shown": STORABLE - {"LIST"},
    "internal": frozenset(("INTERNAL ID",)),
    "plain": NUMBERS | {"STRING", "BOOLEAN"},
    "numstr": NUMBERS | {"STRING"},
    "value": STORABLE | {"MAP"},
    "truth": frozenset(("BOOLEAN", "STRING", "INTEGER")),
    "toint": NUMBERS | {"BOOLEAN", "STRING", "LIST"},
    "tofloat": NUMBERS | {"STRING"},
    "point": frozenset(("POINT",)),
    "date": frozenset(("DATE",)),
    "time": frozenset(("TIME",)),
    "localtime": frozenset(("LOCAL TIME",)),
    "localdatetime": frozenset(("LOCAL DATETIME",)),
    "datetime": frozenset(("DATETIME",)),
    "duration": frozenset(("DURATION",)),
}

# Name, its arguments (those after / may be left out, … means any number), and what comes back: a kind, [kind] for a
# list, = for the kind of the first argument, =[] for a list of it, =0 for an item of it, or a lone ? for anything.
_TABLE = """
abs num: num
acos num: float
asin num: float
atan num: float
atan2 num num: float
btrim str / str: str
ceil num: float
char_length str: int
character_length str: int
coalesce any …: any
cos num: float
cot num: float
degrees num: float
duration any: duration
duration.between any any: duration
duration.indays any any: duration
duration.inmonths any any: duration
duration.inseconds any any: duration
e: float
elementid entity: str
endnode rel: node
exp num: float
file: str
floor num: float
haversin num: float
head list: =0
id entity: int
isempty sized: bool
isnan num: bool
keys map: [str]
labels node: [str]
last list: =0
left str int: str
length path: int
linenumber: int
log num: float
log10 num: float
lower str: str
ltrim str / str: str
nodes path: [node]
normalize str: str
nullif any any: any
pi: float
point map: point
point.distance any any: float
point.withinbbox any any any: bool
properties map: map
radians num: float
rand: float
randomuuid: str
range int int / int: [int]
relationships path: [rel]
replace str str str: str
reverse strlist: =
right str int: str
round num / num str: float
rtrim str / str: str
sign num: int
sin num: float
size strlist: int
split str strlist: [str]
sqrt num: float
startnode rel: node
substring str int / int: str
tail list: =
tan num: float
timestamp / any any any any: int
toboolean truth: bool
tobooleanlist list: [bool]
tobooleanornull any: bool
tofloat tofloat: float
tofloatlist list: [float]
tofloatornull any: float
tointeger toint: int
tointegerlist list: [int]
tointegerornull any: int
tolower str: str
tostring shown: str
tostringlist list: [str]
tostringornull any: str
toupper str: str
trim str / str str: str
type rel: str
upper str: str
valuetype any: str
vector.similarity.cosine list list: float
vector.similarity.euclidean list list: float
"""
_AGGREGATES = """
avg sum: sum
collect any: =[]
count any: int
max any: =
min any: =
percentilecont num num: float
percentiledisc num num: num
stdev num: float
stdevp num: float
sum sum: sum
"""
_TEMPORAL = {
    "date": "date",
    "datetime": "datetime",
    "localdatetime": "localdatetime",
    "localtime": "localtime",
    "time": "time",
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the kinds of its arguments, how many are needed, and what comes back."""

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


def _function(line: str, aggregates: bool = False) -> Function:
    head, _, result = line.partition(":")
    name, *words = head.split()
    endless = "…" in words
    needed = words.index("/") if "/" in words else len([w for w in words if w != "…"])
    kinds = tuple(_KINDS[w] for w in words if w not in ("/", "…"))
    return Function(name, kinds, needed, None if endless else len(kinds), result.strip(), aggregates)


def table(functions: str, aggregates: str) -> dict[str, Function]:
    """Return functions by name, of lines that say what they take and give."""
    lines = [_function(line) for line in functions.strip().splitlines()]
    lines += [_function(line, aggregates=True) for line in aggregates.strip().splitlines()]
    return {function.name: function for function in lines}


def _temporal() -> str:
    lines = ["datetime.fromepoch num num: datetime", "datetime.fromepochmillis num: datetime"]
    for name, kind in _TEMPORAL.items():
        lines += [f"{name}{clock} / any: {kind}" for clock in ("", ".realtime", ".statement", ".transaction")]
        lines.append(f"{name}.truncate str / any map: {kind}")
    return "\n".join(lines)


#: By their names in lower case.
FUNCTIONS: dict[str, Function] = table(_TABLE + _temporal(), _AGGREGATES)
#: How they are written, for suggestions.
SPELLINGS = (
    "abs acos all any asin atan atan2 avg btrim ceil char_length coalesce collect cos cot count date date.truncate "
    "datetime datetime.fromEpochMillis degrees duration duration.between duration.inDays duration.inMonths elementId "
    "endNode exists exp floor haversin head id isEmpty keys labels last left length localdatetime localtime log log10 "
    "ltrim max min nodes none normalize nullIf percentileCont percentileDisc pi point point.distance properties "
    "radians rand randomUUID range reduce relationships replace reverse right round rtrim sign sin single size split "
    "sqrt startNode stDev stDevP substring sum tail tan time timestamp toBoolean toFloat toInteger toLower toString "
    "toUpper trim type valueType"
).split()
#: What other dialects and older versions call them.
INSTEAD: dict[str, str] = {
    "distance": "point.distance",
    "ceiling": "ceil",
    "rels": "relationships",
    "toint": "toInteger",
    "str": "toString",
    "lcase": "toLower",
    "ucase": "toUpper",
    "uppercase": "toUpper",
    "lowercase": "toLower",
    "len": "size",
    "now": "datetime",
    "current_date": "date",
    "mean": "avg",
    "average": "avg",
    "median": "percentileCont",
    "stddev": "stDev",
    "first": "head",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "label": "labels",
    "array_length": "size",
    "pow": "^",
    "power": "^",
    "concat": "+",
    "filter": "[x IN list WHERE …]",
    "extract": "[x IN list | …]",
}
#: Ladybug's functions that aggregate; the rest of its functions are in the list of what may run.
LADYBUG_AGGREGATES = frozenset(("avg", "collect", "count", "max", "min", "sum", "stdev", "stdevp"))
#: What Ladybug lacks of Neo4j's functions, and what stands in for it.
LADYBUG_LACKS: dict[str, str] = {
    "type": "label",
    "elementid": "id",
    "datetime": "timestamp",
    "localdatetime": "timestamp",
    "startnode": "nodes",
    "endnode": "nodes",
}
