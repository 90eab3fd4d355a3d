"""The findings of small clusters, as whole answers: what is said, of how many, and since when."""

from collections.abc import Generator
from typing import Any

import pytest

from app.analysis import scheduling_rules
from app.analysis.chronicle import Chronicle
from app.analysis.explain.nearby import holders
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.findings import cluster as of_cluster
from app.analysis.findings import devices, obstacles, taints
from app.analysis.findings.findings import collect_in_steps
from app.analysis.findings.pods import PodCauses
from app.analysis.findings.report import (
    OBJECTS_SHOWN_MAX,
    Finding,
    FindingKind,
    Findings,
    Severity,
)
from app.analysis.views import LiveViews
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import NotFound
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.log.doubts import Affects, Doubt
from app.domain.objects.profile import Profile
from app.domain.values.fields.decision_body import CauseCount, DecisionSummary, PoolProblem
from tests.cluster import DRIVER, Cluster

ERROR, WARNING, NOTICE = Severity.ERROR, Severity.WARNING, Severity.NOTICE
KEPT = ["example.com/keep"]


def views_of(cluster: Cluster) -> LiveViews:
    views = LiveViews(Profile())
    for event in cluster.line.events:
        views.fold(event)
    return views


def with_devices(*nodes: str, devices: int = 1) -> Cluster:
    cluster = Cluster()
    cluster.device_class()
    for node in nodes:
        cluster.node(node)
        cluster.slice(node, devices)
    return cluster


def revision_of(cluster: Cluster, resource: str, name: str) -> int:
    """The revision of the last write of an object."""
    return max(
        event.revision
        for event in cluster.line.events
        if event.key.resource == resource and event.key.name == name
    )


# about objects of the cluster


def test_pools_that_cannot_be_used_are_one_finding_for_each_problem() -> None:
    cluster = with_devices("n1")
    spec = cluster.must("resourceslices", "n1-slice")["spec"]
    for number in range(OBJECTS_SHOWN_MAX + 1):
        name = f"x{number}"
        cluster.node(name)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
        tree = {**spec, "nodeName": name, "pool": pool}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{name}-slice", spec=tree)
    views = views_of(cluster)
    (found,) = of_cluster.pools(views)
    pool = views.inventory.pool((DRIVER, "x0"))
    assert pool is not None
    count = OBJECTS_SHOWN_MAX + 1
    assert found.text == f"{count} pools are incomplete: {pool.problem}"
    assert (found.kind, found.severity) == (FindingKind.UNUSABLE_POOLS, WARNING)
    assert (found.count, found.present) == (count, count)
    first = revision_of(cluster, "resourceslices", "x0-slice")
    last = revision_of(cluster, "resourceslices", f"x{count - 1}-slice")
    assert (found.first, found.last) == (first, last)
    assert [each.name for each in found.objects] == [
        f"x{number}-slice" for number in range(OBJECTS_SHOWN_MAX)
    ]
    assert {each.revision for each in found.objects} == {views.revision}


@pytest.mark.parametrize(
    ("kind", "affects", "text", "severity"),
    [
        ("resourceclaims.resource.k8s.io", Affects.CONTENT, "resourceclaims", WARNING),
        ("pods", Affects.TIME, "pods", NOTICE),
        ("", Affects.CONTENT, "all kinds", WARNING),
    ],
)
def test_loss_of_a_recording_is_named_with_its_kind(
    kind: str, affects: Affects, text: str, severity: Severity
) -> None:
    doubt = Doubt(code="gap", affects=affects, kind=kind, count=3, text="lines are lost")
    (found,) = of_cluster.losses([doubt], Revision(9))
    assert found == Finding(
        kind=FindingKind.LOSSES,
        severity=severity,
        text=f"the recording of {text} is incomplete: lines are lost",
        count=3,
        present=3,
        first=Revision(1),
        last=Revision(9),
    )


