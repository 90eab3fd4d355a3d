"""The controller that made a write, found from the content of the write.

Watch streams and snapshots name no user, and the user of a controller may have any name: all
controllers of a manager with one account share it. Three sources identify the author; the first one
that has an answer counts. They are the managed fields, where a manager stands for one controller;
the changed fields, because most fields have one writer; and the state of the cluster, because
deletions change no field. A decide replay needs the author to leave out what is decided again, and
to learn when each controller was at work. The managers of others are outsiders, except those under
which a controller reports its Events: it may have any name there, too.

A name that upstream gives to a controller identifies it, unless the user does what another
controller does and this one cannot do: then controllers share the account.

If the recording names users, the writes of each user are counted first (`acting`). If most of them
are typical of controllers, the user counts as a controller also for ambiguous writes. Any other
user counts as a controller only for writes that only a controller makes: a user who allocates acts
as the scheduler. Creations of pods and writes of classes and slices never count as those of a
controller that decides again, whatever the account.

In a history whose controllers are redra's, their names tell what they wrote; no writes are counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.controllers import registry
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.records import IMPORTER_USER
from app.domain.objects.kinds import extended_resources
from app.domain.values import condition_types, json_tree, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView

UNNAMED = IMPORTER_USER
"""The author of acts whose source names no author."""

SCHEDULER = registry.actor_of("scheduling").user
CLAIMS = registry.actor_of("claims").user
EVICTION = registry.actor_of("eviction").user
COLLECTOR = registry.actor_of("garbage").user
NAMESPACES = registry.actor_of("namespaces").user
NODES = registry.actor_of("node-lifecycle").user
POD_COLLECTOR = registry.actor_of("pod-gc").user

NAMED = frozenset((SCHEDULER, CLAIMS, EVICTION, COLLECTOR, NAMESPACES, NODES, POD_COLLECTOR))
"""User names that stand for one controller each, as upstream names them."""

_KINDS_OF = {
    SCHEDULER: frozenset(("pods", "resourceclaims", "events")),
    CLAIMS: frozenset(("pods", "resourceclaims", "events")),
    EVICTION: frozenset(("pods", "devicetaintrules", "events")),
    NODES: frozenset(("nodes", "pods", "events")),
    POD_COLLECTOR: frozenset(("pods", "events")),
}
"""The kinds that controllers write, except those controllers that write every kind."""

_MANAGERS = {
    "kube-scheduler": SCHEDULER,
    "ResourceClaimController": CLAIMS,
    "device-taint-eviction-controller": EVICTION,
}
"""Managers of fields that stand for one controller each."""

_SHARED_MANAGER = "kube-controller-manager"
"""The manager name under which all other controllers write."""

_REPORTERS = {
    "default-scheduler": SCHEDULER,
    "device-taint-eviction-controller": EVICTION,
    "resource_claim": CLAIMS,
    "node-controller": NODES,
}

_TELLERS = {
    "DeletionByDeviceTaintManager": EVICTION,
    "PreemptionByScheduler": SCHEDULER,
    "DeletionByPodGC": POD_COLLECTOR,
}
"""The controllers that set a reason in the pod condition DisruptionTarget, then delete the pod."""

_LAST_TAKEN = dict.fromkeys(("", "foregroundDeletion", "orphan"), COLLECTOR)
_LAST_TAKEN[well_known.CLAIM_PROTECTION] = CLAIMS
"""Who ends a claim by taking its last finalizer; that of a third party is for others to take."""

_WRITTEN = frozenset(
    ("pods", "resourceclaims", "devicetaintrules", "namespaces", "nodes", "events")
)
"""The kinds written by controllers that decide again."""

_NODE_TAINTS = "node.kubernetes.io/"
"""The prefix of the taint keys for the state of a node."""


@dataclass(slots=True)
class Acting:
    """The writes of one user, by the controller that makes such writes; `others` are those of none.

    `only` counts the writes that only that controller makes. `not_alone` are the controllers
    that cannot have made all of the user's writes: another controller made one of them.
    """

    roles: Counter[str] = field(default_factory=Counter)
    only: Counter[str] = field(default_factory=Counter)
    not_alone: set[str] = field(default_factory=set)
    others: int = 0

    @property
    def is_controller(self) -> bool:
        """Whether most of the user's writes are those of controllers."""
        return sum(self.roles.values()) > self.others

    @property
    def role(self) -> str:
        """The single controller that the user is; empty when it is several."""
        proper = self.only or self.roles
        role = next(iter(proper)) if len(proper) == 1 else ""
        return "" if role in self.not_alone else role


