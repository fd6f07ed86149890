"""The frame of every page in a real browser: search by key, language, tables that narrow as one types, a key copied."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_slash_key_goes_to_the_search_and_enter_finds(web, sign_in):
    page = sign_in("operator")
    page.keyboard.press("/")
    expect(page.locator("#gk-q")).to_be_focused()
    page.keyboard.type("物业客服")
    page.keyboard.press("Enter")
    expect(page.locator(".gk-hits a").first).to_contain_text("物业客服")
    page.locator("#gk-q").fill("a/b")  # inside a field it is only a character
    expect(page.locator("#gk-q")).to_have_value("a/b")


def test_the_language_is_switched_from_ones_own_menu_on_the_page_one_is_on(web, sign_in):
    page = sign_in("auditor")
    page.goto(f"{web.url}/tenants/?sort=-services")
    page.click(".gk-me summary")
    page.click(".gk-lang [value=en]")
    expect(page.locator("h1")).to_have_text("Companies")
    assert page.url == f"{web.url}/tenants/?sort=-services"
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.click(".gk-me summary")
    page.click(".gk-lang [value=zh-hans]")
    expect(page.locator("h1")).to_have_text("公司")


def test_a_list_narrows_while_one_types_and_remembers(web, sign_in):
    page = sign_in("operator")
    page.goto(f"{web.url}/tenants/")
    expect(page.locator("#table-tenants tbody tr")).to_have_count(5)
    page.evaluate("document.body.same = true")
    page.locator(".gk-filter [name=q]").fill("置业")
    expect(page.locator("#table-tenants tbody tr")).to_have_count(1)
    assert page.evaluate("document.body.same")  # the list was replaced, not the page
    expect(page).to_have_url(re.compile("q=%E7%BD%AE%E4%B8%9A"))
    page.goto(f"{web.url}/tenants/")
    expect(page.locator("#table-tenants tbody tr")).to_have_count(1)
    page.click("text=清除条件")
    expect(page.locator("#table-tenants tbody tr")).to_have_count(5)


def test_a_key_is_made_shown_and_copied(web, sign_in):
    page = sign_in("tenant_admin")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{web.url}/keys/")
    page.click("text=新建密钥")
    page.fill("#id_name", "工单系统")
    page.check("[name=services][value=property-service]")
    page.click("text=建好并显示")
    shown = page.locator("#secret").inner_text()
    assert re.fullmatch(r"gk_[\w-]{43}", shown)
    page.click("[data-gk=copy]")
    expect(page.locator("[data-gk=copy]")).to_have_text("已复制")
    assert page.evaluate("navigator.clipboard.readText()") == shown
    page.click("text=记好了")
    assert shown not in page.content()
    expect(page.locator("#table-keys")).to_contain_text("工单系统")


def test_live_figures_speak_the_language_of_the_page(web, sign_in):
    page = sign_in("operator")
    page.context.add_cookies([{"name": "gongka_language", "value": "en", "url": web.url}])
    page.goto(f"{web.url}/")
    web.do("beat")
    expect(page.locator("#gk-live")).not_to_have_text("—")
    for _ in range(2):  # a figure of the page, then of the socket
        expect(page.locator(".gk-kpi")).to_contain_text("ready")
        expect(page.locator(".gk-kpi")).not_to_contain_text("个就绪")
        web.do("beat")


@pytest.mark.parametrize("width", [390, 760, 1024, 1280, 1440])
def test_no_page_of_the_frame_is_wider_than_its_screen(web, sign_in, width):
    page = sign_in("operator", width=width)
    page.context.add_cookies([{"name": "gongka_language", "value": "en", "url": web.url}])
    for path in ("/tenants/", "/members/", "/keys/", "/search?q=gpu", "/keys/new", "/members/new", "/password"):
        page.goto(web.url + path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    if width < 1320:
        page.click("[data-gk=menu]")
    expect(page.locator("#gk-nav a").last).to_be_visible()
