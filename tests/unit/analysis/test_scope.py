"""Which entries of a timeline are in a scope, on a cluster with two namespaces and two nodes."""

import difflib
import functools
import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis import scope
from app.analysis.scope import Scope
from app.domain.errors import InputError
from app.domain.log import Event, EventType, Head, ObjectKey, Revision
from app.domain.log.projection import Row
from app.domain.values import moments
from app.domain.values.timestamps import Instant
from app.service import timelines
from projections.objects import ObjectsProjection
from projections.timeline import KINDS, TimelineProjection
from tests import whole_timelines
from tests.cluster import DRIVER, T0, Cluster
from tests.unit.service.test_replaying import history_of


def story() -> Cluster:
    """`a/mine` has gpu-0 of n1, `b/theirs` gpu-0 of n2; a rule on each, and a cordon of n2."""
    cluster = Cluster(namespaces=("a", "b"))
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node, 2)
    cluster.device_class()
    for number, namespace in enumerate(("a", "b"), 1):
        spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}
        cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "claim", "namespace": namespace},
                "spec": spec,
            }
        )
        cluster.pod(
            f"pod-{namespace}",
            namespace=namespace,
            claim="claim",
            nodeSelector={"kubernetes.io/hostname": f"n{number}"},
        )
        cluster.settle()
    cluster.wait(60)
    for node in ("n1", "n2"):
        cluster.rule(f"rule-{node}", effect="NoSchedule", selector={"pool": node})
    cluster.wait(60)
    cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    return cluster.settle()


async def told(**wanted: Any) -> list[dict[str, Any]]:
    log, info = await history_of(story().line.events)
    return await whole_timelines.timeline(log, info, page_max=7, scope=Scope(**wanted))


def subjects(rows: list[dict[str, Any]]) -> set[str]:
    return {f"{row['resource']}/{row['name']}" for row in rows}


async def test_namespace_keeps_what_touches_its_pods() -> None:
    found = subjects(await told(namespace="b"))
    assert {"pods/pod-b", "resourceclaims/claim", "devicetaintrules/rule-n2", "nodes/n2"} <= found
    assert not found & {"pods/pod-a", "devicetaintrules/rule-n1", "resourceslices/n1-slice"}


async def test_namespace_without_objects_is_known_and_keeps_what_is_about_itself() -> None:
    """A namespace in which nothing was recorded, as of a cluster whose Secrets nobody reads."""
    cluster = Cluster(namespaces=("a", "empty"))
    log, info = await history_of(cluster.settle().line.events)
    for wanted in (Scope(namespace="empty"), Scope(namespace="empty", resource="namespaces")):
        rows = await whole_timelines.timeline(log, info, page_max=7, scope=wanted)
        assert subjects(rows) == {"namespaces/empty"}


async def test_node_keeps_its_pods_claims_slices_and_rules() -> None:
    found = subjects(await told(node="n1"))
    assert {
        "nodes/n1",
        "pods/pod-a",
        "resourceslices/n1-slice",
        "devicetaintrules/rule-n1",
    } <= found
    assert not found & {"nodes/n2", "pods/pod-b", "devicetaintrules/rule-n2"}


@pytest.mark.parametrize("name", [f"{DRIVER}/n1/gpu-0", "n1/gpu-0"])
async def test_device_keeps_its_claims_and_rules(name: str) -> None:
    found = await told(device=name)
    assert subjects(found) == {
        "resourceslices/n1-slice", "resourceclaims/claim", "devicetaintrules/rule-n1",
    }  # fmt: skip
    assert {row["namespace"] for row in found} == {"", "a"}


async def test_time_and_kind_bound_what_is_told() -> None:
    end = Instant(T0 + 120_000_000)
    since = moments.parse("1m30s", end)
    rows = await told(since=since, until=moments.parse("30s", end))
    assert subjects(rows) == {"devicetaintrules/rule-n1", "devicetaintrules/rule-n2"}
    assert {row["kind"] for row in await told(kinds=frozenset(("RuleCreated",)))} == {"RuleCreated"}


async def test_revisions_bound_what_is_told() -> None:
    rows = await told(first=5, final=9)
    assert rows
    assert all(5 <= row["revision"] <= 9 for row in rows)


@pytest.mark.parametrize("kind", ["PodEvicted", "ConflictObserved", "AttemptFailed", "PodFinished"])
async def test_kind_of_entries_that_does_not_occur_is_no_wrong_name(kind: str) -> None:
    assert await told(kinds=frozenset((kind,))) == []


