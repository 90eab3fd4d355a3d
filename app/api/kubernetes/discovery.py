"""Discovery of the served API: aggregated and legacy documents.

Both forms are made from the registry once per profile and have an ETag. A 304 repeats the
Content-Type of the 200, because caches of clients merge its headers into the stored ones.
Parity: api.md 0 and 2.
"""

import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from app.api.kubernetes import negotiation
from app.api.server.messages import HttpRequest, Response
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

SUBRESOURCE_VERBS = {
    "status": ("get", "patch", "update"),
    "finalize": ("update",),
    "eviction": ("create",),
    "approval": ("get", "patch", "update"),
    "binding": ("create",),
    "log": ("get",),
    "ephemeralcontainers": ("get", "patch", "update"),
    "resize": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "token": ("create",),
}
"""The subresources that are served; other subresources in the registry are left out."""

_RESPONSE_KINDS = {
    "eviction": (api_groups.POLICY, "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "scale": (api_groups.AUTOSCALING, "v1", "Scale"),
    "token": (api_groups.AUTHENTICATION, "v1", "TokenRequest"),
}

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewKind:
    """A kind of requests that are answered and not stored, such as TokenReview."""

    group: str
    kind: str
    plural: str
    namespaced: bool = False


BINDINGS = ReviewKind(group="", kind="Binding", plural="bindings", namespaced=True)
"""The old way to bind a pod: the body names the pod, not the path."""

REVIEWS = (
    BINDINGS,
    ReviewKind(
        group=api_groups.AUTHENTICATION, kind="SelfSubjectReview", plural="selfsubjectreviews"
    ),
    ReviewKind(group=api_groups.AUTHENTICATION, kind="TokenReview", plural="tokenreviews"),
    ReviewKind(
        group=api_groups.AUTHORIZATION,
        kind="LocalSubjectAccessReview",
        plural="localsubjectaccessreviews",
        namespaced=True,
    ),
    ReviewKind(
        group=api_groups.AUTHORIZATION,
        kind="SelfSubjectAccessReview",
        plural="selfsubjectaccessreviews",
    ),
    ReviewKind(
        group=api_groups.AUTHORIZATION,
        kind="SelfSubjectRulesReview",
        plural="selfsubjectrulesreviews",
    ),
    ReviewKind(
        group=api_groups.AUTHORIZATION, kind="SubjectAccessReview", plural="subjectaccessreviews"
    ),
)


def find_review(group: str, version: str, resource: str) -> ReviewKind | None:
    """The review at a path; None when there is none."""
    if version != "v1":
        return None
    for review in REVIEWS:
        if (review.group, review.plural) == (group, resource):
            return review
    return None


class Discovery:
    """The documents of a profile and of the custom kinds of a history, made once."""

    def __init__(self, profile: Profile, customs: tuple[Kind, ...] = ()) -> None:
        self._profile = profile
        self.customs = customs
        self.groups = _groups(profile, customs)
        core = {"": self.groups.get("", {})}
        named = {name: self.groups[name] for name in _sorted_groups(self.groups) if name}
        self._aggregated = {"/api": self._document(core), "/apis": self._document(named)}

    def answer(self, request: HttpRequest, path: str) -> Response | None:
        """The document at a path without trailing slash; None when there is none."""
        if path in ("/api", "/apis"):
            if negotiation.wants_aggregated_discovery(request.header(b"accept")):
                body, tag = self._aggregated[path]
                return _tagged(request, body, tag, AGGREGATED)
            tree = self._versions(request) if path == "/api" else self._group_list()
            return _plain(request, tree)
        parts = path.split("/")[1:]
        if parts[0] == "api" and len(parts) == 2 and parts[1] == "v1":
            return _plain(request, self._resource_list("", "v1"))
        if parts[0] == "apis" and len(parts) in (2, 3) and parts[1] in self.groups:
            if len(parts) == 2:
                group = self._group(parts[1])
                return _plain(request, {"kind": "APIGroup", "apiVersion": "v1", **group})
            if parts[2] in self.groups[parts[1]]:
                return _plain(request, self._resource_list(parts[1], parts[2]))
        return None

    def knows_beginning(self, path: str) -> bool:
        """Whether a path is below a served one, such as an unserved version of a group."""
        parts = path.split("/")[1:]
        if parts[0] == "api":
            return len(parts) > 1
        return parts[0] == "apis" and len(parts) > 2 and parts[1] in self.groups

    def _document(self, groups: dict[str, dict[str, list[Kind]]]) -> tuple[bytes, str]:
        items = []
        for group, versions in groups.items():
            metadata: JsonObject = {"name": group} if group else {}
            metadata["creationTimestamp"] = None
            items.append(
                {
                    "metadata": metadata,
                    "versions": [
                        {
                            "version": version,
                            "resources": _aggregated_resources(group, version, kinds),
                            "freshness": "Current",
                        }
                        for version, kinds in versions.items()
                    ],
                }
            )
        body = _encode(
            {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"{api_groups.API_DISCOVERY}/v2",
                "metadata": {},
                "items": items,
            }
        )
        return body, _hash(body)

    def _versions(self, request: HttpRequest) -> JsonObject:
        host = request.header(b"host") or "localhost"
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
        }

    def _group_list(self) -> JsonObject:
        names = [name for name in _sorted_groups(self.groups) if name]
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [self._group(name) for name in names],
        }

    def _group(self, name: str) -> JsonObject:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version}
            for version in self.groups[name]
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> JsonObject:
        resources: list[JsonObject] = []
        for kind in self.groups[group][version]:
            resources.extend(_legacy_resources(kind))
        resources.extend(
            {
                "name": review.plural,
                "singularName": review.kind.lower(),
                "namespaced": review.namespaced,
                "kind": review.kind,
                "verbs": ["create"],
            }
            for review in REVIEWS
            if review.group == group and version == "v1"
        )
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": registry.api_version(group, version),
            "resources": sorted(resources, key=lambda resource: str(resource["name"])),
        }


