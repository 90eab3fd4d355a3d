"""The OpenAPI documents: what kubectl looks for in them."""

import pytest

from app.api.openapi import enums
from app.domain.objects.profile import Profile
from tests.api.serving import serving
from tests.unit.objects.builders import release
from tests.unit.protobuf import wire

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


async def document(server, place):
    index = await server.get("/openapi/v3")
    return await server.get(index["paths"][place]["serverRelativeURL"])


async def test_index_names_every_group_version():
    async with serving() as server:
        paths = (await server.get("/openapi/v3"))["paths"]
        assert {"api/v1", "apis/resource.k8s.io/v1", "apis/resource.k8s.io/v1alpha3"} <= set(paths)


async def test_index_of_a_history_stays_in_the_history():
    async with serving() as server:
        paths = (await server.get("/h/default/openapi/v3"))["paths"]
        assert paths["api/v1"]["serverRelativeURL"].startswith("/h/default/openapi/v3/api/v1?hash=")
        found = await server.get(paths["api/v1"]["serverRelativeURL"])
        assert found["openapi"] == "3.0.0"


async def test_document_with_the_right_hash_may_be_kept():
    async with serving() as server:
        index = await server.get("/openapi/v3")
        answer = await server.raw("GET", index["paths"]["api/v1"]["serverRelativeURL"])
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["etag"]


async def test_outdated_hash_is_redirected():
    async with serving() as server:
        answer = await server.raw("GET", "/openapi/v3/api/v1?hash=OLD")
        assert answer.status_code == 301
        assert "hash=" in answer.headers["location"]


async def test_patch_offers_field_validation_and_strategic_merge():
    async with serving() as server:
        found = await document(server, "apis/resource.k8s.io/v1")
        path = "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
        patch = found["paths"][path]["patch"]
        assert patch["x-kubernetes-group-version-kind"]["kind"] == "ResourceClaim"
        assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
        assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


LISTED = ("io.k8s.api.core.v1.ConfigMapList", "io.k8s.api.core.v1.ConfigMap")
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


@pytest.mark.parametrize(
    ("path", "method", "answered"),
    [
        ("configmaps", "get", LISTED[0]),
        ("configmaps", "delete", LISTED[0]),
        ("configmaps", "post", LISTED[1]),
        ("configmaps/{name}", "get", LISTED[1]),
        ("configmaps/{name}", "delete", STATUS),
        ("pods/{name}", "delete", "io.k8s.api.core.v1.Pod"),
    ],
)
async def test_operation_names_what_it_answers(path, method, answered):
    async with serving() as server:
        found = await document(server, "api/v1")
        operation = found["paths"][f"/api/v1/namespaces/{{namespace}}/{path}"][method]
        shape = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert shape["$ref"] == f"#/components/schemas/{answered}"


@pytest.mark.parametrize("place", ["api/v1", "apis/resource.k8s.io/v1", "apis/policy/v1"])
async def test_every_reference_leads_somewhere(place):
    async with serving() as server:
        found = await document(server, place)
        schemas = found["components"]["schemas"]
        pending, met = [found], 0
        while pending:
            value = pending.pop()
            if isinstance(value, list):
                pending.extend(value)
            elif isinstance(value, dict):
                pending.extend(value.values())
                if isinstance(value.get("$ref"), str):
                    assert value["$ref"].removeprefix("#/components/schemas/") in schemas
                    met += 1
        assert met > 20


async def test_served_kinds_are_found_by_their_group_version_kind():
    async with serving() as server:
        found = await document(server, "apis/resource.k8s.io/v1")
        named = {
            each["kind"]
            for schema in found["components"]["schemas"].values()
            for each in schema.get("x-kubernetes-group-version-kind", [])
        }
        assert {"ResourceClaim", "ResourceSlice", "DeviceClass", "DeviceTaintRule"} <= named


async def test_merge_keys_are_told():
    async with serving() as server:
        found = await document(server, "api/v1")
        containers = found["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"][
            "containers"
        ]
        assert containers["x-kubernetes-patch-merge-key"] == "name"


async def test_no_type_is_null():
    async with serving() as server:
        found = await document(server, "api/v1")
        for schema in found["components"]["schemas"].values():
            for field in schema.get("properties", {}).values():
                assert isinstance(field.get("type", ""), str)


async def test_texts_of_a_field_are_told():
    async with serving() as server:
        found = (await document(server, "api/v1"))["components"]["schemas"]
        spec = found["io.k8s.api.core.v1.PodSpec"]["properties"]
        assert spec["restartPolicy"]["enum"] == ["Always", "Never", "OnFailure"]
        claims = found["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]
        assert "ReadWriteOnce" in claims["accessModes"]["items"]["enum"]
        assert "enum" not in claims["accessModes"]


@pytest.mark.parametrize(("version", "count"), [("1.34", 2), ("1.36", 4)])
async def test_texts_are_those_of_the_release(version, count):
    async with serving(profile=Profile(version=version)) as server:
        found = (await document(server, "api/v1"))["components"]["schemas"]
        fields = found["io.k8s.api.core.v1.Toleration"]["properties"]
        assert len(fields["operator"]["enum"]) == count


def test_every_enumeration_is_about_a_field_that_exists():
    schemas = release()
    for short, fields in enums.ENUMS.items():
        properties = schemas.definition(f"io.k8s.api.{short}")["properties"]
        for field, text in fields.items():
            assert field in properties, (short, field)
            assert text.split() == sorted(text.split()), (short, field)


async def test_old_document_is_protobuf_for_who_asks_for_it():
    async with serving() as server:
        answer = await server.raw("GET", "/openapi/v2", accept=PROTOBUF)
        assert answer.headers["content-type"] == (
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        )
        fields = dict(wire.fields(answer.content))
        assert fields[1] == b"2.0"
        assert dict(wire.fields(fields[2])) == {1: b"Kubernetes", 2: b"v1.37.0"}
        names = {dict(wire.fields(entry))[1].decode() for _, entry in wire.fields(fields[9])}
        asked = await server.get("/openapi/v2", accept="application/json")
        assert names == set(asked["definitions"])
        again = await server.raw(
            "GET", "/openapi/v2", accept=PROTOBUF, if_none_match=answer.headers["etag"]
        )
        assert again.status_code == 304


async def test_old_document_has_paths_references_and_merge_keys():
    async with serving() as server:
        found = await server.get("/openapi/v2", accept="application/json")
        claim = found["definitions"]["io.k8s.api.resource.v1.ResourceClaim"]
        assert claim["properties"]["spec"]["$ref"] == (
            "#/definitions/io.k8s.api.resource.v1.ResourceClaimSpec"
        )
        assert claim["properties"]["spec"]["description"]
        patch = found["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
        assert {"dryRun", "fieldValidation"} <= {each["name"] for each in patch["parameters"]}
        assert patch["x-kubernetes-group-version-kind"]["kind"] == "Pod"
        for schema in found["definitions"].values():
            for field in schema.get("properties", {}).values():
                reference = field.get("$ref", "#/definitions/" + next(iter(found["definitions"])))
                assert reference.removeprefix("#/definitions/") in found["definitions"]
