"""The ``graphret`` command."""


def main() -> None:
    """Run the command line and exit with a code of `graphret.cli.errors`."""
    from graphret.cli.app import app

    app(prog_name="graphret")
