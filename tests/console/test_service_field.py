"""Choosing a service: a list where there are few; where there are many a box that asks for what fits."""

from __future__ import annotations

import re

import pytest
from django import forms
from django.urls import reverse

from console import service_field
from console.catalog.models import Service
from tests import factories

ASKED = "/requests/new/whitelist"


class Form(forms.Form):
    service = service_field.ServiceField(required=False, empty_label="全部")


def asked(typed: str = "", *, posted: bool = True) -> Form:
    form = Form({"service": typed}) if posted else Form(initial={"service": typed})
    form.fields["service"].queryset = Service.objects.all()
    return form


@pytest.fixture
def two(db) -> list[Service]:
    return [factories.service(name="contract-review", label="合同审阅"), factories.service(name="daily", label="日报")]


@pytest.fixture
def many(two, monkeypatch) -> list[Service]:
    monkeypatch.setattr(service_field, "LISTED", 1)
    return two


def test_few_are_a_list(two, django_assert_num_queries):
    with django_assert_num_queries(1):
        html = str(asked("daily", posted=False)["service"])
    assert re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)', html) == [
        ("", "", "全部"),
        ("contract-review", "", "合同审阅"),
        ("daily", " selected", "日报"),
    ]


def test_many_are_asked_for(many):
    html = str(asked("daily", posted=False)["service"])
    assert "<select" not in html
    assert 'value="日报（daily）"' in html
    assert f'hx-get="{reverse("search-services")}"' in html
    listed = re.search(r' list="([^"]*)"', html)[1]
    assert f'<datalist id="{listed}"></datalist>' in html
    assert f'hx-target="#{listed}"' in html
    assert 'value="nobody &lt;"' in str(asked("nobody <")["service"])


@pytest.mark.parametrize("typed", ["daily", " daily ", "日报", "日报（daily）", "Report (daily)"])
def test_it_is_found_by_name_and_label_and_as_the_box_writes_it(many, typed):
    form = asked(typed)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["service"].name == "daily"


def test_nothing_is_nothing_and_nobody_is_told(two):
    form = asked("")
    assert form.is_valid()
    assert form.cleaned_data["service"] is None
    assert "没有这个业务" in str(asked("nobody").errors)


def test_of_two_with_one_label_the_name_decides(two):
    factories.service(name="weekly", label="日报")
    assert "不止一个业务叫" in str(asked("日报").errors)
    assert asked("日报（weekly）").is_valid()


def test_what_fits_is_told_within_the_persons_view(browse):
    def told(who: str, typed: str) -> list[str]:
        answer = browse(who).get(reverse("search-services"), {"service": typed})
        return re.findall(r'<option value="[^"]*（([^"]*)）">', answer.content.decode())

    assert told("operator", "FUND-Q") == ["fund-qa"]
    assert told("tenant_member", "fund-q") == []
    assert told("tenant_member", "property") == ["property-service"]
    assert len(told("operator", "")) <= service_field.SUGGESTED


def test_the_page_of_a_service_has_it_chosen(browse, monkeypatch):
    monkeypatch.setattr(service_field, "LISTED", 1)
    answer = browse("operator").get(reverse("service-whitelist", args=["property-service"])).content.decode()
    assert "（property-service）" in answer
    assert "没有这个业务" in browse("operator").post(ASKED, {"service": "nobody"}).content.decode()
