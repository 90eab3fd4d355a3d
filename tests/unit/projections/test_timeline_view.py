import ast
import inspect
import re

import pytest

from app.domain.log import EventType, ObjectKey, Origin
from app.domain.log.pages import Page
from app.domain.log.records import BASELINE_VERB
from projections import timeline_kinds
from projections.timeline import KINDS, TimelineProjection
from projections.timeline_kinds import TEXT_MAX
from tests.unit.projections.log_of import (
    LogOf,
    allocation,
    device,
    key_of,
    reserved,
    slice_spec,
    taint,
)

KIND = re.compile("(Pod|Claim|Slice|Rule|Node)[A-Z][A-Za-z]+")


@pytest.fixture
def log() -> LogOf:
    return LogOf(TimelineProjection())


def told(log: LogOf) -> list[tuple[str, str]]:
    """Kind and text of every entry so far."""
    keys = sorted(key for keys in log.view.take_changed().values() for key in keys)
    rows = [log.row("view_timeline", *key) for key in keys]
    return [(row["kind"], row["text"]) for row in rows]


def condition(type: str, status: str, reason: str, message: str) -> dict:
    return {"type": type, "status": status, "reason": reason, "message": message}


def test_kinds_of_entries_are_those_that_the_tables_name() -> None:
    tree = ast.parse(inspect.getsource(timeline_kinds))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named = {text for text in texts if isinstance(text, str) and KIND.fullmatch(text)}
    assert len(named) > 20
    assert named <= KINDS
    words = {kind.word for kind in timeline_kinds._KINDS.values()} | {"Object"}
    for word in words:
        assert f"{word}Deleted" in KINDS
    made = {kind for kind in KINDS if kind.endswith(("Deleted", "DeletionAsked"))}
    assert KINDS - named - made - timeline_kinds.OF_OTHER_EVENTS <= {
        *(f"{word}{change}" for word in words for change in ("Created", "Changed")),
        "PodScheduled",
    }


def test_the_life_of_a_pod(log: LogOf) -> None:
    spec = {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}
    waits = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
    ends = condition("DisruptionTarget", "True", "DeletionByDeviceTaintManager", "tainted")
    log.put("pod", "ns/a", spec=spec, status={"phase": "Pending"})
    log.put("pod", "ns/a", spec=spec, status={"phase": "Pending", "conditions": [waits]})
    spec = {**spec, "nodeName": "n1"}
    log.put("pod", "ns/a", spec=spec, status={"phase": "Pending"})
    log.put("pod", "ns/a", spec=spec, status={"phase": "Running"})
    log.put("pod", "ns/a", spec=spec, status={"phase": "Running", "conditions": [ends]})
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running", "conditions": [ends]}
    log.put("pod", "ns/a", spec=spec, status=status, metadata=gone)
    log.put("pod", "ns/a", spec=spec, status={**status, "phase": "Failed"}, metadata=gone)
    log.delete("pod", "ns/a")
    assert told(log) == [
        ("PodCreated", "uses claims from t"),
        ("PodUnschedulable", "Unschedulable: 0/1 nodes are available"),
        ("PodScheduled", "to n1"),
        ("PodPhase", "Running"),
        ("PodEvicted", "DeletionByDeviceTaintManager: tainted"),
        ("PodDeletionAsked", "after DeletionByDeviceTaintManager: tainted"),
        ("PodFinished", "Failed"),
        ("PodDeleted", ""),
    ]


def test_the_life_of_a_claim(log: LogOf) -> None:
    log.put("claim", "ns/c")
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "x"))
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "x", "y"))
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "y"))
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "y"), metadata=gone)
    log.put("claim", "ns/c", metadata=gone)
    log.delete("claim", "ns/c")
    assert told(log) == [
        ("ClaimCreated", "without allocation"),
        ("ClaimAllocated", "d/p/a, reserved for x"),
        ("ClaimReserved", "for y"),
        ("ClaimReleased", "by x"),
        ("ClaimDeletionAsked", "still reserved for y"),
        ("ClaimDeallocated", "d/p/a given back"),
        ("ClaimDeleted", ""),
    ]


