"""Creating objects: names, namespaces, what the server sets, what it refuses."""

from typing import Any

import pytest

from app.domain.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject, FieldValidation
from app.domain.values.names import SUFFIX_ALPHABET
from tests.unit.objects import builders
from tests.unit.objects.builders import claim, cluster, key, pod, stamp


def slice_with(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            **spec,
        },
    }


def test_a_created_object_has_what_the_server_sets() -> None:
    made = cluster()
    tree = made.create(claim())
    assert made.types == ["ObjectCreated"]
    assert made.last.created
    assert tree["metadata"] == {
        "name": "c",
        "namespace": "default",
        "creationTimestamp": "2026-03-01T10:00:02Z",
        "uid": stamp(seconds=2).uid,
        "resourceVersion": "2",
    }
    assert made.get(key("resourceclaims", "c", "default")) == tree


def test_what_only_the_server_may_set_is_dropped() -> None:
    written = claim()
    written["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/x",
        "managedFields": [{"manager": "m"}],
    }
    metadata = cluster().create(written)["metadata"]
    assert set(metadata) == {"name", "namespace", "creationTimestamp", "uid", "resourceVersion"}
    assert metadata["uid"] != "mine"


def test_generation_is_the_servers_where_it_counts_one() -> None:
    written = claim()
    written["metadata"]["generation"] = 7
    assert cluster().create(written)["metadata"]["generation"] == 7
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c", "generation": 7},
        "spec": {},
    }
    assert cluster().create(device_class)["metadata"]["generation"] == 1


def test_the_tree_of_a_command_is_not_changed() -> None:
    written = claim()
    before = repr(written)
    cluster().create(written)
    assert repr(written) == before


@pytest.mark.parametrize(
    ("tree", "generation"),
    [
        (claim(), None),
        (slice_with(), 1),
        (pod(), 1),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, None),
        (
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "r"},
                "spec": {"taint": {"key": "k", "effect": "NoExecute"}},
            },
            1,
        ),
    ],
)
def test_generation_starts_at_one_where_it_is_kept(
    tree: dict[str, Any], generation: int | None
) -> None:
    assert cluster().create(tree)["metadata"].get("generation") == generation


def test_kind_and_version_are_taken_from_the_request() -> None:
    written = claim()
    del written["kind"], written["apiVersion"]
    place = key("resourceclaims", "c", "default")
    tree = cluster().do(CreateObject(key=place, version="v1", tree=written))
    assert (tree["apiVersion"], tree["kind"]) == ("resource.k8s.io/v1", "ResourceClaim")


def test_a_generated_name_has_a_suffix_from_the_uid() -> None:
    made = cluster()
    written = claim()
    written["metadata"] = {"generateName": "pod-gpu-", "namespace": "default"}
    name = made.create(written)["metadata"]["name"]
    assert name.startswith("pod-gpu-")
    assert len(name) == len("pod-gpu-") + 5
    assert set(name[-5:]) <= set(SUFFIX_ALPHABET)
    assert made.last.drafts[0].key.name == name


def test_a_generated_name_that_is_taken_is_drawn_again() -> None:
    made = cluster()
    written = claim()
    written["metadata"] = {"generateName": "x-", "namespace": "default"}
    place = key("resourceclaims", "", "default")
    names = set()
    for _ in range(3):
        decided = builders.lifecycle.decide(
            made.world,
            CreateObject(key=place, version="v1", tree=written),
            stamp(uid="always-the-same"),
            made.rules,
        )
        made.world.append(decided.drafts)
        names.add(decided.drafts[0].key.name)
    assert len(names) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "DeviceClass"},
            'DeviceClass in version "v1" cannot be handled as a ResourceClaim: '
            "converting (v1.DeviceClass) to (resource.ResourceClaim): unknown conversion",
        ),
        (
            {"apiVersion": "resource.k8s.io/v1beta2"},
            "the API version in the data (resource.k8s.io/v1beta2) does not match the expected "
            "API version (resource.k8s.io/v1)",
        ),
        (
            {"metadata": {"name": "c", "namespace": "other"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"metadata": {"name": "c", "namespace": "default", "resourceVersion": "5"}},
            "resourceVersion should not be set on objects to be created",
        ),
        (
            {"metadata": {"name": "c", "namespace": "default", "resourceVersion": "9" * 5_000}},
            "resourceVersion should not be set on objects to be created",
        ),
        (
            {"spec": {"devices": []}},
            'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: json: cannot '
            "unmarshal array into Go struct field ResourceClaimSpec.spec.devices of type "
            "v1.DeviceClaim",
        ),
    ],
)
def test_a_tree_that_contradicts_its_request_is_refused(
    change: dict[str, Any], message: str
) -> None:
    made = cluster()
    command = CreateObject(
        key=key("resourceclaims", "c", "default"), version="v1", tree=claim() | change
    )
    with pytest.raises(BadRequest) as refused:
        made.do(command)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1alpha3", "is an older form that is no longer read"),
        ("v1alpha2", "is the older form with a control plane controller"),
        ("v2", "was never released"),
    ],
)
def test_versions_that_are_not_read_are_refused_in_words(version: str, words: str) -> None:
    made = cluster()
    tree = claim() | {"apiVersion": f"resource.k8s.io/{version}"}
    command = CreateObject(key=key("resourceclaims", "c", "default"), version="v1", tree=tree)
    with pytest.raises(BadRequest, match=words):
        made.do(command)


