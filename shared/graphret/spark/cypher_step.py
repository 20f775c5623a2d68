"""The step that runs a query, checked and repaired (sections 2.2 and C.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from cypherast import ast
from pydantic import BeforeValidator, Field

from graphret.cypher import CypherReport, check, edits, run_checked
from graphret.cypher.semantics.walk import aggregates
from graphret.cypher.translation import label_tables_of, with_all_tables
from graphret.cypher.tree import variable_name, walk
from graphret.errors import GraphretError, QueryRefused
from graphret.rows import row_node
from graphret.spark.loosening import loosened
from graphret.spark.repairs import RepairedQuery, entity_names, repair
from graphret.spark.reply import bare_query
from graphret.spark.rows import Columns, ReadRow, read_rows, shown
from graphret.spark.step import RETRIEVER, Step, StepContext, StepResult
from graphret.stores.base import Rows
from graphret.trace import Stage
from graphret.types import Evidence

_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _query(written: Any) -> Any:
    """The query in what a model wrote: a text, its lines, or an object with it."""
    if isinstance(written, Mapping):
        written = next((text for text in written.values() if isinstance(text, str)), "")
    if isinstance(written, list) and all(isinstance(line, str) for line in written):
        written = "\n".join(written)
    return bare_query(written) or written if isinstance(written, str) else written


class CypherStep(Step):
    """Run a query (structural expansion, section 2.2)."""

    cypher: Annotated[str, Field(min_length=1), BeforeValidator(_query)]

    def __str__(self) -> str:
        return self.cypher

    def check(self, context: StepContext) -> CheckedQuery:
        """Return the query checked, and repaired where the schema says how."""
        report = check(self.cypher, context.schema, dialect=context.store.dialect)
        max_rows = context.settings.max_rows
        return CheckedQuery(repair(report, context.schema, rows=max_rows))


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What ran in the end, with its parameters, and what came back."""

    query: RepairedQuery
    parameters: Mapping[str, Any]
    rows: Rows

    @property
    def finds_something(self) -> bool:
        """Whether a row has a value that says something.

        A 0 does not if all rows become one, such as a count of what is misspelt; a
        node's property, or the sum of a group, may be 0.
        """
        nothing = (*_NOTHING, 0) if _makes_one_row(self.query) else _NOTHING
        return any(value not in nothing for row in self.rows.rows for value in row)

    @property
    def outcome(self) -> str:
        """What happened to the query, in one plain sentence."""
        n = len(self.rows)
        amount = f"{n} row{'s' * (n != 1)}" if n else "nothing"
        if self.rows.truncated:
            amount = f"more than {n} rows, of which {n} were read"
        if self.query.loosened:
            how = ", and ".join(self.query.loosened)
            return f"The query found nothing as written; {how} it found {amount}."
        if self.query.notes:
            how = "; ".join(self.query.notes)
            return f"The query was repaired ({how}) and found {amount}."
        return f"The query ran as written and found {amount}."


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that was repaired, or that the guard refuses."""

    query: RepairedQuery

    def to_dict(self) -> dict[str, Any]:
        """Return the query, what was repaired in it, and why it is refused."""
        return {
            "cypher": self.query.query,
            "repairs": [*self.query.notes, *self.query.bounds],
            "errors": [str(error) for error in self.query.report.errors],
        }

    def run(
        self, context: StepContext, ids: Mapping[str, Sequence[str]], stage: Stage
    ) -> StepResult:
        """Run the query, and read the nodes and the values in what it returns."""
        result = self.rows(context, ids)
        query, rows = result.query, result.rows
        stage.details.update(
            cypher=query.query,
            parameters=result.parameters,
            repairs=[*query.notes, *query.bounds],
            rows=len(rows),
            outcome=result.outcome,
        )
        if query.loosened:
            stage.details["loosened"] = list(query.loosened)
        step_result = StepResult(
            ordered=edits.is_ordered(query.report.tree),
            walked=bool(edits.relationships(query.report.tree)),
            doubts=list(query.doubts),
        )
        read = read_rows(rows, _columns(query), context.store, context.index)
        for rank, read_row in enumerate(read, 1):
            row = dict(zip(rows.columns, rows.rows[rank - 1], strict=True))
            _add_row(step_result, read_row, _why(result, rank, row), query)
        return step_result

    def rows(
        self, context: StepContext, ids: Mapping[str, Sequence[str]]
    ) -> QueryResult:
        """Run the query, or, if it finds nothing, looser ones until one does.

        Raises
        ------
        QueryRefused
            When the guard or the database refuses it.
        QueryTimeout
            When it took longer than `settings.timeout`.
        """
        result = _run(self.query, context, ids)
        if result.finds_something:
            return result
        for looser in loosened(self.query, context):
            try:
                looser_result = _run(looser, context, ids)
            except GraphretError:
                continue  # that the query itself finds nothing is still true
            if looser_result.finds_something:
                return looser_result
        return result


def _makes_one_row(query: RepairedQuery) -> bool:
    """Whether a clause only aggregates, so that it returns a row even of nothing."""
    clauses = (
        clause
        for clause in walk(query.report.tree)
        if isinstance(clause, ast.With | ast.Return)
    )
    return any(
        all(any(aggregates(item)) for item in clause.expressions) for clause in clauses
    )


def _why(result: QueryResult, rank: int, row: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a row of a query."""
    about = {
        "cypher": result.query.query,
        "parameters": result.parameters,
        "row": shown(row),
    }
    return Evidence("query", rank=rank, retriever=RETRIEVER, properties=about)


