"""A farm of rows, and a browser signed in as somebody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation

from tests.console import kept, rows


@pytest.fixture(autouse=True)
def _cheap_passwords(settings):
    """Signing in is tested with the real hasher where it is the point; elsewhere six of them cost a second."""
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        "console.accounts.passwords.FirstPassword",
    ]


@pytest.fixture(autouse=True)
def _chinese():
    """A page asked for in English leaves its thread speaking English: each test begins in the site's own language."""
    translation.activate(settings.LANGUAGE_CODE)
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _own_home(settings, tmp_path: Path):
    """Files that go with requests lie there."""
    settings.HOME = tmp_path


@pytest.fixture
def farm(db, tmp_path: Path) -> Path:
    kept.populate(tmp_path)
    return tmp_path


@pytest.fixture
def browse(farm: Path) -> Callable[[str], Client]:
    def sign_in(name: str) -> Client:
        client = Client()
        client.force_login(rows.person(name))
        return client

    return sign_in
