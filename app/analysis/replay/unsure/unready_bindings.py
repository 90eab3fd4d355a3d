"""Pods that were bound before their devices were ready, as reports that came later show.

The scheduler binds a pod only when the drivers have reported the binding conditions of its devices,
and says that they failed only when the drivers have. A replay at the recorded pace waits for these
reports, so both sides come to the same when they arrive after that. What proves the order is a
version of the bound pod that is lower than that of the report, or a second between them. A report
that changes more than conditions proves nothing: an earlier one may be lost. Parity: controllers.md
3.8.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.analysis.replay.acts import refusal_of, version_of
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE
from app.domain.controllers import pods
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.controllers.scheduling.plugins.dynamic_resources.binding_conditions import (
    BindingReadiness,
)
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.store_versions import WriteSpan
from app.domain.values import api_resources
from app.domain.values.fields import core, dra
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_FAILED = re.compile(r"device binding failed: claim=([^,]+),")
"""The message of an attempt whose devices have failed. Parity: controllers.md 3.8."""


@dataclass(slots=True, kw_only=True)
class _Unready:
    """A claim whose devices are not ready, since its last line; and the pod that was bound to it.

    `by` is the user that allocated it, `shown` the version of a later line about the pod, or 0.
    With `awaits` FAILED the pod was not bound but refused, as if the devices had failed.
    """

    uid: str
    by: str
    written: Instant
    pod: ObjectKey | None = None
    bound: Instant = Instant(0)
    sent: Instant = Instant(0)
    shown: int = 0
    awaits: BindingReadiness = BindingReadiness.READY
    has_failed: bool = False

    def note(self, event: Event, known: Instant, awaits: BindingReadiness) -> None:
        """Notes a binding or refusal that rests on a report."""
        stamp, origin = event.stamp, event.stamp.origin
        self.pod, self.bound, self.shown = event.key, stamp.time, version_of(event)
        self.sent = Instant(min(known, (origin and origin.asked) or known))
        self.awaits = awaits


class UnreadyBindings:
    """Follows the claims and pods of a recording; `lacks` gets each event first."""

    def __init__(self, lacks: Lacks) -> None:
        self._lacks = lacks
        self._unready: dict[ObjectKey, _Unready] = {}
        self._waiting: dict[ObjectKey, list[_Unready]] = {}
        self._problems: dict[str, tuple[str, WriteSpan | None]] = {}

    def problems(self) -> Mapping[str, str]:
        """The claims, by uid, of which a pod was bound too early; call this at the end.

        A patch does not name the version that it changes, so that a line before it may be lost.
        """
        versions = self._lacks.versions
        return {
            uid: text
            for uid, (text, lost) in self._problems.items()
            if lost is None or not versions.may_hide(*lost)
        }

    def after(self, event: Event, before: JsonView | None, known: Instant) -> None:
        """Takes an event that others could see from an instant on, and the object before it."""
        if event.key[:2] == api_resources.RESOURCE_CLAIMS:
            self._note_claim(event, before or {}, known)
        elif event.key[:2] == api_resources.PODS:
            self._note_pod(event, before or {}, known)

    def _note_claim(self, event: Event, before: JsonView, known: Instant) -> None:
        last = self._unready.pop(event.key, None)
        tree = event.object
        allocation = dra.allocation(tree)
        if event.type is EventType.OBJECT_DELETED or allocation is None:
            return
        is_new = dra.allocation(before) is None
        if not binding_conditions.has_conditions(allocation) or not (is_new or last):
            return  # It was ready once, or may have been.
        now, timeout = event.stamp.time, binding_conditions.TIMEOUT
        look = binding_conditions.look(tree, allocation, now, timeout)
        is_awaited = last is not None and look.readiness is last.awaits
        if last is not None and last.pod is not None and is_awaited:
            if _differ_in_conditions(before, tree):
                self._judge(event, last)
            last.pod = None
        if look.readiness is not BindingReadiness.READY:
            user = event.stamp.actor.user
            each = last or _Unready(uid=event.uid, by=user, written=known)
            each.written = known if each.pod is None else each.written
            each.has_failed |= look.readiness is BindingReadiness.FAILED
            self._unready[event.key] = each

    def _judge(self, event: Event, claim: _Unready) -> None:
        """Judges a report that made the devices of a claim ready."""
        is_before = 0 < claim.shown < version_of(event)
        is_before |= event.stamp.time - claim.bound >= CLOCK_TOLERANCE
        if claim.pod is None or not is_before or self._lacks.was_unseen(event.key, claim.bound):
            return
        what, came = "was bound", "were ready"
        if claim.awaits is BindingReadiness.FAILED:
            what, came = "was refused", "had failed"
        text = f"{claim.pod} {what} before the devices of {event.key.name} {came}"
        lost = None if event.stamp.verb == "update" else WriteSpan(claim.written, claim.sent)
        self._problems.setdefault(claim.uid, (text, lost))

    def _note_pod(self, event: Event, before: JsonView, known: Instant) -> None:
        if event.type is EventType.OBJECT_DELETED:
            return
        if not core.node_name(event.object):
            self._note_refusal(event, before, known)
            return
        if not before or core.node_name(before):
            for each in self._waiting.get(event.key, ()):
                each.shown = each.shown or version_of(event)
            return
        pod = pods.facts(event.object)
        waiting: list[_Unready] = []
        self._waiting[event.key] = waiting
        stamp = event.stamp
        for named in pods.named_claims(pod):
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, pod.namespace, named.name or "")
            claim = self._unready.get(key)
            if claim is None or claim.pod is not None:
                continue
            if stamp.verb != "create" or claim.by == stamp.actor.user:
                claim.note(event, known, BindingReadiness.READY)
                waiting.append(claim)

    def _note_refusal(self, event: Event, before: JsonView, known: Instant) -> None:
        """Notes the message that the devices of a claim have failed."""
        refusal = refusal_of(event.object)
        if refusal is None or refusal == refusal_of(before):
            return
        failed = _FAILED.search(refusal)
        if failed is not None:
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, event.key.namespace, failed[1])
            claim = self._unready.get(key)
            if claim is not None and claim.pod is None and not claim.has_failed:
                claim.note(event, known, BindingReadiness.FAILED)


def _differ_in_conditions(before: JsonView, after: JsonView) -> bool:
    """Whether two states of a claim differ in nothing but conditions that drivers report."""
    return _without_conditions(before) == _without_conditions(after)


def _without_conditions(tree: JsonView) -> JsonObject:
    status = tree.get("status")
    parts = status if isinstance(status, dict) else {}
    listed = parts.get("devices")
    reports = [
        {name: value for name, value in each.items() if name != "conditions"}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]
    others = {name: value for name, value in parts.items() if name != "devices"}
    saying_more = [each for each in reports if each.keys() - _IDENTITY]
    return {"spec": tree.get("spec"), "status": others, "devices": saying_more}


_IDENTITY = frozenset(("driver", "pool", "device", "shareID"))
