"""A person at a browser, as far as the console's pages need one: signs in, reads pages, presses buttons."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import httpx
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.farm.harness import Farm

FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Person:
    """One of the demo's people with a session of their own."""

    def __init__(self, farm: Farm, name: str) -> None:
        web = str(farm.ready["web"])
        self.client = httpx.Client(base_url=web, timeout=30, trust_env=False, headers={"Referer": f"{web}/"})
        password = json.loads((farm.home / "demo-logins.json").read_text())[name]
        answer = self._send("/login", self.page("/login"), username=name, password=password)
        assert answer.status_code == 302, answer.text

    def close(self) -> None:
        self.client.close()

    def page(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def text(self, path: str) -> str:
        """What stands on a page, without its marks."""
        return html.unescape(re.sub(r"<[^>]+>", " ", self.page(path)))

    def press(self, path: str, **fields: Any) -> str:
        """Opens a page that asks, and presses its button; what stands on the page that follows."""
        answer = self._send(path, self.page(path), **fields)
        assert answer.status_code == 302, f"{path}: {answer.status_code}"
        return self.text(answer.headers["location"])

    def board(self) -> dict[str, Any]:
        """The cards as the board's socket tells them to a page that opens: by id."""
        web = str(self.client.base_url).rstrip("/")
        cookie = "; ".join(f"{one.name}={one.value}" for one in self.client.cookies.jar)
        address = web.replace("http://", "ws://") + "/live/board"
        with connect(address, origin=Origin(web), additional_headers={"Cookie": cookie}) as socket:
            while True:
                told = json.loads(socket.recv(timeout=20))
                if told.get("t") == "board" and told["whole"]:
                    return dict(told["cards"])

    def _send(self, path: str, page: str, **fields: Any) -> httpx.Response:
        token = FIELD.search(page)
        assert token is not None, f"no form at {path}"
        return self.client.post(path, data={"csrfmiddlewaretoken": token[1], **fields})
