"""From registration to the first answered call: in a real browser, in both languages, on the running farm.

A member of a company asks for a service in the wizard, the centre approves it on the page with its consequences, the
company's administrator makes a key, and whoever has the key calls: the gateway holds the call, a copy is loaded, and
the answer comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import launched
from tests.farm.harness import Farm, body, wait_for
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.browser, pytest.mark.timeout(300)]

#: A model that nobody uses yet, and its weights, GiB.
MODELS = {"zh-hans": ("shipped:qwen3-1.7b:bf16", "3.21"), "en": ("shipped:qwen3-4b:bf16", "7.5")}
WORDS = {
    "zh-hans": {
        "file": "提申请",
        "fits": "放得下：",
        "open": "待审",
        "what": "批准会怎样",
        "approve": "批准",
        "in force": "生效",
        "cold": "未装载",
        "ready": "就绪",
        "next": "给它建密钥",
        "made": "建好并显示",
        "said": "客服要一个小模型改写回复",
        "label": "回复改写",
    },
    "en": {
        "file": "File a request",
        "fits": "Fits:",
        "open": "To review",
        "what": "What approval would mean",
        "approve": "Approve",
        "in force": "In force",
        "cold": "Not loaded",
        "ready": "Ready",
        "next": "Make a key for it",
        "made": "Make and show",
        "said": "the desk needs a small model to reword answers",
        "label": "Rewording",
    },
}


@dataclass
class Desk:
    """Everybody at their own browser, in one language."""

    farm: Farm
    browser: Browser
    language: str
    complaints: list[str]

    @property
    def words(self) -> dict[str, str]:
        return WORDS[self.language]

    @property
    def service(self) -> str:
        return f"reword-{self.language}"

    def enter(self, name: str) -> Page:
        web = str(self.farm.ready["web"])
        context = self.browser.new_context(base_url=web, viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": "gongka_language", "value": self.language, "url": web}])
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto("/login")
        page.fill("#id_username", name)
        page.fill("#id_password", json.loads((self.farm.home / "demo-logins.json").read_text())[name])
        page.click("button[type=submit]")
        expect(page.locator("html")).to_have_attribute("lang", re.compile(self.language, re.IGNORECASE))
        return page


@pytest.fixture(params=sorted(WORDS))
def desk(request: pytest.FixtureRequest, farm: Farm, watched: Watcher) -> Iterator[Desk]:
    with launched() as browser:
        made = Desk(farm, browser, request.param, [])
        yield made
    assert made.complaints == []


def asked(page: Page, desk: Desk) -> str:
    """The wizard filled in until the planner says where it fits, and sent; the path of the request."""
    words = desk.words
    page.goto("/services/new")
    model, weights = MODELS[desk.language]
    page.select_option("#id_model", model)
    expect(page.locator("#id_weights")).to_have_value(weights)
    page.fill("#id_label", words["label"])
    page.fill("#id_name", desk.service)
    expect(page.locator("#answer")).to_contain_text(words["fits"])
    page.fill("#w-why", words["said"])
    page.get_by_role("button", name=words["file"], exact=True).click()
    page.wait_for_url(re.compile(r"/requests/\d+$"))
    expect(page.locator("#main")).to_contain_text(words["open"])
    return re.sub(r"^https?://[^/]+", "", page.url)


def approved(page: Page, path: str, words: dict[str, str]) -> None:
    page.goto(path)
    weighed = page.locator("#weighed")
    expect(weighed).to_contain_text(words["what"])
    expect(weighed.locator(".gk-facts li").first).to_be_visible()
    weighed.get_by_role("button", name=words["approve"], exact=True).click()
    expect(page.locator(".gk-head .gk-tag")).to_have_text(words["in force"])


def key_of(page: Page, path: str, desk: Desk) -> str:
    """From the approved request to a key for the new service alone."""
    page.goto(path)
    page.get_by_role("link", name=desk.words["next"], exact=True).click()
    page.fill("#id_name", desk.service)
    expect(page.locator(f"[name=services][value='{desk.service}']")).to_be_checked()
    page.get_by_role("button", name=desk.words["made"], exact=True).click()
    return page.locator("#secret").inner_text()


def known(desk: Desk, key: str) -> Callable[[], bool]:
    """Gateways have heard of the key."""

    def looked() -> bool:
        answer = httpx.get(f"{desk.farm.gateway}/v1/models", headers={"Authorization": f"Bearer {key}"}, timeout=30)
        return answer.status_code == 200 and [one["id"] for one in answer.json()["data"]] == [desk.service]

    return looked


def called(desk: Desk, key: str) -> tuple[str, list[str]]:
    """The streamed answer to the first call, and what was said while it was waited for."""
    text, told = "", []
    asks = body(desk.service, 4, stream=True)
    headers = {"Authorization": f"Bearer {key}"}
    address = f"{desk.farm.gateway}/v1/chat/completions"
    with httpx.stream("POST", address, json=asks, headers=headers, timeout=90, trust_env=False) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith(": gongka"):
                told.append(line)
            elif line.startswith("data: {"):
                text += json.loads(line.removeprefix("data: "))["choices"][0]["delta"].get("content") or ""
    return text, told


def test_from_a_members_wish_to_the_first_answer(desk: Desk) -> None:
    words, member = desk.words, desk.enter("tenant_member")
    path = asked(member, desk)
    approved(desk.enter("approver"), path, words)

    member.goto(path)
    member.locator("#main").get_by_role("link", name=words["label"], exact=True).click()
    now = member.locator("#service-now")
    expect(now).to_contain_text(words["cold"])

    key = key_of(desk.enter("tenant_admin"), path, desk)
    wait_for("the gateway knows the key", known(desk, key), 20)
    text, told = called(desk, key)
    assert text
    assert told, "it was cold: the caller was told so"
    expect(now.locator(".gk-kpi .v").first).to_have_text(words["ready"])
