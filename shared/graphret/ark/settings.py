"""What can be set of an ARK run."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from graphret.errors import InvalidInput
from graphret.llm.causal import settings_of

MAX_K = 100  # nodes that one call of a tool may ask for
MAX_FAILURES = (
    3  # replies in a row without a usable call after which an agent is given up
)
#: How much of the neighbourhood operation agents have (ARK, table 2).
Exploration: TypeAlias = Literal["full", "no_query", "no_filters", "off"]
#: How much agents are told of their tools and of the graph.
Prompt: TypeAlias = Literal["full", "short"]


@dataclass(frozen=True, slots=True)
class ArkSettings:
    """The settings of a run; defaults are the paper's where it has one (app. A.2).

    Parameters
    ----------
    n_agents, max_steps
        How many agents explore at once, and how often each is asked for its next calls
        (A.2: n = 3, T_max = 20).
    search_k, neighbors_k
        Nodes that a global search and an exploration return where the agent does not
        say (A.2: 5 and 20).
    max_calls
        Calls of one reply that are run; the others are answered by one line each.
    observation_tokens, snippet_chars
        Budget of what one call returns, in tokens as
        `graphret.schema.text.estimate_tokens` counts them, and the longest excerpt of a
        node's text in it.
    early_stop
        Stop the agents that still run once they cannot change the first place of the
        vote. What ranks below can then depend on which agent was quicker.
    exploration
        What agents can do with a neighbourhood, to measure what each part is worth
        (table 2): ``"full"``, without ranking by a query, without filters by types and
        relations, or nothing (``"off"``), so that they only search.
    prompt
        What agents are told: ``"full"``, or ``"short"`` for small models, which have
        little context: each tool in a line, without its rarer arguments, and of the
        graph the names of types and relations alone.
    max_tokens, max_seconds
        Tokens and seconds that all agents of a run may spend together; the run then
        ends with what is selected. An endpoint that counts no tokens spends none of
        these.

    Raises
    ------
    InvalidInput
        When a number is out of range, or a name is unknown.
    """

    n_agents: int = 3
    max_steps: int = 20
    search_k: int = 5
    neighbors_k: int = 20
    max_calls: int = 32
    observation_tokens: int = 2000
    snippet_chars: int = 200
    early_stop: bool = True
    exploration: Exploration = "full"
    prompt: Prompt = "full"
    max_tokens: int | None = None
    max_seconds: float | None = None

    @classmethod
    def paper(cls) -> ArkSettings:
        """Return the paper's settings: three agents of twenty steps, to their ends.

        Five nodes of a search, twenty of an exploration (appendix A.2, section 3.2).
        """
        return cls(
            n_agents=3, max_steps=20, search_k=5, neighbors_k=20, early_stop=False
        )

    @classmethod
    def small(cls) -> ArkSettings:
        """Return settings for a small model in this process.

        The short prompt, one agent of ten steps, three nodes of a search and ten of an
        exploration.
        """
        return cls(n_agents=1, max_steps=10, search_k=3, neighbors_k=10, prompt="short")

    @classmethod
    def of_student(cls, folder: str | Path) -> ArkSettings:
        """Return what an agent of ``graphret train student`` was told in training.

        The defaults where it does not say, and of any other model.
        """
        return cls().as_trained(folder)

    def as_trained(self, folder: str | Path) -> ArkSettings:
        """Return these settings, with those that a student was trained with."""
        return replace(self, **settings_of(folder).get("explored", {}))

    def __post_init__(self) -> None:
        least = {"observation_tokens": 500, "snippet_chars": 0}
        for setting in fields(self):
            value, lowest = getattr(self, setting.name), least.get(setting.name, 1)
            counted = setting.type == "int" or (
                setting.name == "max_tokens" and value is not None
            )
            if counted and (type(value) is not int or value < lowest):
                raise InvalidInput(
                    f"{setting.name}: expected a whole number of at least {lowest}, got"
                    f" {value!r}"
                )
        for choice, chosen, names in (
            ("exploration", self.exploration, get_args(Exploration)),
            ("prompt", self.prompt, get_args(Prompt)),
        ):
            if chosen not in names:
                raise InvalidInput(
                    f"{choice}: expected one of {', '.join(names)}, got {chosen!r}"
                )
        seconds = self.max_seconds
        if seconds is not None and not (
            isinstance(seconds, (int, float)) and 0 < seconds < math.inf
        ):
            raise InvalidInput(
                f"max_seconds: expected a number above 0, got {seconds!r}"
            )
