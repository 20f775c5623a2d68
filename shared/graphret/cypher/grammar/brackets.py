"""Lists, comprehensions, parentheses and subqueries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from cypherast import ast
from cypherast.ast import AstNode

from graphret.cypher.grammar.patterns import Patterns
from graphret.cypher.tree import Paren, Subquery

_CLAUSES = frozenset(("MATCH", "OPTIONAL", "WITH", "UNWIND", "CALL", "RETURN", "USE"))


class Brackets(Patterns):
    """The productions of what stands in brackets."""

    def _without_bars(self, production: Callable[[], Any]) -> Any:
        bars, self.bars = self.bars, False
        try:
            return production()
        finally:
            self.bars = bars

    def parse_list_or_comprehension(self) -> AstNode:
        if self._now(1).named and self._is_word("IN", ahead=2):
            node = self._attempt(self._projected_list) or self._attempt(self._list_comprehension)
            if node is not None:
                return node
        elif self._is("(", 1) or (self._now(1).named and self._is("=", 2)):
            pattern = self._attempt(self._projected_pattern) or self._attempt(self._pattern_comprehension)
            if pattern is not None:
                return pattern
        start = self._i
        self._need("[")
        bars, self.bars = self.bars, True
        items = [] if self._is("]") else self._list(self.parse_expression)
        self.bars = bars
        self._need("]")
        return self._mark(ast.List(expressions=items), start)

    def _projected_list(self) -> AstNode:
        """A comprehension in which the first ``|`` begins the projection, as the server prefers."""
        node: AstNode = self._without_bars(self._list_comprehension)
        return node

    def _projected_pattern(self) -> AstNode:
        node: AstNode = self._without_bars(self._pattern_comprehension)
        return node

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
        ahead = self._closings.get(self._i, len(self.placed)) - self._i
        if self._is("<", ahead + 1):
            ahead += 1
        return self._is("-", ahead + 1) and (self._is("[", ahead + 2) or self._is("-", ahead + 2))

    @cached_property
    def _closings(self) -> dict[int, int]:
        """Where what closes each opening bracket stands, of whatever kind it is."""
        opened: list[int] = []
        found: dict[int, int] = {}
        for i, token in enumerate(self.placed):
            if token.operator in ("(", "[", "{"):
                opened.append(i)
            elif token.operator in (")", "]", "}") and opened:
                found[opened.pop()] = i
        return found

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
