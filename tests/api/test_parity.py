"""Answers in which ours once differed from a real server's, each by its rule."""

import pytest

from tests.api.serving import CLAIMS, CONFIG_MAPS, serving

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POD_SPEC = {"schedulerName": "none", "containers": [{"name": "a", "image": "b"}]}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}


def config_map(**more):
    return {"metadata": {"name": "a"}, "data": {"x": "1"}, **more}


async def test_null_as_a_body_is_an_object_without_anything():
    async with serving() as server:
        refused = await server.post(CONFIG_MAPS, b"null", code=422)
        assert "metadata.name: Required value" in refused["message"]


async def test_patch_to_another_uid_is_told_twice_among_the_causes():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        refused = await server.patch(f"{CONFIG_MAPS}/a", {"metadata": {"uid": "x"}}, code=422)
        assert refused["message"] == (
            'ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable'
        )
        assert len(refused["details"]["causes"]) == 2


async def test_patched_object_that_cannot_be_read_is_shown_as_its_text_is():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(metadata={"name": "a", "labels": {"l": "1"}}))
        refused = await server.patch(f"{CONFIG_MAPS}/a", {"data": {"x": 5}}, code=422)
        shown = refused["details"]["causes"][0]["message"]
        fields = ("apiVersion", "data", "kind", "metadata", "name", "uid", "labels", "manager")
        places = [shown.index(f'\\"{field}\\"') for field in fields]
        assert places == sorted(places)
        unknown = await server.patch(
            f"{CONFIG_MAPS}/a?fieldValidation=Strict",
            {"bogus": {"b": [1, None], "a": True}},
            code=422,
            kind="strategic-merge-patch+json",
        )
        assert '"map[bogus:map[a:true b:[1 <nil>]]]"' in unknown["message"]


@pytest.mark.parametrize(
    ("spec", "detail"),
    [
        ({"containers": "x"}, "cannot restore slice from string"),
        ({"nodeSelector": 5}, "cannot restore map from int64"),
        ({"securityContext": []}, "cannot restore struct from: slice"),
    ],
)
async def test_value_of_a_wrong_type_in_a_strategic_patch_cannot_be_restored(spec, detail):
    async with serving() as server:
        await server.post(PODS, {"metadata": {"name": "p"}, "spec": POD_SPEC})
        kind = "strategic-merge-patch+json"
        refused = await server.patch(f"{PODS}/p", {"spec": spec}, code=422, kind=kind)
        assert refused["message"].endswith(detail)


async def test_applied_value_of_a_wrong_type_is_no_field_of_its_schema():
    async with serving() as server:
        refused = await server.call(
            "PATCH",
            f"{CONFIG_MAPS}/a?fieldManager=m",
            {"apiVersion": "v1", "kind": "ConfigMap", **config_map(data={"x": 5})},
            400,
            content_type="application/apply-patch+yaml",
        )
        assert refused["message"] == (
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.x: expected "
            "string, got &value.valueUnstructured{Value:5}"
        )


@pytest.mark.parametrize(
    ("path", "tree", "kept"),
    [
        (PODS, {"spec": POD_SPEC}, {"annotations", "labels"}),
        (
            DEPLOYMENTS,
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
            {"annotations"},
        ),
        (CLAIMS, {"spec": {"devices": {}}}, set()),
    ],
)
async def test_write_of_a_status_changes_the_metadata_that_upstream_lets_it(path, tree, kept):
    async with serving() as server:
        await server.post(path, {"metadata": {"name": "o"}, **tree})
        written = {"labels": {"l": "1"}, "annotations": {"n": "1"}}
        patch = {"metadata": written, "status": {}}
        answer = await server.patch(f"{path}/o/status", patch)
        assert {name for name in written if name in answer["metadata"]} == kept


async def test_yaml_is_quoted_where_it_would_read_otherwise():
    data = {"y": "y", "n": "5", "t": "true", "e": "", "p": "plain", "l": "a\nb\n"}
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(data=data))
        answer = await server.raw("GET", f"{CONFIG_MAPS}/a", accept="application/yaml")
        for line in ('"y": "y"', '"n": "5"', 't: "true"', 'e: ""', "p: plain", "l: |"):
            assert f"  {line}\n" in answer.text, line


async def test_reviews_take_posts_only():
    async with serving() as server:
        for group, review in (
            ("authorization", "selfsubjectaccessreviews"),
            ("authentication", "tokenreviews"),
        ):
            path = f"/apis/{group}.k8s.io/v1/{review}"
            assert (await server.raw("GET", path)).status_code == 405
        answer = await server.post(path, {"spec": {}}, code=400)
        assert answer["message"] == "token is required for TokenReview in authentication"


async def test_events_are_selected_by_the_names_of_the_group_that_is_asked():
    async with serving() as server:
        for group, field in (
            ("/api/v1", "regarding.name"),
            ("/api/v1", "reportingController"),
            ("/apis/events.k8s.io/v1", "involvedObject.name"),
            ("/apis/events.k8s.io/v1", "source"),
        ):
            refused = await server.get(f"{group}/events?fieldSelector={field}=x", code=400)
            assert refused["message"] == f"field label not supported: {field}"
        await server.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name=x")


async def test_empty_list_that_always_shows_is_null_and_has_an_owner():
    async with serving() as server:
        path = f"{CLAIMS}?fieldManager=m"
        empty = await server.post(
            path, {"metadata": {"name": "a"}, "spec": {"devices": {"requests": []}}}
        )
        absent = await server.post(path, {"metadata": {"name": "b"}, "spec": {"devices": {}}})
        for claim in (empty, absent):
            assert claim["spec"] == {"devices": {"requests": None}}
        assert empty["metadata"]["managedFields"][0]["fieldsV1"] == {
            "f:spec": {"f:devices": {"f:requests": {}}}
        }
        assert "managedFields" not in absent["metadata"]


async def test_parts_of_health_have_pages_and_others_have_none():
    async with serving() as server:
        assert (await server.raw("GET", "/healthz/ping")).text == "ok"
        assert (await server.raw("GET", "/healthz/nope")).status_code == 404
