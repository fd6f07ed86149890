"""The page's socket as a browser uses it: a real login, then `/live/board`; format in console/board/__init__.py."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

LIMIT_S = 10.0


def sign_in(web: str, name: str, password: str) -> str:
    """The Cookie header of a signed-in person. Raises RuntimeError when the login is refused."""
    with httpx.Client(base_url=web, timeout=LIMIT_S, trust_env=False, headers={"Referer": f"{web}/login"}) as browser:
        browser.get("/login").raise_for_status()
        token = browser.cookies["gongka_csrf"]
        form = {"username": name, "password": password, "csrfmiddlewaretoken": token}
        answer = browser.post("/login", data=form)
        if answer.status_code != 302:
            raise RuntimeError(f"login answered {answer.status_code}")
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)


@dataclass(slots=True)
class Board:
    """Listens in a thread of its own; remembers when it first saw each service on a card."""

    socket: ClientConnection
    first_seen: dict[int, float] = field(default_factory=dict)  # service id → seconds since the epoch
    messages: int = 0

    @classmethod
    def open(cls, web: str, cookie: str) -> Board:
        address = web.replace("http://", "ws://") + "/live/board"
        headers = {"Cookie": cookie}
        board = cls(connect(address, origin=Origin(web), additional_headers=headers, open_timeout=LIMIT_S))
        threading.Thread(target=board._listen, name="board", daemon=True).start()
        return board

    def _listen(self) -> None:
        try:
            for text in self.socket:
                self.take(json.loads(text), time.time())
        except ConnectionClosed:
            return

    def take(self, message: dict[str, Any], at: float) -> None:
        if message.get("t") == "board":
            self.messages += 1
            for card in message["cards"].values():
                for _replica, service, *_ in card["r"]:
                    self.first_seen.setdefault(service, at)

    def update_s(self, service: int, since: float, limit_s: float = LIMIT_S) -> float | None:
        """Seconds from `since` until the service stood on a card; None when it never came, or was there before."""
        deadline = time.monotonic() + limit_s
        while service not in self.first_seen and time.monotonic() < deadline:
            time.sleep(0.05)
        seen = self.first_seen.get(service)
        return None if seen is None or seen < since else seen - since

    def close(self) -> None:
        self.socket.close()
