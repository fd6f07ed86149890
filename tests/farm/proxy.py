"""A TCP relay that can be cut: the network between one process and one server, in a test's hand."""

from __future__ import annotations

import contextlib
import select
import socket
import threading


class Proxy:
    """Listens on a free loopback port and relays to `port`; while `cut`, connections break and none is taken."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cut = False
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.1)
        self.port: int = self.listener.getsockname()[1]
        self.halt = threading.Event()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.halt.set()
        self.thread.join(5)
        self.listener.close()
        self._break()

    def set_cut(self, cut: bool) -> None:
        self.cut = cut
        if cut:
            self._break()

    def _break(self) -> None:
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def _accept(self) -> None:
        while not self.halt.is_set():
            try:
                near, _ = self.listener.accept()
            except TimeoutError:
                continue
            if self.cut:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.target))
            self.pairs.append((near, far))
            threading.Thread(target=self._relay, args=(near, far), daemon=True).start()

    def _relay(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError), near, far:
            while True:
                readable, _, _ = select.select([near, far], [], [], 1.0)
                for end in readable:
                    data = end.recv(65536)
                    if not data:
                        return
                    (far if end is near else near).sendall(data)
                if self.halt.is_set():
                    return
