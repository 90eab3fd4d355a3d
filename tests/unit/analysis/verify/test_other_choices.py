"""Allocations of a scheduler from outside: the same, another that the rules allow, or a violation.

What is right about each device follows from how the world was made, not from an allocator.
"""

import pytest
from msgspec.structs import replace

from app.analysis.oversight import Observation
from app.analysis.verify.compare import EXAMPLES_MAX, DifferenceKind
from app.bootstrap.pacing.overseeing import oversight_of
from app.domain.log import HistoryId, HistoryInfo
from app.domain.log.records import IMPORTER_USER
from app.service.replays.verifying import VerifyOutcome, VerifyReport
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import device, key_of, result, selector, slice_
from tests.unit.analysis.verify.test_parts import verify
from tests.unit.service.test_replaying import history_of, resealed

BIG = 'device.attributes["gpu.example.com"].size == "big"'
TAINT = {"key": "worn", "value": "v", "effect": "NoSchedule"}
SCHEDULER = "system:my-scheduler"
SHARE = "11111111-1111-4111-8111-111111111111"
INFO = HistoryInfo(
    id=HistoryId(1), name="h", settings={"profile": "1.36", "controllers.off": "scheduling"}
)


def of_size(name: str, size: str, **more) -> dict:
    return device(name, attributes={"size": {"string": size}}, **more)


def world(*names: str) -> Story:
    """Two nodes; on n1 a small device, one that is held, two to choose from, and a tainted one."""
    story = Story()
    for node in ("n1", "n2"):
        story.put(key_of("nodes", node), {})
    story.put(key_of("deviceclasses", "gpu"), {"spec": {}})
    devices = [
        of_size("a-small", "small"),
        of_size("b-held", "big"),
        *(of_size(name, "big") for name in names or ("c-first", "d-second")),
        of_size("e-tainted", "big", taints=[TAINT]),
    ]
    publish(story, "n1", *devices)
    publish(story, "n2", of_size("a-far", "big"))
    claim(story, "holder")
    give(story, "holder", "b-held")
    claim(story, "x")
    return story


def publish(story: Story, node: str, *devices: dict) -> None:
    tree = slice_(node, *devices)
    del tree["spec"]["allNodes"]
    tree["spec"]["nodeName"] = node
    story.put(key_of("resourceslices", node), tree, after=1)


def claim(story: Story, name: str, **more) -> None:
    wanted = {"selectors": [{"cel": {"expression": BIG}}], "deviceClassName": "gpu", **more}
    story.claim(
        name, {"name": "r", "exactly": {"count": 1, "allocationMode": "ExactCount", **wanted}}
    )


def give(story: Story, name: str, *devices: str, pool: str = "n1", by: str = SCHEDULER) -> int:
    """The scheduler allocates devices, half a minute after all else."""
    results = [result(pool, each) for each in devices]
    return story.allocate(name, *results, node=selector(node=pool), after=30, by=by)


def observed(story: Story, info: HistoryInfo = INFO) -> list[Observation]:
    oversight = oversight_of(info, ())
    seen = oversight.take(story.events)
    return [each for each in seen + oversight.end() if each.judge.value == "decision"]


SAME = ""
CHOICES = [
    ("c-first", SAME, ""),
    ("d-second", DifferenceKind.OTHER_CHOICE, "allowed, but another choice than redra's"),
    ("b-held", DifferenceKind.VIOLATION, "b-held is allocated already"),
    ("a-small", DifferenceKind.VIOLATION, "it is not selectable for request r"),
    ("e-tainted", DifferenceKind.VIOLATION, "it has the taint worn:NoSchedule"),
    ("nowhere", DifferenceKind.VIOLATION, "nowhere is not usable"),
]


@pytest.mark.parametrize(("name", "kind", "words"), CHOICES, ids=[row[0] for row in CHOICES])
def test_each_device_that_a_scheduler_may_take_is_judged(name, kind, words) -> None:
    story = world()
    revision = give(story, "x", name)
    observations = observed(story)
    assert [each.kind for each in observations] == ([kind.value] if kind else [])
    for each in observations:
        assert (each.revision, each.is_failure) == (revision, kind is DifferenceKind.VIOLATION)
        assert each.is_other_choice is (kind is DifferenceKind.OTHER_CHOICE)
        assert words in each.message
        assert each.objects == (str(key_of("resourceclaims", "x")),)
        assert each.to_json()["failure"] is each.is_failure


@pytest.mark.parametrize(
    ("selected", "kind"),
    [
        ({"pool": "n1", "device": "d-second"}, DifferenceKind.VIOLATION),
        ({"pool": "n1", "device": "c-first"}, None),
        ({"pool": "n2"}, DifferenceKind.OTHER_CHOICE),
    ],
)
@pytest.mark.parametrize("sees_rules", [True, False])
def test_device_that_a_rule_taints_is_no_choice(selected, kind, sees_rules) -> None:
    """Where the first device is tainted, the second is the choice; without a gate none is."""
    story = world()
    spec = {"deviceSelector": selected, "taint": TAINT}
    story.put(key_of("devicetaintrules", "rule"), {"spec": spec}, after=1)
    give(story, "x", "d-second")
    gates = {"DRADeviceTaints": True, "DRADeviceTaintRules": sees_rules}
    info = replace(INFO, settings={**INFO.settings, "profile": "1.37", "gates": gates})
    observations = observed(story, info)
    expected = kind if sees_rules else DifferenceKind.OTHER_CHOICE
    assert [each.kind for each in observations] == ([expected.value] if expected else [])
    for each in observations:
        is_tainted = "it has the taint worn:NoSchedule" in each.message
        assert is_tainted is (expected is DifferenceKind.VIOLATION)


