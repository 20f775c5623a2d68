"""What may run, by dialect: words that begin or join clauses, functions and procedures that only read the graph."""

from __future__ import annotations

from dataclasses import dataclass

#: Functions of Neo4j 5.26 (``SHOW BUILT IN FUNCTIONS``) with no effect and nothing of the server in their result:
#: without ``file``, ``linenumber`` and ``graph.*``.
_NEO4J_FUNCTIONS = """
abs acos all allshortestpaths any asin atan atan2 avg btrim ceil char_length character_length coalesce collect cos cot
count date date.realtime date.statement date.transaction date.truncate datetime datetime.fromepoch
datetime.fromepochmillis datetime.realtime datetime.statement datetime.transaction datetime.truncate degrees duration
duration.between duration.indays duration.inmonths duration.inseconds e elementid endnode exists exp floor haversin
head id isempty isnan keys labels last left length localdatetime localdatetime.realtime localdatetime.statement
localdatetime.transaction localdatetime.truncate localtime localtime.realtime localtime.statement
localtime.transaction localtime.truncate log log10 lower ltrim max min nodes none normalize nullif percentilecont
percentiledisc pi point point.distance point.withinbbox properties radians rand randomuuid range reduce relationships
replace reverse right round rtrim shortestpath sign sin single size split sqrt startnode stdev stdevp substring sum
tail tan time time.realtime time.statement time.transaction time.truncate timestamp toboolean tobooleanlist
tobooleanornull tofloat tofloatlist tofloatornull tointeger tointegerlist tointegerornull tolower tostring
tostringlist tostringornull toupper trim type upper valuetype vector.similarity.cosine vector.similarity.euclidean
"""

#: Procedures of Neo4j 5.26 that read the graph or its schema and change nothing. Many others are of mode READ and yet
#: change the server's state: ``db.prepareForReplanning``, ``db.resampleIndex``, ``db.stats.*``.
_NEO4J_PROCEDURES = """
db.index.fulltext.queryNodes db.index.fulltext.queryRelationships db.index.vector.queryNodes
db.index.vector.queryRelationships db.labels db.propertyKeys db.relationshipTypes db.schema.nodeTypeProperties
db.schema.relTypeProperties db.schema.visualization
"""

#: Functions of ladybug 0.22 (``CALL show_functions()``), without ``nextval``, ``currval``, ``setseed`` and ``error``.
_LADYBUG_FUNCTIONS = """
abs acos all any array_append array_cat array_concat array_contains array_cosine_similarity array_cross_product
array_distance array_dot_product array_extract array_has array_indexof array_inner_product array_position
array_prepend array_push_back array_push_front array_slice array_squared_distance array_value asin atan atan2 avg
bitshift_left bitshift_right bitwise_and bitwise_or bitwise_xor blob cardinality cast cbrt ceil ceiling century
coalesce collect concat concat_ws constant_or_null contains cos cost cot count count_if current_date current_timestamp
date date_part date_trunc datepart datetrunc dayname decode degrees duration element_at encode end_node ends_with
epoch_ms even exists factorial floor gamma gen_random_uuid greatest hash histogram id ifnull initcap interval
is_acyclic is_trail keys label labels last_day lcase least left length levenshtein lgamma list_any_value list_append
list_cat list_concat list_contains list_creation list_distinct list_element list_extract list_filter list_has
list_has_all list_has_any list_indexof list_max list_min list_position list_prepend list_product list_reduce
list_reverse list_reverse_sort list_slice list_sort list_sum list_to_string list_transform list_unique ln log log10
log2 lower lpad ltrim make_date map map_extract map_keys map_values max md5 min monthname nodes none nullif
octet_length offset percentilecont percentiledisc pi pow prefix properties radians random range regexp_extract
regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array relationships rels repeat
replace reverse right round rpad rtrim sha256 sign sin single size split_part sqrt start_node starts_with string
string_split string_to_array struct_extract struct_pack substr substring suffix sum tan time_bucket timestamp to_blob
to_bool to_date to_days to_double to_epoch_ms to_float to_hours to_int128 to_int16 to_int32 to_int64 to_int8
to_interval to_microseconds to_milliseconds to_minutes to_months to_seconds to_string to_timestamp to_uint128
to_uint16 to_uint32 to_uint64 to_uint8 to_uuid to_years tolower toupper trim typeof ucase union_extract union_tag
union_value upper uuid
"""

_LADYBUG_PROCEDURES = "query_fts_index query_vector_index"

#: What each word of a type may be, as in ``x IS :: LOCAL TIME NOT NULL`` and ``cast(x AS INT64)``.
_NEO4J_TYPES = """
ANY ARRAY BOOL BOOLEAN DATE DATETIME DURATION EDGE FLOAT INT INTEGER LIST LOCAL MAP NODE NOTHING NULL PATH POINT
PROPERTY RELATIONSHIP SIGNED STRING TIME TIMESTAMP TIMEZONE VALUE VARCHAR VERTEX WITHOUT ZONE ZONED
"""
_LADYBUG_TYPES = """
ANY BLOB BOOL BOOLEAN DATE DECIMAL DOUBLE FLOAT INT INT128 INT16 INT32 INT64 INT8 INTERVAL MAP REAL SERIAL STRING
STRUCT TIMESTAMP TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_SEC TIMESTAMP_TZ UINT16 UINT32 UINT64 UINT8 UUID
"""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may run on a dialect.

    Parameters
    ----------
    clauses
        Words that begin a clause.
    functions
        In small letters: the servers do not tell letters apart in the names of their own functions.
    procedures
        As they are written on Neo4j; in small letters on ladybug.
    types
        Words of which the name of a type is made.
    subqueries
        Whether ``CALL { … }`` is part of the dialect.
    """

    clauses: frozenset[str]
    functions: frozenset[str]
    procedures: frozenset[str]
    types: frozenset[str]
    subqueries: bool


ALLOWED = {
    "neo4j": Allowed(
        frozenset(("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "FINISH", "CALL")),
        frozenset(_NEO4J_FUNCTIONS.split()),
        frozenset(_NEO4J_PROCEDURES.split()),
        frozenset(_NEO4J_TYPES.split()),
        subqueries=True,
    ),
    "ladybug": Allowed(
        frozenset(("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL")),
        frozenset(_LADYBUG_FUNCTIONS.split()),
        frozenset(_LADYBUG_PROCEDURES.split()),
        frozenset(_LADYBUG_TYPES.split()),
        subqueries=False,
    ),
}
