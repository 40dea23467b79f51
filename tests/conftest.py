"""Where no sandbox works, what needs none is tested without, and the rest is skipped loudly."""

from __future__ import annotations

import pytest

try:
    from autograde.grading.doctor import why_no_sandbox

    NO_SANDBOX = why_no_sandbox()
except ImportError as error:  # a student's installation, without what grading needs
    NO_SANDBOX = f"grading is not installed ({error})"


def pytest_report_header(config):
    return f"NO SANDBOX HERE, its tests are skipped: {NO_SANDBOX}" if NO_SANDBOX else None


@pytest.fixture(scope="session")
def sandboxed():
    """Can submissions be run in a sandbox here?"""
    return not NO_SANDBOX


@pytest.fixture(scope="session")
def sandbox(sandboxed):
    """For the tests that make no sense without one."""
    if not sandboxed:
        pytest.skip(f"NOT TESTED, no sandbox here: {NO_SANDBOX}")


@pytest.fixture(scope="module")
def running():
    """A browser, for the tests that need one."""
    from web.browse import browser, chromium

    if chromium() is None:
        pytest.skip("NOT TESTED, no Chromium here (on Debian: apt install chromium)")
    with browser() as started:
        yield started