@pytest.mark.parametrize(
    ("release", "place", "version"),
    [
        ("1.37", ObjectKey("resource.k8s.io", "resourceclaims", "default", "c"), "v1alpha3"),
        ("1.37", ObjectKey("resource.k8s.io", "frobs", "default", "c"), "v1"),
        ("1.37", ObjectKey("", "resourceclaims", "default", "c"), "v1"),
        ("1.36", ObjectKey("resource.k8s.io", "devicetaintrules", "", "c"), "v1"),
        ("1.35", ObjectKey("resource.k8s.io", "devicetaintrules", "", "c"), "v1beta2"),
    ],
)
def test_resources_that_the_release_does_not_serve_are_not_found(
    release: str, place: ObjectKey, version: str
) -> None:
    made = cluster(release)
    with pytest.raises(NotFound) as refused:
        made.do(CreateObject(key=place, version=version, tree={}))
    assert refused.value.message == "the server could not find the requested resource"


def test_the_namespace_must_exist() -> None:
    with pytest.raises(NotFound) as refused:
        cluster().create(claim(namespace="nowhere"))
    assert refused.value.message == 'namespaces "nowhere" not found'
    assert refused.value.resource == "namespaces"


def test_nothing_is_created_in_a_terminating_namespace() -> None:
    made = cluster()
    made.namespace("ending")
    made.delete(key("namespaces", "ending"))
    with pytest.raises(Forbidden) as refused:
        made.create(claim(namespace="ending"))
    assert refused.value.message == (
        'resourceclaims.resource.k8s.io "c" is forbidden: unable to create new content in '
        "namespace ending because it is being terminated"
    )
    assert refused.value.causes[0].reason == "NamespaceTerminating"


def test_a_name_can_be_taken_once() -> None:
    made = cluster()
    made.create(claim())
    with pytest.raises(AlreadyExists) as refused:
        made.create(claim())
    assert refused.value.message == 'resourceclaims.resource.k8s.io "c" already exists'


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (
            {"namespace": "default"},
            "metadata.name: Required value: name or generateName is required",
        ),
        (
            {"name": "C", "namespace": "default"},
            'metadata.name: Invalid value: "C": a lowercase RFC 1123 subdomain must consist of',
        ),
        (
            {"name": "c", "namespace": "default", "labels": {"a b": "x"}},
            'metadata.labels: Invalid value: "a b": name part must consist of',
        ),
        (
            {"name": "c", "namespace": "default", "labels": {"a": "-"}},
            'metadata.labels: Invalid value: "-": a valid label must be',
        ),
        (
            {"name": "c", "namespace": "default", "finalizers": ["mine"]},
            'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer',
        ),
        (
            {"name": "c", "namespace": "default", "ownerReferences": [{"kind": "Pod"}]},
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        ),
    ],
)
def test_bad_metadata_is_refused_with_its_field(metadata: dict[str, Any], message: str) -> None:
    made = cluster()
    tree = claim() | {"metadata": metadata}
    with pytest.raises(Invalid) as refused:
        made.create(tree)
    assert message in refused.value.message
    assert refused.value.causes


def test_several_errors_are_listed_in_brackets() -> None:
    tree = claim(name="C")
    tree["metadata"]["finalizers"] = ["mine"]
    with pytest.raises(Invalid) as refused:
        cluster().create(tree)
    assert refused.value.message.startswith(
        'ResourceClaim.resource.k8s.io "C" is invalid: [metadata.name: Invalid value'
    )
    assert len(refused.value.causes) == 2


