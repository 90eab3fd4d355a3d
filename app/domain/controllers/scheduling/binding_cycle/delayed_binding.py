"""A delayed binding: the decision is written first, then the claims, then the binding.

In the real scheduler an attempt ends with a node and devices in memory; the writes follow in the
background while other pods are tried. Until then the claim is in flight: its devices count as used,
and the attempt of a second pod that shares it fails. A bind delay reproduces this:

    decision        writes                                  the log says
    Assumed         nominated node                          pod, node, allocations, both instants
    Reserved        finalizer, allocation and reservation   claims are written
    Scheduled       binding, Event                          the pod has its node

Each row is one append. After a process ends between two rows, the next process folds the log and
continues with the next row; it uses the claims that are already written.
Parity: controllers.md 3.7, 4.6 and 4.7.
"""

from dataclasses import dataclass, replace

from app.domain.controllers.plan import DeviceViews, Plan
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.controllers.scheduling.binding_cycle import waiting_binding, writes
from app.domain.controllers.scheduling.binding_cycle.placements import RESERVED, Assumed
from app.domain.controllers.scheduling.binding_cycle.waiting_binding import BindingWaits, Wait
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import PodClaim
from app.domain.controllers.scheduling.reports import events, messages
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt, SchedulerRules
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

WRITES_CLAIMS = "writesClaims"
"""The input that marks a decision about writing claims."""

REFUSED = "refusedClaim"
"""The input with the claim that the API has refused, and the message."""


@dataclass(frozen=True, slots=True)
class FixedBindDelay:
    """A bind delay of equal length for all pods; claims are written after half of it."""

    micros: int

    def __call__(self, _pod: str, now: Instant) -> tuple[Instant, Instant]:
        """The instants at which the claims are written and the pod is bound."""
        return Instant(now + self.micros // 2), Instant(now + self.micros)


def write_claims(
    rules: SchedulerRules, views: DeviceViews, series: events.ReportSeries, held: Wait, now: Instant
) -> Plan:
    """Writes the claims of a placed pod, or gives up at the first claim that has changed.

    Claims before that one are still written: they stay allocated, and only their reservations are
    removed (controllers.md 3.7). When the pod has been deleted meanwhile, its claims are written
    too, as upstream does; their reservations are removed at once, because no binding will follow.
    """
    assumed = held.assumed
    assert assumed is not None, "called while claims are to be written"
    extra: JsonObject = {WRITES_CLAIMS: True}
    if held.refused is not None:
        extra[REFUSED] = list(held.refused)
    namespace, name = held.place
    tree = views.objects.get(pod_key(namespace, name))
    is_gone = tree is None or meta.uid(tree) != held.uid
    if tree is None or is_gone:
        tree = {"metadata": {"namespace": namespace, "name": name, "uid": held.uid}}
    claims, problem = _as_chosen(views, namespace, assumed, held.refused)
    attempt = Attempt(
        outcome="Scheduled",
        claims=claims,
        node=held.node,
        allocations=assumed.allocations if not problem else _of_fresh(claims, assumed),
        extended=None if problem or is_gone else assumed.extended,
    )
    commands = [
        *writes.reserve(
            attempt,
            tree,
            now,
            number=assumed.number,
            stamps_time=rules.features.binding_conditions,
        )
    ]
    if problem and not is_gone:
        before = tuple(commands)
        return waiting_binding.give_up(
            views, series, held, tree, claims, problem, now, extra, before
        )
    outcome = RESERVED
    if is_gone:
        outcome = "Skipped"
        commands += [writes.unreserve(claim, held.uid) for claim in claims]
    elif waiting_binding.is_needed(rules.features, attempt):
        outcome = waiting_binding.WAITING
        commands.append(events.waiting(views.objects, tree, held.node, now))
    written = [{"claim": claim.name, "fresh": claim.allocation is None} for claim in claims]
    summary: JsonObject = {"node": held.node, "claims": len(claims), "written": written}
    extra["bindAt"] = assumed.bind_at
    return waiting_binding.plan(views, held, tuple(commands), outcome, summary, now, extra)


def refuse(
    waits: BindingWaits, place: NamespacedName, summary: JsonView, problem: str, now: Instant
) -> bool:
    """Repeats the writes at once after a refusal, without the claim that was refused.

    False when the refusal names no claim of the pod, or is a version conflict.
    """
    held = waits.get(place)
    claim = messages.refused_claim(summary, problem)
    if held is None or claim is None or messages.MOVED in problem:
        return False
    _, _, name = json_tree.text(claim, "claim").partition("/")
    held.refused = (name, messages.claim_error(claim, problem))
    held.next_look = now
    waits.begin(held)
    return True


def held_then(waits: BindingWaits, place: NamespacedName, inputs: JsonView) -> Wait | None:
    """The wait of a pod as it was for a recorded decision about writing claims with `inputs`."""
    held = waits.get(place)
    refused = json_tree.texts(inputs, REFUSED)
    if held is None or not refused:
        return held
    return replace(held, refused=(refused[0], refused[1]))


def _as_chosen(
    views: DeviceViews, namespace: str, assumed: Assumed, refused: tuple[str, str] | None
) -> tuple[tuple[PodClaim, ...], str]:
    """The claims before the first one that has changed or was refused, and the problem of that."""
    claims: list[PodClaim] = []
    for name, uid, is_fresh in assumed.claims:
        if refused is not None and refused[0] == name:
            return tuple(claims), refused[1]
        claim, problem = _find(views, namespace, name, uid, is_fresh)
        if claim is None:
            return tuple(claims), problem
        claims.append(claim)
    return tuple(claims), ""


def _of_fresh(claims: tuple[PodClaim, ...], assumed: Assumed) -> tuple[JsonObject, ...]:
    """The allocations of these claims, the first ones that were chosen."""
    return assumed.allocations[: sum(claim.allocation is None for claim in claims)]


def _find(
    views: DeviceViews, namespace: str, name: str, uid: Uid, is_fresh: bool
) -> tuple[PodClaim | None, str]:
    """The claim in its current state, or None and the reason why it cannot be written."""
    key = claim_key(namespace, name)
    tree = views.objects.get(key)
    if tree is None:
        # Parity: controllers.md 3.7, only claims that exist are asked whether they are to go.
        act = "add finalizer to" if is_fresh else "add reservation to"
        missing = f'resourceclaims.resource.k8s.io "{name}" not found'
        return None, f"{act} claim {namespace}/{name}: {missing}"
    if "deletionTimestamp" in tree["metadata"] or meta.uid(tree) != uid:
        return None, f"claim {namespace}/{name} got deleted in the meantime"
    held = dra.allocation(tree)
    allocation = held if isinstance(held, dict) else None
    if is_fresh and allocation is not None:
        return None, f"claim {namespace}/{name} got allocated elsewhere in the meantime"
    if not is_fresh and allocation is None:
        return None, f"claim {namespace}/{name} got deallocated elsewhere in the meantime"
    return PodClaim(entry="", key=key, tree=tree, allocation=allocation), ""
