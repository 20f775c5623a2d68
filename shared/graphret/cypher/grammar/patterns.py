"""Patterns: nodes, relationships, quantified and shortest paths, label expressions."""

from __future__ import annotations

from typing import Any

from cypherast import ast
from cypherast.ast import AstNode, Direction
from cypherast.lexer import TokenKind

from graphret.cypher.grammar.cursor import Cursor
from graphret.cypher.tree import (
    Group,
    LabelAll,
    LabelAny,
    LabelDynamic,
    LabelName,
    LabelNot,
    LabelOne,
    Name,
    Shortest,
    span,
    walk,
)

_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")
#: What ``IS`` and ``WHERE`` before a bracket or a name may be besides: the name of a variable.
_AMBIGUOUS = ("IS", "WHERE")
#: What no label is called after ``IS`` unless in backticks.
_NO_LABELS = ("NULL", "NOT", "TYPED", "NORMALIZED", "NFC", "NFD", "NFKC", "NFKD")


class Patterns(Cursor):
    """The productions of patterns."""

    def parse_variable(self) -> ast.Identifier:
        start = self._i
        token = self._need_name("a variable")
        return self._mark(ast.Identifier(this=token.token.value), start)

    def _name(self, what: str = "a name") -> Name:
        start = self._i
        return self._mark(Name(this=self._need_name(what).token.value), start)

    # --- paths ------------------------------------------------------------

    def parse_pattern(self) -> ast.Pattern:
        start = self._i
        return self._mark(ast.Pattern(paths=self._list(self.parse_path_pattern)), start)

    def _parse_path_pattern_body(self) -> ast.PathPattern:
        start = self._i
        variable = None
        if self._now().named and self._is("=", 1):
            variable = self.parse_variable()
            self._need("=")
        selector = self._selector()
        if self._now().word in _SHORTEST:
            elements: list[AstNode] = [self._shortest()]
        else:
            elements = self._elements()
        path = ast.PathPattern(variable=variable, elements=elements)
        path.args["selector"] = selector
        return self._mark(path, start)

    def _selector(self) -> str | None:
        """``ANY``, ``ALL SHORTEST``, ``SHORTEST 3 PATH GROUPS`` and so on."""
        if self._is("(") or self._now().word not in ("ANY", "ALL", "SHORTEST"):
            return None
        words = [self._now().word]
        self._i += 1
        if words[0] != "SHORTEST" and self._take_word("SHORTEST"):
            words.append("SHORTEST")
        elif self._now().kind is TokenKind.INTEGER:
            words.append(self._now().text)
            if not int(words[1], 0):
                raise self._err("at least one path is asked for", code="CG1102")
            self._i += 1
        if self._take_word("PATH", "PATHS"):
            words.append("PATH")
        if words[0] == "SHORTEST" and self._take_word("GROUP", "GROUPS"):
            words.append("GROUP")
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
        if not (self._is("(") or (self._now().named and self._is("=", 1))):
            # Not a path within parentheses: say what is wrong with the node.
            self._i = start
            return self.parse_node_pattern()  # type: ignore[return-value]
        with self._nesting():
            path = self._parse_path_pattern_body()
        where = self._where()
        self._need(")")
        bounds = self._quantifier()
        least, most = bounds or (1, 1)
        group = Group(this=path, where=where, quantified=bounds is not None, min_hops=least, max_hops=most)
        return self._mark(group, start)

    def _quantifier(self) -> tuple[int, int | None] | None:
        if self._take("+"):
            return 1, None
        if self._take("*"):
            return 0, None
        if not self._is("{"):
            return None
        self._need("{")
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
        token = self._now()
        if token.kind is TokenKind.INTEGER and token.text.isdigit():
            self._i += 1
            return int(token.text)
        return None

    def _where(self) -> AstNode | None:
        return self.parse_expression() if self._take_word("WHERE") else None

    # --- nodes and relationships ------------------------------------------

    def parse_node_pattern(self) -> ast.NodePattern:
        start = self._i
        self._need("(")
        node = ast.NodePattern(**self._filling())
        return self._mark(node, start)

    def _filling(self) -> dict[str, Any]:
        """What may stand within the brackets of a node or a relationship, and the closing bracket."""
        if self._is_word(*_AMBIGUOUS):
            return self._attempt(self._named_filling) or self._nameless_filling()
        return self._named_filling() if self._now().named else self._nameless_filling()

    def _named_filling(self) -> dict[str, Any]:
        """A filling that begins with a variable, as the server prefers to read ``(is …`` and ``(where …``."""
        opened, variable = self.placed[self._i - 1].operator, self.parse_variable()
        return {**self._unnamed(opened == "["), "variable": variable}

    def _nameless_filling(self) -> dict[str, Any]:
        return self._unnamed(self.placed[self._i - 1].operator == "[")

    def _unnamed(self, relationship: bool) -> dict[str, Any]:
        filling: dict[str, Any] = {"variable": None, "properties": None}
        labels = None
        if self._take(":"):
            labels = self._label_expression()
        elif self._take_word("IS"):
            labels = self._labels_after_is()
        filling["types" if relationship else "labels"] = labels
        if relationship:
            filling.update(self._length())
        if self._is("{"):
            filling["properties"] = self.parse_map_literal()
        elif self._now().kind is TokenKind.PARAMETER or self._is("$"):
            filling["properties"] = self.parse_parameter()
        filling["where"] = self._where()
        self._need("]" if relationship else ")")
        return filling

    def _length(self) -> dict[str, Any]:
        if not self._take("*"):
            return {"variable_length": None, "min_hops": None, "max_hops": None}
        least = self._integer()
        if self._take(".."):
            return {"variable_length": True, "min_hops": least if least is not None else 1, "max_hops": self._integer()}
        if least is not None:
            return {"variable_length": True, "min_hops": least, "max_hops": least}
        return {"variable_length": True, "min_hops": 1, "max_hops": None}

    def _at_relationship(self) -> bool:
        return self._is("-") or (self._is("<") and self._is("-", 1))

    def parse_relationship_pattern(self, quantified: bool = True) -> ast.RelationshipPattern:
        start = self._i
        left = self._i if self._take("<") else None
        self._need("-")
        filling: dict[str, Any] = {"variable": None, "types": None, "properties": None, "where": None}
        if self._take("["):
            filling = self._filling()
        self._need("-")
        right = self._i if self._take(">") else None
        direction = Direction.BOTH
        if (left is None) != (right is None):
            direction = Direction.INCOMING if right is None else Direction.OUTGOING
        relationship = ast.RelationshipPattern(direction=direction, **filling)
        self._mark(relationship, start)
        # The arrow heads, or the empty places where one would stand.
        first, last = self.placed[start], self.placed[self._i - 1]
        relationship.__dict__["_left"] = (first.start, first.end if left is not None else first.start)
        relationship.__dict__["_right"] = (last.start if right is not None else last.end, last.end)
        bounds = self._attempt(self._quantifier) if quantified and not self._is("(") else None
        relationship.args["quantifier"] = bounds
        return relationship

    # --- label expressions ------------------------------------------------

    def _label_expression(self) -> AstNode:
        start = self._i
        parts = [self._label_conjunction()]
        colons = False
        while self.bars and self._is("|"):
            self._i += 1
            colons = self._take(":") or colons
            parts.append(self._label_conjunction())
        return parts[0] if len(parts) == 1 else self._mark(LabelOne(parts=parts, colons=colons), start)

    def _labels_after_is(self) -> AstNode:
        labels = self._label_expression()
        names = (n for n in walk(labels) if isinstance(n, LabelName))
        if any(self.source[slice(*span(name))].upper() in _NO_LABELS for name in names):
            raise self._err("after IS a label of that name stands in backticks", code="CG1102")
        if any(
            (isinstance(n, LabelAll) and ":" in n.signs) or (isinstance(n, LabelOne) and n.colons) for n in walk(labels)
        ):
            raise self._err("after IS labels are joined by '&' or '|', not by ':'", code="CG1102")
        return labels

    def _label_conjunction(self) -> AstNode:
        start = self._i
        parts = [self._label_atom()]
        signs = set()
        while self._is("&") or self._is(":"):
            signs.add(self._now().operator)
            self._i += 1
            parts.append(self._label_atom())
        return parts[0] if len(parts) == 1 else self._mark(LabelAll(parts=parts, signs=frozenset(signs)), start)

    def _label_atom(self) -> AstNode:
        start = self._i
        if self._take("!"):
            return self._mark(LabelNot(this=self._label_atom()), start)
        if self._take("("):
            bars, self.bars = self.bars, True
            with self._nesting():
                inner = self._label_expression()
            self.bars = bars
            self._need(")")
            return inner
        if self._take("%"):
            return self._mark(LabelAny(), start)
        if self._is("$") or self._is_dynamic_any():
            return self._dynamic_label(start)
        token = self._need_name("a label or a relation")
        return self._mark(LabelName(this=token.token.value), start)

    def _is_dynamic_any(self) -> bool:
        token = self._now()
        return token.kind is TokenKind.PARAMETER and token.text.upper() in ("ALL", "ANY") and self._is("(", 1)

    def _dynamic_label(self, start: int) -> LabelDynamic:
        if self._take("$"):
            self._take_word("ALL", "ANY")
        else:
            self._i += 1
        self._need("(")
        expression = self.parse_expression()
        self._need(")")
        return self._mark(LabelDynamic(this=expression), start)

    def parse_parameter(self) -> ast.Parameter:
        start = self._i
        if self._take("$"):
            token = self._now()
            if not (token.named or token.kind is TokenKind.INTEGER):
                raise self._wrong("the name of a parameter")
            self._i += 1
            return self._mark(ast.Parameter(name=token.token.value), start)
        self._i += 1
        return self._mark(ast.Parameter(name=self.placed[start].text), start)

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
