"""The omissions of a recording without a gap: lines here and there, users, verbs, and kinds.

A collector loses lines, and a policy leaves out users, verbs or kinds. Later lines show some of
these writes. If they show enough of them, other writes may be missing that no later line shows, and
a run without them differs from the recording. Verify uses the same `LostLines` and `LeftOut`.
Parity: history-formats.md 4.5.
"""

from collections import defaultdict

from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.inputs import KUBELET_PREFIX
from app.analysis.replay.writers import MANAGED, short_name
from app.analysis.verify.invariants.absent import LeftOut
from app.domain.controllers import pods
from app.domain.log import Event, EventType, ObjectKey, Revision, doubts
from app.domain.log.lost_lines import LostLines
from app.domain.objects import registry
from app.domain.values import condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.timestamps import Instant

_DISPLACED = "PreemptionByScheduler"
"""The reason for which the scheduler ends a pod to make room for another one."""

_OF_KUBELETS = frozenset(
    (
        condition_types.POD_READY_TO_START_CONTAINERS,
        condition_types.INITIALIZED,
        condition_types.CONTAINERS_READY,
    )
)
"""The conditions of a pod that its kubelet alone writes. Parity: controllers.md 5.3."""

_CONTROL_PLANE = MANAGED | {SCHEDULER}
"""The users whose writes contain a pod's conditions, but never set those of kubelets.

Deletions, whoever requests them, set none. Other users may set some: a simulator of nodes writes
the conditions under its own account.
"""

LOST = "lines of the log are lost here and there, and a lost one may explain it"
_NO_KUBELETS = "no line is by a kubelet: when pods ran and ended is not recorded"
_NO_RELEASES = "no line makes a claim of a template: when claims were given back is not recorded"
_NO_UPDATES = "the recording has no update, with which claims are allocated"
_NO_PATCHES = "the recording has no patch, and later lines show that some are missing"
_NO_RULES = "the recording has no DeviceTaintRules, and an eviction shows that there were some"
_NO_NODE = "no line is about a node that pods were bound to, and that its kubelet or slices name"

_Kind = tuple[str, str]
"""A group and a resource."""


