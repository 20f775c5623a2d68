"""RDF in N-Triples, through rdflib: types become labels, literals properties, other
triples edges.
"""

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
_FIELDS = ("id", "labels", "label", "name", "text")
_SEPARATORS = re.compile(r"[#/:]")
_Literals: TypeAlias = "defaultdict[str, list[tuple[str, Any]]]"


class _Sink:
    """Takes triples from rdflib's parser; literals are pairs of language and value, by
    predicate.
    """

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
    """Keeps the labels that blank nodes have in a file, so that a second import gives
    the same ids.
    """

    prefix = ""

    def get(self, label: str, default: Any = None) -> Any:
        return f"_:{self.prefix}{label}"


def read_ntriples(
    sources: str | Path | Iterable[str | Path], *, language: str = "en"
) -> GraphTables:
    """Read RDF in N-Triples.

    An IRI or a blank node is a node, with itself as its id (``_:2.b0`` in the second
    file, since labels belong to a file). Objects of ``rdf:type`` become labels, other
    objects nodes, literals properties. Labels, relations and properties have short
    names: what stands behind the last ``#`` or ``/`` of the IRI; where that is not
    unique, the part before goes in front (``foaf_name``). The name is the best of
    `NAMES`, the text of `TEXTS`.

    Numbers, truth values and dates are what their type says, other literals their text;
    a warning of the logger ``graphret.graphs.rdf`` says how many were not of their
    type. Several values become a list, and those in another language than `language` a
    property of their own, as ``comment@fr``.

    Parameters
    ----------
    sources
        Files.
    language
        Which name is taken where there are several; then one without a language, then
        by language.

    Raises
    ------
    InvalidInput
        If a line is no triple or not UTF-8; the message names the file and the line.
    MissingDependency
        If rdflib is not installed.
    """
    ntriples = required("rdflib.plugins.parsers.ntriples", "import", "Reading RDF")
    sink, blank = _Sink(), _BlankLabels()
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    # It would write a traceback for every literal that is not of its type.
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    for number, source in enumerate(given, 1):
        blank.prefix = "" if number == 1 else f"{number}."
        parser = ntriples.W3CNTriplesParser(sink, blank)
        for line, text in numbered_lines(Path(source)):
            try:
                parser.parsestring(text)
            except (ntriples.ParseError, ValueError, OverflowError) as error:
                raise InvalidInput(
                    f"{source}, line {line}: no triple of N-Triples: {text[:80]}"
                ) from error
    if not sink.literals:
        raise InvalidInput(f"{', '.join(map(str, given))}: no triples")
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
            f"{sink.ill_typed:,} literals are not of the type that they say, and stay"
            " text"
        )
    for iri, literals in sink.literals.items():
        own = tuple(labels[one] for one in sorted(sink.types.get(iri, ()))) or (
            UNTYPED,
        )
        name, text = (
            _taken(literals, NAMES, language),
            _taken(literals, TEXTS, language),
        )
        properties: dict[str, Any] = {}
        for predicate, values in literals.items():
            properties.update(_properties(keys[predicate], values, language))
        tables.node(iri, own, name or local_name(iri), text, properties)
    for source, relation, target in sink.edges:
        tables.edge(source, relations[relation], target)
    return tables


def _taken(
    literals: dict[str, list[tuple[str, Any]]], predicates: Sequence[str], language: str
) -> str:
    """Take the first value of the first predicate: in the language, or in none, or in
    the first by name.
    """
    for predicate in predicates:
        values = [one for one in literals.get(predicate, ()) if str(one[1]).strip()]
        if values:
            best = min(values, key=lambda one: (one[0] != language, one[0]))
            literals[predicate].remove(best)
            return str(best[1])
    return ""


def _properties(
    key: str, values: list[tuple[str, Any]], language: str
) -> dict[str, Any]:
    """Return the properties that the values of one predicate make: one for each
    language besides ours.
    """
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for own, value in dict.fromkeys(values):
        found[key if own in ("", language) else f"{key}@{own}"].append(value)
    return {name: kept[0] if len(kept) == 1 else kept for name, kept in found.items()}


def local_name(iri: str) -> str:
    """Return what stands behind the last ``#``, ``/`` or ``:`` of an IRI; the IRI where
    nothing does.
    """
    parts = [part for part in _SEPARATORS.split(iri) if part]
    return unquote(parts[-1]) if parts else iri


def short_names(iris: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a short name for each IRI, all different: the local name where it is one
    IRI's alone and not `reserved`, else with the part before it, and where even that is
    not unique the IRI.
    """
    names: dict[str, str] = {}
    left, taken = set(iris), set(reserved)
    for shorten in (local_name, _longer_name, str):
        counts = Counter(map(shorten, left))
        names |= {
            iri: shorten(iri)
            for iri in left
            if counts[shorten(iri)] == 1 and shorten(iri) not in taken
        }
        taken.update(counts)  # one that two IRIs would have, neither gets
        left -= names.keys()
    return names


def _longer_name(iri: str) -> str:
    parts = [part for part in _SEPARATORS.split(iri) if part and not part[0].isdigit()]
    return f"{parts[-2] if len(parts) > 1 else 'iri'}_{local_name(iri)}"
