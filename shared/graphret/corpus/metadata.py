"""Metadata of nodes: the protocol of extractors, and one that works by rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from graphret.corpus.chunkers import split_sentences
from graphret.corpus.markdown import running_text
from graphret.corpus.names import clean_name
from graphret.executors import LOCAL, Executor, batched
from graphret.linking.gazetteer import Gazetteer
from graphret.linking.layered import Layered
from graphret.linking.name_table import (
    NamedNode,
    name_table_parts,
    saved_name_table,
    updated_postings,
)
from graphret.stopwords import FUNCTION_WORDS
from graphret.storage import Bundle, Parts
from graphret.text import Token, alias_list, normalize_name, tokenize
from graphret.text import words as words_of
from graphret.text_index import TextIndex
from graphret.types import Node

EXTRACTED = "extracted"
"""The property that lists the fields that an extractor filled, ``name`` included, so
that it may fill them again."""

_MONTHS = frozenset(
    "january february march april may june july august september october november"
    " december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday"
    " wednesday thursday friday saturday sunday spring summer autumn winter".split()
)
_NO_NAME = frozenset(
    "yes no none unknown tba tbd tbc n a na various total null nan true false did"
    " not".split()
)
_NO_CONTENT = FUNCTION_WORDS | _MONTHS
_CONNECTORS = frozenset(
    "of the de la le les von van der den du del della di da dos al el bin ibn und"
    " for".split()
)
# A phrase by the shapes of its words (U capitalised, T a capitalised stop word, D
# digits, C a connector, O any other), each after the shape of the gap before it (s a
# space, j a joiner, i behind an initial, x a separator).
_PHRASE = re.compile("U(?:[sji][UT]|sD|(?:sC){1,3}(?:sU|j[UT]))*")
_GAPS = {" ": "s", "-": "j", "'": "j", "’": "j", " & ": "j"}
_BRACKETS = re.compile(r"(?<!\s)\s*+[(\[][^()\[\]]*[)\]]\s*")
_BEGINS_SENTENCE = re.compile(r"""(?:\A|[.!?:;"“”‘«»(—–•*#|]|[^\S ])[ ]*\Z""")
_HEADINGS = re.compile(
    r"\A(?:\s*#{1,6} [^\n]*\n+)+"
)  # a Markdown heading is no lead sentence
_LEAD_CHARS, _TOPIC_WORDS, _MAX_CELL_WORDS, MAX_NAMES = 600, 30, 8, 100


class MetadataExtractor(Protocol):
    """Extracts the metadata of chunks, segments and records (SAGE, section 2.1 A).

    The metadata become properties of nodes: ``topic``, ``title``, ``summary`` and, of a
    table, ``description``; the lists ``entities`` (names of what is mentioned) and
    ``events`` (a sentence each); ``relationships``, lists of subject, relation and
    object; and ``column_descriptions`` by the names of columns. Empty fields are
    unknown.

    Attributes
    ----------
    corpus_wide
        Whether a node's metadata depends on the other nodes of the call, as it does for
        an extractor that looks for the corpus' own titles. If so, an update that adds
        nodes may change the metadata of old ones.
    """

    corpus_wide: bool

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        """Return the metadata of each node, in their order.

        An extractor whose work can be split maps a function over blocks of nodes on the
        executor; others ignore the executor.
        """
        ...


def describe(
    nodes: Sequence[Node], extractor: MetadataExtractor, executor: Executor = LOCAL
) -> list[Node]:
    """Return the nodes with their metadata among their properties.

    What the user gave wins over extracted values. Fields that an earlier call filled
    are filled anew.
    """
    bare = [*undescribed(nodes)]
    return _described(bare, extractor.extract(bare, executor))


def described(
    nodes: Sequence[Node],
    extractor: MetadataExtractor | None,
    executor: Executor = LOCAL,
) -> tuple[Sequence[Node], CorpusNames | None]:
    """Return nodes with their metadata, and the corpus names behind it.

    The names are `None` where the metadata depend on more of other nodes than names.
    """
    if extractor is None:
        return nodes, None
    if not depends_on_names_alone(extractor):
        return describe(nodes, extractor, executor), None
    names, _ = CorpusNames().changed((), undescribed(nodes))
    return describe_by(nodes, names, executor), names.packed()


def describe_by(
    nodes: Sequence[Node], names: CorpusNames, executor: Executor = LOCAL
) -> list[Node]:
    """Return the nodes with `HeuristicMetadata`, given the names of the corpus."""
    bare = [*undescribed(nodes)]
    extracted = executor.map(names, batched(bare))
    return _described(bare, [*chain.from_iterable(extracted)])


def undescribed(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes without the fields that an extractor filled."""
    return (without(node, EXTRACTED) for node in nodes)


def _described(bare: Sequence[Node], extracted: Sequence[dict[str, Any]]) -> list[Node]:
    return [
        filled(node, metadata, metadata.get("title", ""), EXTRACTED)
        for node, metadata in zip(bare, extracted, strict=True)
    ]


def filled(node: Node, metadata: Mapping[str, Any], name: str, listing: str) -> Node:
    """Return a node with missing properties and name filled in.

    Its property `listing` lists what was filled.
    """
    properties = node.properties
    empty: tuple[object, ...] = (None, "", [], {})
    new = {
        key: value
        for key, value in metadata.items()
        if value not in empty and properties.get(key) in empty
    }
    keys = [
        *properties.get(listing, ()),
        *new,
        *(["name"] if name and not node.name else []),
    ]
    if not keys:
        return node
    return Node(
        node.id,
        node.labels,
        node.name or name,
        node.text,
        {**properties, **new, listing: keys},
    )


def without(node: Node, listing: str, keep: Sequence[str] = ()) -> Node:
    """Return a node without what `filled` gave it, except for the keys to `keep`.

    The property `listing` lists what was filled.
    """
    if listing not in node.properties:
        return node
    listed = node.properties[listing]
    # "name" stands for the node's name, not for a property.
    removed = {listing, *listed} - {"name", *keep}
    properties = {
        key: value for key, value in node.properties.items() if key not in removed
    }
    name = "" if "name" in listed else node.name
    return Node(node.id, node.labels, name, node.text, properties)


@dataclass(frozen=True, slots=True)
class HeuristicMetadata(MetadataExtractor):
    """Topic, title and entities by rules.

    The topic is the first sentence, after the title unless the sentence has it.
    Entities are the titles, names and aliases of the corpus in a text or cell (longest
    first; a single word only where it is capitalised, in scripts that have case), then
    capitalised phrases, then cells that are neither numbers nor dates. A name with a
    bracket ("Mercury (planet)") is also found without it. A node has at most 100
    entities.
    """

    corpus_wide: bool = True

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        """Return the metadata of each node; the names of all are the gazetteer."""
        names, _ = CorpusNames().changed((), nodes)
        return [*chain.from_iterable(executor.map(names, batched(nodes)))]


def depends_on_names_alone(extractor: MetadataExtractor) -> bool:
    """Whether an extractor uses nothing but the names of other nodes.

    Then `describe_by` gives the same metadata.
    """
    rules = isinstance(extractor, HeuristicMetadata)
    return rules and type(extractor).extract is HeuristicMetadata.extract


def named_by_lead(node: Node) -> bool:
    """Whether `HeuristicMetadata` named a node by its own first words."""
    return "name" in node.properties.get(EXTRACTED, ()) and node.name == _name_of_lead(
        _lead(node.text)
    )


def _lead(text: str) -> str:
    """Return the first sentence of a text, without brackets."""
    head = _HEADINGS.sub("", running_text(text[: 4 * _LEAD_CHARS])[:_LEAD_CHARS])
    start, end = next(split_sentences(head), (0, 0))
    return " ".join(_without_brackets(head[start:end]).split()[:_TOPIC_WORDS]).rstrip(
        " .,;:"
    )


def _name_of_lead(lead: str) -> str:
    words = clean_name(lead).split()
    return " ".join(words[:_MAX_CELL_WORDS]) + (
        "…" if len(words) > _MAX_CELL_WORDS else ""
    )


def _of_text(node: Node, names: CorpusNames) -> dict[str, Any]:
    properties = node.properties
    title = node.name or str(properties.get("title") or "")
    lead = _lead(node.text)
    entities = [*_title_names(node), *names.in_text(node.text)]
    is_document = node.label == "Document"
    if not is_document:
        values = (
            part
            for value in properties.values()
            for part in (value if isinstance(value, list) else [value])
        )
        entities += [
            value for value in values if isinstance(value, str) and _is_textual(value)
        ]
    bare = normalize_name(_without_brackets(title))
    has_title = not title or (bare and bare in normalize_name(lead))
    topic = lead if lead and has_title else f"{title}: {lead}" if lead else title
    return {
        "topic": topic,
        "title": _name_of_lead(lead) if is_document and not title else "",
        "entities": distinct(entities),
    }


def _of_table(node: Node, names: CorpusNames) -> dict[str, Any]:
    properties = node.properties
    about = [
        text
        for key in ("section", "introduction")
        for text in names.in_text(str(properties.get(key) or ""))
    ]
    cells = [
        name
        for row in properties["table_rows"]
        for cell in row
        for name in names.in_cell(cell)
    ]
    heading = ", ".join(
        filter(
            None,
            (
                node.name or str(properties.get("title") or ""),
                str(properties.get("section") or ""),
            ),
        )
    )
    columns = ", ".join(filter(None, properties.get("table_header") or ()))
    return {
        "topic": ": ".join(filter(None, (heading, columns))),
        "description": (
            f"Table of {columns}" + (f" in {heading}" if heading else "")
            if columns
            else ""
        ),
        "entities": distinct([*_title_names(node), *about, *cells]),
    }


class CorpusNames:
    """The names of a corpus, and phrases in texts that look like names.

    It is immutable; `changed` makes a new one. Of the nodes with a name the first by id
    determines its spelling.

    Parameters
    ----------
    nodes_by_name
        By the words of a name, the ids of its nodes, and how each spells it.
    """

    def __init__(
        self,
        nodes_by_name: Layered[str, tuple[NamedNode, ...]] | None = None,
        gazetteer: Gazetteer | None = None,
    ) -> None:
        self._nodes_by_name = nodes_by_name or Layered({})
        self._gazetteer = gazetteer or Gazetteer(self._nodes_by_name)
        self._saved: Parts | None = None
        self._in_cells: dict[str, list[str]] = {}  # as cells repeat

    def changed(
        self, gone: Iterable[Node], come: Iterable[Node]
    ) -> tuple[CorpusNames, list[list[str]]]:
        """Return the names after some nodes go and others come, and what changed.

        The changes are the words of names that are new, gone or spelled differently.
        """
        removed, added = (
            [(key, (node.id, name)) for node in nodes for key, name in _keys(node)]
            for nodes in (gone, come)
        )
        nodes_by_name = updated_postings(self._nodes_by_name, removed, added)
        new, lost = list[list[str]](), list[list[str]]()
        for key in dict.fromkeys(key for key, _ in (*removed, *added)):
            before, after = (
                {name for _, name in table.get(key, ())[:1]}
                for table in (self._nodes_by_name, nodes_by_name)
            )
            if before != after:
                (new if after else lost).append(key.split())
        gazetteer = self._gazetteer.changed(new, lost)
        return CorpusNames(nodes_by_name, gazetteer), [*new, *lost]

    def parts(self) -> Parts:
        """The names as they are saved."""
        if self._saved is not None:
            return self._saved
        parts = name_table_parts(self._nodes_by_name)
        parts.add("gazetteer", self._gazetteer.parts())
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> CorpusNames:
        """Open saved names."""
        names = TextIndex.from_bundle(bundle.sub("names"))
        gazetteer = Gazetteer.from_bundle(bundle.sub("gazetteer"), names)
        opened = cls(saved_name_table(bundle), gazetteer)
        opened._saved = bundle
        return opened

    def packed(self) -> CorpusNames:
        """Return the same names in arrays, where they take a third of the memory."""
        return self.from_bundle(Bundle.of(self.parts()))

    def __reduce__(self) -> Any:
        # Other processes need only the node that spells each name.
        nodes_by_name = self._nodes_by_name.as_dict()
        first = {key: nodes[:1] for key, nodes in nodes_by_name.items()}
        return CorpusNames, (Layered(first),)

    def __call__(self, nodes: Sequence[Node]) -> list[dict[str, Any]]:
        """Return the metadata of each node."""
        return [
            (_of_table if "table_rows" in node.properties else _of_text)(node, self)
            for node in nodes
        ]

    def in_text(self, text: str) -> list[str]:
        """Return the corpus names and capitalised phrases in a text, in order."""
        tokens = tokenize(text)
        phrases = set(_phrases(text, tokens))
        inside = {i for start, end in phrases for i in range(start, end)}
        name_by_span = {span: text[slice(*span)] for span in phrases}
        for name, is_single, start, end in self._corpus_names_in(text, tokens):
            if not (is_single and start in inside and (start, end) not in phrases):
                name_by_span[start, end] = name
        return [name_by_span[span] for span in sorted(name_by_span)]

    def in_cell(self, cell: str) -> list[str]:
        """Return the cell, if it can be a name, and the names of the corpus in it."""
        if (known := self._in_cells.get(cell)) is not None:
            return known
        cell_name = [cell.strip()] if _is_textual(cell) else []
        corpus_names = self._corpus_names_in(cell, tokenize(cell))
        found = cell_name + [name for name, *_ in corpus_names]
        return self._in_cells.setdefault(cell, found)

    def _corpus_names_in(
        self, text: str, tokens: Sequence[Token]
    ) -> Iterator[tuple[str, bool, int, int]]:
        """Yield corpus names in a text, whether each is one word, and its place."""
        words = [word for word, _, _ in tokens]
        for match in self._gazetteer.find_words(words):
            key = " ".join(words[match.start : match.end])
            start, end = tokens[match.start][1], tokens[match.end - 1][2]
            is_single = match.end - match.start == 1
            if not (is_single and text[start:end].islower()):
                yield self._nodes_by_name[key][0][1], is_single, start, end


def _keys(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the words and the spelling of each title that can be a name in texts."""
    for name in _title_names(node):
        words = words_of(name)
        if _can_be_name(words):
            yield " ".join(words), name


def _title_names(node: Node) -> Iterator[str]:
    """Yield the names that a node adds to those of the corpus, as entities of texts.

    This is the question that metadata ask: a title counts beside name and aliases, and
    each also without brackets of any kind. For the names by which other texts refer to
    a node see `graphret.sage.names.reference_names`.
    """
    titles = alias_list([node.name, node.properties.get("title")])
    for name in (*titles, *alias_list(node.properties.get("aliases"))):
        yield from dict.fromkeys(filter(None, (name, _without_brackets(name).strip())))


def _without_brackets(text: str) -> str:
    """Return a text with a space in place of brackets of any kind, where it has any."""
    return _BRACKETS.sub(" ", text) if "(" in text or "[" in text else text


def _phrases(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the places of the capitalised phrases in a text.

    A single word that begins a sentence counts if it also occurs elsewhere.
    """
    elsewhere: set[str] = set()
    doubtful: list[Token] = []
    for match in _PHRASE.finditer(_shape(text, tokens)):
        phrase = tokens[match.start() // 2 : match.end() // 2]
        words = [word for word, _, _ in phrase]
        start, end = phrase[0][1], phrase[-1][2]
        if not _can_be_name(words):
            continue
        if len(phrase) == 1 and _BEGINS_SENTENCE.search(
            text[max(0, start - 3) : start]
        ):
            doubtful += phrase
        else:
            elsewhere.update(words)
            yield start, end
    yield from ((start, end) for word, start, end in doubtful if word in elsewhere)


def _shape(text: str, tokens: Sequence[Token]) -> str:
    """Return the shape of a text for `_PHRASE`, two letters a word.

    A word that is not capitalised is told from others only where it may go on a phrase.
    """
    shape: list[str] = []
    before, is_initial, is_open = 0, False, False
    for word, start, end in tokens:
        is_capitalised = text[start].isupper()
        if is_capitalised or is_open:
            gap = text[before:start]
            shape.append("i" if is_initial and gap == ". " else _GAPS.get(gap, "x"))
            if is_capitalised:
                kind = "T" if word in FUNCTION_WORDS else "U"
            elif word in _CONNECTORS:
                kind = "C"
            else:
                kind = "D" if text[start:end].isdigit() else "O"
            shape.append(kind)
            is_open = kind != "O"
        else:
            shape.append("xO")
        before, is_initial = end, end - start == 1
    return "".join(shape)


def _can_be_name(words: Sequence[str]) -> bool:
    for word in words:
        if word not in _NO_CONTENT and not word.isdigit():
            return len(words) > 1 or len(word) > 1
    return False


def _is_textual(cell: str) -> bool:
    """Whether a cell is a few words, mostly letters, and no date, number or filler."""
    words, letters = (
        normalize_name(_without_brackets(cell)).split(),
        sum(map(str.isalpha, cell)),
    )
    if not 0 < len(words) <= _MAX_CELL_WORDS or "://" in cell or "@" in cell:
        return False
    if letters < max(2, sum(map(str.isalnum, cell)) / 2):
        return False
    return not all(
        word in _NO_NAME or word in _MONTHS or word[0].isdigit() for word in words
    )


def distinct(names: Iterable[str]) -> list[str]:
    """Return at most 100 names that differ in more than case, accents and punctuation.

    Of equal ones the first stays.
    """
    first: dict[str, str] = {}
    for name in names:
        if key := normalize_name(name):
            first.setdefault(key, name)
    return list(first.values())[:MAX_NAMES]
