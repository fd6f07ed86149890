"""The core's tests need no Django: `pytest -p no:django tests/scheduler` runs them alone."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Without the plug-in its options in the shared configuration would be unknown, and unknown is an error."""
    if not pluginmanager.hasplugin("django"):
        parser.addini("DJANGO_SETTINGS_MODULE", "of the plug-in that is left out")
