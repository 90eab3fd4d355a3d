"""The claims of a pod as the DynamicResources plug-in sees them (controllers.md 3.1 to 3.3)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import msgspec

from app.domain.controllers import pods
from app.domain.controllers.gates import Gates
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, selectors
from app.domain.values.fields import dra
from app.domain.values.fields.dra import DeviceRequest
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import NodeSelector, SelectorError

NOTHING_WRITTEN: Mapping[ObjectKey, JsonObject] = {}
"""The default for `written`: all claims are read from the log."""


class ClaimsNotReady(Exception):
    """The claims of the pod cannot be used now; the message is upstream's text."""


class PodClaim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One claim of a pod. `allocation` is None while the claim is not allocated."""

    entry: str
    key: ObjectKey
    tree: JsonObject
    allocation: JsonView | None

    @property
    def name(self) -> str:
        """Namespace and name as in messages."""
        return f"{self.key.namespace}/{self.key.name}"

    def node_selector(self) -> NodeSelector | None:
        """The nodes from which the allocated devices can be used; None means all nodes.

        Raises SelectorError for a selector that cannot be parsed.
        """
        selector = None if self.allocation is None else self.allocation.get("nodeSelector")
        return selectors.node_selector_of(selector) if isinstance(selector, dict) else None


def resolve(
    objects: ObjectsReader,
    pod: PodFacts,
    written: Mapping[ObjectKey, JsonObject] = NOTHING_WRITTEN,
) -> tuple[PodClaim, ...]:
    """Reads the pod's claims in order; a claim in `written` replaces the one in the log.

    Raises ClaimsNotReady for the first claim that cannot be used.
    """
    resolved: list[PodClaim] = []
    for entry in pod.entries:
        named = pods.entry_claim(pod, entry)
        if named.problem:
            raise ClaimsNotReady(named.problem)
        if named.name is None:
            continue
        key = claim_key(pod.namespace, named.name)
        tree = written.get(key) or objects.get(key)
        if tree is None:
            text = f'could not find ResourceClaim "{pod.namespace}/{named.name}"'
            raise ClaimsNotReady(text)
        if "deletionTimestamp" in tree["metadata"]:
            raise ClaimsNotReady(f'resourceclaim "{named.name}" is being deleted')
        if named.needs_owner and (problem := pods.owner_problem(tree, pod)):
            raise ClaimsNotReady(problem)
        allocation = dra.allocation(tree)
        resolved.append(
            PodClaim(
                entry=entry.name,
                key=key,
                tree=tree,
                allocation=allocation if isinstance(allocation, dict) else None,
            )
        )
    return tuple(resolved)


def are_there(objects: ObjectsReader, pod: PodFacts) -> bool:
    """True when every claim of the pod can be used (controllers.md 3.1 and 3.2)."""
    try:
        resolve(objects, pod)
    except ClaimsNotReady:
        return False
    return True


def resolve_all(objects: ObjectsReader, pod: PodFacts) -> tuple[PodClaim, ...]:
    """Reads the pod's claims, with the one for extended resources last. Raises like `resolve`."""
    claims = resolve(objects, pod)
    if not pod.extended_claim:
        return claims
    return (*claims, _read(objects, "", claim_key(pod.namespace, pod.extended_claim)))


def of_placed(objects: ObjectsReader, pod: PodFacts) -> tuple[PodClaim, ...]:
    """The claims that were written for a pod, with the one for extended resources last.

    One that is marked for deletion since is the pod's for all that: the finalizer keeps it. Raises
    ClaimsNotReady for one that is gone.
    """
    named = [(entry.name, pods.entry_claim(pod, entry).name) for entry in pod.entries]
    named.append(("", pod.extended_claim))
    return tuple(
        _read(objects, entry, claim_key(pod.namespace, name)) for entry, name in named if name
    )


def check_fresh(
    objects: ObjectsReader,
    claims: tuple[PodClaim, ...],
    gates: Gates,
    is_in_flight: Callable[[JsonView], bool],
) -> None:
    """Checks the unallocated claims. Parity: controllers.md 3.3.

    Raises ClaimsNotReady when a request of a claim cannot be served, or when another attempt is
    about to allocate the claim.
    """
    for claim in claims:
        if claim.allocation is not None:
            continue
        if is_in_flight(claim.tree):
            text = f"resource claim {claim.name} {messages.BEING_ALLOCATED}"
            raise ClaimsNotReady(text)
        for request in dra.requests(claim.tree):
            _check_request(objects, claim, request, gates)


def rank_score(claims: tuple[PodClaim, ...], allocations: list[JsonObject]) -> int:
    """The score of a node: the sum of eight minus the position of each chosen alternative.

    `allocations` are those found on the node, in the order of the unallocated claims. Parity:
    controllers.md 3.6.
    """
    fresh = iter(allocations)
    total = 0
    for claim in claims:
        allocation = claim.allocation if claim.allocation is not None else next(fresh)
        names = {result.request for result in dra.results_of(allocation)}
        for request in dra.requests(claim.tree):
            for place, sub in enumerate(request.first_available):
                if f"{request.name}/{sub.name}" in names:
                    total += 8 - place
    return total


def has_alternatives(claims: tuple[PodClaim, ...]) -> bool:
    """True when some request of some claim is a prioritized list."""
    return any(request.first_available for claim in claims for request in dra.requests(claim.tree))


def reaches(claim: PodClaim, node_name: str, labels: Mapping[str, str]) -> bool:
    """True when the devices of an allocated claim can be used from the node."""
    try:
        selector = claim.node_selector()
    except SelectorError:
        return False
    return selector is None or selector.matches(node_name, labels)


def _check_request(
    objects: ObjectsReader, claim: PodClaim, request: DeviceRequest, gates: Gates
) -> None:
    place = f"resource claim {claim.name}, request {request.name}"
    if request.exactly is not None:
        _check_class(objects, request.name, request.exactly.device_class_name)
        return
    if not request.first_available:
        raise ClaimsNotReady(f"{place}: unknown request type")
    if not gates.enabled("DRAPrioritizedList"):
        text = f"{place}: has subrequests, but the DRAPrioritizedList feature is disabled"
        raise ClaimsNotReady(text)
    for sub in request.first_available:
        _check_class(objects, f"{request.name}/{sub.name}", sub.device_class_name)


def _check_class(objects: ObjectsReader, request: str, name: str) -> None:
    if objects.event(ObjectKey(*api_resources.DEVICE_CLASSES, "", name)) is None:
        raise ClaimsNotReady(f"request {request}: device class {name} does not exist")


def share_ids(pod_uid: Uid, claim_uids: Sequence[str]) -> Callable[[], str]:
    """A source of ids of device shares for one attempt of a pod on its unallocated claims.

    Upstream draws them at random; with derived ids, a repeated decision is equal byte for byte.
    """
    seed = "/".join((pod_uid, *claim_uids))
    count = 0

    def draw() -> str:
        nonlocal count
        count += 1
        digest = hashlib.sha256(f"{seed}#{count}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))

    return draw


def _read(objects: ObjectsReader, entry: str, key: ObjectKey) -> PodClaim:
    tree = objects.get(key)
    if tree is None:
        raise ClaimsNotReady(f'could not find ResourceClaim "{key.namespace}/{key.name}"')
    allocation = dra.allocation(tree)
    held = allocation if isinstance(allocation, dict) else None
    return PodClaim(entry=entry, key=key, tree=tree, allocation=held)
