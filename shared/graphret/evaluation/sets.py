"""Labelled sets of any kind: passages, long documents with gold spans, and tables.

A set is recognized by its files, each plain or gzipped:

========= ==================== ==================== ==================================
layout    corpus               questions            the gold of a question
========= ==================== ==================== ==================================
passages  ``NAME_corpus.json`` ``NAME.json``        passages, by title and text
documents ``docs.json``        ``NAME.spans.json``  characters of documents
tables    ``tables.json``      ``NAME.tables.json`` tables: any segment of one will do
========= ==================== ==================== ==================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphret.corpus import Document, HeuristicMetadata, Table, describe, to_nodes
from graphret.corpus.chunkers import Span, named_chunker
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import json_files, read_list
from graphret.evaluation.metrics import GoldPart
from graphret.evaluation.multihop import load_passages, passage_files
from graphret.search.encoder import Encoder
from graphret.types import Node

PASSAGES, DOCUMENTS, TABLES = "passages", "documents", "tables"
#: The corpus file of a layout, and how the names of its files with questions end.
_FILES = {DOCUMENTS: ("docs", ".spans"), TABLES: ("tables", ".tables")}
_EXPECTED = """there is no set in it: expected NAME.json with NAME_corpus.json, \
docs.json with questions.spans.json, or tables.json with NAME.tables.json, gzipped or \
not"""


@dataclass(frozen=True, slots=True)
class SetFiles:
    """Where a set lies: its name, its layout, its corpus and its questions."""

    name: str
    layout: str
    corpus: Path
    questions: Path


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """A question, and the parts of what answers it; their weights sum to 1."""

    text: str
    gold: tuple[GoldPart, ...]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A corpus as nodes, and questions whose gold is graded."""

    name: str
    nodes: Sequence[Node]
    questions: Sequence[GradedQuestion]


# -- finding sets


def find_sets(
    data: str | Path,
    chosen: Collection[str] | None = None,
) -> tuple[list[SetFiles], list[str]]:
    """Return the sets of a folder, by name, and remarks on what was left out.

    They are the sets whose files lie in the folder itself, or else in those directly
    below it. A set is called after its folder, or after its questions where a folder
    has several.

    Parameters
    ----------
    chosen
        The names of the sets that are wanted; all by default.

    Raises
    ------
    InvalidInput
        When there is none, one that is wanted is not there, two have one name, or a
        folder with JSON has none in a known layout; the message names it.
    """
    root = Path(data)
    if not root.is_dir():
        raise InvalidInput(f"{root}: expected a folder of sets")
    sets, notes = _sets_in(root), []
    for folder in [] if sets else _folders(root):
        folder_sets = _sets_in(folder)
        is_chosen = chosen is None or folder.name in chosen
        if not folder_sets and json_files(folder) and is_chosen:
            raise InvalidInput(f"{folder}: {_EXPECTED}")
        if not folder_sets and is_chosen:
            notes.append(f"{folder.name} was left out: it contains no JSON")
        sets += folder_sets
    if not sets:
        raise InvalidInput(f"{root}: {_EXPECTED}")
    return _chosen(sets, chosen), notes


def _folders(root: Path) -> list[Path]:
    """Return the folders below one, but for hidden ones."""
    folders = [path for path in root.iterdir() if path.is_dir()]
    return sorted(path for path in folders if not path.name.startswith("."))


def _sets_in(folder: Path) -> list[SetFiles]:
    """Return the sets whose files lie in a folder itself."""
    files = json_files(folder)
    sets = []
    for name, questions, corpus in passage_files(files):
        sets.append(SetFiles(name, PASSAGES, corpus, questions))
    for layout, (corpus_name, ending) in _FILES.items():
        if corpus_name not in files:
            continue
        for name, questions in files.items():
            if name.endswith(ending):
                own_name = name.removesuffix(ending)
                sets.append(SetFiles(own_name, layout, files[corpus_name], questions))
    if len(sets) == 1:
        return [replace(sets[0], name=folder.resolve().name)]
    return sets


