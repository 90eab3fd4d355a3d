"""The official Python client: typed, dynamic, informer. Parity: api.md 5, 9, 13."""

import queue
import threading

import pytest
from kubernetes import client as k8s
from kubernetes import config, dynamic, utils, watch
from kubernetes.client import ApiException
from kubernetes.informer import SharedInformer

from tests import draws
from tests.acceptance.server_process import server_process, wait_for_own_objects

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]

REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "none.example.com"}}
OLD_REQUEST = {"name": "gpu", "deviceClassName": "none.example.com"}
CLAIM_TYPE = "ResourceV1ResourceClaim"


def claim(name, request=REQUEST, **metadata):
    return {"metadata": {"name": name} | metadata, "spec": {"devices": {"requests": [request]}}}


def config_map(name, **metadata):
    return {"metadata": {"name": name} | metadata, "data": {"a": "b"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("kubernetes")) as found:
        yield found


@pytest.fixture(scope="module")
def api(server):
    with config.new_client_from_config(str(server.kubeconfig)) as found:
        yield found


@pytest.fixture
def core(api):
    return k8s.CoreV1Api(api)


@pytest.fixture
def claims(api):
    return k8s.ResourceV1Api(api)


@pytest.fixture
def space(server, core, request):
    """A namespace of the test's own."""
    name = request.node.originalname.replace("_", "-")[:60].strip("-")
    core.create_namespace({"metadata": {"name": name}})
    with server.client() as client:
        wait_for_own_objects(client, name)
    return name


def refused(call, *arguments, **options):
    """The Status of a call that must fail."""
    with pytest.raises(ApiException) as problem:
        call(*arguments, **options)
    return k8s.ApiClient().deserialize(problem.value.body, "V1Status", "application/json")


# ---- versions


def test_claim_is_one_object_in_every_version(api, claims, space):
    old, middle = k8s.ResourceV1beta1Api(api), k8s.ResourceV1beta2Api(api)
    made = old.create_namespaced_resource_claim(space, claim("c", OLD_REQUEST))
    assert made.api_version == "resource.k8s.io/v1beta1"
    assert made.spec.devices.requests[0].count == 1
    new = claims.read_namespaced_resource_claim("c", space)
    assert new.spec.devices.requests[0].exactly.device_class_name == "none.example.com"
    assert new.metadata.uid == made.metadata.uid
    assert new.metadata.resource_version == made.metadata.resource_version
    between = middle.read_namespaced_resource_claim("c", space)
    assert between.spec.to_dict() == new.spec.to_dict()
    new.metadata.labels = {"by": "v1"}
    claims.replace_namespaced_resource_claim("c", space, new)
    assert old.list_namespaced_resource_claim(space).items[0].metadata.labels == {"by": "v1"}


def test_alternatives_survive_the_oldest_version(api, claims, space):
    old = k8s.ResourceV1beta1Api(api)
    some = {"name": "big", "deviceClassName": "big.example.com", "count": 2}
    request = {"name": "any", "firstAvailable": [some]}
    claims.create_namespaced_resource_claim(space, claim("c", request))
    read = old.read_namespaced_resource_claim("c", space)
    assert read.spec.devices.requests[0].first_available[0].count == 2
    read.metadata.labels = {"by": "v1beta1"}
    old.replace_namespaced_resource_claim("c", space, read)
    again = claims.read_namespaced_resource_claim("c", space)
    assert again.metadata.labels == {"by": "v1beta1"}
    assert again.spec.devices.requests[0].first_available[0].name == "big"


def test_slice_devices_are_wrapped_in_the_oldest_version_only(api, claims):
    old = k8s.ResourceV1beta1Api(api)
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    basic = {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool}
    devices = [{"name": "d0", "basic": basic}]
    old.create_resource_slice({"metadata": {"name": "s"}, "spec": spec | {"devices": devices}})
    device = claims.read_resource_slice("s").spec.devices[0]
    assert device.attributes["model"].string == "x"
    assert device.capacity["memory"].value == "1Gi"
    assert old.read_resource_slice("s").spec.devices[0].basic.attributes["model"].string == "x"
    listed = claims.list_resource_slice(field_selector="spec.driver=d.example.com,spec.nodeName=n")
    assert [item.metadata.name for item in listed.items] == ["s"]
    assert claims.list_resource_slice(field_selector="spec.nodeName=").items == []
    assert claims.delete_resource_slice("s").metadata.name == "s"


def test_taint_rule_is_served_as_v1alpha3_too(api):
    old, custom = k8s.ResourceV1alpha3Api(api), k8s.CustomObjectsApi(api)
    taint = {"key": "k", "effect": "NoSchedule"}
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": taint},
    }
    custom.create_cluster_custom_object("resource.k8s.io", "v1", "devicetaintrules", rule)
    assert old.read_device_taint_rule("r").spec.taint.time_added is not None
    old.delete_device_taint_rule("r")


