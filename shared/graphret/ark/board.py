"""What the agents of one run share: the clock, the tokens spent, and what each has selected."""

from __future__ import annotations

import time
from collections.abc import Sequence

from graphret.ark.session import ArkSession
from graphret.ark.settings import ArkSettings
from graphret.fusion import settled

_TICK = 0.001


class Board:
    """Tells agents of one run when to stop, by the budgets that they share and by the vote.

    Parameters
    ----------
    n_agents
        How many agents there are; those that have not posted anything have selected nothing.
    settings
        The budgets, and whether agents stop early.
    """

    def __init__(self, n_agents: int, settings: ArkSettings) -> None:
        self.settings = settings
        self.began = time.perf_counter()
        self._selections: list[tuple[str, ...]] = [()] * n_agents
        self._tokens = [0] * n_agents
        self._recalled = [0] * n_agents
        self._stops: list[str | None] = [None] * n_agents

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, at least 0; `None` without a limit."""
        limit = self.settings.max_seconds
        return None if limit is None else max(0.0, limit - self.seconds)

    @property
    def late(self) -> bool:
        """Whether no time is left, or so little of it that a clock may take it for none."""
        remaining = self.remaining
        return remaining is not None and remaining < _TICK

    @property
    def tokens(self) -> int:
        """Tokens that all agents have spent."""
        return sum(self.spent)

    @property
    def spent(self) -> list[int]:
        """Tokens that each agent has spent."""
        return list(map(max, self._tokens, self._recalled))

    def recall(self, spent: Sequence[int]) -> None:
        """Take note of what each agent is known to have spent, for those that have not posted it here."""
        self._recalled = list(map(max, self._recalled, spent))

    def post(self, session: ArkSession) -> None:
        """Take note of what an agent has selected and spent, and of whether it has stopped."""
        self._selections[session.agent] = tuple(session.selection)
        self._tokens[session.agent] = session.tokens
        self._stops[session.agent] = session.stop

    def reason_to_stop(self) -> str | None:
        """Return why those that still run should stop now, if they should: ``tokens``, ``seconds`` or ``settled``."""
        limit = self.settings.max_tokens
        if limit is not None and self.tokens >= limit:
            return "tokens"
        if self.remaining == 0.0:
            return "seconds"
        return "settled" if self.settled else None

    @property
    def settled(self) -> bool:
        """Whether an agent has finished and those that still run cannot change the top of the vote."""
        running = [number for number, stop in enumerate(self._stops) if stop is None]
        if not self.settings.early_stop or not running or "finished" not in self._stops:
            return False
        return settled(self._selections, running, top=self.settings.settle, how=self.settings.vote)
