"""client-go against a real process: the requests that its parts were seen to make, in their order.

Typed clients, shared informers, the resourceslice controller of drivers, leader election and both
event recorders. No Go is needed: `go_client` speaks as they do and decodes as strictly. Parity:
api.md 12, 15 row 24.
"""

import pytest

from tests import draws
from tests.acceptance.go_client import HEADERS, PROTOBUF, GoClient, Reflector, check_types
from tests.acceptance.server_process import server_process

pytestmark = [pytest.mark.database, pytest.mark.slow]

DRA = "resource.k8s.io/v1"
SLICES = f"/apis/{DRA}/resourceslices"
CLAIMS = f"/apis/{DRA}/namespaces/go/resourceclaims"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/go/leases"
NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/go/configmaps"
APPLY_CBOR = "application/apply-patch+cbor"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("go"), "go") as found:
        yield found


@pytest.fixture(scope="module")
def http(server):
    with server.client(headers=HEADERS) as made:
        yield made


@pytest.fixture
def go(http):
    return GoClient(http)


def named(api_version, kind, name, **parts):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}


def capacity():
    return {"cpu": "4", "memory": "8Gi", "pods": "110"}


def node(go, name):
    found = go.http.get(f"{NODES}/{name}")
    if found.status_code == 200:
        return found.json()
    return go.create(NODES, named("v1", "Node", name, status={"capacity": capacity()}))


def resource_slice(owner, *, index=0):
    name = owner["metadata"]["name"]
    reference = {
        "apiVersion": "v1", "kind": "Node", "name": name, "uid": owner["metadata"]["uid"],
        "controller": True,
    }  # fmt: skip
    device = {
        "name": "dev-0",
        "attributes": {
            "model": {"string": "x"}, "big": {"int": 5}, "zero": {"int": 0}, "off": {"bool": False},
            "release": {"version": "1.2.3"}, "below": {"int": -7},
        },
        "capacity": {"mem": {"value": "40Gi"}, "odd": {"value": "1500m"}},
        "consumesCounters": [{"counterSet": "set", "counters": {"slices": {"value": "2"}}}],
    }  # fmt: skip
    return {
        "apiVersion": DRA,
        "kind": "ResourceSlice",
        "metadata": {
            "generateName": f"{index}-d.example.com-{name}-",
            "ownerReferences": [reference],
        },
        "spec": {
            "driver": "d.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 2},
            "devices": [device],
        },
    }


def claim(name):
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    requests = [{"name": "r", "exactly": exactly}]
    return named(DRA, "ResourceClaim", name, spec={"devices": {"requests": requests}})


def versions(tree):
    found = tree["metadata"]
    return {"uid": found["uid"], "resourceVersion": found["resourceVersion"]}


