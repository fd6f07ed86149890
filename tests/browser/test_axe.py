"""Every page by keyboard and screen reader: axe finds nothing serious or critical, light or dark.

The pages come from the addresses of the console: a new one is looked at without being asked for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.console.addresses import ADDRESSES

pytestmark = pytest.mark.browser
AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
LOOK = """async rules => {
  // a colour half-way between two is nobody's choice: look when every transition has ended
  const moving = document.getAnimations().filter(one => one instanceof CSSTransition);
  await Promise.allSettled(moving.map(one => one.finished));
  const found = await axe.run(document, {resultTypes: ["violations"], ...(rules ? {runOnly: rules} : {})});
  return found.violations.filter(one => ["serious", "critical"].includes(one.impact)).flatMap(
    one => one.nodes.slice(0, 3).map(node => `${one.id}: ${node.html.slice(0, 160)} ${node.failureSummary}`));
}"""


#: Endings of addresses that hand out a file: there is no page to look at.
FILES = ("-csv", "-xlsx", "-export", "-template", "-file")


def look(page: Page) -> list[str]:
    """Everything in the theme at hand; of the other theme, what a theme can change."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(LOOK, None)
    page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
    return found + [f"dark: {one}" for one in page.evaluate(LOOK, ["color-contrast"])]


@pytest.fixture(scope="module")
def addresses(web) -> dict[str, str]:
    web.do("beat")
    return web.do("addresses")


@pytest.mark.parametrize("part", range(3))
def test_every_page_is_accessible(web, sign_in, addresses, part):
    page, faults = sign_in("operator"), {}
    opened = [name for name in sorted(ADDRESSES) if not ADDRESSES[name].post and not name.endswith(FILES)]
    for name in opened[part::3]:
        answer = page.goto(web.url + addresses[name])
        if not answer.text().lower().startswith("<!doctype html>"):
            continue  # a part of a page or numbers: looked at where it is shown
        if found := look(page):
            faults[name] = found
    assert faults == {}


@pytest.mark.parametrize("name", ["board", "service", "service-edit", "host"])
def test_a_phone_is_accessible(web, sign_in, addresses, name):
    page = sign_in("operator", width=390)
    page.goto(web.url + addresses[name])
    assert look(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_pages_before_signing_in_are_accessible(web, chromium):
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{web.url}/login")
    assert look(page) == []
    context.close()
