"""The operands of operators: literals, variables, calls, lists and subqueries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.grammar.patterns import Patterns
from graphret.cypher.tokens import NUMBER, PARAMETER, STRING
from graphret.cypher.tree import Name, Paren, Subquery

_QUANTIFIERS = frozenset(("ALL", "ANY", "NONE", "SINGLE"))
_LITERALS = frozenset(("TRUE", "FALSE", "NULL", "INF", "INFINITY", "NAN"))
_CLAUSES = ("MATCH", "OPTIONAL", "WITH", "UNWIND", "CALL", "RETURN")


class Operands(Patterns):
    """The productions of operands."""

    if TYPE_CHECKING:

        def parse_statement(self) -> AstNode: ...
        def parse_case(self) -> AstNode: ...

    def parse_primary(self) -> AstNode:
        token = self._now()
        start = self._i
        if token.kind == NUMBER:
            return self._number(start)
        if token.kind == STRING:
            self._i += 1
            return self._mark(ast.String(this=token.value), start)
        if token.kind == PARAMETER:
            return self.parse_parameter()
        if token.operator == "(":
            return self._paren_or_pattern()
        if token.operator == "[":
            return self.parse_list_or_comprehension()
        if token.operator == "{":
            return self.parse_map_literal()
        if token.name:
            return self._word_or_name(start)
        raise self._wrong("an expression")

    def _number(self, start: int) -> AstNode:
        text, is_integer = self._now().value, self._is_whole()
        if is_integer and int(text, 0) == 2**63 and not (start and self._is("-", -1)):
            raise self._error("the integer is too large")
        self._i += 1
        return self._mark(
            ast.Integer(this=int(text, 0))
            if is_integer
            else ast.Float(this=float(text)),
            start,
        )

    def _word_or_name(self, start: int) -> AstNode:
        word, following = self._now().word, self._now(1).operator
        special: Callable[[], AstNode] | None = None
        if word == "CASE":
            special = self.parse_case
        elif word in _LITERALS:
            special = self._keyword_literal if following not in ("(", "{") else None
        elif following == "{" and word in ("EXISTS", "COUNT", "COLLECT"):
            return self._subquery()
        elif following == "(":
            if word in _QUANTIFIERS:
                special = self._quantifier_call
            elif word == "REDUCE":
                special = self._reduce
            elif word in ("SHORTESTPATH", "ALLSHORTESTPATHS"):
                special = self._shortest
        if special is not None and (node := self._attempt(special)) is not None:
            return node
        if self._function_ahead():
            return self._function()
        variable = self.parse_variable()
        return self._projection(variable, start) if self._is("{") else variable

    def _keyword_literal(self) -> AstNode:
        start = self._i
        word = self._now().word
        self._i += 1
        node: AstNode = ast.Null()
        if word in ("TRUE", "FALSE"):
            node = ast.Boolean(this=word == "TRUE")
        elif word != "NULL":
            node = ast.Float(this=float(word))
        return self._mark(node, start)

    def _projection(self, variable: ast.Identifier, start: int) -> AstNode:
        """``n {.name, .*, x: 1, y}``."""
        self._need("{")
        entries = [] if self._is("}") else self._list(self._projected)
        self._need("}")
        return self._mark(ast.MapProjection(this=variable, entries=entries), start)

    def _projected(self) -> AstNode | tuple[Name, AstNode]:
        start = self._i
        if self._take("."):
            if self._take("*"):
                return self._mark(ast.Star(), start)
            return self._mark(
                ast.PropertySelector(name=self._name("a property name")), start
            )
        return self._entry() if self._is(":", 1) else self.parse_variable()

    # --- calls ------------------------------------------------------------

    def _function_ahead(self) -> bool:
        ahead = 1
        while self._is(".", ahead) and self._now(ahead + 1).name:
            ahead += 2
        return self._is("(", ahead)

    def _function(self) -> AstNode:
        start = self._i
        parts = [self._need_name().value]
        while self._take("."):
            parts.append(self._need_name().value)
        name = self._mark(Name(this=".".join(parts)), start)
        self._need("(")
        # Either word may also be the name of a variable.
        distinct = self._is_word("DISTINCT") and self._now(1).operator not in (
            ")",
            ",",
            ".",
        )
        if distinct or (
            self._is_word("ALL") and self._now(1).operator not in ("(", ")", ",", ".")
        ):
            self._i += 1
        arguments: list[AstNode] = []
        if [part.lower() for part in parts] == ["count"] and self._is("*"):
            self._i += 1
            arguments = [self._mark(ast.Star(), self._i - 1)]
        elif not self._is(")"):
            arguments = self._list(self.parse_argument)
        self._need(")")
        return self._mark(
            ast.FunctionCall(
                name=name, expressions=arguments, distinct=distinct or None
            ),
            start,
        )

    def parse_argument(self) -> AstNode:
        """An argument of a function; a dialect with lambdas reads them here."""
        return self.parse_expression()

    def _quantifier_call(self) -> AstNode:
        """``any(x IN list WHERE …)``."""
        start = self._i
        name = self._now().word.lower()
        self._i += 1
        self._need("(")
        variable = self.parse_variable()
        self._need_word("IN")
        source = self.parse_expression()
        where = self._where()
        self._need(")")
        return self._mark(
            ast.Quantifier(name=name, variable=variable, source=source, where=where),
            start,
        )

    def _reduce(self) -> AstNode:
        start = self._i
        self._i += 1
        self._need("(")
        accumulator = self.parse_variable()
        self._need("=")
        initial = self.parse_expression()
        self._need(",")
        variable = self.parse_variable()
        self._need_word("IN")
        with self._bars(False):
            source = self.parse_expression()
        self._need("|")
        node = ast.ListLambda(
            name="reduce",
            variable=variable,
            source=source,
            expression=self.parse_expression(),
        )
        node.args |= {"accumulator": accumulator, "initial": initial}
        self._need(")")
        return self._mark(node, start)

    # --- brackets ---------------------------------------------------------

    def parse_list_or_comprehension(self) -> AstNode:
        if self._now(1).name and self._is_word("IN", ahead=2):
            node = self._attempt(self._projected_list) or self._attempt(
                self._list_comprehension
            )
            if node is not None:
                return node
        elif self._is("(", 1) or (self._now(1).name and self._is("=", 2)):
            pattern = self._attempt(self._projected_pattern) or self._attempt(
                self._pattern_comprehension
            )
            if pattern is not None:
                return pattern
        start = self._i
        self._need("[")
        with self._bars(True):
            items = [] if self._is("]") else self._list(self.parse_expression)
        self._need("]")
        return self._mark(ast.List(expressions=items), start)

    def _projected_list(self) -> AstNode:
        """A comprehension in which the first ``|`` begins the projection.

        The server prefers this reading, too.
        """
        with self._bars(False):
            return self._list_comprehension()

    def _projected_pattern(self) -> AstNode:
        with self._bars(False):
            return self._pattern_comprehension()

    def _list_comprehension(self) -> AstNode:
        start = self._i
        self._need("[")
        variable = self.parse_variable()
        self._need_word("IN")
        source = self.parse_expression()
        where = self._where()
        projection = self.parse_expression() if self._take("|") else None
        self._need("]")
        node = ast.ListComprehension(
            variable=variable, source=source, where=where, projection=projection
        )
        return self._mark(node, start)

    def _pattern_comprehension(self) -> AstNode:
        start = self._i
        self._need("[")
        variable = None
        if not self._is("("):
            variable = self.parse_variable()
            self._need("=")
        with self._bars(True):
            path = self._relationships()
        where = self._where()
        self._need("|")
        projection = self.parse_expression()
        self._need("]")
        node = ast.PatternComprehension(
            variable=variable, pattern=path, where=where, projection=projection
        )
        return self._mark(node, start)

    def _relationships(self) -> ast.PathPattern:
        """A path of at least one relationship."""
        start = self._i
        elements: list[AstNode] = [self.parse_node_pattern()]
        if not self._at_relationship():
            raise self._wrong("a relationship")
        while self._at_relationship():
            elements.append(self.parse_relationship_pattern(quantified=False))
            elements.append(self.parse_node_pattern())
        return self._mark(ast.PathPattern(elements=elements), start)

    def _paren_or_pattern(self) -> AstNode:
        start = self._i
        if self._pattern_ahead():
            path = self._attempt(self._relationships)
            if path is not None:
                return self._mark(ast.PatternPredicate(pattern=path), start)
        self._need("(")
        with self._bars(True):
            inner = self.parse_expression()
        self._need(")")
        return self._mark(Paren(this=inner), start)

    def _pattern_ahead(self) -> bool:
        """Whether the bracket here closes before what may be a relationship."""
        ahead = self._closings.get(self._i, len(self.tokens)) - self._i
        if self._is("<", ahead + 1):
            ahead += 1
        return self._is("-", ahead + 1) and (
            self._is("[", ahead + 2) or self._is("-", ahead + 2)
        )

    @cached_property
    def _closings(self) -> dict[int, int]:
        """Where what closes each opening bracket stands, of whatever kind it is."""
        opened: list[int] = []
        closing_at: dict[int, int] = {}
        for i, operator in enumerate(self._operators):
            if operator in ("(", "[", "{"):
                opened.append(i)
            elif operator in (")", "]", "}") and opened:
                closing_at[opened.pop()] = i
        return closing_at

    # --- subqueries -------------------------------------------------------

    def _subquery(self) -> AstNode:
        """``EXISTS { }``, ``COUNT { }`` and ``COLLECT { }``."""
        start = self._i
        kind = self._now().word
        self._i += 1
        self._need("{")
        # Whether a pattern stands there by itself, without MATCH.
        bare = kind != "COLLECT" and not self._is_word(*_CLAUSES)
        with self._bars(True):
            query = self._bare_pattern() if bare else self.parse_statement()
        self._need("}")
        return self._mark(Subquery(kind=kind, query=query, bare=bare), start)

    def _bare_pattern(self) -> ast.Query:
        start = self._i
        pattern = self.parse_pattern()
        match = self._mark(ast.Match(pattern=pattern, where=self._where()), start)
        return self._mark(ast.Query(clauses=[match]), start)
