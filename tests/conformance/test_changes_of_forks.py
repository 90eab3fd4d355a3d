"""Kinds of changes in forks with recorded inputs, each with its outcome fixed before the run.

The outcomes follow from the raw files of the recordings and from docs/parity: who fits after the
change, who is evicted, which inputs have lost their object, and the change as the only root.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from app.analysis.diff.report import DiffReport
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.bootstrap.rules import rules_of
from app.domain.errors import InputError
from app.domain.log import Event, EventType
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from app.service.diffing import Comparison, ComparisonAspect, Ending
from app.service.forking import ForkSwitches
from tests import draws
from tests.conformance.test_forks_with_recorded_inputs import Recording, recorded
from tests.kept import Kept

GPU = "gpu.example.com"
MODES = {"a": "a-quickstart", "c": "c-multihost-tpu", "e": "e-taints", "j": "j-api-versions"}
MOMENTS = {"a": 222, "c": 130, "e": 232, "j": 48}
"""a: all eight devices are in use, pod8 waits, pod5 has just finished. c: four pods wait for the
whole mesh. e: more-1 to more-3 wait. j: three of five pods run, two devices are free."""

BASIC = "basic-resourceclaimtemplate"
BY_SLICES = frozenset(("plain-0", "plain-1", "plain-2", "ns-0", "any-0", "tol12-0"))
"""The pods of e that taints in slices evict before the first rule."""

SEEN = ForkSwitches(quirks={"c24": False})
"""The scheduler of 1.36.2 ignores rules; with this it does not."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change and its outcome; `roots` are the names of root causes, None where any may be."""

    where: str
    edits: tuple[Edit, ...] = ()
    switches: ForkSwitches = ForkSwitches()
    devices: dict[str, str] = field(default_factory=dict)
    run: frozenset[str] = frozenset()
    wait: frozenset[str] = frozenset()
    evicted: frozenset[str] | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    roots: frozenset[str] | None = None
    is_same: bool = False


