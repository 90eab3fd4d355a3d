"""ResourceQuota: refusals and counts (KEP-4816)."""

import msgspec
import pytest

from app.domain.errors import Forbidden
from app.domain.log import EventType, ObjectKey
from app.domain.objects.kinds import pod_resources
from app.domain.objects.quota import limits, usage
from app.domain.objects.quota import scopes as quota_scopes
from app.domain.objects.write.staging import StagedObjects
from app.domain.values import quantity
from tests import draws
from tests.cluster import Cluster, claim_spec
from tests.simulation.world import World

DEVICES = ".deviceclass.resource.k8s.io/devices"


def cluster_with(**hard: str) -> Cluster:
    cluster = Cluster()
    limits = {name.replace("__", DEVICES): value for name, value in hard.items()}
    cluster.create("v1", "ResourceQuota", "q", spec={"hard": limits})
    return cluster.settle()


def used(cluster: Cluster) -> dict:
    return cluster.must("resourcequotas", "q")["status"]["used"]


def alternatives(*asked: tuple[str, int]) -> dict:
    listed = [
        {"name": f"a{index}", "deviceClassName": name, "count": count}
        for index, (name, count) in enumerate(asked)
    ]
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": listed}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (claim_spec(), {"gpu": 1}),
        (claim_spec(count=3), {"gpu": 3}),
        (claim_spec(allocationMode="All"), {"gpu": 32}),
        (alternatives(("large", 1), ("small", 2)), {"large": 1, "small": 2}),
        (alternatives(("gpu", 1), ("gpu", 4), ("nic", 1)), {"gpu": 4, "nic": 1}),
    ],
)
def test_every_alternative_counts(spec, expected):
    for request in spec["devices"]["requests"]:
        for asked in [*request.get("firstAvailable", ()), request.get("exactly", {})]:
            asked.setdefault("allocationMode", "ExactCount")
    counted = usage.of_object("resource.k8s.io", "resourceclaims", {"spec": spec})
    found = {
        name: quantity.as_integer(amount)
        for name, amount in counted.items()
        if not name.startswith(usage.ORDINARY)
    }
    assert found.pop("count/resourceclaims.resource.k8s.io") == 1
    assert found == {f"{name}{DEVICES}": amount for name, amount in expected.items()}


def test_claim_beyond_the_quota_is_refused_with_the_numbers():
    cluster = cluster_with(gpu__="2")
    cluster.claim("first", count=2)
    with pytest.raises(Forbidden) as refusal:
        cluster.claim("second")
    assert str(refusal.value) == (
        'resourceclaims.resource.k8s.io "second" is forbidden: exceeded quota: q, requested: '
        f"gpu{DEVICES}=1, used: gpu{DEVICES}=2, limited: gpu{DEVICES}=2"
    )


def test_prioritized_list_does_not_get_around_a_quota():
    cluster = cluster_with(large__="0", small__="5")
    with pytest.raises(Forbidden, match=r"large\.deviceclass"):
        cluster.create(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "claim",
            spec=alternatives(("large", 1), ("small", 1)),
        )


def test_only_exceeded_names_are_listed():
    cluster = cluster_with(**{"gpu__": "1", "count/resourceclaims.resource.k8s.io": "9"})
    with pytest.raises(Forbidden) as refusal:
        cluster.claim(count=2)
    assert "count/" not in str(refusal.value)


def test_other_classes_and_namespaces_are_not_limited():
    cluster = cluster_with(gpu__="0")
    cluster.claim(class_name="nic")
    cluster.create("v1", "Namespace", "other")
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "claim", "namespace": "other"},
            "spec": claim_spec(),
        }
    )


def test_used_follows_creation_and_deletion():
    cluster = cluster_with(**{"gpu__": "9", "count/resourceclaims.resource.k8s.io": "9"})
    assert used(cluster) == {f"gpu{DEVICES}": "0", "count/resourceclaims.resource.k8s.io": "0"}
    cluster.claim("one", count=2)
    cluster.claim("two")
    cluster.settle()
    assert used(cluster) == {f"gpu{DEVICES}": "3", "count/resourceclaims.resource.k8s.io": "2"}
    cluster.delete("resourceclaims", "one")
    cluster.settle()
    assert used(cluster) == {f"gpu{DEVICES}": "1", "count/resourceclaims.resource.k8s.io": "1"}