def _chosen(
    sets: Sequence[SetFiles],
    chosen: Collection[str] | None,
) -> list[SetFiles]:
    """Return the sets of the names that are wanted."""
    by_name: dict[str, SetFiles] = {}
    for files in sets:
        if files.name in by_name:
            files_of_both = f"{by_name[files.name].questions} and {files.questions}"
            raise InvalidInput(f"two sets are called {files.name!r}: {files_of_both}")
        by_name[files.name] = files
    if chosen is None:
        return [*by_name.values()]
    names = ", ".join(by_name)
    if not chosen:
        raise InvalidInput(f"sets: expected some of {names}, got none")
    for name in chosen:
        if name not in by_name:
            raise InvalidInput(f"sets: expected some of {names}, got {name!r}")
    return [files for name, files in by_name.items() if name in chosen]


# -- reading a set


def load_set(files: SetFiles, encoder: Encoder | None = None) -> LabelledSet:
    """Read a set.

    Parameters
    ----------
    encoder
        What the default chunker cuts long documents with; without one it cuts them
        into sentences.

    Raises
    ------
    InvalidInput
        When a file is not what it should be, or a question's gold is not in the
        corpus; the message names the file, and the question or the item.
    """
    if files.layout == DOCUMENTS:
        loaded = _load_documents(files, encoder)
    elif files.layout == TABLES:
        loaded = _load_tables(files)
    else:
        loaded = _load_passages(files)
    if not loaded.nodes:
        raise InvalidInput(f"{files.corpus}: it is empty")
    if not loaded.questions:
        raise InvalidInput(f"{files.questions}: expected questions, found none")
    return loaded


def _load_passages(files: SetFiles) -> LabelledSet:
    """Read passages; each gold passage is a part, and all count alike."""
    dataset = load_passages(files.name, files.questions, files.corpus)
    questions = []
    for question in dataset.questions:
        ids, weight = sorted(question.gold), 1 / len(question.gold)
        gold = tuple(GoldPart(weight, {node_id: 1.0}) for node_id in ids)
        questions.append(GradedQuestion(question.text, gold))
    return LabelledSet(files.name, dataset.nodes, questions)


def _load_tables(files: SetFiles) -> LabelledSet:
    """Read tables; a question's gold is one part: any segment of any of its tables."""
    tables = []
    for nth, record in enumerate(read_list(files.corpus)):
        where = f"{files.corpus}, table {nth}"
        table_id = _text_field(record, "id", where)
        header, *rows = _list_field(record, "rows", where)
        title, section = record.get("title") or "", record.get("section") or ""
        try:
            table = Table(header, rows, id=table_id, title=title, section=section)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
        tables.append(table)
    nodes = _nodes(tables, files.corpus, encoder=None)
    segments: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        segments[node.properties["source_id"]].append(node.id)
    questions = []
    for nth, record in enumerate(read_list(files.questions)):
        where = f"{files.questions}, question {nth}"
        text = _text_field(record, "question", where)
        shares: dict[str, float] = {}
        for table_id in _list_field(record, "tables", where):
            if not isinstance(table_id, str) or table_id not in segments:
                missing = f"the corpus has no table {table_id!r}"
                raise InvalidInput(f"{where}: 'tables': {missing}")
            shares |= dict.fromkeys(segments[table_id], 1.0)
        questions.append(GradedQuestion(text, (GoldPart(1.0, shares),)))
    return LabelledSet(files.name, nodes, questions)