@pytest.mark.parametrize("part", ["scheduler", "Kube-Sched", "alice"])
async def test_author_keeps_what_it_wrote_by_any_part_of_its_name(part: str) -> None:
    rows, whole = await told(author=part), await told()
    assert rows == [row for row in whole if part.lower() in row["actor"].lower()]
    assert 0 < len(rows) < len(whole)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"namespace": "bb"}, "namespace 'bb' does not occur in the history; do you mean b"),
        ({"node": "n3"}, "node 'n3' does not occur in the history; do you mean n"),
        ({"name": "pod-c"}, "name 'pod-c' does not occur in the history; do you mean pod-"),
        ({"kinds": frozenset(("PodSchedule",))}, "do you mean PodScheduled"),
        ({"kinds": frozenset(("PodEvictd",))}, "do you mean PodEvicted"),
        ({"device": f"{DRIVER}/n1/gpu-7"}, f"do you mean {DRIVER}/n1/gpu-"),
        ({"author": "alcie"}, "author 'alcie' does not occur in the history; do you mean alice"),
        ({"author": "device-taint-evicton"}, "do you mean device-taint-eviction-controller"),
    ],
)
async def test_unknown_name_is_refused_with_the_nearest(wanted: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as refused:
        await told(**wanted)
    assert text in str(refused.value)


@functools.cache
def ended_story() -> Sequence[Event]:
    """The events of the story with further slices of pool n1: on n2, on no node, without devices.

    The class changes, and a slice and a pod are deleted at last.
    """
    cluster = story()
    anywhere: dict[str, Any] = {"nodeName": None, "allNodes": True}
    cluster.slice("n2", [{"name": "gpu-7"}], name="other", pool="n1")
    cluster.slice("n1", [{"name": "gpu-8"}], name="anywhere", pool="n1", **anywhere)
    cluster.slice("n1", [], name="empty", pool="n1", **anywhere)
    cluster.patch("deviceclasses", "gpu", {"metadata": {"labels": {"team": "red"}}}, namespace="")
    cluster.delete("deviceclasses", "gpu", "")
    cluster.delete("resourceslices", "n2-slice", "")
    cluster.delete("pods", "pod-a", "a")
    return tuple(cluster.settle().line.events)


def concerned(objects: dict[ObjectKey, Any], key: ObjectKey) -> Iterator[tuple[str, str]]:
    """Namespaces, nodes and devices that an object concerns, read from all objects there are."""
    of = {kind: [one for one in objects if one.resource == kind] for kind in (
        "pods", "resourceclaims", "resourceslices")}  # fmt: skip
    specs = [objects[one]["spec"] for one in of["resourceslices"]]
    published = {
        (spec["driver"], spec["pool"]["name"], device["name"]): spec
        for spec in specs
        for device in spec.get("devices", [])
    }

    def held(claim: ObjectKey) -> set[tuple[str, str, str]]:
        results = objects[claim].get("status", {}).get("allocation", {}).get("devices", {})
        return {
            (each["driver"], each["pool"], each["device"]) for each in results.get("results", [])
        }

    def of_devices(devices: set[tuple[str, str, str]], node: str = "") -> Iterator[tuple[str, str]]:
        yield from (("device", "/".join(device)) for device in devices)
        pools = {device[:2] for device in devices}
        there = [spec for spec in specs if (spec["driver"], spec["pool"]["name"]) in pools]
        yield from (("node", name) for name in ([node] if node else map(node_name, there)))

    def node_name(spec: Any) -> str:
        name: str = spec.get("nodeName", "")
        return name

    def users(devices: set[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
        yield from (("namespace", one.namespace) for one in of["resourceclaims"]
                    if held(one) & devices)  # fmt: skip

    yield "namespace", key.namespace
    if key.resource == "nodes":
        yield "node", key.name
        yield from (("namespace", pod.namespace) for pod in of["pods"]
                    if objects[pod]["spec"].get("nodeName") == key.name)  # fmt: skip
    if key.resource == "deviceclasses":
        for claim in of["resourceclaims"]:
            for request in objects[claim]["spec"]["devices"]["requests"]:
                if request["exactly"]["deviceClassName"] == key.name:
                    yield "namespace", claim.namespace
    if key.resource == "namespaces":
        yield "namespace", key.name
    if key not in objects:
        return
    spec = objects[key].get("spec", {})
    if key.resource == "pods":
        yield "node", node_name(spec)
    if key.resource == "resourceclaims":
        yield from of_devices(held(key))
    if key.resource == "resourceslices":
        pool = spec["driver"], spec["pool"]["name"]
        devices = {(*pool, device["name"]) for device in spec.get("devices", [])}
        yield from of_devices(devices, node_name(spec))
        yield from users(devices)
    if key.resource == "devicetaintrules":
        selector = spec.get("deviceSelector", {})
        chosen = {
            device
            for device in published
            if all(selector.get(name, part) == part
                   for name, part in zip(("driver", "pool", "device"), device, strict=True))
        }  # fmt: skip
        yield from of_devices(chosen)
        yield from users(chosen)


def modelled(events: Sequence[Event], wanted: dict[str, Any]) -> list[int]:
    """The revisions of the entries in a scope, by what the objects before and after concern."""
    view = TimelineProjection()
    objects: dict[ObjectKey, Any] = {}
    revisions: list[int] = []
    for event in events:
        count = len(view.entries)
        view.fold(event)
        concern = set(concerned(objects, event.key))
        if event.type is EventType.OBJECT_DELETED:
            objects.pop(event.key, None)
        elif event.is_about_object:
            before = objects.get(event.key, {}).get("spec", {})
            node = {"nodeName": before["nodeName"]} if "nodeName" in before else {}
            # A pod that was on a node stays there, whatever a later state lacks.
            kept = node if event.key.resource == "pods" else {}
            objects[event.key] = {**event.object, "spec": kept | event.object.get("spec", {})}
        concern |= set(concerned(objects, event.key))
        for entry in view.entries[count:]:
            concern |= set(concerned(objects, entry.subject))
            if set(wanted.items()) <= concern:
                revisions.append(entry.revision)
    return revisions


def crossed(events: Sequence[Event], seed: int) -> list[Event]:
    """The events with contents of others of their kind: devices and pods move between nodes."""
    chance = random.Random(seed)
    bodies: dict[str, list[bytes]] = {}
    for event in events:
        bodies.setdefault(event.key.resource, []).append(event.body)
    return [
        msgspec.structs.replace(event, body=chance.choice(bodies[event.key.resource]), tree=None)
        if event.is_about_object and chance.random() < 0.3
        else event
        for event in events
    ]


@pytest.mark.parametrize(
    "wanted",
    [
        {"namespace": "a"},
        {"namespace": "b"},
        {"node": "n1"},
        {"node": "n2"},
        {"device": f"{DRIVER}/n1/gpu-0"},
        {"device": f"{DRIVER}/n2/gpu-1"},
        {"namespace": "b", "node": "n2"},
        {"namespace": "a", "device": f"{DRIVER}/n1/gpu-0"},
    ],
    ids=lambda wanted: "-".join(wanted.values()).replace("/", "."),
)
async def test_scope_keeps_what_the_objects_of_each_moment_concern(wanted: dict[str, Any]) -> None:
    events = ended_story()
    for seed in range(12):
        altered = crossed(events, seed) if seed else list(events)
        log, info = await history_of(altered)
        reader = timelines.TimelineReader(log, info, Scope(**wanted), page_max=1 + seed * 3)
        assert [row["revision"] for row in await reader.read()] == modelled(altered, wanted)


class CountingLog(MemoryLog):
    """A log that counts the events that are read in order."""

    count = 0

    async def read(self, *args: Any, **options: Any) -> list[Event]:
        events = await super().read(*args, **options)
        self.count += len(events)
        return events


def with_gaps(events: Sequence[Event], seed: int, *, in_order: bool) -> list[Event]:
    """The events with gaps in place of some, and causes that lie anywhere before.

    Unless they are `in_order`, some have an earlier time than those before them.
    """
    chance = random.Random(seed)
    altered = []
    for event in events:
        cause = Revision(chance.randrange(event.revision))
        kind = EventType.GAP_OBSERVED if chance.random() < 0.2 else event.type
        late = 0 if in_order or chance.random() < 0.5 else chance.randrange(90_000_000)
        time = Instant(event.stamp.time - late)
        stamp = msgspec.structs.replace(event.stamp, cause=cause, time=time)
        altered.append(msgspec.structs.replace(event, type=kind, stamp=stamp))
    return altered


async def test_window_is_a_part_of_the_whole_and_read_without_what_lies_before_it() -> None:
    shown: list[dict[str, Any]] = []
    for seed in range(8):
        is_recorded = seed % 2 == 1
        crossing = crossed(ended_story(), seed) if seed else list(ended_story())
        events = with_gaps(crossing, seed, in_order=not is_recorded) if seed else crossing
        log = CountingLog(MemoryStore())
        settings = {"recorded": is_recorded}
        info = await log.create_history("h", seed=1, settings=settings, created=Instant(0))
        await log.append(info.id, expected=Head(), events=events)
        whole = await whole_timelines.timeline(log, info, page_max=7)
        for first in (9, 15, *range(len(events) // 2 + 2, len(events), 3)):
            has_more_before = first > len(events) // 2
            for wanted in (
                {"first": first, "final": first + 4},
                {"since": events[first - 1].stamp.time},
                {"first": first, "kinds": frozenset(("PodScheduled", "ClaimAllocated"))},
                {"first": first, "name": "pod-a"},
                {"first": first, "until": events[first].stamp.time},
                {"final": first - 20},
                {"until": Instant(events[first].stamp.time - 1)},
            ):
                scope_wanted = Scope(**wanted)
                names = scope_wanted.kinds | {scope_wanted.name}
                log.count = 0
                reader = timelines.TimelineReader(log, info, scope_wanted, page_max=2)
                rows = await reader.read()
                assert rows == [
                    row
                    for row in whole
                    if scope_wanted.has_moment(Instant(row["time"]), row["revision"])
                    and (not scope_wanted.kinds or row["kind"] in scope_wanted.kinds)
                    and scope_wanted.name in ("", row["name"])
                ]
                window = [
                    one
                    for one in events
                    if scope_wanted.has_moment(Instant(one.stamp.time), one.revision)
                ]
                # A cause of each row, and three events for the ends.
                is_short = has_more_before or scope_wanted.final == first + 4
                assert is_recorded or not is_short or log.count <= len(window) + len(rows) + 3
                assert reader.extent.revision == len(events)
                known = {"", *KINDS, *(row[part] for row in whole for part in ("kind", "name"))}
                with nullcontext() if known >= names else pytest.raises(InputError):
                    await reader.check()
                shown += rows
    assert {"", "gap"} == {row["doubt"] for row in shown}
    assert any(row["because"] for row in shown)


@pytest.mark.parametrize(
    "wanted",
    [
        {"namespace": "a"},
        {"namespace": "b", "node": "n2"},
        {"node": "n1"},
        {"device": f"{DRIVER}/n1/gpu-0"},
    ],
    ids=lambda wanted: "-".join(wanted.values()).replace("/", "."),
)
async def test_window_of_a_scope_goes_on_from_the_objects_before_it(wanted: dict[str, Any]) -> None:
    shown = 0
    for seed in range(8):
        crossing = crossed(ended_story(), seed) if seed else list(ended_story())
        # A pod that was on a node stays there, whatever a later state lacks; no cluster shows one.
        pods = [one for one in ended_story() if one.key.resource == "pods"]
        kept = {one.revision: one for one in pods}
        events = [kept.get(one.revision, one) for one in crossing]
        log, info = await history_of(events)

        async def objects_at(revision: Revision, events: list[Event] = events) -> list[Event]:
            objects = ObjectsProjection()
            for event in events[:revision]:
                objects.fold(event)
            keys = [key for place in scope.USED_KINDS for key in objects.keys(*place)]
            return [last for key in keys if (last := objects.event(key)) is not None]

        whole = await whole_timelines.timeline(log, info, page_max=50, scope=Scope(**wanted))
        for first in range(len(events) // 2 + 2, len(events)):
            begun = Scope(**wanted, first=first)
            reader = timelines.TimelineReader(log, info, begun, page_max=3, objects_at=objects_at)
            rows = await reader.read()
            assert rows == [row for row in whole if row["revision"] >= first]
            assert reader.knows_all_names
            shown += len(rows)
    assert shown > 100


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"kinds": frozenset(("PodScheduled",))},
        {"name": "pod-b"},
        {"final": 300},
        {"until": Instant(T0 + 60_000_000)},
        {"namespace": "a"},
    ],
    ids=str,
)
async def test_last_rows_are_those_of_the_whole_and_read_from_the_end(
    wanted: dict[str, Any],
) -> None:
    once = ended_story()
    length = len(once)
    events = [
        msgspec.structs.replace(event, revision=Revision(event.revision + turn * length))
        for turn in range(12)
        for event in once
    ]
    log = CountingLog(MemoryStore())
    info = await log.create_history("h", seed=1, settings={}, created=Instant(0))
    await log.append(info.id, expected=Head(), events=events)
    whole = await whole_timelines.timeline(log, info, page_max=50, scope=Scope(**wanted))

    def seen(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row["resource"] != "events"]

    for last in (0, 1, 2, 7, 100, 10_000):
        log.count = 0
        part = await timelines.of_last(log, info, Scope(**wanted), last, page_max=20, seen=seen)
        if wanted == {} and last in (1, 2):
            assert log.count <= 20 + 2 + last * 16
        rows = await whole_timelines.timeline(log, info, page_max=50, scope=part)
        assert seen(rows)[-last:] == seen(whole)[-last:]


def labelled() -> Cluster:
    """Two pods with claims from a template; one loses its label, is deleted and comes back."""
    cluster = Cluster(namespaces=("a",))
    cluster.node("n1")
    cluster.slice("n1", 4)
    cluster.device_class()
    spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one", "namespace": "a"},
            "spec": {"spec": spec},
        }
    )
    for team in ("red", "blue"):
        wanted = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
        containers = [{"name": "main", "image": "busybox:1"}]
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": team, "namespace": "a", "labels": {"team": team}},
                "spec": {"containers": containers, "resourceClaims": wanted},
            }
        )
    cluster.settle()
    cluster.patch("pods", "blue", {"metadata": {"labels": {"team": "green"}}}, namespace="a")
    cluster.settle()
    cluster.delete("pods", "red", namespace="a", grace_seconds=0)
    cluster.settle()
    return cluster


