"""A proposed help for a refused pod of a recording makes the pod run in a fork.

Each recording is forked right before the first refusal of a pod. Where the fork without a change
places the pod, the refusal was a matter of milliseconds or of what came a moment later, and the
next refused pod is taken. Otherwise what is proposed is done as a person would do it, and no more.

Recordings come by day.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from app.analysis.diff.sides import Side
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.analysis.explain import node_answers, untried
from app.domain.allocation.reasons.changes import (
    EditRequest,
    EnlargeCounter,
    ReleaseClaim,
    RemoveRule,
)
from app.domain.allocation.reasons.counterfactual import Help
from app.domain.allocation.reasons.pool_repairs import CountSlices, PublishOnce, RenameCounterSets
from app.domain.controllers import registry
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import EventType, HistoryInfo, ObjectKey
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.reconciling import ReplayTimeline
from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.conformance.test_decide_recordings import PARTS
from tests.conformance.test_forks_of_recordings import Recording, recorded
from tests.kept import Kept

pytestmark = pytest.mark.timeout(0)
"""Forks are bounded in number; how long they take is a matter of the machine."""

WAIT = 90 * SECOND
"""The longest back-off of the queue, several times over."""

HELPS_MAX = 3 if draws.WHOLE else 1
"""Proposals that are tried of one pod; the first is the one with the fewest changes."""

PODS_MAX = 8
"""Refused pods that are looked at in one recording."""

NAMES = RECORDINGS if draws.WHOLE else PARTS

PLACED = ("i-soak-short", "j-api-versions")
"""Recordings in which no pod waits for a cause: the fork without a change places each of them."""


@dataclass(frozen=True)
class Refused:
    """A pod that was refused, and the revision before the first sign of it."""

    key: ObjectKey
    before: int


_RECORDINGS: Kept[str, Recording] = Kept()


async def recording_of(name: str) -> Recording:
    """A recording, imported once; forks do not change it."""
    if name not in _RECORDINGS:
        _RECORDINGS[name] = await recorded(name)
    return _RECORDINGS[name]


async def refusals(recording: Recording) -> list[Refused]:
    """The refused pods, in the order in which they were first refused."""
    first: dict[ObjectKey, int] = {}
    for event in await recording.events(recording.info):
        if not event.is_about_object or event.type is EventType.OBJECT_DELETED:
            continue
        if (event.key.group, event.key.resource) == api_resources.PODS:
            condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
            if condition is not None and condition.reason == "Unschedulable":
                first.setdefault(event.key, event.revision)
        elif event.key.resource == "events":
            report = core.event_object(event.object)
            if report.subject.kind == "Pod" and report.reason == "FailedScheduling":
                subject = report.subject
                key = ObjectKey(*api_resources.PODS, subject.namespace, subject.name)
                first.setdefault(key, event.revision)
    return [Refused(key, revision - 1) for key, revision in first.items()]


def rules_of(line: ReplayTimeline, info: HistoryInfo) -> SchedulerRules:
    options = registry.options_from(info.settings)
    return Side(name="", profile=line.rules.profile, options=options).rules


def proposals(line: ReplayTimeline, info: HistoryInfo, tree: JsonObject) -> list[Help]:
    """What would help the pod on any node, the fewest changes first."""
    helps: list[Help] = []
    asked = node_answers.ask_nodes(rules_of(line, info), line.views, tree, now=line.now, node="")
    for answer in asked:
        if answer is None or not answer.text:
            continue
        steps = answer.looking_for_help()
        try:
            while True:
                next(steps)
        except StopIteration as done:
            helps += done.value
    return sorted(helps, key=lambda one: len(one.changes))


def edits_of(help_: Help, line: ReplayTimeline) -> list[Edit]:
    """The proposal as a person does it: pods that go, rules that go, slices as they should be."""
    edits: list[Edit] = []
    for change in help_.changes:
        match change:
            case ReleaseClaim(claim=name):
                edits += (DeleteEdit(name=f"pod/{user}") for user in users(line, name))
            case RemoveRule(rule=name):
                edits.append(DeleteEdit(name=f"devicetaintrule/{name}"))
            case RenameCounterSets(pool=pool, renamed=renamed):
                names = dict(renamed)
                for key, spec in slices(line, pool):
                    for device in spec.get("devices", ()):
                        for entry in device.get("consumesCounters", ()):
                            old = entry["counterSet"]
                            entry["counterSet"] = names.get(old, old)
                    edits.append(PatchEdit(name=f"resourceslice/{key}", body={"spec": spec}))
            case CountSlices(pool=pool, count=count):
                for key, spec in newest(slices(line, pool)):
                    spec["pool"]["resourceSliceCount"] = count
                    edits.append(PatchEdit(name=f"resourceslice/{key}", body={"spec": spec}))
            case PublishOnce(pool=pool):
                names: set[str] = set()
                for key, spec in newest(slices(line, pool)):
                    spec["devices"] = [one for one in spec["devices"] if one["name"] not in names]
                    names |= {one["name"] for one in spec["devices"]}
                    edits.append(PatchEdit(name=f"resourceslice/{key}", body={"spec": spec}))
            case EnlargeCounter() | EditRequest():
                raise AssertionError(f"no recording has this first: {change.text}")
            case _:
                raise AssertionError(change.text)
    return edits


def users(line: ReplayTimeline, claim: str) -> Iterator[str]:
    namespace, _, name = claim.partition("/")
    tree = line.views.objects.get(ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, name))
    assert tree is not None, claim
    for each in dra.consumers(tree):
        yield f"{namespace}/{each.name}"


def newest(published: Iterable[tuple[str, JsonObject]]) -> list[tuple[str, JsonObject]]:
    everything = list(published)
    highest = max(spec["pool"]["generation"] for _, spec in everything)
    return [(key, spec) for key, spec in everything if spec["pool"]["generation"] == highest]


def slices(line: ReplayTimeline, pool: Iterable[str]) -> Iterator[tuple[str, JsonObject]]:
    for key in line.views.objects.keys(*api_resources.RESOURCE_SLICES):
        tree = line.views.objects.get(key) or {}
        if (dra.driver(tree), dra.pool_name(tree)) == tuple(pool):
            yield key.name, tree["spec"]


def a_class(name: str) -> JsonObject:
    """A DeviceClass that selects every device."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {},
    }


