"""Requests from the first click to the last, in a real browser and in both languages: asked, weighed, decided, over."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.console.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
SITE = ZoneInfo("Asia/Shanghai")
NAME, CARD = "product-copy", 28
WORDS = {
    "zh-hans": {
        "file": "提出",
        "open": "待审",
        "what": "批准会怎样",
        "approve": "批准",
        "in force": "生效",
        "frozen": "决定时看到的后果",
        "ended": "已结束",
        "kept": "白名单至",
        "said": "月底结账前要用",
        "draft": "草稿已存",
        "discard": "丢掉草稿",
    },
    "en": {
        "file": "File it",
        "open": "To review",
        "what": "What approval would mean",
        "approve": "Approve",
        "in force": "In force",
        "frozen": "Consequences seen when it was decided",
        "ended": "Ended",
        "kept": "whitelisted until",
        "said": "needed until the month is closed",
        "draft": "Draft kept",
        "discard": "Throw the draft away",
    },
}


def local(days: float) -> str:
    """What is typed into a field of a moment: site time."""
    return (datetime.now(SITE) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")


@pytest.fixture(params=sorted(WORDS))
def enter(request, web: Stage, sign_in) -> Callable[[str], Page]:
    """Somebody at his own desk, in the language of this run."""

    def entered(role: str) -> Page:
        page: Page = sign_in(role)
        page.context.add_cookies([{"name": "gongka_language", "value": request.param, "url": web.url}])
        page.goto(f"{web.url}/requests/")
        expect(page.locator("html")).to_have_attribute("lang", re.compile(request.param, re.IGNORECASE))
        return page

    entered.words = WORDS[request.param]
    return entered


def filed(page: Page, words: dict[str, str], **fields: str) -> str:
    """The form filled in and sent; the path of its page."""
    for name, value in fields.items():
        field = page.locator(f"form.b [name={name}]")
        if field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    page.locator("form.b").get_by_role("button", name=words["file"], exact=True).click()
    page.wait_for_url(re.compile(r"/requests/\d+$"))
    expect(page.locator("#main")).to_contain_text(words["open"])
    return re.sub(r"^https?://[^/]+", "", page.url)


def approved(page: Page, web: Stage, path: str, words: dict[str, str]) -> None:
    """Looked at with its consequences, then approved; what was seen stays."""
    page.goto(web.url + path)
    weighed = page.locator("#weighed")
    expect(weighed).to_contain_text(words["what"])
    weighed.get_by_role("button", name=words["approve"], exact=True).click()
    expect(page.locator("#frozen")).to_contain_text(words["frozen"])
    expect(page.locator(".gk-head .gk-tag")).to_have_text(words["in force"])


@pytest.fixture(scope="module")
def idle(web: Stage) -> None:
    """A copy of a company's service that nobody calls."""
    web.do("heard", 3600)
    web.do("place", NAME, CARD, kv_used_pct=0.0, door_in_flight=0, running=0, waiting=0)


def test_a_whitelist_is_asked_for_decided_honoured_and_ends_by_itself(web: Stage, enter, idle):
    words = enter.words
    assert "drain" in web.do("planned", NAME, 1), "nobody calls it: tomorrow it would be reclaimed"
    asker = enter("tenant_admin")
    asker.goto(f"{web.url}/services/{NAME}/whitelist")
    path = filed(asker, words, until=local(2), why=words["said"])
    assert "drain" in web.do("planned", NAME, 1), "asking is not having"

    approved(enter("approver"), web, path, words)
    asker.goto(f"{web.url}/services/{NAME}")
    expect(asker.locator("#main")).to_contain_text(words["kept"])
    assert "drain" not in web.do("planned", NAME, 1), "kept"

    assert web.do("later", 3) == 1
    asker.goto(web.url + path)
    expect(asker.locator(".gk-head .gk-tag")).to_have_text(words["ended"])
    asker.goto(f"{web.url}/services/{NAME}")
    expect(asker.locator("#main")).not_to_contain_text(words["kept"])
    assert "drain" in web.do("planned", NAME, 1), "and is reclaimed as others are"


def test_a_budget_is_asked_for_returned_changed_and_granted(web: Stage, enter):
    words, asker = enter.words, enter("tenant_admin")
    asker.goto(f"{web.url}/requests/new/budget")
    path = filed(asker, words, yuan="9000000", until=local(2), why=words["said"])
    judge = enter("approver")
    judge.goto(web.url + path)
    judge.locator("#d-text").fill("9,000,000?")
    judge.locator("#weighed [value=return]").click()
    expect(judge.locator(".gk-head .gk-tag")).to_be_visible()

    asker.goto(web.url + path)
    asker.locator(f"a[href='{path}/again']").click()
    expect(asker.locator("[name=yuan]")).to_have_value(re.compile("^9000000"))
    asker.locator("[name=yuan]").fill("90")
    asker.locator("form.b button[type=submit]").click()
    asker.wait_for_url(web.url + path)
    approved(judge, web, path, words)
    assert web.do("later", 3) == 1
    judge.goto(web.url + path)
    expect(judge.locator(".gk-head .gk-tag")).to_have_text(words["ended"])