async def told_of(cluster: Cluster, **wanted: Any) -> list[dict[str, Any]]:
    log, info = await history_of(cluster.line.events)
    return await whole_timelines.timeline(log, info, page_max=7, scope=Scope(**wanted))


async def test_labels_keep_pods_with_them_and_the_claims_made_for_these() -> None:
    rows = await told_of(labelled(), labels="team=red")
    names = {row["name"] for row in rows}
    assert {row["resource"] for row in rows} >= {"pods", "resourceclaims"}
    assert all(name.startswith("red") for name in names)
    kinds = [row["kind"] for row in rows if row["resource"] == "resourceclaims"]
    assert {"ClaimCreated", "ClaimDeleted"} <= set(kinds)


async def test_claims_of_pods_are_left_out_where_the_reader_sees_no_pods() -> None:
    rows = await told_of(labelled(), labels="team=red", claims_of_pods=False)
    assert subjects(rows) == {"pods/red"}


async def test_change_of_a_label_is_told_under_the_old_and_the_new_one() -> None:
    cluster = labelled()
    changed = next(
        event.revision
        for event in cluster.line.events
        if event.key.name == "blue" and event.is_about_object
        and (event.object["metadata"].get("labels") or {}).get("team") == "green"
    )  # fmt: skip
    before = [row["revision"] for row in await told_of(cluster, labels="team=blue")]
    after = [row["revision"] for row in await told_of(cluster, labels="team in (green)")]
    assert before
    assert max(before) <= changed
    assert not after or min(after) >= changed


