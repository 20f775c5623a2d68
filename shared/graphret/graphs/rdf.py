"""Read RDF in N-Triples through rdflib."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from graphret.errors import InvalidInput
from graphret.graphs.tables import GraphTables, required
from graphret.graphs.tabular import numbered_lines
from graphret.validation import json_value

_log = logging.getLogger(__name__)
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

#: The predicates that hold a node's name, the best first.
NAMES = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
#: The predicates that hold a node's text, the best first.
TEXTS = (
    "http://www.w3.org/2000/01/rdf-schema#comment",
    "http://www.w3.org/2004/02/skos/core#definition",
    "http://schema.org/description",
    "https://schema.org/description",
    "http://purl.org/dc/terms/description",
)
#: The label of a node with no ``rdf:type``.
UNTYPED = "Resource"
#: The fields of a node; properties get other names.
_FIELDS = ("id", "labels", "label", "name", "text")
_SEPARATORS = re.compile(r"[#/:]")
_Literals: TypeAlias = "defaultdict[str, list[tuple[str, Any]]]"


class _Sink:
    """Takes triples from rdflib's parser; literals are (language, value) pairs."""

    def __init__(self) -> None:
        self.types: defaultdict[str, set[str]] = defaultdict(set)
        self.literals: defaultdict[str, _Literals] = defaultdict(
            lambda: defaultdict(list)
        )
        self.edges: list[tuple[str, str, str]] = []
        self.ill_typed = 0

    def triple(self, subject: Any, predicate: Any, object_: Any) -> None:
        """Take one triple; the parser calls this."""
        literals, relation = self.literals[str(subject)], str(predicate)
        if hasattr(object_, "language"):
            self.ill_typed += bool(object_.ill_typed)
            value = object_.toPython()
            value = (
                str(object_)
                if value is object_ or isinstance(value, bytes)
                else json_value(value)
            )
            literals[relation].append(((object_.language or "").lower(), value))
        elif relation == _RDF_TYPE:
            self.types[str(subject)].add(str(object_))
        else:
            self.literals[str(object_)]
            self.edges.append((str(subject), relation, str(object_)))


class _BlankLabels(dict[str, Any]):
    """Keeps a file's labels of blank nodes, so that a second import gives equal ids."""

    prefix = ""

    def get(self, label: str, default: Any = None) -> Any:
        return f"_:{self.prefix}{label}"


def read_ntriples(
    sources: str | Path | Iterable[str | Path], *, language: str = "en"
) -> GraphTables:
    """Read RDF in N-Triples.

    An IRI or a blank node becomes a node with itself as its id (``_:2.b0`` in the
    second file, since labels belong to a file). Objects of ``rdf:type`` become labels,
    other objects nodes, literals properties. Labels, relations and properties have
    short names: the part after the last ``#`` or ``/`` of the IRI, or the last two
    parts where that is not unique (``foaf_name``). The name is the best of `NAMES`, the
    text of `TEXTS`.

    Numbers, booleans and dates are typed, other literals are text; a warning of the
    logger ``graphret.graphs.rdf`` counts those that do not match their type. Several
    values become a list, and values in another language than `language` a property of
    their own, such as ``comment@fr``.

    Parameters
    ----------
    sources
        Files.
    language
        The language of the name where there are several; then one without a language,
        then by language.

    Raises
    ------
    InvalidInput
        If a line is not a triple or not UTF-8; the message names the file and the line.
    MissingDependency
        If rdflib is not installed.
    """
    ntriples = required("rdflib.plugins.parsers.ntriples", "import", "Reading RDF")
    sink, blank = _Sink(), _BlankLabels()
    files = [sources] if isinstance(sources, str | Path) else list(sources)
    # rdflib would log a traceback for every literal that does not match its type.
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    for number, source in enumerate(files, 1):
        blank.prefix = "" if number == 1 else f"{number}."
        parser = ntriples.W3CNTriplesParser(sink, blank)
        for line, text in numbered_lines(Path(source)):
            try:
                parser.parsestring(text)
            except (ntriples.ParseError, ValueError, OverflowError) as error:
                raise InvalidInput(
                    f"{source}, line {line}: expected a triple of N-Triples, got"
                    f" {text[:80]}"
                ) from error
    if not sink.literals:
        raise InvalidInput(f"{', '.join(map(str, files))}: no triples")
    return _tables(sink, language.lower())


def _tables(sink: _Sink, language: str) -> GraphTables:
    labels = short_names(iri for types in sink.types.values() for iri in types)
    keys = short_names(
        (iri for literals in sink.literals.values() for iri in literals), _FIELDS
    )
    relations = short_names(relation for _, relation, _ in sink.edges)
    tables = GraphTables()
    if sink.ill_typed:
        _log.warning(
            f"{sink.ill_typed:,} literals do not match their type, and stay text"
        )
    for iri, literals in sink.literals.items():
        types = sorted(sink.types.get(iri, ()))
        node_labels = tuple(labels[type_] for type_ in types) or (UNTYPED,)
        name, text = (
            _take_literal(literals, NAMES, language),
            _take_literal(literals, TEXTS, language),
        )
        properties: dict[str, Any] = {}
        for predicate, values in literals.items():
            properties.update(_properties(keys[predicate], values, language))
        tables.node(iri, node_labels, name or local_name(iri), text, properties)
    for source, relation, target in sink.edges:
        tables.edge(source, relations[relation], target)
    return tables


def _take_literal(
    literals: dict[str, list[tuple[str, Any]]], predicates: Sequence[str], language: str
) -> str:
    """Remove and return a value of the first predicate that has one.

    It is in the given language, or else in none, or else in the first by name.
    """
    for predicate in predicates:
        values = [
            (tag, value)
            for tag, value in literals.get(predicate, ())
            if str(value).strip()
        ]
        if values:
            best = min(values, key=lambda literal: (literal[0] != language, literal[0]))
            literals[predicate].remove(best)
            return str(best[1])
    return ""


def _properties(
    key: str, values: list[tuple[str, Any]], language: str
) -> dict[str, Any]:
    """Return a predicate's values as properties, one for each further language."""
    values_by_name: defaultdict[str, list[Any]] = defaultdict(list)
    for tag, value in dict.fromkeys(values):
        name = key if tag in ("", language) else f"{key}@{tag}"
        values_by_name[name].append(value)
    return {
        name: listed[0] if len(listed) == 1 else listed
        for name, listed in values_by_name.items()
    }


def local_name(iri: str) -> str:
    """Return the part of an IRI after the last ``#``, ``/`` or ``:``, or the IRI."""
    parts = [part for part in _SEPARATORS.split(iri) if part]
    return unquote(parts[-1]) if parts else iri


def short_names(iris: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a unique short name for each IRI.

    It is the local name if unique and not `reserved`, else the last two parts, and
    where these are not unique either the IRI.
    """
    names: dict[str, str] = {}
    unnamed, used = set(iris), set(reserved)
    for shorten in (local_name, _longer_name, str):
        counts = Counter(map(shorten, unnamed))
        names |= {
            iri: shorten(iri)
            for iri in unnamed
            if counts[shorten(iri)] == 1 and shorten(iri) not in used
        }
        used.update(counts)  # a name that two IRIs would share goes to neither
        unnamed -= names.keys()
    return names


def _longer_name(iri: str) -> str:
    parts = [part for part in _SEPARATORS.split(iri) if part and not part[0].isdigit()]
    return f"{parts[-2] if len(parts) > 1 else 'iri'}_{local_name(iri)}"
