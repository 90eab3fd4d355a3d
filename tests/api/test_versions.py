"""One object, every served version and encoding, over HTTP.

The published fixtures set every field and are valid nowhere, so they are stored as recorded states
are, and then read. Valid objects are created in each version and encoding. Parity:
api.md 3 and 5 ("Versions of resource.k8s.io").
"""

import copy
import json

import pytest
import yaml

from app.api.kubernetes import bodies
from app.domain.log import Actor, ObjectKey
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.schema import conversion
from app.domain.objects.schema.decode import DecodeBounds
from app.domain.objects.write.commands import ImportObject
from tests import draws
from tests.api.serving import serving
from tests.shared_data import shared_is_present, shared_path
from tests.together import together
from tests.unit.protobuf.wire import encode_message, envelope

GROUP = "resource.k8s.io"
FIXTURES = ("corpus", "kubernetes__api", "testdata")
PROFILE = Profile(gates={"DRAResourcePoolStatus": True})
PROTOBUF = "application/vnd.kubernetes.protobuf"
SHAPES = ("v1", "v1beta2", "v1beta1")


def fixtures():
    if not shared_is_present(*FIXTURES):
        return [pytest.param(None, id="absent")]
    found = []
    for path in sorted(shared_path(*FIXTURES).glob("*/*.json")):
        _, _, _, version, kind, *_ = path.name.split(".")
        if version != "v1alpha3" or kind in ("DeviceTaintRule", "ResourcePoolStatusRequest"):
            found.append(pytest.param(path, id=f"{path.parent.name}-{path.name[16:-5]}"))
    return found


def served(kind):
    """The versions in which a kind is served."""
    return [version for _, version in registry.served_versions(kind, PROFILE)]


def place(kind, version, namespace):
    inside = f"namespaces/{namespace}/" if kind.namespaced else ""
    return f"/apis/{GROUP}/{version}/{inside}{kind.plural}"


def protobuf(tree, version):
    """The bytes that a typed Go client would send."""
    table = json.loads(shared_path("openapi", "protobuf-fields.json").read_text())
    message = f"k8s.io.api.resource.{version}.{tree['kind']}"
    return envelope(tree["apiVersion"], tree["kind"], encode_message(table, message, tree))


def flat(requests):
    """Requests of v1 as v1beta1 has them."""
    found = []
    for request in requests:
        rest = {name: value for name, value in request.items() if name != "exactly"}
        found.append({"deviceClassName": ""} | rest | request.get("exactly", {}))
    return found


def basic(devices):
    """Devices of v1 as v1beta1 has them."""
    return [
        {"name": device["name"], "basic": {k: v for k, v in device.items() if k != "name"}}
        for device in devices
    ]


def shown_in(tree, version):
    """A tree in the shape of v1 as a version shows it, by the facts and not by our conversion."""
    found = copy.deepcopy(tree)
    found["apiVersion"] = f"{GROUP}/{version}"
    spec = found["spec"]
    if version == "v1beta1":
        if "devices" in spec and found["kind"] == "ResourceSlice":
            spec["devices"] = basic(spec["devices"])
        inner = spec.get("spec", spec)
        if isinstance(inner.get("devices"), dict) and "requests" in inner["devices"]:
            inner["devices"]["requests"] = flat(inner["devices"]["requests"])
    return found


@together(
    [row.values[0] for row in fixtures() if row.values[0]],
    lambda path: f"{path.parent.name}-{path.name[16:-5]}",
    absent=lambda: shared_path(*FIXTURES),
)
def test_fixture_is_the_same_in_json_yaml_and_protobuf(path):
    tree = json.loads(path.read_text())
    version = path.name.split(".")[3]
    bounds = DecodeBounds()
    found = bodies.decode_object(path.read_bytes(), "application/json", bounds)
    assert found.value == tree
    text = path.with_suffix(".yaml").read_bytes()
    assert bodies.decode_object(text, "application/yaml", bounds).value == tree
    if path.parent.name == "HEAD":
        read = bodies.decode_object(protobuf(tree, version), PROTOBUF, bounds).value
        assert read == tree