def _add_row(
    result: StepResult, read_row: ReadRow, why: Evidence, query: RepairedQuery
) -> None:
    """Add what a row says to what was found, each node once."""
    for node in read_row.nodes:
        if node.id not in result.evidence:
            result.nodes.append(node)
            result.evidence[node.id] = why
    # A value that no pattern was matched for is the model's word, not the graph's.
    matched = any(isinstance(part, ast.NodePattern) for part in walk(query.report.tree))
    if read_row.values is not None and matched:
        row = row_node(read_row.values, query.query, why.rank or 0)
        result.rows.append(row)
        result.evidence[row.id] = why


def _columns(query: RepairedQuery) -> Columns:
    """Return what the columns of a query are."""
    entities = entity_names(query.report.tree)
    clauses = edits.returns(query.report.tree)
    items = clauses[0].expressions if clauses else []
    plain = [item.this if isinstance(item, ast.Alias) else item for item in items]
    places = [
        place
        for place, item in enumerate(plain)
        if variable_name(item) in entities and place != query.owner
    ]
    return Columns(places, query.owner)


def _with_all_tables(query: RepairedQuery, context: StepContext) -> RepairedQuery:
    """Return a query whose labels find every node, even where labels are tables."""

    def checked(text: str) -> CypherReport:
        return check(text, context.schema, dialect=query.report.dialect)

    spread = with_all_tables(query.report, label_tables_of(context.store), checked)
    notes = tuple(dict.fromkeys((*query.notes, *spread.notes)))
    return replace(query, report=spread.report, notes=notes)


def _run(
    query: RepairedQuery, context: StepContext, ids: Mapping[str, Sequence[str]]
) -> QueryResult:
    query = _with_all_tables(query, context)
    if not query.report.ok:
        errors = "; ".join(map(str, query.report.errors))
        raise QueryRefused(f"the query was refused: {errors}", query.report)
    earlier = {
        name: list(nodes) for name, nodes in ids.items() if f"${name}" in query.query
    }
    parameters = {**query.parameters, **earlier}
    rows = run_checked(
        context.store,
        query.report,
        parameters,
        timeout=context.settings.timeout,
        max_rows=context.settings.max_rows,
    )
    return QueryResult(query, parameters, rows)
