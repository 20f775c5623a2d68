"""Where Ladybug's Cypher reads otherwise than Neo4j's."""

from __future__ import annotations

from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.grammar.clauses import Clauses
from graphret.cypher.tokens import END
from graphret.cypher.tree import LabelName, LabelOne, Lambda, Name


class LadybugClauses(Clauses):
    """Ladybug's own forms: ``*SHORTEST 1..3``, ``x -> …``, ``list[1:2]``, ``:A:B`` etc.

    Variables are in any case.
    """

    _returning = False

    def parse_variable(self) -> ast.Identifier:
        start = self._i
        return self._mark(
            ast.Identifier(this=self._need_name("a variable").value.lower()), start
        )

    def _return(self) -> ast.Return:
        before, self._returning = self._returning, True
        try:
            return super()._return()
        finally:
            self._returning = before

    def _item(self, first: bool = False) -> AstNode:
        """An item of ``WITH`` or ``RETURN``; in ``RETURN`` also ``n.*``."""
        all_of = self._attempt(self._all_of) if self._returning else None
        return super()._item(first) if all_of is None else all_of

    def _all_of(self) -> ast.Identifier:
        start = self._i
        variable = self.parse_variable()
        self._need(".")
        self._need("*")
        return self._mark(variable, start)

    def _label_expression(self) -> AstNode:
        """Any number of tables, one of which has the node: ``:A:B`` means ``:A|B``."""
        start = self._i
        parts: list[AstNode] = [self._table()]
        while self._is("|") or self._is(":"):
            self._i += 1
            self._take(":")
            parts.append(self._table())
        return (
            parts[0]
            if len(parts) == 1
            else self._mark(LabelOne(parts=parts, colons=False), start)
        )

    def _table(self) -> LabelName:
        start = self._i
        return self._mark(LabelName(this=self._need_name("a table").value), start)

    def _length(self) -> dict[str, Any]:
        if not self._take("*"):
            return {"variable_length": None, "min_hops": None, "max_hops": None}
        shortest = self._is_word("SHORTEST", "ALL")
        while self._take_word("SHORTEST", "ALL", "TRAIL", "ACYCLIC"):
            pass
        least = self._integer()
        most = self._integer() if self._take("..") else least
        # A shortest path stops by itself.
        bound = most if most is not None or not shortest else 0
        return {
            "variable_length": True,
            "min_hops": 1 if least is None else least,
            "max_hops": bound,
        }

    def _integer(self) -> int | None:
        """How often, in digits alone."""
        return super()._integer() if self._now().text.isdigit() else None

    def _conditions(self) -> list[AstNode]:
        """One value."""
        return [self.parse_expression()]

    def parse_argument(self) -> AstNode:
        """An argument: ``x -> x + 1`` and ``(x, y) -> x + y`` besides expressions."""
        return self._attempt(self._lambda) or self.parse_expression()

    def _lambda(self) -> Lambda:
        start = self._i
        if self._take("("):
            variables = self._list(self.parse_variable)
            self._need(")")
        else:
            variables = [self.parse_variable()]
        self._need("-")
        self._need(">")
        return self._mark(
            Lambda(variables=variables, expression=self.parse_expression()), start
        )

    def _function(self) -> AstNode:
        if self._is_word("CAST") and (cast := self._attempt(self._cast)) is not None:
            return cast
        return super()._function()

    def _cast(self) -> AstNode:
        start = self._i
        name = self._mark(Name(this=self._need_name().value), start)
        self._need("(")
        value = self.parse_expression()
        self._need_word("AS")
        self._type()
        self._need(")")
        return self._mark(
            ast.FunctionCall(name=name, expressions=[value], distinct=None), start
        )

    def _type(self) -> None:
        """``INT64[]``, ``DECIMAL(5, 2)``, ``STRUCT(a INT64, b STRING)``."""
        self._need_name("a type")
        depth = 0
        while depth or self._is("(") or self._is("["):
            if self._now().kind == END:
                raise self._wrong("')'")
            depth += (
                1
                if self._now().operator in ("(", "[")
                else -1
                if self._now().operator in (")", "]")
                else 0
            )
            self._i += 1

    def _index(self, node: AstNode) -> AstNode:
        bounds = self._attempt(self._bounds)
        return (
            super()._index(node)
            if bounds is None
            else ast.ListSlice(this=node, start=bounds[0], end=bounds[1])
        )

    def _bounds(self) -> tuple[AstNode | None, AstNode | None]:
        # Between the bounds of ``list[a:b]`` a colon asks for no label.
        self.label_predicates = False
        try:
            return self._two_bounds()
        finally:
            self.label_predicates = True

    def _two_bounds(self) -> tuple[AstNode | None, AstNode | None]:
        self._need("[")
        low = None if self._is(":") else self.parse_expression()
        self._need(":")
        high = None if self._is("]") else self.parse_expression()
        self._need("]")
        return low, high
