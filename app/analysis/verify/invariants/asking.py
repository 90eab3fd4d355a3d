"""What claims and pods ask for, read from their specs, which many of them have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.domain.values.json_tree import JsonObject

_SPECS_MAX = 1_024
"""Specs of which it is remembered what they ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a request, or one alternative of it, asks for."""

    mode: str
    count: int
    is_admin: bool
    tolerations: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a claim asks for, read from its spec (`raw`).

    `single` is the name of the request where it is the only one and asks for one device, and for
    nothing else that a rule looks at.
    """

    raw: Raw
    wanted: Mapping[str, Wanted]
    constraints: Sequence[JsonObject]
    single: str | None


def asked_in(spec: Raw) -> Asked:
    """What a spec asks for; many claims have the same one, from a template."""
    return _asked(bytes(spec))


@lru_cache(maxsize=_SPECS_MAX)
def _asked(part: bytes) -> Asked:
    spec = reading.value(part)
    wanted = _wanted(spec)
    constraints = reading.objects(reading.get(spec, "devices", "constraints"))
    single = None
    if len(wanted) == 1 and not constraints:
        ((name, request),) = wanted.items()
        is_one = request.mode in ("", "ExactCount") and request.count in (0, 1)
        if is_one and "/" not in name and not request.is_admin and not request.tolerations:
            single = name
    return Asked(Raw(part), wanted, constraints, single)


def _wanted(spec: Any) -> dict[str, Wanted]:
    """What is asked for by `request` or `request/alternative`."""
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
    """The entries of a pod for claims (`raw`): claims that they name, and the names of others.

    For an entry of `unnamed` a claim is made, whose name is in the status of the pod.
    """

    raw: Raw
    named: frozenset[str]
    unnamed: frozenset[str]


def entries_in(part: Raw) -> Entries:
    """The entries of a pod."""
    return _entries(bytes(part))


@lru_cache(maxsize=_SPECS_MAX)
def _entries(part: bytes) -> Entries:
    raw = Raw(part)
    entries = reading.pod_claims(raw)
    return Entries(
        raw=raw,
        named=frozenset(each.resource_claim_name for each in entries if each.resource_claim_name),
        unnamed=frozenset(each.name for each in entries if not each.resource_claim_name),
    )


NO_ENTRIES = entries_in(reading.NOTHING)
"""The entries of a pod that has none."""

NOTHING_ASKED = asked_in(reading.NOTHING)
"""What a claim without a spec asks for."""
