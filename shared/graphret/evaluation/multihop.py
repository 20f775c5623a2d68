"""Questions over several passages: HotpotQA, MuSiQue and 2WikiMultihopQA, in the layout shared for graph RAG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphret.corpus import Document, HeuristicMetadata, describe, to_nodes
from graphret.errors import InvalidInput
from graphret.evaluation.dataset import Dataset, read_json
from graphret.training.questions import Question

_CORPUS = "_corpus"


def load_multihop(data: str | Path) -> list[Dataset]:
    """Read every ``<name>.json`` that has a ``<name>_corpus.json`` beside it, in the order of their names.

    A corpus maps titles to sentences, or lists objects with ``title`` and ``text``; passages of one title and
    different texts are separate nodes. The gold of a question is the passages that its ``supporting_facts``
    (``[title, sentence]``) name, or those of its ``paragraphs`` that say ``is_supporting``, by title and text.

    Raises
    ------
    InvalidInput
        When there are none, a file is not what it should be, or a question's gold is not in the corpus.
    """
    root = Path(data)
    found = [
        _load(path.stem, path, corpus)
        for path in sorted(root.glob("*.json"))
        if not path.stem.endswith(_CORPUS) and (corpus := path.with_name(f"{path.stem}{_CORPUS}.json")).exists()
    ]
    if not found:
        raise InvalidInput(f"{root}: there is no <name>.json with a <name>_corpus.json beside it")
    return found


def _load(name: str, path: Path, corpus: Path) -> Dataset:
    passages = list(dict.fromkeys(_passages(read_json(corpus), corpus)))
    ids = _ids(passages)
    documents = [Document(text, id=ids[title, text], title=title) for title, text in passages]
    nodes = describe(to_nodes(documents, chunker=None), HeuristicMetadata())
    bearers: dict[str, list[str]] = {}
    for (title, _), node_id in ids.items():
        bearers.setdefault(title, []).append(node_id)
    questions = []
    for nth, one in enumerate(read_json(path)):
        try:
            gold = _gold(one, ids, bearers)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{path}, question {nth}: {error!r}") from error
        if not gold:
            raise InvalidInput(f"{path}, question {nth}: it has no supporting passage")
        questions.append(Question(one["question"], frozenset(gold)))
    return Dataset(name, nodes, questions)


def _passages(raw: Any, path: Path) -> Iterable[tuple[str, str]]:
    try:
        if isinstance(raw, Mapping):
            return [(title, said if isinstance(said, str) else "".join(said)) for title, said in raw.items()]
        return [(one["title"], one["text"]) for one in raw]
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: it is no corpus of passages: {error!r}") from error


def _ids(passages: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return an id for each passage: its title, and a number behind it where the title is taken."""
    ids: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for title, text in passages:
        node_id, nth = title or "untitled", 1
        while node_id in taken:
            nth += 1
            node_id = f"{title} ({nth})"
        taken.add(node_id)
        ids[title, text] = node_id
    return ids


def _gold(one: Any, ids: Mapping[tuple[str, str], str], bearers: Mapping[str, list[str]]) -> set[str]:
    if "supporting_facts" not in one:
        return {ids[p["title"], p["paragraph_text"]] for p in one["paragraphs"] if p["is_supporting"]}
    shown = {title: "".join(said) for title, said in one.get("context", ())}
    gold: set[str] = set()
    for title in dict.fromkeys(fact[0] for fact in one["supporting_facts"]):
        exact = ids.get((title, shown.get(title, "")))
        gold.update([exact] if exact else bearers[title])
    return gold
