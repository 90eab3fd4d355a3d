"""Everything that discovery announces is served."""

import pytest

from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import serving

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_aggregated_document_has_its_own_content_type():
    async with serving() as server:
        answer = await server.raw("GET", "/apis", accept=AGGREGATED)
        assert answer.headers["content-type"] == TYPE
        assert answer.headers["vary"] == "Accept"
        assert answer.json()["kind"] == "APIGroupDiscoveryList"


async def test_unchanged_document_keeps_its_content_type():
    async with serving() as server:
        first = await server.raw("GET", "/apis", accept=AGGREGATED)
        again = await server.raw(
            "GET", "/apis", accept=AGGREGATED, if_none_match=first.headers["etag"]
        )
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["content-type"] == first.headers["content-type"]


async def test_core_group_has_no_name():
    async with serving() as server:
        answer = await server.raw("GET", "/api", accept=AGGREGATED)
        (item,) = answer.json()["items"]
        assert "name" not in item["metadata"]


async def test_versions_stand_in_order_of_preference():
    async with serving() as server:
        answer = await server.raw("GET", "/apis", accept=AGGREGATED)
        groups = {item["metadata"]["name"]: item for item in answer.json()["items"]}
        versions = [version["version"] for version in groups["resource.k8s.io"]["versions"]]
        assert versions == ["v1", "v1beta2", "v1beta1", "v1alpha3"]


async def test_group_list_names_the_preferred_version():
    async with serving() as server:
        found = await server.get("/apis")
        groups = {group["name"]: group for group in found["groups"]}
        assert groups["resource.k8s.io"]["preferredVersion"]["version"] == "v1"
        one = await server.get("/apis/resource.k8s.io")
        assert one["versions"] == groups["resource.k8s.io"]["versions"]


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/version", "/apis/policy/v1"])
async def test_trailing_slash_makes_no_difference(path):
    async with serving() as server:
        assert await server.get(path) == await server.get(f"{path}/")


async def test_eviction_names_its_own_kind():
    async with serving() as server:
        found = await server.get("/api/v1")
        entries = {entry["name"]: entry for entry in found["resources"]}
        eviction = entries["pods/eviction"]
        assert (eviction["group"], eviction["version"], eviction["kind"]) == (
            "policy",
            "v1",
            "Eviction",
        )


async def test_every_listed_resource_is_served():
    async with serving() as server:
        groups = [("api/v1", "v1")]
        for group in (await server.get("/apis"))["groups"]:
            for version in group["versions"]:
                groups.append((f"apis/{version['groupVersion']}", version["groupVersion"]))
        for path, name in groups:
            listed = await server.get(f"/{path}")
            assert listed["groupVersion"] == name
            for resource in listed["resources"]:
                if "list" in resource["verbs"]:
                    found = await server.get(f"/{path}/{resource['name']}")
                    assert found["kind"] == f"{resource['kind']}List"


async def test_both_forms_name_the_same_resources():
    async with serving() as server:
        answer = await server.raw("GET", "/apis", accept=AGGREGATED)
        for item in answer.json()["items"]:
            for version in item["versions"]:
                path = f"/apis/{item['metadata']['name']}/{version['version']}"
                listed = await server.get(path)
                names = {entry["name"] for entry in listed["resources"] if "/" not in entry["name"]}
                assert names == {entry["resource"] for entry in version["resources"]}


async def test_profile_decides_what_is_served():
    async with serving(profile=Profile(version="1.35")) as server:
        answer = await server.get("/apis/resource.k8s.io/v1")
        assert "devicetaintrules" not in {entry["name"] for entry in answer["resources"]}
        assert (await server.get("/version"))["gitVersion"] == "v1.35.0"


async def test_version_has_its_numbers_as_text():
    async with serving() as server:
        found = await server.get("/version")
        assert (found["major"], found["minor"]) == ("1", "37")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/h/default/healthz"])
async def test_health_says_ok(path):
    async with serving() as server:
        answer = await server.raw("GET", path)
        assert (answer.status_code, answer.text) == (200, "ok")


async def test_health_and_metrics_name_an_event_that_is_ahead_of_the_clock():
    async with serving() as server:
        runtime = await server.histories.open("default")
        runtime.clock.observe(Instant(runtime.clock.now() + 3_605 * SECOND))
        answer = await server.raw("GET", "/readyz")
        assert answer.status_code == 200
        assert answer.text.startswith("ok\ndefault: the last stored event is 36")
        text = (await server.raw("GET", "/metrics")).text
        line = next(line for line in text.splitlines() if "clock_skew_seconds{" in line)
        assert line.startswith('redra_clock_skew_seconds{history="default"} 36')


async def test_history_has_discovery_of_its_own():
    async with serving() as server:
        assert (await server.get("/h/default@1/apis"))["kind"] == "APIGroupList"


async def test_requests_are_counted():
    async with serving() as server:
        await server.get("/version")
        await server.get("/api/v1/namespaces")
        await server.get("/api/v1/namespaces/default")
        await server.get("/api/v1/nothing", 404)
        answer = await server.raw("GET", "/metrics")
        plain = 'group="",history="",resource="",scope="",subresource="",verb="GET",version=""'
        assert f'apiserver_request_total{{code="200",{plain}}} 1.0' in answer.text
        assert f'apiserver_request_total{{code="404",{plain}}} 1.0' in answer.text
        about = 'group="",history="default",resource="namespaces"'
        listed = f'{about},scope="cluster",subresource="",verb="LIST",version="v1"'
        assert f'apiserver_request_total{{code="200",{listed}}} 1.0' in answer.text
        got = f'{about},scope="resource",subresource="",verb="GET",version="v1"'
        assert f"apiserver_request_duration_seconds_count{{{got}}} 1.0" in answer.text
        assert f"apiserver_resource_objects{{{about}}} 2.0" in answer.text
        assert 'redra_revision{history="default"}' in answer.text


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"])
async def test_documents_are_refused_to_who_takes_no_json(path):
    async with serving() as server:
        status = await server.get(path, code=406, accept="text/html")
        assert status["reason"] == "NotAcceptable"
        await server.get(path, accept="text/html, */*;q=0.1")
