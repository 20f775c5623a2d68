"""What is known about a node besides its text: the contract of whoever finds it out,
and the rules that do so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Protocol

from graphret.corpus.chunkers import split_sentences
from graphret.corpus.markdown import running_text
from graphret.corpus.names import clean_name
from graphret.executors import LOCAL, Executor, batched
from graphret.linking.bearers import bearers_of, bearers_parts, with_bearers
from graphret.linking.gazetteer import Gazetteer
from graphret.stopwords import FUNCTION_WORDS
from graphret.storage import Bundle, Parts
from graphret.text import Token, normalize_name, tokenize
from graphret.text import words as words_of
from graphret.types import Node

EXTRACTED = "extracted"
"""The property that lists what an extractor filled of a node, its ``name`` included, so
that it may fill it again."""

_MONTHS = frozenset(
    "january february march april may june july august september october november"
    " december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday"
    " wednesday thursday friday saturday sunday spring summer autumn winter".split()
)
_NO_NAME = frozenset(
    "yes no none unknown tba tbd tbc n a na various total null nan true false did"
    " not".split()
)
_CONNECTORS = frozenset(
    "of the de la le les von van der den du del della di da dos al el bin ibn und"
    " for".split()
)
# A phrase in the shapes of its words (in capitals, a stop word in these, digits,
# connectors, others), each behind that of the gap before it: a space, what joins, what
# stands behind an initial, or what parts.
_PHRASE = re.compile("U(?:[sji][UT]|sD|(?:sC){1,3}(?:sU|j[UT]))*")
_GAPS = {" ": "s", "-": "j", "'": "j", "’": "j", " & ": "j"}
_BRACKETS = re.compile(r"(?<!\s)\s*+[(\[][^()\[\]]*[)\]]\s*")
_BEGINS_SENTENCE = re.compile(r"""(?:\A|[.!?:;"“”‘«»(—–•*#|]|[^\S ])[ ]*\Z""")
_HEADINGS = re.compile(
    r"\A(?:\s*#{1,6} [^\n]*\n+)+"
)  # a Markdown heading is no lead sentence
_LEAD_CHARS, _TOPIC_WORDS, _MAX_CELL_WORDS, MAX_NAMES = 600, 30, 8, 100


class MetadataExtractor(Protocol):
    """Finds out what SAGE knows of chunks, segments and records (section 2.1 A), as
    properties of nodes.

    They are ``topic``, ``title``, ``summary`` and, of a table, ``description``; the
    lists ``entities`` (names of what is mentioned) and ``events`` (a sentence each);
    ``relationships``, lists of subject, relation and object; and
    ``column_descriptions`` by the names of columns. What is empty is unknown.

    Attributes
    ----------
    corpus_wide
        Whether a node's metadata depends on the other nodes of the call, as it does
        where the corpus' own titles are looked for; if so, an update that adds nodes
        may change the metadata of old ones.
    """

    corpus_wide: bool

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        """Return the metadata of each node, in their order.

        An extractor whose work can be cut into blocks maps a function over them on the
        executor; any other leaves the executor alone.
        """
        ...


def describe(
    nodes: Sequence[Node], extractor: MetadataExtractor, executor: Executor = LOCAL
) -> list[Node]:
    """Return the nodes with their metadata among their properties.

    What the user gave wins over what is extracted. A field that an earlier call filled
    is filled anew.
    """
    bare = [*undescribed(nodes)]
    return _described(bare, extractor.extract(bare, executor))


def described(
    nodes: Sequence[Node],
    extractor: MetadataExtractor | None,
    executor: Executor = LOCAL,
) -> tuple[Sequence[Node], CorpusNames | None]:
    """Return the nodes of a corpus with their metadata, and the names that these depend
    on, where they depend on nothing else of other nodes.
    """
    if extractor is None:
        return nodes, None
    if not depends_on_names_alone(extractor):
        return describe(nodes, extractor, executor), None
    names, _ = CorpusNames().changed((), undescribed(nodes))
    return describe_by(nodes, names, executor), names


def describe_by(
    nodes: Sequence[Node], names: CorpusNames, executor: Executor = LOCAL
) -> list[Node]:
    """Return the nodes as `describe` does with `HeuristicMetadata`, for a corpus of
    known names.
    """
    bare = [*undescribed(nodes)]
    extracted = executor.map(names, batched(bare))
    return _described(bare, [*chain.from_iterable(extracted)])


def undescribed(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes without what an extractor filled."""
    return (without(node, EXTRACTED) for node in nodes)


def _described(bare: Sequence[Node], extracted: Sequence[dict[str, Any]]) -> list[Node]:
    return [
        filled(node, metadata, metadata.get("title", ""), EXTRACTED)
        for node, metadata in zip(bare, extracted, strict=True)
    ]


def filled(node: Node, found: Mapping[str, Any], name: str, listing: str) -> Node:
    """Return a node with the properties and the name that it lacks, which its property
    `listing` lists.
    """
    given = node.properties
    empty: tuple[object, ...] = (None, "", [], {})
    new = {
        key: value
        for key, value in found.items()
        if value not in empty and given.get(key) in empty
    }
    keys = [
        *given.get(listing, ()),
        *new,
        *(["name"] if name and not node.name else []),
    ]
    return replace(
        node,
        name=node.name or name,
        properties={**given, **new, listing: keys} if keys else given,
    )


def without(node: Node, listing: str, keep: Sequence[str] = ()) -> Node:
    """Return a node without what `filled` gave it, by its property `listing`, but for
    some that it keeps.
    """
    listed = node.properties.get(listing, ())
    gone = {listing, *listed} - {
        "name",
        *keep,
    }  # the name stands for the node's, not for a property
    properties = {
        key: value for key, value in node.properties.items() if key not in gone
    }
    return replace(
        node, name="" if "name" in listed else node.name, properties=properties
    )


@dataclass(frozen=True, slots=True)
class HeuristicMetadata(MetadataExtractor):
    """Topic, title and entities by rules.

    The topic is the first sentence, behind the title unless it says it. Entities are
    the titles, names and aliases of the corpus where a text or cell says them (longest
    first; a single word only where it is capitalised, in scripts that have case), then
    phrases in capitals, then cells that are neither numbers nor dates. A name with a
    bracket behind it ("Mercury (planet)") is also looked for without. A node has at
    most 100 entities.
    """

    corpus_wide: bool = True

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        """Return the metadata of each node; the names of all are the gazetteer."""
        names, _ = CorpusNames().changed((), nodes)
        return [*chain.from_iterable(executor.map(names, batched(nodes)))]


def depends_on_names_alone(extractor: MetadataExtractor) -> bool:
    """Whether the metadata of a node depend on other nodes by what these are called:
    then `describe_by` says them.
    """
    rules = isinstance(extractor, HeuristicMetadata)
    return rules and type(extractor).extract is HeuristicMetadata.extract


def named_by_lead(node: Node) -> bool:
    """Whether `HeuristicMetadata` made the name of a node of its own first words, for
    want of another.
    """
    return "name" in node.properties.get(EXTRACTED, ()) and node.name == _name_of_lead(
        _lead(node.text)
    )


def _lead(text: str) -> str:
    """Return the first sentence of a text, without what stands in brackets."""
    head = _HEADINGS.sub("", running_text(text[: 4 * _LEAD_CHARS])[:_LEAD_CHARS])
    start, end = next(split_sentences(head), (0, 0))
    return " ".join(_BRACKETS.sub(" ", head[start:end]).split()[:_TOPIC_WORDS]).rstrip(
        " .,;:"
    )


def _name_of_lead(lead: str) -> str:
    words = clean_name(lead).split()
    return " ".join(words[:_MAX_CELL_WORDS]) + (
        "…" if len(words) > _MAX_CELL_WORDS else ""
    )


def _of_text(node: Node, names: CorpusNames) -> dict[str, Any]:
    title, given = node.name or str(node.properties.get("title") or ""), node.properties
    lead = _lead(node.text)
    found, made = [*_bearers(node), *names.in_text(node.text)], ""
    if node.label == "Document":
        made = _name_of_lead(lead)
    else:
        values = (
            part
            for value in given.values()
            for part in (value if isinstance(value, list) else [value])
        )
        found += [
            value for value in values if isinstance(value, str) and _is_textual(value)
        ]
    bare = normalize_name(_BRACKETS.sub(" ", title))
    says_title = not title or (bare and bare in normalize_name(lead))
    topic = lead if lead and says_title else f"{title}: {lead}" if lead else title
    return {"topic": topic, "title": "" if title else made, "entities": distinct(found)}


def _of_table(node: Node, names: CorpusNames) -> dict[str, Any]:
    given = node.properties
    about = [
        text
        for key in ("section", "introduction")
        for text in names.in_text(str(given.get(key) or ""))
    ]
    cells = [
        name
        for row in given["table_rows"]
        for cell in row
        for name in names.in_cell(cell)
    ]
    heading = ", ".join(
        filter(
            None,
            (
                node.name or str(given.get("title") or ""),
                str(given.get("section") or ""),
            ),
        )
    )
    columns = ", ".join(filter(None, given.get("table_header") or ()))
    return {
        "topic": ": ".join(filter(None, (heading, columns))),
        "description": (
            f"Table of {columns}" + (f" in {heading}" if heading else "")
            if columns
            else ""
        ),
        "entities": distinct([*_bearers(node), *about, *cells]),
    }


class CorpusNames:
    """The names of a corpus, and what else in a text looks like one.

    It is never changed once made; `changed` makes the next. Of those who bear a name
    the first by id says how it is spelled.

    Parameters
    ----------
    bearers
        By its words, who bears a name: their ids, and how each spells it.
    """

    def __init__(
        self,
        bearers: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
        gazetteer: Gazetteer | None = None,
    ) -> None:
        self._bearers = bearers or {}
        self._gazetteer = gazetteer or Gazetteer(self._bearers)
        self.in_cell = cache(self._in_cell)  # cells repeat

    def changed(
        self, gone: Iterable[Node], come: Iterable[Node]
    ) -> tuple[CorpusNames, list[list[str]]]:
        """Return the names when some nodes go and others come, and the words of those
        that nobody bore before, nobody bears now, or that are spelled otherwise.
        """
        left, new = (
            [(key, (node.id, name)) for node in nodes for key, name in _keys(node)]
            for nodes in (gone, come)
        )
        bearers = with_bearers(self._bearers, left, new)
        gazetteer, differ = copy(self._gazetteer), list[list[str]]()
        for key in dict.fromkeys(key for key, _ in (*left, *new)):
            before, after = (
                {name for _, name in of.get(key, ())[:1]}
                for of in (self._bearers, bearers)
            )
            if before != after:
                differ.append(key.split())
                (gazetteer.add if after else gazetteer.discard)(key)
        return CorpusNames(bearers, gazetteer), differ

    def parts(self) -> Parts:
        """The names as they are saved."""
        return bearers_parts(self._bearers)

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> CorpusNames:
        """Open saved names."""
        bearers, gazetteer = dict(bearers_of(bundle)), Gazetteer()
        for name in bearers:
            gazetteer.add_words(name.split())
        return cls(bearers, gazetteer)

    def __reduce__(self) -> Any:  # one who bears each name goes to other processes
        first = {key: bearers[:1] for key, bearers in self._bearers.items()}
        return CorpusNames, (first,)

    def __call__(self, nodes: Sequence[Node]) -> list[dict[str, Any]]:
        """Return the metadata of each node."""
        return [
            (_of_table if "table_rows" in one.properties else _of_text)(one, self)
            for one in nodes
        ]

    def in_text(self, text: str) -> list[str]:
        """Return the names of the corpus and the capitalised phrases in a text, in
        order of appearance.
        """
        tokens = tokenize(text)
        phrases = set(_phrases(text, tokens))
        inside = {i for start, end in phrases for i in range(start, end)}
        found = {span: text[slice(*span)] for span in phrases}
        for name, is_single, start, end in self._known(text, tokens):
            if not (is_single and start in inside and (start, end) not in phrases):
                found[start, end] = name
        return [found[span] for span in sorted(found)]

    def _in_cell(self, cell: str) -> list[str]:
        """Return the cell, if it can be a name, and the names of the corpus in it."""
        own = [cell.strip()] if _is_textual(cell) else []
        return own + [name for name, *_ in self._known(cell, tokenize(cell))]

    def _known(
        self, text: str, tokens: Sequence[Token]
    ) -> Iterator[tuple[str, bool, int, int]]:
        """Yield the names in a text, whether each is a single word, and where it is."""
        words = [word for word, _, _ in tokens]
        for match in self._gazetteer.find_words(words):
            key = " ".join(words[match.start : match.end])
            start, end = tokens[match.start][1], tokens[match.end - 1][2]
            is_single = match.end - match.start == 1
            if not (is_single and text[start:end].islower()):
                yield self._bearers[key][0][1], is_single, start, end


def _keys(node: Node) -> Iterator[tuple[str, str]]:
    """Yield what a node is called that can be a name: its words, and its spelling."""
    for name in _bearers(node):
        if _can_be_name(normalize_name(name).split()):
            yield " ".join(words_of(name)), name


def _bearers(node: Node) -> Iterator[str]:
    """Yield what a node is called, each name also without the bracket behind it."""
    aliases = node.properties.get("aliases")
    for name in (
        node.name,
        node.properties.get("title"),
        *(aliases if isinstance(aliases, list) else [aliases]),
    ):
        if isinstance(name, str) and name:
            yield from dict.fromkeys(
                filter(None, (name, _BRACKETS.sub(" ", name).strip()))
            )


def _phrases(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the capitalised phrases of a text; a lone word that begins a sentence
    counts if it occurs elsewhere.
    """
    shape, before, initial = "", 0, False
    for word, start, end in tokens:
        gap = text[before:start]
        shape += "i" if initial and gap == ". " else _GAPS.get(gap, "x")
        if text[start].isupper():
            shape += "T" if word in FUNCTION_WORDS else "U"
        else:
            shape += (
                "C"
                if word in _CONNECTORS
                else "D"
                if text[start:end].isdigit()
                else "O"
            )
        before, initial = end, end - start == 1
    found = [
        tokens[match.start() // 2 : match.end() // 2]
        for match in _PHRASE.finditer(shape)
    ]
    found = [one for one in found if _can_be_name([word for word, _, _ in one])]
    doubtful = [
        len(one) == 1
        and _BEGINS_SENTENCE.search(text[max(0, one[0][1] - 3) : one[0][1]])
        for one in found
    ]
    elsewhere = {
        word
        for one, doubt in zip(found, doubtful, strict=True)
        if not doubt
        for word, _, _ in one
    }
    sure = (
        one
        for one, doubt in zip(found, doubtful, strict=True)
        if not doubt or one[0][0] in elsewhere
    )
    return ((one[0][1], one[-1][2]) for one in sure)


def _can_be_name(words: Sequence[str]) -> bool:
    speaks = any(
        word not in FUNCTION_WORDS and word not in _MONTHS and not word.isdigit()
        for word in words
    )
    return speaks and sum(map(len, words)) > 1


def _is_textual(cell: str) -> bool:
    """Whether a cell is in few words, most of its characters letters, and neither a
    date, a number nor empty talk.
    """
    words, letters = (
        normalize_name(_BRACKETS.sub(" ", cell)).split(),
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
    """Return names without those that only case, accents or punctuation tell from an
    earlier one, 100 at most.
    """
    first: dict[str, str] = {}
    for name in names:
        if key := normalize_name(name):
            first.setdefault(key, name)
    return list(first.values())[:MAX_NAMES]
