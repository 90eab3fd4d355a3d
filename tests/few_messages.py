"""Fewer messages from a process that runs tests to the one that distributes them.

xdist sends seven for each test: that it begins, a report of its setup, of itself and of its
teardown, that it has ended, twice, and each is packed, sent, unpacked and shown. For short tests
that is more work than the tests.
"""

import pytest
from _pytest.runner import runtestprotocol

QUICK_SECONDS = 0.005
"""What takes less is in no table of `--durations`, unless somebody asks for it."""


class FewMessages:
    """A pytest plug-in for a process of xdist: sends the report of each test, and others with news.

    xdist itself sends that a test was completed, by which its work is distributed.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs a test as pytest does."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if has_news(report):
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def has_news(report: pytest.TestReport) -> bool:
    """False for a setup or a teardown that passed in no time and without a word."""
    return (
        report.when == "call"
        or not report.passed
        or report.duration >= QUICK_SECONDS
        or bool(report.sections or report.user_properties)
    )
