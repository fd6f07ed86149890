"""Long select and tick boxes say what Django's own say: the same options, the same choice, nothing unescaped."""

from __future__ import annotations

import re

import pytest
from django import forms

from console.forms import Checks, LongSelect

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


def boxes(html: str) -> list[tuple[dict[str, str], str]]:
    """(attributes, label) of each box."""
    found = re.findall(r"<label([^>]*)>\s*<input([^>]*)>\s*([^<]*?)\s*</label>", html)
    return [(dict(re.findall(r' ([-\w]+)(?:="([^"]*)")?', of + box)), label) for of, box, label in found]


@pytest.mark.parametrize("value", [None, [], [1], ["1", "slug"], [2]])
@pytest.mark.parametrize("attrs", [{}, {"id": "id_services", "class": "gk-check", "aria-describedby": "id_help"}])
def test_boxes_say_the_same(value: object, attrs: dict[str, str]) -> None:
    ours = Checks(choices=CHOICES).render("services", value, attrs)
    theirs = forms.CheckboxSelectMultiple(choices=CHOICES).render("services", value, attrs)
    assert boxes(ours) == boxes(theirs)
    assert len(boxes(ours)) == len(CHOICES)
    assert all(f'{name}="{said}"' in re.match(r"<div[^>]*>", ours)[0] for name, said in list(attrs.items())[:2])
