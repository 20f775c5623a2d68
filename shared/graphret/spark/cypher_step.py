"""The step that runs a query, checked and mended (sections 2.2 and C.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from graphret.cypher import check, edits, run_checked
from graphret.errors import QueryRefused
from graphret.spark.repairs import RepairedQuery, repair, with_known_values
from graphret.spark.reply import bare_query
from graphret.spark.rows import nodes_of, shown
from graphret.spark.step import RETRIEVER, FoundNodes, Step, StepContext
from graphret.stores.base import Rows
from graphret.trace import Stage
from graphret.types import Evidence

_NOTHING: tuple[Any, ...] = (None, 0, "", [], {})


def _query(value: Any) -> Any:
    return bare_query(value) or value if isinstance(value, str) else value


class CypherStep(Step):
    """Run a query (structural expansion, section 2.2)."""

    cypher: Annotated[str, Field(min_length=1), BeforeValidator(_query)]

    def __str__(self) -> str:
        return self.cypher

    def check(self, context: StepContext) -> CheckedQuery:
        """Return the query checked, and mended where the schema says how."""
        report = check(self.cypher, context.schema, dialect=context.store.dialect)
        max_rows = context.settings.max_rows
        return CheckedQuery(repair(report, context.schema, rows=max_rows))


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What ran in the end, with its parameters, and what came back."""

    query: RepairedQuery
    parameters: Mapping[str, Any]
    rows: Rows


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that was mended, or that the guard refuses."""

    query: RepairedQuery

    def to_dict(self) -> dict[str, Any]:
        """Return the query, what was mended in it, and why it is refused."""
        return {
            "cypher": self.query.query,
            "mended": list(self.query.notes),
            "errors": [str(error) for error in self.query.report.errors],
        }

    def run(
        self, context: StepContext, ids: Mapping[str, Sequence[str]], stage: Stage
    ) -> FoundNodes:
        """Run the query, and read the nodes in what it returns."""
        result = self.rows(context, ids)
        query, rows = result.query, result.rows
        stage.details.update(
            cypher=query.query,
            parameters=result.parameters,
            mended=list(query.notes),
            rows=len(rows),
        )
        found = FoundNodes(
            ordered=edits.is_ordered(query.report.tree),
            walked=bool(edits.relationships(query.report.tree)),
        )
        nodes_by_row = nodes_of(rows, context.store, context.index)
        for rank, (row, nodes) in enumerate(
            zip(rows.rows, nodes_by_row, strict=True), 1
        ):
            for node in nodes:
                if node.id in found.evidence:
                    continue
                properties = {
                    "cypher": query.query,
                    "parameters": result.parameters,
                    "row": shown(dict(zip(rows.columns, row, strict=True))),
                }
                found.nodes.append(node)
                found.evidence[node.id] = Evidence(
                    "query", rank=rank, retriever=RETRIEVER, properties=properties
                )
        return found

    def rows(
        self, context: StepContext, ids: Mapping[str, Sequence[str]]
    ) -> QueryResult:
        """Run the query; one that finds nothing runs once more, mended further.

        Then what is doubtful in it is mended too, and the values that it names.

        Raises
        ------
        QueryRefused
            When the guard or the database refuses it.
        QueryTimeout
            When it took longer than `settings.timeout`.
        """
        result = _run(self.query, context, ids)
        if any(value not in _NOTHING for row in result.rows.rows for value in row):
            return result
        mended = _mended_further(self.query, context)
        if mended.query == self.query.query:
            return result
        return _run(mended, context, ids)


def _mended_further(query: RepairedQuery, context: StepContext) -> RepairedQuery:
    """Return a query with what is doubtful in it mended, and its values."""
    mended = repair(
        query.report, context.schema, rows=context.settings.max_rows, doubtful=True
    )
    if not mended.report.ok:
        mended = query
    mended = replace(mended, parameters=query.parameters)
    mended = with_known_values(mended, context.store, context.index) or mended
    notes = dict.fromkeys((*query.notes, *mended.notes))
    return replace(mended, notes=tuple(notes))


def _run(
    query: RepairedQuery, context: StepContext, ids: Mapping[str, Sequence[str]]
) -> QueryResult:
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