def _load_documents(files: SetFiles, encoder: Encoder | None) -> LabelledSet:
    """Read long documents and cut them; a gold span is a part, in shares of chunks."""
    documents = []
    for nth, record in enumerate(read_list(files.corpus)):
        where = f"{files.corpus}, document {nth}"
        document_id = _text_field(record, "id", where)
        text, title = _field(record, "text", where), record.get("title") or ""
        try:
            documents.append(Document(text, id=document_id, title=title))
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
    lengths = {document.id: len(document.text) for document in documents}
    nodes = _nodes(documents, files.corpus, encoder)
    chunks: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        chunks[node.properties["source_id"]].append(node)
    questions = []
    for nth, record in enumerate(read_list(files.questions)):
        where = f"{files.questions}, question {nth}"
        text = _text_field(record, "question", where)
        spans = _spans(_list_field(record, "spans", where), lengths, where)
        gold = _parts(spans, chunks)
        if not gold:
            raise InvalidInput(f"{where}: 'spans': expected text, got only white space")
        questions.append(GradedQuestion(text, gold))
    return LabelledSet(files.name, nodes, questions)


def _nodes(
    items: Iterable[Document | Table],
    path: Path,
    encoder: Encoder | None,
) -> list[Node]:
    """Return the described chunks and segments of the items that a file holds."""
    try:
        nodes = to_nodes(items, chunker=named_chunker("default", encoder))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return describe(nodes, HeuristicMetadata())


def _spans(
    listed: Iterable[Any],
    lengths: Mapping[str, int],
    where: str,
) -> dict[str, list[Span]]:
    """Return the gold spans of each document, those that overlap as one."""
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for item in listed:
        match item:
            case [str(document_id), int(start), int(end)]:
                pass
            case _:
                expected = "'spans': expected [id, start, end]"
                raise InvalidInput(f"{where}: {expected}, got {item!r}")
        if document_id not in lengths:
            missing = f"the corpus has no document {document_id!r}"
            raise InvalidInput(f"{where}: 'spans': {missing}")
        length = lengths[document_id]
        if not 0 <= start < end <= length:
            raise InvalidInput(
                f"{where}: 'spans': expected a span of the {length} characters of"
                f" {document_id!r}, got {start} to {end}"
            )
        spans[document_id].append((start, end))
    return {
        document_id: _joined(document_spans)
        for document_id, document_spans in spans.items()
    }


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that meet as one: no character counts twice."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            first, last = joined[-1]
            joined[-1] = (first, max(last, end))
        else:
            joined.append((start, end))
    return joined


def _parts(
    spans: Mapping[str, Sequence[Span]],
    chunks: Mapping[str, Sequence[Node]],
) -> tuple[GoldPart, ...]:
    """Return a part for each span that chunks hold characters of.

    What a part counts for is its share of the gold characters. White space between two
    chunks, which neither holds, is not counted: no hits could bring it.
    """
    overlaps_by_span: list[dict[str, int]] = []
    for document_id, document_spans in spans.items():
        for start, end in document_spans:
            overlaps: dict[str, int] = {}
            for chunk in chunks[document_id]:
                first = max(start, chunk.properties["chunk_start"])
                last = min(end, chunk.properties["chunk_end"])
                if first < last:
                    overlaps[chunk.id] = last - first
            if overlaps:
                overlaps_by_span.append(overlaps)
    total = sum(sum(overlaps.values()) for overlaps in overlaps_by_span)
    parts = []
    for overlaps in overlaps_by_span:
        length = sum(overlaps.values())
        shares = {node_id: overlap / length for node_id, overlap in overlaps.items()}
        parts.append(GoldPart(length / total, shares))
    return tuple(parts)


# -- fields of a record


def _text_field(record: Any, name: str, where: str) -> str:
    """Return a field that is a string with something in it."""
    value = _field(record, name, where)
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"{where}: {name!r}: expected a non-empty string, got {value!r}"
        )
    return value


def _list_field(record: Any, name: str, where: str) -> list[Any]:
    """Return a field that is a list with something in it."""
    value = _field(record, name, where)
    if not isinstance(value, list) or not value:
        raise InvalidInput(
            f"{where}: {name!r}: expected a non-empty list, got {value!r}"
        )
    return value


def _field(record: Any, name: str, where: str) -> Any:
    if not isinstance(record, dict):
        raise InvalidInput(f"{where}: expected an object, got {record!r}")
    if name not in record:
        raise InvalidInput(f"{where}: the field {name!r} is missing")
    return record[name]