def test_reports_of_drivers_are_told_when_they_change(log: LogOf) -> None:
    held = reserved(allocation("p/a"), "x")

    def report(*conditions: dict) -> None:
        device = {"driver": "d", "pool": "p", "device": "a", "conditions": list(conditions)}
        log.put("claim", "ns/c", status={**held, "devices": [device]})

    log.put("claim", "ns/c", status=held)
    bad, good = (
        condition("Ready", "False", "NoPower", "rack is off"),
        condition("Up", "True", "", ""),
    )
    report(bad)
    report(bad, good)
    report(good, {**bad, "lastTransitionTime": "2026-01-01T00:00:09Z"})
    report({**bad, "status": "True"}, good)
    report(good)
    log.put("claim", "ns/c")
    assert told(log) == [
        ("ClaimCreated", "with d/p/a, reserved for x"),
        ("ClaimReported", "d/p/a: Ready is False (NoPower: rack is off)"),
        ("ClaimReported", "d/p/a: Up is True"),
        ("ClaimReported", "d/p/a: Ready is True (NoPower: rack is off)"),
        ("ClaimReported", "no longer: d/p/a: Ready is True (NoPower: rack is off)"),
        ("ClaimDeallocated", "d/p/a given back"),
    ]


def test_the_life_of_a_slice(log: LogOf) -> None:
    tainted = device("a", taints=[taint("k=v:NoExecute")])
    log.put("slice", "s", spec=slice_spec("p", device("a"), device("b")))
    log.put("slice", "s", spec=slice_spec("p", tainted, device("b")))
    log.put("slice", "s", spec=slice_spec("p", tainted))
    log.put("slice", "s", spec=slice_spec("p", tainted, generation=2))
    log.put("slice", "s", spec=slice_spec("p", tainted, generation=2), metadata={"generation": 9})
    log.delete("slice", "s")
    assert told(log) == [
        ("SlicePublished", "pool d/p generation 1 with 2 devices"),
        ("SliceChanged", "pool d/p generation 1: taints added: a k=v:NoExecute"),
        ("SliceChanged", "pool d/p generation 1: devices removed: b"),
        ("SliceChanged", "pool d/p generation 2 with 1 device, before: pool d/p generation 1"),
        ("SliceChanged", "pool d/p generation 2: what devices have or consume"),
        ("SliceDeleted", ""),
    ]


def test_the_life_of_a_rule(log: LogOf) -> None:
    spec = {"deviceSelector": {"pool": "p"}, "taint": taint("k:None")}
    log.put("rule", "r", spec=spec)
    spec = {**spec, "taint": taint("k:NoExecute")}
    log.put("rule", "r", spec=spec)
    now = condition("EvictionInProgress", "True", "PodsPendingEviction", "1 pod")
    log.put("rule", "r", spec=spec, status={"conditions": [now]})
    log.delete("rule", "r")
    assert told(log) == [
        ("RuleCreated", "k:None on */p/*"),
        ("RuleChanged", "k:NoExecute on */p/*, before: k:None on */p/*"),
        ("RuleStatus", "PodsPendingEviction: 1 pod"),
        ("RuleDeleted", ""),
    ]


def test_the_life_of_a_node(log: LogOf) -> None:
    ready = {"conditions": [condition("Ready", "True", "", "")]}
    log.put("node", "n", spec={"taints": [taint("new:NoSchedule")]})
    log.put("node", "n", spec={"taints": [taint("new:NoSchedule")]}, status=ready)
    log.put("node", "n", status=ready)
    log.put("node", "n", spec={"unschedulable": True}, status=ready)
    cordoned = {"spec": {"unschedulable": True}, "status": ready}
    log.put("node", "n", metadata={"labels": {"pool": "gpu", "zone": "a"}}, **cordoned)
    log.put("node", "n", metadata={"labels": {"pool": "cpu", "zone": "a"}}, **cordoned)
    log.put("node", "n", metadata={"labels": {"zone": "a"}}, **cordoned)
    assert told(log) == [
        ("NodeCreated", "not ready"),
        ("NodeReady", "Ready is True"),
        ("NodeChanged", "taints removed: new:NoSchedule"),
        ("NodeChanged", "cordoned"),
        ("NodeChanged", "labels added: pool=gpu, zone=a"),
        ("NodeChanged", "labels added: pool=cpu; labels removed: pool=gpu"),
        ("NodeChanged", "labels removed: pool=cpu"),
    ]


def test_other_kinds_are_followed_by_their_specification(log: LogOf) -> None:
    log.put("class", "gpu", metadata={"generation": 1})
    log.put("class", "gpu", metadata={"generation": 1, "labels": {"a": "b"}})
    log.put("class", "gpu", metadata={"generation": 2})
    log.put("deployment", "ns/d", metadata={"generation": 1})
    log.put("deployment", "ns/d", metadata={"generation": 1}, status={"replicas": 3})
    assert told(log) == [
        ("ClassCreated", ""),
        ("ClassChanged", "generation 2"),
        ("ObjectCreated", ""),
    ]


