"""Running the command in this process, as `graphret.cli.main` does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.testing
from typer.testing import CliRunner

from graphret.cli.app import app

# A runner reads the signatures of all commands anew for each command line, which takes
# longer than most of them.
typer.testing._get_command = cache(typer.testing._get_command)

CORPUS = [
    {
        "id": "ann",
        "title": "Ann Ames",
        "text": "Ann Ames is a film director. She was born in Ohio in 1950.",
    },
    {
        "id": "bob",
        "title": "Bob Bale",
        "text": "Bob Bale wrote plays in Kent.",
        "metadata": {"lang": "en", "year": 1999},
    },
    {"id": "cafe", "title": "Café Ünïcode", "text": "كاتب 作家 e\u0301 🎬 <b>bold</b>"},
    {
        "id": "films",
        "title": "Films of 1999",
        "section": "List",
        "header": ["Film", "Director"],
        "rows": [["Dawn", "Ann Ames"], ["Dusk", "Bob Bale"], ["Noon", "Nobody"]],
    },
]


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)


def graphret(*arguments: object, charset: str = "utf-8") -> Ran:
    """Run a command line whose output goes to where the encoding is `charset`."""
    result = CliRunner(charset=charset).invoke(
        app, [str(one) for one in arguments], prog_name="graphret"
    )
    return Ran(result.exit_code, result.stdout, result.stderr)


def write_corpus(folder: Path, records: list[dict[str, Any]] | None = None) -> Path:
    """Write records as JSON Lines and return the file."""
    path = folder / "corpus.jsonl"
    lines = [json.dumps(record, ensure_ascii=False) for record in records or CORPUS]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def built(folder: Path, records: list[dict[str, Any]] | None = None) -> Path:
    """Build a graph without an encoder and return its folder."""
    out = folder / "graph"
    ran = graphret(
        "build", write_corpus(folder, records), "--out", out, "--encoder", "none"
    )
    assert ran.code == 0, ran.err
    return out


def refused(code: int, *arguments: object) -> str:
    """Run a command that fails, and return its one line."""
    ran = graphret(*arguments)
    assert (ran.code, ran.out) == (code, ""), ran
    lines = ran.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("graphret: ")
    return lines[0]