def test_status_follows_a_changed_limit():
    cluster = cluster_with(gpu__="1")
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {f"gpu{DEVICES}": None, "pods": "4"}}})
    cluster.settle()
    status = cluster.must("resourcequotas", "q")["status"]
    assert status == {"hard": {"pods": "4"}, "used": {"pods": "0"}}


def test_claim_of_a_template_that_does_not_fit_keeps_the_pod_waiting():
    cluster = cluster_with(gpu__="1")
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template()
    cluster.pod("one", template="gpu")
    cluster.pod("two", template="gpu")
    cluster.settle()
    assert len(cluster.names("resourceclaims")) == 1
    assert any("exceeded quota: q" in text for text in cluster.messages("two"))


def test_finished_pods_leave_room():
    cluster = cluster_with(pods="1")
    cluster.pod("one")
    with pytest.raises(Forbidden):
        cluster.pod("two")
    cluster.finish("one")
    cluster.pod("two")


def containers(*resources: dict) -> list[dict]:
    return [
        {"name": f"c{number}", "image": "busybox:1", "resources": found}
        for number, found in enumerate(resources)
    ]


def test_compute_of_pods_is_limited_with_upstreams_text():
    cluster = cluster_with(**{"requests.cpu": "2", "requests.memory": "2Gi", "limits.cpu": "4"})
    both = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    cluster.pod(
        "one", containers=containers(both, {**both, "requests": {"cpu": "1", "memory": "0"}})
    )
    cluster.settle()
    assert used(cluster) == {"requests.cpu": "1500m", "requests.memory": "1Gi", "limits.cpu": "4"}
    with pytest.raises(Forbidden) as refusal:
        cluster.pod("two", containers=containers(both))
    assert str(refusal.value) == (
        'pods "two" is forbidden: exceeded quota: q, requested: limits.cpu=2, used: limits.cpu=4, '
        "limited: limits.cpu=4"
    )


def test_init_containers_count_by_their_peak_and_sidecars_add_up():
    spec = {
        "containers": containers({"requests": {"cpu": "1"}}),
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "big", "resources": {"requests": {"cpu": "3"}}},
        ],
        "overhead": {"cpu": "250m"},
    }
    found = pod_resources.effective(spec, "requests")
    assert str(found["cpu"]) == "4250m"


def test_pod_that_does_not_say_what_is_limited_is_refused():
    cluster = cluster_with(**{"limits.memory": "2Gi", "requests.cpu": "2"})
    with pytest.raises(Forbidden) as refusal:
        cluster.pod("silent", containers=containers({"requests": {"cpu": "1"}}, {}))
    assert str(refusal.value) == (
        'pods "silent" is forbidden: failed quota: q: must specify limits.memory for: c0,c1; '
        "requests.cpu for: c1"
    )


def test_finished_pods_leave_their_compute():
    cluster = cluster_with(**{"requests.cpu": "1"})
    asks = containers({"requests": {"cpu": "1"}})
    cluster.pod("one", containers=asks)
    with pytest.raises(Forbidden):
        cluster.pod("two", containers=asks)
    cluster.finish("one")
    cluster.pod("two", containers=asks)


def test_any_kind_is_counted_by_its_number():
    cluster = cluster_with(**{"count/deployments.apps": "1", "count/pods": "3"})
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers({})}},
    }
    cluster.create("apps/v1", "Deployment", "one", spec=spec)
    with pytest.raises(Forbidden) as refusal:
        cluster.create("apps/v1", "Deployment", "two", spec=spec)
    assert "requested: count/deployments.apps=1, used: count/deployments.apps=1" in str(
        refusal.value
    )


