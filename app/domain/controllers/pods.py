"""The facts about pods that controllers use, and the rules that connect pods to claims.

Parity: allocator.md 20 (claim helper functions) and controllers.md 2.1, 3.1.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from sys import intern
from typing import Any

import msgspec

from app.domain.log import Event
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView

_read_uid: Callable[[JsonView], Any] = itemgetter("uid")

RESERVED_MAX = 256
"""The most consumers of a claim (controllers.md 6.2)."""


class ClaimEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `spec.resourceClaims`; at most one of `claim` and `template` is set."""

    name: str
    claim: str = ""
    template: str = ""


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a pod that determine the work of controllers.

    `generated` is `status.resourceClaimStatuses`: entry name to claim name, None for an entry that
    needs no claim. `group` is the PodGroup that the pod names.
    """

    namespace: str
    name: str
    uid: Uid
    node: str = ""
    phase: str = ""
    is_deleting: bool = False
    entries: tuple[ClaimEntry, ...] = ()
    generated: tuple[tuple[str, str | None], ...] = ()
    extended_claim: str = ""
    group: str = ""

    @property
    def is_done(self) -> bool:
        """True when the pod no longer needs its claims (controllers.md 2.1)."""
        return self.phase in core.FINISHED or (self.is_deleting and not self.node)

    @property
    def uses_claims(self) -> bool:
        """True when the pod uses claims, so that the claim controller processes it."""
        return bool(self.entries or self.extended_claim)


class EntryClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The claim of an entry of a pod.

    `name` is None when the entry needs no claim. `problem` is upstream's text when the claim cannot
    be named.
    """

    entry: ClaimEntry
    name: str | None = None
    needs_owner: bool = False
    problem: str = ""


def is_done(tree: JsonView) -> bool:
    """The value of `facts(tree).is_done`, for callers that need nothing else of many pods."""
    if core.is_finished(tree):
        return True
    is_deleting = meta.is_deleting(tree)
    return is_deleting and not core.node_name(tree)


def facts(tree: JsonView, name: str = "", uid: Uid = NO_UID) -> PodFacts:
    """Reads the facts of a pod; controllers keep the facts of the pods that they follow.

    Texts that many pods have exist once. `name` and `uid` are kept instead of equal ones.
    """
    metadata = meta.metadata(tree)
    spec = meta.spec(tree)
    status = meta.status(tree)
    extended = group = ""
    if "extendedResourceClaimStatus" in status:
        extended = json_tree.text(status, "extendedResourceClaimStatus", "resourceClaimName")
    if "schedulingGroup" in spec:
        group = json_tree.text(spec, "schedulingGroup", "podGroupName")
    return PodFacts(
        namespace=intern(meta.namespace(tree)),
        name=name if meta.name(tree) == name else meta.name(tree),
        uid=uid if meta.uid(tree) == uid else meta.uid(tree),
        node=intern(core.node_name(tree)),
        phase=intern(meta.phase(tree)),
        is_deleting="deletionTimestamp" in metadata,
        entries=_entries(spec) if "resourceClaims" in spec else (),
        generated=_generated(status) if "resourceClaimStatuses" in status else (),
        extended_claim=extended,
        group=group,
    )


def facts_of(event: Event) -> PodFacts:
    """The facts of the pod of an event, read once for all controllers that fold it."""
    tree = event.object
    reading = event.reading
    if reading is not None and reading[0] is tree:
        known = reading[1]
        if known.__class__ is PodFacts:
            return known
    fresh = facts(tree, event.key.name, event.uid)
    event.reading = (tree, fresh)
    return fresh


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _entries(spec: JsonView) -> tuple[ClaimEntry, ...]:
    return tuple(
        [
            ClaimEntry(
                name=intern(_text(entry.get("name"))),
                claim=_text(entry.get("resourceClaimName")),
                template=intern(_text(entry.get("resourceClaimTemplateName"))),
            )
            for entry in json_tree.objects(spec, "resourceClaims")
        ]
    )


def _generated(status: JsonView) -> tuple[tuple[str, str | None], ...]:
    return tuple(
        [
            (intern(_text(item.get("name"))), _text(item.get("resourceClaimName")) or None)
            for item in json_tree.objects(status, "resourceClaimStatuses")
        ]
    )