def test_repetitions_and_heartbeats_are_not_told(log: LogOf) -> None:
    log.put("lease", "kube-system/scheduler", spec={"holderIdentity": "a"})
    log.put("pod", "ns/a", status={"phase": "Running"})
    log.put("pod", "ns/a", status={"phase": "Running", "hostIP": "10.0.0.1"})
    log.append(EventType.REQUEST_OBSERVED, ObjectKey("", "pods", "ns", "a"), {"code": 409})
    assert [kind for kind, _ in told(log)] == ["PodCreated"]


def test_a_warning_is_told_of_the_object_it_is_about(log: LogOf) -> None:
    about = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "namespace": "ns",
        "name": "c",
    }
    event = {"reason": "Failed", "message": "no devices", "involvedObject": about}
    log.put("event", "ns/e1", type="Normal", **event)
    revision = log.put("event", "ns/e2", type="Warning", **event)
    log.put("event", "ns/e2", type="Warning", **event, count=2)
    assert told(log) == [("Warning", "Failed: no devices")]
    columns = "api_group resource namespace name"
    found = log.part("view_timeline", revision, columns=columns)
    assert found == ["resource.k8s.io", "resourceclaims", "ns", "c"]


@pytest.mark.parametrize(
    ("about", "subject"),
    [
        # Events of cluster-scoped objects are in namespace default, and some references name it.
        (("v1", "Namespace", "default", "a"), ["", "namespaces", "", "a"]),
        (("v1", "Node", "", "n"), ["", "nodes", "", "n"]),
        (("resource.k8s.io/v1beta2", "DeviceTaintRule", "default", "r"),
         ["resource.k8s.io", "devicetaintrules", "", "r"]),
        (("networking.k8s.io/v1", "NetworkPolicy", "ns", "p"),
         ["networking.k8s.io", "networkpolicies", "ns", "p"]),
        (("x.test/v1", "Glass", "ns", "g"), ["x.test", "glasses", "ns", "g"]),
    ],
)  # fmt: skip
def test_a_warning_names_its_object_as_the_api_does(log: LogOf, about, subject) -> None:
    about = dict(zip(("apiVersion", "kind", "namespace", "name"), about, strict=True))
    revision = log.put("event", "ns/e", type="Warning", reason="Failed", involvedObject=about)
    columns = "api_group resource namespace name"
    assert log.part("view_timeline", revision, columns=columns) == subject


def test_a_decision_is_told_of_its_subject(log: LogOf) -> None:
    summary = {"message": "0/2 nodes are available"}
    body = {"controller": "scheduling", "outcome": "Unschedulable", "summary": summary}
    revision = log.decide("ns/a", resource="pods", **body)
    text = "scheduling decided Unschedulable: 0/2 nodes are available"
    assert told(log) == [("Decision", text)]
    assert log.part("view_timeline", revision, columns="resource name") == ["pods", "a"]


def test_a_gap_in_the_record_is_told(log: LogOf) -> None:
    log.append(EventType.GAP_OBSERVED, ObjectKey("redra", "gaps", "", ""), {"reason": "restart"})
    assert told(log) == [("GapObserved", "restart")]


def test_an_entry_says_who_did_it_and_what_provoked_it(log: LogOf) -> None:
    first = log.put("pod", "ns/a")
    second = log.put("claim", "ns/c", actor="system:controller", cause=first)
    columns = "actor verb cause because"
    found = log.part("view_timeline", second, columns=columns)
    assert found == ["system:controller", "update", first, "PodCreated pods/ns/a"]
    assert log.row("view_timeline", first)["because"] == ""


