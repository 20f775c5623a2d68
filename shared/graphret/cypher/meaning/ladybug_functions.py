"""The functions of Ladybug 0.22: how many arguments, of what kinds, and what comes back.

Taken from its ``CALL show_functions()``, and from its verdict on each function with columns and literals of each kind
in each place. It casts what has a text, so that most take any value that is no node, relationship or path. Functions
of any number of arguments, of lambdas and of types that no literal has are not among them.
"""

from __future__ import annotations

from graphret.cypher.meaning.functions import Function, table

# As in `functions`; a number is of any of its types, for Ladybug makes one of another.
_TABLE = """
abs num: any
acos num: num
array_append list any: [any]
array_cat list list: [any]
array_concat list list: [any]
array_contains list any: bool
array_extract value num: str
array_has list any: bool
array_indexof list any: num
array_position list any: num
array_prepend list any: [any]
array_push_back list any: [any]
array_push_front list any: [any]
array_slice value num num: any
asin num: num
atan num: num
atan2 num num: num
bitshift_left num num: num
bitshift_right num num: num
bitwise_and num num: num
bitwise_or num num: num
bitwise_xor num num: num
blob value: any
cardinality value: num
cbrt num: num
ceil num: any
ceiling num: any
century any: num
contains value value: bool
cos num: num
cot num: num
count_if any: num
current_date: any
current_timestamp: any
date value: any
date_part value any: num
date_trunc value any: any
datepart value any: num
datetrunc value any: any
dayname any: str
degrees num: num
duration value: any
element_at any any: [any]
encode value: any
end_node rel: any
ends_with value value: bool
epoch_ms num: any
floor num: any
gen_random_uuid: any
id entity: internal
ifnull any any: any
initcap value: str
interval value: any
is_acyclic path: bool
is_trail path: bool
keys entity: any
label entity: str
labels entity: str
last_day any: any
lcase value: str
left value num: str
length path: num
levenshtein value value: num
list_any_value list: any
list_append list any: [any]
list_cat list list: [any]
list_concat list list: [any]
list_contains list any: bool
list_distinct list: [any]
list_element value num: any
list_extract value num: any
list_has list any: bool
list_has_all list list: bool
list_has_any list list: bool
list_indexof list any: num
list_max list: any
list_min list: any
list_position list any: num
list_prepend list any: [any]
list_product list: num
list_reverse list: any
list_reverse_sort list / value: [any]
list_slice value num num: any
list_sort list / value value: [any]
list_sum list: num
list_to_string value list: str
list_unique list: num
ln num: num
log num: num
log10 num: num
log2 num: num
lower value: str
lpad value num value: str
ltrim value: str
make_date num num num: any
map_extract any any: [any]
map_keys any: [any]
map_values any: [any]
md5 value: str
monthname any: str
nodes path: [node]
nullif any any: any
pi: num
pow num num: num
prefix value value: bool
properties any / any: any
radians num: num
random: num
range num num / num: [any]
regexp_extract value value / num: str
regexp_extract_all value value / num: [any]
regexp_full_match value value: bool
regexp_matches value value: bool
regexp_replace value value value / any: str
regexp_split_to_array value value: [any]
relationships path: [rel]
rels path: [rel]
repeat value num: str
replace value value value: str
reverse value: str
right value num: str
round num num: num
rpad value num value: str
rtrim value: str
sha256 value: str
sign num: num
sin num: num
size value: num
split_part value value num: str
sqrt num: num
start_node rel: any
starts_with value value: bool
string any: str
string_split value value: [any]
string_to_array value value: [any]
struct_extract any str: any
substr value num num: str
substring value num num: str
suffix value value: bool
tan num: num
timestamp value: any
to_blob value: any
to_bool value: bool
to_date value: any
to_days num: any
to_double value: num
to_epoch_ms any: num
to_float value: num
to_hours num: any
to_int128 value: num
to_int16 value: num
to_int32 value: num
to_int64 value: num
to_int8 value: num
to_interval value: any
to_microseconds num: any
to_milliseconds num: any
to_minutes num: any
to_months num: any
to_seconds num: any
to_string any: str
to_timestamp num: any
to_uint128 value: num
to_uint16 value: num
to_uint32 value: num
to_uint64 value: num
to_uint8 value: num
to_uuid value: any
to_years num: any
tolower value: str
toupper value: str
trim value: str
typeof any: str
ucase value: str
upper value: str
uuid value: any
"""
_AGGREGATES = """
avg num: num
collect any: =[]
count any: num
max plain: any
min plain: any
sum num: num
"""

#: By their names in lower case.
LADYBUG_FUNCTIONS: dict[str, Function] = table(_TABLE, _AGGREGATES)
