"""How commands run their work."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.cli import console


class Report:
    """An answer that nobody may spell out: a whole report takes minutes."""

    def __repr__(self) -> str:
        raise AssertionError("the answer was spelled out")


def test_answer_of_a_command_is_handed_on_unseen() -> None:
    report = Report()

    async def work() -> Report:
        return report

    assert console.run(work) is report


@pytest.mark.parametrize("is_waiting", [False, True], ids=["amid a step", "waiting"])
def test_interrupted_work_ends_amid_a_step_and_closes_what_it_opened(
    monkeypatch: pytest.MonkeyPatch, is_waiting: bool
) -> None:
    """A log is read without a pause, which ignored Ctrl-C for minutes."""
    monkeypatch.setattr(console, "STEP_SECONDS", 0.01)
    steps: list[str] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        try:
            yield
        finally:
            # What is closed may itself wait, more than once.
            for _ in range(2):
                await asyncio.sleep(0)  # a closing that waits once
            steps.append("closed")

    async def work() -> None:
        async with opened():
            signal.raise_signal(signal.SIGINT)
            if is_waiting:
                await asyncio.Event().wait()
            for _ in range(10**9):
                pass
            steps.append("read to the end")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        console.run(work)
    assert steps == ["closed"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("has_lines", [True, False])
def test_work_that_takes_long_says_what_it_does_where_no_bar_is_seen(
    capsys: pytest.CaptureFixture[str], has_lines: bool
) -> None:
    with console.ProgressBar("rehearsing", has_lines=has_lines) as progress:
        for doing, done in (("deciding again", 1), ("deciding again", 9), ("proving", 9)):
            progress.show(doing, done, 9)
    said = ["rehearsing: deciding again", "rehearsing: proving"]
    assert capsys.readouterr().err.splitlines() == (said if has_lines else [])
