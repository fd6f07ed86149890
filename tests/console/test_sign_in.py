"""Lock-out after failures, the language of a person, what the frame of every page shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.test import Client

from console.accounts.models import User
from tests.console import rows

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough one"


@pytest.fixture
def auditor(farm) -> User:
    user = rows.person("auditor")
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(password: str, name: str = "auditor", address: str = "10.0.0.1"):
    return Client(REMOTE_ADDR=address).post("/login", {"username": name, "password": password})


def test_five_failures_lock_the_name_out_from_that_address_with_words(auditor):
    for _ in range(4):
        assert sign_in("wrong").status_code == 200
    locked = sign_in("wrong")
    assert (locked.status_code, "15 分钟" in locked.content.decode()) == (429, True)
    assert sign_in(PASSWORD).status_code == 429  # the right one is not told apart
    assert sign_in(PASSWORD, address="10.0.0.2").status_code == 302  # nobody locks the owner out from elsewhere


def test_a_name_that_does_not_exist_is_locked_out_alike(farm):
    answers = [sign_in("wrong", "nobody").status_code for _ in range(6)]
    assert answers == [200, 200, 200, 200, 429, 429]


def test_the_lock_ends_by_itself(auditor):
    for _ in range(5):
        sign_in("wrong")
    AccessAttempt.objects.update(attempt_time=rows.moment(-timedelta(minutes=16).total_seconds()))
    assert sign_in(PASSWORD).status_code == 302


def test_success_forgets_earlier_failures(auditor):
    for _ in range(4):
        sign_in("wrong")
    assert sign_in(PASSWORD).status_code == 302
    assert [sign_in("wrong").status_code for _ in range(4)] == [200] * 4


def test_the_failures_kept_hold_no_password(auditor):
    sign_in("my real password with one typo")
    kept = AccessAttempt.objects.get()
    assert "typo" not in " ".join(str(getattr(kept, field.name)) for field in kept._meta.fields)


def test_the_language_is_chosen_remembered_and_follows_the_person(auditor):
    client = Client()
    assert 'lang="zh-Hans"' in client.get("/login").content.decode()
    client.force_login(auditor)
    answer = client.post("/language", {"language": "en", "next": "/services/"})
    assert (answer.status_code, answer.url) == (302, "/services/")
    html = client.get("/services/").content.decode()
    assert '<html lang="en"' in html
    assert ">Services<" in html
    elsewhere = Client()
    elsewhere.post("/login", {"username": "auditor", "password": PASSWORD})
    assert ">Services<" in elsewhere.get("/").content.decode()


@pytest.mark.parametrize(("code", "back"), [("xx", "/"), ("en", "https://example.org/"), ("", "//example.org")])
def test_odd_languages_and_places_are_not_followed(farm, code, back):
    answer = Client().post("/language", {"language": code, "next": back})
    assert (answer.status_code, answer.url) == (302, "/")
    assert ("gongka_language" in answer.cookies) == (code == "en")


def test_the_browsers_language_counts_until_one_is_chosen(farm):
    html = Client(headers={"accept-language": "en-GB,en;q=0.9"}).get("/login").content.decode()
    assert "Sign in" in html
    assert "共卡" in html  # the name stays


def test_the_menu_is_what_the_role_may(browse):
    def words(role: str) -> list[str]:
        return [entry["name"] for entry in browse(role).get("/").context["menu"]]

    assert {"tenants", "members", "keys"} <= set(words("operator"))
    assert {"tenants", "members", "keys"} & set(words("manager")) == {"tenants"}
    assert {"tenants", "members", "keys"} & set(words("tenant_member")) == {"tenants", "keys"}


def test_one_entry_is_current_below_its_page_too(browse):
    client = browse("operator")
    for path, name in (("/", "board"), ("/keys/new", "keys"), ("/search?q=x", None), ("/members/", "members")):
        current = [entry["name"] for entry in client.get(path).context["menu"] if entry["current"]]
        assert current == ([name] if name else []), path


def test_the_frame_says_who_one_is_and_which_time_it_speaks(browse):
    html = browse("tenant_admin").get("/keys/").content.decode()
    for word in ("王芳", "公司管理员", "置业公司", "时间按 Asia/Shanghai 显示", 'id="gk-q"'):
        assert word in html


def test_a_missing_page_and_a_refusal_say_what_to_do(browse):
    client = browse("tenant_member")
    for path, word in (("/nowhere", "没有这一页"), ("/members/", "您的角色不能做这件事")):
        html = client.get(path).content.decode()
        assert word in html
        assert "回到首页" in html
