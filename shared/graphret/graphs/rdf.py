"""RDF in N-Triples, through rdflib: types become labels, literals properties, other triples edges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.builder import TablesBuilder
from graphret.graphs.iris import local_name, short_names
from graphret.graphs.lines import numbered, opened
from graphret.graphs.places import Places, part_of, places_of
from graphret.graphs.tables import GraphTables

_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_XSD = "http://www.w3.org/2001/XMLSchema#"

#: The predicates that name a node, the best first.
NAMES = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
#: The predicates that say what a node is.
TEXTS = (
    "http://www.w3.org/2000/01/rdf-schema#comment",
    "http://www.w3.org/2004/02/skos/core#definition",
    "http://schema.org/description",
    "https://schema.org/description",
    "http://purl.org/dc/terms/description",
)
#: The label of a node with no ``rdf:type``.
UNTYPED = "Resource"

#: The fields of a node, which a property does not share a name with.
_OWN = ("id", "labels", "label", "name", "text")

_NUMBERS = {
    *("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "negativeInteger"),
    *("nonPositiveInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python reads no more digits
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
# rdflib's own pattern of an IRI reaches over `<relative> <`, and its URIRef writes to a log of what it finds odd.
_IRI = r'<([^:\s"<>]+:[^\s"<>]*)>'
_AN_IRI = re.compile(_IRI)
_LITERAL = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(?:@([a-zA-Z]+(?:-[a-zA-Z0-9]+)*)|\^\^' + _IRI + ")?")
_ESCAPED = re.compile(r"""(?:[^\\]|\\(?:[tbnrf"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}))*""")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class _Literal(NamedTuple):
    """A literal as it stands in the file; rdflib's own would rewrite what it says."""

    text: str
    language: str | None
    datatype: str | None


@dataclass(frozen=True, slots=True)
class _Text:
    """A literal: its value and its language."""

    value: Any
    language: str


@dataclass(slots=True)
class _Resource:
    """What is said of a node."""

    line: int
    file: str
    types: dict[str, None] = field(default_factory=dict)
    literals: dict[str, list[_Text]] = field(default_factory=dict)


class _Sink:
    """Takes triples from rdflib's parser, with their lines."""

    def __init__(self) -> None:
        self.file, self.line, self.escapes = "", 0, False

    def triple(self, subject: Any, predicate: Any, object_: Any) -> None:
        """Take one triple; the parser calls this."""
        if self.escapes:
            for term in (subject, predicate, *(object_ if isinstance(object_, _Literal) else (object_,))):
                str(term).encode()  # raises on half of a surrogate pair, which no file can hold but by an escape
        self.take(str(subject), str(predicate), object_)

    def take(self, subject: str, predicate: str, object_: Any) -> None:
        """Keep what is wanted of a triple."""
        raise NotImplementedError


class _Triples(_Sink):
    """Keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.resources: dict[str, _Resource] = {}
        self.edges: list[tuple[str, str, str, str, int]] = []
        self.mistyped: list[str] = []

    def _seen(self, term: str) -> _Resource:
        found = self.resources.get(term)
        if found is None:
            found = self.resources[term] = _Resource(self.line, self.file)
        return found

    def take(self, source: str, relation: str, object_: Any) -> None:
        said = self._seen(source)
        if isinstance(object_, _Literal):
            said.literals.setdefault(relation, []).append(self._text(object_))
        elif relation == _RDF_TYPE:
            said.types[str(object_)] = None
        else:
            target = str(object_)
            self._seen(target)
            self.edges.append((source, relation, target, self.file, self.line))

    def _text(self, literal: _Literal) -> _Text:
        text, kind = literal.text, (literal.datatype or "").removeprefix(_XSD)
        value = _value(text.strip(), kind) if literal.datatype == _XSD + kind else text
        if value is None:
            self.mistyped.append(f"{self.file}, line {self.line}: {text[:80]!r} is no {kind}")
        return _Text(text if value is None else value, (literal.language or "").lower())


class _Parts(_Sink):
    """Keeps where the labels and the properties of one node stand."""

    def __init__(self, node: str, names: Mapping[str, Mapping[str, str]], language: str) -> None:
        super().__init__()
        self.node, self.names, self.language = node, names, language
        self.found: dict[tuple[str, str], list[tuple[str, int]]] = {}

    def take(self, source: str, relation: str, object_: Any) -> None:
        if source != self.node:
            return
        if isinstance(object_, _Literal):
            name = "property", _key(self.names["property"][relation], object_.language or "", self.language)
        elif relation == _RDF_TYPE:
            name = "label", self.names["label"][str(object_)]
        else:
            return
        self.found.setdefault(name, []).append((self.file, self.line))


class _BlankNodes(dict[str, Any]):
    """Ids for blank nodes: ``_:`` and the label in the file, so that a second import gives the same."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, label: str, default: Any = None) -> Any:
        return f"_:{self._prefix}{label}"


def read_ntriples(sources: str | Path | Iterable[str | Path], *, language: str = "en") -> GraphTables:
    """Read RDF in N-Triples.

    An IRI or a blank node is a node, and the IRI its id; a blank node's is its label, as ``_:b0`` (``_:2.b0`` in the
    second file, since labels belong to a file). Objects of ``rdf:type`` become labels, other objects nodes, literals
    properties. Labels, relations and properties have short names: what stands behind the last ``#`` or ``/`` of the
    IRI; where that is not unique, the part before goes in front (``foaf_name``). The name is the best of `NAMES`, the
    text of `TEXTS`; a node without one is named by its IRI's last part.

    Numbers and truth values become such, other literals their text, as do those that are not of the type they say; the
    first of them is named in `GraphTables.remarks`. Several values become a list. Values in another language than
    `language` become a property of their own, as ``comment@fr``.

    Parameters
    ----------
    sources
        Files.
    language
        Which name is taken where there are several; then one of a region of it (``en-GB`` for ``en``), then one without
        a language, then by language.

    Raises
    ------
    InvalidInput
        If a line is no triple, not UTF-8 or has an escape that N-Triples does not; the message names the file and the
        line.
    MissingDependency
        If rdflib is not installed.
    """
    try:
        import rdflib  # noqa: F401
    except ImportError as error:
        raise MissingDependency("rdflib", "import", "Reading RDF") from error
    triples = _Triples()
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    _parse_all(given, triples)
    if not triples.resources:
        raise InvalidInput(f"{', '.join(map(str, given))}: no triples")
    return replace(_tables(triples, language, given), remarks=_remarks(triples.mistyped))


def _parse_all(given: Sequence[str | Path], triples: _Sink) -> None:
    for number, source in enumerate(given, 1):
        _parse(Path(source), triples, "" if number == 1 else f"{number}.")


def _parse(path: Path, triples: _Sink, prefix: str) -> None:
    from rdflib.exceptions import ParserError
    from rdflib.plugins.parsers.ntriples import W3CNTriplesParser, unquote

    def unescaped(text: str) -> str:
        if "\\" not in text:
            return text
        if _ESCAPED.fullmatch(text) is None:
            raise UnicodeError(text)
        return unquote(text)

    class Parser(W3CNTriplesParser):
        def uriref(self) -> Any:
            return unescaped(self.eat(_AN_IRI)[1]) if self.peek("<") else False

        def literal(self) -> Any:
            if not self.peek('"'):
                return False
            text, language, datatype = self.eat(_LITERAL).groups()
            return _Literal(unescaped(text), language, datatype)

    blank = _BlankNodes(prefix)
    parser = Parser(cast(Any, triples), bnode_context=blank)
    triples.file = str(path)
    with opened(path) as file:
        for number, line in numbered(file):
            triples.line, triples.escapes = number, "\\" in line
            parser.line = line
            try:
                parser.parseline()
            except (ParserError, ValueError, OverflowError) as error:
                if isinstance(error, UnicodeError):
                    raise InvalidInput(f"{path}, line {number}: a \\ escape that stands for nothing") from error
                raise InvalidInput(f"{path}, line {number}: no triple of N-Triples: {line[:80]}") from error


def _value(text: str, kind: str) -> Any:
    """Return what a literal of a type of XML Schema is: a number, a truth value or its text; `None` if it is none."""
    if kind in _NUMBERS:
        return int(text) if _INTEGER.fullmatch(text) else None
    if kind in ("decimal", "double", "float"):
        if text in ("INF", "+INF", "-INF", "NaN") and kind != "decimal":
            return text
        value = float(text) if _DECIMAL.fullmatch(text) else None
        return text if value in (float("inf"), float("-inf")) else value
    return _TRUTH.get(text) if kind == "boolean" else text


def _remarks(mistyped: list[str]) -> tuple[str, ...]:
    if not mistyped:
        return ()
    others = len(mistyped) - 1
    more = f"; so do {others:,} more literals" if others > 1 else "; so does one more literal" if others else ""
    return (f"{mistyped[0]}, and stays text{more}",)


def _tables(triples: _Triples, language: str, given: Sequence[str | Path]) -> GraphTables:
    resources = triples.resources
    language = language.lower()
    labels = short_names(iri for said in resources.values() for iri in said.types)
    keys = short_names((iri for said in resources.values() for iri in said.literals), _OWN)
    relations = short_names(relation for _, relation, _, _, _ in triples.edges)
    builder = TablesBuilder()
    for iri, said in resources.items():
        own = tuple(labels[one] for one in sorted(said.types)) or (UNTYPED,)
        name, named_by = _best(said, NAMES, language)
        text, told_by = _best(said, TEXTS, language)
        properties: dict[str, Any] = {}
        for predicate, values in said.literals.items():
            rest = [value for value in values if not (predicate == named_by and value is name)]
            rest = [value for value in rest if not (predicate == told_by and value is text)]
            properties.update(_properties(keys[predicate], rest, language))
        builder.node(
            iri,
            own,
            str(name.value) if name else local_name(iri),
            str(text.value) if text else "",
            properties,
            said.file,
            said.line,
        )
    for source, relation, target, file, line in triples.edges:
        builder.edge(source, relations[relation], target, 1.0, {}, file, line)
    tables = builder.finish()
    first, ids = tables.node_places, tables.ids

    def where(position: int, said: str) -> str:
        """Return the line of the part that is spoken of, for which the files are read again, or the node's first."""
        parts = _Parts(ids[position], {"label": labels, "property": keys}, language)
        _parse_all(given, parts)
        for kind in ("label", "property"):
            part = part_of(said, kind, [name for of_kind, name in parts.found if of_kind == kind])
            if part is not None:
                return places_of(parts.found[kind, part])
        assert first is not None
        return first.at(position)

    return replace(tables, node_places=Places(where))


def _key(name: str, language: str, ours: str) -> str:
    """Return the name of a property: values in another language have one of their own."""
    return name if language.lower() in ("", ours) else f"{name}@{language.lower()}"


def _best(said: _Resource, predicates: Iterable[str], language: str) -> tuple[_Text | None, str | None]:
    """Return the first value of the first predicate, in the language if there is one, and the predicate."""
    for predicate in predicates:
        values = [one for one in said.literals.get(predicate, ()) if str(one.value).strip()]
        if values:
            return min(values, key=lambda one: _distance(one.language, language)), predicate
    return None, None


def _distance(language: str, ours: str) -> tuple[bool, bool, str]:
    """What values are ordered by: those in our language come first, then those in a region of it."""
    return language != ours, language.split("-")[0] != ours.split("-")[0], language


def _properties(key: str, values: list[_Text], language: str) -> Iterator[tuple[str, Any]]:
    """Go through the properties that the values of one predicate make: one for each language besides ours."""
    by_key: dict[str, list[Any]] = {}
    for one in values:
        own = _key(key, one.language, language)
        kept = by_key.setdefault(own, [])
        if not any(type(value) is type(one.value) and value == one.value for value in kept):
            kept.append(one.value)
    for own, kept in by_key.items():
        if len({"number" if type(value) in (int, float) else type(value).__name__ for value in kept}) > 1:
            kept = [str(value) for value in kept]
        yield own, kept[0] if len(kept) == 1 else kept