def tree(api_version: str, kind: str, name: str, namespace: str = "", **rest: object) -> JsonObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def slice_(name: str, pool: str, count: int, generation: int = 1, slices: int = 1) -> Apply:
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(count)]
    pool_tree = {"name": pool, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": GPU, "nodeName": pool, "pool": pool_tree, "devices": devices}
    return Apply(tree=tree("resource.k8s.io/v1", "ResourceSlice", name, spec=spec))


def node(name: str) -> Apply:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    return Apply(tree=tree("v1", "Node", name, status=status))


def rule(effect: str, **selector: str) -> Apply:
    spec = {"deviceSelector": {"driver": GPU, **selector}, "taint": {"key": "k", "effect": effect}}
    return Apply(tree=tree("resource.k8s.io/v1beta2", "DeviceTaintRule", "r", spec=spec))


def selecting(expression: str) -> JsonObject:
    return {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


def claim(name: str) -> Apply:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": GPU}}]
    spec = {"devices": {"requests": requests}}
    return Apply(tree=tree("resource.k8s.io/v1", "ResourceClaim", name, BASIC, spec=spec))


LATE = frozenset(("early-template", "early-claim"))
W2 = "worker-2-gpu.example.com-00001"

ROWS: dict[str, Change] = {
    "a node with a slice": Change(
        where="a",
        edits=(node("worker-3"), slice_("w3", "worker-3", 2)),
        devices={"pod8": "worker-3/gpu-0"},
        roots=frozenset(("worker-3",)),
    ),
    "a claim that a user makes later": Change(
        where="a",
        edits=(claim("late-claim"),),
        run=LATE,
        left_out={"late-claim": "whose name another one has here"},
        roots=frozenset(("late-claim",)),
    ),
    "a quota": Change(
        where="a",
        edits=(Apply(tree=tree("v1", "ResourceQuota", "q", BASIC, spec={"hard": {"pods": "9"}})),),
        run=frozenset(("pod8", *LATE)),
        left_out={"too-many": "exceeded quota: q"},
        roots=frozenset(("q",)),
    ),
    # The claim controller's claim is refused, too.
    "a quota of devices": Change(
        where="a",
        edits=(
            Apply(
                tree=tree(
                    "v1",
                    "ResourceQuota",
                    "q",
                    BASIC,
                    spec={"hard": {f"{GPU}.deviceclass.resource.k8s.io/devices": "3"}},
                )
            ),
        ),
        run=frozenset(("pod8",)),
        wait=LATE,
        left_out={"late-claim": "exceeded quota: q", "too-many": "exceeded quota: q"},
        roots=frozenset(("q",)),
    ),
    # No pod that is made later has a limit.
    "a limit range": Change(
        where="a",
        edits=(
            Apply(
                tree=tree(
                    "v1",
                    "LimitRange",
                    "lr",
                    BASIC,
                    spec={"limits": [{"type": "Container", "max": {"cpu": "1m"}}]},
                )
            ),
        ),
        run=frozenset(("pod8",)),
        wait=LATE,
        left_out={"too-many": "maximum cpu usage per Container"},
        roots=frozenset(("lr",)),
    ),
    "a namespace that is deleted": Change(
        where="a",
        edits=(DeleteEdit(name=f"namespace/{BASIC}"),),
        wait=LATE,
        left_out={"late-claim": "in a namespace that no longer exists here"},
        roots=frozenset((BASIC,)),
    ),
    "a class that is deleted": Change(
        where="a",
        edits=(DeleteEdit(name=f"deviceclass/{GPU}"),),
        wait=frozenset(("pod8", *LATE)),
        roots=frozenset((GPU,)),
    ),
    "a rule that evicts": Change(
        where="a",
        edits=(rule("NoExecute", pool="worker-2"),),
        switches=SEEN,
        devices={"pod8": "worker-1/gpu-2"},
        evicted=frozenset(("pod2", "pod3", "pod7")),
        roots=frozenset(("r",)),
    ),
    "an incomplete pool": Change(
        where="a",
        edits=(slice_(W2, "worker-2", 4, generation=2, slices=2),),
        devices={"pod8": "worker-1/gpu-2"},
        evicted=frozenset(),
    ),
    "a cordon": Change(
        where="a",
        edits=(PatchEdit(name="node/worker-2", body={"spec": {"unschedulable": True}}),),
        devices={"pod8": "worker-1/gpu-2"},
        evicted=frozenset(),
        roots=frozenset(("worker-2",)),
    ),
    "a newer generation with more devices": Change(
        where="e",
        edits=(slice_("worker-1-gpu", "worker-1", 7, generation=2),),
        run=frozenset(("more-1", "more-2", "more-3")),
    ),
    "the quirk that the recording shows to be off": Change(
        where="e",
        switches=ForkSwitches(quirks={"c24": True}),
        run=frozenset(("blocked",)),
        roots=frozenset(("settings",)),
    ),
    "a node with a slice, among rules": Change(
        where="e",
        edits=(node("worker-3"), slice_("w3", "worker-3", 3)),
        run=frozenset(("more-1", "more-2", "more-3")),
        roots=frozenset(("worker-3",)),
    ),
    "a rule for all devices": Change(
        where="e",
        edits=(rule("NoSchedule"),),
        evicted=BY_SLICES,
        wait=frozenset(("late-12", "late-plain", "r-any", "blocked", "n-0", "n-3", "sh-0")),
        roots=frozenset(("r",)),
    ),
    "no taints": Change(
        where="e", switches=ForkSwitches(gates={"DRADeviceTaints": False}), evicted=frozenset()
    ),
    "a template that is deleted": Change(
        where="e",
        edits=(DeleteEdit(name="resourceclaimtemplate/taints/plain"),),
        run=frozenset(("late-12", "sh-0")),
        wait=frozenset(("late-plain", "n-0", "blocked")),
        roots=frozenset(("plain",)),
    ),
    "a class of one pod that is deleted": Change(
        where="j",
        edits=(DeleteEdit(name="deviceclass/beta1"),),
        run=frozenset(("p-b2",)),
        wait=frozenset(("p-b1",)),
        roots=frozenset(("beta1",)),
    ),
    "a pod that is deleted": Change(
        where="j",
        edits=(DeleteEdit(name="pod/versions/p-e2"),),
        run=frozenset(("p-b1", "p-b2")),
        left_out={"p-e2": "no longer exists here"},
        roots=frozenset(("p-e2",)),
    ),
    "a rule for one device": Change(
        where="j",
        edits=(rule("NoExecute", device="gpu-0"),),
        switches=SEEN,
        evicted=frozenset(("p-first",)),
        run=frozenset(("p-b1", "p-b2")),
        roots=frozenset(("r",)),
    ),
    "a gate of another feature": Change(
        where="j", switches=ForkSwitches(gates={"DRAAdminAccess": False}), is_same=True
    ),
    "all slices of a driver that are deleted": Change(
        where="c",
        edits=tuple(
            DeleteEdit(name=f"resourceslice/tpu-slice-{n}") for n in ("counters", "devices")
        ),
        wait=frozenset(("small-0", "small-1")),
        evicted=frozenset(),
    ),
    "a claim that waits and is deleted": Change(
        where="c",
        edits=(DeleteEdit(name="resourceclaim/tpu/whole"),),
        run=frozenset(("small-0", "small-1")),
        roots=frozenset(("whole",)),
    ),
}

FEW = (
    "a claim that a user makes later",
    "a quota of devices",
    "a namespace that is deleted",
    "a rule that evicts",
    "the quirk that the recording shows to be off",
    "a newer generation with more devices",
    "a class of one pod that is deleted",
)
"""The rows that showed defects; the others repeat their paths."""

_RECORDINGS: Kept[str, Recording] = Kept()


async def recording(where: str) -> Recording:
    """The recording, imported once; forks never change it."""
    if where not in _RECORDINGS:
        _RECORDINGS[where] = await recorded(MODES[where], "1.36.2")
    return _RECORDINGS[where]


def bound(events: Iterable[Event]) -> set[str]:
    return {
        each.key.name for each in events if each.key[1] == "pods" and core.node_name(each.object)
    }


def devices(events: Iterable[Event]) -> dict[str, str]:
    """The last device of each pod."""
    found = {}
    for event in events:
        if event.key.resource == "resourceclaims" and event.is_about_object:
            for result in dra.results(event.object):
                for pod in dra.consumers(event.object):
                    found[pod.name] = f"{result.pool}/{result.device}"
    return found


def evicted(events: Iterable[Event]) -> set[str]:
    return {
        event.key.name
        for event in events
        if event.key.resource == "pods"
        for each in meta.conditions(event.object)
        if each.reason == "DeletionByDeviceTaintManager"
    }


@draws.in_turn("ways")
@pytest.mark.parametrize("name", [name if name in FEW else draws.repeated(name) for name in ROWS])
async def test_change_has_the_outcome_that_was_fixed_before(name: str) -> None:
    change = ROWS[name]
    source = await recording(change.where)
    at = MOMENTS[change.where]
    before = await source.events(source.info)
    info, report = await source.fork(at, *change.edits, switches=change.switches)
    events = await source.events(info)
    assert await source.events(source.info) == before
    later = [each for each in events[at:] if each.is_about_object]
    given = devices(later)
    assert {pod: given.get(pod) for pod in change.devices} == change.devices
    assert change.run <= bound(events)
    assert not change.wait & bound(events)
    if change.evicted is not None:
        assert evicted(later) == change.evicted
    why = {each.key.name: each.why for each in report.unapplied}
    assert {
        key: text in why.get(key, "") for key, text in change.left_out.items()
    } == dict.fromkeys(change.left_out, True)
    assert report.diff.is_same or not change.is_same
    if change.roots is not None:
        roots = {each.root.name.rpartition("/")[2] for each in report.diff.differences}
        assert roots == change.roots


@draws.in_turn("ways")
async def test_freed_device_is_given_at_once_where_only_the_change_freed_it() -> None:
    """The claim of an evicted pod is released when the pod is gone, not when it was recorded."""
    source = await recording("a")
    info, _ = await source.fork(222, rule("NoExecute", pool="worker-2"), switches=SEEN)
    events = (await source.events(info))[222:]
    gone = {
        each.key.name: each.stamp.time for each in events if each.type is EventType.OBJECT_DELETED
    }
    claims = {
        name: time for name, time in gone.items() if name.startswith(("pod2-", "pod3-", "pod7-"))
    }
    assert len(claims) == 3
    assert max(gone["pod2"], gone["pod3"], gone["pod7"]) < events[0].stamp.time + 1_000_000
    for name, time in claims.items():
        assert time - gone[name.partition("-")[0]] < 1_000_000


@draws.in_turn("ways")
async def test_contents_of_a_namespace_go_when_the_change_deletes_it() -> None:
    """Five seconds later, as upstream; the recording deletes the namespace 22 s later."""
    source = await recording("a")
    info, _ = await source.fork(222, DeleteEdit(name=f"namespace/{BASIC}"))
    events = (await source.events(info))[222:]
    moment = events[0].stamp.time
    gone = [
        each.stamp.time - moment
        for each in events
        if each.type is EventType.OBJECT_DELETED and each.key[1] == "pods" and each.key[2] == BASIC
    ]
    assert len(gone) == 9
    assert max(gone) < 6_000_000


@draws.in_turn("ways")
@pytest.mark.parametrize("at", [310, draws.repeated(430)])
async def test_fork_begins_where_a_claim_is_left_of_a_pod_that_is_gone(at: int) -> None:
    source = await recording("e")
    _, report = await source.fork(at)
    assert report.diff.is_same


@draws.in_turn("ways")
async def test_gate_that_cannot_be_switched_makes_no_fork() -> None:
    source = await recording("j")
    count = len(await source.log.histories())
    switches = ForkSwitches(gates={"DynamicResourceAllocation": False})
    with pytest.raises(InputError, match="cannot be switched off: it is locked on"):
        await source.fork(48, switches=switches)
    assert len(await source.log.histories()) == count


@draws.in_turn("ways")
async def test_what_uses_an_unchanged_quota_up_is_the_root_of_what_it_refuses() -> None:
    """Both forks have the quota, with room for what is recorded; one has a pod more."""
    source = await recording("a")
    quota = Apply(tree=tree("v1", "ResourceQuota", "q", BASIC, spec={"hard": {"pods": "10"}}))
    containers = [{"name": "c", "image": "i"}]
    extra = Apply(tree=tree("v1", "Pod", "extra", BASIC, spec={"containers": containers}))
    (without, report), (having, _) = [
        await source.fork(222, *edits) for edits in ((quota,), (quota, extra))
    ]
    assert [each.key.name for each in report.unapplied if "quota" in each.why] == []
    comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(source.info).schemas)
    diff = await diffing.compare_histories(
        source.log, Ending(history=without), Ending(history=having), comparison
    )
    assert isinstance(diff, DiffReport)
    assert {each.pair.name.rpartition("/")[2] for each in diff.differences} == {"extra", "too-many"}
    assert {each.root.name for each in diff.differences} == {f"pods/{BASIC}/extra"}
    assert diff.unexplained == 0
    assert [(each.side, each.by.name) for each in diff.refused.values()] == [("b", "extra")]