# ---- conflicts, status, deletion


def test_second_of_two_writers_gets_a_conflict_and_retries(claims, space):
    claims.create_namespaced_resource_claim(space, claim("c"))
    first = claims.read_namespaced_resource_claim("c", space)
    second = claims.read_namespaced_resource_claim("c", space)
    first.metadata.labels = {"writer": "first"}
    claims.replace_namespaced_resource_claim("c", space, first)
    second.metadata.labels = {"writer": "second"}
    status = refused(claims.replace_namespaced_resource_claim, "c", space, second)
    assert (status.code, status.reason, status.details.kind) == (
        409, "Conflict", "resourceclaims",
    )  # fmt: skip
    assert "the object has been modified" in status.message
    fresh = claims.read_namespaced_resource_claim("c", space)
    fresh.metadata.labels = {"writer": "second"}
    replaced = claims.replace_namespaced_resource_claim("c", space, fresh)
    assert replaced.metadata.labels == {"writer": "second"}
    old = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    status = refused(claims.patch_namespaced_resource_claim, "c", space, old)
    assert status.code == 409


def test_write_that_changes_nothing_keeps_its_version(core, space):
    core.create_namespaced_config_map(space, config_map("m"))
    read = core.read_namespaced_config_map("m", space)
    replaced = core.replace_namespaced_config_map("m", space, read)
    assert replaced.metadata.resource_version == read.metadata.resource_version


def test_status_and_spec_are_written_apart(claims, space):
    made = claims.create_namespaced_resource_claim(space, claim("c"))
    result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
    made.status = {"allocation": {"devices": {"results": [result]}}}
    made.metadata.labels = {"not": "by status"}
    written = claims.replace_namespaced_resource_claim_status("c", space, made)
    assert written.status.allocation.devices.results[0].device == "d0"
    assert not written.metadata.labels
    # Not a pod: the controller of claims takes away pods that do not exist.
    user = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u1"}
    patched = claims.patch_namespaced_resource_claim_status(
        "c", space, {"status": {"reservedFor": [user]}}
    )
    assert patched.status.reserved_for[0].uid == "u1"
    patched.status = None
    patched.metadata.labels = {"by": "main"}
    replaced = claims.replace_namespaced_resource_claim("c", space, patched)
    assert replaced.status.allocation.devices.results[0].device == "d0"
    assert replaced.metadata.labels == {"by": "main"}
    assert claims.read_namespaced_resource_claim_status("c", space).status.reserved_for


def test_spec_of_a_claim_cannot_be_changed(claims, space):
    made = claims.create_namespaced_resource_claim(space, claim("c"))
    made.spec.devices.requests[0].exactly.count = 7
    status = refused(claims.replace_namespaced_resource_claim, "c", space, made)
    assert (status.code, status.reason, status.details.kind) == (422, "Invalid", "ResourceClaim")
    assert status.details.causes[0].field == "spec"


def test_finalizer_holds_an_object_until_it_is_removed(claims, space):
    held = claim("c", finalizers=["example.com/hold"])
    made = claims.create_namespaced_resource_claim(space, held)
    gone = claims.delete_namespaced_resource_claim("c", space)
    assert gone.metadata.deletion_timestamp
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    claims.patch_namespaced_resource_claim("c", space, patch)
    assert refused(claims.read_namespaced_resource_claim, "c", space).code == 404
    stream = watch.Watch(return_type=CLAIM_TYPE).stream(
        claims.list_namespaced_resource_claim, space,
        resource_version=made.metadata.resource_version, timeout_seconds=1,
    )  # fmt: skip
    assert [event["type"] for event in stream] == ["MODIFIED", "DELETED"]


def test_delete_checks_its_preconditions(claims, space):
    made = claims.create_namespaced_resource_claim(space, claim("c"))
    other = k8s.V1DeleteOptions(preconditions=k8s.V1Preconditions(uid="another"))
    status = refused(claims.delete_namespaced_resource_claim, "c", space, body=other)
    assert (status.code, status.reason) == (409, "Conflict")
    same = k8s.V1DeleteOptions(preconditions=k8s.V1Preconditions(uid=made.metadata.uid))
    assert claims.delete_namespaced_resource_claim("c", space, body=same).metadata.name == "c"


