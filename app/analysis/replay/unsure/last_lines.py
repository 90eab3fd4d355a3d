"""Last lines of objects that are lost, as far as what controllers did afterwards tells of them.

A controller acts upon a state that it saw. The claim controller takes back the reservation of a pod
that is gone, the collector deletes what belonged to an object that is gone, and the scheduler binds
a pod whose claims are allocated and whose devices are ready. If the last line about the object in
question shows another state, either a later line is lost or the controller was wrong. The store's
versions tell: a lost line leaves a version that no line is about. Parity: controllers.md 2.4, 3.8,
4.6, 7.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from app.analysis.replay import tolerances
from app.analysis.replay.authors import COLLECTOR, SCHEDULER
from app.analysis.replay.facts import consumers
from app.analysis.replay.writers import MANAGED
from app.analysis.verify.invariants.cluster import CLAIM_FINALIZER
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE, IN_FLIGHT
from app.domain.controllers import pods
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.controllers.scheduling.plugins.dynamic_resources.binding_conditions import (
    BindingReadiness,
)
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.store_versions import Versions, WriteSpan
from app.domain.values import api_resources, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant


class LostLine(NamedTuple):
    """An object that was written after the last line about it, no earlier than `since`.

    `keeps_devices` if a claim has the devices of its last line all the same.
    """

    key: ObjectKey
    uid: str
    since: Instant
    keeps_devices: bool = False


class _Act(NamedTuple):
    """A write of a controller: its user, when it was sent at the latest, and known to others."""

    user: str
    sent: Instant
    known: Instant


class _NamedUnseen(NamedTuple):
    """The entry of a pod for which the claim controller names a claim, and when it made that."""

    pod: ObjectKey
    uid: str
    entry: str
    span: WriteSpan


class _Unseen(NamedTuple):
    """An object of which no line is before the act of a controller, and what that wrote.

    It is a pod or a node, or a claim, whose uid nothing tells; `entry` is that of the pod for which
    the claim was generated.
    """

    key: ObjectKey
    uid: str
    made: ObjectKey
    made_uid: str
    act: _Act
    entry: str = ""


@dataclass(slots=True)
class _Living:
    """The last known state of an object without an end in the log so far.

    `is_run` is true of a pod with a node, or one that is finished, `is_ending` of one that is
    finished or is being deleted. `given_by` is the user that allocated a claim and reserved it for
    nobody. `is_ready` is false of a claim whose devices lack binding conditions. `changed_by` is
    the first act of a controller upon another state, and `lines` how many lines have to be lost
    for that. With `is_at_end` they are not lost unless the recording ends soon after the act.
    """

    key: ObjectKey
    uid: str
    written: Instant
    is_run: bool
    is_ending: bool
    is_allocated: bool
    is_protected: bool
    given_by: str = ""
    is_ready: bool = True
    changed_by: _Act | None = None
    lines: int = 1
    is_at_end: bool = False

    def note_act(self, act: _Act, lines: int = 1, *, is_at_end: bool = False) -> None:
        """Notes an act upon another state, between which and the known one are so many lines."""
        if self.changed_by is None:
            self.changed_by, self.lines, self.is_at_end = act, lines, is_at_end


@dataclass(slots=True)
class LastLines:
    """Follows a recording event by event."""

    versions: Versions
    _living: dict[ObjectKey, _Living] = field(default_factory=dict)
    _key_of: dict[str, ObjectKey] = field(default_factory=dict)
    _reserved: dict[str, frozenset[str]] = field(default_factory=dict)
    _owned: dict[str, set[tuple[ObjectKey, str]]] = field(default_factory=lambda: defaultdict(set))
    _ended: dict[str, Instant] = field(default_factory=dict)
    _gone: dict[ObjectKey, Instant] = field(default_factory=dict)
    """When the last objects of keys may have been gone at the earliest."""
    _slowest: dict[str, int] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)
    _unmade: dict[ObjectKey, "_NamedUnseen | None"] = field(default_factory=dict)
    """The generated claims that pods name; None for each claim that a line is about."""
    _made: dict[tuple[str, str], ObjectKey] = field(default_factory=dict)
    """The last claim, of any name, that a line shows for the uid of a pod and its entry."""
    _unseen: dict[str | ObjectKey, "_Unseen"] = field(default_factory=dict)
    """The objects of which no line is before an act, by uid, or a claim by its key."""
    _named: dict[str, frozenset[str]] = field(default_factory=dict)
    """The names of the claims that were made for pods, by the last lines about these."""
    _shown: list[tuple[LostLine, WriteSpan]] = field(default_factory=list)
    """Lines about pods that come too late or never, and when they were written."""
    _has_reports: bool = False
    _ends_at: Instant = Instant(0)
    _longest: int = 0
    lost: list[WriteSpan] = field(default_factory=list)
    """When the lines were written that `found` gave."""

    def note(self, event: Event, known: Instant) -> None:
        """Processes an event that others could see from instant `known` on."""
        if not event.is_about_object:
            return
        self._ends_at = max(self._ends_at, known)
        origin = event.stamp.origin
        if origin is not None and origin.asked:
            self._longest = max(self._longest, origin.answered - origin.asked)
        self._note_acts(event, known)
        key, is_end = event.key, event.type is EventType.OBJECT_DELETED
        if key.resource == "resourceclaims":
            self._unmade[key] = None
            entry = meta.annotation(event.object, well_known.POD_CLAIM_NAME)
            self._made.update(((owner.uid, entry), key) for owner in meta.owners(event.object))
            users = frozenset() if is_end else frozenset(consumers(event.object))
            self._reserved[event.uid] = users
            self._has_reports |= bool(dra.device_statuses(event.object))
        elif key.resource == "pods":
            self._named[event.uid] = _named(event)
        if is_end:
            self._living.pop(key, None)
            self._ended[event.uid] = known
            self._gone[key] = Instant(min(known, (origin and origin.asked) or known))
            return
        for owner in meta.owners(event.object):
            self._owned[owner.uid].add((key, event.uid))
        self._key_of[event.uid] = key
        self._unseen.pop(event.uid, None)
        self._unseen.pop(key, None)
        is_finished = key.resource == "pods" and core.is_finished(event.object)
        if is_finished:
            self._ended.setdefault(event.uid, known)
        self._living[key] = _Living(
            key,
            event.uid,
            known,
            is_run=is_finished or (key.resource == "pods" and bool(core.node_name(event.object))),
            is_ending=is_finished or meta.is_deleting(event.object),
            is_allocated=dra.allocation(event.object) is not None,
            is_protected=CLAIM_FINALIZER in meta.finalizers(event.object),
            given_by=self._given_to_nobody(event),
            is_ready=_is_ready(event),
        )

    def _given_to_nobody(self, event: Event) -> str:
        """The user that allocates a claim in a line and reserves it for nobody, or empty.

        The scheduler writes both at once, and takes back a reservation by a patch.
        """
        was = self._living.get(event.key)
        if was is None or dra.allocation(event.object) is None or consumers(event.object):
            return ""
        if was.is_allocated:
            return was.given_by
        return event.stamp.actor.user if event.stamp.verb == "update" else ""

    def _note_acts(self, event: Event, known: Instant) -> None:
        """Notes the objects whose last known state is no reason for a write of a controller."""
        user, is_end = event.stamp.actor.user, event.type is EventType.OBJECT_DELETED
        origin = event.stamp.origin
        act = _Act(user, Instant(min(known, (origin and origin.asked) or known)), known)
        if user in MANAGED and event.key.resource == "resourceclaims" and not is_end:
            gone = self._reserved.get(event.uid, frozenset()) - consumers(event.object).keys()
            self._note_ends(gone, act)
        if user in MANAGED and event.stamp.verb == "delete":
            self._note_ends((owner.uid for owner in meta.owners(event.object)), act)
        is_made = event.type is EventType.OBJECT_CREATED
        if user in MANAGED and is_made and event.key.resource in ("resourceclaims", "events"):
            self._note_unseen(event, act)
        if event.key.resource == "pods" and not is_end:
            if user in MANAGED:
                self._note_names(event, act)
            elif user == SCHEDULER:
                self._note_named_before(event, act)
        if event.key.resource == "pods" and not is_end and core.node_name(event.object):
            if event.uid not in self._bound and event.stamp.verb == "create":
                self._note_binding(event, act)
            self._bound.add(event.uid)

    def _note_names(self, event: Event, act: _Act) -> None:
        """Notes the claims that the claim controller names in a pod, for which it made them.

        Parity: controllers.md 2.2.
        """
        last = self._living.get(event.key)
        if last is None or last.uid != event.uid:
            return
        for entry, name in pods.facts(event.object).generated:
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, event.key.namespace, name or "")
            if name:
                span = WriteSpan(last.written, act.sent)
                self._unmade.setdefault(key, _NamedUnseen(event.key, event.uid, entry, span))

    def _note_unseen(self, event: Event, act: _Act) -> None:
        """Notes the pod of a claim that is made, or the node of an Event, without a line before.

        The answer to the creation of the pod or node may come when the recording has ended. Where
        another object of the name is there, its removal would lack a line, too.
        """
        if event.key.resource == "events":
            about: meta.Owner | meta.Reference = core.event_object(event.object).subject
        else:
            about = next(iter(meta.owners(event.object)), meta.Owner())
        if about.kind not in _UNSEEN or about.uid in self._key_of or about.uid in self._ended:
            return
        namespace = "" if about.kind == "Node" else event.key.namespace
        key = ObjectKey("", _UNSEEN[about.kind], namespace, about.name)
        if key not in self._living:
            unseen = _Unseen(key, about.uid, event.key, event.uid, act)
            self._unseen.setdefault(about.uid, unseen)

    def _note_named_before(self, event: Event, act: _Act) -> None:
        """Notes what a line of the scheduler shows before a line about it: a claim, or its name.

        The scheduler names no claim that is made from a template, and has no node for a pod whose
        claims are not there: a line about the pod or the claim is lost, or comes when the recording
        has ended. Parity: controllers.md 2.2, 3.2.
        """
        pod = pods.facts(event.object)
        entry_of = {name: entry for entry, name in pod.generated}
        for name in (each.name for each in pods.named_claims(pod) if _has_place(event.object)):
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, event.key.namespace, name or "")
            if key not in self._living:
                unseen = _Unseen(key, "", event.key, event.uid, act, entry_of.get(name, ""))
                self._unseen.setdefault(key, unseen)
        last, named = self._living.get(event.key), _named(event)
        if last is not None and last.uid == event.uid and named - self._named[event.uid]:
            span = WriteSpan(last.written, act.sent)
            self._shown.append((LostLine(event.key, event.uid, span.since), span))

    def _note_ends(self, uids: Iterable[str], act: _Act) -> None:
        """Notes objects for whose end a controller acted, and how long after the recorded one.

        The claim controller acts for pods that are finished, too, the collector does not. A pod
        with a node ends in several lines, those of its kubelet: a single lost line leaves others,
        which show at least that it is ending. A deletion without a grace period is one line, which
        may be answered when the recording has ended.
        """
        for uid in uids:
            each = self._living.get(self._key_of.get(uid, _NO_KEY))
            is_there = each is not None and each.uid == uid
            if each is not None and is_there and _may_have_ended(each, act.user):
                each.note_act(act)
            elif uid in self._ended:
                self._note_lag(act, self._ended[uid])
            elif each is not None and is_there:
                each.note_act(act, is_at_end=True)

    def _note_binding(self, binding: Event, act: _Act) -> None:
        """Notes the claims of a pod that is bound, which are allocated and reserved for it or not.

        The scheduler adds the finalizer in a write before that of the allocation. It waits until
        drivers report the binding conditions of the devices. Without any report before, the policy
        has left them out, or the scheduler did not wait. Parity: controllers.md 3.7, 3.8.
        """
        pod = pods.facts(binding.object)
        for name in (*(each.name for each in pods.named_claims(pod)), pod.extended_claim):
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, pod.namespace, name or "")
            each = self._living.get(key)
            if each is not None and each.is_allocated:
                if binding.uid not in self._reserved.get(each.uid, ()):
                    if each.given_by != act.user:
                        each.note_act(act)
                elif each.is_ready:
                    self._note_lag(act, each.written)
                elif self._has_reports:
                    each.note_act(act)
            elif each is not None:
                each.note_act(act, lines=1 if each.is_protected else 2)

    def _note_lag(self, act: _Act, reason: Instant) -> None:
        self._slowest[act.user] = max(self._slowest.get(act.user, 0), act.known - reason)

    def _lost_in(self, each: _Living) -> WriteSpan | None:
        """The time of the write between the last line and the act that contradicts it, if any.

        A controller acts soon: as a rule no later than twice its slowest act with a reason.
        """
        act = each.changed_by
        if act is None:
            return None
        slowest = self._slowest.get(act.user)
        soon = 0 if slowest is None else act.known - tolerances.TABLE.times_slower * slowest
        return WriteSpan(Instant(max(each.written, soon)), act.sent)

    def _answered_within(self) -> int:
        """The time by which the answer to a write may follow the acts that it caused."""
        longest = tolerances.TABLE.times_slower * self._longest or CLOCK_TOLERANCE
        return min(IN_FLIGHT, longest)

    def has_ended(self, uid: str) -> bool:
        """Whether the recording has the end of an object: no later write is possible."""
        key = self._key_of.get(uid, _NO_KEY)
        return uid in self._key_of and key not in self._living

    def lost_lines(self, *, are_others_lost: bool) -> Iterator[LostLine]:
        """The objects with a lost last line, and all that they own; call it after the last event.

        What they own ends with them. That two lines in a row are lost is taken into account only
        if others are known to be lost. Each line leaves a version of its own.
        """
        living = [each for each in self._living.values() if each.changed_by is not None]
        for each in sorted(living, key=_acted):
            span = self._lost_in(each)
            if span is None or (each.lines > 1 and not are_others_lost):
                continue
            if each.is_at_end and self._ends_at - _acted(each) > self._answered_within():
                continue
            if not self._hides(span):
                continue
            since = span.since
            waiting, seen = [(each.key, each.uid)], {each.uid}
            while waiting:
                key, uid = waiting.pop()
                yield LostLine(key, uid, since, keeps_devices=each.is_allocated)
                more = [(key, uid) for key, uid in self._owned[uid] if uid not in seen]
                seen.update(uid for _, uid in more)
                waiting += more
        yield from self._lost_creations()
        yield from self._answered_later()

    def _answered_later(self) -> Iterator[LostLine]:
        """The objects whose writes the last ones of others show, and what was made for them.

        Lines stand in the order of answers: those of these writes may come after the end. If there
        was another claim for the same entry, the name is wrong, and nothing is lost.
        """
        for line, span in self._shown:
            if self._ends_at - span.until <= IN_FLIGHT and self._hides(span):
                yield line
        for each in self._unseen.values():
            other = self._made.get((each.made_uid, each.entry), _NO_KEY)
            if each.entry and self._was_there(other, each.act):
                continue
            span = WriteSpan(Instant(each.act.sent - IN_FLIGHT), each.act.known)
            if self._ends_at - each.act.known <= IN_FLIGHT and self._hides(span):
                yield LostLine(each.key, each.uid, span.since)
                yield LostLine(each.made, each.made_uid, span.since)

    def _was_there(self, key: ObjectKey, act: _Act) -> bool:
        """Whether an object was not gone yet at an act, however much clocks differ."""
        gone = self._gone.get(key, _FIRST)
        return key in self._living or gone > act.known + CLOCK_TOLERANCE

    def _hides(self, span: WriteSpan) -> bool:
        """Whether one more line may be lost in a time; notes it if so."""
        if not self.versions.may_hide(*span, self.lost):
            return False
        self.lost.append(span)
        return True

    def _lost_creations(self) -> Iterator[LostLine]:
        """The claims that were made and named, and that no line is about; and their pods.

        If a line shows a claim for the same entry, the name is wrong, and nothing is lost.
        """
        for key, named in self._unmade.items():
            if named is None or (named.uid, named.entry) in self._made:
                continue
            if self._hides(named.span):
                yield LostLine(key, "", named.span.since)
                yield LostLine(named.pod, named.uid, named.span.since, keeps_devices=True)


def _has_place(pod: JsonView) -> bool:
    """Whether a scheduler has a node for a pod."""
    return bool(core.nominated_node_name(pod) or core.node_name(pod))


def _named(event: Event) -> frozenset[str]:
    """The names of the claims that were made for a pod."""
    return frozenset(name for _, name in pods.facts(event.object).generated if name)


def _is_ready(event: Event) -> bool:
    """Whether drivers have reported the binding conditions of all devices of a claim."""
    allocation = dra.allocation(event.object)
    if allocation is None or not binding_conditions.has_conditions(allocation):
        return True
    now = event.stamp.time
    look = binding_conditions.look(event.object, allocation, now, binding_conditions.TIMEOUT)
    return look.readiness is BindingReadiness.READY


def _acted(each: _Living) -> Instant:
    """The instant at which a controller acted upon another state of an object."""
    return _NEVER if each.changed_by is None else each.changed_by.known


def _may_have_ended(each: _Living, user: str) -> bool:
    """Whether one more line may have ended the object, so that this user acted upon its end."""
    return not each.is_run or (user == COLLECTOR and each.is_ending)


_UNSEEN = {"Pod": "pods", "Node": "nodes"}
"""The resources of the kinds for which controllers act as soon as an object is made."""

_FIRST, _NEVER = Instant(0), Instant(2**62)
_NO_KEY = ObjectKey("", "", "", "")
