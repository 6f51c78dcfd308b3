"""Rules for every test: a skip for want of a tool is a failure in CI, async tests run on asyncio, nothing is timed."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# No example is timed: the machine may be busy. None is kept on disk: the tests also run on a read-only tree.
settings.register_profile("project", deadline=None, database=None)
settings.load_profile("project")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI nothing may be skipped: a test that did not run proves nothing."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where every test has to run: {item.nodeid}: {report.longrepr}"
    return report