def acting(events: Iterable[Event], begun: Iterable[Event] = ()) -> dict[str, Acting]:
    """Counts the writes of each user whose name does not identify a controller, or of several.

    `events` are all events of a recording, in order. `begun` are the last events of the objects
    that existed before the first one.
    """
    by_user: dict[str, Acting] = {}
    authors = Authors()
    objects: dict[ObjectKey, JsonObject] = {}
    for event in begun:
        authors.by_content(event, None)
        objects[event.key] = event.object
    for event in events:
        if not event.is_about_object:
            continue
        before = objects.get(event.key)
        if before is not None and meta.uid(before) != event.uid:
            before = None
        if event.type is EventType.OBJECT_DELETED:
            objects.pop(event.key, None)
        else:
            objects[event.key] = event.object
        user = event.stamp.actor.user
        role = authors.by_content(event, before)
        if user == UNNAMED:
            continue
        acts = by_user.setdefault(user, Acting())
        if not role:
            acts.others += 1
            continue
        acts.not_alone.update(
            each for each in _KINDS_OF if each != role and not _may_be_by(each, event, before)
        )
        acts.roles[role] += 1
        if _is_proper(event, before):
            acts.only[role] += 1
    return {
        user: acts for user, acts in by_user.items() if user not in NAMED or user in acts.not_alone
    }


class Authors:
    """Finds the author of each event of a recording; requires all events, in order.

    `acting` has the counted writes of users (see `acting`); without it, recorded names are used.
    """

    def __init__(self, acting: Mapping[str, Acting] | None = None) -> None:
        self._acting = acting or {}
        self._ending: set[str] = set()
        self._at_work: dict[str, bool] = {}
        self._gone: set[str] = set()
        self._placed: set[str] = set()
        self._reporters = dict(_REPORTERS)
        self._managers = {"", _SHARED_MANAGER}

    def of(self, event: Event, before: JsonView | None) -> str:
        """The author's user name: of a controller, the recorded one, or `UNNAMED` for outsiders.

        `before` is the object before the event; None when it did not exist.
        """
        user = event.stamp.actor.user
        acts = self._acting.get(user)
        if user != UNNAMED and acts is None:
            self._note(event)
            return user
        role = self.by_content(event, before)
        if acts is None:
            return role or UNNAMED
        if acts.is_controller and (role or _may_be_of_controller(event, before)):
            return acts.role or role or user
        return role if role and _is_proper(event, before) else user

    def is_sure(self, event: Event) -> bool:
        """Whether the recording identifies the controller that wrote it, if one did.

        If several controllers share a name, or have none, the author that is found may be wrong.
        """
        user = event.stamp.actor.user
        acts = self._acting.get(user)
        return user in NAMED if acts is None else bool(acts.role)

    def by_content(self, event: Event, before: JsonView | None) -> str:
        """The user name of the controller that makes such a write; empty for outsiders."""
        self._note(event)
        return self._unnamed(event, before)

    def _note(self, event: Event) -> None:
        """Tracks namespaces being deleted, deleted objects, and running pods."""
        if event.type is EventType.OBJECT_DELETED:
            self._gone.add(event.uid)
        if event.key.resource == "namespaces":
            if meta.deletion_timestamp(event.object):
                self._ending.add(event.key.name)
            elif event.type is EventType.OBJECT_CREATED:
                self._ending.discard(event.key.name)
        elif event.key.resource == "pods":
            if event.type is EventType.OBJECT_DELETED:
                self._at_work.pop(event.uid, None)
                return
            self._at_work[event.uid] = not core.is_finished(event.object)
            self._reporters.setdefault(core.scheduler_name(event.object), SCHEDULER)
            if core.node_name(event.object):
                self._placed.add(event.uid)
        elif event.key.resource == "events" and _reporter(event.object) in self._reporters:
            self._managers.add(manager_of({}, event.object))

    def _unnamed(self, event: Event, before: JsonView | None) -> str:
        resource = event.key.resource
        if resource == "events":
            is_gone = event.type is EventType.OBJECT_DELETED
            if is_gone and event.key.namespace in self._ending:
                return NAMESPACES
            return self._reporters.get(_reporter(event.object), "")
        if before is None:
            return _maker(event)
        if event.type is EventType.OBJECT_DELETED or _begins_to_end(before, event.object):
            return self._ender(event, before)
        manager = manager_of(before, event.object)
        if manager in _MANAGERS:
            return _MANAGERS[manager]
        if manager not in self._managers:
            return ""
        if resource == "resourceclaims":
            return self._claim_writer(before, event.object)
        return _writer(resource, before, event.object)

    def _ender(self, event: Event, before: JsonView) -> str:
        """The author that requested a deletion, or completed it."""
        resource, owners = event.key.resource, [each.uid for each in meta.owners(event.object)]
        is_asked = bool(json_tree.get(before, "metadata", "deletionTimestamp"))
        if resource == "namespaces":
            return NAMESPACES if is_asked else ""
        if resource == "resourceclaims" and is_asked:
            return _LAST_TAKEN.get(" ".join(meta.finalizers(before)), "")
        if resource == "resourceclaims" and _maker(event):
            return self._claim_ender(event, owners)
        if not is_asked and event.key.namespace in self._ending:
            return NAMESPACES
        if owners and not is_asked and self._gone.issuperset(owners):
            return COLLECTOR
        if resource == "pods":
            teller = next((_TELLERS.get(each, "") for each in _reasons(before)[:1]), "")
            # Parity: controllers.md 5.4, only the pod garbage collector waits for no kubelet.
            waits = is_asked and (teller != POD_COLLECTOR or meta.finalizers(before))
            return "" if waits else teller
        return ""

    def _claim_ender(self, event: Event, owners: list[Uid]) -> str:
        """The author that deleted a claim made for a pod.

        The claim controller does when the pod has ended and its reservation is gone, the collector
        when it is deleted. Before that, the scheduler gives up claims for extended resources,
        without their finalizer. Parity: controllers.md 2.3.
        """
        users = {each.uid for each in dra.consumers(event.object)}
        for owner in owners:
            if not (is_at_work := self._at_work.get(owner)):
                return COLLECTOR if is_at_work is None else "" if owner in users else CLAIMS
        if event.type is EventType.OBJECT_UPDATED:
            return ""
        notes = meta.annotations_as_stored(event.object)
        return SCHEDULER if extended_resources.ANNOTATION in notes else ""

    def _claim_writer(self, before: JsonView, after: JsonView) -> str:
        """The writer of a claim change.

        The scheduler allocates, and reverts its own failed allocations. The claim controller
        reserves for pods that were placed without the scheduler, and handles the end of claims.
        """
        held, new = (dra.allocation(tree) for tree in (before, after))
        if new and held != new:
            return SCHEDULER
        olds, news = ({each.uid for each in dra.consumers(tree)} for tree in (before, after))
        if held and not new:
            is_ending = bool(json_tree.get(after, "metadata", "deletionTimestamp"))
            return CLAIMS if olds or is_ending else SCHEDULER
        if news - olds:
            return CLAIMS if news - olds <= self._placed else SCHEDULER
        if olds - news:
            # The claim controller removes the allocation together with the last consumer.
            was_in_vain = not news or not olds - news <= self._placed
            return SCHEDULER if held and was_in_vain else CLAIMS
        was, stays = (
            well_known.CLAIM_PROTECTION in meta.finalizers(tree) for tree in (before, after)
        )
        if was == stays:
            return ""
        return SCHEDULER if stays else CLAIMS