def test_unknown_fields_warn_are_silent_or_are_refused() -> None:
    made = cluster()
    tree = claim()
    tree["spec"]["devices"]["requests"][0]["exactly"]["cuont"] = 2
    text = 'unknown field "spec.devices.requests[0].exactly.cuont"'
    made.create(tree, decoding_problems=('duplicate field "metadata.name"',), dry_run=True)
    assert made.last.warnings == (text, 'duplicate field "metadata.name"')
    made.create(tree, field_validation=FieldValidation.IGNORE, dry_run=True)
    assert made.last.warnings == ()
    with pytest.raises(BadRequest) as refused:
        made.create(tree, field_validation=FieldValidation.STRICT)
    assert refused.value.message == (
        'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: '
        f"strict decoding error: {text}"
    )


def test_a_dry_run_shows_the_object_and_changes_nothing() -> None:
    made = cluster()
    tree = made.create(claim(), dry_run=True)
    assert tree["metadata"]["uid"]
    assert made.types == []
    assert made.last.created
    assert made.get(key("resourceclaims", "c", "default")) is None


def test_claims_get_their_defaults_and_an_empty_status() -> None:
    tree = claim(status={"allocation": {"devices": {}}})
    tree["spec"]["devices"]["requests"] = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "k"}]}},
        {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {"name": "c", "firstAvailable": [{"name": "x", "deviceClassName": "gpu", "count": 2}]},
    ]
    made = cluster().create(tree)
    assert made["status"] == {}
    requests = made["spec"]["devices"]["requests"]
    assert requests[0]["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"key": "k", "operator": "Equal"}],
    }
    assert requests[1]["exactly"] == {"deviceClassName": "gpu", "allocationMode": "All"}
    assert requests[2]["firstAvailable"] == [
        {"name": "x", "deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"}
    ]


