"""OTT-QA (Chen et al. 2021): questions over tables and the passages linked in cells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from graphret.corpus import Document, HeuristicMetadata, Table, describe, to_nodes
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import HELD, TUNED, Dataset, read_json
from graphret.training.questions import LabelledQuestion
from graphret.types import Node

ROWS = 10

#: Where the tables lie, by which the layout is known.
TABLES = "data/traindev_tables_tok"
_PASSAGES = "data/traindev_request_tok"


def half(table_id: str) -> str:
    """Return the half of a table: ``"tuned"``, for choosing settings, or ``"held"``."""
    return (
        HELD
        if hashlib.md5(table_id.encode(), usedforsecurity=False).digest()[-1] % 2
        else TUNED
    )


def load_ottqa(data: str | Path, split: str = "dev", *, titled: bool = True) -> Dataset:
    """Read a folder in the layout of the public OTT-QA repository.

    Each passage is a node with its url as the id and what the url says as its title;
    each ten rows of a table are one, row r in ``"{table}#{r // 10}"``. Of a cell
    ``[text, links]`` only the text is read: the links are what a graph has to find. The
    gold of a question is the passages that hold its answer and the segments with the
    answer's rows.

    Parameters
    ----------
    data
        The folder, with ``data/traindev_tables_tok``, ``data/traindev_request_tok`` and
        ``released_data/{split}.traced.json``.
    titled
        Whether nodes have their titles.

    Raises
    ------
    InvalidInput
        When a file is missing or not what it should be; the message names it.
    """
    root = Path(data)
    tables: list[Table] = []
    passages: dict[str, str] = {}
    for path in sorted((root / TABLES).glob("*.json")):
        tables.append(_table(read_json(path), path, titled))
        requests = root / _PASSAGES / path.name
        for url, text in read_json(requests).items() if requests.exists() else ():
            passages.setdefault(url, text)
    if not tables:
        raise InvalidInput(f"{root / TABLES}: expected tables, found none")
    documents = [
        Document(text, id=url, title=title_of(url) if titled else "")
        for url, text in passages.items()
    ]
    segments = to_nodes(
        [*tables, *documents], chunker=None, rows_per_segment=ROWS, balance=False
    )
    nodes = describe(segments, HeuristicMetadata())
    records = read_json(root / "released_data" / f"{split}.traced.json")
    questions, lost = _questions(records, nodes)
    counts = {"tables": len(tables), "passages": len(documents)}
    counts |= {"questions_in_file": len(records), "gold_not_in_corpus": lost}
    return Dataset("ottqa", nodes, questions, counts)


def title_of(url: str) -> str:
    """Return a page's title: ``Café (song)`` for the url ``/wiki/Caf%C3%A9_(song)``."""
    return unquote(url.removeprefix("/wiki/")).replace("_", " ")


def _table(raw: Any, path: Path, titled: bool) -> Table:
    try:
        header = [cell[0] for cell in raw["header"]]
        rows = [[cell[0] for cell in row] for row in raw["data"]]
        return Table(
            header,
            rows,
            id=raw["uid"],
            title=raw["title"] if titled else "",
            section=raw.get("section_title", ""),
            section_text=raw.get("section_text", ""),
            introduction=raw.get("intro", ""),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise InvalidInput(f"{path}: expected a table of OTT-QA: {error!r}") from error


def _questions(
    records: Iterable[Any], nodes: Iterable[Node]
) -> tuple[list[LabelledQuestion], int]:
    """Return the questions with gold among the nodes, and how much gold is missing."""
    node_ids = {node.id for node in nodes}
    questions, lost = [], 0
    for record in records:
        table_id = record["table_id"]
        gold = set()
        for _, (row, _), url, kind in record["answer-node"]:
            gold.add(f"{table_id}#{row // ROWS}")
            if kind == "passage" and url:
                gold.add(url)
        present_gold = gold & node_ids
        lost += len(gold) - len(present_gold)
        if present_gold:
            questions.append(
                LabelledQuestion(
                    record["question"], frozenset(present_gold), half(table_id)
                )
            )
    return questions, lost
