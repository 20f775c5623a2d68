"""A writer writes only candidates, and ranks them as scoring each alone does; a chat
model chooses by number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from tiny_model import tiny_model

from graphret.errors import InvalidInput, MissingDependency, ModelError, StorageError
from graphret.graphraft import Candidate
from graphret.graphraft.trie import GroundedLogits, Trie
from graphret.graphraft.writer import ChatWriter, Writer, prompt_of
from graphret.llm import OpenAIChat
from graphret.llm.causal import answer_tokens, chat_tokens
from graphret.planning.patterns import bare_pattern
from graphret.testing.openai_server import OpenAIServer, json_text

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.xdist_group("torch")

NAMES = [
    "ibuprofen",
    "asthma",
    'the "x"',
    "a\\b",
    "line\nbreak",
    "{name: }) RETURN",
    "<|end|>",
    "a",
    "ab",
    "x" * 300,
]
ENDS = ["", "-[:TREATS]-(T:Disease)"]  # the first begins the second
TEXTS = [
    f"(a1:Drug {{name: {json.dumps(name)}}})-[:TARGET]-(x1_1:Gene){end}"
    for name in NAMES
    for end in ENDS
]


def candidates(
    texts: Sequence[str], sizes: Sequence[int] = (1,) * 100
) -> list[Candidate]:
    return [Candidate((), {}, *one) for one in zip(texts, sizes, strict=False)]


@pytest.fixture(scope="module")
def tiny() -> tuple[Any, Any]:
    return tiny_model()


def alone(
    model: Any, tokenizer: Any, question: str, texts: Sequence[str], power: float = 0.0
) -> list[float]:
    """The log-probability of each, where the model reads it whole."""
    prompt, scores = chat_tokens(tokenizer, prompt_of(question)), []
    for sequence in answer_tokens(tokenizer, [bare_pattern(one) for one in texts]):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *sequence]])).logits[
                0, len(prompt) - 1 : -1
            ]
        total = float(logits.log_softmax(-1)[range(len(sequence)), sequence].sum())
        scores.append(total / len(sequence) ** power)
    return scores


def test_ranking_is_that_of_scoring_each_alone(tiny: tuple[Any, Any]) -> None:
    writer, texts = Writer(*tiny), [*TEXTS, TEXTS[0]]  # two nodes of one name
    scores = alone(*tiny, "Which gene?", texts)
    ranked = writer.rank("Which gene?", candidates(texts), len(texts))
    in_order = sorted(scores, reverse=True)
    assert sorted(place for place, _ in ranked) == [*range(len(texts))]
    assert [scores[place] for place, _ in ranked] == pytest.approx(in_order, abs=1e-4)
    shares = [math.exp(scores[place] - max(scores)) for place, _ in ranked]
    assert [p for _, p in ranked] == pytest.approx(
        [share / sum(shares) for share in shares], rel=1e-3
    )
    assert sum(p for _, p in ranked) == pytest.approx(1)
    assert [place for place, _ in writer.rank("Which gene?", candidates(texts), 3)] == [
        place for place, _ in ranked[:3]
    ]


def test_a_model_that_would_mix_up_branches_is_refused() -> None:
    model, tokenizer = tiny_model()
    forward = model.forward
    model.forward = lambda *candidate_texts, attention_mask=None, **more: forward(
        *candidate_texts, **more
    )  # as flash attention does
    with pytest.raises(ModelError, match="sdpa"):
        Writer(model, tokenizer).rank("Which?", candidates(TEXTS), 3)


def test_length_size_and_another_ranking_count_by_option(tiny: tuple[Any, Any]) -> None:
    sizes, scores = (
        [10 ** (place % 5) for place in range(len(TEXTS))],
        alone(*tiny, "Which?", TEXTS, 0.7),
    )
    prior = [-0.5 * (place % 3) for place in range(len(TEXTS))]
    expected = [
        score - 0.5 * math.log10(size + 1) + 3 * other
        for score, size, other in zip(scores, sizes, prior, strict=True)
    ]
    writer = Writer(*tiny, prior_weight=3, size_weight=0.5, length_power=0.7)
    ranked = writer.rank("Which?", candidates(TEXTS, sizes), 7, prior)
    assert [place for place, _ in ranked] == sorted(
        range(len(TEXTS)), key=lambda i: -expected[i]
    )[:7]
    assert ranked[1][1] / ranked[0][1] == pytest.approx(
        math.exp(expected[ranked[1][0]] - expected[ranked[0][0]]), rel=1e-3
    )


@pytest.mark.parametrize(
    ("template", "end"),
    [(None, None), (None, "<|end|>")],
    ids=["no end", "no template"],
)
def test_prompts_and_queries_are_read_apart_and_always_end(
    template: str | None, end: str | None
) -> None:
    model, tokenizer = tiny_model(template=template, end=end)
    prompt, [query] = (
        chat_tokens(tokenizer, prompt_of("Who")),
        answer_tokens(tokenizer, ["\n"]),
    )
    assert tokenizer.encode(f"{tokenizer.decode(prompt)}\n") != [
        *prompt,
        *query[:-1],
    ]  # which would merge
    assert query[-1] not in query[:-1]
    writer = Writer(model, tokenizer)
    assert len(writer.rank("Who", candidates(TEXTS), 5)) == 5
    assert {*writer.write(["Who"], [TEXTS])[0]} <= {*TEXTS}


@pytest.mark.parametrize("beams", [1, 3])
def test_what_is_written_is_a_candidate_of_its_own_question(
    tiny: tuple[Any, Any], beams: int
) -> None:
    writer = Writer(*tiny)
    candidate_texts = [TEXTS, TEXTS[:1], [], TEXTS[4:9]]
    written = writer.write(
        ["Which gene does it target?", "Who?", "Nothing?", "What?"],
        candidate_texts,
        beams=beams,
    )
    assert [len(some) for some in written] == [beams, 1, 0, beams]
    assert all(
        {*some} <= {*texts}
        for some, texts in zip(written, candidate_texts, strict=True)
    )
    assert written[3] == writer.write(["What?"], [TEXTS[4:9]], beams=beams)[0]
    assert not {*writer.write(["Who?"], beams=beams, tokens=8)[0]} & {*TEXTS}


def test_one_candidate_needs_no_model_and_none_is_no_error() -> None:
    writer = Writer(None, None)
    assert (writer.rank("?", [], 3), writer.rank("?", candidates(TEXTS[:1]), 3)) == (
        [],
        [(0, 1.0)],
    )


def test_nan_is_an_error_in_ranking_and_the_least_in_writing(
    tiny: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trie = Trie([[5, 9], [6, 9], [6, 7, 9]])
    mask = GroundedLogits([trie], 1, 9)
    scores = torch.zeros(3, 12)
    scores[0, 5], scores[1] = math.nan, math.nan
    first = mask(torch.tensor([[1]] * 3), scores)
    assert [row.tolist()[5:7] for row in first] == [[-1e4, 0], [-1e4, -1e4], [0, 0]]
    second = mask(
        torch.tensor([[1, 6], [1, 5], [1, 11]]), scores
    )  # beams changed places, and one is no candidate
    assert [row.isfinite().nonzero().flatten().tolist() for row in second] == [
        [7, 9],
        [9],
        [9],
    ]
    model, tokenizer = tiny_model()
    model.lm_head.weight.data[:] = math.nan
    with pytest.raises(ModelError, match="NaN"):
        Writer(model, tokenizer).rank("?", candidates(TEXTS), 3)


def test_queries_are_written_without_the_names_of_variables() -> None:
    meets = '(a1:A {name: "(x:1"})-[:R]->(T:B)<-[:S]-(x2_1)-[:Q]-(a2:`C d` {name: "b"})'
    assert (
        bare_pattern(meets)
        == '(:A {name: "(x:1"})-[:R]->(T:B)<-[:S]-(x2_1)-[:Q]-(:`C d` {name: "b"})'
    )
    query = (
        'MATCH (x1:A {name: "a"})-[r1:R]-(x2:B)-[r2:S]-(x3:C) RETURN x3.name AS name'
    )
    assert (
        bare_pattern(query)
        == '(:A {name: "a"})-[:R]-(:B)-[:S]-(T:C)'
        == bare_pattern('(a1:A {name: "a"})-[:R]-(x1_1:B)-[:S]-(T:C)')
    )


def test_what_cannot_be_loaded_is_said(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        Writer.load(tmp_path / "nowhere")
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(StorageError, match="training did not end"):
        Writer.load(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingDependency, match="graphret\\[train\\]"):
        Writer.load("a-model")


def test_a_chat_model_chooses_by_number() -> None:
    with OpenAIServer(
        [*[json_text({"best": [3, 1, 3]})] * 2, *[json_text({"best": [99]})] * 2]
    ) as server:
        model = OpenAIChat("m", server.base_url, api_key="none", max_retries=0)
        best = [(2, pytest.approx(2 / 3)), (0, pytest.approx(1 / 3))]
        assert ChatWriter(model).rank("Which?", candidates(TEXTS), 5) == best
        likelier_later = [float(place) for place in range(len(TEXTS))]
        again = ChatWriter(model).rank("Which?", candidates(TEXTS), 5, likelier_later)
        assert [place for place, _ in again] == [len(TEXTS) - 3, len(TEXTS) - 1]
        chosen = server.requests[0].body["response_format"]["json_schema"]["schema"][
            "properties"
        ]["best"]
        assert chosen["items"]["enum"] == [*range(1, len(TEXTS) + 1)]
        with pytest.raises(ModelError, match="no usable JSON"):
            ChatWriter(model).rank("Which?", candidates(TEXTS), 5)
    with pytest.raises(InvalidInput, match="ChatModel"):
        ChatWriter("gpt")  # type: ignore[arg-type]