@pytest.mark.parametrize(
    ("text", "problem"),
    [("team=rd", "do you mean team=red"), ("=red", "label selector '=red'")],
)
async def test_labels_that_nothing_has_or_nobody_can_read_are_refused(
    text: str, problem: str
) -> None:
    log, info = await history_of(labelled().line.events)

    async def ask() -> None:
        wanted = timelines.TimelineRequest(labels=text)
        scope_wanted = await timelines.scope_of(log, info, wanted)
        await whole_timelines.timeline(log, info, page_max=7, scope=scope_wanted)

    with pytest.raises(InputError) as refused:
        await ask()
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "meant", ["trainer-0712-x7k2p", "trainer-0712-x7pk2", "rtainer-0712-x7kp2"]
)
def test_of_very_many_names_the_likeliest_are_compared(
    meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    compare = difflib.get_close_matches

    def counted(word: str, known: list[str], **how: Any) -> list[str]:
        compared.append(len(known))
        return compare(word, known, **how)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    names = [f"worker-{number:04}-{'x' * 200}" for number in range(3_000)]
    assert scope.alike("trainer-0712-x7kp2", [*names, meant], compared_max=20) == [meant]
    assert compared == [20]
    assert scope.alike("0042", names, compared_max=20) == [names[42]]


def test_kind_with_one_name_for_one_and_many_is_proposed_once() -> None:
    proposed = str(scope.no_kind("endpiont")).partition("do you mean ")[2].removesuffix("?")
    assert proposed.split(" or ").count("endpoints") == 1


@pytest.mark.parametrize(
    ("name", "known", "proposed"),
    [
        ("quotas", ["routes", "notes", "resourcequota"], []),
        ("eval-jobs", ["web-logs", "eval-job"], ["eval-job"]),
        ("gpu", ["cpu-node", "gpt"], ["gpt"]),
        ("n3", ["n1", "worker"], ["n1"]),
        ("resuorceclaim", ["resourceclaim", "lease"], ["resourceclaim"]),
        ("pvc", ["vc", "service"], ["vc"]),
    ],
)
def test_only_names_that_may_be_meant_are_proposed(
    name: str, known: list[str], proposed: list[str]
) -> None:
    assert scope.alike(name, known) == proposed
