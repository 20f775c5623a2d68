"""LlamaIndex filters mean in graphret what they mean in LlamaIndex's own store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from graphret.errors import InvalidInput
from graphret.types import Node
from llama_index_graphret import from_llama_node, to_where

ORDER = [FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE]
LISTS = [FilterOperator.IN, FilterOperator.NIN]


NUMBER, WORD = st.integers(0, 3), st.sampled_from(["a", "b", "ab", ""])
EQUAL = [FilterOperator.EQ, FilterOperator.NE]


def leaf(key: str, value: st.SearchStrategy[Any], operators: list[FilterOperator]) -> st.SearchStrategy[MetadataFilter]:
    return st.builds(MetadataFilter, key=st.just(key), value=value, operator=st.sampled_from(operators))


#: Filters whose values fit the kind of their key: ``n`` holds numbers, ``s`` strings, ``l`` lists of strings.
LEAVES = st.one_of(
    leaf("n", NUMBER, EQUAL + ORDER),
    leaf("n", st.lists(NUMBER, max_size=2), LISTS),
    leaf("s", WORD, [*EQUAL, *ORDER, FilterOperator.TEXT_MATCH, FilterOperator.CONTAINS]),
    leaf("l", WORD, [FilterOperator.CONTAINS]),
    leaf("l", st.lists(WORD, min_size=1, max_size=2), [FilterOperator.ANY, FilterOperator.ALL]),
    *(leaf(key, st.none(), [FilterOperator.IS_EMPTY]) for key in "nsl"),
)

properties = st.fixed_dictionaries(
    {},
    optional={"n": NUMBER, "s": WORD, "l": st.lists(st.sampled_from(["a", "b"]), max_size=2)},
)


@settings(max_examples=60)
@given(st.lists(LEAVES, min_size=1, max_size=3), st.sampled_from(list(FilterCondition)), properties)
def test_filters_match_as_they_do_in_llama_index(
    filters: list[MetadataFilter], condition: FilterCondition, given_properties: dict[str, Any]
) -> None:
    both = MetadataFilters(filters=filters, condition=condition)
    expected = build_metadata_filter_fn(lambda _: given_properties, both)("x")
    where = to_where(both)
    assert where is not None
    assert where.matches(Node("x", properties=given_properties)) is expected


def test_an_operator_without_counterpart_is_refused_by_name() -> None:
    one = MetadataFilter(key="title", value="x", operator=FilterOperator.TEXT_MATCH_INSENSITIVE)
    with pytest.raises(InvalidInput, match=r"text_match_insensitive.*title"):
        to_where(MetadataFilters(filters=[one]))


@pytest.mark.parametrize("key", ["id", "name", "text", "label", "title"])
def test_a_key_is_one_of_the_metadata_whatever_it_is_called(key: str) -> None:
    node = from_llama_node(TextNode(id_="a", text="b", metadata={"title": "c", "name": "d"} | {key: "mine"}))
    filters = MetadataFilters(filters=[MetadataFilter(key=key, value="mine")])
    where = to_where(filters)
    assert where is not None
    assert where.matches(node)
    bare = from_llama_node(TextNode(id_="mine", text="mine"))
    assert not where.matches(bare)
