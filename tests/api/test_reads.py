"""Getting and listing: selectors, pages, versions, tables, the past."""

import gzip

import anyio
import pytest
import yaml

from app.api.server.limits import ApiLimits
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, pod, serving

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"


def names(listed):
    return [item["metadata"]["name"] for item in listed["items"]]


async def fill(server, *made):
    for name in made:
        await server.post(CONFIG_MAPS, config_map(name, labels={"n": name}))


async def test_list_is_sorted_and_carries_the_revision():
    async with serving() as server:
        await fill(server, "b", "a", "c")
        found = await server.get(CONFIG_MAPS)
        assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
        assert names(found) == ["a", "b", "c"]
        newest = max(int(item["metadata"]["resourceVersion"]) for item in found["items"])
        assert int(found["metadata"]["resourceVersion"]) == newest


async def test_list_of_an_unknown_namespace_is_empty():
    async with serving() as server:
        assert names(await server.get(CONFIG_MAPS.replace("default", "nowhere"))) == []


async def test_list_of_all_namespaces_is_sorted_by_namespace_first():
    async with serving() as server:
        await server.post(CONFIG_MAPS.replace("default", "kube-system"), config_map("a"))
        await server.post(CONFIG_MAPS, config_map("z"))
        assert names(await server.get("/api/v1/configmaps")) == ["z", "a"]


LABELS = [
    ("n=a", ["a"]),
    ("n==a", ["a"]),
    ("n!=a", ["b", "c", "plain"]),
    ("n in (a,b)", ["a", "b"]),
    ("n notin (a,b)", ["c", "plain"]),
    ("n", ["a", "b", "c"]),
    ("!n", ["plain"]),
    ("n,n!=c", ["a", "b"]),
]


@pytest.mark.parametrize(("selector", "expected"), LABELS, ids=[row[0] for row in LABELS])
async def test_label_selector(selector, expected):
    async with serving() as server:
        await fill(server, "a", "b", "c")
        await server.post(CONFIG_MAPS, config_map("plain"))
        answer = await server.client.get(CONFIG_MAPS, params={"labelSelector": selector})
        assert names(answer.json()) == expected


FIELDS = [
    ("metadata.name=a", ["a"]),
    ("metadata.name!=a", ["b"]),
    ("spec.nodeName=n", ["a"]),
    ("spec.nodeName=", ["b"]),
    ("spec.nodeName!=,status.phase=Pending", ["a"]),
    ("metadata.namespace=default,metadata.name=b", ["b"]),
    ("metadata.namespace=other", []),
]


@pytest.mark.parametrize(("selector", "expected"), FIELDS, ids=[row[0] for row in FIELDS])
async def test_field_selector(selector, expected):
    async with serving() as server:
        await server.post(PODS, pod("a", nodeName="n"))
        await server.post(PODS, pod("b"))
        answer = await server.client.get(PODS, params={"fieldSelector": selector})
        assert names(answer.json()) == expected


async def test_unsupported_field_is_named():
    async with serving() as server:
        status = await server.get(f"{PODS}?fieldSelector=spec.x%3D1", code=400)
        assert status["message"] == "field label not supported: spec.x"


async def test_unreadable_label_selector_is_refused():
    async with serving() as server:
        await server.get(f"{PODS}?labelSelector=a%20in%20(", code=400)


async def test_pages_show_one_snapshot():
    async with serving() as server:
        await fill(server, "a", "b", "c", "d")
        first = await server.get(f"{CONFIG_MAPS}?limit=3")
        assert names(first) == ["a", "b", "c"]
        assert first["metadata"]["remainingItemCount"] == 1
        await server.delete(f"{CONFIG_MAPS}/d")
        await server.post(CONFIG_MAPS, config_map("e"))
        token = first["metadata"]["continue"]
        second = await server.get(f"{CONFIG_MAPS}?limit=3&continue={token}")
        assert names(second) == ["d"]
        assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_page_is_found_again_after_its_snapshot_was_let_go():
    async with serving(limits=ApiLimits(snapshots_max=1)) as server:
        await fill(server, "a", "b", "c")
        first = await server.get(f"{CONFIG_MAPS}?limit=2")
        await server.delete(f"{CONFIG_MAPS}/c")
        await server.get(f"{CONFIG_MAPS}?limit=1")
        token = first["metadata"]["continue"]
        assert names(await server.get(f"{CONFIG_MAPS}?limit=2&continue={token}")) == ["c"]


async def test_snapshots_of_two_resources_are_kept_apart():
    async with serving() as server:
        await fill(server, "a", "b")
        await server.get(f"{CONFIG_MAPS}?limit=1")
        assert names(await server.get("/api/v1/namespaces/default/secrets")) == []


