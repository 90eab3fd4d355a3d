"""Creating, changing and deleting objects over HTTP."""

import json

import anyio
import pytest
import yaml

from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, pod, serving

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_create_answers_201_with_the_stored_object():
    async with serving() as server:
        made = await server.post(CLAIMS, claim())
        assert made["metadata"]["resourceVersion"].isdigit()
        assert made == await server.get(f"{CLAIMS}/c")


async def test_table_of_a_write_without_a_change_carries_the_version():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map())
        place = f"{CONFIG_MAPS}/m"
        for tree in (config_map(), config_map(a="b")):
            told = await server.put(place, tree, accept=TABLE)
            now = await server.get(place)
            assert told["metadata"] == {"resourceVersion": now["metadata"]["resourceVersion"]}
        assert now["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("accept", "query", "code"),
    [("text/html", "", 406), (TABLE, "?includeObject=Some", 400)],
    ids=["no form", "no such rows"],
)
async def test_nothing_is_written_for_who_cannot_be_answered(accept, query, code):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("kept"))
        place = f"{CONFIG_MAPS}/kept{query}"
        changed = {"data": {"a": "b"}}
        kind = "application/merge-patch+json"
        for method, path, tree, content_type in (
            ("POST", CONFIG_MAPS + query, config_map("new"), ""),
            ("PUT", place, config_map("kept") | changed, ""),
            ("PATCH", place, changed, kind),
            ("DELETE", place, None, ""),
            ("DELETE", CONFIG_MAPS + query, None, ""),
        ):
            await server.call(method, path, tree, code, accept=accept, content_type=content_type)
        [left] = (await server.get(CONFIG_MAPS))["items"]
        assert left["metadata"]["name"] == "kept"
        assert "data" not in left


async def test_create_takes_kind_and_version_from_the_url():
    async with serving() as server:
        tree = config_map()
        del tree["kind"], tree["apiVersion"]
        made = await server.post(CONFIG_MAPS, tree)
        assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


async def test_namespace_of_a_cluster_wide_object_is_dropped():
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    tree = {"metadata": {"name": "c", "namespace": "somewhere"}, "spec": {}}
    async with serving() as server:
        made = await server.post(classes, tree)
        replaced = await server.put(f"{classes}/c", tree)
        applied = await server.patch(
            f"{classes}/a?fieldManager=f",
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
            | {"metadata": {"name": "a", "namespace": "somewhere"}},
            201,
            "apply-patch+yaml",
        )
        for found in (made, replaced, applied):
            assert "namespace" not in found["metadata"]