def test_long_texts_are_cut(log: LogOf) -> None:
    names = [f"a-very-long-device-name-{number:03}" + "x" * 200 for number in range(40)]
    revision = log.put("claim", "ns/c", status=allocation(*(f"p/{name}" for name in names)))
    text = log.row("view_timeline", revision)["text"]
    assert len(text) == TEXT_MAX
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("quality", "losses", "doubt"),
    [
        ("none", ("no_time",), "no_time"),
        ("none", ("no_status", "no_time"), "no_status,no_time"),
        ("derived", (), ""),
        ("exact", ("no_actor",), ""),
    ],
)
def test_row_whose_time_is_that_of_the_import_says_so(
    log: LogOf, quality: str, losses: tuple[str, ...], doubt: str
) -> None:
    key = ObjectKey("", "pods", "ns", "a")
    origin = Origin(source="pods.yaml", time_quality=quality, losses=losses)
    tree = {"metadata": {"name": "a", "uid": "u"}, "spec": {"nodeName": "n"}}
    revision = log.append(EventType.OBJECT_CREATED, key, tree, origin=origin)
    assert log.row("view_timeline", revision)["doubt"] == doubt


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"lastTimestamp": "2025-12-31T23:50:00Z"}, " (last seen at 2025-12-31T23:50:00Z)"),
        ({"eventTime": "2025-12-31T23:50:00.123456Z"}, " (last seen at 2025-12-31T23:50:00Z)"),
        (
            {
                "eventTime": "2025-12-31T23:40:00.1Z",
                "series": {"count": 2, "lastObservedTime": "2025-12-31T23:45:00.1Z"},
            },
            " (last seen at 2025-12-31T23:45:00Z)",
        ),
        ({"lastTimestamp": "2026-01-01T00:00:01Z"}, ""),
        ({"lastTimestamp": "soon"}, ""),
        ({}, ""),
    ],
)
def test_warning_that_was_listed_says_when_it_was_last_seen(log, times, said) -> None:
    """The recorder listed it a second after midnight, which is the time of the entry."""
    warning = {"type": "Warning", "reason": "Failed", "message": "m", **times}
    about = {"kind": "Pod", "namespace": "ns", "name": "a"}
    tree = {"metadata": {"name": "e"}, "involvedObject": about, **warning}
    log.append(EventType.OBJECT_CREATED, key_of("event", "ns/e"), tree, verb=BASELINE_VERB)
    log.append(EventType.OBJECT_CREATED, key_of("event", "ns/f"), tree)
    assert told(log) == [("Warning", f"Failed: m{said}"), ("Warning", "Failed: m")]


def test_text_of_a_long_warning_is_cut_before_the_time_it_was_last_seen(log) -> None:
    about = {"kind": "Pod", "namespace": "ns", "name": "a"}
    warning = {"type": "Warning", "reason": "Failed", "message": "m" * TEXT_MAX}
    tree = {"metadata": {"name": "e"}, "involvedObject": about, **warning}
    tree["lastTimestamp"] = "2025-12-31T23:50:00Z"
    log.append(EventType.OBJECT_CREATED, key_of("event", "ns/e"), tree, verb=BASELINE_VERB)
    [(_, text)] = told(log)
    assert text.endswith("m… (last seen at 2025-12-31T23:50:00Z)")
    assert len(text) == TEXT_MAX


def test_first_change_after_a_gap_of_its_object_is_doubted(log: LogOf) -> None:
    """However the log is folded: one by one, as one page, and with a snapshot anywhere."""
    key, origin = key_of("pod", "ns/a"), Origin(source="audit.jsonl")
    for phase, node in (("Pending", ""), ("Running", "n"), ("Succeeded", "n")):
        tree = {"metadata": {"name": "a", "uid": "u"}, "spec": {"nodeName": node}}
        tree["status"] = {"phase": phase}
        is_first = phase == "Pending"
        type = EventType.OBJECT_CREATED if is_first else EventType.OBJECT_UPDATED
        verb = "create" if is_first else "patch"
        log.append(type, key, tree, verb=verb, origin=origin)
        if phase != "Succeeded":
            gap = key if phase == "Pending" else key_of("pod", "ns/other")
            log.append(EventType.GAP_OBSERVED, gap, {"reason": "lost"}, actor="redra:import")
    said = [
        (row["kind"], row["actor"], row["doubt"])
        for row in map(log.view.row_of, log.view.entries)
        if row["kind"] != "GapObserved"
    ]
    assert said == [
        ("PodCreated", "alice", ""),
        ("PodScheduled", "redra:import", "gap,collapsed"),
        ("PodFinished", "alice", ""),
    ]
    for cut in range(len(log.events) + 1):
        first, second = TimelineProjection(), TimelineProjection()
        first.fold_page(Page(log.events[:cut]))
        second.load(first.dump())
        second.fold_page(Page(log.events[cut:]))
        assert second.state_hash() == log.view.state_hash()
        assert second.dump() == log.view.dump()
