"""Chinese first, English complete: every string of the sources is in the compiled catalogue, and none hides from it.

The compiled catalogue leaves out what is untranslated or fuzzy, so one look tells all three: forgotten by
`makemessages`, not translated, or not compiled. The way: `django-admin makemessages -l en --no-location --no-wrap
--no-obsolete`, the English in `console/locale`, then `django-admin compilemessages`; both files are kept.
"""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

from tests.console.addresses import ADDRESSES, patterns, url

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "console" / "locale" / "en" / "LC_MESSAGES" / "django.mo"
HAN = re.compile("[\u4e00-\u9fff]")
CALLS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy", "npgettext"}
#: Says both languages itself, or speaks to no person.
APART = (
    "console/gateway/",
    "console/bodies.py",
    "console/policy_pages/words.py",
    "console/policy_pages/typed.py",
    "console/settings.py",
    "console/catalog/management/",
    "/migrations/",
)
PLACES = re.compile(r"%\(\w+\)[-+0-9.]*[a-z]|%[sd]|%%")
TEMPLATE_CALL = re.compile(r"""(?:^|[^\w])(p?n?p?gettext)\((u?'(?:[^'\\]|\\.)*'|u?"(?:[^"\\]|\\.)*")""")
TAGS = re.compile(r"\{#.*?#\}|\{%\s*blocktranslate.*?endblocktranslate\s*%\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
JS_COMMENT = re.compile(r"/\*.*?\*/|(?:^|\s)//[^\n]*", re.DOTALL)


@pytest.fixture(scope="module")
def catalogue() -> dict[str, str]:
    """msgid → English; what needs a context is under both names."""
    with CATALOGUE.open("rb") as file:
        known = gettext.GNUTranslations(file)._catalog
    found = {}
    for key, value in known.items():
        text = key[0] if isinstance(key, tuple) else key
        found[text.rpartition("\x04")[2]] = value
    return found


def python_files() -> Iterator[Path]:
    for path in sorted((ROOT / "console").rglob("*.py")):
        if not any(part in path.as_posix() for part in APART):
            yield path


def templates() -> list[Path]:
    return sorted((ROOT / "templates").rglob("*.html"))


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in CALLS:
            yield node


def messages(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for call in calls(ast.parse(text)):
            first = call.args[1 if "pgettext" in name_of(call.func) else 0]
            if isinstance(first, ast.Constant):
                yield first.value
        return
    for _, quoted in TEMPLATE_CALL.findall(templatize(text)):
        yield ast.literal_eval(quoted.removeprefix("u"))


def test_every_string_of_the_sources_is_translated(catalogue):
    missing = {}
    for path in [*python_files(), *templates()]:
        gone = [one for one in messages(path) if HAN.search(one) and one not in catalogue]
        if gone:
            missing[path.relative_to(ROOT).as_posix()] = gone
    assert missing == {}


def test_translations_keep_every_number_and_name(catalogue):
    for msgid, english in catalogue.items():
        if msgid:
            assert sorted(PLACES.findall(english)) == sorted(PLACES.findall(msgid)), msgid


def test_the_catalogue_speaks_english(catalogue):
    """But for the product's own name."""
    assert [english for msgid, english in catalogue.items() if msgid and HAN.search(english)] == ["共卡"]


def test_no_template_says_anything_outside_a_translation():
    for path in templates():
        rest = TAGS.sub("", path.read_text(encoding="utf-8"))
        assert not HAN.search(rest), f"{path.relative_to(ROOT)}: {rest[HAN.search(rest).start() :][:30]}"


def test_no_page_code_says_anything_outside_a_translation():
    for path in python_files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        spared = {id(one) for call in calls(tree) for one in ast.walk(call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                spared.add(id(node.value))  # a docstring
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        loose = [n.value for n in found if HAN.search(n.value) and id(n) not in spared]
        assert loose == [], path.relative_to(ROOT)


def test_scripts_get_their_words_from_the_page():
    for path in sorted((ROOT / "console" / "static").glob("*.js")):
        found = HAN.search(JS_COMMENT.sub("", path.read_text(encoding="utf-8")))
        assert found is None, path.name


class Words(HTMLParser):
    """What a page says: its texts and the attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def handle_data(self, data: str) -> None:
        self.said.add(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.said |= {(value or "").strip() for name, value in attrs if name in ("title", "aria-label", "placeholder")}


@pytest.mark.django_db
def test_no_page_in_english_shows_a_string_that_has_a_translation(browse, catalogue):
    """Names people gave stay as they are; what the pages say does not: a string translated too early would show."""
    client = browse("operator")
    client.cookies["gongka_language"] = "en"
    ours = {msgid for msgid in catalogue if len(msgid) > 1 and HAN.search(msgid) and "%" not in msgid} - {"共卡"}
    for pattern in patterns():
        if ADDRESSES[pattern.name].post:
            continue
        answer = client.get(url(pattern.name))
        if not answer.headers["Content-Type"].startswith("text/"):
            continue
        words = Words()
        words.feed(answer.content.decode())
        assert words.said & ours == set(), pattern.name
