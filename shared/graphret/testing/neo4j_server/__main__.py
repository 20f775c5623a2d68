"""``python -m graphret.testing.neo4j_server start HOME``, ``stop HOME`` or ``fetch``."""

from __future__ import annotations

import argparse
import sys

from graphret.testing.neo4j_server import CannotStart, Neo4jServer, fetch


def main() -> None:
    """Start or stop the server with its data in a folder, or only fetch what it is made of."""
    parser = argparse.ArgumentParser(prog="python -m graphret.testing.neo4j_server", description=main.__doc__)
    parser.add_argument("action", choices=("start", "stop", "fetch"))
    parser.add_argument("home", nargs="?", default=".neo4j", help="its data folder")
    given = parser.parse_args()
    server = Neo4jServer(given.home)
    actions = {"start": lambda: print(server.start().uri), "stop": server.stop, "fetch": fetch}
    try:
        actions[given.action]()
    except CannotStart as error:
        sys.exit(f"no Neo4j: {error}")


if __name__ == "__main__":
    main()
