"""`PlannerGuidance`: what a planner is told beside the schema (appendix B.2 to B.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from graphret.errors import InvalidInput

#: A question and the plan for it, as JSON.
ExamplePlan: TypeAlias = tuple[str, Mapping[str, Any]]
_DATA = Path(__file__).parent / "guidance_data"
#: What the paper has, by the knowledge base of STaRK.
PUBLISHED = ("amazon", "mag", "prime")


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str
    plan: dict[str, Any]


class _GuidanceFile(BaseModel):
    """What a file holds."""

    model_config = ConfigDict(extra="forbid")

    source: str = ""
    metapaths: list[str] = []
    rules: list[str] = []
    retrieval_modes: bool = False
    examples: list[_Example] = []


@dataclass(frozen=True)
class PlannerGuidance:
    """What `LLMPlanner` is told of a graph besides its schema.

    Parameters
    ----------
    metapaths
        The paths that questions follow, such as ``"institution -> author -> paper"``.
    rules
        Sentences on what a plan for this graph should and should not do.
    examples
        Questions with their plans, which the planner checks against the graph.
    retrieval_modes
        Whether plans say how much they go by the graph.
    """

    metapaths: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    examples: tuple[ExamplePlan, ...] = ()
    retrieval_modes: bool = False

    @classmethod
    def load(cls, source: str | Path) -> PlannerGuidance:
        """Read a JSON file, or the paper's for ``amazon``, ``mag`` or ``prime``.

        The latter uses the labels and relations of STaRK's own files.

        The file has ``metapaths``, ``rules``, ``examples``, of ``question`` and
        ``plan``, and ``retrieval_modes``, each of which may be missing. An
        `InvalidInput` says what is wrong with it.
        """
        path = _DATA / f"{source}.json" if source in PUBLISHED else Path(source)
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
            guidance = _GuidanceFile.model_validate(content)
        except (OSError, ValueError, ValidationError) as error:
            raise InvalidInput(
                f"guidance: expected {', '.join(PUBLISHED)} or a JSON file, got"
                f" {source}: {error}"
            ) from error
        examples = tuple(
            (example.question, example.plan) for example in guidance.examples
        )
        return cls(
            tuple(guidance.metapaths),
            tuple(guidance.rules),
            examples,
            guidance.retrieval_modes,
        )
