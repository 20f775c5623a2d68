"""Ask a service over HTTP: `graphret serve` in one process, any client in another."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

from graphret import SageGraph, read

graph = SageGraph.build(read(Path(__file__).parent / "handbook"), encoder=None)
graph.save("handbook.sage")
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
command = ["serve", "--graph", "handbook.sage", "--port", str(port)]
server = subprocess.Popen([sys.executable, "-m", "graphret.cli", *command])


def ask(route: str, **question: Any) -> Any:
    body = json.dumps(question).encode() if question else None
    headers = {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/{route}"
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


try:
    while server.poll() is None:
        try:
            print("health:", ask("health"))
            break
        except URLError:  # it is not listening yet
            time.sleep(0.1)
    answer = ask("retrieve", query="backups of the database of Checkout", k=2)
    for hit in answer["hits"]:
        print(hit["id"], [evidence["kind"] for evidence in hit["evidence"]])
finally:
    server.terminate()
    server.wait()
