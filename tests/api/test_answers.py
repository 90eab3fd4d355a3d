"""Answers follow those of a real API server where clients can tell: codes, details, shapes."""

import pytest

from app.domain.objects.profile import Profile
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, serving

NAMESPACE = "/api/v1/namespaces/default"
APPLY = "application/apply-patch+yaml"


async def test_version_is_that_of_the_profile():
    for profile, expected in (("1.36.2", "v1.36.2"), ("1.36", "v1.36.0")):
        async with serving(profile=Profile(version=profile)) as server:
            assert (await server.get("/version"))["gitVersion"] == expected


async def test_json_ends_with_a_line_feed():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        for path in (f"{CONFIG_MAPS}/a", f"{CONFIG_MAPS}/none", CONFIG_MAPS, "/api/v1/nothing"):
            body = (await server.raw("GET", path)).content
            assert body.endswith(b"}\n")
            assert body.count(b"\n") == 1


async def test_items_of_a_typed_list_leave_version_and_kind_to_it():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a", x="1"))
        await server.post(CLAIMS, claim("c"))
        for path in (CONFIG_MAPS, CLAIMS, CLAIMS.replace("/v1/", "/v1beta1/")):
            (item,) = (await server.get(path))["items"]
            assert "kind" not in item
            assert "apiVersion" not in item
            assert item["metadata"]["name"]
        (item,) = (await server.get(CONFIG_MAPS))["items"]
        assert item["data"] == {"x": "1"}


GENERIC = [
    ("PUT", CONFIG_MAPS, 405),
    ("HEAD", CONFIG_MAPS, 405),
    ("OPTIONS", CONFIG_MAPS, 405),
    ("POST", f"{CONFIG_MAPS}/a", 405),
    ("POST", "/api/v1/configmaps", 405),
    ("DELETE", "/api/v1/configmaps", 405),
    ("GET", "/api/v1/nothing", 404),
    ("GET", f"{NAMESPACE}/nothing/x", 404),
]


@pytest.mark.parametrize(("method", "path", "code"), GENERIC)
async def test_generic_errors_have_empty_details(method, path, code):
    async with serving() as server:
        answer = await server.raw(method, path)
        assert answer.status_code == code
        if method != "HEAD":
            assert answer.json()["details"] == {}


async def test_replacement_without_a_name_is_refused():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        refused = await server.put(f"{CONFIG_MAPS}/a", {"data": {"q": "1"}}, code=400)
        assert refused["message"] == (
            "the name of the object (a based on URL) was undeterminable: name must be provided"
        )
        assert (await server.get(f"{CONFIG_MAPS}/a")).get("data") is None


async def test_configuration_without_a_name_is_refused():
    async with serving() as server:
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"x": "1"}}
        path = f"{CONFIG_MAPS}/ap?fieldManager=m"
        refused = await server.call("PATCH", path, tree, 400, content_type=APPLY)
        assert "(ap based on URL) was undeterminable" in refused["message"]
        await server.get(f"{CONFIG_MAPS}/ap", code=404)


@pytest.mark.parametrize(("version", "code"), [("0", 201), ("v1", 201), ("", 201), ("1", 400)])
async def test_new_object_with_a_revision(version, code):
    async with serving() as server:
        tree = config_map("a")
        tree["metadata"]["resourceVersion"] = version
        made = await server.post(CONFIG_MAPS, tree, code=code)
        if code == 201:
            assert made["metadata"]["resourceVersion"] not in ("0", "v1", "")


RBAC = "/apis/rbac.authorization.k8s.io/v1"
MADE_BY_UPDATE = [
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"holderIdentity": "x"}}),
    (f"{NAMESPACE}/services", {"spec": {"ports": [{"port": 80}]}}),
    (f"{NAMESPACE}/endpoints", {}),
    (f"{NAMESPACE}/events", {"involvedObject": {"namespace": "default"}, "reason": "R"}),
    (f"{RBAC}/namespaces/default/roles", {"rules": []}),
    (
        f"{RBAC}/namespaces/default/rolebindings",
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}},
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
]


