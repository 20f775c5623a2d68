"""HotpotQA, MuSiQue and 2WikiMultihopQA, in the layout shared for graph RAG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphret.corpus import Document, HeuristicMetadata, describe, to_nodes
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import Dataset, json_files, read_json, read_list
from graphret.training.questions import LabelledQuestion

_CORPUS = "_corpus"


def load_multihop(data: str | Path) -> list[Dataset]:
    """Read every ``<name>.json`` with a ``<name>_corpus.json``, in the order of names.

    Files may be gzipped, with ``.gz`` behind their names. A corpus maps titles to
    sentences, or lists objects with ``title`` and ``text``; passages of one title and
    different texts are separate nodes. The gold of a question is the passages that its
    ``supporting_facts`` (``[title, sentence]``) name, or its ``paragraphs``, by title
    and text, but for those whose ``is_supporting`` is false.

    Raises
    ------
    InvalidInput
        When there are none, a file is not what it should be, or a question's gold is
        not in the corpus.
    """
    root = Path(data)
    datasets = [load_passages(*files) for files in passage_files(json_files(root))]
    if not datasets:
        raise InvalidInput(
            f"{root}: expected a <name>.json with a <name>_corpus.json, found none"
        )
    return datasets


def passage_files(files: Mapping[str, Path]) -> list[tuple[str, Path, Path]]:
    """Return the name, the questions and the corpus of each data set among files."""
    return [
        (name, questions, files[name + _CORPUS])
        for name, questions in files.items()
        if not name.endswith(_CORPUS) and name + _CORPUS in files
    ]


def load_passages(name: str, path: Path, corpus: Path) -> Dataset:
    """Read the questions at `path` and their corpus; see `load_multihop`."""
    passages = list(dict.fromkeys(_passages(read_json(corpus), corpus)))
    ids = _ids(passages)
    documents = [
        Document(text, id=ids[title, text], title=title) for title, text in passages
    ]
    nodes = describe(to_nodes(documents, chunker=None), HeuristicMetadata())
    ids_by_title: dict[str, list[str]] = {}
    for (title, _), node_id in ids.items():
        ids_by_title.setdefault(title, []).append(node_id)
    questions = []
    for nth, record in enumerate(read_list(path)):
        where = f"{path}, question {nth}"
        try:
            text, gold = record["question"], _gold(record, ids, ids_by_title)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{where}: {error!r}") from error
        if not isinstance(text, str):
            raise InvalidInput(f"{where}: 'question': expected a string, got {text!r}")
        if not gold:
            raise InvalidInput(f"{where}: expected a supporting passage, found none")
        questions.append(LabelledQuestion(text, frozenset(gold)))
    return Dataset(name, nodes, questions)


def _passages(raw: Any, path: Path) -> list[tuple[str, str]]:
    """Return the title and the text of each passage of a corpus."""
    try:
        if isinstance(raw, Mapping):
            passages = [
                (title, content if isinstance(content, str) else "".join(content))
                for title, content in raw.items()
            ]
        else:
            passages = [(passage["title"], passage["text"]) for passage in raw]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path}: expected a corpus of passages: {error!r}"
        ) from error
    for nth, (title, text) in enumerate(passages):
        if not isinstance(title, str) or not isinstance(text, str):
            raise InvalidInput(
                f"{path}, passage {nth}: expected strings as 'title' and 'text'"
            )
    return passages


def _ids(passages: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return an id for each passage: its title, with a number if the title is taken."""
    ids: dict[tuple[str, str], str] = {}
    used_ids: set[str] = set()
    for title, text in passages:
        node_id, nth = title or "untitled", 1
        while node_id in used_ids:
            nth += 1
            node_id = f"{title} ({nth})"
        used_ids.add(node_id)
        ids[title, text] = node_id
    return ids


def _gold(
    record: Any,
    ids: Mapping[tuple[str, str], str],
    ids_by_title: Mapping[str, list[str]],
) -> set[str]:
    """Return the ids of a question's gold passages, which must be in the corpus."""
    gold: set[str] = set()
    if "supporting_facts" not in record:
        for passage in record["paragraphs"]:
            if not passage.get("is_supporting", True):
                continue
            title, text = passage["title"], passage["paragraph_text"]
            if (title, text) not in ids:
                raise InvalidInput(
                    f"the corpus has no passage {title!r} with this text: {text[:60]!r}"
                )
            gold.add(ids[title, text])
        return gold
    context_texts = {
        title: "".join(sentences) for title, sentences in record.get("context", ())
    }
    for title in dict.fromkeys(fact[0] for fact in record["supporting_facts"]):
        exact = ids.get((title, context_texts.get(title, "")))
        if exact is None and title not in ids_by_title:
            raise InvalidInput(f"the corpus has no passage {title!r}")
        gold.update([exact] if exact else ids_by_title[title])
    return gold