@draws.in_turn("rows of fixtures")
@pytest.mark.parametrize("path", fixtures())
async def test_fixture_is_read_in_every_served_version(path):
    if path is None:
        shared_path(*FIXTURES)
    tree = json.loads(path.read_text())
    version = path.name.split(".")[3]
    kind = registry.find_kind(GROUP, version, tree["kind"])
    hub = conversion.convert(tree, kind, version, kind.storage_version)
    key = ObjectKey(GROUP, kind.plural, "namespaceValue" if kind.namespaced else "", "nameValue")
    command = ImportObject(operation="ADDED", key=key, uid="uidValue", tree=hub)
    async with serving(profile=PROFILE) as server:
        runtime = await server.histories.open("default")
        await runtime.submit(command, actor=Actor(user="importer"))
        assert version in served(kind)
        for other in served(kind):
            address = f"{place(kind, other, 'namespaceValue')}/nameValue"
            found = await server.get(address)
            as_yaml = await server.raw("GET", address, accept="application/yaml")
            assert yaml.safe_load(as_yaml.text) == yaml.safe_load(json.dumps(found))
            found["metadata"]["resourceVersion"] = tree["metadata"]["resourceVersion"]
            hub["metadata"] = tree["metadata"]
            if other == version:
                assert found == expected(tree, version)
            elif version in ("v1", "v1beta2") and "both" not in forms(hub):
                assert found == shown_in(hub, other)
            again = conversion.convert(found, kind, other, kind.storage_version)
            assert again["spec"] == hub["spec"], other


def forms(tree):
    """Whether a request has both forms, which no valid object has."""
    inner = tree["spec"].get("spec", tree["spec"])
    devices = inner.get("devices")
    requests = devices.get("requests", []) if isinstance(devices, dict) else []
    return {
        "both" if {"exactly", "firstAvailable"} <= set(request) else "one" for request in requests
    }


def expected(tree, version):
    """v1beta1 always has `basic`, also where the fixture of an old release had nothing in it."""
    if version == "v1beta1" and tree["kind"] == "ResourceSlice":
        for device in tree["spec"]["devices"]:
            device.setdefault("basic", {})
    return tree


REQUESTS = [
    {
        "name": "one",
        "exactly": {
            "deviceClassName": "gpu.example.com",
            "selectors": [{"cel": {"expression": "device.driver == 'd.example.com'"}}],
            "allocationMode": "ExactCount",
            "count": 2,
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}],
        },
    },
    {
        "name": "two",
        "firstAvailable": [
            {
                "name": "big",
                "deviceClassName": "big.example.com",
                "allocationMode": "ExactCount",
                "count": 1,
            },
            {"name": "all", "deviceClassName": "small.example.com", "allocationMode": "All"},
        ],
    },
]
OPAQUE = {"driver": "d.example.com", "parameters": {"apiVersion": "v1", "kind": "P", "n": [1, {}]}}
CLAIM_SPEC = {
    "devices": {
        "requests": REQUESTS,
        "constraints": [{"requests": ["one"], "matchAttribute": "d.example.com/numa"}],
        "config": [{"requests": ["one"], "opaque": OPAQUE}],
    }
}
VALID = [
    ("ResourceClaim", CLAIM_SPEC),
    ("ResourceClaimTemplate", {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM_SPEC}),
    (
        "DeviceClass",
        {"selectors": [{"cel": {"expression": "true"}}], "config": [{"opaque": OPAQUE}]},
    ),
    (
        "ResourceSlice",
        {
            "driver": "d.example.com",
            "nodeName": "node",
            "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "d1",
                    "attributes": {
                        "m": {"string": "a"},
                        "n": {"int": 0},
                        "v": {"version": "1.2.3"},
                    },
                    "capacity": {"memory": {"value": "80Gi"}},
                    "taints": [
                        {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
                    ],
                },
                {"name": "d2"},
            ],
        },
    ),
]


@pytest.mark.parametrize(("kind_name", "spec"), VALID, ids=[row[0] for row in VALID])
@pytest.mark.parametrize("version", SHAPES)
async def test_object_made_in_any_version_and_encoding_is_one_object(kind_name, spec, version):
    kind = registry.find_kind(GROUP, version, kind_name)
    encoders = {
        "application/json": lambda tree: json.dumps(tree).encode(),
        "application/yaml": lambda tree: yaml.safe_dump(tree).encode(),
        PROTOBUF: lambda tree: protobuf(tree, version),
    }
    async with serving() as server:
        for number, (encoding, encode) in enumerate(encoders.items()):
            hub = {
                "apiVersion": f"{GROUP}/v1",
                "kind": kind_name,
                "metadata": {"name": f"x{number}"},
                "spec": spec,
            }
            sent = encode(shown_in(hub, version))
            made = await server.raw(
                "POST", place(kind, version, "default"), sent, content_type=encoding
            )
            assert made.status_code == 201, made.text
            for other in SHAPES:
                shown = await server.get(f"{place(kind, other, 'default')}/x{number}")
                wanted = shown_in(hub, other)
                assert (shown["apiVersion"], shown["spec"]) == (
                    wanted["apiVersion"],
                    wanted["spec"],
                )
