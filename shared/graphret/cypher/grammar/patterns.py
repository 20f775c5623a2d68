"""Patterns: nodes, relationships, paths, label expressions, maps and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cypherast import ast
from cypherast.ast import AstNode, Direction

from graphret.cypher.grammar.cursor import Cursor
from graphret.cypher.tokens import PARAMETER
from graphret.cypher.tree import (
    Group,
    LabelAll,
    LabelAny,
    LabelName,
    LabelNot,
    LabelOne,
    Name,
    Shortest,
)

_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")


class Patterns(Cursor):
    """The productions of patterns."""

    if TYPE_CHECKING:

        def parse_expression(self, least: int = 0) -> AstNode: ...

    def parse_variable(self) -> ast.Identifier:
        start = self._i
        return self._mark(
            ast.Identifier(this=self._need_name("a variable").value), start
        )

    def _name(self, what: str = "a name") -> Name:
        start = self._i
        return self._mark(Name(this=self._need_name(what).value), start)

    def _where(self) -> AstNode | None:
        return self.parse_expression() if self._take_word("WHERE") else None

    # --- paths ------------------------------------------------------------

    def parse_pattern(self) -> ast.Pattern:
        start = self._i
        return self._mark(ast.Pattern(paths=self._list(self._path)), start)

    def _path(self) -> ast.PathPattern:
        with self._nesting():
            start = self._i
            variable = None
            if self._now().name and self._is("=", 1):
                variable = self.parse_variable()
                self._need("=")
            selector = self._selector()
            elements: list[AstNode] = (
                [self._shortest()] if self._is_word(*_SHORTEST) else self._elements()
            )
            path = ast.PathPattern(variable=variable, elements=elements)
            path.args["selector"] = selector
            return self._mark(path, start)

    def _selector(self) -> str | None:
        """``ANY``, ``ALL SHORTEST``, ``SHORTEST 3 PATH GROUPS`` and so on."""
        if not self._is_word("ANY", "ALL", "SHORTEST"):
            return None
        words = [self._now().word]
        self._i += 1
        if words[0] != "SHORTEST" and self._take_word("SHORTEST"):
            words.append("SHORTEST")
        elif self._is_whole():
            words.append(self._now().value)
            if not int(words[1], 0):
                raise self._error("at least one path is asked for")
            self._i += 1
        if self._take_word("PATH", "PATHS"):
            words.append("PATH")
        if words[0] == "SHORTEST" and self._take_word("GROUP", "GROUPS"):
            words.append("GROUP")
        if words == ["SHORTEST"]:
            raise self._wrong("a number of paths")
        return " ".join(words)

    def _shortest(self) -> Shortest:
        start = self._i
        name = self._need_word(*_SHORTEST).text
        self._need("(")
        inner = self._i
        path = self._mark(ast.PathPattern(elements=self._elements()), inner)
        self._need(")")
        return self._mark(Shortest(this=path, name=name), start)

    def _elements(self) -> list[AstNode]:
        """Nodes and relationships in turn, with parenthesised paths among them."""
        elements: list[AstNode] = []
        while self._is("("):
            node = self._attempt(self.parse_node_pattern)
            if node is None:
                elements.append(self._group())
                continue
            elements.append(node)
            while self._at_relationship():
                elements.append(self.parse_relationship_pattern())
                elements.append(self.parse_node_pattern())
        if not elements:
            raise self._wrong("a pattern")
        return elements

    def _group(self) -> Group:
        start = self._i
        self._need("(")
        if not (self._is("(") or (self._now().name and self._is("=", 1))):
            # Not a path within parentheses: say what is wrong with the node.
            self._i = start
            return self.parse_node_pattern()  # type: ignore[return-value]
        path = self._path()
        where = self._where()
        self._need(")")
        bounds = self._quantifier()
        least, most = bounds or (1, 1)
        group = Group(
            this=path,
            where=where,
            quantified=bounds is not None,
            min_hops=least,
            max_hops=most,
        )
        return self._mark(group, start)

    def _quantifier(self) -> tuple[int, int | None] | None:
        if self._take("+"):
            return 1, None
        if self._take("*"):
            return 0, None
        if not self._take("{"):
            return None
        least = self._integer()
        if self._take(","):
            most = self._integer()
        elif least is None:
            raise self._wrong("a number")
        else:
            most = least
        self._need("}")
        return least or 0, most

    def _integer(self) -> int | None:
        """How often."""
        if not self._now().value.isdigit() or not self._is_whole():
            return None
        self._i += 1
        return int(self._now(-1).value)

    # --- nodes and relationships ------------------------------------------

    def parse_node_pattern(self) -> ast.NodePattern:
        start = self._i
        self._need("(")
        return self._mark(ast.NodePattern(**self._filling(relationship=False)), start)

    def _filling(self, relationship: bool) -> dict[str, Any]:
        """The content of a node's or relationship's brackets, and the closing one."""
        has_variable = self._now().name and not self._is_word("WHERE")
        filling: dict[str, Any] = {
            "variable": self.parse_variable() if has_variable else None,
            "properties": None,
        }
        filling["types" if relationship else "labels"] = (
            self._label_expression() if self._take(":") else None
        )
        if relationship:
            filling.update(self._length())
        if self._is("{"):
            filling["properties"] = self.parse_map_literal()
        elif self._now().kind == PARAMETER:
            filling["properties"] = self.parse_parameter()
        filling["where"] = self._where()
        self._need("]" if relationship else ")")
        return filling

    def _length(self) -> dict[str, Any]:
        if not self._take("*"):
            return {"variable_length": None, "min_hops": None, "max_hops": None}
        least = self._integer()
        most = self._integer() if self._take("..") else least
        return {
            "variable_length": True,
            "min_hops": 1 if least is None else least,
            "max_hops": most,
        }

    def _at_relationship(self) -> bool:
        return self._is("-") or (self._is("<") and self._is("-", 1))

    def parse_relationship_pattern(
        self, quantified: bool = True
    ) -> ast.RelationshipPattern:
        start = self._i
        left = self._take("<")
        self._need("-")
        filling: dict[str, Any] = {
            "variable": None,
            "types": None,
            "properties": None,
            "where": None,
        }
        if self._take("["):
            filling = self._filling(relationship=True)
        self._need("-")
        right = self._take(">")
        direction = Direction.BOTH
        if left != right:
            direction = Direction.INCOMING if left else Direction.OUTGOING
        relationship = ast.RelationshipPattern(direction=direction, **filling)
        self._mark(relationship, start)
        # The arrow heads, or the empty places where one would stand.
        first, last = self.tokens[start], self.tokens[self._i - 1]
        relationship.__dict__["_left"] = (
            first.start,
            first.end if left else first.start,
        )
        relationship.__dict__["_right"] = (last.start if right else last.end, last.end)
        relationship.args["quantifier"] = (
            self._attempt(self._quantifier) if quantified else None
        )
        return relationship

    # --- label expressions ------------------------------------------------

    def _label_expression(self) -> AstNode:
        start = self._i
        parts = [self._label_conjunction()]
        colons = False
        while self.bars and self._take("|"):
            colons = self._take(":") or colons
            parts.append(self._label_conjunction())
        return (
            parts[0]
            if len(parts) == 1
            else self._mark(LabelOne(parts=parts, colons=colons), start)
        )

    def _label_conjunction(self) -> AstNode:
        start = self._i
        parts = [self._label_atom()]
        signs = set()
        while self._is("&") or self._is(":"):
            signs.add(self._now().operator)
            self._i += 1
            parts.append(self._label_atom())
        return (
            parts[0]
            if len(parts) == 1
            else self._mark(LabelAll(parts=parts, signs=frozenset(signs)), start)
        )

    def _label_atom(self) -> AstNode:
        start = self._i
        if self._take("!"):
            return self._mark(LabelNot(this=self._label_atom()), start)
        if self._take("("):
            with self._nesting(), self._bars(True):
                inner = self._label_expression()
            self._need(")")
            return inner
        if self._take("%"):
            return self._mark(LabelAny(), start)
        return self._mark(
            LabelName(this=self._need_name("a label or a relation").value), start
        )

    # --- maps and parameters ----------------------------------------------

    def parse_parameter(self) -> ast.Parameter:
        start = self._i
        self._i += 1
        return self._mark(ast.Parameter(name=self.tokens[start].value), start)

    def parse_map_literal(self) -> ast.Map:
        start = self._i
        self._need("{")
        entries = [] if self._is("}") else self._list(self._entry)
        self._need("}")
        return self._mark(ast.Map(entries=entries), start)

    def _entry(self) -> tuple[Name, AstNode]:
        key = self._name("a property name")
        self._need(":")
        return key, self.parse_expression()
