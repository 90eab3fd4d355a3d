"""The pause before the process that writes the view tables is started again."""

from app.bootstrap.projecting import RESTART_SECONDS, RESTART_SECONDS_MAX, restart_pause


def test_first_restart_comes_soon() -> None:
    assert restart_pause(0) == RESTART_SECONDS


def test_each_further_failure_doubles_the_pause_up_to_a_bound() -> None:
    assert [restart_pause(failures) for failures in (1, 2, 3)] == [2.0, 4.0, 8.0]
    assert restart_pause(10_000) == RESTART_SECONDS_MAX