def runs(line: ReplayTimeline, key: ObjectKey) -> bool:
    tree = line.views.objects.get(key)
    return tree is not None and bool(core.node_name(tree))


async def forked(name: str, at: int, *edits: Edit) -> tuple[ReplayTimeline, HistoryInfo]:
    recording = await recording_of(name)
    line = await recording.fork(at, *edits)
    line.advance(Instant(line.now + WAIT))
    return line, recording.info


@dataclass(frozen=True)
class Stuck:
    """A refused pod that waits in a fork without a change, and the changes proposed for it."""

    refused: Refused
    line: ReplayTimeline
    helps: list[Help]
    classes: list[str]


async def first_stuck(name: str) -> Stuck | None:
    """The first refused pod that the fork without a change does not place; None if it places all.

    That fork is the proof that nothing stood in the way of the others but milliseconds, or what
    came a moment later.
    """
    for refused in (await refusals(await recording_of(name)))[:PODS_MAX]:
        control, info = await forked(name, refused.before)
        if runs(control, refused.key):
            continue
        line = await (await recording_of(name)).fork(refused.before)
        tree = line.views.objects.get(refused.key)
        assert tree is not None
        classes = untried.missing_classes(line.views, tree)
        helps = [] if classes else proposals(line, info, tree)
        return Stuck(refused, line, helps, classes)
    return None


@draws.BY_DAY
@pytest.mark.parametrize("name", NAMES)
async def test_refused_pod_runs_once_what_is_proposed_is_done(name: str) -> None:
    stuck = await first_stuck(name)
    if stuck is None:
        assert name in PLACED
        return
    assert name not in PLACED
    key = stuck.refused.key
    proposed = [(one.text, edits_of(one, stuck.line)) for one in stuck.helps[:HELPS_MAX]]
    if stuck.classes:
        proposed.append(("the classes", [Apply(tree=a_class(name)) for name in stuck.classes]))
    assert proposed, f"no change is proposed for {key}"
    for text, edits in proposed:
        changed, _ = await forked(name, stuck.refused.before, *edits)
        assert runs(changed, key), f"{key} does not run after {text}"