@draws.in_turn(
    "ways",
    each_day="api/test_slice_controller.py::"
    "test_controller_publishes_updates_and_removes_the_slices_of_its_node",
)
def test_slice_controller_publishes_updates_and_removes_a_pool(go, http):
    owner = node(go, "w1")
    selector = "spec.driver=d.example.com,spec.nodeName=w1"
    informer = Reflector(http, SLICES, fieldSelector=selector)
    informer.streaming_list()
    assert informer.store == {}
    wanted = resource_slice(owner)
    made = go.create(SLICES, wanted)
    assert made["spec"] == wanted["spec"], "fields were dropped by the apiserver"
    assert made["metadata"]["name"].startswith("0-d.example.com-w1-")
    changed = made | {"spec": made["spec"] | {"pool": made["spec"]["pool"] | {"generation": 2}}}
    changed["spec"]["devices"] = [*made["spec"]["devices"], {"name": "dev-1"}]
    updated = go.update(f"{SLICES}/{made['metadata']['name']}", changed)
    assert updated["spec"] == changed["spec"]
    assert int(updated["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    place = f"{SLICES}/{made['metadata']['name']}"
    stale = go.update(place, changed, expected=409)
    assert stale["reason"] == "Conflict"
    assert stale["details"]["name"] == made["metadata"]["name"]
    refused = go.delete(place, DRA, expected=409, preconditions=versions(made))
    assert refused["reason"] == "Conflict"
    gone = go.delete(place, DRA, preconditions=versions(updated))
    assert gone["kind"] == "ResourceSlice"
    assert go.delete(place, DRA, expected=404)["reason"] == "NotFound"
    informer.resume(lambda told: len(told.told) == 3)
    assert [kind for kind, _ in informer.told] == ["ADDED", "MODIFIED", "DELETED"]


def test_slice_of_a_network_pool_is_selected_by_an_empty_node(go, http):
    tree = resource_slice(node(go, "w1"))
    del tree["spec"]["nodeName"], tree["metadata"]["ownerReferences"]
    tree["spec"] |= {"allNodes": True, "driver": "net.example.com"}
    made = go.create(SLICES, tree)
    informer = Reflector(http, SLICES, fieldSelector="spec.driver=net.example.com,spec.nodeName=")
    informer.streaming_list()
    assert list(informer.store) == [made["metadata"]["name"]]


def test_informer_goes_on_after_a_break_and_by_the_fallback_sees_the_same(go, http):
    path = CONFIG_MAPS
    informer, fallback = Reflector(http, path), Reflector(http, path)
    go.create(path, named("v1", "ConfigMap", "a", data={"k": "v"}))
    informer.streaming_list()
    fallback.list()
    assert informer.store.keys() == fallback.store.keys()
    go.create(path, named("v1", "ConfigMap", "b"))
    go.delete(f"{path}/a", "v1")
    for reflector in (informer, fallback):
        reflector.resume(lambda told: "b" in told.store and "a" not in told.store)
    # Items of a list do not say their kind, those of a stream do; a typed client keeps neither.
    assert untyped(informer.store) == untyped(fallback.store)
    assert informer.version == fallback.version


def untyped(store):
    return {
        name: {field: value for field, value in tree.items() if field not in ("apiVersion", "kind")}
        for name, tree in store.items()
    }


def test_status_is_updated_with_a_version_and_again_after_a_conflict(go):
    made = go.create(CLAIMS, claim("c1"))
    assert made["spec"] == claim("c1")["spec"]
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "dev-0"}
    allocated = made | {"status": {"allocation": {"devices": {"results": [result]}}}}
    written = go.update(f"{CLAIMS}/c1/status", allocated)
    assert written["status"]["allocation"]["devices"]["results"] == [result]
    assert go.update(f"{CLAIMS}/c1/status", allocated, expected=409)["reason"] == "Conflict"
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    fresh = go.get(f"{CLAIMS}/c1")
    fresh["status"]["reservedFor"] = [consumer]
    assert go.update(f"{CLAIMS}/c1/status", fresh)["status"]["reservedFor"] == [consumer]


def test_driver_applies_device_status_and_again_without_a_change(go):
    made = go.create(CLAIMS, claim("c2"))
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "dev-0"}
    allocation = {"allocation": {"devices": {"results": [result]}}}
    go.update(f"{CLAIMS}/c2/status", made | {"status": allocation})
    condition = {
        "type": "Ready", "status": "True", "reason": "Up", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    device = {
        "driver": "d.example.com", "pool": "p", "device": "dev-0", "conditions": [condition],
        "data": {"a": 1}, "networkData": {"interfaceName": "eth0", "ips": ["10.0.0.1/24"]},
    }  # fmt: skip
    tree = named(DRA, "ResourceClaim", "c2", status={"devices": [device]})
    tree["metadata"]["namespace"] = "go"
    applied = go.apply(f"{CLAIMS}/c2/status", tree, "driver")
    assert applied["status"]["devices"] == [device]
    again = go.apply(f"{CLAIMS}/c2/status", tree, "driver")
    assert again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]


