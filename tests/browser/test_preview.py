"""A policy tried before it is saved, in a real browser, with the real jobs worker and in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.stage import Stage
from tests.console.test_preview_job import ended

pytestmark = [pytest.mark.browser, pytest.mark.timeout(500)]
WORDS = {
    "zh-hans": {
        "first": "10m",
        "review": "看看会怎样",
        "try": "看看过去七天会怎样",
        "waiting": "用现在的策略算一遍",
        "done": "总的",
        "words": ("冷启动", "判断"),
        "use": "就用这些值，去保存",
        "link": "过去七天上的预演",
        "save": "保存为新的一版",
        "back": "退回到这一版",
        "saved": "已生效",
        "fill": "填到表里看看",
        "filled": "还没有保存",
    },
    "en": {
        "first": "9m",
        "review": "See what would happen",
        "try": "Try it on the last seven days",
        "waiting": "Once under the policy as it is",
        "done": "In all",
        "words": ("Cold starts", "Verdict"),
        "use": "Use these values: go and save",
        "link": "on the last seven days",
        "save": "Save as a new version",
        "back": "Back to this version",
        "saved": "is in force",
        "fill": "Fill in the form with it",
        "filled": "not saved",
    },
}


@pytest.fixture(scope="module")
def worked(web: Stage) -> Iterator[Stage]:
    """Something to try values on, and somebody to do it."""
    web.do("past", 4)
    web.start_jobs()
    yield web
    web.kill_jobs()


@pytest.fixture(params=sorted(WORDS))
def operator(request, worked: Stage, sign_in) -> tuple[Page, dict]:
    page = sign_in("operator")
    page.context.add_cookies([{"name": "gongka_language", "value": request.param, "url": worked.url}])
    return page, WORDS[request.param]


def idle(page: Page, web: Stage) -> str:
    """What the form shows as the group's own value."""
    page.goto(f"{web.url}/policies/?section=reclaim")
    return page.locator("[name='v.idle_unload_s']").input_value()


def save(page: Page, words: dict, why: str) -> None:
    page.fill("#gk-note", why)
    page.get_by_role("button", name=words["save"], exact=True).click()
    expect(page.locator("body")).to_contain_text(words["saved"])


def test_a_value_is_tried_looked_at_saved_and_rolled_back(worked: Stage, operator):
    page, words = operator
    page.goto(f"{worked.url}/policies/?section=reclaim")
    page.fill("[name='v.idle_unload_s']", words["first"])
    page.get_by_role("button", name=words["review"], exact=True).click()
    save(page, words, "first")
    before = idle(page, worked)
    page.fill("[name='v.idle_unload_s']", "11m")
    page.locator("#gk-policy").get_by_role("button", name=words["try"], exact=True).click()
    page.wait_for_url(re.compile(r"/policies/previews/\d+$"))
    address = page.url
    expect(page.locator("#preview-live")).to_contain_text(words["waiting"])
    assert ended(worked, int(address.rpartition("/")[2]))["state"] == "done"  # with control's part in it
    expect(page.locator("#preview-whole")).to_contain_text(words["done"])
    for word in words["words"]:
        expect(page.locator("#preview-whole")).to_contain_text(word)
    assert idle(page, worked) == before, "trying saves nothing"

    page.goto(address)
    page.get_by_role("button", name=words["use"], exact=True).click()
    expect(page.locator("form.b")).to_contain_text(words["link"])
    save(page, words, "tried")
    assert idle(page, worked) == "660"

    page.goto(f"{worked.url}/policies/versions?layer=group")
    page.locator(".gk-version").nth(1).get_by_role("button", name=words["back"], exact=True).click()
    save(page, words, "back")
    assert idle(page, worked) == before


def test_the_proposal_fills_the_form_and_saves_nothing(worked: Stage, operator):
    page, words = operator
    page.goto(f"{worked.url}/policies/")
    page.get_by_role("link", name=words["fill"], exact=True).click()
    page.wait_for_url(re.compile("section=tiers"))
    expect(page.locator("#main")).to_contain_text(words["filled"])
    typed = page.locator("#gk-policy [name='v.warm_calls_7d']").input_value()
    page.goto(f"{worked.url}/policies/?section=tiers")
    assert page.locator("#gk-policy [name='v.warm_calls_7d']").input_value() != typed
