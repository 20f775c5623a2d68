"""What SPARK costs beside its model and its database."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Report, timed
from graphret.evaluation.spark import ScriptedPlanner
from graphret.graphs import import_graph
from graphret.graphs.example import KB
from graphret.search import BM25Index
from graphret.spark import Spark
from graphret.stores import LadybugStore

_PLANS = {
    "own": (
        "MATCH (m:Movie)-[:directed_by]->(d:Director {name: 'Kathryn Bigelow'})"
        " RETURN m"
    ),
    "mended": (
        "MATCH (d:Director {name: 'kathryn bigelow'})-[:directed_by]->(m:Movie) RETURN"
        " m.name"
    ),
}
_ROUNDS = 40
_OF_THE_DATABASE = ("query", "query_in_subprocess", "get", "explain")


def spark(report: Report) -> None:
    """The part of the speed benchmark."""
    with _films() as store:
        plans = {
            what: json.dumps({"steps": [{"cypher": query}]})
            for what, query in _PLANS.items()
        }
        retriever = Spark(ScriptedPlanner(plans), store, BM25Index.of_store(store))
        retriever.prompt()
        spent: list[float] = []
        for name in _OF_THE_DATABASE:
            setattr(store, name, _clocked(getattr(store, name), spent))
        for what, detail in (
            ("own", "the plan is correct"),
            ("mended", "its direction and a value are repaired"),
        ):
            seconds = []
            for _ in range(_ROUNDS):
                spent.clear()
                seconds.append(
                    timed(lambda what=what: retriever.retrieve(what, 5)) - sum(spent)
                )  # type: ignore[misc]
            what, detail = (
                f"spark {what}",
                f"SPARK: a question, without model and database time; {detail}",
            )
            report.add(
                what, detail, 1000 * statistics.median(seconds), unit="ms", target=10.0
            )


@contextmanager
def _films() -> Iterator[LadybugStore]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "films.lbug"
        import_graph(KB, str(path))
        with LadybugStore(path) as store:
            yield store


def _clocked(call: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Return a call that notes how long it takes."""

    def timed_call(*arguments: Any, **options: Any) -> Any:
        answers: list[Any] = []
        spent.append(timed(lambda: answers.append(call(*arguments, **options))))
        return answers[0]

    return timed_call
