"""The writers of a recording: outsiders, controllers that decide again, and other controllers.

A decide replay keeps the writes from outside (users, drivers, kubelets, and controllers that are
not emulated) and leaves out those that the controllers here decide again. The user name of a write
decides; for a write without a named actor, `authors` finds the author.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from enum import StrEnum
from typing import Any

from app.analysis.replay.authors import COLLECTOR, SCHEDULER, UNNAMED, manager_of
from app.domain.controllers import registry
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, event_reasons
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

DECIDED = (
    "garbage",
    "namespaces",
    "node-lifecycle",
    "pod-gc",
    "claims",
    "rule-status",
    "eviction",
    "scheduling",
)
"""The controllers that decide again. Writes of others (replicas, kubelets) are kept as recorded."""

BESIDE = (
    "disruption",
    "replica-sets",
    "stateful-sets",
    "daemon-sets",
    "jobs",
    "quotas",
    "kubelet",
)
"""The controllers that run beside the recorded ones in a changed world."""

IN_PLACE = ("deployments", "pool-status")
"""The controllers that replace the recorded ones in a changed world.

They do so for changed Deployments and for new requests for the status of pools. The recording has
no instants for their acts.
"""

CONTROLLER_PREFIX = "system:serviceaccount:kube-system:"

MANAGED = frozenset(
    user
    for user in (registry.actor_of(name).user for name in registry.NAMES)
    if user.startswith(CONTROLLER_PREFIX)
)
"""The users of the controllers that one process, kube-controller-manager, runs."""

_USUAL = frozenset(("", "default-scheduler"))

_SHORT = {
    "system:kube-scheduler": "scheduler",
    "system:serviceaccount:kube-system:": "",
}


class Writer(StrEnum):
    """The treatment of a write in a decide replay."""

    OUTSIDE = "outside"
    DECIDED = "decided again"
    NOT_EMULATED = "controller that is not emulated"
    ECHO = "part of another write"


class Writers:
    """Sorts the events of a recording by their writer.

    `running` are the names of the controllers that decide again, `foreign` those of schedulers that
    do not (`foreign_schedulers`), `users` the names of their users (`foreign_users`).
    """

    def __init__(
        self,
        running: Collection[str],
        foreign: Set[str] = frozenset(),
        users: Set[str] = frozenset(),
    ) -> None:
        self._foreign, self._users = foreign, users
        self._decided: dict[str, list[str]] = {}
        for name in running:
            self._decided.setdefault(registry.actor_of(name).user, []).append(name)

    def of(self, event: Event, before: JsonView | None, user: str) -> Writer:
        """The category of an event about an object that `user` wrote (see `authors`).

        `before` is the recorded object before it.
        """
        if event.stamp.actor.user == UNNAMED and is_announcement(event, before):
            return Writer.ECHO
        if _is_renewal(event) and user != COLLECTOR:
            return Writer.OUTSIDE
        if user in self._decided:
            return Writer.DECIDED
        if user.startswith(CONTROLLER_PREFIX):
            return Writer.NOT_EMULATED
        return Writer.OUTSIDE

    def is_foreign(self, event: Event, before: JsonView | None) -> bool:
        """Whether another scheduler than kube-scheduler writes, or binds a pod, or reports it."""
        if event.stamp.actor.user in self._users:
            return True
        if event.key.resource == "events":
            return _reporter(event) in self._foreign
        if event.key[:2] != api_resources.PODS or not core.node_name(event.object):
            return False
        is_bound = core.scheduler_name(event.object) in self._foreign
        return is_bound and before is not None and not core.node_name(before)

    def apart(self, event: Event, before: JsonView | None) -> str:
        """The words for the schedulers that a write is of, apart from kube-scheduler; or empty."""
        if not self.is_foreign(event, before):
            return ""
        names = {core.scheduler_name(event.object)} & self._foreign or self._foreign
        return f" for a scheduler apart from kube-scheduler ({', '.join(sorted(names))})"

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of controllers by the user name of their writes."""
        return self._decided

    def controllers_of(self, user: str) -> Sequence[str]:
        """The names of the controllers that write under a user name."""
        return self._decided.get(user, ())