def test_objects_that_finalizers_keep_still_count() -> None:
    cluster = with_devices("n1")
    for name in ("a", "b"):
        cluster.device_class(name)
        cluster.patch("deviceclasses", name, {"metadata": {"finalizers": KEPT}})
        cluster.delete("deviceclasses", name)
    cluster.patch("nodes", "n1", {"metadata": {"finalizers": [*KEPT, "example.com/other"]}})
    cluster.delete("nodes", "n1")
    cluster.device_class("c")
    views = views_of(cluster)
    classes, nodes = of_cluster.kept_objects(views)
    assert classes.text == (
        "2 DeviceClasses are being deleted and kept by finalizer example.com/keep: "
        "claims can still get devices of them"
    )
    assert nodes.text == (
        "1 Node is being deleted and kept by finalizers example.com/keep, example.com/other: "
        "pods can still be placed on it"
    )
    assert (classes.count, classes.present, classes.severity) == (2, 2, WARNING)
    revisions = [revision_of(cluster, "deviceclasses", name) for name in ("a", "b")]
    assert [classes.first, classes.last] == revisions
    assert [each.name for each in classes.objects] == ["b", "a"], "the newest first"


@pytest.mark.parametrize(
    ("effect", "selector", "devices", "text"),
    [
        ("None", {"pool": "n1"}, 1, "so 1 device that it selects can be allocated"),
        ("None", {"driver": DRIVER}, 3, "so 6 devices that it selects can be allocated"),
        ("None", {"pool": "other"}, 1, ""),
        ("NoSchedule", {"pool": "n1"}, 1, ""),
    ],
)
def test_rule_that_only_announces_says_how_many_devices_it_selects(
    effect: str, selector: dict[str, str], devices: int, text: str
) -> None:
    cluster = with_devices("n1", "n2", devices=devices)
    cluster.rule("r", effect=effect, selector=selector)
    found = list(of_cluster.announcing(views_of(cluster)))
    assert [each.text for each in found] == (
        [f"rule r only announces: its effect is None, {text}, and nobody is evicted"]
        if text
        else []
    )
    assert all((each.kind, each.severity) == (FindingKind.IDLE_RULES, NOTICE) for each in found)


def test_quota_with_less_than_is_in_use_is_named_until_it_is_deleted() -> None:
    cluster = with_devices("n1")
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {"pods": "2"}})
    for name in ("a", "b"):
        cluster.pod(name)
    cluster.settle().wait(5)
    assert list(of_cluster.exceeded_quotas(views_of(cluster))) == []
    cluster.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "1"}}})
    cluster.settle().wait(5)
    views = views_of(cluster)
    (found,) = of_cluster.exceeded_quotas(views)
    assert found.text == (
        "quota few of namespace default allows less than is in use: 2 of 1 pods; "
        "nothing is taken away, and no more can be made"
    )
    assert found.first == found.last == revision_of(cluster, "resourcequotas", "few")
    assert list(of_cluster.exceeded_quotas(views, "default")) == [found]
    assert list(of_cluster.exceeded_quotas(views, "other")) == []


# taints of devices in use


def in_use(cluster: Cluster, wanted: str = "") -> list[Finding]:
    now = cluster.line.now
    return list(taints.in_use(views_of(cluster), ControllerQuirks(), now, wanted))


def held(*seconds: int | None) -> Cluster:
    """Claims that tolerate a taint of their devices for these seconds, or for ever."""
    cluster = with_devices("n1", devices=len(seconds))
    for number, each in enumerate(seconds):
        toleration: dict[str, Any] = {"key": "example.com/bad", "operator": "Exists"}
        toleration |= {} if each is None else {"tolerationSeconds": each}
        cluster.claim(f"c{number}", tolerations=[{**toleration, "effect": "NoExecute"}])
        cluster.pod(f"p{number}", claim=f"c{number}")
        cluster.settle()
    cluster.wait(1).rule("r")
    return cluster.settle()


TAINT = "example.com/bad:NoExecute"