@pytest.mark.parametrize(
    ("path", "content"), MADE_BY_UPDATE, ids=[row[0] for row in MADE_BY_UPDATE]
)
async def test_put_creates(path, content):
    async with serving() as server:
        tree = {"metadata": {"name": "new"}, **content}
        made = await server.put(f"{path}/new", tree, code=201)
        assert made["metadata"]["uid"]
        assert (await server.get(f"{path}/new"))["metadata"]["uid"] == made["metadata"]["uid"]
        old = {"metadata": {"name": "other", "resourceVersion": "1"}, **content}
        await server.put(f"{path}/other", old, code=404)


async def test_put_of_another_kind_does_not_create():
    async with serving() as server:
        await server.put(f"{CONFIG_MAPS}/new", config_map("new"), code=404)


async def test_collection_is_deleted_up_to_the_limit():
    async with serving() as server:
        for name in "abc":
            await server.post(CONFIG_MAPS, config_map(name, labels={"d": "1"}))
        found = await server.delete(f"{CONFIG_MAPS}?limit=1&labelSelector=d%3D1")
        assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
        assert found["metadata"]["continue"]
        left = await server.get(CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in left["items"]] == ["b", "c"]


JOBS = "/apis/batch/v1/namespaces/default/jobs"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
PRESERVED = "child pods are preserved by default when jobs are deleted"


async def test_deleted_job_keeps_its_pods_unless_told_otherwise():
    async with serving() as server:
        for name in ("a", "b"):
            await server.post(JOBS, {"metadata": {"name": name}, "spec": {"template": TEMPLATE}})
        answer = await server.raw("DELETE", f"{JOBS}/a")
        assert answer.json()["metadata"]["finalizers"] == ["orphan"]
        assert PRESERVED in answer.headers["warning"]
        answer = await server.raw("DELETE", f"{JOBS}/b?propagationPolicy=Background")
        assert answer.json()["status"] == "Success"
        assert "warning" not in answer.headers