@pytest.mark.parametrize(
    ("by", "words"), [(SCHEDULER, SCHEDULER), (IMPORTER_USER, "an unrecorded user")]
)
def test_choice_says_who_made_it_where_a_recording_tells(by, words) -> None:
    story = world()
    give(story, "x", "d-second", by=by)
    [observation] = observed(story)
    assert observation.name.endswith(f" on n1, written by {words}")


def test_free_device_of_another_node_is_the_same_choice() -> None:
    """Which node is best is not asked: the allocation is decided again on the chosen one."""
    story = world()
    give(story, "x", "a-far", pool="n2")
    assert observed(story) == []


@pytest.mark.parametrize("devices", [("d-second", "c-first"), ("c-first", "d-second")])
def test_order_of_devices_is_a_choice(devices) -> None:
    story = world()
    claim(story, "pair", count=2)
    give(story, "pair", *devices)
    kinds = [each.kind for each in observed(story)]
    assert kinds == ([] if devices[0] == "c-first" else [DifferenceKind.OTHER_CHOICE.value])


def test_too_few_devices_are_no_choice() -> None:
    story = world()
    claim(story, "pair", count=2)
    give(story, "pair", "c-first")
    (only,) = observed(story)
    assert "has 1 of 2 devices" in only.message
    assert only.is_failure


def test_device_where_redra_ends_with_an_error_is_no_other_choice() -> None:
    """A selector that fails on any device that is looked at ends the attempt of the pod."""
    story = world()
    publish(story, "n1", device("a-odd"), of_size("d-second", "big"))
    give(story, "x", "d-second")
    (only,) = observed(story)
    assert (only.kind, only.is_failure) == (DifferenceKind.DIFFERENT.value, True)


def test_choice_that_only_a_known_issue_may_allow_is_not_called_allowed() -> None:
    """A request in Mi may grow (Q20), and that one device has no room for it was not said."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    shared = [of_size(name, "big", shared=True, capacity={"m": "3Gi"}) for name in ("c", "d")]
    for each in shared:
        each["capacity"]["m"]["requestPolicy"] = policy
    story = world()
    publish(story, "n1", *shared)
    for name, share in (("y", SHARE), ("z", SHARE.replace("1", "2"))):
        claim(story, name, capacity={"requests": {"m": "2049Mi"}})
        share_of_c = result("n1", "c", shareID=share, consumedCapacity={"m": "2049Mi"})
        story.allocate(name, share_of_c, node=selector(node="n1"), after=30, by=SCHEDULER)
    (only,) = [each for each in observed(story) if each.judge.value == "decision"]
    assert "allowed, but" not in only.message
    assert "only a known issue may allow: device gpu.example.com/n1/c capacity m" in only.message
    assert "(known issue Q20)" in only.message


def test_patch_leaves_open_what_a_difference_is() -> None:
    story = world()
    story.put(key_of("resourceslicepatches", "patch"), {"spec": {}}, after=1)
    give(story, "x", "d-second")
    (only,) = observed(story)
    assert (only.kind, only.is_failure) == (DifferenceKind.DIFFERENT.value, True)


async def test_verification_counts_kinds_and_fails_for_both() -> None:
    """Other choices do not crowd a violation out, in whatever number of parts it is verified."""
    names = [f"c{number:02}" for number in range(EXAMPLES_MAX + 2)]
    story = world(*names)
    for name in reversed(names[1:]):
        claim(story, f"of-{name}")
        give(story, f"of-{name}", name)
    others = {DifferenceKind.OTHER_CHOICE: EXAMPLES_MAX + 1}
    report = await verified(story)
    assert (report.allocations.kinds, report.outcome) == (others, VerifyOutcome.FAILED)
    give(story, "x", "a-small")
    report = await verified(story)
    assert report.allocations.kinds == {**others, DifferenceKind.VIOLATION: 1}
    kinds = [each.kind for each in report.allocations.differences]
    assert kinds == [DifferenceKind.OTHER_CHOICE] * EXAMPLES_MAX + [DifferenceKind.VIOLATION]
    assert [each.kind for each in observed(story)] == [kind.value for kind in kinds]


async def verified(story: Story) -> VerifyReport:
    """The report, which is the same if the work is divided."""
    log, info = await history_of(resealed(story.events, lambda event, tree: None))
    alone, _ = await verify(log, info)
    divided, parts = await verify(log, info, parts=3)
    assert parts
    assert divided.to_json() == alone.to_json()
    return alone
