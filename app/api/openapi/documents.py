"""OpenAPI documents of the served API, built from the published schemas on first request.

The index lists each document with the hash of its content, so that clients cache it. Building all
documents of a profile takes some tens of milliseconds. Parity: api.md 4.
"""

import hashlib
from typing import Any

import msgspec

from app.api.kubernetes import discovery
from app.api.kubernetes.discovery import Discovery
from app.api.kubernetes.writes import is_returned_when_deleted
from app.api.openapi import enums, v2
from app.api.openapi import paths as openapi_paths
from app.api.openapi.paths import LIST_META, Definitions
from app.api.server.messages import HttpRequest, Response
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.objects.schema import corrections, structural
from app.domain.objects.schema.structural import Schemas
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject

V2_PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_REF = "#/$defs/"
_TARGET_REF = "#/components/schemas/"
_KEEP_SECONDS = 31_536_000
_EXTENDED_MAX = 8
"""Sets of custom kinds (of histories and moments) whose documents are cached."""
_encode = msgspec.json.Encoder().encode
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class Openapi:
    """The documents of one profile; each is built once."""

    def __init__(
        self,
        profile: Profile,
        schemas: Schemas,
        *,
        customs: tuple[Kind, ...] = (),
        plain: "Openapi | None" = None,
    ) -> None:
        self._profile = profile
        self._schemas = schemas
        self._plain = plain
        self._discovery: Discovery = discovery.of_profile(profile, customs)
        self._own = {(kind.group, version) for kind in customs for version in kind.versions}
        self._extended: Bounded[tuple[Kind, ...], Openapi] = Bounded(_EXTENDED_MAX)
        self._places = {
            _place(group, version): (group, version)
            for group, versions in self._discovery.groups.items()
            for version in versions
        }
        self._digests: dict[str, str] = {}
        self._documents: dict[str, bytes] = {}

    def with_customs(self, customs: tuple[Kind, ...]) -> "Openapi":
        """The documents with custom kinds; documents without custom kinds are shared."""
        if not customs:
            return self
        extended = self._extended.get(customs)
        if extended is None:
            extended = Openapi(self._profile, self._schemas, customs=customs, plain=self)
            self._extended[customs] = extended
        return extended

    def index(self, prefix: str) -> bytes:
        """The index of all documents with their addresses, below the prefix of a history."""
        paths = {
            place: {"serverRelativeURL": f"{prefix}/openapi/v3/{place}?hash={digest}"}
            for place, digest in ((place, self._digest(place)) for place in sorted(self._places))
        }
        return _encode({"paths": paths})

    def answer(self, request: HttpRequest, path: str, prefix: str) -> Response | None:
        """The response for a path below `/openapi`; None when there is no document."""
        if path == "/openapi/v3":
            return Response(self.index(prefix))
        if path == "/openapi/v2":
            return self._v2(request)
        place = path.removeprefix("/openapi/v3/")
        if place not in self._places:
            return None
        current = self._digest(place)
        known_hash = request.parameter("hash")
        if known_hash and known_hash != current:
            location = f"{prefix}/openapi/v3/{place}?hash={current}".encode()
            return Response(b"", status=301, headers=((b"location", location),))
        tag = f'"{current}"'.encode()
        headers = [(b"etag", tag), (b"vary", b"Accept")]
        if known_hash:
            headers.append((b"cache-control", b"public, immutable, max-age=%d" % _KEEP_SECONDS))
            headers.append((b"expires", b"Thu, 31 Dec 2099 23:59:59 GMT"))
        if request.header(b"if-none-match").encode() == tag:
            return Response(b"", status=304, headers=tuple(headers))
        return Response(self.document(place), headers=tuple(headers))

    def document(self, place: str) -> bytes:
        """The document of one group-version, such as `apis/resource.k8s.io/v1`."""
        if self._is_shared(place):
            assert self._plain is not None, "shared documents have an owner"
            return self._plain.document(place)
        document = self._documents.get(place)
        if document is None:
            document = self._documents[place] = _encode(self._build(place))
        return document

    def _is_shared(self, place: str) -> bool:
        return self._plain is not None and self._places[place] not in self._own

    def _digest(self, place: str) -> str:
        if self._is_shared(place):
            assert self._plain is not None, "shared documents have an owner"
            return self._plain._digest(place)
        known_digest = self._digests.get(place)
        if known_digest is None:
            digest = hashlib.sha256(self.document(place)).hexdigest().upper()
            known_digest = self._digests[place] = digest
        return known_digest

    def _build(self, place: str) -> JsonObject:
        group, version = self._places[place]
        kinds = self._discovery.groups[group][version]
        paths: JsonObject = {}
        wanted: dict[str, None] = {}
        customs: JsonObject = {}
        for kind in kinds:
            if kind.custom is not None:
                name = _custom_name(kind, version)
                listed = _custom_list_name(kind, version)
                customs |= _custom_components(kind, version, self._meta_fields())
                own = (_OBJECT_META, openapi_paths.LIST_META)
            else:
                name = self._name(group, version, kind.kind)
                listed = self._name(group, version, kind.list_kind)
                own = (name, listed)
            deleted = name if is_returned_when_deleted(kind) else openapi_paths.STATUS
            for needed in (*own, openapi_paths.STATUS, openapi_paths.OPTIONS):
                for definition in self._schemas.reachable(needed):
                    wanted[definition] = None
            definitions = Definitions(item=name, listed=listed, deleted=deleted)
            paths |= openapi_paths.of_kind(kind, group, version, definitions)
        reviews = [
            review for review in discovery.REVIEWS if (review.group, "v1") == (group, version)
        ]
        for review in reviews:
            name = structural.definition_name(group, version, review.kind)
            for definition in self._schemas.reachable(name):
                wanted[definition] = None
            paths |= openapi_paths.of_review(review, name)
        schemas = {name: self._component(name) for name in sorted(wanted)} | customs
        named = [kind.kind for kind in kinds] + [kind.list_kind for kind in kinds]
        for kind_name in named + [review.kind for review in reviews]:
            component = schemas.get(structural.definition_name(group, version, kind_name))
            if component is not None:
                component["x-kubernetes-group-version-kind"] = [
                    {"group": group, "kind": kind_name, "version": version}
                ]
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": f"v{self._profile.version}.0"},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _name(self, group: str, version: str, kind: str) -> str:
        name = structural.definition_name(group, version, kind)
        return name if self._schemas.has(name) else corrections.LOOSE

    def _meta_fields(self) -> JsonObject:
        """The descriptions of `apiVersion` and `kind`, equal for all objects."""
        properties = self._component(structural.definition_name("", "v1", "ConfigMap"))[
            "properties"
        ]
        return {name: properties[name] for name in ("apiVersion", "kind")}

    def _component(self, name: str) -> JsonObject:
        component: JsonObject = _converted(self._schemas.definition(name), _TARGET_REF)
        for field in ("apiVersion", "kind"):
            # The published file restricts these to single values, which explain would show.
            component.get("properties", {}).get(field, {}).pop("enum", None)
        enums.add(name, component, self._profile.minor)
        return component

    def _v2(self, request: HttpRequest) -> Response:
        """The document of v2 in the requested format; JSON by default."""
        is_protobuf = "protobuf" in request.header(b"accept")
        body = self.old_document(is_protobuf=is_protobuf)
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'.encode()
        headers = ((b"etag", tag), (b"vary", b"Accept"))
        if request.header(b"if-none-match").encode() == tag:
            return Response(b"", status=304, headers=headers)
        if is_protobuf:
            return Response(body, content_type=V2_PROTOBUF, headers=headers)
        return Response(body, headers=headers)

    def old_document(self, *, is_protobuf: bool) -> bytes:
        """The document of v2 for the whole served API."""
        form = "v2 protobuf" if is_protobuf else "v2"
        encoded = self._documents.get(form)
        if encoded is None:
            parts = (msgspec.json.decode(self.document(place)) for place in sorted(self._places))
            whole = v2.document("Kubernetes", f"v{self._profile.version}.0", parts)
            encoded = v2.encode(whole) if is_protobuf else _encode(whole)
            self._documents[form] = encoded
        return encoded


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _converted(raw: Any, ref: str) -> Any:
    """A published definition as OpenAPI 3.0: no null types, references wrapped in allOf."""
    if isinstance(raw, list):
        return [_converted(item, ref) for item in raw]
    if not isinstance(raw, dict):
        return raw
    converted = {}
    for key, value in raw.items():
        if key == "$ref" and isinstance(value, str):
            target = {"$ref": ref + value.removeprefix(_REF)}
            if len(raw) == 1:
                return target
            converted["allOf"] = [target]
        elif key == "type" and isinstance(value, list):
            names = [name for name in value if name != "null"]
            if len(names) == 1:
                converted["type"] = names[0]
        elif key == "enum" and isinstance(value, list):
            converted["enum"] = [item for item in value if item is not None]
        elif key in ("$schema", "additionalProperties") and value is False:
            continue
        else:
            converted[key] = _converted(value, ref)
    return converted