def test_devices_of_claims_count_for_the_extended_resource_of_their_class():
    implicit = "requests.deviceclass.resource.kubernetes.io/gpu"
    cluster = cluster_with(**{"requests.example.com/gpu": "2", implicit: "4"})
    cluster.create(
        "resource.k8s.io/v1", "DeviceClass", "gpu", spec={"extendedResourceName": "example.com/gpu"}
    )
    cluster.claim("one", count=2)
    cluster.settle()
    assert used(cluster) == {"requests.example.com/gpu": "2", implicit: "2"}
    with pytest.raises(Forbidden) as refusal:
        cluster.claim("two")
    assert "requested: requests.example.com/gpu=1, used: requests.example.com/gpu=2" in str(
        refusal.value
    )
    with pytest.raises(Forbidden):
        cluster.pod("asks", requests={"example.com/gpu": "1"})


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(4))
def test_running_sums_are_what_counting_anew_gives(seed):
    world = World(seed)
    objects = world.cluster.line.views.objects
    scopes = [{"scopeName": "BestEffort", "operator": "Exists"}]
    objects.tally("default", scopes)
    for _ in range(40):
        world.step()
        anew = usage.RunningUsage()
        anew.keep_within(scopes, ())
        for group, resource in objects.resources():
            for event in objects.events(group, resource, "default"):
                anew.add(group, resource, event.object)
        kept = objects.tally("default")
        assert kept.amounts() == anew.amounts(), f"seed {seed}"
        within, expected = kept.within(scopes), anew.within(scopes)
        assert within is not None
        assert expected is not None
        assert within.amounts() == expected.amounts(), f"seed {seed}"


def test_sums_within_a_batch_follow_what_is_staged_and_taken_back():
    cluster = cluster_with(gpu__="9")
    cluster.claim("there", count=2)
    claim = cluster.must("resourceclaims", "there")
    staged = StagedObjects(cluster.line.views.objects)
    event = cluster.line.views.objects.event(
        ObjectKey("resource.k8s.io", "resourceclaims", "default", "there")
    )
    assert event is not None
    name = f"gpu{DEVICES}"

    def count() -> int:
        return int(str(staged.tally("default").amount(name)))

    assert count() == 2
    mark = staged.mark()
    other = msgspec.structs.replace(event, key=event.key._replace(name="other"), tree=claim)
    staged.stage([other])
    assert count() == 4
    gone = msgspec.structs.replace(event, type=EventType.OBJECT_DELETED)
    staged.stage([gone])
    assert count() == 2
    staged.restore(mark)
    assert count() == 2
    staged.stage([gone])
    assert count() == 0


def test_sums_are_kept_from_one_create_to_the_next():
    cluster = cluster_with(gpu__="1000")
    objects = cluster.line.views.objects
    cluster.claim("first")
    kept = objects.tally("default")
    for number in range(5):
        cluster.claim(f"claim-{number}")
    assert objects.tally("default") is kept
    assert str(kept.amount(f"gpu{DEVICES}")) == "6"


def test_pods_within_scopes_are_judged_once_each(monkeypatch):
    cluster = Cluster()
    spec = {"hard": {"pods": "1000"}, "scopes": ["BestEffort"]}
    cluster.create("v1", "ResourceQuota", "q", spec=spec)
    judged = []
    match = quota_scopes.match
    monkeypatch.setattr(
        quota_scopes, "match", lambda scopes, pod: judged.append(pod) or match(scopes, pod)
    )
    numbers = []
    for number in range(20):
        judged.clear()
        plain_pod(cluster, f"p{number}")
        numbers.append(len(judged))
    assert max(numbers[10:]) == max(numbers[1:10])


