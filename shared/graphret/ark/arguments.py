"""The arguments that a model wrote for a tool call, or what it may have meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from graphret.ark.neighborhood import matching
from graphret.ark.observation import quoted
from graphret.ark.settings import MAX_K
from graphret.cypher.suggestions import nearest
from graphret.errors import InvalidInput
from graphret.llm.json_text import json_values, read_object
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.where import Where

# A relation as `arrow` writes it, or as the schema does: between two labels.
_ARROW = re.compile(
    r"(\([^()]*\))?(<?)-\[:?(.*)\]-(>?)(\([^()]*\))?",
    re.DOTALL,
)
# A label or a relation in the brackets of Cypher, which the schema shows: (:Order).
_BRACKETED = re.compile(r"[(\[]?:([^()\[\]]+)[)\]]?")
# What `json_line` escapes, where a model has copied the escape itself.
_ESCAPED = re.compile(r"\\u00(5b|3c)", re.IGNORECASE)
_SHOWN, _LONGEST = 3, 200  # names that are suggested, and how long they may be


class InvalidCall(Exception):
    """A call that cannot be run; the message tells the model what to do."""


def _listed(value: Any) -> Any:
    """A list of names, also where it is written as one text."""
    if not isinstance(value, str):
        return value
    parsed = next(json_values(value), None) if value.rstrip().endswith("]") else None
    return parsed if isinstance(parsed, list) else [value]


#: Names, of which models write one as a string.
_NameList = Annotated[list[str], BeforeValidator(_listed)]


def _any_object(schema: dict[str, Any]) -> None:
    """Leave out what a schema of any object says besides."""
    schema.pop("additionalProperties", None)


#: A condition as `Where` has it.
_Condition = Annotated[dict[str, Any], BeforeValidator(read_object)]
#: How many nodes to show; as the tool has it where the model does not say.
_Count = Annotated[
    int,
    Field(
        description="How many nodes to show.",
        json_schema_extra={"minimum": 1, "maximum": MAX_K},
    ),
]


class Arguments(BaseModel):
    """What a tool takes; a subclass's docstring is its description for the model."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


# What these classes and their fields say is what a model is told of the tools.
class SearchArguments(Arguments):
    """Find nodes anywhere in the graph by name, text or properties, best first;
    {search_k} unless you ask for more. Short queries of telling words work best.
    """

    query: str = Field(
        "",
        description=(
            "Words of the node's name or text; without any, all that node_types and"
            " where let pass are listed."
        ),
    )
    node_types: _NameList = Field([], description="Only nodes of these types.")
    where: _Condition = Field(
        {},
        description=(
            'Only nodes with such properties: {"year": {"$gte": 1990, "$lt": 2000},'
            ' "country": "France"}; also $ne, $in, $contains, $icontains, $exists, $or.'
        ),
        json_schema_extra=_any_object,
    )
    k: _Count = 0


class ExploreArguments(Arguments):
    """Show the neighbours of a node, each with the relations that join it;
    {neighbors_k} unless you ask for more.
    """

    node: str = Field(description="Its id.")
    query: str = Field("", description="Ranks the neighbours by these words.")
    node_types: _NameList = Field([], description="Only neighbours of these types.")
    relation_types: _NameList = Field(
        [],
        description=(
            'Only by these relations: "r", or "-[:r]->" or "<-[:r]-" for one direction.'
        ),
    )
    where: _Condition = Field(
        {},
        description="Only neighbours with such properties, as in a search.",
        json_schema_extra=_any_object,
    )
    k: _Count = 0


class SelectArguments(Arguments):
    """Add nodes that a tool has shown to your answer, best first; they stay in it."""

    nodes: _NameList = Field(min_length=1, description="Their ids.")


class FinishArguments(Arguments):
    """End your work. Call it once what you selected answers the question."""


T = TypeVar("T", bound=Arguments)


def read(kind: type[T], arguments: Any) -> T:
    """Return the arguments of a call, or raise `InvalidCall`."""
    try:
        present = (
            {name: value for name, value in arguments.items() if value is not None}
            if isinstance(arguments, Mapping)
            else arguments
        )
        return kind.model_validate(present)
    except ValidationError as error:
        problems = "; ".join(
            " ".join([*map(quoted, map(str, e["loc"][:1])), e["msg"]])
            for e in error.errors()[:3]
        )
        raise InvalidCall(
            f"{problems}. The tool takes {', '.join(kind.model_fields)}."
        ) from error