def foreign_schedulers(events: Iterable[Event]) -> frozenset[str]:
    """The names in pods (`schedulerName`) under which kube-scheduler has done nothing.

    It writes an Event about each pod that it places or refuses, under the name of the pod's
    profile. Where no such Event of any profile is recorded, no name is known to be foreign. One
    process has all profiles, with one user and one field manager: what others write under another
    name than the usual one shows another program.
    Parity: controllers.md 4.1, 4.3, 4.6.
    """
    named: set[str] = set()
    shown: set[str] = set()
    writers: dict[str, set[str]] = defaultdict(set)
    for event in events:
        if event.key.resource == "events":
            if _is_of_scheduler(event):
                writers[_reporter(event)].add(_identity(event))
        elif event.key[:2] == api_resources.PODS and event.is_about_object:
            name = core.scheduler_name(event.object)
            named.add(name)
            if event.stamp.actor.user == SCHEDULER or core.nominated_node_name(event.object):
                shown.add(name)
    own = {SCHEDULER, ""}.union(*(writers[name] for name in _USUAL))
    shown.update(name for name, users in writers.items() if users & own)
    if not shown & _USUAL:
        return frozenset()
    return frozenset(named - shown - _USUAL)


def foreign_users(events: Iterable[Event], foreign: Set[str]) -> frozenset[str]:
    """The users who report what schedulers with these names do."""
    users = {
        event.stamp.actor.user
        for event in events
        if event.key.resource == "events" and _is_of_scheduler(event)
        if _reporter(event) in foreign
    }
    return frozenset(users - {UNNAMED})


def _is_of_scheduler(event: Event) -> bool:
    reason = core.event_object(event.object).reason
    return reason in (event_reasons.SCHEDULED, event_reasons.FAILED_SCHEDULING)


def _reporter(event: Event) -> str:
    report = core.event_object(event.object)
    return report.reporting_component or report.reporting_controller


def _identity(event: Event) -> str:
    """The user of a write, otherwise its field manager; empty without either."""
    user = event.stamp.actor.user
    return manager_of({}, event.object) if user == UNNAMED else user


def _is_renewal(event: Event) -> bool:
    """Whether a process asks for a Lease or renews it, which no controller here does."""
    is_end = event.type is EventType.OBJECT_DELETED
    return event.key[:2] == api_resources.LEASES and not is_end


def is_announcement(event: Event, before: JsonView | None) -> bool:
    """Whether this is the first of the two revisions of a pod's removal, a deletion mark only.

    A pod with finalizers is not removed by the request that marks it.
    """
    if before is None or event.key.resource != "pods":
        return False
    if event.type is not EventType.OBJECT_UPDATED:
        return False
    metadata = meta.metadata(event.object)
    if metadata.get("deletionGracePeriodSeconds") != 0 or meta.finalizers(event.object):
        return False
    return bool(_without_deletion(before) == _without_deletion(event.object))


def is_first_of_removal(event: Event) -> bool:
    """Whether the server removes a pod at once after this last write, as one request asked.

    The request has two revisions: the deletion mark, which has no author in a log, and the end.
    """
    if event.key.resource != "pods" or event.type is not EventType.OBJECT_UPDATED:
        return False
    metadata = meta.metadata(event.object)
    is_due = metadata.get("deletionGracePeriodSeconds") == 0 and not meta.finalizers(event.object)
    return event.stamp.actor.user == UNNAMED and is_due


def is_by_anyone_alike(
    event: Event, before: JsonView | None, objects: Mapping[ObjectKey, JsonView]
) -> bool:
    """Whether a client without a name or the pod garbage collector removed a pod at once.

    A pod that has finished goes at once whoever deletes it. If its node is gone, the collector
    deletes it, too. Parity: controllers.md 5.4. `objects` are those of the recording by then.
    """
    if event.type is not EventType.OBJECT_DELETED or event.key.resource != "pods":
        return False
    if event.stamp.actor.user != UNNAMED or before is None or not core.is_finished(before):
        return False
    return ObjectKey(*api_resources.NODES, "", core.node_name(before)) not in objects


def short_name(user: str) -> str:
    """The account name without the common prefix."""
    for prefix, short in _SHORT.items():
        if user.startswith(prefix):
            return short + user[len(prefix) :]
    return user


_DELETION = frozenset(
    ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion")
)


def _without_deletion(tree: JsonView) -> Any:
    metadata = meta.metadata(tree)
    kept = {name: value for name, value in metadata.items() if name not in _DELETION}
    return _bare({**tree, "metadata": kept})


def _bare(tree: Any) -> Any:
    """The tree without empty values, which sources write or omit arbitrarily."""
    if isinstance(tree, dict):
        kept = {name: _bare(value) for name, value in tree.items() if name != "managedFields"}
        return {name: value for name, value in kept.items() if value not in (None, {}, [], "")}
    if isinstance(tree, list):
        return [_bare(item) for item in tree]
    return tree
