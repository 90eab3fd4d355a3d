"""A write of the run alone: which recorded line follows it, and whether that would show it."""

import pytest

from app.analysis.replay.facts import Bound, ConditionSet, FieldChanged, Nominated
from app.analysis.replay.traces import Step
from app.analysis.replay.unsure.single_lines import is_apart, is_overwritten, missing_of
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant


def step(*facts):
    key = ObjectKey("", "pods", "default", "p")
    return Step(revision=1, time=Instant(0), writer="scheduler", key=key, uid="u", facts=facts)


def waits(message):
    return ConditionSet("PodScheduled", "False", "Unschedulable", message)


FIRST, SECOND, THIRD = step(waits("a")), step(waits("b")), step(waits("c"))
LABELS = step(FieldChanged("metadata.labels", "null", "1"))
TAINTS = step(FieldChanged("spec.taints", "1", "null"))


@pytest.mark.parametrize(
    ("there", "here", "missing"),
    [
        ([FIRST, THIRD], [FIRST, SECOND, THIRD], [(SECOND, THIRD)]),
        ([FIRST], [FIRST, SECOND], [(SECOND, None)]),
        ([FIRST], [FIRST, SECOND, THIRD], [(SECOND, None), (THIRD, None)]),
        ([TAINTS], [LABELS, TAINTS], [(LABELS, TAINTS)]),
        ([THIRD, FIRST], [FIRST, SECOND, THIRD], []),  # in another order
        ([FIRST, LABELS], [FIRST, SECOND], []),  # the recording has more, too
        ([FIRST], [FIRST, FIRST], [(FIRST, None)]),
    ],
)
def test_missing_writes_have_the_recorded_next_one(there, here, missing):
    assert list(missing_of(there, here)) == missing


@pytest.mark.parametrize(
    ("lost", "after", "expected"),
    [
        (SECOND, THIRD, True),
        (SECOND, step(Nominated("n")), False),  # its line shows the condition
        (step(waits("b"), Nominated("n")), THIRD, False),
        (step(waits("b"), Nominated("n")), step(waits("c"), Nominated("m")), True),
        (SECOND, step(waits("c"), Bound("n")), False),  # nobody is bound over and over
        (step(Bound("n")), THIRD, False),
        (step(), THIRD, False),
    ],
)
def test_next_write_hides_what_it_sets_again(lost, after, expected):
    assert is_overwritten(lost, after) is expected


def test_only_fields_of_their_own_may_be_written_in_the_other_order():
    assert is_apart(LABELS, TAINTS)
    assert not is_apart(SECOND, THIRD)
    assert not is_apart(step(Bound("n")), THIRD)