def test_a_form_half_typed_is_there_again_and_its_files_go_with_it(web: Stage, enter):
    words, page = enter.words, enter("tenant_admin")
    yuan, why, draft = page.locator("[name=yuan]"), page.locator("[name=why]"), page.locator("#draft")
    page.goto(f"{web.url}/requests/new/budget")
    yuan.fill("77")
    expect(draft).to_contain_text(words["draft"])
    page.goto(f"{web.url}/requests/new/budget")
    expect(yuan).to_have_value("77")
    draft.get_by_role("button", name=words["discard"]).click()
    expect(yuan).to_have_value("")
    yuan.fill("78")
    why.fill(words["said"])
    page.set_input_files("#id_files", {"name": "预算.txt", "mimeType": "text/plain", "buffer": b"78"})
    why.blur()
    yuan.press("Enter")  # the first button of the form is the one that files it
    page.wait_for_url(re.compile(r"/requests/\d+$"))
    with page.expect_download() as taken:
        page.get_by_role("link", name="预算.txt").click()
    assert taken.value.path().read_bytes() == b"78"
    page.goto(f"{web.url}/requests/new/budget")
    expect(yuan).to_have_value("")


def test_a_quota_is_raised_from_the_companys_own_page_and_goes_back_by_itself(web: Stage, enter):
    """From 80 GiB of the middle pool to 90; the page of quotas shows both, and the form begins with what is."""
    words, asker = enter.words, enter("tenant_admin")
    asker.goto(f"{web.url}/tenants/quotas")
    line = asker.locator("#pool-shared-middle tbody tr")
    expect(line).to_contain_text("80.0")
    line.locator(".gk-actions a").click()
    expect(asker.locator("[name=guaranteed_mib]")).to_have_value("81920")
    path = filed(asker, words, guaranteed_mib="92160", until=local(2), why=words["said"])
    approved(enter("approver"), web, path, words)
    asker.goto(f"{web.url}/tenants/quotas")
    expect(line).to_contain_text("90.0")
    assert web.do("later", 3) == 1
    asker.goto(f"{web.url}/tenants/quotas")
    expect(line).to_contain_text("80.0")


def test_the_centre_sees_what_a_quota_would_do_before_it_is_saved(web: Stage, enter):
    page = enter("operator")
    page.goto(f"{web.url}/tenants/quotas")
    page.locator("#pool-shared-large tbody tr").first.locator(".gk-actions a").first.click()
    page.locator("[name=guaranteed_mib]").fill("999999")
    expect(page.locator("#answer .gk-note.bad")).to_be_visible()
    page.locator("form#quota [type=submit]").click()
    expect(page.locator("#id_guaranteed_mib_error")).to_be_visible()
    page.locator("[name=guaranteed_mib]").fill("122880")
    page.locator("form#quota [type=submit]").click()
    page.wait_for_url(f"{web.url}/tenants/quotas")


def test_an_audience_is_widened_and_another_company_may_have_a_key_for_it(web: Stage, enter):
    words, asker = enter.words, enter("tenant_admin")
    asker.goto(f"{web.url}/requests/new/audience")
    path = filed(asker, words, service=NAME, audience="group", until=local(2), why=words["said"])
    open_to = asker.locator(f"[name=services][value={NAME}]")
    home = web.do("move", "tenant_admin", "energy")
    try:
        asker.goto(f"{web.url}/keys/new")
        expect(asker.locator("[name=services]").first).to_be_visible()
        expect(open_to).to_have_count(0)
        approved(enter("approver"), web, path, words)
        asker.reload()
        expect(open_to).to_have_count(1)
        assert web.do("later", 3) == 1
        asker.reload()
        expect(asker.locator("[name=services]").first).to_be_visible()
        expect(open_to).to_have_count(0)
    finally:
        web.do("move", "tenant_admin", home)


def save_policy(page: Page, web: Stage, why: str) -> str:
    """From the page of what would happen to the page of versions; the id of the new one there."""
    page.fill("#gk-note", why)
    page.locator("form[action$='/policies/save'] .btn-primary").click()
    page.wait_for_url(re.compile(r"/policies/(\?|$)"))
    page.goto(f"{web.url}/policies/versions")
    expect(page.locator(".gk-version").first).to_contain_text(why)
    return page.locator(".gk-version").first.get_attribute("id")


def test_a_policy_is_previewed_saved_and_rolled_back(web: Stage, enter):
    page, said, versions = enter("operator"), enter.words["said"], {}
    for value in ("55", "44"):
        page.goto(f"{web.url}/policies/?section=reclaim")
        page.locator("[name='v.idle_unload_s']").fill(value)
        page.locator("#gk-policy [type=submit]:not([formaction])").click()
        versions[value] = save_policy(page, web, f"{said} {value}")
    page.locator(f"#{versions['55']} form[action$='/back'] button").click()
    expect(page.locator("#main")).to_contain_text("55")
    save_policy(page, web, f"{said} 55")
    page.goto(f"{web.url}/policies/?section=reclaim")
    expect(page.locator("[name='v.idle_unload_s']")).to_have_value("55")
    page.locator("[name='v.idle_unload_s']").fill("")
    page.locator("#gk-policy [type=submit]:not([formaction])").click()
    save_policy(page, web, said)
