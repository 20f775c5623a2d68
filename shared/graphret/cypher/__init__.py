"""Checking and running Cypher: `check`, `run_checked` and `profile_checked`.

A query goes through `tokens`, `grammar`, `meaning`, `allowed` and `names` in turn;
docs/concepts/guard.md says what happens in each. Nothing here knows more of graphret
than a schema, the contract of a store and the errors.
"""

from graphret.cypher.check import check
from graphret.cypher.execution import arun_checked, profile_checked, run_checked
from graphret.cypher.report import CypherReport, Finding

__all__ = [
    "CypherReport",
    "Finding",
    "arun_checked",
    "check",
    "profile_checked",
    "run_checked",
]
