"""Clauses, single queries and unions."""

from __future__ import annotations

import re
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.expressions import Expressions
from graphret.cypher.tree import Finish, Hint, Page

#: What the server's own reader of options takes before the version: of white space less than the lexer does.
_PLAINLY_SPACED = re.compile(r"(?>[ \t\n\r]|//[^\n\r]*|/\*.*?\*/|[A-Za-z])*+", re.DOTALL)
_WRITES = frozenset("CREATE INSERT MERGE SET DELETE DETACH NODETACH REMOVE FOREACH LOAD".split())


class Clauses(Expressions):
    """The productions of clauses."""

    def _parse_root(self) -> AstNode:
        self._options()
        root: AstNode = self.parse_statement()
        self._take(";")
        if self._now().kind is not TokenKind.EOF:
            raise self._wrong("a clause, or the end of the query")
        return self._mark(ast.Cypher(this=root), 0)

    def _options(self) -> None:
        """``EXPLAIN``, ``PROFILE`` and ``CYPHER 5 runtime=slotted``; the list of what may run decides on them."""
        if self._is_word("EXPLAIN", "PROFILE"):
            self._i += 1
        if not self._is_word("CYPHER"):
            return
        self._i += 1
        if self._now().kind in (TokenKind.INTEGER, TokenKind.FLOAT):
            if self._now().text != "5":
                raise self._err("only version 5 of Cypher may be asked for", code="CG1102")
            if not _PLAINLY_SPACED.fullmatch(self.source, 0, self._now().start):
                raise self._err("no white space but that of ASCII may stand before the version", code="CG1102")
            self._i += 1
        while self._now().named and self._is("=", 1):
            self._i += 3

    def parse_statement(self) -> AstNode:
        start = self._i
        with self._nesting():
            left: AstNode = self.parse_query()
            while self._take_word("UNION"):
                distinct = not self._take_word("ALL")
                self._take_word("DISTINCT")
                left = self._mark(ast.Union(this=left, expression=self.parse_query(), distinct=distinct), start)
        return left

    def parse_query(self) -> ast.Query:
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
        production: Any = None
        if word == "OPTIONAL":
            production = self.parse_call if self._is_word("CALL", ahead=1) else self.parse_match
        elif word in _WRITES:
            production = self._write(word)
        elif word in ("ORDER", "SKIP", "OFFSET", "LIMIT"):
            production = self._page
        else:
            production = {
                "MATCH": self.parse_match,
                "RETURN": self.parse_return,
                "WITH": self.parse_with,
                "UNWIND": self.parse_unwind,
                "CALL": self.parse_call,
                "USE": self._use,
                "FINISH": self._finish,
            }.get(word)
        if production is None:
            return None
        clause: AstNode = production()
        return self._mark(clause, start)

    def _write(self, word: str) -> Any:
        """A clause that changes something: read by the library's own productions, and refused later."""
        if word == "LOAD":
            return self.parse_load_csv
        return {
            "CREATE": self.parse_create,
            "INSERT": self.parse_insert,
            "MERGE": self.parse_merge,
            "SET": self.parse_set,
            "DELETE": self.parse_delete,
            "DETACH": self.parse_delete,
            "NODETACH": self.parse_delete,
            "REMOVE": self.parse_remove,
            "FOREACH": self.parse_foreach,
        }[word]

    def _use(self) -> ast.Use:
        self._need_word("USE")
        self._take_word("GRAPH")
        return ast.Use(graph=self.parse_postfix())

    def _finish(self) -> Finish:
        self._need_word("FINISH")
        return Finish()

    # --- reading ----------------------------------------------------------

    def parse_match(self) -> ast.Match:
        optional = self._take_word("OPTIONAL") or None
        self._need_word("MATCH")
        self._match_mode()
        pattern = self.parse_pattern()
        hints = []
        while self._is_word("USING"):
            hints.append(self._hint())
        return ast.Match(pattern=pattern, optional=optional, where=self._where(), hints=hints or None)

    def _hint(self) -> Hint:
        self._need_word("USING")
        label = None
        properties: list[str] = []
        self._take_word("BTREE", "TEXT", "RANGE", "POINT")
        if self._take_word("INDEX"):
            self._take_word("SEEK")
            names = [self._need_name("a variable").token.value]
            self._need(":")
            label = self._need_name("a label").token.value
            self._need("(")
            properties = [name.this for name in self._list(self._name)]
            self._need(")")
        elif self._take_word("SCAN"):
            names = [self._need_name("a variable").token.value]
            self._need(":")
            label = self._need_name("a label").token.value
        else:
            self._need_word("JOIN")
            self._need_word("ON")
            names = [name.this for name in self._list(self._name)]
        return Hint(names, label, properties)

    def parse_unwind(self) -> ast.Unwind:
        self._need_word("UNWIND")
        expression = self.parse_expression()
        self._need_word("AS")
        return ast.Unwind(expression=expression, alias=self.parse_variable())

    def parse_with(self) -> ast.With:
        self._need_word("WITH")
        body = self._body()
        return ast.With(**body, where=self._where())

    def parse_return(self) -> ast.Return:
        self._need_word("RETURN")
        return ast.Return(**self._body())

    def _body(self) -> dict[str, Any]:
        distinct = (self._is_word("DISTINCT") and self._now(1).operator not in (",", ".")) or None
        if distinct:
            self._i += 1
        items = [self._item(first=True)]
        while self._take(","):
            items.append(self._item())
        return {"expressions": items, "distinct": distinct, **self._pages()}

    def _item(self, first: bool = False) -> AstNode:
        start = self._i
        if first and self._is("*"):
            self._i += 1
            return self._mark(ast.Star(), start)
        expression = self.parse_expression()
        if self._take_word("AS"):
            return self._mark(ast.Alias(this=expression, alias=self.parse_variable()), start)
        return expression

    def _pages(self) -> dict[str, Any]:
        order = self.parse_order_by() if self._is_word("ORDER") else None
        skip = self._page_part(ast.Skip, "SKIP", "OFFSET")
        limit = self._page_part(ast.Limit, "LIMIT")
        return {"order": order, "skip": skip, "limit": limit}

    def _page_part(self, node: type[AstNode], *words: str) -> AstNode | None:
        start = self._i
        if not self._take_word(*words):
            return None
        return self._mark(node(this=self.parse_expression()), start)

    def _page(self) -> Page:
        return Page(**self._pages())

    def parse_order_by(self) -> ast.Order:
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

    def parse_call(self) -> ast.CallSubquery | ast.CallProcedure:
        optional = self._take_word("OPTIONAL") or None
        self._need_word("CALL")
        if self._is("{") or self._is("("):
            return self._call_subquery(optional)
        return self._call_procedure(optional)

    def _call_subquery(self, optional: bool | None) -> ast.CallSubquery:
        variables: Any = None
        if self._take("("):
            variables = self._imports()
            self._need(")")
        self._need("{")
        query = self.parse_statement()
        self._need("}")
        transactions = self._in_transactions() or None
        return ast.CallSubquery(query=query, variables=variables, optional=optional, in_transactions=transactions)

    def _imports(self) -> Any:
        if self._take("*"):
            return ast.Star()
        return [] if self._is(")") else self._list(self.parse_variable)

    def _in_transactions(self) -> bool:
        if not self._take_word("IN"):
            return False
        if not self._is_word("TRANSACTIONS"):
            if not self._is_word("CONCURRENT"):
                self.parse_expression()
            self._need_word("CONCURRENT")
        self._need_word("TRANSACTIONS")
        while self._is_word("OF", "ON", "REPORT"):
            word = self._now().word
            self._i += 1
            if word == "OF":
                self.parse_expression()
                self._need_word("ROW", "ROWS")
            elif word == "ON":
                self._need_word("ERROR")
                self._need_word("CONTINUE", "BREAK", "FAIL")
            else:
                self._need_word("STATUS")
                self._need_word("AS")
                self.parse_variable()
        return True

    def _call_procedure(self, optional: bool | None) -> ast.CallProcedure:
        start = self._i
        parts = [self._need_name("a procedure").token.value]
        while self._take("."):
            parts.append(self._need_name("a procedure").token.value)
        call = ast.CallProcedure(name=".".join(parts), expressions=None)
        call.__dict__["_name"] = (self.placed[start].start, self.placed[self._i - 1].end)
        call.args["optional"] = optional
        if self._take("("):
            call.set("expressions", [] if self._is(")") else self._list(self.parse_expression))
            self._need(")")
        first = self._i
        if self._take_word("YIELD"):
            items = [self._item(first=True)] if self._is("*") else self._list(self._yielded)
            call.set("yield_", self._mark(ast.Yield(expressions=items), first))
            call.set("where", self._where())
        return call

    def _yielded(self) -> AstNode:
        start = self._i
        field = self.parse_variable()
        if self._take_word("AS"):
            return self._mark(ast.Alias(this=field, alias=self.parse_variable()), start)
        return field
