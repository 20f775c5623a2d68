"""A step of a SPARK plan: it is checked against the graph, then run.

A kind of step is a module of its own: a `Step`, and what it is once checked.
`SparkPlan` lists the kinds, and the prompt describes them to the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.spark.settings import SparkSettings
from graphret.stores.base import CypherStore
from graphret.trace import Stage
from graphret.types import Evidence, Node

#: Who found something, in its evidence.
RETRIEVER = "spark"


@dataclass(frozen=True, slots=True)
class StepContext:
    """What steps are checked against and run on."""

    store: CypherStore
    index: TextIndex
    schema: GraphSchema
    settings: SparkSettings


@dataclass(slots=True)
class StepResult:
    """What the last step of a plan found: nodes, best first, and why each is there.

    `rows` are those that hold values instead, each a node of the label ``Row`` that is
    not in the graph. `ordered` where the query says in which order, `walked` where
    relations were walked; `problem` says what went wrong, `doubts` what was left out of
    the query so that it found something.
    """

    nodes: list[Node] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    rows: list[Node] = field(default_factory=list)
    ordered: bool = False
    walked: bool = False
    problem: str = ""
    doubts: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is neither a row nor a node."""
        return not self.rows and not self.nodes


class CheckedStep(Protocol):
    """A step as it will run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON values, for a person to approve."""

    def run(
        self, context: StepContext, ids: Mapping[str, Sequence[str]], stage: Stage
    ) -> StepResult:
        """Run the step, and note in a trace's stage what was done.

        Parameters
        ----------
        ids
            What earlier steps found, by the name of the parameter: ``step1`` and so on.

        Raises
        ------
        GraphretError
            When it cannot be run; the plan goes on with nothing found.
        """


class Step(BaseModel, ABC):
    """A step as a model writes it."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the step in a few words, for a trace."""

    @abstractmethod
    def check(self, context: StepContext) -> CheckedStep:
        """Return the step as it will run; what is refused says so when it runs."""
