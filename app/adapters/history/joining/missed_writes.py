"""Writes that no record has, as far as a later write of the same object shows them.

Parity: history-formats.md 4.5.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.adapters.history.joining import contradictions, endings
from app.adapters.history.joining.fixed_parts import Parts
from app.adapters.history.joining.lost_dependencies import versions_of
from app.adapters.history.joining.patched_parts import (
    BOUND,
    NO_PATCH,
    NODE_SORTS,
    Part,
    changed_beside,
    is_managed_beside,
    parts_of,
)
from app.adapters.history.joining.spool import ORDER_BY_REVISION, Row, Spool
from app.domain.log import ObjectKey
from app.domain.log.records import Quality, Record, comparable_version
from app.domain.log.store_versions import Versions
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_LEFT_ALONE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("update", ""): ("status",),
    ("patch", ""): ("status",),
    ("update", "status"): ("spec",),
    ("patch", "status"): ("spec",),
    ("delete", ""): ("spec", "status"),
}
"""The parts of an object that a request does not change, by verb and subresource."""

_BINDING = "binding"

_FIXED_SPECS = frozenset({"resourceclaims"})
"""Resources whose spec is immutable. Parity: objects.md 5.1."""


@dataclass(slots=True)
class KnownState:
    """The last state of a key: in the spool (`row`) or, for a derived state, in `tree`.

    `own` is its last known version; `is_own` is true when that is the version of this state.
    `node` is the node of a pod, `created` the creation time that the state shows, and `fixed` what
    no write changes.
    """

    uid: str
    own: str
    is_own: bool
    record: Record
    row: int | None
    tree: JsonObject | None
    node: str
    created: Instant | None
    fixed: Parts


@dataclass(slots=True)
class MissedWrites:
    """Judges the next state of each object by the last known one, which `tree_of` gives.

    `ends` are the objects whose deletion only such a state shows, `beside` the first one of each
    kind that shows parts which no recorded patch names.
    """

    spool: Spool
    tree_of: Callable[[KnownState], JsonObject | None]
    ends: set[ObjectKey] = field(default_factory=set)
    beside: dict[str, ObjectKey] = field(default_factory=dict)
    _versions: Versions | None = None
    _updated: frozenset[Part] | None = None

    def shows(self, record: Record, known: KnownState) -> bool:
        """True if an unrecorded change lies between the last known state and a request.

        A request that names the version which it changes says so, if that is a later one. So does
        a state on the way to an end, see `endings`.
        A write to `status` leaves the spec alone, one to the object the status, and a deletion
        both. A spec that no write may change is no sign of a missed one. A write that leaves all as
        it was is not stored: if it was, it took back what is not seen. An update in a log that
        names no subresources, as exported ones, may be one of the status. Kinds of other groups are
        left out, because policies often omit what kubelets write.
        """
        names_status = record.verb == "delete" or self.spool.names_subresources
        if not known.node and endings.shows_unseen_binding(self.spool, record):
            return True
        may_show = endings.may_show_change(self.spool, record, names_status=names_status)
        if may_show:
            last = self.tree_of(known) or {}
            if endings.shows_unseen_end(record, last):
                self.ends.add(record.key)
            if endings.shows_unseen_change(record, last):
                return True
        if self._is_changed_beside(record, known):
            return True
        if record.group != api_groups.RESOURCE:
            return False
        is_later = known.is_own and comparable_version(record.upon) > known.own
        if is_later and not record.is_deletion_request:
            return True
        before, tree = known.record, record.object
        is_whole = before.object_quality is record.object_quality is Quality.FULL
        if tree is None or not is_whole:
            return False
        if record.verb == "update" and known.is_own and self._is_as_before(tree, known):
            return True
        kept = set(_LEFT_ALONE.get((record.verb, record.subresource), ()))
        if record.resource in _FIXED_SPECS:
            kept.discard("spec")
        if not names_status:
            kept.discard("status")
        stored = self.tree_of(known) if kept else None
        if stored is None:
            return False
        return any(
            contradictions.difference({part: stored.get(part)}, {part: tree.get(part)})
            for part in kept
        )

    def _is_as_before(self, tree: JsonObject, known: KnownState) -> bool:
        """True if a state of a new version is the last known one, with the same managers."""
        if not meta.managed_entries(tree):
            return False
        before = self.tree_of(known)
        return before is not None and _unversioned(before) == _unversioned(tree)

    def _is_changed_beside(self, record: Record, known: KnownState) -> bool:
        """True if a patch is answered with changes of others, such as some recorded patch makes.

        A deletion is judged as a patch that names nothing. A policy may leave out the writer of a
        part of an object: then no patch names that part. Of what placements read of nodes, their
        labels and specs, one object may lack such a patch: a policy would leave out those of all.
        """
        sent = NO_PATCH if record.verb.startswith("delete") else record.sent
        is_judged = endings.is_judged(record) or record.key[:2] == api_resources.NODES
        if sent is None or not is_judged or self.spool.order != ORDER_BY_REVISION:
            return False
        before, is_bound = known.record, known.record.subresource == _BINDING
        if not is_bound and before.object_quality is not Quality.FULL:
            return False
        old, new = self.tree_of(known) or {}, record.object or {}
        changed = list(changed_beside(old, new, sent))
        if self._recorded(record, changed) or self._is_only_one(record, known, changed):
            return True
        named = self._recorded(record, (*parts_of(sent), *(BOUND if is_bound else ())))
        return is_managed_beside(old, new, named)

    def _is_only_one(self, record: Record, known: KnownState, changed: Sequence[Part]) -> bool:
        """True if the object is the first of its kind that shows parts which no patch names."""
        if not any(sort in NODE_SORTS for sort, _ in changed):
            return False
        if self.beside.setdefault(record.resource, record.key) != record.key:
            return False
        made = known.record.asked_at or known.record.observed_at
        arrived = record.asked_at or record.observed_at
        if made is None or arrived is None:
            return False
        if self._versions is None:
            self._versions = versions_of(self.spool)
        return self._versions.may_hide(made, arrived)

    def _recorded(self, record: Record, parts: Iterable[Part]) -> list[Part]:
        """The parts of a kind that some recorded patch names, or an update of a claim changes."""
        is_claim = record.key[:2] == api_resources.RESOURCE_CLAIMS
        return [
            part
            for part in parts
            if (record.resource, part) in self.spool.patched
            or (is_claim and part in self._updated_of_claims())
        ]

    def _updated_of_claims(self) -> frozenset[Part]:
        """The parts of claims that some recorded update changes, by the version that it names.

        The scheduler and the claim controller write the status of claims by updates alone, as
        drivers may. Parity: controllers.md 2.4, 3.7.
        """
        if self._updated is None:
            updated: set[Part] = set()
            last: Row | None = None
            for row in self.spool.rows_of(*api_resources.RESOURCE_CLAIMS):
                record, upon = row.record, comparable_version(row.record.upon)
                is_next = last is not None and last.record.key == record.key and last.own == upon
                if last is not None and is_next and upon and record.verb == "update":
                    updated.update(changed_beside(last.tree() or {}, row.tree() or {}, NO_PATCH))
                last = row
            self._updated = frozenset(updated)
        return self._updated


def _unversioned(tree: JsonObject) -> JsonObject:
    """An object without its version, and without the times of its managers."""
    managers = [
        {name: value for name, value in each.items() if name != "time"}
        for each in meta.managed_entries(tree)
    ]
    kept = {name: value for name, value in meta.metadata(tree).items() if name != "resourceVersion"}
    return {**tree, "metadata": {**kept, "managedFields": managers}}