def test_collection_is_deleted_by_selector(core, space):
    for number in range(4):
        labels = {"half": "even" if number % 2 == 0 else "odd"}
        core.create_namespaced_config_map(space, config_map(f"m{number}", labels=labels))
    core.delete_collection_namespaced_config_map(space, label_selector="half=even")
    left = core.list_namespaced_config_map(space, label_selector="half").items
    assert [item.metadata.name for item in left] == ["m1", "m3"]


def test_dry_run_and_strict_validation(api, core, space):
    core.create_namespaced_config_map(space, config_map("m"), dry_run="All")
    assert refused(core.read_namespaced_config_map, "m", space).code == 404
    # The typed call would refuse the field itself.
    wrong = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spek": {}} | claim("c")
    status = refused(
        k8s.CustomObjectsApi(api).create_namespaced_custom_object,
        "resource.k8s.io", "v1", space, "resourceclaims", wrong, field_validation="Strict",
    )  # fmt: skip
    assert (status.code, status.reason) == (400, "BadRequest")
    assert 'unknown field "spek"' in status.message


def test_manifests_are_created_by_the_tool_of_the_client(api, core, space):
    trees = [
        {"apiVersion": "v1", "kind": "ConfigMap"} | config_map("one"),
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | claim("two"),
    ]
    for tree in trees:
        utils.create_from_dict(api, tree, namespace=space)
    with pytest.raises(utils.FailToCreateError):
        utils.create_from_dict(api, trees[0], namespace=space)
    assert core.read_namespaced_config_map("one", space).data == {"a": "b"}


def test_scheduler_and_evictor_of_ones_own(core, space):
    core.create_node({"metadata": {"name": "node-of-python"}})
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "schedulerName": "mine", "terminationGracePeriodSeconds": 0}
    core.create_namespaced_pod(space, {"metadata": {"name": "p"}, "spec": spec})
    target = k8s.V1ObjectReference(kind="Node", name="node-of-python")
    binding = k8s.V1Binding(metadata=k8s.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", space, binding, _preload_content=False)
    bound = core.list_namespaced_pod(space, field_selector="spec.nodeName=node-of-python").items
    assert [pod.metadata.name for pod in bound] == ["p"]
    eviction = k8s.V1Eviction(
        metadata=k8s.V1ObjectMeta(name="p", namespace=space),
        delete_options=k8s.V1DeleteOptions(grace_period_seconds=0),
    )
    core.create_namespaced_pod_eviction("p", space, eviction)
    assert refused(core.read_namespaced_pod, "p", space).code == 404
    core.delete_node("node-of-python")


def test_leader_is_elected_with_a_lease(api, space):
    leases = k8s.CoordinationV1Api(api)
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15}
    made = leases.create_namespaced_lease(space, {"metadata": {"name": "lock"}, "spec": spec})
    rival = leases.read_namespaced_lease("lock", space)
    made.spec.lease_transitions = 1
    leases.replace_namespaced_lease("lock", space, made)
    rival.spec.holder_identity = "two"
    assert refused(leases.replace_namespaced_lease, "lock", space, rival).code == 409
    assert leases.read_namespaced_lease("lock", space).spec.holder_identity == "one"


def test_access_is_reviewed(api, space):
    attributes = {"namespace": space, "verb": "create", "resource": "pods"}
    review = k8s.AuthorizationV1Api(api).create_self_subject_access_review(
        {"spec": {"resourceAttributes": attributes}}
    )
    assert review.status.allowed
    who = k8s.AuthenticationV1Api(api).create_self_subject_review({})
    assert who.status.user_info.username


# ---- reading


