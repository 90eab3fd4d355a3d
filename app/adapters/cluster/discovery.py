"""The kinds that redra reads: the default kinds with additions and omissions, if they are served.

Secrets and ConfigMaps are read only when they are named. When the server has several versions of a
kind, redra reads the version in which it stores the kind, else the version that the server prefers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.adapters.cluster.requests import Requests
from app.domain.errors import ClusterUnreachable, Forbidden, InputError, NotFound
from app.domain.log.recorded_cluster import ServedKind
from app.domain.objects import registry
from app.domain.values import api_groups, api_resources, identifiers
from app.domain.values.identifiers import GroupResource

_Shape = TypeVar("_Shape")

EVERY = "*"

DEFAULT: tuple[GroupResource, ...] = (
    api_resources.NAMESPACES,
    api_resources.NODES,
    api_resources.PODS,
    api_resources.EVENTS,
    api_resources.RESOURCE_QUOTAS,
    api_resources.LIMIT_RANGES,
    (api_groups.CORE, "replicationcontrollers"),
    api_resources.PERSISTENT_VOLUMES,
    api_resources.PERSISTENT_VOLUME_CLAIMS,
    api_resources.DEPLOYMENTS,
    api_resources.REPLICA_SETS,
    api_resources.STATEFUL_SETS,
    api_resources.DAEMON_SETS,
    api_resources.JOBS,
    api_resources.CRON_JOBS,
    api_resources.POD_DISRUPTION_BUDGETS,
    (api_groups.SCHEDULING, EVERY),
    api_resources.STORAGE_CLASSES,
    (api_groups.RESOURCE, EVERY),
)
"""The kinds that are read by default: devices, and the other objects that the scheduler reads."""

_VERBS = frozenset(("list", "watch"))


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """The kinds to read, as groups and resources; a resource `*` means all of its group."""

    places: tuple[GroupResource, ...] = DEFAULT
    without: frozenset[GroupResource] = frozenset()

    def is_chosen(self, place: GroupResource) -> bool:
        """Whether the kind is read."""
        group, _ = place
        is_named = place in self.places or (group, EVERY) in self.places
        return is_named and place not in self.without and (group, EVERY) not in self.without


def choose(include: Iterable[str] = (), without: Iterable[str] = ()) -> KindChoice:
    """The default kinds, plus `include`, minus `without`. Raises InputError for an unknown kind."""
    wanted = [_place(name, "--include") for name in include]
    left_out = frozenset(_place(name, "--without") for name in without)
    return KindChoice(places=tuple(dict.fromkeys((*DEFAULT, *wanted))), without=left_out)


def rules_of(choice: KindChoice) -> list[tuple[str, list[str]]]:
    """The groups and resources of the ClusterRole for a choice, sorted by group."""
    resources_of: dict[str, set[str]] = {}
    for group, resource in choice.places:
        if not choice.is_chosen((group, resource)) and resource != EVERY:
            continue
        if (group, EVERY) in choice.without:
            continue
        known = {kind.plural for kind in registry.kinds() if kind.group == group}
        names = known if resource == EVERY else {resource}
        resources_of.setdefault(group, set()).update(
            name for name in names if choice.is_chosen((group, name))
        )
    return [(group, sorted(names)) for group, names in sorted(resources_of.items()) if names]


async def discover(requests: Requests, choice: KindChoice) -> tuple[list[ServedKind], list[str]]:
    """The chosen kinds that are served, in a fixed order, and the names of those that are not.

    Kinds that a group's `*` selects are never reported as missing: releases differ in them.
    """
    groups = {group for group, _ in choice.places}
    versions = await _versions(requests, groups)
    served: dict[GroupResource, dict[str, ServedKind]] = {}
    for group, version in versions:
        for kind in await _kinds(requests, group, version):
            if choice.is_chosen((kind.group, kind.resource)):
                served.setdefault((kind.group, kind.resource), {})[version] = kind
    kinds = [_best(by_version) for by_version in served.values()]
    missing = [
        identifiers.qualified_resource(group, resource)
        for group, resource in choice.places
        if resource != EVERY
        and (group, resource) not in served
        and choice.is_chosen((group, resource))
    ]
    return sorted(kinds, key=lambda kind: (kind.group, kind.resource)), missing


class _Version(msgspec.Struct, rename="camel"):
    version: str


class _ApiGroup(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_Version]


class _Groups(msgspec.Struct, rename="camel"):
    groups: list[_ApiGroup] = []


class _ApiResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    verbs: list[str] = []


class _ApiResourceList(msgspec.Struct, rename="camel"):
    resources: list[_ApiResource] = []


async def _versions(requests: Requests, groups: set[str]) -> list[GroupResource]:
    """The group versions that the server has of these groups, in the server's order."""
    versions = [("", "v1")] if "" in groups else []
    listed = _decoded(await requests.get("/apis"), _Groups, "/apis")
    for group in listed.groups:
        if group.name in groups:
            versions += [(group.name, each.version) for each in group.versions]
    return versions


async def _kinds(requests: Requests, group: str, version: str) -> list[ServedKind]:
    path = prefix(group, version)
    try:
        listed = _decoded(await requests.get(path), _ApiResourceList, path)
    except (NotFound, Forbidden):
        return []
    except ClusterUnreachable:
        if any(kind.group == group for kind in registry.kinds()):
            raise
        # An aggregated API whose server is away is not served, and does not hide all others.
        return []
    return [
        ServedKind(
            group=group,
            version=version,
            resource=each.name,
            kind=each.kind,
            is_namespaced=each.namespaced,
        )
        for each in listed.resources
        if "/" not in each.name and set(each.verbs) >= _VERBS
    ]


def prefix(group: str, version: str) -> str:
    """The path of an API version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _best(by_version: dict[str, ServedKind]) -> ServedKind:
    first = next(iter(by_version.values()))
    kind = registry.find(first.group, first.resource)
    if kind is None:
        return first
    known = [version for group, version in kind.group_versions if group == first.group]
    stored = kind.storage_api_version.rpartition("/")[2]
    for version in (stored, *sorted(known, key=registry.version_rank)):
        if version in by_version:
            return by_version[version]
    return first


def _place(name: str, option: str) -> GroupResource:
    resource, _, group = name.strip().lower().partition(".")
    if group:
        return group, resource
    known = registry.find_name(resource)
    if len(known) == 1 or (known and known[0].group == ""):
        return known[0].group, known[0].plural
    names = ", ".join(f"{kind.plural}.{kind.group}" for kind in known)
    raise InputError(
        f"{name!r} is not a kind" if not known else f"{name!r} may mean any of {names}",
        place=option,
        cure="write a resource and its group, such as resourceclaims.resource.k8s.io",
    )


def _decoded(body: bytes, shape: type[_Shape], path: str) -> _Shape:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ClusterUnreachable(
            f"{path}: the answer is not an API discovery document: {problem}"
        ) from problem
