"""Checking and running Cypher that a model or a person wrote.

`check` takes a query through its rooms in turn; `run_checked` (`execution`) runs it if none finds an error:

- `tokens` cuts the text, and refuses what servers cut in different ways;
- `grammar` makes a tree of the tokens (`tree`), by the rules of Neo4j 5 or of Ladybug, and reads nothing that writes;
- `meaning` walks the tree as the server does: variables and their scopes, kinds of values, aggregation, functions;
- `allowed` holds clauses, functions and procedures against the lists of what may run, in the tree and in the tokens;
- `names` holds labels, relations and properties against the schema (`known`, `domains`, `suggestions`);
- `edits` changes the text of a query at the places that the tree knows.

What they find is a `Finding` of one of the `kinds`, in a `Report`. Nothing here knows more of graphret than a schema,
the contract of a store and the errors.
"""

from graphret.cypher.check import check
from graphret.cypher.execution import arun_checked, run_checked
from graphret.cypher.report import Finding, Report

__all__ = ["Finding", "Report", "arun_checked", "check", "run_checked"]
