"""The live socket, over a real server and a real Redis: who hears what, and what happens when somebody is away."""

from __future__ import annotations

import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.console.stage import Stage, stage, until

pytestmark = pytest.mark.xdist_group("live")


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    with stage(tmp_path_factory.mktemp("live")) as one:
        yield one


def sign_in(web: Stage, name: str) -> str:
    """The Cookie header of a person who signed in as a browser does."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with opener.open(f"{web.url}/login") as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode()).group(1)
    form = {"username": name, "password": web.password(name), "csrfmiddlewaretoken": token}
    with opener.open(f"{web.url}/login", urllib.parse.urlencode(form).encode()) as page:
        assert page.url == f"{web.url}/"
    return "; ".join(f"{one.name}={one.value}" for one in jar)


def socket(web: Stage, cookie: str = "", origin: str | None = None):
    headers = {"Cookie": cookie, "Origin": origin or web.url}
    return connect(web.url.replace("http", "ws") + "/live/board", additional_headers=headers, open_timeout=30)


def hear(one) -> dict:
    return json.loads(one.recv(timeout=30))


def hear_whole(one) -> dict:
    message = hear(one)
    while not message["whole"]:
        message = hear(one)
    return message


def drain(one) -> None:
    while one.recv(timeout=30):
        pass


def beat_until_heard(web: Stage, one, holds) -> dict:
    """Publish and listen until a message for which `holds`: the hub may still be subscribing."""
    found: list[dict] = []

    def look() -> bool:
        web.do("beat")
        try:
            message = json.loads(one.recv(timeout=2))
        except TimeoutError:
            return False
        found.append(message)
        return holds(message)

    until(look)
    return found[-1]


def test_staff_get_the_whole_board_and_then_changes(web):
    with socket(web, sign_in(web, "operator")) as one:
        first = hear_whole(one)
        assert len(first["cards"]) == 32
        assert all(sum(card["m"]) in (81920, 46068, 23028) for card in first["cards"].values())
        beat_until_heard(web, one, lambda message: not message["whole"])
        pk, card = web.do("place", "contract-review", 16), str(web.do("card_id", 16))
        told = beat_until_heard(web, one, lambda message: card in message["cards"] and message["cards"][card]["r"])
        assert [seat[0] for seat in told["cards"][card]["r"]] == [pk]
        after = beat_until_heard(web, one, lambda message: True)
        assert after["v"] == told["v"] + 1


def test_a_tenant_hears_nothing_of_others(web):
    with socket(web, sign_in(web, "tenant_member")) as one:
        first = hear_whole(one)
        assert 0 < len(first["cards"]) < 32
        foreign = str(web.do("card_id", 20))
        assert foreign not in first["cards"]
        pk = web.do("place", "waybill-extract", 20)
        later = beat_until_heard(web, one, lambda message: not message["whole"])
        assert foreign not in later["cards"]
        assert str(pk) not in [str(seat[0]) for card in later["cards"].values() for seat in card["r"]]


def test_nobody_else_gets_in(web):
    with pytest.raises(InvalidStatus) as refused:
        socket(web)
    assert refused.value.response.status_code == 403
    cookie = sign_in(web, "operator")
    with pytest.raises(InvalidStatus) as refused:
        socket(web, cookie, origin="http://elsewhere.example")
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("other", ["http://127.0.0.1:1", "http://127.0.0.1", "null", "http://127.0.0.1.example"])
def test_a_page_of_another_program_on_this_machine_opens_no_socket(web, other):
    with pytest.raises(InvalidStatus) as refused:
        socket(web, sign_in(web, "operator"), origin=other)
    assert refused.value.response.status_code == 403


def sign_out(web: Stage, cookie: str) -> None:
    page = urllib.request.Request(f"{web.url}/", headers={"Cookie": cookie})
    with urllib.request.urlopen(page) as answer:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.read().decode()).group(1)
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{web.url}/logout", form, {"Cookie": cookie})).close()


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ({"is_active": False}, {"is_active": True}),
        ({"must_change_password": True}, {"must_change_password": False}),
        ({"role": "operator", "tenant_id": None}, {"role": "auditor"}),
        (None, None),
    ],
    ids=["deactivated", "password reset", "another role of the same view", "signed out"],
)
def test_a_socket_ends_soon_after_the_right_to_it(web, change, back):
    cookie = sign_in(web, "auditor")
    with socket(web, cookie) as one:
        hear_whole(one)
        if change is None:
            sign_out(web, cookie)
        else:
            web.do("person", "auditor", **change)
        try:
            if change and "role" in change:  # sees the same as before: nothing is interrupted
                beat_until_heard(web, one, lambda message: not message["whole"])
                return
            with pytest.raises(ConnectionClosed) as closed:
                drain(one)
            assert closed.value.rcvd.code == 4401
        finally:
            if back:
                web.do("person", "auditor", **back)


def test_who_moves_to_another_company_gets_no_more_of_the_first(web):
    with socket(web, sign_in(web, "tenant_member")) as one:
        hear_whole(one)
        mine = web.do("move", "tenant_member", "energy")
        try:
            with pytest.raises(ConnectionClosed):
                drain(one)
        finally:
            web.do("move", "tenant_member", mine)


def test_a_browser_that_does_not_read_loses_nothing_for_others(web):
    cookie = sign_in(web, "operator")
    with socket(web, cookie) as idle, socket(web, cookie) as eager:
        hear_whole(eager)
        for _ in range(10):
            web.do("beat")
        beat_until_heard(web, eager, lambda message: not message["whole"])
        assert hear(idle)["t"] == "board"


def test_it_goes_on_after_redis_was_away(web):
    with socket(web, sign_in(web, "operator")) as one:
        beat_until_heard(web, one, lambda message: not message["whole"])
        web.stop_redis()
        assert web.do("publish") is False
        numbers = urllib.request.Request(f"{web.url}/board/numbers", headers={"Cookie": sign_in(web, "operator")})
        with urllib.request.urlopen(numbers) as answer:  # what the page polls meanwhile
            assert len(json.loads(answer.read())["cards"]) == 32
        web.start_redis()
        beat_until_heard(web, one, lambda message: not message["whole"])


def test_the_socket_ends_with_its_server(web):
    with socket(web, sign_in(web, "operator")) as one:
        hear_whole(one)
        web.stop_web()
        with pytest.raises(ConnectionClosed):
            drain(one)
    web.start_web()
