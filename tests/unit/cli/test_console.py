"""How commands run their work."""

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


@pytest.mark.parametrize("has_lines", [True, False])
def test_work_that_takes_long_says_what_it_does_where_no_bar_is_seen(
    capsys: pytest.CaptureFixture[str], has_lines: bool
) -> None:
    with console.ProgressBar("rehearsing", has_lines=has_lines) as progress:
        for doing, done in (("deciding again", 1), ("deciding again", 9), ("proving", 9)):
            progress.show(doing, done, 9)
    said = ["rehearsing: deciding again", "rehearsing: proving"]
    assert capsys.readouterr().err.splitlines() == (said if has_lines else [])
