"""Numbers, verbs and objects in single findings; who is left out of a namespace's answer."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from app.analysis.findings import alike, cluster, containers, nodes, outgrown, pods, report
from app.analysis.findings.pods import FORMER_CAUSES_MAX, _PodsOfCause
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding
from app.analysis.verify.invariants import ViolationKind as Gravity
from app.analysis.verify.invariants.violations import Moment, Violation
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.findings.test_whole_answers import revision_of, views_of, with_devices


def pod_key(name: str) -> ObjectKey:
    return ObjectKey("", "pods", "default", name)


def of_cause(**revisions: int) -> _PodsOfCause:
    """Pods that showed a cause at these revisions."""
    last = {pod_key(name): Revision(at) for name, at in revisions.items()}
    return _PodsOfCause(Revision(min(revisions.values())), Revision(max(revisions.values())), last)


# pods that wait


@pytest.mark.parametrize(
    ("count", "still", "text"),
    [
        (1, 1, "1 pod waits: why"),
        (3, 3, "3 pods wait: why"),
        (1, 0, "1 pod waited: why"),
        (3, 0, "3 pods waited: why"),
        (3, 1, "3 pods waited, 1 still waits: why"),
        (3, 2, "3 pods waited, 2 still wait: why"),
    ],
)
def test_pods_wait_or_waited(count: int, still: int, text: str) -> None:
    assert pods._waiting_text(count, still, "why") == text


def test_cause_for_which_a_pod_was_refused_before_is_told_after_that_of_now() -> None:
    found = pods._refused_before({"one": of_cause(a=4)})
    assert found.text == "1 pod that still waits was refused for another cause before"
    assert (found.count, found.present, found.first, found.last) == (1, 0, 4, 4)
    assert found.causes == ("1 pod: one",)


def test_causes_for_which_pods_were_refused_before_are_told_together() -> None:
    found = pods._refused_before({"one": of_cause(a=4, b=9), "two": of_cause(a=7, c=2)})
    assert found.text == "3 pods that still wait were refused for other causes before"
    assert (found.count, found.first, found.last) == (3, 2, 9)
    assert found.causes == ("2 pods: one", "2 pods: two")
    shown = [(each.name, each.revision) for each in found.objects]
    assert shown == [("b", 9), ("a", 7), ("c", 2)], "each at its last one, the newest first"


@pytest.mark.parametrize(("more", "last"), [(0, None), (1, "1 other cause"), (3, "3 other causes")])
def test_causes_beyond_the_bound_are_counted(more: int, last: str | None) -> None:
    groups = {f"c{number}": of_cause(a=4) for number in range(FORMER_CAUSES_MAX + more)}
    lines = [f"1 pod: c{number}" for number in range(FORMER_CAUSES_MAX)]
    assert list(pods._refused_before(groups).causes) == [*lines, *([last] if last else [])]


def test_one_pod_of_each_kind_stands_for_those_that_ask_for_the_same() -> None:
    cluster = Cluster()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "w"}
    for name in ("a", "b", "c", "d", "gone", "placed"):
        cluster.pod(name, requests={"cpu": "1" if name in "ab" else "2"})
    for name in ("c", "a"):
        cluster.patch(
            "pods", name, {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
        )
    cluster.kill("gone")
    cluster.finish("placed")
    names = ("a", "b", "c", "d", "gone", "placed")
    last = {pod_key(name): Revision(10 + number) for number, name in enumerate(names)}
    found = alike.subjects(views_of(cluster), last)
    assert [(each.name, each.revision, each.alike) for each in found] == [
        ("d", 13, 0),
        ("c", 12, 1),  # that of its owner, and `a`
        ("b", 11, 0),
        ("placed", 15, 0),
        ("gone", 14, 0),
    ]
    assert len(found) == OBJECTS_SHOWN_MAX
    few = {key: at for key, at in last.items() if key.name in ("a", "c")}
    assert [(each.name, each.alike) for each in alike.subjects(views_of(cluster), few)] == [
        ("c", 1),
        ("a", None),
    ]


# nodes


def test_claims_and_pods_of_a_node_are_those_that_are_allocated_and_placed() -> None:
    cluster = with_devices("n1", "n2", devices=3)
    for name in ("a", "b"):
        cluster.claim(name)
    cluster.pod("p", claim="a", nodeSelector={"kubernetes.io/hostname": "n1"})
    cluster.settle()
    cluster.pod("q", claim="a")
    cluster.pod("r", claim="b", nodeSelector={"kubernetes.io/hostname": "n2"})
    cluster.pod("without", nodeSelector={"kubernetes.io/hostname": "n2"})
    cluster.claim("unused")
    cluster.settle()
    claims, users = nodes._kept(views_of(cluster), "")
    assert (claims, users) == ({"n1": 1, "n2": 1}, {"n1": 2, "n2": 1})
    assert nodes._kept(views_of(cluster), "other") == ({}, {})
    cluster.finish("r")
    assert nodes._kept(views_of(cluster), "default") == ({"n1": 1}, {"n1": 2})


# devices that their claims would not get now


def held_devices(cluster: Cluster, namespace: str = "") -> list[Finding]:
    compiler = CelCompiler(detailed_errors=True)
    return list(outgrown.claims(views_of(cluster), compiler, namespace, ()))


SELECTOR = f'device.attributes["{DRIVER}"].model == "a"'


def modelled(model: str, count: int) -> list[dict[str, Any]]:
    return [
        {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}}
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 claim holds a device that its selectors"),
        (2, "2 claims hold a device that their selectors"),
    ],
)
def test_claims_whose_device_was_changed_are_counted_with_their_slice(
    count: int, words: str
) -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class(selector=SELECTOR)
    cluster.slice("n1", modelled("a", count))
    for number in range(count):
        cluster.claim(f"c{number}")
        cluster.pod(f"p{number}", claim=f"c{number}")
    cluster.settle().wait(5)
    assert held_devices(cluster) == []
    cluster.patch("resourceslices", "n1-slice", {"metadata": {"labels": {"a": "b"}}})
    assert held_devices(cluster) == [], "its devices are the same"
    spec = cluster.must("resourceslices", "n1-slice")["spec"]
    pool = {**spec["pool"], "generation": 2}
    changed = {"spec": {"devices": modelled("b", count), "pool": pool}}
    cluster.patch("resourceslices", "n1-slice", changed)
    (found,) = held_devices(cluster)
    assert found.text.startswith(f"{words} exclude now: ")
    assert found.text.endswith(" for request gpu; that evicts no pod")
    assert (found.count, found.present) == (count, count)
    at = revision_of(cluster, "resourceslices", "n1-slice")
    assert (found.first, found.last) == (at, at)
    assert [each.name for each in found.objects] == [f"c{number}" for number in range(count)]
    assert held_devices(cluster, "default") == [found]
    assert held_devices(cluster, "other") == []
    cluster.slice("n1", modelled("b", 1), name="late", pool="late")
    cluster.device_class("any")
    cluster.claim("late", class_name="any")
    cluster.pod("late", claim="late")
    assert len(held_devices(cluster.settle())) == 1


# containers


def texts(found: Iterator[Finding]) -> list[str]:
    return [each.text for each in found]


def test_claim_that_no_container_names_is_told_in_its_namespace() -> None:
    cluster = with_devices("n1")
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle()
    views = views_of(cluster)
    (text,) = texts(containers.of_devices(views))
    assert "a claim that no container names" in text
    assert texts(containers.of_devices(views, "default")) == [text]
    assert texts(containers.of_devices(views, "other")) == []
    cluster.finish("p")
    assert texts(containers.of_devices(views_of(cluster))) == []


def reporting(cluster: Cluster, status: str) -> None:
    conditions = [{"type": "Ready", "status": status, "reason": "R", "message": "m"}]
    conditions[0]["lastTransitionTime"] = "2026-01-02T03:00:00Z"
    device = {"driver": DRIVER, "pool": "n1", "device": "gpu-0", "conditions": conditions}
    cluster.patch("resourceclaims", "c", {"status": {"devices": [device]}}, subresource="status")


@pytest.mark.parametrize(("status", "is_told"), [("False", True), ("True", False)])
def test_device_that_its_driver_reports_as_not_ready_is_told_in_its_namespace(
    status: str, is_told: bool
) -> None:
    cluster = with_devices("n1")
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle()
    reporting(cluster, status)
    views = views_of(cluster)
    for namespace, is_there in (("", True), ("default", True), ("other", False)):
        found = texts(containers._of_claims(views, namespace))
        assert len(found) == (is_told and is_there)
        assert all("a device that its driver reports as not ready" in each for each in found)
        whole = texts(containers.of_devices(views, namespace))
        assert len(whole) == (is_there + (is_told and is_there))


# invariants


def violated(
    begin: int, end: int | None, *names: str, rule: str = "a-rule", kind: Gravity = Gravity.BROKEN
) -> Violation:
    first = Moment(revision=Revision(begin), time=Instant(begin))
    last = None if end is None else Moment(revision=Revision(end), time=Instant(end))
    objects = tuple(map(pod_key, names))
    return Violation(
        rule=rule, kind=kind, objects=objects, message=f"at {begin}", begin=first, end=last
    )


def of_invariants(*violations: Violation, until: int = 20, namespace: str = "") -> list[Finding]:
    chronicle: Any = SimpleNamespace(violations=lambda until, now: list(violations))
    views: Any = SimpleNamespace()
    return list(cluster.invariants(chronicle, views, Revision(until), Instant(until), namespace))


def test_violations_of_a_rule_are_one_finding_from_the_first_to_the_last() -> None:
    (found,) = of_invariants(violated(3, 5, "a"), violated(4, 9, "b"), violated(6, 7, "a"))
    assert found.text == "at 6, and 2 more; violated: a-rule"
    assert (found.count, found.present, found.first, found.last) == (3, 0, 3, 9)
    assert (found.kind.value, found.severity.value) == ("BrokenInvariant", "error")
    assert [(each.name, each.revision) for each in found.objects] == [("a", 3), ("b", 4)]
    assert found.begins == (6, 4, 3)


@pytest.mark.parametrize(("end", "present", "last"), [(None, 1, 20), (30, 1, 20), (20, 0, 20)])
def test_violation_that_lasts_shows_until_the_moment_of_the_answer(
    end: int | None, present: int, last: int
) -> None:
    (found,) = of_invariants(violated(3, 5, "a"), violated(4, end, "b"))
    assert (found.present, found.last) == (present, last)
    shown = {each.name: each.revision for each in found.objects}
    assert shown == {"a": 3, "b": 20 if present else 4}
    assert found.begins == ((4,) if present else (4, 3))


@pytest.mark.parametrize(
    ("kind", "words", "of"),
    [
        (Gravity.BROKEN, "", "BrokenInvariant error"),
        (Gravity.LATE, " (restored late)", "BrokenInvariant error"),
        (Gravity.OUTSIDE, " (broken by what a driver or user changed)", "BrokenInvariant warning"),
        (Gravity.KNOWN, " (a known mistake of the release)", "KnownIssue warning"),
        (Gravity.UNSURE, " (unsure)", "DoubtedInvariant notice"),
    ],
)
def test_violation_is_as_grave_as_its_kind(kind: Gravity, words: str, of: str) -> None:
    (found,) = of_invariants(violated(3, 5, "a", kind=kind))
    assert found.text == f"at 3; violated{words}: a-rule"
    assert f"{found.kind.value} {found.severity.value}" == of


def test_rules_and_kinds_are_findings_of_their_own_in_a_namespace() -> None:
    several = [
        violated(3, 5, "a"),
        violated(4, 5, "a", kind=Gravity.LATE),
        violated(5, 6, "a", rule="other"),
    ]
    assert len(of_invariants(*several)) == len(several)
    assert len(of_invariants(*several, namespace="default")) == len(several)
    assert of_invariants(*several, namespace="elsewhere") == []


def test_violations_by_objects_that_the_reader_does_not_see_are_left_out() -> None:
    of_a, of_both = violated(3, 5, "a"), violated(4, 9, "a", "b")
    chronicle: Any = SimpleNamespace(violations=lambda until, now: [of_a, of_both])
    views: Any = SimpleNamespace()
    given = chronicle, views, Revision(20), Instant(20)
    (found,) = cluster.invariants(*given, sees=lambda key: key.name != "b")
    assert (found.text, found.count, found.last) == ("at 3; violated: a-rule", 1, 5)
    assert [each.name for each in found.objects] == ["a"]


def test_patch_that_fails_is_told_with_its_devices() -> None:
    problems = [("a", "bad"), ("b", "worse"), ("a", "bad"), ("a", "other")]
    given = [SimpleNamespace(patch=patch, problem=text) for patch, text in problems]
    events = {"a": SimpleNamespace(revision=Revision(4))}
    views: Any = SimpleNamespace(
        inventory=SimpleNamespace(patch_problems=lambda: given),
        objects=SimpleNamespace(event=lambda key: events.get(key.name)),
        revision=Revision(9),
    )
    found = list(cluster.patches(views))
    assert [(each.text, each.count, each.first, each.last) for each in found] == [
        ("patch a changes nothing on 2 devices: bad", 2, 4, 4),
        ("patch b changes nothing on 1 device: worse", 1, 9, 9),
        ("patch a changes nothing on 1 device: other", 1, 4, 4),
    ]
    assert [each.name for one in found for each in one.objects] == ["a", "b", "a"]


def test_what_a_recording_lacks_stands_behind_what_happened() -> None:
    def made(kind: report.FindingKind, severity: report.Severity, present: int) -> Finding:
        return Finding(
            kind=kind, severity=severity, text="", count=1, present=present,
            first=Revision(1), last=Revision(2),
        )  # fmt: skip

    kinds, severities = report.FindingKind, report.Severity
    lasting = made(kinds.UNREADY_NODES, severities.WARNING, 1)
    ended = made(kinds.EVICTED_PODS, severities.WARNING, 0)
    lacking = made(kinds.LOSSES, severities.WARNING, 1)
    minor = made(kinds.UNUSED_CLAIMS, severities.NOTICE, 1)
    assert report.ranked([minor, lacking, ended, lasting]) == [lasting, ended, lacking, minor]
