"""What a scheduler says of a pod, without the numbers that change from node to node."""

import pytest

from app.analysis.scheduler_messages import first_cause

ALL = "cannot allocate all claims"
ROWS = [
    ("Unschedulable: 0/3 nodes are available: 3 cannot allocate all claims. preemption: x.", ALL),
    ("0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: "
     "0/1 nodes are available: 1 Preemption is not helpful for scheduling.", ALL),
    ("0/12 nodes are available: 10 Insufficient cpu, 2 cannot allocate all claims.",
     f"Insufficient cpu, {ALL}"),
    ("resource claim a/b is in the process of being allocated. no new claims to deallocate, "
     "preemption: 0/2 nodes are available: 2 x.",
     "resource claim a/b is in the process of being allocated"),
    ('waiting for resource claim "x" of 3 pods', 'waiting for resource claim "x" of 3 pods'),
    ("SchedulerError: boom", "boom"),
    ('a is invalid: status.allocation: Invalid value: {"Devices":{"Name":"}: x"}}: field is '
     "immutable", "a is invalid: status.allocation: Invalid value: …: field is immutable"),
    ("Invalid value: [1,2]: a, Invalid value: {broken: b", "Invalid value: …: a, Invalid value: "
     "{broken: b"),
    ('Invalid value: "gpu": c', 'Invalid value: "gpu": c'),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("message", "cause"), ROWS)
def test_first_cause_is_what_equal_pods_share(message, cause):
    assert first_cause(message) == cause