def test_pages_show_the_moment_of_the_first_page(core, space):
    for number in range(7):
        core.create_namespaced_config_map(space, config_map(f"m{number}"))
    whole = core.list_namespaced_config_map(space)
    page = core.list_namespaced_config_map(space, limit=3)
    assert page.metadata.remaining_item_count == len(whole.items) - 3
    core.delete_namespaced_config_map("m6", space)
    core.create_namespaced_config_map(space, config_map("m55"))
    found, versions = list(page.items), {page.metadata.resource_version}
    while page.metadata._continue:
        page = core.list_namespaced_config_map(space, limit=3, _continue=page.metadata._continue)
        found += page.items
        versions.add(page.metadata.resource_version)
    names = [item.metadata.name for item in found]
    assert names == [item.metadata.name for item in whole.items]
    assert "m6" in names
    assert len(versions) == 1
    status = refused(core.list_namespaced_config_map, space, limit=3, _continue="nonsense")
    assert status.code == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=front", ["m0", "m1"]),
        ("tier!=front", ["m2", "m3"]),
        ("tier in (front,back),!old", ["m0", "m2"]),
        ("tier notin (front),tier", ["m2"]),
        ("old", ["m1"]),
    ],
)
def test_label_selectors_find_what_they_say(core, selector, expected):
    space = "selectors"
    labels = [{"tier": "front"}, {"tier": "front", "old": ""}, {"tier": "back"}, {"x": "y"}]
    if space not in [item.metadata.name for item in core.list_namespace().items]:
        core.create_namespace({"metadata": {"name": space}})
        for number, given in enumerate(labels):
            core.create_namespaced_config_map(space, config_map(f"m{number}", labels=given))
    listed = core.list_namespaced_config_map(space, label_selector=selector).items
    names = [item.metadata.name for item in listed]
    assert [name for name in names if name.startswith("m")] == expected


def test_field_selectors_find_what_they_say(core, space):
    for name in ("a", "b"):
        core.create_namespaced_config_map(space, config_map(name))
    everywhere = core.list_config_map_for_all_namespaces(
        field_selector=f"metadata.namespace={space},metadata.name!=a"
    )
    names = [item.metadata.name for item in everywhere.items]
    assert "b" in names
    assert "a" not in names
    status = refused(core.list_namespaced_config_map, space, field_selector="data.a=b")
    assert status.code == 400
    assert '"data.a" is not a known field selector' in status.message


def test_list_of_the_past_is_never_gone(claims, space):
    made = claims.create_namespaced_resource_claim(space, claim("c"))
    claims.delete_namespaced_resource_claim("c", space)
    version = made.metadata.resource_version
    past = claims.list_namespaced_resource_claim(
        space, resource_version=version, resource_version_match="Exact"
    )
    assert [item.metadata.name for item in past.items] == ["c"]
    before = claims.list_namespaced_resource_claim(
        space, resource_version="1", resource_version_match="Exact"
    )
    assert before.items == []
    status = refused(
        claims.list_namespaced_resource_claim, space,
        resource_version="999999999", resource_version_match="NotOlderThan",
    )  # fmt: skip
    assert (status.code, status.reason) == (504, "Timeout")


# ---- watching


def test_watch_loop_goes_on_over_time_outs_under_concurrent_writes(claims, space):
    begin = claims.list_namespaced_resource_claim(space).metadata.resource_version
    written = []

    def write():
        for number in range(30):
            made = claims.create_namespaced_resource_claim(space, claim(f"c{number}"))
            written.append(made.metadata.resource_version)

    writer = threading.Thread(target=write)
    writer.start()
    seen, at = [], begin
    while len(seen) < 30:
        watching = watch.Watch(return_type=CLAIM_TYPE)
        stream = watching.stream(
            claims.list_namespaced_resource_claim, space,
            resource_version=at, timeout_seconds=1, allow_watch_bookmarks=True,
        )  # fmt: skip
        for number, event in enumerate(stream):
            if event["type"] != "BOOKMARK":
                seen.append(event["object"].metadata.resource_version)
            if number == 10:
                watching.stop()
        at = watching.resource_version
    writer.join()
    assert seen == written


def test_watch_from_the_first_version_is_never_too_old(core):
    stream = watch.Watch().stream(core.list_namespace, resource_version="1", timeout_seconds=1)
    names = [event["object"].metadata.name for event in stream if event["type"] == "ADDED"]
    listed = {item.metadata.name for item in core.list_namespace().items}
    assert listed - set(names) <= {"default"}, "the first write made the namespace default"


def test_watch_with_a_selector_adds_and_deletes_what_enters_and_leaves(core, space):
    begin = core.list_namespaced_config_map(space).metadata.resource_version
    core.create_namespaced_config_map(space, config_map("m"))
    for color in ("red", "blue"):
        core.patch_namespaced_config_map("m", space, {"metadata": {"labels": {"color": color}}})
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, space,
        label_selector="color=red", resource_version=begin, timeout_seconds=1,
    )  # fmt: skip
    assert [event["type"] for event in stream] == ["ADDED", "DELETED"]