def test_sums_within_scopes_follow_a_batch_and_forget_the_oldest_sets():
    cluster = scoped("BestEffort")
    plain_pod(cluster, "there")
    objects = cluster.line.views.objects
    staged = StagedObjects(objects)
    scopes = quota_scopes.of(cluster.must("resourcequotas", "q"))
    event = objects.event(ObjectKey("", "pods", "default", "there"))
    assert event is not None

    def count() -> str:
        within = staged.tally("default", scopes).within(scopes)
        assert within is not None
        return str(within.amount("pods"))

    staged.tally("default")
    assert count() == "1"
    mark = staged.mark()
    staged.stage([msgspec.structs.replace(event, key=event.key._replace(name="other"))])
    assert count() == "2"
    staged.stage([msgspec.structs.replace(event, type=EventType.OBJECT_DELETED)])
    assert count() == "1"
    staged.restore(mark)
    assert count() == "1"
    for number in range(usage.SCOPES_MAX + 1):
        other = [{"scopeName": "PriorityClass", "operator": "In", "values": [str(number)]}]
        assert objects.tally("default", other).within(other) is not None
    assert objects.tally("default").within(scopes) is None


def scoped(*scopes: str, **expression: object) -> Cluster:
    """A cluster with room for one pod within the scopes."""
    cluster = Cluster()
    spec: dict = {"hard": {"pods": "1"}}
    if scopes:
        spec["scopes"] = list(scopes)
    if expression:
        spec["scopeSelector"] = {"matchExpressions": [expression]}
    cluster.create("v1", "ResourceQuota", "q", spec=spec)
    return cluster.settle()


def plain_pod(cluster: Cluster, name: str, requests: dict | None = None, **spec: object) -> None:
    container = {"name": "c", "image": "i"}
    if requests:
        container["resources"] = {"requests": requests}
    cluster.create("v1", "Pod", name, spec={"containers": [container], **spec})


CPU = {"cpu": "1"}
AFFINITY = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "namespaces": ["other"]}
        ]
    }
}
SCOPES = [
    ("Terminating", {"activeDeadlineSeconds": 5}, {}),
    ("NotTerminating", {}, {"activeDeadlineSeconds": 5}),
    ("BestEffort", {}, {"requests": CPU}),
    ("NotBestEffort", {"requests": CPU}, {}),
    ("CrossNamespacePodAffinity", {"affinity": AFFINITY}, {}),
]


@pytest.mark.parametrize(("scope", "within", "beyond"), SCOPES)
def test_quota_with_a_scope_counts_only_the_pods_within(scope, within, beyond):
    cluster = scoped(scope)
    plain_pod(cluster, "one", **within)
    plain_pod(cluster, "free", **beyond)
    with pytest.raises(Forbidden) as refusal:
        plain_pod(cluster, "two", **within)
    assert str(refusal.value) == (
        'pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, '
        "limited: pods=1"
    )
    plain_pod(cluster, "free-too", **beyond)
    cluster.settle()
    assert used(cluster) == {"pods": "1"}
    cluster.delete("pods", "one")
    cluster.settle()
    assert used(cluster) == {"pods": "0"}


def test_every_scope_must_match():
    cluster = scoped("Terminating", "NotBestEffort")
    plain_pod(cluster, "one", activeDeadlineSeconds=5)
    plain_pod(cluster, "two", requests=CPU)
    plain_pod(cluster, "three", requests=CPU, activeDeadlineSeconds=5)
    cluster.settle()
    assert used(cluster) == {"pods": "1"}


@pytest.mark.parametrize(
    ("operator", "values", "counted"),
    [
        ("In", ["high"], {"high"}),
        ("NotIn", ["high"], {"low", ""}),
        ("Exists", [], {"high", "low"}),
        ("DoesNotExist", [], {""}),
    ],
)
def test_scope_selector_looks_at_the_priority_class(operator, values, counted):
    refused = set()
    for name in ("high", "low", ""):
        named = {"priorityClassName": name} if name else {}
        probe = scoped(scopeName="PriorityClass", operator=operator, values=values)
        for other in ("high", "low"):
            probe.create("scheduling.k8s.io/v1", "PriorityClass", other, value=5)
        plain_pod(probe, "one", **named)
        try:
            plain_pod(probe, "two", **named)
        except Forbidden:
            refused.add(name)
    assert refused == counted


def volume_claim(cluster: Cluster, name: str, storage: str, storage_class: str = "fast") -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": storage}},
    }
    cluster.create("v1", "PersistentVolumeClaim", name, spec=spec)