def test_claims_that_tolerate_a_taint_for_a_while_have_the_first_end_of_it() -> None:
    cluster = held(60, 30, 90)
    (found,) = in_use(cluster)
    assert found.text == (
        f"3 claims have a device tainted {TAINT} and go on: "
        "the toleration ends for the first one at 2026-01-02T03:00:31Z"
    )
    assert (found.kind, found.severity) == (FindingKind.TAINTED_DEVICES, NOTICE)
    assert (found.count, found.present) == (3, 3)
    assert in_use(cluster, "default") == [found]
    assert in_use(cluster, "other") == []
    (alone,) = in_use(held(60))
    assert alone.text.endswith("and goes on: the toleration ends at 2026-01-02T03:01:01Z")


def test_claims_that_tolerate_a_taint_for_ever_are_a_finding_of_their_own() -> None:
    texts = [each.text for each in in_use(held(None, 60, None))]
    assert texts == [
        f"2 claims have a device tainted {TAINT} and go on: they tolerate it for ever",
        f"1 claim has a device tainted {TAINT} and goes on: "
        "the toleration ends at 2026-01-02T03:01:01Z",
    ]
    (alone,) = in_use(held(None))
    assert alone.text.endswith("1 claim has a device tainted "
                               f"{TAINT} and goes on: it tolerates it for ever")  # fmt: skip


# devices that waiting pods do not get


def cause(kind: str, count: int, *, request: str = "gpu", claim: str = "default/c", **more: Any):
    given = {"claim": claim, "request": request, "cause": kind, "devices": count, "nodes": 1}
    return CauseCount(**{**given, **more})


def lines(*causes: CauseCount, is_local: bool = True, **summary: Any) -> list[str]:
    cluster = with_devices("n1")
    cluster.claim("c", count=2)
    pod = cluster.pod("p", claim="c")
    given = DecisionSummary(causes=causes, **{"causes_nodes": 1, "looked_at": 1, **summary})
    return list(devices.lines(given, views_of(cluster), pod, is_local=is_local))


WANTS = "request gpu wants 2 of class gpu"


