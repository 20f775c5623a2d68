"""What a model wrote as the arguments of a tool, read as far as the meaning is clear; else what it may have meant."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from graphret.ark.neighborhood import matching
from graphret.ark.observation import quoted
from graphret.cypher.suggestions import nearest
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.text import normalize_name

_ARROWS = {"both": ("", ""), "out": ("-[", "]->"), "in": ("<-[", "]-")}
_SHOWN, _LONGEST = 3, 200  # names that are suggested, and how long they may be


class Unclear(Exception):
    """An argument that cannot be used; the message tells the model what to do."""


def _one(value: Any) -> Any:
    """An id as models write it: also as an object that has it, or a list of one."""
    value = value.get("id") if isinstance(value, Mapping) else value
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _several(value: Any) -> Any:
    """Names as models write them: also as one string, or as a list in JSON text."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    if isinstance(value, str):
        return None if value.strip().lower() in ("", "null", "none") else [value]
    return [one for one in value if one not in (None, "")] or None if isinstance(value, list) else value


_Names = Annotated[list[str] | None, BeforeValidator(_several)]
_Count = Annotated[int | None, BeforeValidator(lambda value: None if value == "" else value)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class SearchArguments(_Arguments):
    """What `global_search` is given."""

    query: str
    k: _Count = None


class ExploreArguments(_Arguments):
    """What `explore_neighborhood` is given."""

    node: Annotated[str, BeforeValidator(_one)]
    query: str | None = None
    node_types: _Names = None
    relation_types: _Names = None
    k: _Count = None


T = TypeVar("T", SearchArguments, ExploreArguments)


def read(kind: type[T], tool: str, given: Any) -> T:
    """Return the arguments of a call.

    Raises
    ------
    Unclear
        When they cannot be used.
    """
    try:
        given = {name: value for name, value in dict(given).items() if value is not None}
        return kind.model_validate_json(encodable(json.dumps(given, ensure_ascii=False)))
    except (ValidationError, TypeError, ValueError) as error:
        said = "; ".join(_problems(error)) if isinstance(error, ValidationError) else str(error)
        raise Unclear(f"{tool}: {said}. It takes {', '.join(kind.model_fields)}.") from error


def _problems(error: ValidationError) -> list[str]:
    return [" ".join([*(quoted(str(at), 40) for at in one["loc"][:1]), one["msg"]]) for one in error.errors()[:3]]


def encodable(text: str) -> str:
    """Return the text without lone surrogates, which a cut-off escape leaves, and which nothing can encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def meant(name: str, known: Collection[str]) -> str:
    """Return the name that is meant: as it is, or without the white space or the backticks around it."""
    bare = name.strip()
    unquoted = bare.removeprefix("`").removesuffix("`").replace("``", "`")
    return next((one for one in (name, bare, unquoted) if one in known), bare)


def relation_filter(name: str, known: Collection[str]) -> tuple[str, str]:
    """Return the relation and the direction (``out``, ``in``, ``both``) of ``r``, ``-[r]->`` and ``<-[r]-``."""
    relation = meant(name, known)
    for direction in ("out", "in") if relation not in known else ():
        before, after = _ARROWS[direction]
        if relation.startswith(before) and relation.endswith(after) and len(relation) > len(before) + len(after):
            return meant(relation[len(before) : -len(after)], known), direction
    return relation, "both"


def arrow(relation: str, outgoing: bool) -> str:
    """Return a relation as observations show it, seen from the node that was explored."""
    before, after = _ARROWS["out" if outgoing else "in"]
    return f"{before}{relation}{after}"


def no_such_node(store: GraphStore, index: TextIndex, wrong: str) -> tuple[str, list[str]]:
    """Return the instruction that answers an id which is none, and the ids that it names: the likeliest."""
    asked = wrong[:_LONGEST]
    spellings = [asked.strip(), asked.lower(), asked.upper(), asked.title(), asked.replace("_", " ")]
    ids = list(dict.fromkeys([*spellings, *matching(index, asked, 20)])) if asked.strip() else []
    nodes = [node for node in (store.get(ids) if ids else []) if node is not None and len(node.id) <= _LONGEST]
    wanted = normalize_name(asked)
    same = [node for node in nodes if wanted in (normalize_name(node.id), normalize_name(node.name))]
    by_call = {call: node for node in reversed(nodes) for call in (node.name or node.id, node.id)}
    alike = [by_call[call] for call in nearest(asked, by_call, _SHOWN)]
    likely = list({node.id: node for node in [*same, *alike] or nodes}.values())[:_SHOWN]
    said = [
        quoted(node.id, _LONGEST) + (f" (named {quoted(node.name)})" if node.name and node.name != node.id else "")
        for node in likely
    ]
    closest = f"Closest: {', '.join(said)}." if said else "Find it with global_search."
    message = f"There is no node {quoted(wrong)}. {closest} Copy ids exactly as the tools show them."
    return message, [node.id for node in likely]


def no_such_name(kind: str, wrong: Sequence[str], valid: Collection[str], own: Sequence[str] = ()) -> str:
    """Return the instruction that answers unknown types or relations.

    `own` are those around the node explored, the most frequent first: they are suggested before others, and named where
    nothing is alike.
    """
    if not valid:
        return f"This graph has no {kind}s. Call again without them."
    there, known = ([name for name in names if len(name) <= _LONGEST] for names in (own, sorted(valid)))
    said = []
    for name in wrong[:_SHOWN]:
        close = nearest(name[:_LONGEST], there) or nearest(name[:_LONGEST], known)
        hint = f"Closest: {_quoted(close)}." if close else f"There are {_quoted((there or known)[: 2 * _SHOWN])}."
        said.append(f"There is no {kind} {quoted(name)}. {hint}")
    return " ".join(said) + " Copy names exactly as the tools show them."


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(quoted(one, _LONGEST) for one in names)
