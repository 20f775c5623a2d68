"""Plans that a model wrote for STaRK's questions, as metapaths and restrictions: what of them `GraphPlan` expresses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphret.cypher import check
from graphret.errors import GraphretError, InvalidInput
from graphret.evaluation.dataset import Shares
from graphret.evaluation.runner import Progress
from graphret.evaluation.spark import filled
from graphret.planning import GraphPlan, compile_plan
from graphret.schema import GraphSchema
from graphret.stores import MemoryStore
from graphret.stores.neo4j.layout import MARKER
from graphret.types import Edge, Node

_BODY = ("biological_process", "molecular_function", "cellular_component")
#: What joins the labels of STaRK's graphs.
RELATIONS: Mapping[str, Sequence[tuple[str, Sequence[str], str]]] = {
    "amazon": [
        ("product", ("also_buy", "also_view"), "product"),
        *(("product", (f"has_{label}",), label) for label in ("brand", "category", "color")),
    ],
    "mag": [
        ("author", ("affiliated_with",), "institution"),
        ("author", ("writes",), "paper"),
        ("paper", ("cites",), "paper"),
        ("paper", ("has_topic",), "field_of_study"),
    ],
    "prime": [
        ("anatomy", ("expression present", "expression absent"), "gene/protein"),
        ("disease", ("phenotype present", "phenotype absent"), "effect/phenotype"),
        ("drug", ("contraindication", "indication", "off-label use"), "disease"),
        ("drug", ("side effect",), "effect/phenotype"),
        ("drug", ("synergistic interaction",), "drug"),
        ("drug", ("carrier", "enzyme", "target", "transporter"), "gene/protein"),
        ("exposure", ("linked to",), "disease"),
        *(("exposure", ("interacts with",), label) for label in _BODY),
        *(("gene/protein", ("associated with",), label) for label in ("disease", "effect/phenotype")),
        *(("gene/protein", ("interacts with",), label) for label in ("exposure", "pathway", *_BODY)),
        ("gene/protein", ("ppi",), "gene/protein"),
        *(
            (label, ("parent-child",), label)
            for label in ("anatomy", "disease", "effect/phenotype", "exposure", "pathway", *_BODY)
        ),
    ],
}
_NAME = 8  # words: what is longer describes


def schema_of(dataset: str) -> GraphSchema:
    """The schema of one of STaRK's graphs."""
    relations = {(one, name, other): 1 for one, names, other in RELATIONS[dataset] for name in names}
    return GraphSchema({label: 1 for one, _, other in relations for label in (one, other)}, relations)


def convert(record: Mapping[str, Any], schema: GraphSchema) -> tuple[GraphPlan, bool]:
    """Return a recorded plan as a `GraphPlan`, and whether all of it is there: every path, and what its names say.

    A metapath becomes hops; of a label's restrictions the first belong to the anchors of that label, the rest to the
    target.

    A label that there is not is left open, a relation that does not join its ends becomes any that does, and a path
    that leads nowhere, or whose labels nothing joins, is left out. Without a path the question itself is what the
    target is compared with.
    """
    paths, whole = _paths(record["metapath"])
    labels = {"T": paths[-1][-1]} if paths else {}
    hops: list[dict[str, Any]] = []
    for path in paths[::-1]:
        ends = [path[0], *path[2::2]]
        fits = [_fitting(rel, *pair, schema) for rel, pair in zip(path[1::2], pairwise(ends), strict=True)]
        if labels["T"] not in (ends[0], ends[-1]) or not all(fits):
            whole = False
            continue
        fresh = iter(f"v{len(labels) + place}" for place in range(len(ends)))
        names = [next(fresh) for _ in ends]
        names[-1 if ends[-1] == labels["T"] else 0] = "T"
        labels |= dict(zip(names, ends, strict=True))
        for place, relation in enumerate(path[1::2]):
            one, other = ends[place : place + 2]
            whole &= relation in (None, *fits[place][:1]) and {one, other} <= schema.labels.keys()
            step = {"from": names[place], "rel": fits[place], "to_var": names[place + 1]}
            hops.append(step | ({"to_label": other} if other in schema.labels else {}))
    texts = {label: [*map(str, said)] for label, said in (record["restriction"] or {}).items()}
    anchors = [
        {"var": var, "text": said.pop(0), "label": label if label in schema.labels else None}
        for var, label in labels.items()
        if var != "T" and (said := texts.get(label))
    ]
    for anchor in anchors:
        anchor["match_mode"] = "doc" if len(str(anchor["text"]).split()) > _NAME else "name"
    relevance = "; ".join(text for said in texts.values() for text in said) if hops else record["query"]
    target = {"labels": [one for one in [labels.get("T")] if one in schema.labels], "relevance_text": relevance}
    return GraphPlan.model_validate({"anchors": anchors, "hops": hops, "target": target}), whole


