"""The kinds of findings: what `Finding.kind` may be."""

from __future__ import annotations

#: Errors of the text and its meaning, whatever the schema.
SYNTAX = "syntax"
UNDEFINED_VARIABLE = "undefined-variable"
DUPLICATE_VARIABLE = "duplicate-variable"
TYPE_MISMATCH = "type-mismatch"
MISPLACED_AGGREGATION = "misplaced-aggregation"
IMPLICIT_GROUPING = "implicit-grouping"
OUT_OF_SCOPE = "out-of-scope"
UNKNOWN_FUNCTION = "unknown-function"
WRONG_ARGUMENTS = "wrong-arguments"
MISPLACED_PATTERN = "misplaced-pattern"
INVALID_PATTERN = "invalid-pattern"
INVALID_PROJECTION = "invalid-projection"
INVALID_QUERY = "invalid-query"
INVALID_VALUE = "invalid-value"

#: Errors against the schema.
UNKNOWN_LABEL = "unknown-label"
UNKNOWN_RELATION = "unknown-relation"
UNKNOWN_PROPERTY = "unknown-property"
MISPLACED_PROPERTY = "misplaced-property"
WRONG_DIRECTION = "wrong-direction"
WRONG_ENDS = "wrong-ends"

#: Errors of what may run.
NOT_ALLOWED = "not-allowed"

#: The query is longer than what the guard reads.
TOO_LONG = "too-long"

#: The query may take any time.
TOO_COSTLY = "too-costly"
UNBOUNDED_PATH = "unbounded-path"

#: Warnings.
NO_LIMIT = "no-limit"
CARTESIAN_PRODUCT = "cartesian-product"

#: The query does not parse, or the server would refuse its meaning.
MEANING = (
    frozenset(
        (SYNTAX, UNDEFINED_VARIABLE, DUPLICATE_VARIABLE, OUT_OF_SCOPE, TYPE_MISMATCH)
    )
    | {
        MISPLACED_AGGREGATION,
        IMPLICIT_GROUPING,
        UNKNOWN_FUNCTION,
        WRONG_ARGUMENTS,
        MISPLACED_PATTERN,
    }
    | {INVALID_PATTERN, INVALID_PROJECTION, INVALID_QUERY, INVALID_VALUE}
)
#: A name that the schema does not have at all.
UNKNOWN_NAMES = frozenset((UNKNOWN_LABEL, UNKNOWN_RELATION, UNKNOWN_PROPERTY))
