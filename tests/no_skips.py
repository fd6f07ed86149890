"""A pytest plugin (`-p tests.no_skips`): a test that was skipped did not pass, so the run fails and says which."""

from __future__ import annotations

import pytest

NO_TESTS = 5  # pytest's status when a selection is empty: not a failure of the farm tests' own run


class Skips:
    def __init__(self) -> None:
        self.names: list[str] = []

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.names.append(report.nodeid)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.names.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.names and session.exitstatus in (0, NO_TESTS):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self.names:
            terminalreporter.write_line(f"跳过的测试不算通过 / skipped, so not passed: {name}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # under xdist the controller sees all reports
        config.pluginmanager.register(Skips(), "gongka-no-skips")
