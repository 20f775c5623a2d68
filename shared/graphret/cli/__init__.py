"""The ``graphret`` command."""

import gc

# Nearly all that a build makes stays: looking for cycles in it so often would take a
# tenth of its time.
_NEW_OBJECTS = 20_000


def main() -> None:
    """Run the command line and exit with a code of `graphret.cli.errors`."""
    from graphret.cli.app import app

    gc.set_threshold(_NEW_OBJECTS)
    app(prog_name="graphret")
