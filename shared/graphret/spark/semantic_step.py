"""The step that searches nodes by what they say (section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from graphret.spark.step import RETRIEVER, Step, StepContext, StepResult
from graphret.trace import Stage
from graphret.types import Evidence


class SemanticStep(Step):
    """Search nodes of a label by their text (semantic candidates, section 2.2)."""

    text: Annotated[str, Field(min_length=1)]
    label: str | None = None
    k: Annotated[int, Field(ge=1)] = 20

    def __str__(self) -> str:
        return f"search {self.label or 'all'}: {self.text!r}"

    def check(self, context: StepContext) -> SemanticStep:
        """Return the step itself: a search can always run."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON values."""
        return self.model_dump()

    def run(
        self, context: StepContext, ids: Mapping[str, Sequence[str]], stage: Stage
    ) -> StepResult:
        """Find nodes by text; an unknown label is left out."""
        label = self.label if self.label in context.schema.labels else None
        labels = None if label is None else [label]
        k = min(self.k, context.settings.semantic_k)
        stage.details.update(search=self.text, label=label, k=k)
        matches = context.index.search(self.text, k, labels=labels)
        scored = zip(
            context.store.get(matches.ids), matches.scores.tolist(), strict=True
        )
        nodes = [node for node, score in scored if node is not None and score > 0]
        evidence = {
            node.id: Evidence("seed", rank=rank, retriever=RETRIEVER)
            for rank, node in enumerate(nodes, 1)
        }
        return StepResult(nodes, evidence=evidence, ordered=True)