def _custom_name(kind: Kind, version: str) -> str:
    """The name of a custom kind's component, such as `com.example.stable.v1.CronTab`.

    Parity: api.md 4; names are the group reversed, as the real server makes them.
    """
    return ".".join((*reversed(kind.group.split(".")), version, kind.kind))


def _custom_list_name(kind: Kind, version: str) -> str:
    """The name of the component for lists of a custom kind."""
    return _custom_name(kind, version).removesuffix(kind.kind) + kind.list_kind


def _custom_components(kind: Kind, version: str, meta_fields: JsonObject) -> JsonObject:
    """The components of a custom kind and of its lists in one version.

    They are the schema as written, plus the fields of all objects.
    """
    assert kind.custom is not None, "asked for custom kinds only"
    schema = kind.custom.versions[version].schema
    name = _custom_name(kind, version)
    meta = {
        "allOf": [{"$ref": _TARGET_REF + _OBJECT_META}],
        "description": "Standard metadata of every object.",
    }
    properties = {**schema.get("properties", {}), **meta_fields, "metadata": meta}
    shown = {**schema, "type": "object", "properties": properties}
    shown["x-kubernetes-group-version-kind"] = [
        {"group": kind.group, "kind": kind.kind, "version": version}
    ]
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            **meta_fields,
            "items": {"type": "array", "items": {"$ref": _TARGET_REF + name}},
            "metadata": {
                "allOf": [{"$ref": _TARGET_REF + LIST_META}],
                "description": "Standard metadata of every list.",
            },
        },
        "x-kubernetes-group-version-kind": [
            {"group": kind.group, "kind": kind.list_kind, "version": version}
        ],
    }
    return {name: shown, _custom_list_name(kind, version): listed}
