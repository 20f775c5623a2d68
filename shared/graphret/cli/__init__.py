"""The ``graphret`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit; `graphret.cli.errors` has the exit codes."""
    try:
        from graphret.cli.app import app

        app(prog_name="graphret")
    except KeyboardInterrupt:
        sys.exit(130)
