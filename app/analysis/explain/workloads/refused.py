"""Pods that the API refuses to a workload, as reported by the Events of its controller.

Parity: controllers.md 5.5.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.analysis.explain import questions, quota_use
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core
from app.domain.values.identifiers import Uid

_REFUSED = "FailedCreate"
_MADE = "SuccessfulCreate"
_REFUSED_BODY = f'"reason":"{_REFUSED}"'.encode()
_MADE_BODY = f'"reason":"{_MADE}"'.encode()

_OF_POD = re.compile(r'^.*?pods "[^"]*" is (?:forbidden|invalid): ', re.DOTALL)
"""The part of a refusal with the generated name of a pod, which differs at each try."""


_BOUND = re.compile(r"\b(maximum|minimum) (\S+) usage per (Container|Pod) is ([\w.]*\w)")
"""A bound of a LimitRange in a refusal: the sort, the resource, for what it is, and the amount."""


@dataclass(slots=True, kw_only=True)
class PodRefusal:
    """The newest refusal of pods of one workload, with the number of tries that ended like it.

    `is_past` is whether a pod was made since.
    """

    event: Event
    message: str
    times: int
    is_past: bool = False


def message_of(text: str) -> str:
    """The message of a refusal without the name of the pod."""
    return _OF_POD.sub("", text)


def newest(views: LiveViews, namespace: str = "") -> dict[Uid, PodRefusal]:
    """The newest refusal of each workload, by its uid, as far as Events are there.

    Refusals are warnings, so the many normal Events are read only where there is one.
    """
    refusals: dict[Uid, PodRefusal] = {}
    for event in views.objects.unusual_events(namespace or None):
        if _REFUSED_BODY not in event.body:
            continue
        event_object = core.event_object(event.object)
        if event_object.reason != _REFUSED:
            continue
        uid = Uid(event_object.subject.uid)
        times = max(1, event_object.occurrences)
        message, known = message_of(event_object.text), refusals.get(uid)
        if known is None:
            refusals[uid] = PodRefusal(event=event, message=message, times=times)
        elif known.message == message:
            known.times += times
            known.event = max(known.event, event, key=lambda one: one.revision)
        elif known.event.revision < event.revision:
            refusals[uid] = PodRefusal(event=event, message=message, times=times)
    for place in sorted({refusal.event.key.namespace for refusal in refusals.values()}):
        for uid, revision in _made(views, place).items():
            if uid in refusals:
                refusals[uid].is_past = revision > refusals[uid].event.revision
    return refusals


def _made(views: LiveViews, namespace: str) -> dict[Uid, int]:
    """The revision of the newest Event about a pod that was made, of each workload."""
    made: dict[Uid, int] = {}
    for event in views.objects.events(*api_resources.EVENTS, namespace):
        # A long history keeps many Events: others are not decoded.
        if _MADE_BODY in event.body:
            event_object = core.event_object(event.object)
            if event_object.reason == _MADE:
                uid = Uid(event_object.subject.uid)
                made[uid] = max(made.get(uid, 0), event.revision)
    return made


def reason(views: LiveViews, refusal: PodRefusal, *, sees_quota: bool) -> Reason:
    """The refusal, and what uses up the quota that refuses, if a quota does."""
    namespace = refusal.event.key.namespace
    times = f", {refusal.times} times" if refusal.times > 1 else ""
    text = f"its pods are refused{times}: {refusal.message}"
    if refusal.is_past:
        text = f"its pods were refused{times}, and one was made since: {refusal.message}"
    children = tuple(_of_limits(views, namespace, refusal.message))
    if sees_quota and not refusal.is_past:
        children += tuple(_of_quota(views, namespace, refusal.message))
    return Reason(
        text=text,
        children=children,
        revision=refusal.event.revision,
        about=refusal.event.key,
        is_kept=True,
    )


def quota_of(refusal: PodRefusal) -> ObjectKey | None:
    """The quota that refused; None where something else did."""
    name = quota_use.refusing(refusal.message)
    namespace = refusal.event.key.namespace
    return ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, name) if name else None


def lifted_quota(views: LiveViews, namespace: str, message: str) -> str:
    """The name of the quota that refused pods and allows them by now, or is gone; else empty."""
    name = quota_use.refusing(message)
    quota = views.objects.get(ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, name))
    is_lifted = quota is None or quota_use.has_room(views, namespace, message, quota)
    return name if is_lifted else ""


def _of_limits(views: LiveViews, namespace: str, message: str) -> Iterator[Reason]:
    """The LimitRanges with a bound that a refusal is about; the message names none of them."""
    if (bound := _BOUND.search(message)) is None:
        return
    field, resource, kind, amount = bound.groups()
    for key in views.objects.keys(*api_resources.LIMIT_RANGES, namespace):
        for limits in json_tree.objects(views.objects.get(key) or {}, "spec", "limits"):
            own = json_tree.text(limits, field[:3], resource)
            if limits.get("type") == kind and own == amount:
                text = f"LimitRange {namespace}/{key.name} sets that {field} of {resource}"
                yield Reason(text=text, about=key, rests_on=(key,), is_kept=True)


def _of_quota(views: LiveViews, namespace: str, message: str) -> Iterator[Reason]:
    name = quota_use.refusing(message)
    quota = views.objects.get(ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, name))
    if name and quota is None:
        yield Reason(text=f"quota {name} is gone by now: the next try is not refused for it")
        return
    yield from quota_use.reasons(views, namespace, message, {}, noun="pod")
    if quota is not None and quota_use.has_room(views, namespace, message, quota):
        yield Reason(
            text=f"quota {name} has room for the pod by now: the next try is not refused for it",
            is_kept=True,
        )


def of_quota(
    views: LiveViews, quota: ObjectKey, sees: Callable[[ObjectKey], bool]
) -> Iterator[Reason]:
    """The workloads of which a quota refused the last pod and refuses the next one, too.

    These are as many as the reader `sees`.
    """
    tree = views.objects.get(quota) or {}
    for uid, refusal in newest(views, quota.namespace).items():
        key = views.objects.by_uid(uid)
        is_refused = not refusal.is_past and quota_use.refusing(refusal.message) == quota.name
        if key is None or not is_refused or not sees(key):
            continue
        if not quota_use.has_room(views, quota.namespace, refusal.message, tree):
            yield Reason(
                text=f"it refuses pods of {questions.named(key)}",
                revision=refusal.event.revision,
                about=key,
                is_kept=True,
            )
