"""The job of a preview with the real jobs worker: killed half way it begins anew and says the same; a click ends it."""

from __future__ import annotations

import http.cookiejar
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

from tests.console.stage import Stage, stage, until

pytestmark = [pytest.mark.timeout(600)]
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def web(tmp_path_factory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("jobs")) as one:
        assert one.do("past", 4) > 200
        yield one


class Person:
    """Somebody at a browser without scripts."""

    def __init__(self, web: Stage, name: str) -> None:
        self.web = web
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.post("/login", "/login", username=name, password=web.password(name))

    def get(self, path: str) -> str:
        with self.opener.open(self.web.url + path) as answer:
            return answer.read().decode()

    def post(self, page: str, path: str, **fields: str) -> str:
        """Sends the form of a page; the path at which it ended."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get(page))[1]
        body = urllib.parse.urlencode({"csrfmiddlewaretoken": token} | fields).encode()
        with self.opener.open(self.web.url + path, body) as answer:
            return urllib.parse.urlsplit(answer.url).path

    def asks(self, **values: str) -> int:
        """For a preview; the number of its job."""
        fields = {"layer": "group"} | {f"v.{name}": text for name, text in values.items()}
        return int(self.post("/policies/", "/policies/previews/new", **fields).rpartition("/")[2])


def reached(web: Stage, job: int, share: float) -> bool:
    """Has it come so far? Pushed as control does."""
    row = web.do("job", job)
    assert row["state"] in ("waiting", "running"), row
    if row["state"] == "waiting":
        web.do("look_after")
    return row["state"] == "running" and row["progress"] >= share


def ended(web: Stage, job: int) -> dict:
    def over():
        row = web.do("job", job)
        if row["state"] == "waiting":
            web.do("look_after")
        return row if row["state"] not in ("waiting", "running") else None

    return until(over, LIMIT_S)


@pytest.fixture
def worker(web: Stage) -> Iterator[None]:
    web.start_jobs()
    yield
    if web.jobs.poll() is None:
        web.kill_jobs()


def test_killed_half_way_it_begins_anew_and_says_what_it_would_have_said(web: Stage, worker):
    operator = Person(web, "operator")
    job = operator.asks(idle_unload_s="120")
    until(lambda: reached(web, job, 0.1), LIMIT_S)
    web.kill_jobs()
    assert web.do("job", job)["state"] == "running", "nobody told the row"
    web.start_jobs()
    web.do("left_behind")
    web.do("look_after")
    row = ended(web, job)
    assert (row["state"], row["tries"], row["progress"]) == ("done", 2, 1.0)
    again = operator.asks(idle_unload_s="120")
    undisturbed = ended(web, again)
    assert undisturbed["tries"] == 1
    for side in ("old", "new"):
        assert undisturbed["result"][side] == row["result"][side]
    assert row["result"]["old"] != row["result"]["new"]
    html = operator.get(f"/policies/previews/{job}")
    assert f"{row['result']['new']['whole']['cold_starts']:,}" in html


def test_a_click_ends_it_within_a_second_or_two_and_nothing_is_left(web: Stage, worker):
    operator = Person(web, "operator")
    job = operator.asks(idle_unload_s="60")
    until(lambda: reached(web, job, 0.02), LIMIT_S)
    operator.post(f"/policies/previews/{job}", f"/policies/previews/{job}/cancel")
    asked = time.monotonic()
    row = ended(web, job)
    assert time.monotonic() - asked < 15.0, "a second on a quiet machine"
    assert (row["state"], row["result"]) == ("cancelled", {})
    assert "没有结果" in operator.get(f"/policies/previews/{job}")
    assert ended(web, operator.asks(idle_unload_s="90"))["state"] == "done", "the next one may begin"
