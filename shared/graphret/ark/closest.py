"""What a model may have meant by an id, a type or a relation that does not exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphret.ark.matching import matching
from graphret.ark.observation import quoted
from graphret.cypher.suggestions import nearest, plainly
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.text import normalize_name, words
from graphret.types import Node

_FOUND = 20
_SHOWN = 3
_LONGEST = 200


def closest_nodes(store: GraphStore, index: TextIndex, wrong: str) -> list[Node]:
    """Return the nodes that an id which is none may mean, the likeliest first.

    Those of the same name or the same id but for case, white space and punctuation come first, then those whose id or
    name looks alike, then what a search finds.
    """
    asked = wrong[:_LONGEST]
    spellings = [asked.strip(), asked.lower(), asked.upper(), asked.title(), asked.replace("_", " ")]
    ids = list(dict.fromkeys([*spellings, *matching(index, asked, _FOUND)])) if asked.strip() else []
    nodes = [node for node in (store.get(ids) if ids else []) if node is not None]
    wanted = normalize_name(asked)
    same = [node for node in nodes if wanted in (normalize_name(node.id), normalize_name(node.name))]
    by_call: dict[str, Node] = {}
    for node in nodes:
        by_call.setdefault(node.id, node)
        by_call.setdefault(node.name or node.id, node)
    alike = [by_call[call] for call in nearest(asked, by_call, _SHOWN)]
    likely = {node.id: node for node in [*same, *alike] or nodes}
    return [node for node in likely.values() if len(node.id) <= _LONGEST][:_SHOWN]


def closest_names(wrong: str, valid: Collection[str]) -> Sequence[str]:
    """Return the valid names most like one that is none: as a whole, or else in a word; none if none is alike.

    Parameters
    ----------
    wrong
        A type or a relation.
    valid
        Those that there are. One that is too long to be copied is not named.
    """
    asked = wrong[:_LONGEST]
    valid = [name for name in valid if len(name) <= _LONGEST]
    by_word: dict[str, list[str]] = {}
    for name in sorted(valid):
        for word in words(name.replace("_", " ")):
            by_word.setdefault(word, []).append(name)
    alike = [
        name for word in words(asked.replace("_", " ")) for one in nearest(word, by_word, 1) for name in by_word[one]
    ]
    return nearest(asked, valid) or list(dict.fromkeys(alike))[:_SHOWN]


def no_such_node(wrong: str, close: Sequence[Node]) -> str:
    """Return the instruction that answers an unknown id."""
    said = [
        quoted(node.id, _LONGEST) + (f" (named {quoted(node.name)})" if node.name and node.name != node.id else "")
        for node in close
    ]
    return (
        f"There is no node {quoted(wrong)}. "
        + (f"Closest: {', '.join(said)}. " if said else "Find it with global_search. ")
        + "Copy ids exactly as the tools show them."
    )


def no_such_name(kind: str, wrong: Sequence[str], valid: Collection[str], own: Sequence[str] = ()) -> str:
    """Return the instruction that answers unknown types or relations.

    Parameters
    ----------
    kind
        ``node type`` or ``relation``.
    wrong, valid
        Those asked for that do not exist, and all that do.
    own
        Those around the node explored, the most frequent first: they are suggested before others, and named where
        nothing is alike.
    """
    if not valid:
        return f"This graph has no {kind}s. Call again without them."
    there = [name for name in own or sorted(valid) if len(name) <= _LONGEST][: 2 * _SHOWN]
    said, unlike = [], False
    for name in wrong[:3]:
        close = _suggested(name, valid, own)
        said.append(f"There is no {kind} {quoted(name)}." + (f" Closest: {_listed(close)}." if close else ""))
        unlike = unlike or not close
    if unlike and there:
        said.append(f"The node has {_listed(there)}." if own else f"There are {_listed(there)}.")
    return " ".join(said) + " Copy names exactly as the tools show them."


def _suggested(wrong: str, valid: Collection[str], own: Sequence[str]) -> list[str]:
    """The name that is only spelt otherwise, and then those around the node explored that are alike, or any."""
    close = closest_names(wrong, valid)
    spelt = [name for name in close if plainly(name) == plainly(wrong[:_LONGEST])]
    return list(dict.fromkeys([*spelt, *closest_names(wrong, own)]))[:_SHOWN] or list(close)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(one, _LONGEST) for one in names)