async def test_applied_tolerations_keep_the_ones_of_every_pod():
    mine = {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
    tree = pod("p", tolerations=[mine])
    path = "/api/v1/namespaces/default/pods/p"
    async with serving() as server:
        made = await server.patch(f"{path}?fieldManager=f", tree, 201, "apply-patch+yaml")
        assert len(made["spec"]["tolerations"]) == 3
        again = await server.patch(f"{path}?fieldManager=f", tree, 200, "apply-patch+yaml")
        assert again == made
        made["spec"]["tolerations"] = made["spec"]["tolerations"][1:]
        refused = await server.put(path, made, code=422)
        assert "existing toleration can not be modified" in refused["message"]


async def test_create_with_generate_name_makes_a_name():
    async with serving() as server:
        tree = claim()
        tree["metadata"] = {"generateName": "g-"}
        made = await server.post(CLAIMS, tree)
        assert len(made["metadata"]["name"]) == len("g-") + 5


async def test_second_create_of_a_name_is_a_conflict():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        status = await server.post(CLAIMS, claim(), code=409)
        assert status["reason"] == "AlreadyExists"
        assert status["message"] == 'resourceclaims.resource.k8s.io "c" already exists'


async def test_create_in_an_unknown_namespace_is_refused():
    async with serving() as server:
        path = CLAIMS.replace("default", "nowhere")
        status = await server.post(path, claim(), code=404)
        assert status["message"] == 'namespaces "nowhere" not found'


DISAGREEING = [
    ("kind", {"kind": "Pod"}),
    ("version", {"apiVersion": "resource.k8s.io/v1beta1"}),
    ("namespace", {"metadata": {"name": "c", "namespace": "other"}}),
]


@pytest.mark.parametrize("change", [row[1] for row in DISAGREEING], ids=[r[0] for r in DISAGREEING])
async def test_body_that_disagrees_with_the_url_is_refused(change):
    async with serving() as server:
        status = await server.post(CLAIMS, claim() | change, code=400)
        assert status["reason"] == "BadRequest"


UNREADABLE = [
    ("empty", b"", "application/json"),
    ("no JSON", b"{", "application/json"),
    ("a list", b"[]", "application/json"),
    ("a text", b'"x"', "application/json"),
    ("deep", b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "application/json"),
    ("no YAML", b"a: [", "application/yaml"),
    ("no protobuf", b"k8s\x00\xff\xff", "application/vnd.kubernetes.protobuf"),
    ("protobuf of another kind", b"k8s\x00", "application/vnd.kubernetes.protobuf"),
    ("metadata is a text", b'{"metadata":"x"}', "application/json"),
]


@pytest.mark.parametrize(
    ("body", "kind"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
async def test_body_that_cannot_be_read_is_refused(body, kind):
    async with serving() as server:
        answer = await server.raw("POST", CLAIMS, body, content_type=kind)
        assert answer.status_code in (400, 413), answer.text
        assert answer.json()["kind"] == "Status"


async def test_body_of_an_unknown_type_is_refused():
    async with serving() as server:
        answer = await server.raw("POST", CLAIMS, claim(), content_type="application/cbor")
        assert answer.status_code == 415
        assert answer.json()["reason"] == "UnsupportedMediaType"


async def test_body_beyond_the_bound_is_refused():
    async with serving() as server:
        answer = await server.raw("POST", CONFIG_MAPS, config_map(a="x" * 4_000_000))
        assert answer.status_code == 413
        assert answer.json()["reason"] == "RequestEntityTooLarge"


async def test_yaml_bodies_are_read():
    async with serving() as server:
        body = yaml.safe_dump(config_map(a="b")).encode()
        made = await server.post(CONFIG_MAPS, body, content_type="application/yaml")
        assert made["data"] == {"a": "b"}


async def test_update_with_a_stale_version_is_a_conflict():
    async with serving() as server:
        old = await server.post(CONFIG_MAPS, config_map(a="1"))
        await server.put(f"{CONFIG_MAPS}/m", config_map(a="2"))
        status = await server.put(f"{CONFIG_MAPS}/m", old, code=409)
        assert status["reason"] == "Conflict"
        assert status["details"]["kind"] == "configmaps"


async def test_update_of_another_name_is_refused():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        await server.put(f"{CONFIG_MAPS}/m", config_map("other"), code=400)


async def test_update_of_an_absent_object_is_not_a_create():
    async with serving() as server:
        status = await server.put(f"{CONFIG_MAPS}/m", config_map(), code=404)
        assert status["message"] == 'configmaps "m" not found'


async def test_write_that_changes_nothing_keeps_the_version():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map(a="b"))
        again = await server.put(f"{CONFIG_MAPS}/m", config_map(a="b"))
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_reapplied_spec_without_defaults_is_no_change():
    async with serving() as server:
        made = await server.post(CLAIMS, claim())
        again = await server.patch(
            f"{CLAIMS}/c", {"spec": claim()["spec"]}, kind="strategic-merge-patch+json"
        )
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_immutable_spec_is_refused_with_its_cause():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        change = [{"op": "replace", "path": "/spec/devices/requests/0/name", "value": "other"}]
        status = await server.patch(f"{CLAIMS}/c", change, code=422, kind="json-patch+json")
        assert status["reason"] == "Invalid"
        assert status["details"]["kind"] == "ResourceClaim"
        assert status["details"]["causes"][0]["field"] == "spec"


async def test_merge_patch_removes_with_null():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(a="1", b="2"))
        found = await server.patch(f"{CONFIG_MAPS}/m", {"data": {"a": None}})
        assert found["data"] == {"b": "2"}


async def test_failing_json_patch_test_is_unprocessable():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        change = [{"op": "test", "path": "/metadata/resourceVersion", "value": "999"}]
        status = await server.patch(f"{CONFIG_MAPS}/m", change, code=422, kind="json-patch+json")
        assert status["message"] == (
            "the server rejected our request due to an error in our request"
        )


async def test_patch_of_an_unknown_type_is_refused():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        await server.patch(f"{CONFIG_MAPS}/m", {}, code=415, kind="json")


async def test_too_many_patch_operations_are_refused():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        change = [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001
        await server.patch(f"{CONFIG_MAPS}/m", change, code=413, kind="json-patch+json")


async def test_apply_needs_a_field_manager():
    async with serving() as server:
        status = await server.patch(
            f"{CONFIG_MAPS}/m", config_map(), code=422, kind="apply-patch+yaml"
        )
        assert status["details"]["causes"][0]["field"] == "fieldManager"


async def test_apply_creates_what_is_not_there():
    async with serving() as server:
        path = f"{CONFIG_MAPS}/m?fieldManager=one"
        made = await server.patch(path, config_map(a="b"), code=201, kind="apply-patch+yaml")
        assert len(made["metadata"]["uid"]) == 36


async def test_apply_by_another_manager_names_the_conflict():
    async with serving() as server:
        path = f"{CONFIG_MAPS}/m?fieldManager="
        await server.patch(path + "one", config_map(a="b"), code=201, kind="apply-patch+yaml")
        status = await server.patch(
            path + "two", config_map(a="c"), code=409, kind="apply-patch+yaml"
        )
        assert status["details"]["causes"][0]["reason"] == "FieldManagerConflict"
        forced = await server.patch(
            path + "two&force=true", config_map(a="c"), kind="apply-patch+yaml"
        )
        assert forced["data"] == {"a": "c"}


@pytest.mark.parametrize("fields", [5, "x", [], {"f:data": 5}, {"f:data": {"x": []}}])
async def test_managers_whose_fields_cannot_be_read_own_nothing(fields):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("m"))
        manager = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
        tree = {"metadata": {"managedFields": [manager]}, "data": {"a": "b"}}
        assert (await server.patch(f"{CONFIG_MAPS}/m", tree))["data"] == {"a": "b"}
        await server.patch(
            f"{CONFIG_MAPS}/m?fieldManager=f", config_map("m", a="c"), 409, "apply-patch+yaml"
        )


async def test_dry_run_stores_nothing():
    async with serving() as server:
        made = await server.post(f"{CONFIG_MAPS}?dryRun=All", config_map())
        assert made["metadata"]["name"] == "m"
        await server.get(f"{CONFIG_MAPS}/m", code=404)


OPTIONS = [
    ("dryRun=Some", "dryRun"),
    ("fieldValidation=Lax", "fieldValidation"),
    (f"fieldManager={'x' * 129}", "fieldManager"),
]


@pytest.mark.parametrize(("query", "field"), OPTIONS, ids=[row[1] for row in OPTIONS])
async def test_option_that_is_not_known_is_unprocessable(query, field):
    async with serving() as server:
        status = await server.post(f"{CONFIG_MAPS}?{query}", config_map(), code=422)
        assert status["details"]["causes"][0]["field"] == field


def misspelt():
    tree = claim()
    tree["spec"]["devices"]["requests"][0]["exactly"]["cuont"] = 3
    return tree


UNKNOWN = 'unknown field "spec.devices.requests[0].exactly.cuont"'


async def test_unknown_field_is_refused_when_strict():
    async with serving() as server:
        status = await server.post(f"{CLAIMS}?fieldValidation=Strict", misspelt(), code=400)
        assert status["message"] == (
            'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: strict decoding '
            f"error: {UNKNOWN}"
        )


async def test_unknown_field_is_warned_about_by_default():
    async with serving() as server:
        answer = await server.raw("POST", CLAIMS, misspelt())
        assert answer.status_code == 201
        escaped = UNKNOWN.replace('"', '\\"')
        assert answer.headers["warning"] == f'299 - "{escaped}"'
        assert "cuont" not in answer.text


async def test_unknown_field_is_dropped_in_silence_when_ignored():
    async with serving() as server:
        answer = await server.raw("POST", f"{CLAIMS}?fieldValidation=Ignore", misspelt())
        assert answer.status_code == 201
        assert "warning" not in answer.headers


async def test_duplicate_field_is_refused_when_strict():
    async with serving() as server:
        body = b'{"metadata":{"name":"m","name":"n"}}'
        answer = await server.raw("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body)
        assert answer.status_code == 400
        assert 'duplicate field "metadata.name"' in answer.json()["message"]


async def test_duplicate_field_is_a_warning_by_default_and_its_last_value_counts():
    async with serving() as server:
        body = b'{"metadata":{"name":"m","name":"n"}}'
        answer = await server.raw("POST", CONFIG_MAPS, body)
        assert answer.json()["metadata"]["name"] == "n"
        assert 'duplicate field \\"metadata.name\\"' in answer.headers["warning"]


async def test_duplicate_field_of_a_merge_patch_is_refused_when_strict():
    async with serving() as server:
        await server.post(CONFIG_MAPS, {"metadata": {"name": "m"}})
        body = b'{"data":{"a":"1","a":"2"}}'
        patch = f"{CONFIG_MAPS}/m?fieldValidation=Strict"
        kind = "application/merge-patch+json"
        answer = await server.raw("PATCH", patch, body, content_type=kind)
        assert answer.status_code in (400, 422)
        assert 'duplicate field "data.a"' in answer.json()["message"]


async def test_delete_of_a_claim_answers_with_the_claim():
    async with serving() as server:
        made = await server.post(CLAIMS, claim())
        gone = await server.delete(f"{CLAIMS}/c")
        assert gone["kind"] == "ResourceClaim"
        assert int(gone["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        await server.get(f"{CLAIMS}/c", code=404)


async def test_delete_of_a_node_answers_with_a_status():
    async with serving() as server:
        node = {"metadata": {"name": "n"}}
        made = await server.post(NODES, node)
        status = await server.delete(f"{NODES}/n")
        assert (status["kind"], status["status"]) == ("Status", "Success")
        assert status["details"] == {
            "name": "n",
            "kind": "nodes",
            "uid": made["metadata"]["uid"],
        }


async def test_object_with_finalizers_survives_its_delete():
    async with serving() as server:
        tree = config_map()
        tree["metadata"]["finalizers"] = ["example.com/f"]
        await server.post(CONFIG_MAPS, tree)
        kept = await server.delete(f"{CONFIG_MAPS}/m")
        assert kept["metadata"]["deletionTimestamp"]
        last = await server.patch(f"{CONFIG_MAPS}/m", {"metadata": {"finalizers": None}})
        assert last["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
        await server.get(f"{CONFIG_MAPS}/m", code=404)


async def test_delete_with_a_wrong_uid_is_a_conflict():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        await server.delete(f"{CLAIMS}/c", {"preconditions": {"uid": "other"}}, code=409)


async def test_delete_options_may_come_in_the_query():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        kept = await server.delete(f"{CONFIG_MAPS}/m?propagationPolicy=Foreground")
        assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_delete_options_may_be_protobuf():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        body = b"k8s\x00\x0a\x23\x0a\x12resource.k8s.io/v1\x12\x0dDeleteOptions\x12\x00\x1a\x00"
        answer = await server.raw(
            "DELETE", f"{CLAIMS}/c", body, content_type="application/vnd.kubernetes.protobuf"
        )
        assert answer.status_code == 200, answer.text


async def test_delete_of_a_collection_takes_what_the_selector_selects():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a", labels={"x": "1"}))
        await server.post(CONFIG_MAPS, config_map("b", labels={"x": "2"}))
        gone = await server.delete(f"{CONFIG_MAPS}?labelSelector=x%3D1")
        assert [item["metadata"]["name"] for item in gone["items"]] == ["a"]
        # As recorded: the kind of the items is that of the list.
        assert gone["kind"] == "ConfigMapList"
        assert gone["items"][0].keys() == {"metadata"}
        left = await server.get(CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_delete_of_a_collection_with_preconditions_is_a_conflict():
    async with serving() as server:
        for name in ("a", "b"):
            await server.post(CONFIG_MAPS, config_map(name))
        status = await server.delete(CONFIG_MAPS, {"preconditions": {"uid": "u"}}, code=409)
        assert status["reason"] == "Conflict"
        assert len((await server.get(CONFIG_MAPS))["items"]) == 2


async def test_delete_of_a_collection_over_all_namespaces_is_not_allowed():
    async with serving() as server:
        await server.delete("/api/v1/configmaps", code=405)


async def test_status_is_written_through_its_subresource_only():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        tree = claim()
        tree["status"] = {"allocation": {"devices": {"results": []}}}
        kept = await server.put(f"{CLAIMS}/c", tree)
        assert kept["status"] == {}


async def test_pod_is_bound_to_a_node():
    async with serving() as server:
        await server.post(PODS, pod())
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        status = await server.post(f"{PODS}/p/binding", target)
        assert status["status"] == "Success"
        found = await server.get(f"{PODS}/p")
        assert found["spec"]["nodeName"] == "n"


async def test_binding_must_name_a_node_and_the_pod_of_its_path():
    async with serving() as server:
        await server.post(PODS, pod())
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node"}}
        refused = await server.post(f"{PODS}/p/binding", target, code=422)
        assert refused["message"] == 'Binding "p" is invalid: target.name: Required value'
        other = {"metadata": {"name": "q"}, "target": {"name": "n"}}
        await server.post(f"{PODS}/p/binding", other, code=400)
        await server.post(f"{PODS}/p/eviction", {"metadata": {"name": "q"}}, code=400)
        found = await server.get(f"{PODS}/p")
        assert "nodeName" not in found["spec"]


async def test_eviction_deletes_the_pod():
    async with serving() as server:
        await server.post(PODS, pod())
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        await server.post(f"{PODS}/p/eviction", eviction)
        await server.get(f"{PODS}/p", code=404)


async def test_evicted_pod_says_that_it_was_evicted():
    async with serving() as server:
        await server.post(PODS, pod(nodeName="n"))
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        made = await server.patch(f"{PODS}/p/status", {"status": ready})
        metadata = made["metadata"]
        meant = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        eviction = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": meant}}
        other = {"preconditions": meant | {"uid": "another"}}
        await server.post(f"{PODS}/p/eviction", eviction | {"deleteOptions": other}, code=409)
        tried = {"dryRun": ["All"]}
        await server.post(f"{PODS}/p/eviction", eviction | {"deleteOptions": tried})
        assert await server.get(f"{PODS}/p") == made
        await server.post(f"{PODS}/p/eviction", eviction)
        found = await server.get(f"{PODS}/p")
        earlier, condition = found["status"]["conditions"]
        assert earlier["type"] == "Ready"
        told = {name: condition[name] for name in ("type", "status", "reason", "message")}
        assert told == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        assert found["metadata"]["deletionTimestamp"]


BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def guarded(server, *names, allowed, wanted=1, **spec):
    """Pods that are ready, and a budget with the numbers that its controller would write."""
    for name in names:
        tree = pod(nodeName="n")
        tree["metadata"] = {"name": name, "labels": {"app": "a"}}
        await server.post(PODS, tree)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await server.patch(f"{PODS}/{name}/status", {"status": ready})
    selected = {"minAvailable": wanted, "selector": {"matchLabels": {"app": "a"}}}
    await server.post(BUDGETS, {"metadata": {"name": "b"}, "spec": {**selected, **spec}})
    if allowed is not None:
        status = {
            "observedGeneration": 1,
            "expectedPods": len(names),
            "currentHealthy": len(names),
            "desiredHealthy": wanted,
            "disruptionsAllowed": allowed,
        }
        await server.patch(f"{BUDGETS}/b/status", {"status": status})


def eviction_of(name, **options):
    return {"metadata": {"name": name}, "deleteOptions": options}


async def refusal(server, name, retry_after=None):
    """Why the pod may not be evicted, as the cause says.

    Clients written in Go repeat a request with Retry-After ten times by themselves.
    """
    answer = await server.raw("POST", f"{PODS}/{name}/eviction", eviction_of(name))
    assert answer.status_code == 429
    assert answer.headers.get("retry-after") == retry_after
    status = answer.json()
    assert status["message"] == (
        "Cannot evict pod as it would violate the pod's disruption budget."
    )
    assert status["details"]["causes"][0]["reason"] == "DisruptionBudget"
    return status["details"]["causes"][0]["message"]


async def test_eviction_against_a_budget_is_to_be_repeated_later():
    async with serving() as server:
        await guarded(server, "p", allowed=0)
        assert await refusal(server, "p") == (
            "The disruption budget b needs 1 healthy pods and has 1 currently"
        )
        assert "deletionTimestamp" not in (await server.get(f"{PODS}/p"))["metadata"]


async def test_budget_that_nobody_has_counted_allows_nothing_yet():
    async with serving() as server:
        await guarded(server, "p", allowed=None)
        assert await refusal(server, "p", "10") == (
            "The disruption budget b is still being processed by the server."
        )


async def test_eviction_takes_a_disruption_from_its_budget_at_once():
    async with serving() as server:
        await guarded(server, "p", "q", allowed=1)
        await server.post(f"{PODS}/p/eviction", eviction_of("p", dryRun=["All"]))
        assert (await server.get(f"{BUDGETS}/b"))["status"]["disruptionsAllowed"] == 1
        await server.post(f"{PODS}/p/eviction", eviction_of("p"))
        status = (await server.get(f"{BUDGETS}/b"))["status"]
        assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
        (condition,) = status["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
        assert await refusal(server, "q") == (
            "The disruption budget b does not allow evicting pods currently"
        )
        assert "deletionTimestamp" in (await server.get(f"{PODS}/p"))["metadata"]
        assert "deletionTimestamp" not in (await server.get(f"{PODS}/q"))["metadata"]


async def test_evictions_at_once_take_no_more_than_the_budget_allows():
    async with serving() as server:
        names = [f"p{number}" for number in range(8)]
        await guarded(server, *names, allowed=3, wanted=5)
        codes = []

        async def evict(name):
            answer = await server.raw("POST", f"{PODS}/{name}/eviction", eviction_of(name))
            codes.append(answer.status_code)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(evict, name)
        assert sorted(codes) == [201, 201, 201, 429, 429, 429, 429, 429]


async def test_log_of_an_unscheduled_pod_is_empty():
    async with serving() as server:
        await server.post(PODS, pod())
        answer = await server.raw("GET", f"{PODS}/p/log?container=c")
        assert (answer.status_code, answer.text) == (200, "")


async def test_secret_data_of_a_protobuf_body_is_base64():
    async with serving() as server:
        meta = b"\x0a\x01s"
        entry = b"\x0a\x01k\x12\x02\x00\xff"
        raw = b"\x0a\x03" + meta + b"\x12" + bytes([len(entry)]) + entry
        names = b"\x0a\x02v1\x12\x06Secret"
        body = b"k8s\x00\x0a" + bytes([len(names)]) + names + b"\x12" + bytes([len(raw)]) + raw
        made = await server.post(
            "/api/v1/namespaces/default/secrets",
            body,
            content_type="application/vnd.kubernetes.protobuf",
        )
        assert made["data"] == {"k": "AP8="}


async def test_beta_object_is_stored_and_read_in_every_version():
    async with serving() as server:
        tree = json.loads(json.dumps(claim()))
        tree["apiVersion"] = "resource.k8s.io/v1beta1"
        tree["spec"]["devices"]["requests"] = [{"name": "gpu", "deviceClassName": "x"}]
        made = await server.post(CLAIMS.replace("/v1/", "/v1beta1/"), tree)
        assert made["spec"]["devices"]["requests"][0]["deviceClassName"] == "x"
        hub = await server.get(f"{CLAIMS}/c")
        assert hub["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "x"


async def test_deprecated_version_warns_on_reads_too():
    async with serving() as server:
        answer = await server.raw("GET", CLAIMS.replace("/v1/", "/v1beta1/"))
        assert answer.headers["warning"] == (
            '299 - "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, '
            'unavailable in v1.38+"'
        )


async def test_workload_is_scaled_through_its_subresource():
    async with serving() as server:
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        await server.post(path, {"metadata": {"name": "d"}, "spec": spec})
        scale = await server.get(f"{path}/d/scale")
        assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
        scale["spec"]["replicas"] = 3
        assert (await server.put(f"{path}/d/scale", scale))["spec"] == {"replicas": 3}
        patched = await server.patch(f"{path}/d/scale", {"spec": {"replicas": 2}})
        assert patched["spec"] == {"replicas": 2}
        assert (await server.get(f"{path}/d"))["spec"]["replicas"] == 2
        for absurd in (2**31, "3", True):
            await server.patch(f"{path}/d/scale", {"spec": {"replicas": absurd}}, code=400)
        below = await server.patch(f"{path}/d/scale", {"spec": {"replicas": -1}}, code=422)
        assert below["details"]["kind"] == "Scale"


async def test_event_is_written_through_both_groups():
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    tree = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "note": "m",
        "type": "Normal",
        "action": "A",
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "reportingController": "c",
        "reportingInstance": "i",
    }
    async with serving() as server:
        made = await server.post(new, tree)
        assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "m")
        changed = await server.patch(f"{new}/e", {"note": "n"})
        assert changed["note"] == "n"
        replaced = await server.put(f"{new}/e", changed | {"reason": "S"})
        assert replaced["reason"] == "S"
        found = await server.get("/api/v1/namespaces/default/events/e")
        assert (found["message"], found["involvedObject"]["name"]) == ("n", "p")
        await server.delete(f"{new}/e")
        gone = await server.delete(f"{new}/e", code=404)
        assert gone["message"] == 'events.events.k8s.io "e" not found'
        missing = await server.get(f"{new}/e", code=404)
        assert missing["message"] == gone["message"]
        assert missing["details"] == {"name": "e", "group": "events.k8s.io", "kind": "events"}


@pytest.mark.parametrize("name", ["PartialObjectMetadata", "PartialObjectMetadataList"])
async def test_deleted_collection_is_told_in_the_form_that_was_asked_for(name):
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        accept = f"application/json;as={name};g=meta.k8s.io;v=v1"
        told = await server.call("DELETE", CONFIG_MAPS, None, 200, accept=accept)
        assert (told["kind"], told["apiVersion"]) == (
            "PartialObjectMetadataList",
            "meta.k8s.io/v1",
        )
        (item,) = told["items"]
        assert item == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }
        await server.post(CONFIG_MAPS, config_map("b"))
        table = await server.call("DELETE", CONFIG_MAPS, None, 200, accept=TABLE)
        assert [row["cells"][0] for row in table["rows"]] == ["b"]