def test_services_count_with_their_node_ports_and_balancers():
    limits = {"services": "9", "services.nodeports": "3", "services.loadbalancers": "1"}
    cluster = cluster_with(**limits)

    def service(name: str, kind: str, count: int, **more: object) -> None:
        ports = [{"name": f"p{number}", "port": 80 + number} for number in range(count)]
        cluster.create("v1", "Service", name, spec={"type": kind, "ports": ports, **more})

    service("plain", "ClusterIP", 5)
    service("two", "NodePort", 2)
    with pytest.raises(Forbidden, match=r"requested: services\.nodeports=2, used: .*=2, limited"):
        service("more", "NodePort", 2)
    service("quiet", "LoadBalancer", 2, allocateLoadBalancerNodePorts=False)
    with pytest.raises(Forbidden, match=r"exceeded quota: q, requested: services\.loadbalancers=1"):
        service("second", "LoadBalancer", 1)
    cluster.settle()
    assert used(cluster) == {
        "services": "3",
        "services.nodeports": "2",
        "services.loadbalancers": "1",
    }


def test_storage_is_limited_in_all_and_by_class():
    of_class = "fast.storageclass.storage.k8s.io"
    limits = {
        "requests.storage": "10Gi",
        "persistentvolumeclaims": "3",
        f"{of_class}/requests.storage": "6Gi",
        f"{of_class}/persistentvolumeclaims": "2",
    }
    cluster = cluster_with(**limits)
    volume_claim(cluster, "one", "4Gi")
    with pytest.raises(Forbidden) as refusal:
        volume_claim(cluster, "two", "3Gi")
    assert str(refusal.value) == (
        'persistentvolumeclaims "two" is forbidden: exceeded quota: q, requested: '
        f"{of_class}/requests.storage=3Gi, used: {of_class}/requests.storage=4Gi, "
        f"limited: {of_class}/requests.storage=6Gi"
    )
    volume_claim(cluster, "slow", "5Gi", "slow")
    with pytest.raises(Forbidden, match=r"used: requests\.storage=9Gi"):
        volume_claim(cluster, "three", "2Gi", "slow")
    volume_claim(cluster, "last", "1Gi")
    with pytest.raises(Forbidden, match=r"limited: .*persistentvolumeclaims=2"):
        volume_claim(cluster, "beyond", "1")
    cluster.settle()
    assert used(cluster) == {
        "requests.storage": "10Gi",
        "persistentvolumeclaims": "3",
        f"{of_class}/requests.storage": "5Gi",
        f"{of_class}/persistentvolumeclaims": "2",
    }


TERM = {"topologyKey": "kubernetes.io/hostname"}


@pytest.mark.parametrize(
    ("more", "looks_across"),
    [
        ({}, False),
        ({"namespaces": []}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
    ],
)
@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("is_required", [False, True])
def test_any_term_of_affinity_may_look_at_other_namespaces(side, is_required, more, looks_across):
    terms = [TERM, TERM | more]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": terms if is_required else [TERM],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": term} for term in ([] if is_required else terms)
        ],
    }
    scopes = [{"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]
    pod = {"spec": {"affinity": {side: affinity}}}
    assert quota_scopes.match(scopes, pod) == looks_across


PODS, CLAIMS = ("", "pods"), ("resource.k8s.io", "resourceclaims")
SERVICES, VOLUMES = ("", "services"), ("", "persistentvolumeclaims")


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("pods", {PODS}),
        ("services", {SERVICES}),
        ("services.nodeports", {SERVICES}),
        ("services.loadbalancers", {SERVICES}),
        ("configmaps", {("", "configmaps")}),
        ("count/pods", {PODS}),
        ("count/deployments.apps", {("apps", "deployments")}),
        ("count/things.example.com", {("example.com", "things")}),
        ("persistentvolumeclaims", {VOLUMES}),
        ("requests.storage", {VOLUMES}),
        ("fast.storageclass.storage.k8s.io/requests.storage", {VOLUMES}),
        (f"gpu{DEVICES}", {CLAIMS}),
        ("cpu", {PODS}),
        ("memory", {PODS}),
        ("requests.cpu", {PODS}),
        ("limits.memory", {PODS}),
        ("hugepages-2Mi", {PODS}),
        ("requests.hugepages-2Mi", {PODS}),
        ("requests.example.com/gpu", {PODS, CLAIMS}),
        ("requests.deviceclass.resource.kubernetes.io/gpu", {PODS, CLAIMS}),
        ("example.com/gpu", set()),
        ("limits.example.com/gpu", set()),
        ("requests.limits.cpu", set()),
        ("unknown", set()),
    ],
)
def test_name_of_a_limit_says_which_objects_count(name, places):
    assert limits.places_of(name) == places


