"""The prompt: the graph's schema, how a plan is written, and examples that were run.

The paper's prompts (appendix H) were written by hand for each of three graphs; these
are made of the schema of any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from graphret.cypher import run_checked
from graphret.errors import GraphretError
from graphret.schema import GraphSchema
from graphret.schema.text import estimate_tokens, quote_name, quote_value
from graphret.spark.settings import SparkSettings
from graphret.stores.base import CypherStore

_SECONDS = 5.0  # for an example to be found
_SCHEMA_SHARE = 0.4  # of the tokens, which examples leave to the schema
_NUMBERS, _DATES = (
    ("INTEGER", "FLOAT"),
    ("DATE", "DATE_TIME", "ZONED DATETIME", "LOCAL DATETIME", "TIMESTAMP"),
)

_TASK = """\
You answer a question from a graph. You cannot see the graph: you write a plan, which is run on it.

{schema}

The plan is one JSON object, {{"steps": [...]}}, with at most {max_steps} steps. A step is one of
{{"text": "what to look for", "label": "Label", "k": 20}}: a search for nodes of a label by words and meaning; "label" \
may be null.
{{"cypher": "MATCH ... RETURN n"}}: a query, in {dialect}, for names, numbers, dates and relations.
What the last step finds is the answer. The ids that step 1 found are the list $step1 in later queries: {ids}.

Rules:
- Asked for things: return whole nodes of that kind, RETURN DISTINCT n. Asked for a number, a date or a total, of all \
or of each thing or group: return values and what they are of, RETURN n.name AS name, sum(m.x) AS total.
- Every condition of the question goes into the plan, in the graph's units. Order and limit only where it does.
- Use only the labels, relations and properties above, and follow relations in the direction above. Where a relation \
joins nodes of several labels, leave the label of that node out.
- Names in the question may be misspelt: write the right ones, and compare without case, toLower(n.name) = \
toLower('...'), or CONTAINS. What is described and not named is searched for first, and narrowed by a query.
- A DATE is compared with date('2024-01-31'), a STRING with a text of its format.
- Queries only read. {dialect_rules}
Answer with the JSON object and nothing else."""

_DIALECTS = {
    "neo4j": (
        "Cypher as Neo4j 5 has it",
        "Paths of variable length need a bound, such as *1..3.",
    ),
    "ladybug": (
        "Cypher as the database Ladybug has it",
        (
            "Paths of variable length need a bound, such as *1..3. A list comprehension"
            " takes no pattern: use OPTIONAL MATCH and collect()."
        ),
    ),
}


def system_prompt(
    store: CypherStore, schema: GraphSchema, settings: SparkSettings, hints: str = ""
) -> str:
    """Return the system message of about `settings.prompt_tokens` tokens at most.

    The examples and the schema are cut to fit.
    """
    dialect, rules = _DIALECTS[store.dialect]
    schema = schema.in_cypher()
    examples = [
        f"{question}: {json.dumps({'steps': steps}, ensure_ascii=False)}"
        for question, steps in _examples(store, schema, settings)
    ]

    def with_schema(of_schema: str) -> str:
        task = _TASK.format(
            schema=of_schema,
            max_steps=settings.max_steps,
            dialect=dialect,
            dialect_rules=rules,
            ids=f"WHERE {store.id_in_cypher('n')} IN $step1",
        )
        shown = ["Plans for this graph:", *examples] if examples else []
        after = "\n".join([*shown, *([hints] if hints else [])])
        return f"{task}\n\n{after}" if after else task

    def tokens_left() -> int:
        return settings.prompt_tokens - estimate_tokens(with_schema(""))

    while examples and tokens_left() < _SCHEMA_SHARE * settings.prompt_tokens:
        examples.pop()
    return with_schema(schema.text(max(tokens_left(), 60), values=settings.show_values))


#: What a plan of an example is asked for, and its steps.
_Example: TypeAlias = tuple[str, list[dict[str, Any]]]


def _examples(
    store: CypherStore, schema: GraphSchema, settings: SparkSettings
) -> Iterator[_Example]:
    """Plans over the commonest relation and number or date, each with results."""
    yield from _relation_examples(store, schema, settings)
    for label, _ in sorted(
        schema.labels.items(), key=lambda counted: (-counted[1], counted[0])
    ):
        for key, property_schema in sorted(schema.properties.get(label, {}).items()):
            n, p = quote_name(label), quote_name(key)
            if property_schema.type not in (*_NUMBERS, *_DATES) or not n or not p:
                continue
            query = (
                f"MATCH (n:{n}) WHERE n.{p} IS NOT NULL RETURN n ORDER BY n.{p} DESC"
                " LIMIT 3"
            )
            if _first_value(store, query) is not None:
                yield f"the 3 {n} of the highest {p}", [{"cypher": query}]
                return


def _relation_examples(
    store: CypherStore, schema: GraphSchema, settings: SparkSettings
) -> Iterator[_Example]:
    """Plans over the commonest relation that has names at its end."""
    triples = sorted(
        schema.relations.items(), key=lambda counted: (-counted[1], counted[0])
    )
    for (source, relation, target), _ in triples:
        key = _text_property(schema, target) if source and target else None
        names = [quote_name(name) for name in (source, relation, target, key or "")]
        if not all(names):
            continue
        a, r, b, p = names
        pattern = f"MATCH (a:{a})-[:{r}]->(b:{b})"
        found_name = _first_value(
            store, f"{pattern} WHERE b.{p} IS NOT NULL RETURN b.{p} LIMIT 1"
        )
        if not isinstance(found_name, str) or not found_name:
            continue
        name = _in_cypher(found_name) if settings.show_values else "'...'"
        is_named = f"WHERE toLower(b.{p}) = toLower({name})"
        yield (
            f"{a} by {r} of a {b}",
            [{"cypher": f"{pattern} {is_named} RETURN DISTINCT a"}],
        )
        yield (
            f"how many {a}",
            [{"cypher": f"{pattern} {is_named} RETURN count(DISTINCT a) AS number"}],
        )
        among_step1 = f"WHERE {store.id_in_cypher('b')} IN $step1"
        yield (
            f"{a} by {r} of a {b} that is described",
            [
                {"text": "...", "label": target, "k": 20},
                {"cypher": f"{pattern} {among_step1} RETURN DISTINCT a"},
            ],
        )
        return


def _text_property(schema: GraphSchema, label: str) -> str | None:
    """The property of a label that is most likely its name."""
    texts = {
        name: property_schema
        for name, property_schema in schema.properties.get(label, {}).items()
        if property_schema.type == "STRING"
    }
    usual = [name for name in ("name", "title", "label") if name in texts]
    return next(
        iter([*usual, *sorted(texts, key=lambda name: (-texts[name].coverage, name))]),
        None,
    )


def _first_value(store: CypherStore, query: str) -> Any:
    """The first value that one of our own queries returns; `None` without any."""
    try:
        rows = run_checked(store, query, timeout=_SECONDS, max_rows=1).rows
    except GraphretError:
        return None
    return rows[0][0] if rows else None


def _in_cypher(value: str) -> str:
    """A text as a query has it, shortened."""
    short: str = json.loads(quote_value(value))
    return "'" + short.replace("\\", "\\\\").replace("'", "\\'") + "'"
