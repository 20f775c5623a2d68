"""Metadata found by rules: no model, the same answer every time, thousands of passages a second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphret.corpus.metadata import Metadata, MetadataExtractor
from graphret.corpus.names import clean_name, running_text
from graphret.corpus.sentences import iter_sentences
from graphret.gazetteer import Gazetteer
from graphret.text import Token, normalize_name, tokenize
from graphret.types import Node


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONTHS = _words(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "may sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter"
)
_STOP = _words(
    "a an the this that these those it its he him his she her hers they them their theirs we us our ours you your i me "
    "my mine who whom whose which what when where why how there here in on at by for from with without of to into onto "
    "upon after before during since while until although though however as if because but and or nor so then than also "
    "such both all any some many most more much few each every other another one two three four five six seven eight "
    "nine ten first second third no not yes is are was were be been being has have had do does did will would can "
    "could may might must shall should up down out over under between among about against within throughout through "
    "despite according later earlier following prior currently originally initially eventually finally once only just "
    "even still yet never often usually sometimes several various new old unlike like based born see n t s"
)
_NO_NAME = _words("yes no none unknown tba tbd tbc n a na various total null nan true false did not")
_CONNECTORS = _words("of the de la le les von van der den du del della di da dos al el bin ibn und for")
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*")
_INITIAL_AFTER = '.!?:;"“”‘«»(—–•*#|'
_LEAD_CHARS = 600
_HEADINGS = re.compile(r"\A(?:\s*#{1,6} [^\n]*\n+)+")  # a Markdown heading is no lead sentence
_MAX_CELL_WORDS = 8
_MAX_CONNECTORS = 3


@dataclass(frozen=True, slots=True)
class HeuristicMetadata(MetadataExtractor):
    """Topic, title and entities by rules.

    The topic is the first sentence, behind the title unless it says it. Entities are the titles, names and aliases of
    the corpus where a text or cell says them (longest first; a single word only where it is capitalised, in scripts
    that have case), then phrases in capitals, then cells that are neither numbers nor dates. A name with a bracket
    behind it ("Mercury (planet)") is also looked for without.

    Parameters
    ----------
    max_entities
        The most entities of a node.
    topic_words
        The most words that a topic takes from the first sentence.
    """

    max_entities: int = 100
    topic_words: int = 30
    corpus_wide: bool = True

    def extract(self, nodes: Sequence[Node]) -> list[Metadata]:
        """Return the metadata of each node, with the names of all of them as the gazetteer."""
        names = _Names(nodes)
        cells: dict[str, list[str]] = {}
        return [self._of_node(node, names, cells) for node in nodes]

    def _of_node(self, node: Node, names: _Names, cells: dict[str, list[str]]) -> Metadata:
        rows = node.properties.get("table_rows")
        if rows is not None:
            return self._of_table(node, rows, names, cells)
        title = _title_of(node)
        lead = _lead(node.text, self.topic_words)
        found = [*_bearers(node), *names.mentions(node.text)]
        if node.label != "Document":
            found += [value for value in _short_values(node) if _is_textual(value)]
        return Metadata(
            topic=_topic(title, lead),
            title="" if title or node.label != "Document" else _made_title(node.text, lead),
            entities=self._distinct(found),
        )

    def _of_table(
        self, node: Node, rows: Iterable[Sequence[str]], names: _Names, cells: dict[str, list[str]]
    ) -> Metadata:
        given = node.properties
        title, section = _title_of(node), str(given.get("section") or "")
        header = [name for name in given.get("table_header") or [] if name]
        found = [*_bearers(node)]
        for text in (section, str(given.get("introduction") or "")):
            found += names.mentions(text)
        for cell in (cell for row in rows for cell in row):
            if cell not in cells:
                cells[cell] = list(names.of_cell(cell))
            found += cells[cell]
        heading = ", ".join(part for part in (title, section) if part)
        columns = ", ".join(header)
        return Metadata(
            topic=f"{heading}: {columns}" if heading and columns else heading or columns,
            description=f"Table of {columns}" + (f" in {heading}" if heading else "") if columns else "",
            entities=self._distinct(found),
        )

    def _distinct(self, names: Iterable[str]) -> tuple[str, ...]:
        first: dict[str, str] = {}
        for name in names:
            key = normalize_name(name)
            if key:
                first.setdefault(key, name)
        return tuple(first.values())[: self.max_entities]


class _Names:
    """The names of a corpus, and what else in a text looks like one."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        names: dict[str, str] = {}
        for node in nodes:
            for name in _bearers(node):
                words = normalize_name(name).split()
                if words and _can_be_name(words):
                    names.setdefault(" ".join(words), name)
        self._names = list(names.values())
        self._single = [" " not in key for key in names]
        self._gazetteer = Gazetteer(self._names)

    def mentions(self, text: str) -> list[str]:
        """Return the names of the corpus and the capitalised phrases in a text, in order of appearance."""
        tokens = tokenize(text)
        phrases = list(_phrases(text, tokens))
        inside = {i for start, end in phrases for i in range(start, end)}
        known = [
            (start, end, self._names[i])
            for i, start, end in self._known(text, tokens)
            if not (self._single[i] and start in inside and (start, end) not in phrases)
        ]
        spans = {(start, end) for start, end, _ in known}
        found = known + [(start, end, text[start:end]) for start, end in phrases if (start, end) not in spans]
        return [name for _, _, name in sorted(found)]

    def of_cell(self, cell: str) -> Iterator[str]:
        """Return the cell, if it can be a name, and the names of the corpus in it."""
        if _is_textual(cell):
            yield cell.strip()
        for index, _, _ in self._known(cell, tokenize(cell)):
            yield self._names[index]

    def _known(self, text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
        for match in self._gazetteer.find_tokens(tokens):
            if not (self._single[match.name_index] and text[match.start : match.end].islower()):
                yield match


def _bearers(node: Node) -> Iterator[str]:
    """Yield what a node is called, each name also without the bracket behind it."""
    given = node.properties
    aliases = given.get("aliases") or []
    for name in (node.name, given.get("title"), *aliases):
        if isinstance(name, str) and name:
            yield name
            bare = _BRACKETS.sub(" ", name).strip()
            if bare and bare != name:
                yield bare


def _phrases(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the capitalised phrases of a text; a lone word that begins a sentence counts if it occurs elsewhere."""
    elsewhere: set[str] = set()
    doubtful: list[tuple[str, int, int]] = []
    i = 0
    while i < len(tokens):
        word, start, _ = tokens[i]
        if not text[start].isupper() or word in _STOP:
            i += 1
            continue
        last = _last_of_phrase(text, tokens, i)
        words = [token[0] for token in tokens[i : last + 1]]
        end = tokens[last][2]
        if last == i and _begins_sentence(text, start):
            doubtful.append((word, start, end))
        elif _can_be_name(words):
            elsewhere.update(words)
            yield start, end
        i = last + 1
    for word, start, end in doubtful:
        if word in elsewhere and _can_be_name([word]):
            yield start, end


def _last_of_phrase(text: str, tokens: Sequence[Token], first: int) -> int:
    last = i = first
    connectors = 0
    while i + 1 < len(tokens):
        word, start, end = tokens[i + 1]
        gap = text[tokens[i][2] : start]
        initial = gap == ". " and tokens[i][2] - tokens[i][1] == 1 and connectors == 0
        if not (gap in (" ", "-", "'", "’", " & ") or initial):
            break
        if (text[start].isupper() and (gap != " " or word not in _STOP or i == last)) or (
            gap == " " and i == last and text[start:end].isdigit()
        ):
            last, connectors = i + 1, 0
        elif gap == " " and word in _CONNECTORS and connectors < _MAX_CONNECTORS:
            connectors += 1
        else:
            break
        i += 1
    return last


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip(" ")
    return start == 0 or not before or before[-1] in _INITIAL_AFTER or before[-1].isspace()


def _can_be_name(words: Sequence[str]) -> bool:
    return (
        any(word not in _STOP and word not in _MONTHS and not word.isdigit() for word in words)
        and sum(map(len, words)) > 1
    )


def _is_textual(cell: str) -> bool:
    words = normalize_name(_BRACKETS.sub(" ", cell)).split()
    if not words or len(words) > _MAX_CELL_WORDS or "://" in cell or "@" in cell:
        return False
    letters = sum(character.isalpha() for character in cell)
    if letters * 2 < sum(character.isalnum() for character in cell) or letters < 2:
        return False
    return not all(word in _NO_NAME or word in _MONTHS or word[0].isdigit() for word in words)


def _short_values(node: Node) -> Iterator[str]:
    for value in node.properties.values():
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, str):
                yield part


def _title_of(node: Node) -> str:
    return node.name or str(node.properties.get("title") or "")


def _lead(text: str, max_words: int) -> str:
    head = _HEADINGS.sub("", running_text(text[: 4 * _LEAD_CHARS])[:_LEAD_CHARS])
    start, end = next(iter_sentences(head), (0, 0))
    words = _BRACKETS.sub(" ", head[start:end]).split()
    return " ".join(words[:max_words]).rstrip(" .,;:")


def _topic(title: str, lead: str) -> str:
    if not title or not lead:
        return lead or title
    bare = normalize_name(_BRACKETS.sub(" ", title))
    return lead if bare and bare in normalize_name(lead) else f"{title}: {lead}"


def _made_title(text: str, lead: str) -> str:
    words = clean_name(lead).split()
    return " ".join(words[:_MAX_CELL_WORDS]) + ("…" if len(words) > _MAX_CELL_WORDS else "")
