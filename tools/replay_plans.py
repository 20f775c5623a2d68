"""How many of the plans that a capable model wrote for MetaQA find a right node first.

``python tools/replay_plans.py --metaqa DIR --replies FILE``
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphret.graphs.metaqa import read_metaqa
from graphret.graphs.transfer import copy
from graphret.llm.chat import Message, Reply
from graphret.search import BM25Index
from graphret.spark import Spark
from graphret.stores.ladybug import LadybugStore

#: How many hits are asked for, so that all answers of most questions are among them.
HITS = 100


class Replayed:
    """A chat model that gives one recorded reply."""

    name = "recorded"

    def __init__(self, text: str) -> None:
        self.text = text

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return Reply(self.text)

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return Reply(self.text)


def replay_plans(metaqa: Path, replies: Path) -> dict[str, int]:
    """Run each recorded plan with SPARK over MetaQA's graph in Ladybug.

    Parameters
    ----------
    metaqa
        A folder with ``kb.txt``.
    replies
        JSON Lines with ``question``, ``reply`` and ``gold``, a list of names.

    Returns
    -------
    dict
        The number of questions, of those with a right node first, and of those with
        all right nodes among the hits.
    """
    with replies.open(encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    counts = {"questions": len(exchanges), "right_first": 0, "all_found": 0}
    with (
        tempfile.TemporaryDirectory() as folder,
        LadybugStore(Path(folder) / "films.lbug") as store,
    ):
        copy(read_metaqa(metaqa / "kb.txt").store(), store)
        index = BM25Index.of_store(store)
        for exchange in exchanges:
            spark = Spark(Replayed(exchange["reply"]), store, index, fill=False)
            hits = spark.retrieve(exchange["question"], HITS)
            names = [hit.node.name for hit in hits if not hit.is_row]
            gold = set(exchange["gold"])
            counts["right_first"] += bool(gold.intersection(names[:1]))
            counts["all_found"] += gold.issubset(names)
    return counts


def main(argv: Sequence[str] | None = None) -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        prog="python tools/replay_plans.py", description=__doc__
    )
    parser.add_argument("--metaqa", required=True, type=Path, help="a copy of MetaQA")
    parser.add_argument(
        "--replies", required=True, type=Path, help="the recorded replies, a JSONL file"
    )
    options = parser.parse_args(argv)
    for name, count in replay_plans(options.metaqa, options.replies).items():
        print(name, count)


if __name__ == "__main__":
    main()
