"""Clauses, single queries and unions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.grammar.expressions import Expressions
from graphret.cypher.tokens import END
from graphret.cypher.tree import Finish, Page


class Clauses(Expressions):
    """The productions of clauses."""

    def parse(self) -> ast.Cypher:
        """Read the whole query."""
        root = self.parse_statement()
        self._take(";")
        if self._now().kind != END:
            raise self._wrong("a clause, or the end of the query")
        return self._mark(ast.Cypher(this=root), 0)

    def parse_statement(self) -> AstNode:
        start = self._i
        with self._nesting():
            left: AstNode = self._query()
            while self._take_word("UNION"):
                distinct = not self._take_word("ALL")
                self._take_word("DISTINCT")
                left = self._mark(
                    ast.Union(this=left, expression=self._query(), distinct=distinct),
                    start,
                )
        return left

    def _query(self) -> ast.Query:
        start = self._i
        clauses: list[AstNode] = []
        while (clause := self._clause()) is not None:
            clauses.append(clause)
        if not clauses:
            raise self._wrong("a clause")
        return self._mark(ast.Query(clauses=clauses), start)

    def _clause(self) -> AstNode | None:
        start = self._i
        word = self._now().word
        if word == "OPTIONAL":
            word = "CALL" if self._is_word("CALL", ahead=1) else "MATCH"
        production: Callable[[], AstNode] | None = {
            "MATCH": self._match,
            "RETURN": self._return,
            "WITH": self._with,
            "UNWIND": self._unwind,
            "CALL": self._call,
            "FINISH": self._finish,
            **dict.fromkeys(("ORDER", "SKIP", "OFFSET", "LIMIT"), self._page),
        }.get(word)
        return None if production is None else self._mark(production(), start)

    def _match(self) -> ast.Match:
        optional = self._take_word("OPTIONAL") or None
        self._need_word("MATCH")
        pattern = self.parse_pattern()
        return ast.Match(pattern=pattern, optional=optional, where=self._where())

    def _unwind(self) -> ast.Unwind:
        self._need_word("UNWIND")
        expression = self.parse_expression()
        self._need_word("AS")
        return ast.Unwind(expression=expression, alias=self.parse_variable())

    def _finish(self) -> Finish:
        self._need_word("FINISH")
        return Finish()

    # --- projections ------------------------------------------------------

    def _with(self) -> ast.With:
        self._need_word("WITH")
        body = self._body()
        return ast.With(**body, where=self._where())

    def _return(self) -> ast.Return:
        self._need_word("RETURN")
        return ast.Return(**self._body())

    def _body(self) -> dict[str, Any]:
        distinct = (
            self._is_word("DISTINCT") and self._now(1).operator not in (",", ".")
        ) or None
        if distinct:
            self._i += 1
        items = [self._item(first=True)]
        while self._take(","):
            items.append(self._item())
        return {"expressions": items, "distinct": distinct, **self._pages()}

    def _item(self, first: bool = False) -> AstNode:
        start = self._i
        if first and self._take("*"):
            return self._mark(ast.Star(), start)
        expression = self.parse_expression()
        if self._take_word("AS"):
            return self._mark(
                ast.Alias(this=expression, alias=self.parse_variable()), start
            )
        return expression

    def _pages(self) -> dict[str, Any]:
        order = self._order() if self._is_word("ORDER") else None
        skip = self._bound(ast.Skip, "SKIP", "OFFSET")
        limit = self._bound(ast.Limit, "LIMIT")
        return {"order": order, "skip": skip, "limit": limit}

    def _bound(self, node: type[AstNode], *words: str) -> AstNode | None:
        start = self._i
        if not self._take_word(*words):
            return None
        return self._mark(node(this=self.parse_expression()), start)

    def _page(self) -> Page:
        return Page(**self._pages())

    def _order(self) -> ast.Order:
        start = self._i
        self._need_word("ORDER")
        self._need_word("BY")
        return self._mark(ast.Order(expressions=self._list(self._ordered)), start)

    def _ordered(self) -> ast.Ordered:
        start = self._i
        expression = self.parse_expression()
        descending = self._take_word("DESC", "DESCENDING") or None
        if not descending:
            self._take_word("ASC", "ASCENDING")
        return self._mark(ast.Ordered(this=expression, desc=descending), start)

    # --- calls ------------------------------------------------------------

    def _call(self) -> AstNode:
        optional = self._take_word("OPTIONAL") or None
        self._need_word("CALL")
        if self._is("{") or self._is("("):
            return self._call_subquery(optional)
        return self._call_procedure(optional)

    def _call_subquery(self, optional: bool | None) -> ast.CallSubquery:
        variables: Any = None
        if self._take("("):
            variables = ast.Star() if self._take("*") else []
            if isinstance(variables, list) and not self._is(")"):
                variables = self._list(self.parse_variable)
            self._need(")")
        self._need("{")
        query = self.parse_statement()
        self._need("}")
        return ast.CallSubquery(query=query, variables=variables, optional=optional)

    def _call_procedure(self, optional: bool | None) -> ast.CallProcedure:
        parts = [self._need_name("a procedure").value]
        while self._take("."):
            parts.append(self._need_name("a procedure").value)
        call = ast.CallProcedure(name=".".join(parts), expressions=None)
        call.args["optional"] = optional
        if self._take("("):
            call.set(
                "expressions",
                [] if self._is(")") else self._list(self.parse_expression),
            )
            self._need(")")
        first = self._i
        if self._take_word("YIELD"):
            items = (
                [self._item(first=True)] if self._is("*") else self._list(self._yielded)
            )
            call.set("yield_", self._mark(ast.Yield(expressions=items), first))
            call.set("where", self._where())
        return call

    def _yielded(self) -> AstNode:
        start = self._i
        field = self.parse_variable()
        if self._take_word("AS"):
            return self._mark(ast.Alias(this=field, alias=self.parse_variable()), start)
        return field