def test_templates_get_the_defaults_of_claims() -> None:
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": claim()["spec"]},
    }
    made = cluster().create(tree)
    exactly = made["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["count"] == 1
    assert made["spec"]["metadata"] == {}


def test_claims_of_v1beta1_are_stored_as_v1() -> None:
    tree = claim() | {"apiVersion": "resource.k8s.io/v1beta1"}
    tree["spec"]["devices"]["requests"] = [{"name": "gpu", "deviceClassName": "gpu"}]
    made = cluster().create(tree)
    assert made["apiVersion"] == "resource.k8s.io/v1"
    assert made["spec"]["devices"]["requests"] == [
        {
            "name": "gpu",
            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        }
    ]


def test_taints_without_time_are_added_now() -> None:
    taints = [
        {"key": "k", "effect": "NoSchedule"},
        {"key": "k", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"},
    ]
    made = cluster().create(slice_with(devices=[{"name": "d", "taints": taints}]))
    times = [taint["timeAdded"] for taint in made["spec"]["devices"][0]["taints"]]
    assert times == ["2026-03-01T10:00:02Z", "2020-01-01T00:00:00Z"]


def test_an_upper_case_driver_name_warns() -> None:
    made = cluster()
    made.create(slice_with(driver="D.example.com"))
    assert made.last.warnings == (
        'spec.driver: driver names should be lowercase; "D.example.com" contains uppercase '
        "characters",
    )


def test_namespaces_get_label_finalizer_and_phase() -> None:
    made = cluster()
    made.namespace("n")
    tree = made.get(key("namespaces", "n"))
    assert tree is not None
    assert tree["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert tree["spec"] == {"finalizers": ["kubernetes"]}
    assert tree["status"] == {"phase": "Active"}


def test_nodes_keep_their_status_and_start_not_ready() -> None:
    capacity = {"cpu": "4000m"}
    tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": capacity},
    }
    made = cluster().create(tree)
    assert made["status"]["capacity"] == made["status"]["allocatable"] == {"cpu": "4"}
    assert made["spec"]["taints"] == [
        {"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}
    ]


def test_pods_get_defaults_admission_and_their_first_status() -> None:
    made = cluster().create(pod(status={"phase": "Running"}))
    spec = made["spec"]
    assert spec["containers"][0] == {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    del spec["containers"], spec["tolerations"]
    assert spec == {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ([], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
        ([{"operator": "Exists"}], [""]),
        (
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
        (
            [{"key": "x", "operator": "Exists"}],
            ["x", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
    ],
)
def test_pods_tolerate_unready_nodes_for_a_while(
    given: list[dict[str, str]], keys: list[str]
) -> None:
    made = cluster().create(pod(tolerations=given))
    assert [each.get("key", "") for each in made["spec"]["tolerations"]] == keys


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1000m", "memory": "1Gi"}, "requests": {"cpu": "1"}}, "Guaranteed"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service_follows_cpu_and_memory(
    resources: dict[str, Any], expected: str
) -> None:
    container = {"name": "main", "image": "x:1", "resources": resources}
    assert cluster().create(pod(containers=[container]))["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/busybox", "Always"),
        ("busybox@sha256:abc", "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    made = cluster().create(pod(containers=[{"name": "main", "image": image}]))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_gated_pods_say_so() -> None:
    made = cluster().create(pod(schedulingGates=[{"name": "wait"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"


def test_priority_comes_from_the_class() -> None:
    made = cluster()
    made.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
            "preemptionPolicy": "Never",
        }
    )
    spec = made.create(pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = made.create(pod("q", priorityClassName="system-node-critical"))["spec"]
    assert spec["priority"] == 2_000_001_000
    with pytest.raises(Forbidden, match="no PriorityClass with name low was found"):
        made.create(pod("r", priorityClassName="low"))


def test_events_of_both_groups_are_stored_alike() -> None:
    made = cluster()
    tree = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.5Z",
        "note": "hello",
        "reportingController": "me",
        "regarding": {"kind": "Pod", "name": "p"},
    }
    made.create(tree)
    stored = made.get(key("events", "e", "default", group=""))
    assert stored is not None
    assert stored["apiVersion"] == "v1"
    assert stored["message"] == "hello"
    assert stored["involvedObject"] == {"kind": "Pod", "name": "p"}
    assert stored["eventTime"] == "2026-01-01T00:00:00.500000Z"
    assert stored["firstTimestamp"] is None
    with pytest.raises(AlreadyExists) as refused:
        made.create(tree)
    assert refused.value.message == 'events.events.k8s.io "e" already exists'


@pytest.mark.parametrize(
    ("gate", "tree", "gone"),
    [
        (
            "DRADeviceTaints",
            slice_with(devices=[{"name": "d", "taints": [{"key": "k", "effect": "None"}]}]),
            "taints",
        ),
        (
            "DRAPartitionableDevices",
            slice_with(perDeviceNodeSelection=True),
            "perDeviceNodeSelection",
        ),
        (
            "DRAConsumableCapacity",
            slice_with(devices=[{"name": "d", "allowMultipleAllocations": True}]),
            "allowMultipleAllocations",
        ),
        (
            "DRADeviceBindingConditions",
            slice_with(devices=[{"name": "d", "bindsToNode": True}]),
            "bindsToNode",
        ),
        (
            "DRAListTypeAttributes",
            slice_with(devices=[{"name": "d", "attributes": {"a": {"ints": [1]}}}]),
            "ints",
        ),
        (
            "DRAAdminAccess",
            claim(
                spec={
                    "devices": {
                        "requests": [
                            {"name": "a", "exactly": {"deviceClassName": "g", "adminAccess": True}}
                        ]
                    }
                }
            ),
            "adminAccess",
        ),
        (
            "DRAPrioritizedList",
            claim(
                spec={
                    "devices": {
                        "requests": [
                            {
                                "name": "a",
                                "firstAvailable": [{"name": "b", "deviceClassName": "g"}],
                            }
                        ]
                    }
                }
            ),
            "firstAvailable",
        ),
    ],
)
def test_fields_of_a_gate_that_is_off_are_dropped(
    gate: str, tree: dict[str, Any], gone: str
) -> None:
    assert gone in repr(cluster(**{gate: True}).create(tree))
    assert gone not in repr(cluster(**{gate: False}).create(tree))


def test_name_of_an_object_that_is_being_deleted_is_told_so():
    made = cluster()
    tree = pod("p")
    tree["metadata"]["finalizers"] = ["a.example/b"]
    made.create(tree)
    with pytest.raises(AlreadyExists) as problem:
        made.create(pod("p"))
    assert problem.value.message == 'pods "p" already exists'
    made.delete(key("pods", "p", "default"))
    with pytest.raises(AlreadyExists) as problem:
        made.create(pod("p"))
    assert problem.value.message == 'object is being deleted: pods "p" already exists'
