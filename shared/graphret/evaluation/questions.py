"""Questions for evaluation: JSON Lines of your own, STaRK's files and MetaQA's."""

from __future__ import annotations

import ast
import csv
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphret.errors import InvalidInput
from graphret.evaluation.metaqa import HOPS, load_questions
from graphret.stores.base import GraphStore, require_limit
from graphret.training.questions import json_lines

if TYPE_CHECKING:
    from graphret.sage import SageGraph

#: STaRK's questions that people wrote, in place of one of its splits.
HUMAN = "human"
_STARK_FOLDER = "stark_qa"
_STARK_FILES = {False: "stark_qa.csv", True: "stark_qa_human_generated_eval.csv"}
#: STaRK's tenth of the test split, which it takes from the test split's beginning.
_TENTH = "test-0.1"
_FIELDS = (
    '{"question": text, "answer_ids": [ids]} or {"question": text, "answers": [ids or'
    ' names]}, with "id" and "kind" where there are some'
)


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question, what answers it, and its kind, "" where it has none.

    `answers` are ids, or names where `named`, until `resolve_answers` finds the nodes.
    `parts` has the nodes of answers that are documents, tables or records: any of them
    counts as the whole.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str = ""
    named: bool = False
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)

    def counted(self, ids: Sequence[str]) -> list[str]:
        """Return a ranking as it counts: for each answer its first part, by its id."""
        return list(dict.fromkeys(self.parts.get(node_id, node_id) for node_id in ids))