def entry_claim(pod: PodFacts, entry: ClaimEntry) -> EntryClaim:
    """The claim of one entry, or the reason why it has no name (texts of controllers.md 3.1)."""
    if entry.claim:
        return EntryClaim(entry=entry, name=entry.claim)
    place = f'pod "{pod.namespace}/{pod.name}"'
    if not entry.template:
        text = f'{place}, spec.resourceClaim "{entry.name}": none of the supported fields are set'
        return EntryClaim(entry=entry, problem=text)
    for name, claim in pod.generated:
        if name == entry.name:
            return EntryClaim(entry=entry, name=claim, needs_owner=True)
    return EntryClaim(entry=entry, problem=f"{place}: ResourceClaim not created yet")


def named_claims(pod: PodFacts) -> Iterator[EntryClaim]:
    """The entries whose claims can be named, in order."""
    for entry in pod.entries:
        named = entry_claim(pod, entry)
        if named.name is not None:
            yield named


def is_for_pod(claim: JsonView, pod: PodFacts) -> bool:
    """True when a generated claim was created for this pod."""
    namespace = meta.namespace(claim)
    return namespace == pod.namespace and meta.controller_uid(claim) == pod.uid


def owner_problem(claim: JsonView, pod: PodFacts, *, accepts_groups: bool = False) -> str:
    """Upstream's text for a generated claim that belongs to another owner; empty for its own.

    With `accepts_groups`, an alpha gate upstream, the claim may belong to the pod's PodGroup.
    """
    if is_for_pod(claim, pod):
        return ""
    namespace = meta.namespace(claim)
    shown = f"ResourceClaim {namespace}/{meta.name(claim)}"
    place = f"Pod {pod.namespace}/{pod.name}"
    if namespace != pod.namespace:
        return f"{shown} is not in the same namespace as {place}"
    if not accepts_groups or not pod.group:
        return f"{shown} was not created for {place} (Pod is not owner)"
    owner = meta.controller(claim) or meta.Owner()
    is_of_group = owner.api_version.startswith(f"{api_groups.SCHEDULING}/")
    if is_of_group and (owner.kind, owner.name) == ("PodGroup", pod.group):
        return ""
    return (
        f"{shown} was not created for {place} (neither Pod nor PodGroup {pod.group} is the owner)"
    )


def consumer_of(pod: PodFacts) -> JsonObject:
    """The entry in `status.reservedFor` for the pod."""
    return consumer(pod.name, pod.uid)


def consumer(name: str, uid: Uid) -> JsonObject:
    """The entry in `status.reservedFor` for the pod with this name and uid."""
    return {"resource": "pods", "name": name, "uid": uid}


def is_reserved_for(claim: JsonView, pod_uid: Uid, group: str = "") -> bool:
    """True when some reservation has this uid; resource and name are ignored.

    A `group`, which upstream accepts only behind an alpha gate, is compared by its name.
    """
    references = dra.reserved_for(claim)
    try:
        is_named = pod_uid in map(_read_uid, references)
    except KeyError:
        is_named = any(reference.get("uid") == pod_uid for reference in references)
    if is_named or not group:
        return is_named
    return any(
        reference.get("name") == group
        and reference.get("resource") == "podgroups"
        and reference.get("apiGroup") == api_groups.SCHEDULING
        for reference in references
    )


def reserved_uids(claim: JsonView) -> frozenset[Uid]:
    """The uids of all reservations, for callers that check many pods of one claim."""
    reserved = dra.reserved_for(claim)
    try:
        uids = frozenset(map(_read_uid, reserved))
        if uids and set(map(type, uids)) == {str}:
            return uids
    except (KeyError, TypeError):
        pass
    return frozenset([entries.uid(reference) for reference in reserved])


def has_room(claim: JsonView) -> bool:
    """True when one more consumer can be added."""
    return len(dra.reserved_for(claim)) < RESERVED_MAX


def is_allocated(claim: JsonView) -> bool:
    """True when `status.allocation` is set."""
    return isinstance(dra.allocation(claim), dict)
