"""Chromium and a whole web process to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import launched
from tests.console.stage import Stage, stage


@pytest.fixture(scope="module")
def web(tmp_path_factory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("web")) as one:
        yield one


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def sign_in(web: Stage, chromium: Browser) -> Iterator[Callable[..., Page]]:
    """A page on which somebody has signed in; what the browser complains about fails the test."""
    complaints: list[str] = []
    contexts = []

    def opened(name: str, width: int = 1440, theme: str = "light") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale="zh-CN")
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None
        )
        page.goto(f"{web.url}/login")
        page.fill("#id_username", name)
        page.fill("#id_password", web.password(name))
        page.click("button[type=submit]")
        page.wait_for_url(f"{web.url}/")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
