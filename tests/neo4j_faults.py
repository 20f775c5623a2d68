"""What lies between a driver and its server, and misbehaves: a proxy that cuts, and servers that know too little."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Any, Self


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
        with contextlib.suppress(OSError, struct.error), client:
            self.serve(client)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError


class CuttingProxy(_Listener):
    """Passes everything on to a server until `budget` bytes were sent to it, then cuts every connection.

    What the server was sent is kept in `sent`.
    """

    def __init__(self, uri: str) -> None:
        self.target = ("127.0.0.1", int(uri.rpartition(":")[2]))
        self.budget: int | None = None
        self.cuts = 0
        self.sent = bytearray()
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        with socket.create_connection(self.target) as server:
            threading.Thread(target=self._back, args=(server, client), daemon=True).start()
            while data := client.recv(65_536):
                self.sent += data
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


class OldServer(_Listener):
    """Speaks as much of Bolt as an older Neo4j needs to say its name."""

    def __init__(self, agent: str, bolt: tuple[int, int] = (4, 4)) -> None:
        self.agent = agent
        self.bolt = bolt
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        client.recv(20, socket.MSG_WAITALL)
        client.sendall(bytes([0, 0, self.bolt[1], self.bolt[0]]))
        while (message := self._message(client)) is not None:
            if message[1] == 0x02:  # GOODBYE
                return
            about = {"server": self.agent, "connection_id": "bolt-1"} if message[1] == 0x01 else {}
            body = b"\xb1\x70" + _packed(about)
            client.sendall(struct.pack(">H", len(body)) + body + b"\0\0")

    def _message(self, client: socket.socket) -> bytes | None:
        body = b""
        while True:
            header = client.recv(2, socket.MSG_WAITALL)
            if len(header) < 2:
                return None
            (size,) = struct.unpack(">H", header)
            if not size and body:
                return body
            body += client.recv(size, socket.MSG_WAITALL) if size else b""


def _packed(values: dict[str, Any]) -> bytes:
    def text(value: str) -> bytes:
        data = value.encode()
        return (bytes([0x80 + len(data)]) if len(data) < 16 else b"\xd0" + bytes([len(data)])) + data

    return bytes([0xA0 + len(values)]) + b"".join(text(key) + text(value) for key, value in values.items())
