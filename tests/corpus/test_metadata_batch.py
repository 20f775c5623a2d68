"""The paper's fields, what metadata by a model take, and requests in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import graphret, refused, write_corpus

from graphret.corpus.llm_metadata import LLMMetadata
from graphret.corpus.metadata_batch import (
    WRITTEN,
    estimate_metadata,
    read_batch,
    write_batch,
)
from graphret.corpus.metadata_prompts import PAPER_PROMPT
from graphret.errors import InvalidInput
from graphret.llm import OpenAIChat
from graphret.llm.chat import Usage
from graphret.schema.text import estimate_tokens
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    json_text,
    text,
)
from graphret.types import Node

DOCUMENT = Node("d", ("Document",), "Ulm", "Einstein was born in Ulm in 1879.")
TABLE = Node(
    "t",
    ("Table",),
    "1911 season",
    "1911 season\nDate | Opponent\nOctober 7 | Ohio Northern",
    {"table_header": ["Date", "Opponent"]},
)
NODES = [DOCUMENT, TABLE, Node("again", ("Document",), "Ulm", DOCUMENT.text)]
ABOUT_DOCUMENT = {
    "entities": {
        "Albert Einstein": {"details": ["Born in Ulm", "A\nphysicist"]},
        "Ulm": {},
        "ulm": {"details": ["once more"]},
        "y" * 300: {"details": []},
    },
    "events": {"Birth of Einstein": {"date": 1879, "details": "In Ulm."}},
    "timeline": ["1879 - Birth of Einstein"],
    "topic": "Where Einstein was born",
    "invented": "a key of its own",
}
ABOUT_TABLE = {
    "table_title": "1911 season",
    "table_description": "The games of 1911.",
    "table_summary": "One game.",
    "col_desc": {"date": "Day of the game", "Score": "no such column"},
    "col_format": {"Date": "date (Month Day)"},
    "entities": {
        "Ohio Northern": {"type": "organization", "category": "named"},
        "team": {"type": "concept", "category": "non-named", "description": "A side"},
    },
}


def script(request: Request) -> Behaviour:
    about_table = "Describe the table" in request.messages[-1]["content"]
    return json_text(ABOUT_TABLE if about_table else ABOUT_DOCUMENT)


def extractor(url: str = "http://localhost:1/v1", **options: Any) -> LLMMetadata:
    return LLMMetadata(OpenAIChat("tiny", url, max_retries=0), **options)


def test_the_papers_fields_become_properties_and_each_request_has_one_example() -> None:
    with OpenAIServer(script) as server:
        llm = extractor(server.base_url, prompt=PAPER_PROMPT)
        document, table, _ = llm.extract(NODES)
    assert document == {
        "topic": "Where Einstein was born",
        "events": ["1879: Birth of Einstein. In Ulm."],
        "timeline": ["1879 - Birth of Einstein"],
        "entities": ["Albert Einstein", "Ulm", "y" * 199 + "…"],
        "entity_details": {"Albert Einstein": ["Born in Ulm", "A physicist"]},
    }
    assert table["title"] == "1911 season"
    assert (table["topic"], table["description"]) == ("The games of 1911.",) * 2
    assert table["column_descriptions"] == {"Date": "Day of the game"}
    assert table["column_formats"] == {"Date": "date (Month Day)"}
    assert table["entities"] == ["Ohio Northern", "team"]
    assert table["entity_details"]["team"] == {
        "type": "concept",
        "category": "non-named",
        "description": "A side",
    }
    for request in server.requests:
        roles = [message["role"] for message in request.messages]
        assert roles == ["system", "user", "assistant", "user"]
        example = json.loads(request.messages[2]["content"])
        assert set(example) <= {*ABOUT_DOCUMENT, *ABOUT_TABLE}
    assert {*llm.report.by_kind} == {"passage", "table"}
    assert sum(llm.report.by_kind.values(), Usage()) == llm.report.usage


def test_an_estimate_counts_what_the_model_would_read(tmp_path: Path) -> None:
    with OpenAIServer(script) as server:
        llm = extractor(server.base_url, prompt=PAPER_PROMPT, cache=tmp_path)
        estimate = estimate_metadata(llm, NODES)
        assert not server.requests
        llm.extract(NODES)
        sent = {
            "table"
            if "Describe the table" in request.messages[-1]["content"]
            else "passage": sum(
                estimate_tokens(message["content"]) for message in request.messages
            )
            for request in server.requests
        }
    assert estimate.asked == {"passage": 1, "table": 1}
    for kind, usage in estimate.tokens.items():
        assert usage == Usage(sent[kind], WRITTEN[kind])
    again = estimate_metadata(llm, NODES)
    assert (again.answered, again.asked, again.total) == (2, {}, Usage())


def test_a_batch_is_what_would_be_sent_and_its_replies_stand_in_for_asking(
    tmp_path: Path,
) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    with OpenAIServer(script) as server:
        extractor(server.base_url).extract([DOCUMENT])
        llm = extractor(server.base_url, cache=tmp_path / "cache")
        assert write_batch(requests, llm, NODES) == 2
        written = [json.loads(line) for line in requests.read_text().splitlines()]
        assert written[0]["body"] == server.requests[0].body
        assert {entry["url"] for entry in written} == {"/v1/chat/completions"}
        answers = [{"topic": "Ulm"}, {"topic": "Games", "entities": ["Ohio Northern"]}]
        lines = [
            {
                "custom_id": request["custom_id"],
                "response": {
                    "status_code": 200,
                    "body": {
                        "choices": [{"message": {"content": json.dumps(answer)}}],
                        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
                    },
                },
                "error": None,
            }
            for request, answer in zip(written, answers, strict=True)
        ]
        replies.write_text("\n".join(map(json.dumps, lines)))
        report = read_batch(replies, llm)
        assert (report.kept, report.failed, report.usage) == (2, 0, Usage(14, 4))
        n_requests = len(server.requests)
        metadata = llm.extract(NODES)
        assert len(server.requests) == n_requests
    assert [entry["topic"] for entry in metadata] == ["Ulm", "Games", "Ulm"]
    assert write_batch(requests, llm, NODES) == 0


KEY = "0" * 64


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"response": {"status_code": 500, "body": {}}}, "no answer in it"),
        (
            {"response": {"body": {"choices": [{"message": {"content": None}}]}}},
            "empty",
        ),
        (
            {"response": {"body": {"choices": [{"message": {"content": "no JSON"}}]}}},
            "JSON",
        ),
    ],
)
def test_replies_that_cannot_be_used_are_told(
    reply: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"custom_id": KEY, **reply}) + "\n\n")
    report = read_batch(file, extractor(cache=tmp_path / "cache"))
    assert (report.kept, report.failed) == (0, 1)
    assert problem in report.first_failure
    assert "replies.jsonl, line 1" in report.first_failure
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("line", ['{"custom_id": "../../etc/passwd"}', "[]", "{", "3"])
def test_what_is_no_reply_is_refused(line: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(line)
    with pytest.raises(InvalidInput, match=r"line 1: expected .*custom_id"):
        read_batch(file, extractor(cache=tmp_path / "cache"))
    with pytest.raises(InvalidInput, match="cache"):
        read_batch(file, extractor())


def test_metadata_are_estimated_written_and_read_on_the_command_line(
    tmp_path: Path,
) -> None:
    corpus, cache = write_corpus(tmp_path), tmp_path / "cache"
    build = ["build", corpus, "--out", tmp_path / "graph", "--encoder", "none"]
    price = ["--price", "0.15,0.60"]
    with OpenAIServer(lambda request: text('{"topic": "asked"}')) as server:
        llm = ["--metadata", "llm", "--model", "m", "--base-url", server.base_url]
        llm += ["--llm-cache", cache]
        estimate = graphret(*build, *llm, "--estimate", *price, "--json").json
        assert estimate["asked"] == {"passage": 3, "table": 1}
        read, written = (
            sum(usage[name] for usage in estimate["tokens"].values())
            for name in ("input_tokens", "output_tokens")
        )
        assert written == 3 * WRITTEN["passage"] + WRITTEN["table"]
        cost = (0.15 * read + 0.60 * written) / 1e6
        assert estimate["cost"] == pytest.approx(cost, abs=1e-6)
        assert estimate["cost_batched"] == pytest.approx(cost / 2, abs=1e-6)
        requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
        ran = graphret(*build, *llm, "--batch-out", requests)
        assert "4 requests in" in ran.out
        assert not (tmp_path / "graph").exists()
        keys = [json.loads(line)["custom_id"] for line in requests.open()]
        content = {"message": {"content": '{"topic": "of a batch"}'}}
        body = {"response": {"body": {"choices": [content]}}}
        lines = [json.dumps({"custom_id": key, **body}) for key in keys[:3]]
        replies.write_text("\n".join([*lines, json.dumps({"custom_id": keys[3]})]))
        ran = graphret(*build, *llm, "--batch-in", replies, *price)
        assert ran.code == 0, ran.err
        assert "3 answers of" in ran.err
        assert "cannot be used, and are asked again: 1, first" in ran.err
        assert "questions to the model: 1, " in ran.out
        assert len(server.requests) == 1
    without = ["build", corpus, "--out", tmp_path / "other", "--encoder", "none"]
    assert "--estimate needs --metadata llm" in refused(2, *without, "--estimate")
