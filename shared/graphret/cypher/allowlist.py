"""What may run: lists of allowed clauses, functions and procedures, none of forbidden ones.

They are held against the tree, and against the tokens by themselves besides: what the
grammar might misread, a word that follows an operand, or a name before a bracket, is
judged by its neighbours alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from graphret.cypher.codes import NOT_ALLOWED
from graphret.cypher.grammar import Parsed
from graphret.cypher.report import ERROR, Finding, place_of
from graphret.cypher.semantics.functions import READING, SYNTAX_OF_THEIR_OWN
from graphret.cypher.tokens import END, NAME, NUMBER, Token

#: Procedures of Neo4j 5.26 that read the graph or its schema and change nothing. Many
#: others are of mode READ and yet change the server's state:
#: ``db.prepareForReplanning``, ``db.resampleIndex``, ``db.stats.*``.
_NEO4J_PROCEDURES = """
db.index.fulltext.queryNodes db.index.fulltext.queryRelationships db.index.vector.queryNodes
db.index.vector.queryRelationships db.labels db.propertyKeys db.relationshipTypes db.schema.nodeTypeProperties
db.schema.relTypeProperties db.schema.visualization
"""

#: Functions of Ladybug 0.22 (``CALL show_functions()``), without ``nextval``,
#: ``currval``, ``setseed`` and ``error``.
_LADYBUG_FUNCTIONS = """
abs acos all any array_append array_cat array_concat array_contains array_cosine_similarity array_cross_product
array_distance array_dot_product array_extract array_has array_indexof array_inner_product array_position array_prepend
array_push_back array_push_front array_slice array_squared_distance array_value asin atan atan2 avg bitshift_left
bitshift_right bitwise_and bitwise_or bitwise_xor blob cardinality cast cbrt ceil ceiling century coalesce collect
concat concat_ws constant_or_null contains cos cost cot count count_if current_date current_timestamp date date_part
date_trunc datepart datetrunc dayname decode degrees duration element_at encode end_node ends_with epoch_ms even exists
factorial floor gamma gen_random_uuid greatest hash histogram id ifnull initcap interval is_acyclic is_trail keys label
labels last_day lcase least left length levenshtein lgamma list_any_value list_append list_cat list_concat
list_contains list_creation list_distinct list_element list_extract list_filter list_has list_has_all list_has_any
list_indexof list_max list_min list_position list_prepend list_product list_reduce list_reverse list_reverse_sort
list_slice list_sort list_sum list_to_string list_transform list_unique ln log log10 log2 lower lpad ltrim make_date
map map_extract map_keys map_values max md5 min monthname nodes none nullif octet_length offset percentilecont
percentiledisc pi pow prefix properties radians random range regexp_extract regexp_extract_all regexp_full_match
regexp_matches regexp_replace regexp_split_to_array relationships rels repeat replace reverse right round rpad rtrim
sha256 sign sin single size split_part sqrt start_node starts_with string string_split string_to_array struct_extract
struct_pack substr substring suffix sum tan time_bucket timestamp to_blob to_bool to_date to_days to_double to_epoch_ms
to_float to_hours to_int128 to_int16 to_int32 to_int64 to_int8 to_interval to_microseconds to_milliseconds to_minutes
to_months to_seconds to_string to_timestamp to_uint128 to_uint16 to_uint32 to_uint64 to_uint8 to_uuid to_years tolower
toupper trim typeof ucase union_extract union_tag union_value upper uuid
"""

_LADYBUG_PROCEDURES = "query_fts_index query_vector_index"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may run on a dialect.

    The words that begin a clause, the functions in lower case, and the procedures.
    """

    clauses: frozenset[str]
    functions: frozenset[str]
    procedures: frozenset[str]


_CLAUSES = frozenset(("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"))
ALLOWED = {
    "neo4j": Allowed(
        _CLAUSES | {"FINISH"},
        frozenset(READING).union(map(str.lower, SYNTAX_OF_THEIR_OWN)),
        frozenset(_NEO4J_PROCEDURES.split()),
    ),
    "ladybug": Allowed(
        _CLAUSES,
        frozenset(_LADYBUG_FUNCTIONS.split()),
        frozenset(_LADYBUG_PROCEDURES.split()),
    ),
}

#: Words that may follow an operand, besides those that begin a clause.
_BEHIND = frozenset(
    """
    AND OR XOR IN CONTAINS STARTS ENDS IS AS WHERE ORDER SKIP OFFSET LIMIT ASC ASCENDING
    DESC DESCENDING UNION YIELD WHEN THEN ELSE END
""".split()
)
#: Words that may follow the number of ``SHORTEST 3 PATH GROUPS``.
_PATHS = frozenset("PATH PATHS GROUP GROUPS".split())
#: Words that stand before an operand, and are none.
_BEFORE = frozenset(
    "NOT DISTINCT ALL ANY SHORTEST BY CASE LOCAL ZONED PROPERTY".split()
)

#: The kinds of nodes that a query which only reads is made of.
_NODES = frozenset(
    """
    Alias Boolean CallProcedure CallSubquery Case Chain Cypher Finish Float FunctionCall
    Group Identifier Integer IsNull IsTyped LabelAll LabelAny LabelName LabelNot
    LabelOne LabelPredicate Lambda Limit List ListComprehension ListLambda ListSlice
    ListSubscript Map MapProjection Match Name NodePattern Not Null Order Ordered Page
    Parameter Paren PathPattern Pattern PatternComprehension PatternPredicate Property
    PropertySelector Quantifier Query RelationshipPattern Return Shortest Sign Skip Star
    String Subquery Test Union Unwind With Yield
""".split()
)

