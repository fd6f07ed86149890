"""Who may pass the door and where to: token, paths, replicas. No sockets here."""

from __future__ import annotations

import hmac
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

#: (method, path) that reach an engine. Its development endpoints, its metrics, `/invocations` and LoRA never do.
ALLOWED = frozenset(
    {
        (b"POST", b"/v1/chat/completions"),
        (b"POST", b"/v1/completions"),
        (b"POST", b"/v1/embeddings"),
        (b"POST", b"/tokenize"),
        (b"GET", b"/v1/models"),
        (b"GET", b"/health"),
    }
)
#: Dropped on the way in: they belong to the connection between gateway and door, or are the door's own secret.
NOT_FORWARDED = frozenset(
    {b"authorization", b"connection", b"expect", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection"}
    | {b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
_PATH = re.compile(rb"/r/([0-9]{1,18})(/[^?#]*)")


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    message: str

    @property
    def body(self) -> bytes:
        return json.dumps({"error": {"code": self.code, "message": self.message}}, ensure_ascii=False).encode()


WRONG_TOKEN = Refusal(401, "unauthorized", "令牌不对 (wrong token)")
FORBIDDEN = Refusal(403, "forbidden_path", "此路径不经由此门 (path is not on the list)")
UNKNOWN_REPLICA = Refusal(404, "unknown_replica", "本机没有这个副本 (no such replica here)")
NEEDS_LENGTH = Refusal(411, "length_required", "请求体须带 Content-Length (body needs a length)")
TOO_LARGE = Refusal(413, "body_too_large", "请求体过大 (body is too large)")
HEAD_TOO_LARGE = Refusal(431, "head_too_large", "请求头过大 (head is too large)")
NOT_HTTP = Refusal(400, "bad_request", "不是合法的 HTTP 请求 (not a request)")
SLOW = Refusal(408, "request_timeout", "请求发送过慢 (request came too slowly)")
UNREACHABLE = Refusal(502, "engine_unreachable", "引擎不接受连接 (engine does not take the connection)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A call that may pass. `counts`: it is a call in flight, not a probe."""

    replica: int
    path: bytes
    socket: str
    counts: bool


class Watched:
    """A small file that somebody else replaces: read again only when it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, int, int] | None = None
        self._content = b""

    def read(self) -> tuple[bytes, bool]:
        """(content, is it new?); empty where there is no file."""
        try:
            stat = os.stat(self._path)
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if mark == self._mark:
                return self._content, False
            content = self._path.read_bytes()
        except OSError:
            changed = self._mark is not None
            self._mark, self._content = None, b""
            return b"", changed
        self._mark, self._content = mark, content
        return content, True


class Rules:
    def __init__(self, token_file: Path, door_map: Path) -> None:
        self._token, self._map = Watched(token_file), Watched(door_map)
        self._sockets: dict[int, str] = {}

    def knows(self, authorization: bytes) -> bool:
        token = self._token.read()[0].strip()
        given = authorization[7:] if authorization[:7].lower() == b"bearer " else b""
        return bool(token) and hmac.compare_digest(given.strip(), token)

    def socket_of(self, replica: int) -> str | None:
        content, new = self._map.read()
        if new:
            self._sockets = _sockets(content)
        return self._sockets.get(replica)

    def passage(self, method: bytes, url: bytes) -> Passage | Refusal:
        """For a caller whose token is right."""
        match = _PATH.match(url)
        if match is None or (method, match[2]) not in ALLOWED:
            return FORBIDDEN
        replica = int(match[1])
        socket = self.socket_of(replica)
        return Passage(replica, match[2], socket, method == b"POST") if socket else UNKNOWN_REPLICA


def _sockets(content: bytes) -> dict[int, str]:
    try:
        return {int(key): str(value) for key, value in json.loads(content or b"{}").items()}
    except (ValueError, AttributeError):
        return {}


_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
_REASONS |= {408: "Request Timeout", 411: "Length Required", 413: "Content Too Large"}
_REASONS |= {431: "Request Header Fields Too Large", 502: "Bad Gateway"}


def response(status: int, body: bytes, keep: bool) -> bytes:
    """A whole answer of the door's own."""
    close = "" if keep else "connection: close\r\n"
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}{close}\r\n".encode() + body