def condition(written: Mapping[str, Any]) -> Where | None:
    """Return a condition that a model wrote, or raise `InvalidCall`."""
    try:
        return Where.parse(written)
    except InvalidInput as error:
        raise InvalidCall(str(error)) from error


def separate(names: Sequence[str], names_in_graph: Collection[str]) -> list[str]:
    """Split texts that are several names with commas between them.

    A text that is itself a name in the graph stays whole.
    """
    separated = list[str]()
    for name in names:
        parts = [part.strip(" '\"[]") for part in name.split(",")]
        several = name not in names_in_graph and any(
            bare_name(read_arrow(part)[0]) in names_in_graph for part in parts
        )
        separated += parts if several else [name]
    return separated


def bare_name(name: str) -> str:
    """Return a name without the spaces, backticks or brackets that a schema shows."""
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name.strip("` "))
    bracketed = _BRACKETED.fullmatch(plain)
    return plain if bracketed is None else bracketed[1].strip("` ")


def arrow(relation: str, outgoing: bool) -> str:
    """Return a relation as observations show it, seen from the node that was explored.

    It is written as the schema writes it. The colon keeps a relation in capitals from
    being taken for a control token, such as ``[INST]``.
    """
    return f"-[:{relation}]->" if outgoing else f"<-[:{relation}]-"


def read_arrow(text: str) -> tuple[str, bool | None]:
    """The inverse of `arrow`; the direction is `None` if the text does not say it."""
    match = _ARROW.fullmatch(_ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text))
    if match is None:
        return text, None
    start, left, relation, right, end = match.groups()
    undirected = bool(left) == bool(right)
    return relation, None if start or end or undirected else bool(right)


def directions(names: Sequence[str]) -> dict[str, str]:
    """Return each of some relations with its direction: ``both``, ``out`` or ``in``.

    They are written as ``r``, ``-[:r]->`` or ``<-[:r]-``.
    """
    direction_by_relation: dict[str, str] = {}
    for name in names:
        relation, outgoing = read_arrow(name.strip("` "))
        direction = {None: "both", True: "out", False: "in"}[outgoing]
        direction_by_relation[bare_name(relation)] = (
            direction
            if direction_by_relation.get(bare_name(relation), direction) == direction
            else "both"
        )
    return direction_by_relation


def no_such_node(
    store: GraphStore, index: TextIndex, wrong: str
) -> tuple[str, list[str]]:
    """Return the answer to an unknown id, and the likeliest ids, which it names."""
    text = wrong[:_LONGEST].strip()
    ids = dict.fromkeys(
        [text, text.title(), text.upper(), *matching(index, text, _SHOWN)]
        if text
        else []
    )
    nodes = [
        node
        for node in store.get(list(ids))
        if node is not None and len(node.id) <= _LONGEST
    ][:_SHOWN]
    shown = [
        quoted(node.id, _LONGEST)
        + (f" (named {quoted(node.name)})" if node.name else "")
        for node in nodes
    ]
    closest = f"Closest: {', '.join(shown)}." if shown else "Search for it."
    message = (
        f"There is no node {quoted(wrong)}. {closest} Copy ids exactly as the tools"
        " show them."
    )
    return message, [node.id for node in nodes]


def no_such_name(kind: str, wrong: Collection[str], names: Collection[str]) -> str:
    """Return the instruction that answers unknown types or relations."""
    valid, problems = sorted(name for name in names if len(name) <= _LONGEST), []
    for name in sorted(wrong)[:_SHOWN]:
        close = nearest(name[:_LONGEST], valid) or valid[: 2 * _SHOWN]
        closest = (
            ", ".join(quoted(close_name, _LONGEST) for close_name in close)
            or "none in this graph"
        )
        problems.append(f"There is no {kind} {quoted(name)}. Closest: {closest}.")
    return " ".join(problems) + " Copy names exactly as the tools show them."
