"""Processes of a distributed run send fewer messages, and all that somebody would miss."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.few_messages import has_news

ROOT = Path(__file__).resolve().parent.parent.parent

CONFTEST = """
from tests.few_messages import FewMessages

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(FewMessages())
    else:
        config.pluginmanager.register(Received())

class Received:
    def pytest_runtest_logreport(self, report):
        words = report.nodeid.rpartition("::test_")[2], report.when, report.outcome
        with open("received", "a") as file:
            print(*words, file=file)
"""

TESTS = """
import pytest

@pytest.fixture
def broken(): assert False

@pytest.fixture
def broken_at_its_end():
    yield
    print("a word before the end")
    assert False

@pytest.fixture
def printing():
    print("a word of a fixture")

def test_passes(): pass
def test_fails(): assert False
def test_fails_to_begin(broken): pass
def test_fails_to_end(broken_at_its_end): pass
def test_skips(): pytest.skip("a reason")
@pytest.mark.skip(reason="another reason")
def test_is_skipped(): pass
@pytest.mark.xfail
def test_is_expected_to_fail(): assert False
def test_prints(printing): pass
"""


def test_reports_with_news_arrive_and_others_do_not(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_all.py").write_text(TESTS)
    options = ["-c", os.devnull, "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "xdist", "-n", "1", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    received = (tmp_path / "received").read_text().splitlines()
    # A quiet setup arrives as well where the machine was held up during it.
    quiet = ("setup passed", "teardown passed")
    assert [line for line in received if not line.endswith(quiet)] == [
        "passes call passed",
        "fails call failed",
        "fails_to_begin setup failed",
        "fails_to_end call passed",
        "fails_to_end teardown failed",
        "skips call skipped",
        "is_skipped setup skipped",
        "is_expected_to_fail call skipped",
        "prints call passed",
    ]
    assert "prints setup passed" in received
    assert "a word before the end" in ran.stdout
    assert "1 failed, 3 passed, 2 skipped, 1 xfailed, 2 errors in" in ran.stdout


def report(*, when="setup", outcome="passed", sections=(), seconds=0.001):
    return pytest.TestReport(
        "test", ("file", 1, "test"), {}, outcome, None, when, sections, seconds
    )


def test_quick_and_silent_setup_is_no_news():
    assert not has_news(report())
    assert not has_news(report(when="teardown"))
    assert has_news(report(when="call"))
    assert has_news(report(outcome="failed"))
    assert has_news(report(outcome="skipped"))
    assert has_news(report(sections=[("Captured stdout setup", "a word")]))
    assert has_news(report(seconds=0.005))
