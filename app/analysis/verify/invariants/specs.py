"""The requests in the specs of claims and pods; equal specs are read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.domain.values.json_tree import JsonObject

_SPECS_MAX = 1_024
"""The number of specs kept in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The devices that a request, or one alternative of it, asks for."""

    mode: str
    count: int
    is_admin: bool
    tolerations: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The requests and constraints of a claim, read from its spec (`raw`).

    `asks_admin` when a request asks for admin access.
    `single` is the name of the request if it is the only one, asks for one device, and uses nothing
    else that a rule reads.
    """

    raw: Raw
    wanted: Mapping[str, Wanted]
    constraints: Sequence[JsonObject]
    single: str | None
    asks_admin: bool


def claim_spec(spec: Raw) -> ClaimSpec:
    """Reads a spec; many claims from one template have the same spec."""
    return _claim_spec(bytes(spec))


@lru_cache(maxsize=_SPECS_MAX)
def _claim_spec(part: bytes) -> ClaimSpec:
    spec = reading.value(part)
    wanted = _wanted(spec)
    constraints = reading.objects(reading.get(spec, "devices", "constraints"))
    single = None
    if len(wanted) == 1 and not constraints:
        ((name, request),) = wanted.items()
        is_one = request.mode in ("", "ExactCount") and request.count in (0, 1)
        if is_one and "/" not in name and not request.is_admin and not request.tolerations:
            single = name
    return ClaimSpec(Raw(part), wanted, constraints, single, asks_admin(spec))


def asks_admin(spec: Any) -> bool:
    """Whether a request of a spec asks for admin access; alternatives of requests cannot."""
    requests = reading.objects(reading.get(spec, "devices", "requests"))
    return any(reading.get(each, "exactly", "adminAccess") is True for each in requests)


def _wanted(spec: Any) -> dict[str, Wanted]:
    """The wanted devices by `request` or `request/alternative`."""
    wanted: dict[str, Wanted] = {}
    for request in reading.objects(reading.get(spec, "devices", "requests")):
        name = reading.text(request, "name")
        exactly = request.get("exactly")
        if isinstance(exactly, dict):
            wanted[name] = _request(exactly)
        for alternative in reading.objects(request.get("firstAvailable")):
            wanted[f"{name}/{reading.text(alternative, 'name')}"] = _request(alternative)
    return wanted


def _request(tree: JsonObject) -> Wanted:
    count = tree.get("count")
    is_number = isinstance(count, int) and not isinstance(count, bool)
    return Wanted(
        mode=reading.text(tree, "allocationMode"),
        count=count if is_number and isinstance(count, int) else 0,
        is_admin=tree.get("adminAccess") is True,
        tolerations=tolerations_in(tree.get("tolerations")),
    )


def tolerations_in(listed: Any) -> tuple[tuple[Any, ...], ...]:
    """Key, operator, value, effect and seconds of each toleration."""
    return tuple(
        (
            *(reading.text(each, name) for name in ("key", "operator", "value", "effect")),
            each.get("tolerationSeconds"),
        )
        for each in reading.objects(listed)
    )


@dataclass(frozen=True, slots=True)
class Entries:
    """The claim entries of a pod (`raw`): the claims that they name, and the entries without a
    name.

    `names` are those of the entries. For an entry in `unnamed`, a claim is created; the pod's
    status has the claim's name. Those in `templated` name a template.
    """

    raw: Raw
    names: frozenset[str]
    named: frozenset[str]
    unnamed: frozenset[str]
    templated: frozenset[str]


def entries_in(part: Raw) -> Entries:
    """The entries of a pod."""
    return _entries(bytes(part))


@lru_cache(maxsize=_SPECS_MAX)
def _entries(part: bytes) -> Entries:
    raw = Raw(part)
    entries = reading.pod_claims(raw)
    return Entries(
        raw=raw,
        names=frozenset(each.name for each in entries),
        named=frozenset(each.resource_claim_name for each in entries if each.resource_claim_name),
        unnamed=frozenset(each.name for each in entries if not each.resource_claim_name),
        templated=frozenset(each.name for each in entries if each.resource_claim_template_name),
    )


NO_ENTRIES = entries_in(reading.NOTHING)
"""The entries of a pod without claim entries."""