@pytest.mark.parametrize(
    ("causes", "summary", "said"),
    [
        (
            [cause("allocated", 3)],
            {},
            [f"{WANTS}: allocated: 3 devices on 1 node"],
        ),
        (  # what nearly fits comes first, and of that the most devices
            [
                cause("selector", 9),
                cause("allocated", 1),
                cause("taint", 2, about="k:NoSchedule"),
            ],
            {},
            [
                f"{WANTS}: tainted (k:NoSchedule): 2 devices on 1 node; "
                "allocated: 1 device on 1 node; not selected: 9 devices on 1 node"
            ],
        ),
        (
            [cause("allocated", 4), cause("taint", 3), cause("capacity", 2), cause("selector", 1)],
            {},
            [
                f"{WANTS}: allocated: 4 devices on 1 node; tainted: 3 devices on 1 node; "
                "with too little capacity left: 2 devices on 1 node; not selected: 1 device"
            ],
        ),
        (  # the kinds of the rest, and the class of which devices are not
            [
                *(cause("taint", 9 - number, about=f"k{number}:NoSchedule") for number in range(5)),
                cause("allocated", 1),
                cause("selector", 3, about="selector #0 of class gpu: false"),
                cause("selector", 2, about="selector #1 of class gpu: false"),
            ],
            {},
            [
                f"{WANTS}: tainted (k0:NoSchedule): 9 devices on 1 node; tainted (k1:NoSchedule): "
                "8 devices on 1 node; tainted (k2:NoSchedule): 7 devices on 1 node; otherwise "
                "tainted: 11 devices; allocated: 1 device; not of class gpu: 5 devices"
            ],
        ),
        ([cause("other-node", 5)], {}, [f"{WANTS}: all devices are for other nodes"]),
        (
            [cause("counters", 2, about="a"), cause("counters", 1, about="b", nodes=3)],
            {},
            [f"{WANTS}: short of a counter (a and 1 more): 3 devices"],
        ),
        ([cause("suitable", 1)], {}, [f"{WANTS}: suitable: 1 device on 1 node, too few"]),
        (
            [cause("suitable", 3, nodes=3)],
            {"causes_nodes": 3, "looked_at": 3},
            [f"{WANTS}: suitable: 3 devices on 3 nodes, too few on each node"],
        ),
        # each request alone could be satisfied
        (
            [cause("suitable", 2)],
            {"together": 1},
            ["on 1 node each device could be taken alone, but not as many together"],
        ),
        (
            [cause("allocated", 2)],
            {"together": 1, "causes_nodes": 2},
            [
                f"{WANTS}: allocated: 2 devices on 1 node",
                "on 1 node each device could be taken alone, but not as many together",
            ],
        ),
        (
            [cause("suitable", 2), cause("suitable", 2, request="nic")],
            {"causes_nodes": 2, "looked_at": 2},
            [
                f"{WANTS}: suitable: 2 devices on 1 node",
                "request nic: suitable: 2 devices on 1 node",
                "none of 2 nodes has enough suitable devices for all requests together",
            ],
        ),
        (
            [cause("suitable", 2), cause("suitable", 2, request="nic")],
            {},
            [
                f"{WANTS}: suitable: 2 devices on 1 node",
                "request nic: suitable: 2 devices on 1 node",
                "the node does not have enough suitable devices for all requests together",
            ],
        ),
        # only the request fails that no device is suitable for
        (
            [cause("suitable", 2), cause("allocated", 1, request="nic")],
            {},
            ["request nic: allocated: 1 device on 1 node"],
        ),
        ([], {}, ["no device can be used on 1 node"]),
        (
            [],
            {"looked_at": 2},
            ["no device can be used on 1 node; 1 other node refuses the pod for another reason"],
        ),
        (
            [],
            {"causes_nodes_cut": 2, "looked_at": 6},
            ["no device can be used on 3 nodes; 3 other nodes refuse the pod for another reason"],
        ),
    ],
)
def test_requests_without_devices_are_told_with_their_causes(
    causes: list[CauseCount], summary: dict[str, Any], said: list[str]
) -> None:
    assert lines(*causes, **summary) == said


def test_note_once_that_nodes_can_share_devices() -> None:
    each = " (a device counts on each node that sees it)"
    both = cause("allocated", 6, nodes=3), cause("allocated", 2, request="nic", nodes=2)
    assert lines(*both, is_local=False) == [
        f"{WANTS}: allocated: 6 devices on 3 nodes{each}",
        "request nic: allocated: 2 devices on 2 nodes",
    ]
    assert lines(cause("allocated", 6), is_local=False) == [
        f"{WANTS}: allocated: 6 devices on 1 node"
    ]


@pytest.mark.parametrize(("count", "said"), [(1, "as 1 node says"), (2, "as 2 nodes say")])
def test_pool_that_cannot_be_used_is_named_or_was_met_by_nodes(count: int, said: str) -> None:
    """Where no pool has the problem any more, nodes had met it."""
    problem = PoolProblem(problem="incomplete: gone", count=count)
    assert lines(causes_nodes=0, looked_at=0, pools=(problem,)) == [
        f"a pool cannot be used, {said}: incomplete: gone"
    ]


def test_pools_with_a_problem_are_named() -> None:
    cluster = with_devices("n1")
    spec = cluster.must("resourceslices", "n1-slice")["spec"]
    for name in ("x", "y"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
        tree = {**spec, "pool": pool}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=tree)
    pod, views = cluster.pod("p"), views_of(cluster)
    one = views.inventory.pool((DRIVER, "x"))
    assert one is not None
    problem = f"incomplete: {one.problem}"
    summary = DecisionSummary(pools=(PoolProblem(problem=problem, count=9),))
    assert list(devices.lines(summary, views, pod, is_local=True)) == [
        f"pools {DRIVER}/x, {DRIVER}/y cannot be used: {problem}"
    ]


