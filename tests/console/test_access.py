"""Every address × every role × the other company, and signing in and out."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.test import Client

from console.accounts.access import MAY, Act, may
from console.accounts.models import Role, User
from tests.console import rows
from tests.console.addresses import ADDRESSES, FOREIGN, MINE, OPEN, names, patterns, url

pytestmark = pytest.mark.django_db
DONE = {200, 302, 303, 400, 409, 422}  # a button without its form's fields: refused or done, but not forbidden


def ask(client: Client, name: str, address: str) -> int:
    return (client.post if ADDRESSES[name].post else client.get)(address).status_code


def test_every_address_is_listed():
    """A new address states in `addresses.py` whose object it shows: else nobody asked who may see it."""
    assert set(names()) == set(ADDRESSES)


@pytest.mark.parametrize("role", Role.values)
def test_every_address_by_every_role(browse, role):
    client = browse(role)
    for pattern in patterns():
        status = ask(client, pattern.name, url(pattern.name))
        if role not in MAY[pattern.callback.act]:
            assert status == 403, pattern.name
        else:
            assert status in (DONE if ADDRESSES[pattern.name].post else {200}), pattern.name


@pytest.mark.parametrize("role", ["tenant_admin", "tenant_member", "manager"])
def test_what_belongs_to_another_company_is_not_there(browse, role):
    """404, never 403, for who may do it at home; a role that may not learns nothing either."""
    client = browse(role)
    estate = User.objects.get(username="tenant_admin").tenant
    assert (estate.slug, MINE != FOREIGN) == (MINE, True)
    User.objects.filter(username="manager").update(tenant=estate)  # a manager of the company, not of the group
    for pattern in patterns():
        foreign = ADDRESSES[pattern.name].foreign
        if foreign is not None:
            expected = 404 if role in MAY[pattern.callback.act] else 403
            assert ask(client, pattern.name, url(pattern.name, foreign)) == expected, pattern.name


def test_nothing_but_the_open_addresses_is_seen_without_signing_in(farm):
    for name in names():
        address, client = url(name), Client()
        answer = client.get(address)
        assert (answer.status_code, answer.url) == (302, "/login?" + urlencode({"next": address}, safe="/"))
        partial = client.get(address, headers={"HX-Request": "true"})
        assert (partial.status_code, partial.headers["HX-Redirect"]) == (401, "/login")


def test_the_open_addresses_answer_everybody(farm):
    for name in OPEN:
        assert Client().get("/" + name).status_code in (200, 405)


def test_whoever_has_an_initial_password_hears_nothing_live_either(browse):
    browse("operator")
    user = rows.person("operator")
    user.must_change_password = True
    assert [act for act in MAY if may(user, act)] == [Act.OWN_ACCOUNT]


def test_every_view_states_its_act():
    assert all(hasattr(pattern.callback, "act") for pattern in patterns())


@pytest.mark.parametrize("role", Role.values)
def test_an_initial_password_opens_only_the_page_that_changes_it(browse, role):
    client = browse(role)
    User.objects.filter(username=role).update(must_change_password=True)
    for pattern in patterns():
        if role in MAY[pattern.callback.act] and pattern.name != "password":
            answer = client.get(url(pattern.name))
            assert (answer.status_code, answer.url) == (302, "/password"), pattern.name
    assert client.get("/password").status_code == 200


def test_a_role_that_is_not_listed_is_refused_with_words(browse, monkeypatch):
    from console.accounts import access

    monkeypatch.setitem(access.MAY, access.Act.SEE_DECISIONS, access.STAFF)
    client = browse("tenant_member")
    answer = client.get("/decisions/")
    assert answer.status_code == 403
    assert "您的角色不能做这件事" in answer.content.decode()
    assert ">决策<" not in client.get("/").content.decode()  # nor does the menu offer it


def test_a_deactivated_person_may_nothing(farm):
    user = rows.person("operator")
    user.is_active = False
    assert not any(may(user, act) for act in MAY)


def test_signing_in_leads_back_to_the_page_asked_for(farm):
    user, client = rows.person("auditor"), Client()
    user.set_password("a long enough one")
    user.save()
    answer = client.post("/login", {"username": "auditor", "password": "a long enough one", "next": "/decisions/"})
    assert (answer.status_code, answer.url) == (302, "/decisions/")
    assert client.get("/logout").status_code == 405
    assert client.post("/logout").status_code == 302
    assert client.get("/").status_code == 302


def test_a_wrong_password_and_a_wrong_name_say_the_same(farm):
    said = []
    for name in ("auditor", "nobody"):
        html = Client().post("/login", {"username": name, "password": "wrong"}).content.decode()
        assert "账户或密码不对" in html
        assert f'value="{name}"' in html  # what was typed is kept
        said.append("invalid-feedback" in html)
    assert said == [True, True]


def test_another_site_is_not_redirected_to(farm):
    user, client = rows.person("auditor"), Client()
    user.set_password("a long enough one")
    user.save()
    sent = {"username": "auditor", "password": "a long enough one", "next": "https://example.org/"}
    assert client.post("/login", sent).url == "/"


def test_headers_forbid_inline_scripts_and_frames(browse):
    answer = browse("operator").get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in answer.headers["Cache-Control"]
    assert "<script>" not in answer.content.decode()


def test_real_passwords_are_kept_with_argon2(farm, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    user = rows.person("operator")
    user.set_password("a long enough one")
    assert user.password.startswith("argon2$")
    assert user.check_password("a long enough one")
