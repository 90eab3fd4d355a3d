"""What the controller of slices in a Go driver sends, request by request.

It publishes the devices of one node: bodies are protobuf, the informer begins with a streaming
list, and every answer is compared with what was sent. Parity: api.md 12.
"""

import json

import pytest

from tests.api.serving import serving
from tests.shared_data import shared_path
from tests.unit.protobuf.wire import META, encode_message, envelope

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
NODE = "/api/v1/nodes/n1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = f"{PROTOBUF},application/json"
MESSAGE = "k8s.io.api.resource.v1.ResourceSlice"
INFORMER = (
    f"{SLICES}?fieldSelector=spec.driver%3Dd.example.com%2Cspec.nodeName%3Dn1&watch=true"
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    "&timeoutSeconds=374&timeout=6m14s"
)


def driver_body(message, kind, tree):
    """The bytes of a body that a typed Go client sends."""
    table = json.loads(shared_path("openapi", "protobuf-fields.json").read_text())
    return envelope("resource.k8s.io/v1", kind, encode_message(table, message, tree))


def published(node_uid, *devices, generation=1):
    """A slice as the controller makes it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node_uid, "controller": True}
    return {
        "metadata": {"generateName": "00-d.example.com-n1-", "ownerReferences": [owner]},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "a"}, "d.example.com/slots": {"int": 0}},
    "capacity": {"memory": {"value": "40Gi"}},
    "taints": [{"key": "d.example.com/slow", "effect": "NoSchedule"}],
}


async def test_controller_publishes_updates_and_removes_the_slices_of_its_node():
    async with serving() as server:
        await server.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
        node = await server.get(NODE, accept=ACCEPT)
        other = published(node["metadata"]["uid"])
        other["spec"] |= {"driver": "other.example.com"}
        await server.post(SLICES, other)
        async with server.watch(INFORMER, accept=f"{PROTOBUF};stream=watch,{ACCEPT}") as informer:
            mark = await informer.line()
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["kind"] == "ResourceSlice"
            ends = mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"]
            assert ends == "true"

            wanted = published(node["metadata"]["uid"], DEVICE)
            body = driver_body(MESSAGE, "ResourceSlice", wanted)
            made = await send(server, "POST", SLICES, body, 201)
            assert made["metadata"]["name"].startswith("00-d.example.com-n1-")
            assert made["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"]
            # Nothing is dropped, and only the time of the taint is added.
            [device] = made["spec"]["devices"]
            assert device["taints"][0].pop("timeAdded")
            assert device == DEVICE
            told = await informer.line()
            assert (told["type"], told["object"]["metadata"]) == ("ADDED", made["metadata"])

            cached = told["object"]
            cached["spec"]["pool"]["generation"] = 2
            cached["spec"]["devices"] = [{"name": "gpu-1"}]
            place = f"{SLICES}/{cached['metadata']['name']}"
            body = driver_body(MESSAGE, "ResourceSlice", cached)
            changed = await send(server, "PUT", place, body, 200)
            assert changed["metadata"]["generation"] == 2
            assert (await informer.line())["type"] == "MODIFIED"
            stale = await send(server, "PUT", place, body, 409)
            assert stale["reason"] == "Conflict"

            for version, code in ((cached, 409), (changed, 200), (changed, 404)):
                metadata = version["metadata"]
                conditions = {name: metadata[name] for name in ("uid", "resourceVersion")}
                options = {"preconditions": conditions}
                body = driver_body(f"{META}DeleteOptions", "DeleteOptions", options)
                await send(server, "DELETE", place, body, code)
            assert (await informer.line())["type"] == "DELETED"


@pytest.mark.parametrize("selected", ["spec.nodeName%3D", "spec.driver%3Dd.example.com"])
async def test_slices_of_the_network_are_those_without_a_node(selected):
    async with serving() as server:
        spec = published("u")["spec"]
        network = {name: spec[name] for name in ("driver", "pool", "devices")} | {"allNodes": True}
        await server.post(SLICES, {"metadata": {"name": "network"}, "spec": network})
        await server.post(SLICES, {"metadata": {"name": "local"}, "spec": spec})
        found = await server.get(f"{SLICES}?fieldSelector={selected}")
        names = [item["metadata"]["name"] for item in found["items"]]
        assert names == (["network"] if selected.endswith("%3D") else ["local", "network"])


async def send(server, method, path, body, code):
    """The decoded answer to a protobuf body."""
    answer = await server.raw(method, path, body, content_type=PROTOBUF, accept=ACCEPT)
    assert answer.status_code == code, answer.text
    return answer.json()
