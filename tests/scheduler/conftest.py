"""The core's tests need no plug-in: `make test-core` runs them with none."""

from __future__ import annotations

import gc

import pytest

#: Worlds are trees without cycles: what looks for cycles finds none, and takes a sixth of the time.
gc.set_threshold(200_000)
#: Options of the shared configuration and the plug-in that knows each.
OPTIONS = {"DJANGO_SETTINGS_MODULE": "django", "timeout": "timeout", "timeout_method": "timeout"}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Without the plug-in its options in the shared configuration would be unknown, and unknown is an error."""
    for name, plugin in OPTIONS.items():
        if not pluginmanager.hasplugin(plugin):
            parser.addini(name, "of the plug-in that is left out")
