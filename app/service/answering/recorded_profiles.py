"""The profiles of a recorded scheduler, besides the default one, as its bindings show them.

A pod with another `schedulerName` may be left to another program, or be served by a further profile
of the same scheduler. Which it is shows from who bound pods with that name. Parity: controllers.md
4.1.
"""

from itertools import pairwise

from app.domain.controllers import registry
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.records import IMPORTER_USER
from app.domain.values import api_resources
from app.domain.values.fields import core
from app.ports import EventLog
from projections.objects import ObjectsProjection

_SCHEDULERS = frozenset((registry.actor_of("scheduling").user, IMPORTER_USER))
"""The user of the scheduler, and that of events whose source names no author."""

_DEFAULT = b'"schedulerName":"default-scheduler"'
_NAMED = b'"schedulerName":"'

PODS_MAX = 4
"""Bound pods of one name whose bindings are looked for, the latest."""

STATES_MAX = 200
"""States of one pod that are read for its binding, the newest."""


async def find(
    log: EventLog, info: HistoryInfo, objects: ObjectsProjection, until: Revision
) -> frozenset[str]:
    """The names that the scheduler of a recording served, by the bindings of present pods.

    Histories of redra's own scheduler have none: it serves only the default one.
    """
    if not info.is_decided_elsewhere:
        return frozenset()
    bound: dict[str, list[Event]] = {}
    for event in objects.events(*api_resources.PODS):
        # Nearly all pods have the default name, which shows without decoding them.
        if _DEFAULT in event.body or _NAMED not in event.body:
            continue
        if core.node_name(event.object) and (name := core.scheduler_name(event.object)):
            bound.setdefault(name, []).append(event)
    served = set()
    for name, pods in bound.items():
        pods.sort(key=lambda event: event.revision)
        for pod in pods[-PODS_MAX:]:
            if await _binder(log, info, pod, until) in _SCHEDULERS:
                served.add(name)
                break
    return frozenset(served)


async def _binder(log: EventLog, info: HistoryInfo, pod: Event, until: Revision) -> str | None:
    """The user who bound a pod; None for a pod that was created or first seen with its node."""
    states = await log.read_object(info.id, pod.key, until=until, limit=STATES_MAX)
    states = [state for state in states if state.is_about_object and state.uid == pod.uid]
    for after, before in pairwise(states):
        if core.node_name(after.object) and not core.node_name(before.object):
            return after.stamp.actor.user
    return None
