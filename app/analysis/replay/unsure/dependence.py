"""The kinds of objects that may have caused a difference, besides its own pods and claims.

Where the state of some object is not recorded, the scheduler may have chosen something else: it
reads all pods, claims, nodes and devices. Other controllers read less, so what is missing elsewhere
cannot have changed what they wrote. That holds only where the scheduler did the same on both sides.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, TypeAlias

from app.analysis.replay.authors import CLAIMS, COLLECTOR, EVICTION
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Created, EventSeen
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import short_name
from app.domain.log import Event, EventType, doubts
from app.domain.values import api_resources, event_reasons

Kinds: TypeAlias = frozenset[tuple[str, str]]
"""Kinds as groups and resources."""


class Read(NamedTuple):
    """The dependence of a write on all objects of these kinds, besides its own pods and claims.

    Without `has_states`, it depends only on fields of its pods and claims that never change.
    """

    kinds: Kinds
    has_states: bool = True


_NONE: Kinds = frozenset()
_TEMPLATES: Kinds = frozenset((api_resources.RESOURCE_CLAIM_TEMPLATES,))
TAINTS: Kinds = frozenset(
    (
        api_resources.RESOURCE_SLICES,
        api_resources.RESOURCE_SLICE_PATCHES,
        api_resources.DEVICE_TAINT_RULES,
    )
)
"""The kinds that give devices their taints."""

NOTHING = Read(_NONE)
"""The dependence on the own pods and claims alone."""

_READ: Mapping[str, Kinds] = {short_name(CLAIMS): _TEMPLATES, short_name(EVICTION): TAINTS}
"""The kinds that a controller reads besides pods and their claims.

Parity: controllers.md 2.2, 2.3 and 5.1.
"""


def of_difference(sides: Sides, recorded: Trace, again: Trace, uids: Set[str]) -> Read | None:
    """The objects on which a difference may depend, None for any. `uids`: its pods and claims."""
    if is_of_made_claim(sides):
        return Read(_TEMPLATES, has_states=False)
    if is_of_told_node(sides, recorded, again):
        return Read(_NONE, has_states=False)
    steps = (*sides.only_recorded, *sides.only_again)
    if sides.aspect is Aspect.FINAL or not steps or is_of_counts(sides):
        return None
    if not uids <= recorded.keys.keys() | again.keys.keys():
        return None  # The lines about one of its own objects may be without its uid.
    read = [_READ.get(step.writer) for step in steps]
    if None in read or not all(_is_placed_alike(uid, recorded, again) for uid in uids):
        return None
    return Read(_NONE.union(*(kinds for kinds in read if kinds is not None)))


def of_act(step: Step, recorded: Trace) -> tuple[Read | None, set[str]]:
    """The objects on which an act may depend (None: any), and the uids of its pods and claims."""
    owner = recorded.owner_of.get(step.uid)
    uids = beside(step.uid, recorded)
    if step.key[:2] != api_resources.RESOURCE_CLAIMS:
        return None, {step.uid}
    # A claim whose owner is a pod is collected after that pod is deleted. Parity: controllers.md 7.
    is_collected = step.writer == short_name(COLLECTOR) and owner is not None
    kinds = _NONE if is_collected else _READ.get(step.writer)
    return (None if kinds is None else Read(kinds)), uids


def beside(uid: str, recorded: Trace) -> set[str]:
    """The object, and if it is a claim, its owner and the pods for which it was reserved."""
    owner = recorded.owner_of.get(uid)
    return {uid, *recorded.users.get(uid, ()), *((owner,) if owner else ())}


def is_because_of(step: Step, cause: Event, recorded: Trace) -> bool:
    """Whether the step makes a claim and `cause` is its only possible reason: its pod's creation.

    Parity: controllers.md 2.2.
    """
    is_first = cause.type is EventType.OBJECT_CREATED and not doubts.of_event(cause)
    is_owner = bool(cause.uid) and recorded.owner_of.get(step.uid) == cause.uid
    return is_first and is_owner and bool(_made((step,)))


def is_of_counts(sides: Sides) -> bool:
    """Whether a rule's status differs, which counts pods and allocations.

    It counts what was evicted since the controller began. Parity: controllers.md 1.6.
    """
    steps = (*sides.only_recorded, *sides.only_again)
    return any(step.key[:2] == api_resources.DEVICE_TAINT_RULES for step in steps)


def is_of_made_claim(sides: Sides) -> bool:
    """Whether both sides made a claim, with different contents.

    The content comes from its pod and the template alone. Parity: controllers.md 2.2.
    """
    theirs, ours = _made(sides.only_recorded), _made(sides.only_again)
    return bool(theirs) and bool(ours) and theirs.isdisjoint(ours)


def is_of_told_node(sides: Sides, recorded: Trace, again: Trace) -> bool:
    """Whether only one of two Events names the node to which its pod was bound on both sides."""
    if sides.aspect is not Aspect.SAID or not (sides.only_recorded and sides.only_again):
        return False
    is_of_place = all(
        isinstance(fact, EventSeen) and fact.reason == event_reasons.SCHEDULED
        for fact in sides.facts()
    )
    bound = recorded.node_of.get(sides.uid)
    return is_of_place and bound is not None and _is_placed_alike(sides.uid, recorded, again)


def _made(steps: Iterable[Step]) -> set[Created]:
    """The creations of claims by the controller that generates them."""
    return {
        fact
        for step in steps
        if step.writer == short_name(CLAIMS) and step.key[:2] == api_resources.RESOURCE_CLAIMS
        for fact in step.facts
        if isinstance(fact, Created)
    }


def _is_placed_alike(uid: str, recorded: Trace, again: Trace) -> bool:
    """Whether a pod or claim has the same node and devices on both sides, and the same end."""
    there, here = recorded.node_of.get(uid), again.node_of.get(uid)
    nodes = [None if step is None else step.text for step in (there, here)]
    devices = [
        [step.allocation for step in trace.allocations.get(uid, ())] for trace in (recorded, again)
    ]
    is_ended_alike = (uid in recorded.removed) is (uid in again.removed)
    return nodes[0] == nodes[1] and devices[0] == devices[1] and is_ended_alike
