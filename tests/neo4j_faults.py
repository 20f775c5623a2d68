"""What misbehaves between a driver and its server: a proxy that cuts, a mute server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Any


class _Server(socketserver.ThreadingTCPServer):
    """Accepts connections on a free port of the loopback address, in threads."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.uri = f"bolt://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError):
            self.serve(request)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError


class CuttingProxy(_Server):
    """Passes on `budget` bytes to a server, then cuts every connection."""

    def __init__(self, uri: str) -> None:
        self.target = ("127.0.0.1", int(uri.rpartition(":")[2]))
        self.budget: int | None = None
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        with socket.create_connection(self.target) as server:
            threading.Thread(
                target=self._back, args=(server, client), daemon=True
            ).start()
            while data := client.recv(65_536):
                if self.budget is not None:
                    self.budget -= len(data)
                    if self.budget < 0:
                        server.sendall(data[: len(data) // 2])
                        break
                server.sendall(data)
            for end in (server, client):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                client.sendall(data)


class SilentServer(_Server):
    """Takes every connection, and says nothing until it is closed."""

    def serve(self, client: socket.socket) -> None:
        while client.recv(65_536):
            pass
