"""``python -m graphret.testing.neo4j_server``: start, stop or fetch a Neo4j."""

import argparse
import sys

from graphret.testing.neo4j_server import CannotStart, Neo4jServer, fetch

parser = argparse.ArgumentParser(prog="python -m graphret.testing.neo4j_server")
parser.add_argument("action", choices=("start", "stop", "fetch"))
parser.add_argument("home", nargs="?", default=".neo4j", help="its data folder")
options = parser.parse_args()
try:
    if options.action == "start":
        print(Neo4jServer(options.home).start().uri)
    elif options.action == "stop":
        Neo4jServer(options.home).stop()
    else:
        fetch()
except CannotStart as error:
    sys.exit(f"no Neo4j: {error}")