class Omissions:
    """Follows a recording event by event; `lost` are its lost lines, `lacks_rules` is set at the
    end: whether an eviction shows that there were rules, and none was recorded."""

    def __init__(self, *, lacks_ends: bool = False) -> None:
        self.lost = LostLines(lacks_ends=lacks_ends)
        self.lacks_rules = False
        self._left_out = LeftOut()
        self._seen: dict[ObjectKey, Revision] = {}
        self._known: dict[Revision, Instant] = {}
        self._conditions: dict[str, dict[str, tuple[str, str, str]]] = {}
        self._nominated: dict[str, str] = {}
        self._displaced: set[str] = set()
        # The nodes on which the scheduler displaced pods.
        self._bound: Instant | None = None
        self._chosen: set[str] = set()
        self._nodes: set[str] = set()
        self._witnessed: set[str] = set()
        # The nodes that pods were bound to, that lines are about, and that others name.
        self._have_run = self._have_claims = False
        self._users: set[str] = set()
        self._kinds: set[_Kind] = set()
        self._owned: dict[ObjectKey, set[str]] = defaultdict(set)
        self._unidentified: set[ObjectKey] = set()

    def note(self, event: Event, known: Instant) -> bool:
        """Processes an event that others could see from instant `known` on.

        True when it shows a lost line about its object, for which the import has no gap.
        """
        if event.stamp.origin is None:
            return False
        self.lost.follow(event)
        if event.type is EventType.GAP_OBSERVED and doubts.is_undated(event):
            self._note_lost(event.key)
        if not event.is_about_object:
            return False
        self._left_out.follow(event)
        self._users.add(event.stamp.actor.user)
        self._note_nodes(event)
        shows_lost = event.key.resource == "pods" and self._shows_lost(event, known)
        if shows_lost:
            self._note_lost(event.key)
        self._note_owners(event)
        self._seen[event.key] = event.revision
        self._known[event.revision] = known
        return shows_lost

    def _note_lost(self, key: ObjectKey) -> None:
        self.lost.note(key, self._seen.get(key, Revision(0)))

    def _shows_lost(self, event: Event, known: Instant) -> bool:
        """Whether a write to a pod shows the changes of an earlier write that is missing.

        The scheduler nominates a node in a write of its own. Parity: controllers.md 4.6. An attempt
        that displaced pods of the node says so in the write that tells of its failure.
        """
        if core.node_name(event.object):
            self._bound = known if self._bound is None else self._bound
            self._have_claims = self._have_claims or pods.facts(event.object).uses_claims
        if event.type is EventType.OBJECT_DELETED:
            # A deletion sets no condition: one that no line shows was set in a lost line.
            last = self._conditions.pop(event.uid, None)
            if last is None or event.stamp.verb != "delete":
                return False
            return any(each.type not in last for each in meta.conditions(event.object))
        # Sources may leave out other fields, such as a probe time that is null.
        now = {
            each.type: (each.status, each.reason, each.message)
            for each in meta.conditions(event.object)
        }
        before = self._conditions.get(event.uid)
        self._conditions[event.uid] = now
        if now.get(condition_types.DISRUPTION_TARGET, ("", ""))[1] == _DISPLACED:
            self._displaced.add(core.node_name(event.object))
        was_nominated = self._nominated.get(event.uid, "")
        nominated = self._nominated[event.uid] = core.nominated_node_name(event.object)
        is_deletion = event.stamp.verb == "delete"
        if before is None or not (is_deletion or event.stamp.actor.user in _CONTROL_PLANE):
            return False
        changed = {name for name in now if now[name] != before.get(name)}
        self._have_run |= bool(changed & _OF_KUBELETS)
        is_nomination = nominated not in ("", was_nominated)
        if changed == {condition_types.POD_SCHEDULED} and nominated in self._displaced:
            is_nomination = False
        is_alone = is_deletion or is_nomination
        return bool(changed & _OF_KUBELETS or (changed and is_alone))

    def _note_nodes(self, event: Event) -> None:
        """Notes the nodes that a write names; a scheduler alone proves no node."""
        user = event.stamp.actor.user
        if user.startswith(KUBELET_PREFIX):
            self._witnessed.add(user.removeprefix(KUBELET_PREFIX))
        match event.key.resource:
            case "nodes":
                self._nodes.add(event.key.name)
            case "pods":
                self._chosen.add(core.node_name(event.object))
            case "resourceslices":
                self._witnessed.add(dra.node_name(event.object))
            case _:
                pass

    def _note_owners(self, event: Event) -> None:
        self._kinds.add(event.key[:2])
        if event.type is EventType.OBJECT_CREATED and not event.uid:
            self._unidentified.add(event.key)
        for owner in meta.owners(event.object):
            group, version = registry.split_api_version(owner.api_version)
            kind = registry.find_kind(group, version, owner.kind)
            if kind is not None:
                place = event.key.namespace if kind.namespaced else ""
                self._owned[ObjectKey(group, kind.plural, place, owner.name)].add(event.uid)

    @property
    def is_any(self) -> bool:
        """Whether there is any omission because of which a difference may be undecided."""
        is_left = self._lacks_kubelets or self._lacks_updates or self._lacks_a_node
        return self.lost.has_any or self.lacks_rules or is_left

    @property
    def verb(self) -> str:
        """The reason why any change may be unrecorded, or empty: no line is of a whole verb."""
        if self._lacks_updates:
            return _NO_UPDATES
        return _NO_PATCHES if self._left_out.patches and self.lost.has_any else ""

    @property
    def _lacks_updates(self) -> bool:
        """Whether nothing was updated, though a later line or a bound pod with claims shows it.

        A cluster in which no claim is allocated needs no update.
        """
        return self._left_out.updates and (self.lost.has_any or self._have_claims)

    @property
    def _lacks_kubelets(self) -> bool:
        """Whether no line is by a kubelet, and later lines show what kubelets wrote."""
        return self._left_out.kubelets and self._have_run

    @property
    def _lacks_a_node(self) -> bool:
        """Whether no line is about an existing node: placements of any pod rest on it."""
        return bool(self._nodes) and bool((self._chosen - {""}) & self._witnessed - self._nodes)

    def before(self, last: Instant, *, is_of_content: bool) -> str:
        """The reason why a difference that exists by the instant `last` cannot be judged, or empty.

        With `is_of_content` the difference depends on no other object: it is about the content that
        a controller gives a new object, or about a reservation for a pod that never existed.
        """
        if is_of_content:
            return ""
        if self.verb:
            return self.verb
        if self.lacks_rules:
            return _NO_RULES
        if self._lacks_a_node:
            return _NO_NODE
        if self._bound is not None and self._bound <= last:
            if self._lacks_kubelets:
                return _NO_KUBELETS
            if self.lost.lacks_releases:
                return _NO_RELEASES
        since = self._known.get(self.lost.since, Instant(0))
        return LOST if self.lost.is_lossy and since <= last else ""

    def known_since(self, revision: int, time: Instant) -> Instant:
        """The instant at which others could see the event of a revision, or `time`."""
        return self._known.get(Revision(revision), time)

    def of_one_line(self) -> str:
        """The reason why one missing write proves nothing, or empty: other lines are lost too."""
        return LOST if self.lost.has_any else ""

    @property
    def controllers(self) -> frozenset[str]:
        """The controllers of a manager, by short name, without any line.

        The other controllers write under accounts of their own. So the lines of these are left out,
        or they did not run.
        """
        managed = MANAGED & self._users
        return frozenset(short_name(each) for each in MANAGED - managed) if managed else frozenset()

    @property
    def ownerless(self) -> frozenset[str]:
        """The uids of objects with an owner that no line shows with its uid.

        Of its kind no line is recorded, or it was made in a line without the answer.
        """
        return frozenset(
            uid
            for owner, uids in self._owned.items()
            if owner[:2] not in self._kinds or owner in self._unidentified
            for uid in uids
        )