async def test_remaining_count_is_left_out_with_selectors():
    async with serving() as server:
        await fill(server, "a", "b", "c")
        by_name = await server.get(f"{CONFIG_MAPS}?limit=1&fieldSelector=metadata.name!%3Dz")
        assert by_name["metadata"].keys() == {"resourceVersion", "continue"}
        found = await server.get(f"{CONFIG_MAPS}?limit=1&labelSelector=n")
        assert "remainingItemCount" not in found["metadata"]


async def test_unreadable_continue_token_is_refused():
    async with serving() as server:
        await server.get(f"{CONFIG_MAPS}?limit=1&continue=abc", code=400)


async def test_exact_revision_shows_what_was_then():
    async with serving() as server:
        await fill(server, "a")
        then = (await server.get(CONFIG_MAPS))["metadata"]["resourceVersion"]
        await fill(server, "b")
        path = f"{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch="
        assert names(await server.get(path + "Exact")) == ["a"]
        assert names(await server.get(path + "NotOlderThan")) == ["a", "b"]


async def test_object_is_read_at_least_as_new_as_asked():
    async with serving(limits=ApiLimits(revision_wait_seconds=0.01)) as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        version = made["metadata"]["resourceVersion"]
        for asked in ("", "0", "1", version):
            assert await server.get(f"{CONFIG_MAPS}/a?resourceVersion={asked}") == made
        answer = await server.raw("GET", f"{CONFIG_MAPS}/a?resourceVersion=999")
        assert answer.status_code == 504
        assert answer.headers["retry-after"] == "1"
        status = answer.json()
        assert status["message"] == f"Timeout: Too large resource version: 999, current: {version}"
        assert status["details"]["retryAfterSeconds"] == 1
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        await server.get(f"{CONFIG_MAPS}/a?resourceVersion=x", code=400)