def read_evaluation_questions(
    path: str | Path,
    split: str | None = None,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> list[EvaluationQuestion]:
    """Read labelled questions.

    Parameters
    ----------
    path
        A file of JSON Lines (``question``, ``answer_ids`` or ``answers``, which may be
        names, and optionally ``id`` and ``kind``); a folder of STaRK's with
        ``stark_qa/`` and ``split/``, or a CSV file of its own; or a folder in MetaQA's
        layout.
    split
        Of STaRK ``train``, ``val``, ``test`` (the default), ``test-0.1`` or ``human``;
        of MetaQA ``dev`` by default.
    limit
        At most so many, drawn at random, the same for the same `seed`, and in the order
        of the file; of MetaQA so many of each number of hops.

    Raises
    ------
    InvalidInput
        When the file is malformed, an id comes twice, or there are no questions.
    """
    source = Path(path)
    if (source / _STARK_FOLDER).is_dir():
        questions = _of_stark(source, split or "test")
    elif source.is_dir():
        return _of_metaqa(source, split or "dev", limit, seed)
    elif split is not None:
        raise InvalidInput(
            f"split: expected STaRK's folder with {_STARK_FOLDER}/ and split/, got the"
            f" file {source}"
        )
    elif source.suffix == ".csv":
        questions = _stark_rows(source)
    else:
        questions = [_of_record(*line) for line in json_lines(source)]
    _require_distinct(questions, source)
    if not questions:
        raise InvalidInput(f"{source}: expected questions, found none")
    return _drawn(questions, limit, seed)


def resolve_answers(
    store: GraphStore,
    questions: Sequence[EvaluationQuestion],
    documents: SageGraph | None = None,
) -> tuple[list[EvaluationQuestion], list[str]]:
    """Return questions whose answers are ids of nodes, and remarks on missing answers.

    Questions without answers are left out.

    What is the id of a node is one; any other answer of a `named` question is a name,
    and all nodes of that name are right. Of a graph of documents an answer may be one
    of these. An answer that is not in the graph stays: it counts as missed.

    Raises
    ------
    InvalidInput
        When no question has an answer that is in the graph.
    """
    answerable = [question for question in questions if question.answers]
    answers = list(
        dict.fromkeys(answer for labelled in answerable for answer in labelled.answers)
    )
    nodes = store.get(answers) if answers else []
    existing = {
        answer for answer, node in zip(answers, nodes, strict=True) if node is not None
    }
    parts = _parts(documents, [answer for answer in answers if answer not in existing])
    existing |= {*parts.values()}
    names = {
        answer
        for labelled in answerable
        if labelled.named
        for answer in labelled.answers
        if answer not in existing
    }
    ids = {answer: [answer] for answer in answers} | (
        _ids_by_name(store, names) if names else {}
    )
    missing = [
        (question.id, answer)
        for question in answerable
        for answer in question.answers
        if answer not in existing and ids[answer] == [answer]
    ]
    if len(missing) == sum(len(question.answers) for question in answerable):
        first = f", such as {missing[0][1]!r}" if missing else ""
        raise InvalidInput(
            f"questions: expected answers that are in the graph, found none{first}"
        )
    resolved = [
        replace(
            question,
            answers=tuple(id_ for answer in question.answers for id_ in ids[answer]),
            named=False,
            parts={
                node: item_id
                for node, item_id in parts.items()
                if item_id in question.answers
            },
        )
        for question in answerable
    ]
    return resolved, _remarks(len(questions) - len(answerable), missing)


def _remarks(n_left_out: int, missing: Sequence[tuple[str, str]]) -> list[str]:
    """Say what was left out, and which answers no method can find."""
    remarks = []
    if n_left_out:
        remarks.append(f"{n_left_out} questions have no answers and were left out")
    if missing:
        remarks.append(
            f"{len(missing)} answers are not in the graph and count as missed, first"
            f" {missing[0][1]!r} of question {missing[0][0]}"
        )
    return remarks


def _parts(documents: SageGraph | None, item_ids: Sequence[str]) -> dict[str, str]:
    """Return the nodes of documents, tables and records, and what each is part of."""
    if documents is None or not item_ids:
        return {}
    nodes_by_item = documents.state.nodes_of(item_ids)
    return {node: item_id for item_id, nodes in nodes_by_item.items() for node in nodes}


def _ids_by_name(store: GraphStore, names: set[str]) -> dict[str, list[str]]:
    """Return the ids of the nodes of some names, by name; it reads every node once."""
    ids_by_name: dict[str, list[str]] = {}
    for block in store.nodes():
        for node in block:
            if node.name in names:
                ids_by_name.setdefault(node.name, []).append(node.id)
    return ids_by_name


def _of_record(where: str, record: Any) -> EvaluationQuestion:
    fields = record if isinstance(record, dict) else {}
    by_name = "answer_ids" not in fields
    text = fields.get("question")
    answers = fields.get("answers" if by_name else "answer_ids")
    kind = fields.get("kind", "")
    if not isinstance(text, str) or not text.strip() or not isinstance(kind, str):
        raise InvalidInput(f"{where}: expected {_FIELDS}")
    if not isinstance(answers, list) or not all(
        isinstance(answer, str | int) for answer in answers
    ):
        raise InvalidInput(f"{where}: expected {_FIELDS}")
    id_ = str(fields.get("id", where.rpartition(" ")[2]))
    return EvaluationQuestion(id_, text, tuple(map(str, answers)), kind, by_name)


def _of_stark(folder: Path, split: str) -> list[EvaluationQuestion]:
    questions = _stark_rows(folder / _STARK_FOLDER / _STARK_FILES[split == HUMAN])
    if split == HUMAN:
        return questions
    name = split if split != _TENTH else "test"
    index = folder / "split" / f"{name}.index"
    try:
        chosen = index.read_text(encoding="utf-8").split()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{index}: {error}") from error
    by_id = {question.id: question for question in questions}
    if unknown := [question_id for question_id in chosen if question_id not in by_id]:
        raise InvalidInput(f"{index}: there is no question {unknown[0]!r}")
    if split == _TENTH:
        chosen = chosen[: int(len(chosen) * 0.1)]
    return [by_id[question_id] for question_id in chosen]


def _stark_rows(path: Path) -> list[EvaluationQuestion]:
    """Read a CSV file of STaRK's: ``id``, ``query`` and ``answer_ids``, a list."""
    csv.field_size_limit(1 << 30)  # one question has thousands of answers
    questions = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                answers = _listed(row.get("answer_ids"))
                if answers is None or not row.get("query") or not row.get("id"):
                    raise InvalidInput(
                        f"{path}, row {number}: expected id, query and answer_ids, a"
                        " list of numbers"
                    )
                questions.append(EvaluationQuestion(row["id"], row["query"], answers))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path}: {error}") from error
    return questions


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Return the ids of a list that is written as Python or as JSON."""
    try:
        listed = ast.literal_eval(text or "")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(listed, list) or not all(
        isinstance(item, int) for item in listed
    ):
        return None
    return tuple(map(str, listed))


def _of_metaqa(
    folder: Path, split: str, limit: int | None, seed: int
) -> list[EvaluationQuestion]:
    hops = [n for n in HOPS if (folder / f"{n}-hop").is_dir()]
    if not hops:
        raise InvalidInput(
            f"{folder}: expected {_STARK_FOLDER}/ (STaRK) or 1-hop/ (MetaQA) in it"
        )
    return [
        EvaluationQuestion(
            f"{n}-hop-{place}",
            question.text,
            tuple(sorted(question.gold)),
            f"{n}-hop",
            True,
        )
        for n in hops
        for place, question in enumerate(
            load_questions(folder, n, split, limit=limit, seed=seed), 1
        )
    ]


def _require_distinct(questions: Iterable[EvaluationQuestion], source: Path) -> None:
    counted = Counter(question.id for question in questions)
    duplicated = [question_id for question_id, n in counted.items() if n > 1]
    if duplicated:
        raise InvalidInput(
            f"{source}: expected distinct ids, got {duplicated[0]!r}"
            f" {counted[duplicated[0]]} times, one of {len(duplicated):,} duplicates"
        )


def _drawn(
    questions: list[EvaluationQuestion], limit: int | None, seed: int
) -> list[EvaluationQuestion]:
    most = require_limit(limit)
    if most is None or most >= len(questions):
        return questions
    places = sorted(random.Random(seed).sample(range(len(questions)), most))
    return [questions[place] for place in places]
