"""How commands run their work."""

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