def test_leader_is_elected_renews_and_loses_to_the_second(go):
    place = f"{LEASES}/lead"
    assert go.get(place, expected=404)["reason"] == "NotFound"
    spec = {
        "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2026-01-01T00:00:00+00:00", "renewTime": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    made = go.create(LEASES, named("coordination.k8s.io/v1", "Lease", "lead", spec=spec))
    assert made["spec"]["leaseTransitions"] == 0
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
    renewed = made | {"spec": made["spec"] | {"renewTime": "2026-01-01T00:00:02+00:00"}}
    first = go.update(place, renewed)
    taken = made | {"spec": made["spec"] | {"holderIdentity": "two"}}
    assert go.update(place, taken, expected=409)["reason"] == "Conflict"
    released = first | {"spec": first["spec"] | {"holderIdentity": ""}}
    assert go.update(place, released)["spec"]["holderIdentity"] == ""
    blind = named("coordination.k8s.io/v1", "Lease", "lead", spec=spec)
    assert go.update(place, blind, expected=422)["reason"] == "Invalid"


def test_recorders_count_repeated_events_in_a_series(go, http):
    about = go.create(CONFIG_MAPS, named("v1", "ConfigMap", "about"))["metadata"]
    reference = {
        "kind": "ConfigMap", "apiVersion": "v1", "name": "about", "namespace": "go",
        "uid": about["uid"],
    }  # fmt: skip
    old = named("v1", "Event", "about.1", involvedObject=reference, reason="Old", message="m")
    old |= {"type": "Warning", "count": 1, "source": {"component": "old"}}
    old |= {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    old["metadata"]["namespace"] = "go"
    path = "/api/v1/namespaces/go/events"
    assert go.create(path, old)["count"] == 1
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    again = {"count": 2, "lastTimestamp": "2026-01-01T00:00:09Z"}
    patched = http.patch(f"{path}/about.1", json=again, headers=strategic)
    assert (patched.status_code, patched.json()["count"]) == (200, 2)
    new = named("events.k8s.io/v1", "Event", "about.2", regarding=reference, reason="New")
    new |= {"note": "n", "type": "Normal", "action": "Doing", "reportingController": "new.io/c"}
    new |= {"reportingInstance": "new-1", "eventTime": "2026-01-01T00:00:00+00:00"}
    new["metadata"]["namespace"] = "go"
    events = "/apis/events.k8s.io/v1/namespaces/go/events"
    made = go.create(events, new)
    assert made["eventTime"] == "2026-01-01T00:00:00.000000Z"
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}}
    patched = http.patch(f"{events}/about.2", json=series, headers=strategic).json()
    assert patched["series"] == series["series"]
    found = go.get(
        path, fieldSelector=f"involvedObject.name=about,involvedObject.uid={about['uid']}"
    )
    assert [item["reason"] for item in found["items"]] == ["Old", "New"]


def test_client_that_would_rather_speak_cbor_is_answered_in_json(http):
    accept = {"Accept": "application/cbor, */*"}
    answer = http.get(CONFIG_MAPS, headers=accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    accept = {"Accept": "application/cbor"}
    assert http.get(CONFIG_MAPS, headers=accept).json()["reason"] == "NotAcceptable"
    for method, path, content_type in (
        ("POST", CONFIG_MAPS, "application/cbor"),
        ("PATCH", f"{CONFIG_MAPS}/x?fieldManager=f", APPLY_CBOR),
    ):
        headers = {"Content-Type": content_type}
        refused = http.request(method, path, content=b"\xd9\xd9\xf7\xa0", headers=headers)
        assert (refused.status_code, refused.json()["reason"]) == (415, "UnsupportedMediaType")


def test_answer_is_compressed_for_those_who_take_it(http):
    answer = http.get("/openapi/v3/api/v1")
    assert answer.headers["content-encoding"] == "gzip"


CLAIM_KINDS = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
LISTS = [
    "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/services",
    "/api/v1/secrets", "/api/v1/serviceaccounts", "/api/v1/events", "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/apps/v1/daemonsets",
    "/apis/coordination.k8s.io/v1/leases", "/apis/events.k8s.io/v1/events",
    "/apis/policy/v1/poddisruptionbudgets",
    *(f"/apis/resource.k8s.io/{version}/{plural}"
      for version in ("v1", "v1beta2", "v1beta1") for plural in CLAIM_KINDS),
    *(f"/apis/resource.k8s.io/{version}/devicetaintrules"
      for version in ("v1", "v1beta2", "v1alpha3")),
]  # fmt: skip


def template(labels):
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}


