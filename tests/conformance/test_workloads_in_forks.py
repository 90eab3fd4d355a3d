"""Changed workloads in forks with recorded inputs lead to pods; outcomes were fixed before the run.

At the moment two pods of each of `tpu-consumer` and `second` run, and the four of `whole` wait for
the whole mesh. Then the recording scales `second` to three and deletes it, runs `small-0` and
`small-1`, deletes `tpu-consumer`, runs `whole` and deletes it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.domain.log import Event, EventType
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.conformance.test_changes_of_forks import MOMENTS, recording, tree

CONSUMERS, SECOND_ONES, WHOLE = "tpu-consumer-64fb97c9fb", "second-6cb647f4dd", "whole-569c7d5647"
POD = {"containers": [{"name": "c", "image": "i"}]}


def workload(kind: str, group: str, replicas: int | None = 2, **more: object) -> Apply:
    labels = {"app": "extra"}
    template = {"metadata": {"labels": labels}, "spec": {**POD, **more}}
    spec: JsonObject = {"template": template}
    if replicas is not None:
        spec |= {"replicas": replicas, "selector": {"matchLabels": labels}}
    if kind == "StatefulSet":
        spec["serviceName"] = "extra"
    return Apply(tree=tree(group, kind, "extra", "tpu", spec=spec))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A change, and how many pods of each owner are made and bound after it; None: of no owner.

    `root` is the only root cause of the differences; empty where any may be.
    """

    edit: Edit
    made: Mapping[str | None, int] = field(default_factory=dict)
    bound: Mapping[str | None, int] = field(default_factory=dict)
    root: str = ""
    is_idle: bool = False


def patched(name: str, **spec: object) -> PatchEdit:
    return PatchEdit(name=name, body={"spec": spec})


ROWS = {
    "a Deployment that is scaled to none": Outcome(
        edit=patched("deployment/tpu/tpu-consumer", replicas=0),
        made={SECOND_ONES: 1},
        bound={None: 2, WHOLE: 4},
        root="tpu-consumer",
    ),
    # Of the six only two have a node of the slice; they are there already.
    "a Deployment that is scaled up": Outcome(
        edit=patched("deployment/tpu/tpu-consumer", replicas=6),
        made={CONSUMERS: 4, SECOND_ONES: 1},
        bound={None: 2, WHOLE: 4},
        root="tpu-consumer",
    ),
    # A surge of one and one unavailable: three old and two new ones wait, until the mesh is free.
    "another template of pods that wait": Outcome(
        edit=patched("deployment/tpu/whole", template={"metadata": {"labels": {"v": "2"}}}),
        made={"whole": 4, SECOND_ONES: 1},
        bound={None: 2, "whole": 4},
        root="whole",
    ),
    "a new Deployment": Outcome(
        edit=workload("Deployment", "apps/v1"),
        made={"extra": 2, SECOND_ONES: 1},
        bound={None: 2, "extra": 2, WHOLE: 4},
        root="extra",
    ),
    "a new StatefulSet": Outcome(
        edit=workload("StatefulSet", "apps/v1"),
        made={"extra": 2, SECOND_ONES: 1},
        bound={None: 2, "extra": 2, WHOLE: 4},
        root="extra",
    ),
    "a new Job": Outcome(
        edit=workload("Job", "batch/v1", None, restartPolicy="Never"),
        made={"extra": 1, SECOND_ONES: 1},
        bound={None: 2, "extra": 1, WHOLE: 4},
        root="extra",
    ),
    "a ReplicaSet that is deleted": Outcome(
        edit=DeleteEdit(name=f"replicaset/tpu/{CONSUMERS}"),
        made={"tpu-consumer": 2, SECOND_ONES: 1},
        bound={None: 2, "tpu-consumer": 2, WHOLE: 4},
    ),
    "a label of a Deployment": Outcome(
        edit=PatchEdit(
            name="deployment/tpu/tpu-consumer", body={"metadata": {"labels": {"a": "b"}}}
        ),
        made={SECOND_ONES: 1},
        bound={None: 2, WHOLE: 4},
        is_idle=True,
    ),
}

FEW = ("another template of pods that wait", "a new Deployment", "a ReplicaSet that is deleted")


def owner_of(event: Event) -> str | None:
    """The name of a pod's owner; without the hash for a set that the recording does not have."""
    owner = meta.controller(event.object)
    if owner is None or owner.kind != "ReplicaSet":
        return None if owner is None else owner.name
    recorded = (CONSUMERS, SECOND_ONES, WHOLE)
    return owner.name if owner.name in recorded else owner.name.rpartition("-")[0]


def pods(events: Iterable[Event]) -> Iterable[Event]:
    return (each for each in events if each.key[:2] == ("", "pods"))


@draws.in_turn("ways")
@pytest.mark.parametrize("name", [name if name in FEW else draws.repeated(name) for name in ROWS])
async def test_changed_workload_has_the_pods_that_were_fixed_before(name: str) -> None:
    row = ROWS[name]
    source = await recording("c")
    at = MOMENTS["c"]
    info, report = await source.fork(at, row.edit)
    events = await source.events(info)
    before = {each.uid: core.node_name(each.object) for each in pods(events[:at])}
    later = list(pods(events[at:]))
    made = Counter(owner_of(each) for each in later if each.type is EventType.OBJECT_CREATED)
    del made[None]
    fresh = {
        each.uid: owner_of(each)
        for each in later
        if core.node_name(each.object) and not before.get(each.uid)
    }
    assert (dict(made), dict(Counter(fresh.values()))) == (dict(row.made), dict(row.bound))
    if row.root:
        roots = {each.root.name.rpartition("/")[2] for each in report.diff.differences}
        assert roots == {row.root}
    if row.is_idle:
        assert not report.diff.differences
