"""The first run of a decide replay: with all controllers, or without those that may start later."""

import pytest

from app.analysis.replay.classes import End
from app.analysis.replay.differences import compare
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.service.replays.deciding.replay import first_run
from tests.unit.analysis.replay.test_ends import END, EVICTION, instant, trace

CLAIMS = "resource-claim-controller"
SCHEDULER = "scheduler"
PLAIN = Variant(is_paced=False)


class Made:
    """A run that made a trace."""

    def __init__(self, made: Trace) -> None:
        self.trace = made


def runner(plain: Trace, later: Trace | None):
    """Runs of a history, and the variants of them that were made."""
    variants: list[Variant] = []

    async def run(variant: Variant) -> Made:
        variants.append(variant)
        made = later if variant.unstarted or variant.absent else plain
        assert made is not None
        return Made(made)

    return run, variants


def ended(*, is_of_recording: bool = True) -> End:
    return End(at=instant(END), later=Trace(), is_of_recording=is_of_recording)


@pytest.mark.parametrize(
    ("recorded", "plain", "later", "end", "unstarted"),
    [
        pytest.param(trace(95), trace(95), None, ended(), None, id="nothing differs"),
        pytest.param(trace(), trace(95), trace(), ended(), {EVICTION}, id="never at work"),
        pytest.param(trace(), trace(95), trace(95), ended(), set(), id="no better without it"),
        pytest.param(
            trace(), trace(95), None, ended(is_of_recording=False), None, id="an earlier moment"
        ),
        pytest.param(trace(), trace(20), None, ended(), None, id="long before the end"),
        pytest.param(
            trace(20, writer=CLAIMS), trace(95), None, ended(), None, id="its manager was up"
        ),
    ],
)
async def test_controller_that_may_start_after_the_end_is_left_out_where_that_explains_more(
    recorded: Trace, plain: Trace, later: Trace | None, end: End, unstarted: set[str] | None
) -> None:
    run, variants = runner(plain, later)
    variant, made, compared = await first_run(run, PLAIN, compare, recorded, end)
    assert len(variants) == (1 if unstarted is None else 2)
    assert (variants[0], variant.is_paced) == (PLAIN, False)
    assert variant.unstarted == (unstarted or frozenset())
    assert made.trace is (later if unstarted else plain)
    assert compared.different == compare(recorded, made.trace).different


async def test_controller_that_the_recording_leaves_out_is_left_out_if_it_was_at_work() -> None:
    run, variants = runner(trace(20), trace())
    left_out = frozenset({EVICTION, "nobody"})
    variant, made, compared = await first_run(run, PLAIN, compare, trace(), ended(), left_out)
    assert [each.unstarted for each in variants] == [frozenset(), {EVICTION}]
    assert (variant, compared.different) == (variants[1], {})
    run, variants = runner(trace(), None)
    variant, made, compared = await first_run(run, PLAIN, compare, trace(), ended(), left_out)
    assert variants == [PLAIN]
    assert (variant, compared.different) == (PLAIN, {})
    assert made.trace.writes == {}


@pytest.mark.parametrize(
    ("recorded", "plain", "is_own", "is_absent"),
    [
        pytest.param(trace(), trace(20, writer=SCHEDULER), True, True, id="never at work"),
        pytest.param(trace(), trace(20, writer=SCHEDULER), False, False, id="in a recording"),
        pytest.param(
            trace(), trace(95, writer=SCHEDULER), True, False, id="shortly before the end"
        ),
        pytest.param(trace(), trace(20), True, False, id="another controller"),
        pytest.param(
            trace(90, writer=SCHEDULER),
            trace(20, writer=SCHEDULER),
            True,
            False,
            id="at work later",
        ),
    ],
)
async def test_scheduler_that_was_not_at_work_in_a_history_of_its_own_is_left_out(
    recorded: Trace, plain: Trace, *, is_own: bool, is_absent: bool
) -> None:
    run, variants = runner(plain, trace())
    variant, made, _ = await first_run(run, PLAIN, compare, recorded, ended(), is_own=is_own)
    assert variant.absent == ({SCHEDULER} if is_absent else frozenset())
    assert not is_absent or (made.trace is not plain and len(variants) == 2)
