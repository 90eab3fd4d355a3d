"""Writes that the API refused, as an audit log tells: where a reader of pages meets them."""

import pytest

from app.domain.log import EventType, ObjectKey
from app.domain.values import api_resources
from tests.api.serving import CLAIMS, claim, pod, serving
from tests.web.planted import PODS, note_fact
from tests.web.reading import read

JSON = "/redra/v1/histories/default"
LABEL = (
    'resourceclaims.resource.k8s.io "special" is forbidden: admin access to devices requires the '
    "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
CLAIM = ObjectKey(*api_resources.RESOURCE_CLAIMS, "default", "special")


async def refuse(server, key=CLAIM, code=403, message=LABEL, verb="create"):
    body = {"verb": verb, "code": code, "message": f"Forbidden: {message}"}
    await note_fact(server, type=EventType.REQUEST_OBSERVED.value, key=key, body=body)


def naming(name):
    return pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


async def why(server, what, code=200):
    kind, _, name = what.partition("/")
    answer = await server.raw("GET", f"{JSON}/why?kind={kind}&namespace=default&name={name}")
    assert answer.status_code == code, answer.text
    page = await server.raw("GET", f"/ui/h/default/why?kind={kind}&namespace=default&name={name}")
    assert page.status_code == code
    return answer.text, read(page.text).one("main").text


async def findings(server):
    items = (await server.get(f"{JSON}/findings"))["items"]
    return [one for one in items if one["kind"] == "RefusedWrites"]


async def test_refused_claim_is_told_by_the_pod_that_names_it_and_on_the_landing_page():
    async with serving() as server:
        await server.post(PODS, naming("special"))
        await refuse(server)
        for text in (*await why(server, "pod/p"), *await why(server, "resourceclaim/special", 404)):
            assert "admin access to devices requires the" in text
            assert "by redra" in text
        (finding,) = await findings(server)
        assert "admin access to devices requires the" in finding["text"]
        assert [one["name"] for one in finding["objects"]] == ["special"]
        landing = read((await server.raw("GET", "/ui/h/default/")).text).one("main").text
        assert "admin access to devices requires the" in landing
        (entry,) = (await server.get(f"{JSON}/timeline?kind=WriteRefused"))["items"]
        assert entry["name"] == "special"
        assert entry["text"].startswith("create: Forbidden: ")


UNREACHED = (
    'failed calling webhook "guard.x.test": failed to call webhook: Post "https://guard.x.test": '
    "dial tcp 10.0.0.9:443: connect: connection refused"
)


async def test_write_is_refused_by_a_webhook_that_does_not_answer():
    async with serving() as server:
        await server.post(PODS, naming("special"))
        await refuse(server, code=500, message=UNREACHED)
        for text in (*await why(server, "pod/p"), *await why(server, "resourceclaim/special", 404)):
            assert "failed calling webhook" in text
            assert "connection refused" in text
        (finding,) = await findings(server)
        assert "guard.x.test" in finding["text"]
        (entry,) = (await server.get(f"{JSON}/timeline?kind=WriteRefused"))["items"]
        assert "guard.x.test" in entry["text"]


async def test_failure_of_the_server_itself_is_no_refusal():
    async with serving() as server:
        await server.post(PODS, naming("special"))
        await refuse(server, code=500, message="etcdserver: leader changed")
        assert await findings(server) == []


async def test_refusal_is_over_when_the_claim_was_written():
    async with serving() as server:
        await server.post(PODS, naming("special"))
        await refuse(server)
        await server.post(CLAIMS, claim("special"))
        assert await findings(server) == []
        for text in (*await why(server, "pod/p"), *await why(server, "resourceclaim/special")):
            assert "admin access" not in text
        # It stays in the timeline.
        assert len((await server.get(f"{JSON}/timeline?kind=WriteRefused"))["items"]) == 1


async def test_refused_change_of_an_object_is_told_by_the_object():
    async with serving() as server:
        await server.post(CLAIMS, claim("special"))
        for number in range(3):
            message = 'resourceclaims.resource.k8s.io "special" is invalid: spec is immutable'
            await refuse(server, code=422, message=message, verb="update" if number else "patch")
        for text in await why(server, "resourceclaim/special"):
            assert "spec is immutable" in text
            assert "3 times since its last change" in text
        (finding,) = await findings(server)
        assert finding["count"] == 1


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (CLAIM, 409), (CLAIM, 404), (CLAIM, 504),
        (ObjectKey(*api_resources.LEASES, "default", "special"), 403),
        (ObjectKey(*api_resources.EVENTS, "default", "special"), 403),
    ],
)  # fmt: skip
async def test_what_clients_try_again_and_heartbeats_are_no_refusals(key, code):
    async with serving() as server:
        await server.post(PODS, naming("special"))
        await refuse(server, key=key, code=code)
        assert await findings(server) == []
        assert (await server.get(f"{JSON}/timeline?kind=WriteRefused"))["items"] == []
        for text in await why(server, "pod/p"):
            assert "refused" not in text


async def test_refusal_without_a_name_is_shown_without_a_link():
    async with serving() as server:
        await refuse(server, key=ObjectKey(*api_resources.PODS, "default", ""))
        assert await findings(server) == []
        page = read((await server.raw("GET", "/ui/h/default/timeline")).text).one("main")
        assert "admin access" in page.text
        assert not [link for link in page.links if "/object?kind=pods" in link]


async def test_namespace_lists_the_writes_that_were_refused_in_it():
    async with serving() as server:
        await refuse(server)
        for text in await why(server, "namespace/default"):
            assert "ResourceClaim default/special: a create by redra" in text
            assert "admin access to devices requires the" in text
        await server.post(CLAIMS, claim("special"))
        for text in await why(server, "namespace/default"):
            assert "was refused" not in text