def _may_be_of_controller(event: Event, before: JsonView | None) -> bool:
    """Whether an ambiguous write may be by a controller that is decided again.

    Deletions by controllers are not ambiguous: the owner is gone, a condition is set, or the
    namespace is being deleted.
    """
    if before is None or event.key.resource not in _WRITTEN:
        return False
    is_end = event.type is EventType.OBJECT_DELETED or _begins_to_end(before, event.object)
    return not is_end


def _is_proper(event: Event, before: JsonView | None) -> bool:
    """Whether only a controller makes such a write."""
    if event.key.resource == "events":
        return True
    if before is None:
        return bool(_maker(event))
    if event.type is EventType.OBJECT_DELETED or _begins_to_end(before, event.object):
        return False
    if event.key.resource == "resourceclaims":
        return _differ(before, event.object, "status", "allocation") or _differ(
            before, event.object, "status", "reservedFor"
        )
    if event.key.resource == "nodes":
        return _is_of_node_controller(before, event.object)
    if event.key.resource not in ("pods", "devicetaintrules"):
        return False
    old, new = _spec_of_others(before), _spec_of_others(event.object)
    if old and new and old != new:
        return False  # It shows what a controller wrote before it, in a line that is lost.
    return bool(_writer(event.key.resource, before, event.object))


def _spec_of_others(tree: JsonView) -> dict[str, Any]:
    """The specification without the node: of pods and rules, controllers write nothing else."""
    return {name: value for name, value in meta.spec(tree).items() if name != "nodeName"}


def _may_be_by(user: str, event: Event, before: JsonView | None) -> bool:
    """Whether the controller that a name stands for may make such a write.

    The eviction controller marks a pod before it deletes it, and the claim controller deletes none.
    """
    if user not in _KINDS_OF:
        return True
    if event.key.resource not in _KINDS_OF[user]:
        return False
    is_end = event.type is EventType.OBJECT_DELETED or (
        before is not None and _begins_to_end(before, event.object)
    )
    if event.key.resource != "pods" or not is_end or before is None:
        return True
    is_marked = bool(_reasons(before))
    return user != CLAIMS and (user != EVICTION or is_marked)


