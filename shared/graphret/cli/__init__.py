"""The ``graphret`` command."""


def main() -> None:
    """Run the command line and exit; `graphret.cli.errors` has the exit codes."""
    from graphret.cli.app import app

    app(prog_name="graphret")