async def test_object_that_is_still_to_come_is_waited_for():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        later = int(made["metadata"]["resourceVersion"]) + 1
        answers = []

        async def read():
            answers.append(await server.get(f"{CONFIG_MAPS}/b?resourceVersion={later}"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            made = await server.post(CONFIG_MAPS, config_map("b"))
        assert answers == [made]


async def test_revision_beyond_the_present_is_too_large():
    async with serving(limits=ApiLimits(revision_wait_seconds=0.01)) as server:
        answer = await server.raw("GET", f"{CONFIG_MAPS}?resourceVersion=999")
        assert answer.status_code == 504
        assert answer.headers["retry-after"] == "1"
        status = answer.json()
        assert status["reason"] == "Timeout"
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


OPTIONS = [
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=Other&resourceVersion=1",
    "resourceVersionMatch=Exact&resourceVersion=0",
    "sendInitialEvents=true",
    "watch=true&resourceVersionMatch=NotOlderThan",
    "watch=true&sendInitialEvents=true",
]


@pytest.mark.parametrize("query", OPTIONS)
async def test_options_that_contradict_each_other_are_unprocessable(query):
    async with serving() as server:
        status = await server.get(f"{CONFIG_MAPS}?{query}", code=422)
        assert status["reason"] == "Invalid"


async def test_resource_version_that_is_no_number_is_refused():
    async with serving() as server:
        await server.get(f"{CONFIG_MAPS}?resourceVersion=x", code=400)


async def test_compaction_is_imitated_when_asked_for():
    async with serving(limits=ApiLimits(retained_revisions=2)) as server:
        await fill(server, "a", "b", "c", "d")
        path = f"{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Exact"
        status = await server.get(path, code=410)
        assert status["reason"] == "Expired"
        assert status["message"] == "The resourceVersion for the provided list is too old."


async def test_paged_list_that_is_too_old_can_go_on_inconsistently():
    async with serving(limits=ApiLimits(retained_revisions=2)) as server:
        await fill(server, "a", "b", "c")
        page = await server.get(f"{CONFIG_MAPS}?limit=1")
        await fill(server, "b1", "d", "e", "f")
        token = page["metadata"]["continue"]
        status = await server.get(f"{CONFIG_MAPS}?limit=1&continue={token}", code=410)
        assert status["reason"] == "Expired"
        assert "use the continue token in this response" in status["message"]
        token = status["metadata"]["continue"]
        rest = await server.get(f"{CONFIG_MAPS}?continue={token}")
        assert [item["metadata"]["name"] for item in rest["items"]] == [
            "b", "b1", "c", "d", "e", "f",
        ]  # fmt: skip


async def test_past_moments_are_offered_whatever_is_compacted():
    async with serving(limits=ApiLimits(retained_revisions=1)) as server:
        await fill(server, "a", "b", "c", "d")
        then = await server.get(f"/h/default@3{CONFIG_MAPS}?limit=1")
        assert [item["metadata"]["name"] for item in then["items"]] == ["a"]


async def test_pages_have_a_largest_size():
    async with serving(limits=ApiLimits(list_page_max=2)) as server:
        await fill(server, "a", "b", "c")
        page = await server.get(f"{CONFIG_MAPS}?limit=500")
        assert (len(page["items"]), page["metadata"]["remainingItemCount"]) == (2, 1)


async def test_table_has_columns_cells_and_metadata():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        found = await server.get(CLAIMS, accept=TABLE)
        assert found["kind"] == "Table"
        assert [column["name"] for column in found["columnDefinitions"]] == [
            "Name", "State", "Age",
        ]  # fmt: skip
        (row,) = found["rows"]
        assert row["cells"][:2] == ["c", "pending"]
        assert row["object"]["kind"] == "PartialObjectMetadata"
        assert "spec" not in row["object"]


@pytest.mark.parametrize(
    ("include", "kind"), [("Object", "ResourceClaim"), ("Metadata", "PartialObjectMetadata")]
)
async def test_table_includes_what_is_asked_for(include, kind):
    async with serving() as server:
        await server.post(CLAIMS, claim())
        found = await server.get(f"{CLAIMS}?includeObject={include}", accept=TABLE)
        assert found["rows"][0]["object"]["kind"] == kind


async def test_table_includes_no_objects_when_none_is_asked_for():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        found = await server.get(f"{CLAIMS}?includeObject=None", accept=TABLE)
        assert found["rows"][0]["object"] is None


async def test_table_rows_of_another_version_hold_that_version():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        path = CLAIMS.replace("/v1/", "/v1beta1/")
        found = await server.get(f"{path}?includeObject=Object", accept=TABLE)
        assert found["rows"][0]["object"]["apiVersion"] == "resource.k8s.io/v1beta1"


async def test_metadata_only():
    async with serving() as server:
        made = await server.post(CLAIMS, claim())
        one = await server.get(f"{CLAIMS}/c", accept=PARTIAL)
        assert one == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        }
        many = await server.get(CLAIMS, accept=PARTIAL_LIST)
        assert many["kind"] == "PartialObjectMetadataList"
        assert many["items"] == [one]


async def test_yaml_is_given_to_who_asks_for_it():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        answer = await server.raw("GET", f"{CLAIMS}/c", accept="application/yaml")
        assert answer.headers["content-type"] == "application/yaml"
        assert yaml.safe_load(answer.text)["metadata"]["name"] == "c"


async def test_form_that_cannot_be_made_is_not_acceptable():
    async with serving() as server:
        status = await server.get(CLAIMS, code=406, accept="image/png")
        assert status["reason"] == "NotAcceptable"


async def test_large_answers_are_compressed_for_who_accepts_it():
    async with serving(limits=ApiLimits(compress_from_bytes=100)) as server:
        await fill(server, "a", "b")
        plain = await server.raw("GET", CONFIG_MAPS, accept_encoding="identity")
        assert "content-encoding" not in plain.headers
        request = server.client.build_request(
            "GET", CONFIG_MAPS, headers={"accept-encoding": "gzip"}
        )
        packed = await server.client.send(request, stream=True)
        body = b"".join([part async for part in packed.aiter_raw()])
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(body) == plain.content


async def test_past_shows_what_was_then():
    async with serving() as server:
        await fill(server, "a")
        then = (await server.get(CONFIG_MAPS))["metadata"]["resourceVersion"]
        await server.delete(f"{CONFIG_MAPS}/a")
        found = await server.get(f"/h/default@{then}{CONFIG_MAPS}")
        assert names(found) == ["a"]
        assert found["metadata"]["resourceVersion"] == then


async def test_past_is_found_by_an_instant_too():
    async with serving() as server:
        await fill(server, "a")
        (last,) = (await server.get("/redra/v1/histories"))["items"]
        await server.delete(f"{CONFIG_MAPS}/a")
        found = await server.get(f"/h/default@{last['time']}{CONFIG_MAPS}")
        assert names(found) == ["a"]


async def test_past_cannot_be_changed():
    async with serving() as server:
        await fill(server, "a")
        status = await server.post(f"/h/default@1{CONFIG_MAPS}", config_map("b"), code=405)
        assert status["reason"] == "MethodNotAllowed"


async def test_recording_can_be_read_and_not_be_changed():
    async with serving() as server:
        await server.histories.create("taken", settings={"recorded": True})
        assert names(await server.get("/h/taken/api/v1/configmaps")) == []
        status = await server.post(f"/h/taken{CONFIG_MAPS}", config_map("a"), code=405)
        assert status["message"] == "the history 'taken' is a recording and cannot be changed"
        review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
        asked = "/h/taken/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert (await server.post(asked, review))["status"]["allowed"]


@pytest.mark.parametrize("moment", ["999", "2026-13-45T00:00:00Z", "yesterday"])
async def test_moment_that_does_not_exist_is_refused(moment):
    async with serving() as server:
        answer = await server.raw("GET", f"/h/default@{moment}/api/v1/pods")
        assert answer.status_code in (400, 404)
        assert answer.json()["kind"] == "Status"


async def test_unknown_history_is_not_found():
    async with serving() as server:
        status = await server.get("/h/nope/api/v1/pods", code=404)
        assert status["message"] == 'history "nope" not found'


async def test_another_history_has_its_own_objects():
    async with serving() as server:
        await server.post("/redra/v1/histories", {"name": "night"})
        await server.post("/h/night/api/v1/namespaces", {"metadata": {"name": "only-there"}})
        assert names(await server.get("/h/night/api/v1/namespaces")) == [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
            "only-there",
        ]
        await server.get("/api/v1/namespaces/only-there", code=404)


async def test_new_history_has_the_priority_classes_of_the_system():
    classes = "/h/night/apis/scheduling.k8s.io/v1/priorityclasses"
    async with serving() as server:
        await server.post("/redra/v1/histories", {"name": "night"})
        found = await server.get(classes)
        assert names(found) == ["system-cluster-critical", "system-node-critical"]
        one = await server.get(f"{classes}/system-node-critical")
        assert (one["value"], one["metadata"]["generation"]) == (2_000_001_000, 1)
        assert "globalDefault" not in one
        assert [entry["manager"] for entry in one["metadata"]["managedFields"]] == [
            "kube-apiserver"
        ]
        await server.raw("DELETE", f"{classes}/system-node-critical")
        assert names(await server.get(classes)) == names(found)


NOT_FOUND = [
    "/apis/resource.k8s.io/v1/nonsense",
    "/apis/resource.k8s.io/v1alpha2/resourceclaims",
    "/apis/resource.k8s.io/v1alpha3/namespaces/default/resourceclaims",
    "/apis/resource.k8s.io/v1/namespaces/default/deviceclasses",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/nonsense",
    "/api/v1/pods/p",
]


@pytest.mark.parametrize("path", NOT_FOUND)
async def test_resource_that_is_not_served_is_not_found(path):
    async with serving() as server:
        status = await server.get(path, code=404)
        assert status["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize(
    "path", ["/nonsense", "/apis/nonsense.io", "/apis/nonsense.io/v1", "/h//x"]
)
async def test_path_outside_the_api_is_plainly_not_found(path):
    async with serving() as server:
        answer = await server.raw("GET", path)
        assert (answer.status_code, answer.text) == (404, "404 page not found\n")


async def test_method_that_a_resource_does_not_have_is_not_allowed():
    async with serving() as server:
        answer = await server.raw("POST", f"{CLAIMS}/c", claim())
        assert answer.status_code == 405


async def test_event_is_one_object_in_both_groups():
    async with serving() as server:
        tree = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
            "source": {"component": "c"},
        }
        await server.post("/api/v1/namespaces/default/events", tree)
        found = await server.get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        assert (found["note"], found["regarding"]["name"]) == ("m", "p")
        path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp"
        assert names(await server.get(path)) == ["e"]


@pytest.mark.parametrize("query", ["", "limit=2", "labelSelector=n", "labelSelector=n%3Db"])
@pytest.mark.parametrize("accept", ["application/json", TABLE, PARTIAL_LIST])
async def test_list_leaves_no_object_decoded_that_was_not(query, accept):
    async with serving() as server:
        await fill(server, "a", "b", "c")
        (runtime,) = server.histories.open_runtimes()
        events = list(runtime.views.objects.events("", "configmaps", "default"))
        events = [event for event in events if event.key.name in ("a", "b", "c")]
        kept, others = events[0], events[1:]
        for event in others:
            event.forget_tree()
        tree = kept.object
        found = await server.get(f"{CONFIG_MAPS}?{query}", accept=accept)
        assert found.get("items") or found.get("rows")
        assert kept.tree is tree
        assert [event.tree for event in others] == [None, None]
