"""For all tests: what hypothesis takes for a fault of the test is, on a busy machine, the time that others take."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is read. The core's tests run without the plug-in and have no property tests."""
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import HealthCheck, settings

        settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("busy")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Tables are emptied between tests; the audit's refuses to be, so its guard is set up where it is tested."""
    from django.db import connection

    from console.audit.append_only import unguard

    with django_db_blocker.unblock():
        unguard(connection)
