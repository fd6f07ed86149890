"""A service from its registration to its first ready replica, in a real browser; buttons that ask first."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.console.stage import Stage

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def hosts_report(web: Stage) -> None:
    """No agent runs here, and a slow machine must not make these hosts silent in the middle of a test."""
    web.do("heard", 3600)


def test_register_preload_and_see_it_ready(web: Stage, sign_in):
    page: Page = sign_in("operator")
    page.goto(f"{web.url}/services/")
    page.click("text=登记业务")
    page.select_option("#id_model", label="Qwen3-8B")
    expect(page.locator("#id_weights")).to_have_value("15.26")
    answer = page.locator("#answer")
    expect(answer).to_contain_text("放得下：")
    expect(answer).to_contain_text("之后剩")
    expect(answer).to_contain_text("登记前还差：")
    page.fill("#id_label", "合同比对")
    page.fill("#id_name", "hotline-qa")
    page.select_option("#id_tenant", label="置业公司")
    page.fill("#id_weights", "99999")
    expect(answer).to_contain_text("放不下：")
    page.fill("#id_weights", "15.3")
    expect(answer).to_contain_text("放得下：")
    page.click("text=登记并预热")
    expect(page.locator("#main")).to_contain_text("这个名称已经有业务在用")
    expect(page.locator("#id_label")).to_have_value("合同比对")
    expect(page.locator("#id_weights")).to_have_value("15.3")
    page.fill("#id_name", "contract-compare")
    page.click("text=登记并预热")
    page.wait_for_url(f"{web.url}/services/contract-compare")
    now = page.locator("#service-now")
    expect(now).to_contain_text("未装载")
    expect(now).to_contain_text("进行中")
    pk = web.do("place", "contract-compare", 22, "starting", progress=0.5, stage="weights")
    expect(now).to_contain_text("读权重 50%")
    web.do("change", pk, phase="ready")
    expect(now.locator(".gk-kpi")).to_contain_text("就绪")
    expect(now).to_contain_text("22 号卡")


def test_a_stop_says_its_consequences_and_is_asked_for_once_more(web: Stage, sign_in):
    page: Page = sign_in("operator")
    page.goto(f"{web.url}/services/code-helper")
    page.locator("#service-now").get_by_role("link", name="停止", exact=True).click()
    main = page.locator("#main")
    expect(main).to_contain_text("停止代码助手的一个实例")
    expect(main).to_contain_text("MiB")
    page.get_by_label("强制").check()
    page.get_by_role("button", name="停止").click()
    page.wait_for_url(f"{web.url}/services/code-helper")
    expect(main).to_contain_text("已下达：停止")
    expect(page.locator("#service-now")).to_contain_text("停止（强制）")


def test_a_member_has_no_button_and_may_ask_the_planner(web: Stage, sign_in):
    page: Page = sign_in("tenant_member", width=390)
    page.goto(f"{web.url}/services/property-service")
    expect(page.locator("#main")).to_contain_text("需要时请向中心申请")
    expect(page.locator("#service-now").get_by_role("link")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing hangs over a phone's edge"
    page.goto(f"{web.url}/services/new")
    page.select_option("#id_model", label="Qwen3-8B")
    expect(page.locator("#answer")).to_contain_text("放得下：")
    expect(page.get_by_role("button", name="登记")).to_have_count(0)