def _maker(event: Event) -> str:
    """The author that created an object."""
    if event.key.resource != "resourceclaims":
        return ""
    annotations = meta.annotations_as_stored(event.object)
    if extended_resources.ANNOTATION in annotations:
        return SCHEDULER
    return CLAIMS if well_known.POD_CLAIM_NAME in annotations else ""


def _writer(resource: str, before: JsonView, after: JsonView) -> str:
    """The controller that writes the changed fields."""
    match resource:
        case "pods":
            return _pod_writer(before, after)
        case "devicetaintrules":
            return EVICTION if _differ(before, after, "status", "conditions") else ""
        case "nodes":
            is_theirs = _differ(before, after, "spec", "taints") or (
                _node_labels(before) != _node_labels(after)
            )
            return NODES if is_theirs else ""
        case "namespaces":
            return NAMESPACES if _differ(before, after, "status", "conditions") else ""
        case _:
            return ""


def _pod_writer(before: JsonView, after: JsonView) -> str:
    if _differ(before, after, "status", "resourceClaimStatuses"):
        return CLAIMS
    was, reason = (_reasons(each) for each in (before, after))
    if reason and reason != was:
        return _TELLERS.get(reason[0], "")
    is_ending = meta.is_deleting(before) and not core.node_name(before)
    if is_ending and core.is_finished(after) and not core.is_finished(before):
        return POD_COLLECTOR  # Parity: controllers.md 5.4; no kubelet has the pod.
    is_tried = (
        _differ(before, after, "spec", "nodeName")
        or _differ(before, after, "status", "nominatedNodeName")
        or _differ(before, after, "status", "extendedResourceClaimStatus")
        or _reasons(before, condition_types.POD_SCHEDULED)
        != _reasons(after, condition_types.POD_SCHEDULED)
    )
    return SCHEDULER if is_tried else ""


def manager_of(before: JsonView, after: JsonView) -> str:
    """The manager whose entry is new, later or wider; empty when none or several are."""
    olds, news = _entries(before), _entries(after)
    managers = {
        place[0]
        for place, entry in news.items()
        if place not in olds or entry.get("time") != olds[place].get("time")
    }
    if not managers:
        # Another write in the same second: take the managers with more fields now.
        managers = {
            place[0]
            for place, entry in news.items()
            if not _covers(olds[place].get("fieldsV1"), entry.get("fieldsV1"))
        }
    return managers.pop() if len(managers) == 1 else ""


def _entries(tree: JsonView) -> dict[tuple[str, str, str], JsonView]:
    return {
        (
            json_tree.text(entry, "manager"),
            json_tree.text(entry, "operation"),
            json_tree.text(entry, "subresource"),
        ): entry
        for entry in meta.managed_entries(tree)
    }


def _covers(wide: Any, narrow: Any) -> bool:
    """Whether every field of the second set is one of the first."""
    if not isinstance(narrow, Mapping):
        return True
    return isinstance(wide, Mapping) and all(
        name in wide and _covers(wide[name], inner) for name, inner in narrow.items()
    )


def _begins_to_end(before: JsonView, after: JsonView) -> bool:
    path = ("metadata", "deletionTimestamp")
    return not json_tree.get(before, *path) and bool(json_tree.get(after, *path))


def _differ(before: JsonView, after: JsonView, *path: str) -> bool:
    return bool(json_tree.get(before, *path) != json_tree.get(after, *path))


def _node_labels(node: JsonView) -> dict[str, Any]:
    labels = json_tree.mapping(node, "metadata", "labels")
    return {name: value for name, value in labels.items() if name.startswith("beta.kubernetes.io/")}


def _is_of_node_controller(before: JsonView, after: JsonView) -> bool:
    """Whether only the node controller's taints or the old names of labels changed.

    Administrators also taint nodes, with keys of their own, and kubelets label them.
    """
    olds, news = (
        {(json_tree.text(taint, "key"), json_tree.text(taint, "effect")) for taint in taints}
        for taints in (core.taints(tree) for tree in (before, after))
    )
    if olds != news:
        return all(key.startswith(_NODE_TAINTS) for key, _ in olds ^ news)
    kept, left = (
        {name: value for name, value in labels.items() if name not in _node_labels(tree)}
        for tree in (before, after)
        for labels in (json_tree.mapping(tree, "metadata", "labels"),)
    )
    return _node_labels(before) != _node_labels(after) and kept == left


def _reasons(pod: JsonView, name: str = condition_types.DISRUPTION_TARGET) -> tuple[str, ...]:
    """Reason and message of a condition; by default of the one that marks a pod for its end."""
    condition = meta.condition(pod, name)
    return () if condition is None else (condition.reason, condition.message)


def _reporter(event: JsonView) -> str:
    event_object = core.event_object(event)
    return event_object.reporting_component or event_object.reporting_controller