async def test_deleted_replication_controller_keeps_its_pods():
    async with serving() as server:
        path = f"{NAMESPACE}/replicationcontrollers"
        spec = {"selector": {"a": "b"}, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"]}}}
        del spec["template"]["spec"]["restartPolicy"]
        await server.post(path, {"metadata": {"name": "a"}, "spec": spec})
        answer = await server.raw("DELETE", f"{path}/a")
        assert answer.json()["metadata"]["finalizers"] == ["orphan"]
        assert "warning" not in answer.headers


PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
REFUSED_FORMS = [
    (f"{CONFIG_MAPS}/a", PARTIAL.format("List"), "the requested object is not a list"),
    (CONFIG_MAPS, PARTIAL.format(""), "the requested object is a list"),
    (CONFIG_MAPS, "application/*", "406: Not Acceptable"),
    (CONFIG_MAPS, "text/html", "406: Not Acceptable"),
]


@pytest.mark.parametrize(("path", "accept", "text"), REFUSED_FORMS)
async def test_form_that_does_not_fit_is_not_acceptable(path, accept, text):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        refused = await server.get(path, code=406, accept=accept)
        assert text in refused["message"]


@pytest.mark.parametrize("query", ["limit=-1", "timeoutSeconds=-1"])
async def test_negative_numbers_mean_no_bound(query):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        assert len((await server.get(f"{CONFIG_MAPS}?{query}"))["items"]) == 1


async def test_paths_beside_what_is_served():
    async with serving() as server:
        for path in ("/api/v2", "/apis/resource.k8s.io/v9", "/apis/apps/v9/deployments"):
            missing = await server.get(path, code=404)
            assert (missing["reason"], missing["details"]) == ("NotFound", {})
        assert (await server.raw("GET", "/apis/none.example.com/v1")).status_code == 404
        refused = await server.call("PUT", "/version", {}, 405)
        assert refused["reason"] == "MethodNotAllowed"


FIELDS = [
    ("/apis/batch/v1/jobs", "status.successful=0", 200),
    ("/api/v1/services", "spec.clusterIP=1,spec.type=ClusterIP", 200),
    ("/api/v1/replicationcontrollers", "status.replicas=0", 200),
    ("/apis/apps/v1/replicasets", "status.replicas=0", 400),
]


@pytest.mark.parametrize(("path", "selector", "code"), FIELDS)
async def test_fields_by_which_can_be_selected(path, selector, code):
    async with serving() as server:
        answer = await server.client.get(path, params={"fieldSelector": selector})
        assert answer.status_code == code
        if code == 400:
            expected = 'is not a known field selector: only "metadata.name", "metadata.namespace"'
            assert expected in answer.json()["message"]


UNREADABLE = [
    ({"data": {"a": 5}}, "merge-patch+json", "json: cannot unmarshal number"),
    ({"data": {"a": 5}}, "strategic-merge-patch+json", "json: cannot unmarshal number"),
    ([{"op": "add", "path": "/data", "value": 5}], "json-patch+json", "json: cannot unmarshal"),
    (
        {"kind": "Secret"},
        "merge-patch+json",
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
    ),
]


@pytest.mark.parametrize(("patch", "kind", "text"), UNREADABLE)
async def test_patched_object_that_cannot_be_read_is_invalid(patch, kind, text):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        refused = await server.patch(f"{CONFIG_MAPS}/a", patch, code=422, kind=kind)
        (cause,) = refused["details"]["causes"]
        assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")
        assert text in cause["message"]


MAP = "into Go value of type map[string]interface {}"
NO_PATCHES = [
    ("not json", "strategic-merge-patch+json", f"json: cannot unmarshal string {MAP}"),
    ("not json", "merge-patch+json", f"error decoding patch: json: cannot unmarshal string {MAP}"),
    ([5], "merge-patch+json", f"error decoding patch: json: cannot unmarshal array {MAP}"),
    (5, "strategic-merge-patch+json", f"json: cannot unmarshal number {MAP}"),
    (1.5, "strategic-merge-patch+json", f"json: cannot unmarshal number {MAP}"),
    (True, "strategic-merge-patch+json", f"json: cannot unmarshal bool {MAP}"),
    ("not json", "json-patch+json",
     "error decoding patch: json: cannot unmarshal string into Go value of type "
     "[]handlers.jsonPatchOp"),
    ({"data": {}}, "json-patch+json",
     "error decoding patch: json: cannot unmarshal object into Go value of type "
     "[]handlers.jsonPatchOp"),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "kind", "text"), NO_PATCHES)
async def test_patch_of_another_type_is_refused_in_the_words_of_the_server(patch, kind, text):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a", x="1"))
        refused = await server.patch(f"{CONFIG_MAPS}/a", patch, code=400, kind=kind)
        assert (refused["message"], refused["reason"]) == (text, "BadRequest")
        assert (await server.get(f"{CONFIG_MAPS}/a"))["data"] == {"x": "1"}


async def test_json_patch_replaces_what_is_not_there():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a", x="1"))
        patch = [{"op": "replace", "path": "/data/z", "value": "2"}]
        changed = await server.patch(f"{CONFIG_MAPS}/a", patch, kind="json-patch+json")
        assert changed["data"] == {"x": "1", "z": "2"}


async def test_event_is_no_owner():
    async with serving() as server:
        owner = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}
        tree = config_map("a")
        tree["metadata"]["ownerReferences"] = [owner]
        refused = await server.post(CONFIG_MAPS, tree, code=422)
        assert "/v1, Kind=Event is disallowed from being an owner" in refused["message"]
