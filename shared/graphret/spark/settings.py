"""What SPARK may do and spend on a question."""

from __future__ import annotations

from dataclasses import dataclass

from graphret.cypher.execution import MAX_ROWS, TIMEOUT
from graphret.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Sizes and limits of a plan.

    Parameters
    ----------
    max_steps
        Steps of a plan; those beyond are left out.
    prompt_tokens
        The system message has at most about so many; of a large schema the rarest is
        left out.
    show_values
        Whether the model may see values of the graph, as examples. By default it sees
        names of labels, relations and properties alone.
    repair_calls
        How often the model is asked again, with what went wrong; never where a plan
        finds something. With 0 SPARK makes a single call (section 3.2).
    semantic_k
        Most nodes of a semantic step.
    timeout
        Seconds for each query.
    max_rows
        Rows that are read of a query; more than are asked for are ranked against the
        question.

    Raises
    ------
    InvalidInput
        When a number is out of its range.
    """

    max_steps: int = 4
    prompt_tokens: int = 3000
    show_values: bool = False
    repair_calls: int = 1
    semantic_k: int = 50
    timeout: float = TIMEOUT
    max_rows: int = MAX_ROWS

    @classmethod
    def paper(cls) -> SparkSettings:
        """Return the paper's settings: one model call (section 3.2, appendix C.7)."""
        return cls(repair_calls=0)

    def __post_init__(self) -> None:
        least = {
            "max_steps": 1,
            "prompt_tokens": 600,
            "repair_calls": 0,
            "semantic_k": 1,
            "max_rows": 1,
        }
        for name, low in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise InvalidInput(
                    f"SparkSettings.{name}: expected a whole number of at least {low},"
                    f" got {value!r}"
                )
        if not isinstance(self.timeout, int | float) or not 0 < self.timeout < float(
            "inf"
        ):
            raise InvalidInput(
                "SparkSettings.timeout: expected a number of seconds above 0, got"
                f" {self.timeout!r}"
            )
