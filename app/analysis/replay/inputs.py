"""Recorded inputs from outside, converted into commands for the timeline.

A creation is taken as it was stored. For a change, the recorded difference is applied to the object
as it is here, because controllers may have changed it differently by then. A deletion is requested
and follows the usual rules. A kubelet's write waits until the pod is as far here as it was in the
recording: bound, or terminating. A driver's write about a device waits until the claim has that
device.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec

from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.instants import has_version
from app.domain.log import Event, EventType
from app.domain.objects import registry as kinds
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import (
    Command,
    DeleteObject,
    ImportObject,
    Propagation,
    WriteOptions,
)
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

KUBELET_PREFIX = "system:node:"

_MERGED_BY = ("type", "name", "uid", "manager", "ip", "key")
"""The fields that identify entries of lists, in the order in which they are tried."""

_OWN = frozenset(("resourceVersion",))

_OF_DELETION = frozenset(("deletionTimestamp", "deletionGracePeriodSeconds", "generation"))
"""The metadata fields that a deletion request sets."""

_Device: TypeAlias = tuple[str, ...]
"""Driver, pool, device and share: the key of a device's status (controllers.md 6.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One recorded write: the event, the object before it, when it was known, and its author.

    `number` is its position among all writes of the recording; `subjects` are the uids of its
    object and of the pods that it concerns. `is_under_way` is True for a write of a controller
    that had been decided before the beginning of a run. `traced_as` is the writer of one that is
    traced: empty if a controller may have made it.
    """

    event: Event
    before: JsonObject | None
    time: Instant
    author: str = ""
    number: int = 0
    subjects: frozenset[str] = frozenset()
    is_under_way: bool = False
    traced_as: str | None = None

    @property
    def is_of_kubelet(self) -> bool:
        """Whether a kubelet made the write, by its name or by its content.

        Only kubelets change the status of a bound pod. Any write about a terminating pod counts
        too: it helps to terminate the pod, so it waits until the pod terminates here.
        """
        if self.event.key.resource != "pods":
            return False
        if self.author == UNNAMED or self.author.startswith(KUBELET_PREFIX):
            return True
        if not self.is_bound or self.before is None:
            return False
        if self.is_terminating:
            return True
        is_news = self.before.get("status") != self.event.object.get("status")
        return is_news and not self.ends_pod

    @property
    def is_bound(self) -> bool:
        """Whether the recorded pod had a node before the write."""
        return self.before is not None and bool(core.node_name(self.before))

    @property
    def is_terminating(self) -> bool:
        """Whether the recorded object was terminating before the write."""
        return is_terminating(self.before)

    @property
    def ends_pod(self) -> bool:
        """Whether the recorded object is terminating from this write on, or was before."""
        return self.is_terminating or is_terminating(self.event.object)

    @property
    def may_have_come_to_pass(self) -> bool:
        """Whether it is the end of an object that may have ended here without it."""
        is_end = self.event.type is EventType.OBJECT_DELETED
        return is_end and (self.is_terminating or self.traced_as is not None)

    @property
    def is_about_status(self) -> bool:
        """Whether it changed only the status, apart from bookkeeping in the metadata."""
        if self.before is None or self.event.type is not EventType.OBJECT_UPDATED:
            return False
        before, after = self.before, self.event.object
        return before.get("status") != after.get("status") and before.get("spec") == after.get(
            "spec"
        )

    @property
    def is_about_devices(self) -> bool:
        """Whether it contains device statuses of a claim."""
        return self.event.key.resource == "resourceclaims" and bool(self._reported_devices)

    @property
    def _reported_devices(self) -> set[_Device]:
        return {device.key for device in dra.device_statuses(self.event.object)}

    def is_possible(self, ours: JsonView) -> bool:
        """Whether our pod is as far as the recorded one was, or our claim has the same devices."""
        if self.event.key.resource == "resourceclaims":
            return self._reported_devices <= {result.key for result in dra.results(ours)}
        has_node = bool(core.node_name(ours))
        return (has_node or not self.is_bound) and (is_terminating(ours) or not self.is_terminating)


def is_terminating(tree: JsonView | None) -> bool:
    """Whether a deletion was requested."""
    return tree is not None and bool(meta.deletion_timestamp(tree))


def command_of(write: Input, ours: JsonObject | None) -> Command | None:
    """The command with the effect of the recorded write here; None when nothing is to be done."""
    event = write.event
    if event.type is EventType.OBJECT_CREATED or ours is None:
        if event.type is not EventType.OBJECT_CREATED:
            return None
        return _as_recorded(event, "ADDED", event.object)
    if meta.uid(ours) != event.uid:
        return None
    is_request = event.stamp.verb in ("delete", "deletecollection")
    if event.type is EventType.OBJECT_DELETED:
        is_release = write.is_terminating and not is_request
        if is_release and _is_held_by(write.before, ours):
            return _as_recorded(event, "DELETED", ours)
        return _deletion(write)
    if is_request:
        return _deletion(write)
    if not write.is_terminating and is_terminating(event.object):
        return _deletion(write)
    before = write.before if write.before is not None else {}
    merged = merge(before, event.object, ours)
    return None if merged == ours else _as_recorded(event, "MODIFIED", merged)


def _is_held_by(before: JsonObject | None, ours: JsonObject) -> bool:
    """Whether finalizers keep our object, and none but those of the recorded one before its end.

    The write that removes the last of them ends the object; a request to delete it does not.
    """
    held = {*meta.finalizers(ours)}
    return bool(held) and held <= {*meta.finalizers(before or {})}


def beside_deletion(write: Input, ours: JsonObject | None) -> Command | None:
    """The other changes of a write that shows an unrecorded deletion request for the object.

    The request is executed first; this command applies the rest of the write.
    """
    event = write.event
    is_by_itself = event.stamp.verb in ("delete", "deletecollection")
    if is_by_itself or write.before is None or ours is None or not is_terminating(ours):
        return None
    if event.type is not EventType.OBJECT_UPDATED or meta.uid(ours) != event.uid:
        return None
    deletion = {
        name: value for name, value in meta.metadata(event.object).items() if name in _OF_DELETION
    }
    before = {**write.before, "metadata": {**meta.metadata(write.before), **deletion}}
    merged = merge(before, event.object, ours)
    return None if merged == ours else _as_recorded(event, "MODIFIED", merged)


def merge(before: Any, after: Any, ours: Any) -> Any:
    """`ours` with what changed from `before` to `after`.

    Objects are merged field by field, lists of objects entry by entry when their entries have a
    name; everything else is replaced. Example: before `{a: 1, b: 1}`, after `{a: 2, b: 1}`, ours
    `{a: 1, b: 5, c: 7}` give `{a: 2, b: 5, c: 7}`.
    """
    if before == after:
        return ours
    if ours == before:
        return after
    if isinstance(after, dict) and isinstance(ours, dict):
        base = before if isinstance(before, dict) else {}
        return _merge_fields(base, after, ours)
    if isinstance(after, list) and isinstance(ours, list):
        base_list = before if isinstance(before, list) else []
        return _merge_entries(base_list, after, ours)
    return after


def _as_recorded(event: Event, operation: str, tree: JsonObject) -> ImportObject:
    return ImportObject(operation=operation, key=event.key, uid=event.uid, tree=tree)


def _merge_fields(before: JsonObject, after: JsonObject, ours: JsonObject) -> JsonObject:
    merged: JsonObject = {}
    for name in (*ours, *(name for name in after if name not in ours)):
        if name in _OWN:
            merged[name] = ours.get(name, after.get(name))
        elif name not in after:
            if name not in before:
                merged[name] = ours[name]
        elif name not in ours:
            if before.get(name) != after[name]:
                merged[name] = after[name]
        else:
            merged[name] = merge(before.get(name), after[name], ours[name])
    return merged


def _merge_entries(before: list[Any], after: list[Any], ours: list[Any]) -> list[Any]:
    field = _name_field(before, after, ours)
    if field is None:
        if all(isinstance(item, str) for item in (*before, *after, *ours)):
            kept = [item for item in ours if item in after or item not in before]
            return kept + [item for item in after if item not in before and item not in kept]
        return after
    olds = {entry[field]: entry for entry in before}
    here = {entry[field]: entry for entry in ours}
    merged = []
    for entry in after:
        name = entry[field]
        if name in here:
            merged.append(merge(olds.get(name), entry, here[name]))
        elif olds.get(name) != entry:
            merged.append(entry)
    # In the order after the write; entries that exist only here come last.
    news = {entry[field] for entry in after}
    return merged + [
        entry for entry in ours if entry[field] not in news and entry[field] not in olds
    ]


def _name_field(*lists: list[Any]) -> str | None:
    """The field that identifies the entries of all lists."""
    for field in _MERGED_BY:
        if all(
            isinstance(entry, dict) and isinstance(entry.get(field), str)
            for entries in lists
            for entry in entries
        ) and all(len({entry[field] for entry in listed}) == len(listed) for listed in lists):
            return field
    return None


def _deletion(write: Input) -> DeleteObject:
    event = write.event
    version = event.stamp.origin.version if event.stamp.origin is not None else ""
    return DeleteObject(
        key=event.key,
        version=version or meta.api_version(event.object).rpartition("/")[2],
        grace_seconds=_grace(write),
        propagation=_propagation(write),
        uid=event.uid,
        # The recorded API admitted the write, perhaps for reasons that are not in the log.
        options=WriteOptions(skips_review=True),
    )


def _propagation(write: Input) -> Propagation | None:
    """The effect of a deletion on dependents; None leaves that of an earlier deletion.

    A log need not have the options of a request. The object has a finalizer for every effect but
    Background, which is not the default of all kinds: the dependents of a Job are kept.
    Parity: api.md 5.
    """
    finalizers = meta.finalizers(write.event.object)
    if "foregroundDeletion" in finalizers:
        return Propagation.FOREGROUND
    if "orphan" in finalizers:
        return Propagation.ORPHAN
    before = meta.finalizers(write.before) if write.before is not None else ()
    if write.is_terminating and ("foregroundDeletion" in before or "orphan" in before):
        return None
    return Propagation.BACKGROUND


def as_served(command: DeleteObject, profile: Profile) -> DeleteObject:
    """The deletion in a version that the release serves; the log may lack the version used."""
    kind = kinds.find(command.key.group, command.key.resource)
    if kind is None or kinds.is_served(kind, command.key.group, command.version, profile):
        return command
    versions = kinds.served_versions(kind, profile)
    return msgspec.structs.replace(command, version=versions[0][1]) if versions else command


def _grace(write: Input) -> int | None:
    """The requested grace period as far as it is visible; None stands for the object's own."""
    if write.event.key.resource != "pods" or write.before is None:
        return None
    grace_seconds = meta.deletion_grace_seconds(write.event.object)
    if write.is_terminating and write.event.type is EventType.OBJECT_DELETED:
        # The object was deleted by this request, whatever its last known state.
        return 0
    if write.is_terminating:
        return grace_seconds
    own = core.termination_grace_seconds(write.before)
    phase = meta.phase(write.before)
    if not write.is_bound or phase in core.FINISHED or grace_seconds == own:
        return None
    return grace_seconds


def note_reached(reached: dict[tuple[str, str], Instant], event: Event, known: Instant) -> bool:
    """Records when a pod got its node and when its deletion began; True if one is new."""
    if event.key.resource != "pods":
        return False
    is_news = False
    if core.node_name(event.object) and (event.uid, "bound") not in reached:
        reached[event.uid, "bound"] = known
        is_news = True
    if is_terminating(event.object) and (event.uid, "terminating") not in reached:
        reached[event.uid, "terminating"] = known
        is_news = True
    return is_news


def hastened(inputs: Sequence[Input], removed: Set[str], skew: int) -> Sequence[Input]:
    """The inputs with the removals of some objects, by uid, earlier by the difference of clocks.

    No removal comes before the last write about its object, and one with a version of its own has
    its place.
    """
    if not removed:
        return inputs
    last: dict[str, Instant] = {}
    moved: list[Input] = []
    for each in inputs:
        uid = each.event.uid
        is_removal = each.event.type is EventType.OBJECT_DELETED
        if is_removal and uid in removed and not has_version(each.event):
            each = replace(each, time=Instant(max(each.time - skew, last.get(uid, Instant(0)))))
        last[uid] = each.time
        moved.append(each)
    return sorted(moved, key=lambda each: each.time)
