"""Literals, variables, calls of functions and map projections."""

from __future__ import annotations

from collections.abc import Callable

from cypherast import ast
from cypherast.ast import AstNode
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.brackets import Brackets
from graphret.cypher.tree import Name

FORMS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))
_QUANTIFIERS = frozenset(("ALL", "ANY", "NONE", "SINGLE"))
_LITERALS = frozenset(("TRUE", "FALSE", "NULL", "INF", "INFINITY", "NAN"))


class Primaries(Brackets):
    """The productions of what operators join."""

    def parse_primary(self) -> AstNode:
        token = self._now()
        start = self._i
        kind = token.kind
        if kind is TokenKind.INTEGER or kind is TokenKind.FLOAT:
            self._i += 1
            whole = kind is TokenKind.INTEGER
            if whole and int(token.text, 0) == 2**63 and not (start and self.placed[start - 1].operator == "-"):
                self._i -= 1
                raise self._err("the integer is too large", code="CG1004")
            node: AstNode = ast.Integer(this=int(token.text, 0)) if whole else ast.Float(this=float(token.text))
            return self._mark(node, start)
        if kind is TokenKind.STRING:
            self._i += 1
            return self._mark(ast.String(this=token.text), start)
        if kind is TokenKind.PARAMETER or token.operator == "$":
            return self.parse_parameter()
        if token.operator == "(":
            return self._paren_or_pattern()
        if token.operator == "[":
            return self.parse_list_or_comprehension()
        if token.operator == "{":
            return self.parse_map_literal()
        if token.named:
            return self._word_or_name(start)
        raise self._wrong("an expression")

    def _word_or_name(self, start: int) -> AstNode:
        token = self._now()
        word, following = token.word, self._now(1).operator
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
            elif word == "TRIM":
                special = self._trim
            elif word == "NORMALIZE":
                special = self._normalize
        if special is not None and (node := self._attempt(special)) is not None:
            return node
        if self._function_ahead():
            return self._function()
        variable = self.parse_variable()
        if self._is("{"):
            return self._projection(variable, start)
        return variable

    def _keyword_literal(self) -> AstNode:
        start = self._i
        word = self._now().word
        self._i += 1
        node: AstNode
        if word == "NULL":
            node = ast.Null()
        elif word in ("TRUE", "FALSE"):
            node = ast.Boolean(this=word == "TRUE")
        else:
            node = ast.Float(this=float(word))
        return self._mark(node, start)

    def _function_ahead(self) -> bool:
        ahead = 1
        while self._is(".", ahead) and self._now(ahead + 1).named:
            ahead += 2
        return self._is("(", ahead)

    def _function(self) -> AstNode:
        start = self._i
        parts = [self._need_name().token.value]
        while self._take("."):
            parts.append(self._need_name().token.value)
        name = self._mark(Name(this=".".join(parts)), start)
        self._need("(")
        distinct = self._take_word("DISTINCT") if not self._function_distinct_name() else False
        if not distinct and self._is_word("ALL") and self._now(1).operator not in ("(", ")", ",", "."):
            self._i += 1
        arguments: list[AstNode] = []
        if parts[0].lower() == "count" and len(parts) == 1 and self._is("*"):
            star = self._i
            self._i += 1
            arguments = [self._mark(ast.Star(), star)]
        elif not self._is(")"):
            arguments = self._list(self.parse_argument)
        self._need(")")
        return self._mark(ast.FunctionCall(name=name, expressions=arguments, distinct=distinct or None), start)

    def _function_distinct_name(self) -> bool:
        """Whether ``DISTINCT`` is the name of a variable here."""
        return self._is_word("DISTINCT") and self._now(1).operator in (")", ",", ".")

    def parse_argument(self) -> AstNode:
        """An argument of a function; a dialect with lambdas reads them here."""
        return self.parse_expression()

    def _trim(self) -> AstNode:
        """``trim(x)``, ``trim(FROM x)``, ``trim(BOTH 'c' FROM x)``."""
        start = self._i
        name = self._name()
        self._need("(")
        arguments: list[AstNode] = []
        worded = self._take_word("BOTH", "LEADING", "TRAILING")
        if not self._is_word("FROM") or self._now(1).operator != ")":
            if not self._is_word("FROM"):
                arguments.append(self.parse_expression())
            if self._take_word("FROM"):
                arguments.insert(0, self.parse_expression())
            elif worded:
                raise self._wrong("FROM")
        self._need(")")
        return self._mark(ast.FunctionCall(name=name, expressions=arguments), start)

    def _normalize(self) -> AstNode:
        start = self._i
        name = self._name()
        self._need("(")
        text = self.parse_expression()
        if self._take(","):
            self._need_word(*FORMS)
        self._need(")")
        return self._mark(ast.FunctionCall(name=name, expressions=[text]), start)

    def _quantifier_call(self) -> AstNode:
        start = self._i
        name = self._now().word.lower()
        self._i += 1
        self._need("(")
        variable = self.parse_variable()
        self._need_word("IN")
        source = self.parse_expression()
        where = self._where()
        self._need(")")
        return self._mark(ast.Quantifier(name=name, variable=variable, source=source, where=where), start)

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
        source = self._without_bars(self.parse_expression)
        self._need("|")
        expression = self.parse_expression()
        self._need(")")
        node = ast.ListLambda(
            name="reduce",
            variable=variable,
            source=source,
            expression=expression,
            accumulator=accumulator,
            initial=initial,
        )
        return self._mark(node, start)

    def _projection(self, variable: ast.Identifier, start: int) -> AstNode:
        self._need("{")
        entries = [] if self._is("}") else self._list(self._projected)
        self._need("}")
        return self._mark(ast.MapProjection(this=variable, entries=entries), start)

    def _projected(self) -> AstNode | tuple[Name, AstNode]:
        start = self._i
        if self._take("."):
            if self._take("*"):
                return self._mark(ast.Star(), start)
            return self._mark(ast.PropertySelector(name=self._name("a property name")), start)
        if self._is(":", 1):
            return self._entry()
        return self.parse_variable()
