"""A finding about a violated invariant says with which write it began, and who made it."""

import pytest

from tests.api.serving import serving
from tests.web.invented import ask, class_of, slice_of
from tests.web.reading import read

RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
SLICE = f"{RESOURCE}/resourceslices/s"
DEFAULT = "/redra/v1/histories/default"


def published(**device):
    return slice_of("s", "d.test", "n", [{"name": "x", **device}], nodeName="n")


async def allocate(server, name):
    """Give device x to a new claim, as a scheduler would."""
    spec = {"devices": {"requests": [ask("c")]}}
    made = await server.post(CLAIMS, {"metadata": {"name": name}, "spec": spec})
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    made = await server.put(f"{CLAIMS}/{name}", made)
    result = {"request": "dev", "driver": "d.test", "pool": "n", "device": "x"}
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    await server.put(f"{CLAIMS}/{name}/status", made)


async def device_is_given_twice(server):
    await server.post(f"{RESOURCE}/resourceslices", published())
    await allocate(server, "one")
    await allocate(server, "two")
    return "resourceclaims.resource.k8s.io/default/two was changed"


async def device_in_use_is_withdrawn(server):
    made = await server.post(f"{RESOURCE}/resourceslices", published())
    await allocate(server, "one")
    made["spec"]["devices"] = [{"name": "other"}]
    made["spec"]["pool"]["generation"] = 2
    await server.put(SLICE, made)
    return "resourceslices.resource.k8s.io/s was changed"


@pytest.mark.parametrize("act", [device_is_given_twice, device_in_use_is_withdrawn])
async def test_write_and_author_of_a_violation_are_named(act):
    async with serving() as server:
        await server.post(f"{RESOURCE}/deviceclasses", class_of("c", "d.test"))
        what = await act(server)
        begin = (await server.get(DEFAULT))["revision"]
        # The state lasts while others write.
        await server.post(f"{RESOURCE}/deviceclasses", class_of("later", "d.test"))
        items = (await server.get(f"{DEFAULT}/findings"))["items"]
        page = read((await server.raw("GET", "/ui/h/default/findings")).text).one("main").text
    causes = [item["causes"] for item in items if item["kind"] == "BrokenInvariant"]
    (line,) = [line for lines in causes for line in lines if what in line]
    assert line.startswith(f"it began when {what} by system:anonymous at ")
    assert line.endswith(f"(revision {begin})")
    assert line in page
