"""What the web process writes down: a refusal is a line, a fault of ours a traceback."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("role", "address", "status"), [("tenant_member", "/members/", 403), ("auditor", "/x", 404)])
def test_a_refused_page_is_one_line(browse, caplog, role, address, status):
    with caplog.at_level(logging.WARNING, "django.request"):
        assert browse(role).get(address).status_code == status
    (record,) = caplog.records
    assert address in record.getMessage()
    assert record.exc_info is None


def test_a_fault_of_ours_keeps_its_traceback(farm, caplog, monkeypatch):
    def broken(user, text):
        raise RuntimeError("out of order")

    monkeypatch.setattr("console.search.found", broken)
    client = Client(raise_request_exception=False)
    client.force_login(rows.person("auditor"))
    with caplog.at_level(logging.ERROR, "django.request"):
        assert client.get("/search?q=a").status_code == 500
    assert any(record.exc_info for record in caplog.records)
