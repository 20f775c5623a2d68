"""What lies between a driver and its server, and misbehaves: a proxy that cuts, and a server that says nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class _Listener:
    """Accepts connections on a free port of the loopback address, each served by a thread."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"bolt://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve_quietly, args=(client,), daemon=True).start()

    def _serve_quietly(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            self.serve(client)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError


class CuttingProxy(_Listener):
    """Passes everything on to a server until `budget` bytes were sent to it, then cuts every connection."""

    def __init__(self, uri: str) -> None:
        self.target = ("127.0.0.1", int(uri.rpartition(":")[2]))
        self.budget: int | None = None
        self.cuts = 0
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        with socket.create_connection(self.target) as server:
            threading.Thread(target=self._back, args=(server, client), daemon=True).start()
            while data := client.recv(65_536):
                if self.budget is not None:
                    self.budget -= len(data)
                    if self.budget < 0:
                        self.cuts += 1
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


class SilentServer(_Listener):
    """Takes every connection, and says nothing until it is closed."""

    def serve(self, client: socket.socket) -> None:
        while client.recv(65_536):
            pass