def test_informer_keeps_its_cache_and_calls_its_handlers(core, space):
    core.create_namespaced_config_map(space, config_map("before", labels={"mine": ""}))
    heard = queue.Queue()
    informer = SharedInformer(core.list_namespaced_config_map, space, label_selector="mine")
    for kind in ("ADDED", "MODIFIED", "DELETED", "ERROR"):
        informer.add_event_handler(kind, lambda found, kind=kind: heard.put((kind, found)))
    informer.start()
    try:
        kind, found = heard.get(timeout=20)
        assert (kind, found.metadata.name) == ("ADDED", "before")
        core.create_namespaced_config_map(space, config_map("after", labels={"mine": ""}))
        kind, found = heard.get(timeout=20)
        assert (kind, found.metadata.name) == ("ADDED", "after")
        core.patch_namespaced_config_map("after", space, {"data": {"a": "c"}})
        assert heard.get(timeout=20)[0] == "MODIFIED"
        assert informer.cache.get_by_key(f"{space}/after").data == {"a": "c"}
        core.delete_namespaced_config_map("before", space)
        assert heard.get(timeout=20)[0] == "DELETED"
        assert informer.cache.list_keys() == [f"{space}/after"]
    finally:
        informer.stop()


# ---- dynamic client, server-side apply


@pytest.fixture(scope="module")
def found(api):
    return dynamic.DynamicClient(api)


def test_dynamic_client_knows_every_version_and_subresource(found):
    for version in ("v1", "v1beta2", "v1beta1"):
        kind = found.resources.get(api_version=f"resource.k8s.io/{version}", kind="ResourceClaim")
        assert (kind.namespaced, kind.name) == (True, "resourceclaims")
        assert "status" in kind.subresources
    # The same kind is in two groups; the name of the group decides.
    assert found.resources.get(api_version="events.k8s.io/v1", kind="Event").group


def test_dynamic_client_patches_in_each_way_and_watches(found, space):
    kind = found.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    kind.create(body=claim("c"), namespace=space)
    ways = {
        "application/merge-patch+json": {"metadata": {"labels": {"merge": "x"}}},
        "application/strategic-merge-patch+json": {"metadata": {"labels": {"strategic": "x"}}},
        "application/json-patch+json": [
            {"op": "add", "path": "/metadata/labels/json", "value": "x"}
        ],
    }
    for way, body in ways.items():
        kind.patch(name="c", namespace=space, body=body, content_type=way)
    labels = kind.get(name="c", namespace=space).metadata.labels.to_dict()
    assert labels == {"merge": "x", "strategic": "x", "json": "x"}
    events = [event["type"] for event in kind.watch(namespace=space, timeout=1)]
    assert events == ["ADDED"]
    listed = kind.get(namespace=space, label_selector="merge=x")
    assert [item.metadata.name for item in listed.items] == ["c"]
    kind.delete(name="c", namespace=space)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        kind.get(name="c", namespace=space)


def test_appliers_own_fields_conflict_and_force(found, space):
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}

    def apply(manager, data, **options):
        return maps.server_side_apply(
            tree | {"data": data}, name="m", namespace=space, field_manager=manager, **options
        )

    apply("one", {"a": "1", "b": "1"})
    with pytest.raises(dynamic.exceptions.ConflictError) as problem:
        apply("two", {"a": "2"})
    assert 'conflict with \\"one\\": .data.a' in problem.value.body
    apply("two", {"a": "2"}, force_conflicts=True)
    left = apply("one", {"b": "1"})
    assert left.data.to_dict() == {"a": "2", "b": "1"}
    assert apply("two", {"c": "2"}).data.to_dict() == {"b": "1", "c": "2"}
    owners = {(entry.manager, entry.operation) for entry in left.metadata.managedFields}
    assert owners == {("one", "Apply"), ("two", "Apply")}


def test_driver_applies_its_device_status(claims, space):
    made = claims.create_namespaced_resource_claim(space, claim("c"))
    device = {"driver": "d.example.com", "pool": "p", "device": "d0"}
    made.status = {"allocation": {"devices": {"results": [{"request": "gpu"} | device]}}}
    claims.replace_namespaced_resource_claim_status("c", space, made)
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "status": {"devices": [device | {"data": {"ready": True}}]},
    }
    applied = claims.patch_namespaced_resource_claim_status(
        "c", space, body, field_manager="driver", force=True,
        _content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert applied.status.devices[0].data == {"ready": True}
    assert applied.status.allocation.devices.results[0].device == "d0"
    (entry,) = [one for one in applied.metadata.managed_fields if one.manager == "driver"]
    assert (entry.operation, entry.subresource) == ("Apply", "status")