def _paths(metapath: Any) -> tuple[list[list[Any]], bool]:
    """The paths of a metapath, labels and relations in turn, the last to the target, and whether all was read.

    Relations that it does not tell are `None`.
    """
    if isinstance(metapath, str):
        parts = re.split(r"\s*(->|<-)\s*", metapath.strip())
        if parts[0] in ("", "None"):
            return [], False
        peak = next((place for place in range(1, len(parts), 2) if parts[place] == "<-"), len(parts))
        left, right = parts[:peak], parts[peak - 1 :][::-1]
        chains = [one for one in (right, left) if len(one) > 1] or [left]
        return [[None if place % 2 else part for place, part in enumerate(chain)] for chain in chains], True
    read = [path for path in metapath or () if isinstance(path, list) and len(path) % 2 and len(path) > 1]
    return read, bool(read) and len(read) == len(metapath)


def _fitting(relation: str | None, one: str, other: str, schema: GraphSchema) -> list[str]:
    """The relation if it joins the labels, or else all that do; a label that there is not fits any."""

    def fits(label: str, end: str) -> bool:
        return label == end or label not in schema.labels

    able = {
        name
        for a, name, b in schema.relations
        if (fits(one, a) and fits(other, b)) or (fits(one, b) and fits(other, a))
    }
    return [relation] if relation in able else sorted(able)


def bench_stark_plans(
    data: str | Path, limit: int | None = None, *, graph: str | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Convert the recorded plans, and compile them to queries.

    Rows are the data sets; the shares of their plans that are ``valid`` plans, that were converted ``whole``, and of
    whose queries the guard accepts (``guarded``) and the database plans (``planned``) all, of the valid ones.

    Parameters
    ----------
    data
        The folder with ``amazon.val.jsonl`` and the like, or one that has it as ``stark/plans``.
    limit
        The first plans of each.
    graph
        The address of an empty Neo4j; a Ladybug database in a temporary folder by default.
    """
    folder = next((one for one in (Path(data), Path(data) / "stark" / "plans") if any(one.glob("*.val.jsonl"))), None)
    if folder is None:
        raise InvalidInput(f"{data}: there is no amazon.val.jsonl, mag.val.jsonl or prime.val.jsonl")
    run = Shares()
    for dataset in RELATIONS:
        if not (file := folder / f"{dataset}.val.jsonl").exists():
            continue
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[:limit]]
        schema, seen = schema_of(dataset), Counter[str]()
        nodes = [Node(label, (label,), label) for label in schema.labels]
        smallest = MemoryStore.of(nodes, [Edge(one, name, other) for one, name, other in schema.relations])
        with filled(smallest, graph) as store:
            known = store.schema()
            verdict = cache(partial(_verdict, store=store, schema=known))
            for number, record in enumerate(records, 1):
                if progress is not None:
                    progress(dataset, number, len(records))
                plan, whole = convert(record, schema)
                seen["whole"] += whole
                if problems := plan.problems(schema):
                    run.missed[f"{dataset}/valid"].append({"query": record["query"], "why": problems})
                    continue
                seen["valid"] += 1
                bindings = {anchor.var: {"an id": 1.0} for anchor in plan.anchors}
                query, _ = compile_plan(plan, store, bindings, schema=known)
                guarded, planned = verdict(query)
                seen["guarded"] += guarded
                seen["planned"] += planned
                if not (guarded and planned):
                    run.missed[f"{dataset}/planned"].append({"query": record["query"], "cypher": query})
        for what in ("valid", "whole", "guarded", "planned"):
            run.share(dataset, what, seen[what], len(records) if what in ("valid", "whole") else seen["valid"])
    return run.result("stark-plans", {})


def _verdict(query: str, store: Any, schema: GraphSchema) -> tuple[bool, bool]:
    """Whether the guard accepts a query, but for the label by which a store finds its own nodes, and the database."""
    guarded = check(query.replace(f":`{MARKER}`", ""), schema, dialect=store.dialect).ok
    try:
        return guarded, store.explain(query) in (None, "r")
    except GraphretError:
        return guarded, False