# nodes and claims that keep pods waiting


GANG = {"apiGroup": "x.test", "resource": "podgroups", "name": "gang", "uid": "u-1"}


@pytest.mark.parametrize(
    ("names", "others", "users"),
    [
        ((), [], ""),
        (("a",), [], "pod default/a"),
        (("a", "b"), [], "pods default/a, default/b"),
        ((), [GANG], "podgroups.x.test gang"),
        (("a",), [GANG], "pod default/a, podgroups.x.test gang"),
    ],
)
def test_users_of_a_claim_that_has_the_device_are_called_what_they_are(
    names: tuple[str, ...], others: list[dict[str, str]], users: str
) -> None:
    cluster = with_devices("n1")
    cluster.claim("c")
    for name in ("a", "b"):
        cluster.pod(name, claim="c")
    cluster.settle().wait(5)
    for controller in ("scheduling", "claims"):
        cluster.stop(controller)
    claim = cluster.must("resourceclaims", "c")
    pods = [{"resource": "pods", "name": each, "uid": uid(cluster, each)} for each in names]
    claim["status"]["reservedFor"] = [*pods, *others]
    cluster.update("resourceclaims", claim, "status")
    there = {"metadata": {"namespace": "default"}}
    views = views_of(cluster)
    has = "claim default/c has n1/gpu-0"
    if names or others:
        (line,) = obstacles.held(views, there, {"default/c": "n1/gpu-0"})
        assert line == f"{has}, for {users}"
    said = [reason.text for reason in holders.users(views, ["default/c"])]
    assert [each.partition(" on node ")[0] for each in said] == (
        [f"claim default/c is used by {users}"] if users else []
    )


def uid(cluster: Cluster, pod: str) -> str:
    name: str = cluster.must("pods", pod)["metadata"]["uid"]
    return name


AFFINITY = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("having", "said"),
    [
        ((), []),
        (("n1",), ["its claims could be allocated on node n1, which refuses it: why"]),
        (
            ("n1", "n2"),
            ["its claims could be allocated on nodes n1, n2, which refuse it: why"],
        ),
    ],
)
@pytest.mark.parametrize("details", [(), ("d",), ("", "d", "e")])
def test_nodes_with_devices_that_refuse_a_pod_are_named(
    having: tuple[str, ...], said: list[str], details: tuple[str, ...]
) -> None:
    cluster = with_devices("n1", "n2")
    pod, views = cluster.pod("p"), views_of(cluster)
    answers = [
        NodeAnswer(node=name, text="why", has_devices=name in having, detail=detail)
        for name, detail in zip(("n1", "n2", "n3"), (*details, "", "", "")[:3], strict=True)
    ]
    found = list(obstacles.elsewhere(views, pod, "why", answers, lambda _: True))
    assert found == [*said, *[each for each in details if each][:1]]


@pytest.mark.parametrize(
    ("selector", "name", "names"),
    [
        ({}, "", {"n1", "n2"}),
        ({"kubernetes.io/hostname": "n1"}, "", {"n1", "n2"}),
        ({}, "n2", {"n2"}),
    ],
)
@pytest.mark.parametrize(
    ("refusal", "is_about"),
    [
        ("1 node(s) were unschedulable", True),
        ("1 node(s) had untolerated taint", True),
        ("x", False),
    ],
)
def test_cordons_are_named_where_the_refusal_is_about_them(
    selector: dict[str, str], name: str, names: set[str], refusal: str, is_about: bool
) -> None:
    cluster = with_devices("n1", "n2", "n3")
    for node in ("n1", "n2"):
        cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only]}}
    spec: dict[str, Any] = {"nodeSelector": selector} if selector else {}
    spec |= {"affinity": {"nodeAffinity": required}} if name else {}
    pod = cluster.pod("p", **spec)
    found = obstacles.Obstacles(views_of(cluster.settle())).closings(refusal, pod)
    assert [set(each.nodes) for each in found] == ([names] if is_about else [])