@lru_cache(maxsize=32)
def _for_settings(settings: bytes, customs: tuple[Kind, ...]) -> Discovery:
    return Discovery(profiles.from_settings(msgspec.json.decode(settings)), customs)


def of_profile(profile: Profile, customs: tuple[Kind, ...] = ()) -> Discovery:
    """The documents of a profile and of custom kinds; cached for equal arguments."""
    return _for_settings(_encode(profile.settings()), customs)


def served_subresources(kind: Kind) -> list[str]:
    """The subresources of a kind that the server offers, sorted."""
    return sorted(name for name in kind.subresources if name in SUBRESOURCE_VERBS)


def _groups(profile: Profile, customs: tuple[Kind, ...]) -> dict[str, dict[str, list[Kind]]]:
    """Kinds by group and version; versions in order of preference."""
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in (*registry.kinds(), *customs):
        for group, version in registry.served_versions(kind, profile):
            groups.setdefault(group, {}).setdefault(version, []).append(kind)
    for review in REVIEWS:
        groups.setdefault(review.group, {}).setdefault("v1", [])
    for group, versions in groups.items():
        order = sorted(versions, key=registry.version_rank)
        groups[group] = {
            version: sorted(versions[version], key=lambda kind: kind.plural) for version in order
        }
    return groups


def _sorted_groups(groups: Iterable[str]) -> list[str]:
    return sorted(groups)


def _aggregated_resources(group: str, version: str, kinds: list[Kind]) -> list[JsonObject]:
    resources = [_aggregated_resource(group, version, kind) for kind in kinds]
    resources += [
        {
            "resource": review.plural,
            "responseKind": _gvk(group, version, review.kind),
            "scope": "Namespaced" if review.namespaced else "Cluster",
            "singularResource": review.kind.lower(),
            "verbs": ["create"],
        }
        for review in REVIEWS
        if review.group == group and version == "v1"
    ]
    return sorted(resources, key=lambda resource: str(resource["resource"]))


def _aggregated_resource(group: str, version: str, kind: Kind) -> JsonObject:
    entry: JsonObject = {
        "resource": kind.plural,
        "responseKind": _gvk(group, version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    subresources = [
        {
            "subresource": name,
            "responseKind": _gvk(*_RESPONSE_KINDS.get(name, (group, version, kind.kind))),
            "verbs": list(SUBRESOURCE_VERBS[name]),
        }
        for name in served_subresources(kind)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def _legacy_resources(kind: Kind) -> list[JsonObject]:
    main: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    entries = [main]
    for name in served_subresources(kind):
        entry: JsonObject = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(SUBRESOURCE_VERBS[name]),
        }
        if name in _RESPONSE_KINDS:
            group, version, answered = _RESPONSE_KINDS[name]
            entry |= {"kind": answered} | ({"group": group, "version": version} if group else {})
        entries.append(entry)
    return entries


def _gvk(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}


def _plain(request: HttpRequest, tree: JsonObject) -> Response:
    negotiation.check_json(request.header(b"accept"))
    body = _encode(tree)
    return _tagged(request, body, _hash(body), b"application/json")


def _tagged(request: HttpRequest, body: bytes, tag: str, content_type: bytes) -> Response:
    quoted = f'"{tag}"'
    headers = ((b"etag", quoted.encode()), (b"vary", b"Accept"))
    known_tags = request.header(b"if-none-match")
    if known_tags and quoted in (part.strip().removeprefix("W/") for part in known_tags.split(",")):
        return Response(b"", status=304, content_type=content_type, headers=headers)
    return Response(body, content_type=content_type, headers=headers)


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest().upper()


def version_document(profile: Profile) -> JsonObject:
    """The server version that `kubectl version` shows."""
    minor = profile.minor
    return {
        "major": "1",
        "minor": str(minor),
        "emulationMajor": "1",
        "emulationMinor": str(minor),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v{profile.patch or f'{profile.version}.0'}",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": "redra",
        "platform": "linux/amd64",
    }
