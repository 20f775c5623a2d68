"""`check`: everything that the guard knows of a query."""

from __future__ import annotations

from collections.abc import Collection

from graphret.cypher import codes
from graphret.cypher.allowlist import disallowed
from graphret.cypher.grammar import Parsed, parse
from graphret.cypher.report import ERROR, CypherReport, Finding
from graphret.errors import InvalidInput
from graphret.schema import GraphSchema

#: A longer query is refused unread. Values belong in parameters, and no query of this
#: length takes more than seconds.
MOST_CHARACTERS = 50_000
#: A query with more relationships is refused; its labels and properties are not held
#: against the schema.
MOST_RELATIONSHIPS = 2_000
#: Elements that a query may go through of lists that it writes itself, multiplied where
#: one is nested in another.
MOST_ITERATIONS = 1_000_000


def check(
    query: str,
    schema: GraphSchema | None = None,
    *,
    dialect: str = "neo4j",
    functions: Collection[str] = (),
    procedures: Collection[str] = (),
    most_iterations: int = MOST_ITERATIONS,
    unbounded_paths: bool = False,
) -> CypherReport:
    """Check a Cypher query without running it.

    A query of more than `MOST_CHARACTERS` or `MOST_RELATIONSHIPS` is refused for its
    length.

    Parameters
    ----------
    query
        The text.
    schema
        The labels, relations and properties of the graph; without one, names are not
        checked. A triple of a relation of which it may lack some (`sampled_relations`),
        or a property of a label or relation of which it may lack some
        (`sampled_properties`, `sampled_relation_properties`), is a warning where it is
        not there.
    dialect
        ``neo4j`` (Neo4j 5) or ``ladybug``.
    functions, procedures
        Names that may run besides the list of what is allowed, such as those of a
        plug-in; it is for the caller to know that they only read.
    most_iterations
        Most elements of lists written in the query, such as ranges, that it may go
        through, nested ones multiplied.
    unbounded_paths
        Whether a path may have any length (``*``, ``+``); else it is refused, but for a
        shortest one.

    Returns
    -------
    CypherReport
        Its `errors` stop the query, its `warnings` do not, and its `tree` knows the
        place of every node.

    Raises
    ------
    MissingDependency
        Without `cypherast`.
    InvalidInput
        If the query is not a string or the dialect is unknown.
    """
    if not isinstance(query, str):
        raise InvalidInput(f"query: expected text, got {query!r}")
    if len(query) > MOST_CHARACTERS:
        message = (
            f"the query has {len(query):,} characters, and at most {MOST_CHARACTERS:,}"
            " are read"
        )
        return CypherReport(
            query,
            dialect,
            [
                Finding(
                    ERROR,
                    codes.TOO_LONG,
                    f"{message}; pass values as parameters",
                    0,
                    len(query),
                )
            ],
        )
    parsed = parse(query, dialect)
    if parsed.error is not None:
        findings = [parsed.error]
    else:
        try:
            findings = _meaning(parsed, schema, most_iterations, unbounded_paths)
        except RecursionError:
            findings = [
                Finding(
                    ERROR, codes.SYNTAX, "Nested too deeply to be read", 0, len(query)
                )
            ]
    findings += disallowed(parsed, functions=functions, procedures=procedures)
    # What the guard has more to say of comes before the bare list of what may run.
    findings.sort(
        key=lambda f: (
            f.start,
            f.severity != ERROR,
            f.kind == codes.NOT_ALLOWED,
            f.kind,
        )
    )
    return CypherReport(query, dialect, findings, parsed.tree)


def _meaning(
    parsed: Parsed,
    schema: GraphSchema | None,
    most_iterations: int,
    unbounded_paths: bool,
) -> list[Finding]:
    from graphret.cypher.cost import check_cost
    from graphret.cypher.lint import advise
    from graphret.cypher.names import check_names
    from graphret.cypher.semantics.clauses import walk_query
    from graphret.cypher.semantics.ladybug import check_ladybug
    from graphret.cypher.semantics.walk import Analysis

    facts = walk_query(parsed.tree, Analysis(parsed.query, parsed.dialect))
    if parsed.dialect == "ladybug":
        check_ladybug(parsed.tree, facts)
    if len(facts.steps) > MOST_RELATIONSHIPS:
        message = (
            f"the query has {len(facts.steps):,} relationships, and at most"
            f" {MOST_RELATIONSHIPS:,} are checked"
        )
        facts.error(codes.TOO_LONG, message, parsed.tree)
    elif schema is not None:
        check_names(facts, schema)
    check_cost(parsed.tree, facts, most_iterations)
    advise(parsed.tree, facts, unbounded_paths)
    return facts.findings