# whole answers


def answer(cluster: Cluster, *, until: int | None = None, **how: Any) -> Findings:
    """The answer at the end of what happened; the chronicle is read up to a revision."""
    events = cluster.line.events
    views, chronicle = LiveViews(Profile()), Chronicle()
    for event in events:
        views.fold(event)
    chronicle.fold([each for each in events if until is None or each.revision <= until])
    info = HistoryInfo(id=HistoryId(1), name="h")
    rules = scheduling_rules.of(info, Profile(), CelCompiler(detailed_errors=True))
    given = {"recorded": (), "now": cluster.line.now, **how}
    causes = PodCauses(unasked=lambda _: "", reads_accounts=False)
    steps = collect_in_steps(
        "h", views, chronicle, given.pop("recorded"), causes, rules=rules, **given
    )
    made: list[Findings] = []

    def drain() -> Generator[None, None, None]:
        made.append((yield from steps))

    for _ in drain():
        pass
    (found,) = made
    return found


def troubled() -> Cluster:
    """A pod that waits for a device, a rule that selects nothing, and a claim that nobody uses."""
    cluster = with_devices("n1")
    cluster.claim("held")
    cluster.pod("runs", claim="held")
    cluster.settle()
    cluster.claim("wanted")
    cluster.pod("waits", claim="wanted")
    cluster.claim("unused")
    cluster.rule("idle", selector={"pool": "nowhere"})
    return cluster.settle().wait(5)


def kinds(found: Findings) -> list[str]:
    return [each.kind.value for each in found.items]


def test_findings_come_by_severity_and_kind() -> None:
    doubt = Doubt(code="gap", affects=Affects.CONTENT, kind="pods", count=3, text="lines are lost")
    found = answer(troubled(), recorded=[doubt])
    assert kinds(found) == [
        "WaitingPods",
        "IdleRules",
        "Losses",
        "UnreachedDevices",  # no container names the claim
        "UnusedClaims",
    ]
    severities = [each.severity for each in found.items]
    assert severities == sorted(severities, key=list(Severity).index)
    assert found.is_complete
    assert (found.omitted, found.note, found.unseen) == (0, "", "")


def test_findings_beyond_the_bound_are_counted() -> None:
    whole = answer(troubled())
    few = answer(troubled(), items_max=1)
    assert few.items == whole.items[:1]
    assert few.omitted == len(whole.items) - 1 > 0


def test_findings_of_a_namespace_are_about_its_objects() -> None:
    cluster = troubled()
    assert "IdleRules" not in kinds(answer(cluster, namespace="default"))
    cluster.create("v1", "Namespace", "empty")
    assert kinds(answer(cluster, namespace="empty")) == []
    with pytest.raises(NotFound, match="namespace 'defalt' does not occur in the history"):
        answer(cluster, namespace="defalt")


def test_answer_from_a_part_of_the_log_says_so() -> None:
    cluster = troubled()
    end = cluster.line.head.revision
    part = answer(cluster, until=end - 1)
    assert not part.is_complete
    assert (part.revision, part.examined) == (end, end - 1)
    assert part.note.startswith(f"not complete: the log was read up to revision {end - 1} of {end}")
    # Nobody can say yet that there is no such namespace.
    assert answer(cluster, until=end - 1, namespace="defalt").items == ()


def test_nothing_is_known_before_the_first_event() -> None:
    cluster = Cluster(namespaces=())
    found = answer(cluster)
    assert found.items == (of_cluster.NOTHING_KNOWN,)
    assert (found.revision, found.examined) == (0, 0)


def test_quiet_history_says_what_no_finding_shows() -> None:
    quiet = answer(with_devices("n1").settle())
    assert quiet.items == ()
    assert quiet.is_complete