def test_limits_that_cannot_be_counted_or_read_leave_the_others_alone():
    hard = {"unknown": "1", "pods": "many", "services": "2", "cpu": {}, "configmaps": "3"}
    read = limits.hard({"spec": {"hard": hard}})
    assert {name: str(amount) for name, amount in read.items()} == {
        "services": "2",
        "configmaps": "3",
    }


@pytest.mark.parametrize(
    ("group", "resource", "names"),
    [
        ("", "services", {"count/services", "services"}),
        ("example.com", "services", {"count/services.example.com"}),
        ("", "nodes", {"count/nodes"}),
        ("example.com", "pods", {"count/pods.example.com"}),
        ("", "pods", {"count/pods", "pods"}),
    ],
)
def test_objects_of_another_group_count_under_no_name_of_the_core(group, resource, names):
    assert usage.of_object(group, resource, {"spec": {}}).keys() == names


@pytest.mark.parametrize(
    ("mode", "count", "devices"),
    [
        ("ExactCount", 3, 3),
        ("ExactCount", None, 0),
        ("ExactCount", "3", 0),
        ("All", None, 32),
        ("All", 3, 32),
        ("", 3, 0),
        (None, 3, 0),
    ],
)
def test_request_counts_for_its_devices(mode, count, devices):
    assert usage.devices_of(mode, count) == devices


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ({}, "cpu for: c0; limits.cpu for: a,c0"),
        ({"requests": {"memory": "1"}}, ""),
        ({"limits": {"memory": "1"}}, ""),
        ({"requests": {}, "limits": {}}, "cpu for: c0; limits.cpu for: a,c0"),
    ],
)
def test_pod_that_says_itself_what_it_needs_may_have_silent_containers(resources, text):
    spec = {
        "containers": containers({}),
        "initContainers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        "resources": resources,
    }
    assert usage.missing_compute({"spec": spec}, ["pods", "limits.cpu", "cpu"]) == text


class PlainReader:
    """Objects without running sums."""

    def __init__(self, objects) -> None:
        self._objects = objects
        self.get, self.keys = objects.get, objects.keys


def test_objects_are_counted_alike_where_no_sums_are_kept():
    cluster = cluster_with(gpu__="9", pods="9")
    cluster.claim("one", count=2)
    plain_pod(cluster, "pod")
    plain_pod(cluster, "more", CPU)
    objects = cluster.line.views.objects
    scopes = [{"scopeName": "BestEffort", "operator": "Exists"}]
    anew = limits.tally_of(PlainReader(objects), "default", scopes)
    kept = limits.tally_of(objects, "default", scopes)
    assert anew.amounts() == kept.amounts()
    assert anew.within(scopes).amounts() == kept.within(scopes).amounts()
    assert str(anew.amount(f"gpu{DEVICES}")) == "2"
    assert str(anew.within(scopes).amount("pods")) == "1"


def test_quota_that_is_gone_is_written_no_more():
    cluster = cluster_with(gpu__="9")
    cluster.delete("resourcequotas", "q")
    (quotas,) = (each for each in cluster.line.controllers if each.name == "quotas")
    cluster.settle()
    cluster.claim("one")
    (event,) = (each for each in cluster.line.events if each.key.name == "one")
    assert list(quotas.keys_of(event, cluster.line.views)) == []