#: Why something may not run, and where it stands.
_Refusal = tuple[str, int, int]


def disallowed(
    parsed: Parsed, *, functions: Collection[str] = (), procedures: Collection[str] = ()
) -> list[Finding]:
    """Return the parts of a query that may not run on its dialect.

    Parameters
    ----------
    parsed
        The query. It need not parse.
    functions, procedures
        Names that may run as well, such as those of a plug-in; it is for the caller to
        know that they only read.
    """
    rules = _Rules(parsed.dialect, functions, procedures)
    refused = list(rules.words(parsed.tokens))
    for reason, start, end in (
        rules.nodes(parsed.tree) if parsed.tree is not None else ()
    ):
        if not any(start <= begun < end for _, begun, _ in refused):
            refused.append((reason, start, end))
    refused.sort(key=itemgetter(1))
    return [
        Finding(ERROR, NOT_ALLOWED, *refusal, *place_of(parsed.query, refusal[1]))
        for refusal in refused
    ]


class _Rules:
    def __init__(
        self, dialect: str, functions: Collection[str], procedures: Collection[str]
    ) -> None:
        self._allowed = ALLOWED[dialect]
        self._neo4j = dialect == "neo4j"
        self._functions, self._procedures = frozenset(functions), frozenset(procedures)
        self._keywords = self._allowed.clauses | _BEHIND

    def _calls(self, name: str) -> bool:
        """Whether a function may be called."""
        return (
            name.lower() in self._allowed.functions
            or not self._functions.isdisjoint((name, name.lower()))
        )

    def _runs(self, name: str) -> bool:
        """Whether a procedure may be called."""
        return (
            name if self._neo4j else name.lower()
        ) in self._allowed.procedures or name in self._procedures

    # --- the tokens by themselves -----------------------------------------

    def words(self, tokens: list[Token]) -> Iterator[_Refusal]:
        """The words that may not stand where they do, up to the first unknown clause."""
        for i, token in enumerate(tokens):
            if token.operator == ";" and tokens[i + 1].kind != END:
                yield (
                    "only one statement may run, with at most one ; at its end",
                    token.start,
                    token.end,
                )
                return
            if (
                token.kind == NAME
                and self._is_keyword_here(tokens, i)
                and token.word not in self._keywords
            ):
                clauses = ", ".join(sorted(self._allowed.clauses)).replace(
                    "OPTIONAL", "OPTIONAL MATCH"
                )
                reason = (
                    f"{token.text} may not stand here; the clauses that may run are"
                    f" {clauses}"
                )
                yield (reason, token.start, token.end)
                return
            if (
                token.name
                and tokens[i + 1].operator == "("
                and token.word not in self._keywords | _BEFORE | _PATHS
            ):
                yield from self._call(tokens, i)

    def _is_keyword_here(self, tokens: list[Token], i: int) -> bool:
        """Whether a word must be a keyword, since an operand ends before it."""
        if i == 0:
            return True
        before = tokens[i - 1]
        if tokens[i].word in _PATHS and (
            before.kind == NUMBER or before.word in _PATHS
        ):
            return False
        # ``IS :: STRING NOT NULL``
        if tokens[i].word == "NOT" and tokens[i + 1].word == "NULL":
            return False
        if before.kind == NAME:
            return before.word not in self._keywords | _BEFORE
        return before.operator in (")", "]", "}") if before.operator else True

    def _call(self, tokens: list[Token], last: int) -> Iterator[_Refusal]:
        first = last
        while (
            first > 1 and tokens[first - 1].operator == "." and tokens[first - 2].name
        ):
            first -= 2
        name = ".".join(token.value for token in tokens[first : last + 1 : 2])
        if first and tokens[first - 1].word == "CALL":
            if not self._runs(name):
                reason = f"the procedure {name} is not among those that may run"
                yield (reason, tokens[first].start, tokens[last].end)
        elif not (self._calls(name) or tokens[first - 1].word == "AS"):
            # ``cast(x AS DECIMAL(3, 2))``
            reason = f"{name} is not among the functions that may run"
            alone = first == last and tokens[first].word
            yield (
                f"{reason}, nor a clause" if alone else reason,
                tokens[first].start,
                tokens[first].end,
            )

    # --- the tree ---------------------------------------------------------

    def nodes(self, tree: Any) -> Iterator[_Refusal]:
        """What in a tree may not run, parents first, without what is below a refused clause."""
        from graphret.cypher.tree import children, span

        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if reason := self._reason(node):
                yield (reason, *span(node))
            if type(node).__name__ in _NODES:
                waiting.extend(reversed(list(children(node))))

    def _reason(self, node: Any) -> str:
        kind = type(node).__name__
        if kind not in _NODES:
            return f"{kind} is not among what may run"
        if kind == "FunctionCall" and not self._calls(node.name.this):
            return f"{node.name.this} is not among the functions that may run"
        if kind == "CallProcedure" and not self._runs(node.name):
            return f"the procedure {node.name} is not among those that may run"
        if kind == "CallSubquery" and not self._neo4j:
            return "CALL { } may not run"
        return ""
