"""How much of a request's head is kept, and for how long: the server's parser bounds neither.

Web and gateway are started with `uvicorn --http console.heads:Bounded`. Bodies are bounded by whoever reads them.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024  # eight times what nginx allows: keys and traces in headers are long, a bomb is endless
HEAD_S = 20.0  # from the connection, or the first byte of a later request, to the head's end
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 29\r\nconnection: close\r\n\r\nrequest head is over 64 KiB.\n"
)


class Bounded(HttpToolsProtocol):
    """A head over HEAD_BYTES is answered 431 and the connection closed; one not whole after HEAD_S is closed."""

    _open = True  # a head is awaited, or not whole yet
    _bytes = 0  # of it so far, without the read in which it began: that one may hold the end of another
    _late: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if not self._open or self.parser is None:
            return
        if self._bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._open, self._bytes = True, 0
        if self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._open = False
        self._forget()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
