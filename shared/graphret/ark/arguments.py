"""What a model wrote as the arguments of a tool, read as far as the meaning is clear."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from graphret.ark.observation import quoted

_ABSENT = ("", "null", "none")
_ENDS = {"both": ("", ""), "out": ("-[", "]->"), "in": ("<-[", "]-")}


class Unclear(Exception):
    """An argument that cannot be used; the message tells the model what to do."""


class Arguments:
    """The arguments of one call; what was read otherwise than it was written is said in `notes`.

    Raises
    ------
    Unclear
        By every method, where an argument cannot be used.
    """

    def __init__(self, tool: str, given: Mapping[str, Any], known: Collection[str]) -> None:
        extra = [name for name, value in given.items() if name not in known and value is not None]
        if extra:
            named = ", ".join(quoted(str(name), 40) for name in extra[:5])
            raise Unclear(f"{tool} has no argument {named}. It takes {', '.join(known)}. Call it again without.")
        self.tool = tool
        self.given = given
        self.notes: list[str] = []

    def text(self, name: str, longest: int) -> str | None:
        """Return a string without white space around it, cut to `longest`; `None` where there is none."""
        value = self.given.get(name)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = " ".join(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if value is None:
            return None
        if not isinstance(value, str):
            raise Unclear(f"{self.tool}: {name} is a string, not {_kind(value)}.")
        text = _encodable(value).strip()
        if len(text) > longest:
            self.notes.append(f"{name}: only the first {longest:,} of {len(text):,} characters were used")
            text = text[:longest].rstrip()
        return text or None

    def id(self, name: str) -> str:
        """Return an id, white space included; a number or a list of one id is taken as that id."""
        value = self.given.get(name)
        if isinstance(value, Mapping) and "id" in value:
            value = value["id"]
        if isinstance(value, list):
            if len(value) != 1:
                raise Unclear(f"{self.tool} takes one {name} a call. Make one call for each, in the same reply.")
            value = value[0]
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is None or value == "":
            raise Unclear(f"{self.tool} needs {name}: the id of a node, copied exactly as a tool has shown it.")
        if not isinstance(value, str):
            raise Unclear(f"{self.tool}: {name} is the id of a node, a string, not {_kind(value)}.")
        return _encodable(value)

    def count(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 1 to `most`."""
        value = self.given.get(name)
        if isinstance(value, str):
            value = _number(value)
        if value is None:
            return min(default, most)
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, float) and value == math.inf:
            value = most + 1
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unclear(f"{self.tool}: {name} is a whole number from 1 to {most}, not {_kind(value)}.")
        if value < 1:
            self.notes.append(f"{name} must be at least 1: {min(default, most)} was used")
            return min(default, most)
        if value > most:
            self.notes.append(f"{name} can be {most} at most: {most} was used")
        return min(value, most)

    def names(self, name: str) -> list[str] | None:
        """Return a list of names, white space included, `None` where there is none; a string is a list of one."""
        value = self.given.get(name)
        if isinstance(value, str):
            value = _listed(value)
        if value is None:
            return None
        if not isinstance(value, list):
            raise Unclear(f"{self.tool}: {name} is a list of strings, not {_kind(value)}.")
        kept = []
        for item in value:
            if item is None:
                continue
            if not isinstance(item, str):
                raise Unclear(f"{self.tool}: {name} is a list of strings; {_kind(item)} is among them.")
            if item.strip():
                kept.append(_encodable(item))
        return list(dict.fromkeys(kept)) or None


def meant(name: str, known: Collection[str]) -> str:
    """Return the name that is meant: as it is, or without the white space or the backticks around it."""
    bare = name.strip()
    unquoted = bare.removeprefix("`").removesuffix("`").replace("``", "`")
    return next((one for one in (name, bare, unquoted) if one in known), bare)


def relation_filter(name: str) -> tuple[str, str]:
    """Return the relation and the direction (``out``, ``in``, ``both``) of ``r``, ``-[r]->`` and ``<-[r]-``."""
    for direction in ("out", "in"):
        before, after = _ENDS[direction]
        if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after):
            return name[len(before) : -len(after)], direction
    return name, "both"


def arrow(relation: str, outgoing: bool) -> str:
    """Return a relation as observations show it, seen from the node that was explored."""
    before, after = _ENDS["out" if outgoing else "in"]
    return f"{before}{relation}{after}"


def _listed(value: str) -> list[Any] | None:
    text = value.strip()
    if text.lower() in _ABSENT:
        return None
    if text.startswith("["):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return [text]
        return parsed if isinstance(parsed, list) else [text]
    return [text]


def _number(value: str) -> Any:
    text = value.strip().replace(",", "").replace("_", "")
    if text.lower() in _ABSENT:
        return None
    try:
        return float(text) if len(text) > 20 or not text.lstrip("+-").isdecimal() else int(text)
    except ValueError:
        return value


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which no database and no encoder takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value, 40)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    names = {list: "a list", dict: "an object", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
