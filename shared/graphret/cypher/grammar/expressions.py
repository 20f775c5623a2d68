"""Expressions, in the order of precedence of Neo4j 5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.cursor import Cursor
from graphret.cypher.grammar.patterns import Patterns
from graphret.cypher.grammar.typenames import TypeNames
from graphret.cypher.tree import Chain, IsTyped, Name, Paren, Sign, Subquery, Test

_QUANTIFIERS = frozenset(("ALL", "ANY", "NONE", "SINGLE"))
_FORMS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))
_COMPARISONS = frozenset(("=", "<>", "!=", "<", ">", "<=", ">="))
_CLAUSES = frozenset(("MATCH", "OPTIONAL", "WITH", "UNWIND", "CALL", "RETURN", "USE"))
_LITERALS = frozenset(("TRUE", "FALSE", "NULL", "INF", "INFINITY", "NAN"))


class Expressions(Patterns, TypeNames, Cursor):
    """The productions of expressions."""

    #: Whether ``n:Label`` is a condition.
    label_predicates = True

    def parse_or(self) -> AstNode:
        return self._words("OR", self.parse_xor)

    def parse_xor(self) -> AstNode:
        return self._words("XOR", self.parse_and)

    def parse_and(self) -> AstNode:
        return self._words("AND", self.parse_not)

    def _words(self, word: str, operand: Callable[[], AstNode]) -> AstNode:
        start = self._i
        first = operand()
        if self._now().word != word:
            return first
        operands, operators = [first], []
        while self._take_word(word):
            operators.append(word)
            operands.append(operand())
        return self._mark(Chain(operands=operands, operators=operators), start)

    def _operators(self, signs: frozenset[str] | tuple[str, ...], operand: Callable[[], AstNode]) -> AstNode:
        start = self._i
        first = operand()
        if self._now().operator not in signs:
            return first
        operands, operators = [first], []
        while self._now().operator in signs:
            operators.append(self._now().operator)
            self._i += 1
            operands.append(operand())
        return self._mark(Chain(operands=operands, operators=operators), start)

    def parse_not(self) -> AstNode:
        start = self._i
        if self._is_word("NOT") and self._now(1).operator not in (")", "]", ",", ".", "}", "="):
            self._i += 1
            with self._nesting():
                return self._mark(ast.Not(this=self.parse_not()), start)
        return self._operators(_COMPARISONS, self.parse_comparison)

    def parse_comparison(self) -> AstNode:
        start = self._i
        left = self.parse_add()
        token = self._now()
        operator = ""
        if token.operator == "=~":
            operator = "=~"
            self._i += 1
        elif token.word in ("CONTAINS", "IN"):
            operator = token.word
            self._i += 1
        elif token.word in ("STARTS", "ENDS"):
            operator = f"{token.word} WITH"
            self._i += 1
            self._need_word("WITH")
        if operator:
            return self._mark(Test(this=left, operator=operator, expression=self.parse_add()), start)
        if token.operator == "::":
            self._i += 1
            return self._mark(IsTyped(this=left, type_=self._type(), not_=None), start)
        if token.word == "IS":
            return self._is_something(left, start)
        return left

    def _is_something(self, left: AstNode, start: int) -> AstNode:
        self._need_word("IS")
        negated = self._take_word("NOT") or None
        if self._take_word("NULL"):
            return self._mark(ast.IsNull(this=left, not_=negated), start)
        if self._take("::") or self._take_word("TYPED"):
            return self._mark(IsTyped(this=left, type_=self._type(), not_=negated), start)
        self._take_word(*_FORMS)
        if self._take_word("NORMALIZED"):
            return self._mark(IsTyped(this=left, type_=None, not_=negated), start)
        if self._now().named and not negated:
            # ``n IS Label`` in an expression.
            return self._mark(ast.LabelPredicate(this=left, labels=self._label_expression()), start)
        raise self._wrong("NULL, NOT NULL, a type or NORMALIZED")

    def parse_add(self) -> AstNode:
        return self._operators(("+", "-", "||"), self.parse_mul)

    def parse_mul(self) -> AstNode:
        return self._operators(("*", "/", "%"), self.parse_pow)

    def parse_pow(self) -> AstNode:
        return self._operators(("^",), self.parse_unary)

    def parse_unary(self) -> AstNode:
        start = self._i
        if self._is("-") or self._is("+"):
            operator = self._now().operator
            self._i += 1
            if operator == "-" and self._is("-") and self._now(1).kind not in (TokenKind.INTEGER, TokenKind.FLOAT):
                raise self._wrong("an expression")
            with self._nesting():
                inner = self.parse_unary() if self._is("-") else self.parse_postfix()
            return self._mark(Sign(this=inner, operator=operator), start)
        return self.parse_postfix()

    def parse_postfix(self) -> AstNode:
        start = self._i
        node = self.parse_primary()
        while True:
            if self._is("."):
                self._i += 1
                node = ast.Property(this=node, name=self._name("a property name"))
            elif self.label_predicates and self._is(":"):
                self._i += 1
                node = ast.LabelPredicate(this=node, labels=self._label_expression())
            elif self._is("["):
                node = self._index(node)
            else:
                return node
            self._mark(node, start)

    def _index(self, node: AstNode) -> AstNode:
        self._need("[")
        low = None if self._is("..") else self.parse_expression()
        if low is not None and self._take("]"):
            return ast.ListSubscript(this=node, index=low)
        if not self._take(".."):
            raise self._wrong("']' or '..'")
        high = None if self._is("]") else self.parse_expression()
        self._need("]")
        return ast.ListSlice(this=node, start=low, end=high)

    # --- primaries --------------------------------------------------------

    def parse_primary(self) -> AstNode:
        token = self._now()
        start = self._i
        kind = token.kind
        if kind is TokenKind.INTEGER or kind is TokenKind.FLOAT:
            self._i += 1
            whole = kind is TokenKind.INTEGER
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
            self._need_word(*_FORMS)
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

    def parse_case(self) -> ast.Case:
        start = self._i
        self._need_word("CASE")
        subject = None if self._is_word("WHEN") else self.parse_expression()
        branches: list[tuple[AstNode, AstNode]] = []
        while self._take_word("WHEN"):
            conditions = self._list(self._condition) if subject is not None else [self.parse_expression()]
            self._need_word("THEN")
            result = self.parse_expression()
            branches.extend((condition, result) for condition in conditions)
        if not branches:
            raise self._wrong("WHEN")
        default = self.parse_expression() if self._take_word("ELSE") else None
        self._need_word("END")
        return self._mark(ast.Case(this=subject, ifs=branches, default=default), start)

    def _condition(self) -> AstNode:
        """What stands after ``WHEN`` where the case has a subject: a value, or an operator and its right side."""
        start = self._i
        token = self._now()
        if token.operator in _COMPARISONS or token.operator == "=~":
            self._i += 1
            return self.parse_comparison()
        if token.word in ("STARTS", "ENDS") and self._is_word("WITH", ahead=1):
            self._i += 2
            return self.parse_add()
        if token.word == "IS" or token.operator == "::":
            nothing = self._mark(ast.Null(), start)
            if token.operator == "::":
                self._i += 1
                return self._mark(IsTyped(this=nothing, type_=self._type(), not_=None), start)
            return self._is_something(nothing, start)
        return self.parse_expression()

    # --- brackets ---------------------------------------------------------

    def _without_bars(self, production: Callable[[], Any]) -> Any:
        bars, self.bars = self.bars, False
        try:
            return production()
        finally:
            self.bars = bars

    def parse_expression(self) -> AstNode:
        with self._nesting():
            return self.parse_or()

    def parse_list_or_comprehension(self) -> AstNode:
        if self._now(1).named and self._is_word("IN", ahead=2):
            node = self._attempt(lambda: self._without_bars(self._list_comprehension))
            node = node or self._attempt(self._list_comprehension)
            if node is not None:
                return node
        elif self._is("(", 1) or (self._now(1).named and self._is("=", 2)):
            pattern = self._attempt(lambda: self._without_bars(self._pattern_comprehension))
            pattern = pattern or self._attempt(self._pattern_comprehension)
            if pattern is not None:
                return pattern
        start = self._i
        self._need("[")
        bars, self.bars = self.bars, True
        items = [] if self._is("]") else self._list(self.parse_expression)
        self.bars = bars
        self._need("]")
        return self._mark(ast.List(expressions=items), start)

    def _list_comprehension(self) -> AstNode:
        start = self._i
        self._need("[")
        variable = self.parse_variable()
        self._need_word("IN")
        source = self.parse_expression()
        where = self._where()
        projection = self.parse_expression() if self._take("|") else None
        self._need("]")
        node = ast.ListComprehension(variable=variable, source=source, where=where, projection=projection)
        return self._mark(node, start)

    def _pattern_comprehension(self) -> AstNode:
        start = self._i
        self._need("[")
        variable = None
        if not self._is("("):
            variable = self.parse_variable()
            self._need("=")
        bars, self.bars = self.bars, True
        path = self._relationships()
        self.bars = bars
        where = self._where()
        self._need("|")
        projection = self.parse_expression()
        self._need("]")
        node = ast.PatternComprehension(variable=variable, pattern=path, where=where, projection=projection)
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
        bars, self.bars = self.bars, True
        inner = self.parse_expression()
        self.bars = bars
        self._need(")")
        return self._mark(Paren(this=inner), start)

    def _pattern_ahead(self) -> bool:
        """Whether the bracket that opens here closes before what may be a relationship."""
        depth, ahead = 0, 0
        while (token := self._now(ahead)).kind is not TokenKind.EOF:
            if token.operator in ("(", "[", "{"):
                depth += 1
            elif token.operator in (")", "]", "}"):
                depth -= 1
                if depth == 0:
                    break
            ahead += 1
        if self._is("<", ahead + 1):
            ahead += 1
        return self._is("-", ahead + 1) and (self._is("[", ahead + 2) or self._is("-", ahead + 2))

    # --- subqueries -------------------------------------------------------

    def _subquery(self) -> AstNode:
        start = self._i
        kind = self._now().word
        self._i += 1
        self._need("{")
        bars, self.bars = self.bars, True
        opening = self._i
        query = self._subquery_body(kind)
        self.bars = bars
        self._need("}")
        # Whether a pattern stands there by itself, without MATCH.
        bare = isinstance(query, ast.Query) and self.placed[opening].word not in _CLAUSES
        return self._mark(Subquery(kind=kind, query=query, bare=bare), start)

    def _subquery_body(self, kind: str) -> AstNode:
        start = self._i
        bare = self._is("(") or (self._now().named and self._is("=", 1)) or self._now().word in ("SHORTESTPATH",)
        bare = bare or self._now().word in ("ALLSHORTESTPATHS", "ANY", "ALL", "SHORTEST", "REPEATABLE", "DIFFERENT")
        if not bare or kind == "COLLECT":
            return self.parse_statement()
        self._match_mode()
        pattern = self.parse_pattern()
        match = self._mark(ast.Match(pattern=pattern, where=self._where()), start)
        return self._mark(ast.Query(clauses=[match]), start)

    def _match_mode(self) -> None:
        """``REPEATABLE ELEMENTS`` and ``DIFFERENT RELATIONSHIPS``, which Neo4j 5 reads and then refuses."""
        if self._is_word("REPEATABLE", "DIFFERENT") and not self._is("=", 1):
            raise self._err("match modes such as REPEATABLE ELEMENTS are not there yet", code="CG1102")