def workload(kind):
    selector = {"matchLabels": {"w": kind.lower()}}
    spec = {"selector": selector, "template": template(selector["matchLabels"])}
    return named("apps/v1", kind, kind.lower(), spec=spec)


@pytest.fixture(scope="module")
def populated(http):
    """At least one object of each kind that is listed."""
    go = GoClient(http)
    owner = node(go, "w2")
    go.create(SLICES, resource_slice(owner, index=7))
    go.create(CLAIMS, claim("strict"))
    spec = {"selectors": [{"cel": {"expression": "true"}}]}
    go.create(f"/apis/{DRA}/deviceclasses", named(DRA, "DeviceClass", "strict", spec=spec))
    inner = {"spec": {"spec": claim("x")["spec"]}}
    path = f"/apis/{DRA}/namespaces/go/resourceclaimtemplates"
    go.create(path, named(DRA, "ResourceClaimTemplate", "strict", **inner))
    spec = {"taint": {"key": "k", "effect": "None"}, "deviceSelector": {"driver": "d.example.com"}}
    go.create(f"/apis/{DRA}/devicetaintrules", named(DRA, "DeviceTaintRule", "strict", spec=spec))
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        go.create(f"/apis/apps/v1/namespaces/go/{kind.lower()}s", workload(kind))
    core = "/api/v1/namespaces/go"
    go.create(f"{core}/pods", named("v1", "Pod", "strict", spec=template({})["spec"]))
    go.create(f"{core}/configmaps", named("v1", "ConfigMap", "strict", binaryData={"b": "AP8="}))
    go.create(f"{core}/secrets", named("v1", "Secret", "strict", data={"a": "AP8="}))
    spec = {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}}
    go.create(f"{core}/services", named("v1", "Service", "strict", spec=spec))
    go.create(f"{core}/serviceaccounts", named("v1", "ServiceAccount", "strict"))
    spec = {"minAvailable": "50%", "selector": {"matchLabels": {"n": "n"}}}
    budget = named("policy/v1", "PodDisruptionBudget", "strict", spec=spec)
    go.create("/apis/policy/v1/namespaces/go/poddisruptionbudgets", budget)
    return go


def test_every_list_decodes_into_the_types_of_go(populated):
    empty = []
    for path in LISTS:
        found = populated.get(path)
        check_types(found)
        empty += [] if found["items"] else [path]
    assert [path for path in empty if "lease" not in path and "events" not in path] == []


WRONG = [
    {"metadata": {"creationTimestamp": "2026-01-01T00:00:00+00:00"}},
    {"metadata": {"generation": 1.0}},
    {"metadata": {"generation": "1"}},
    {"metadata": {"finalizers": None}},
    {"metadata": {"ownerReferences": [{"kind": "Node"}]}},
    {"spec": {"containers": None}},
    {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]}},
    {"spec": {"containers": [], "hostNetwork": "true"}},
    {"spec": {"containers": [], "unheardOf": 1}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_decoder_takes_no_value_of_another_type(wrong):
    with pytest.raises(AssertionError):
        check_types({"apiVersion": "v1", "kind": "Pod"} | wrong)


@pytest.mark.parametrize("body", [b"", b"k8s\x00", b"{}", b"k8s\x00\xff\xff"], ids=repr)
def test_body_that_is_no_protobuf_is_a_bad_request(http, body):
    answer = http.post(CONFIG_MAPS, content=body, headers={"Content-Type": PROTOBUF})
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
