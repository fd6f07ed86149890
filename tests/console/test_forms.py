"""A long select box says what Django's own says: the same options, the same choice, nothing unescaped."""

from __future__ import annotations

import re

import pytest
from django import forms

from console.forms import LongSelect

CHOICES = [("", "全部"), (1, "合同审阅"), (2, '<b>"引号" & 尖括号</b>'), ("slug", "日报")]


def told(html: str) -> list[tuple[str, bool, str]]:
    """(value, chosen, label) of each option."""
    found = re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)</option>', html)
    return [(value, bool(chosen), label) for value, chosen, label in found]


@pytest.mark.parametrize("value", [None, "", 1, "1", 2, "slug", "nobody"])
def test_it_says_the_same(value: object) -> None:
    ours = LongSelect(choices=CHOICES).render("service", value, {"id": "id_service", "required": True})
    theirs = forms.Select(choices=CHOICES).render("service", value, {"id": "id_service", "required": True})
    assert told(ours) == told(theirs)
    assert len(told(ours)) == len(CHOICES)
    assert re.match(r"<select [^>]*>", ours)[0].count('name="service"') == 1
    assert ' id="id_service"' in ours
    assert " required" in ours
