"""The recorded pace of each variant, learned once for all runs with it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property, partial

from app.analysis.replay.acts import Act, refusal_of, version_of
from app.analysis.replay.attempts import leave_under_way
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.facts import consumers
from app.analysis.replay.instants import seen_from
from app.analysis.replay.lags import Refused
from app.analysis.replay.lateness import Process, Timers
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.recording import Recording
from app.analysis.replay.variants import Succession, Variant
from app.analysis.replay.writers import MANAGED
from app.domain.controllers.pods import facts_of
from app.domain.log import Event, EventType
from app.domain.objects.kinds import extended_resources
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import Instant

_MANAGER = "system:kube-controller-manager"

_WRITTEN = (api_resources.PODS, api_resources.RESOURCE_CLAIMS)


_Place = tuple[Set[str], Set[str], Set[Succession], Set[str]]


class Paces:
    """The paces of one recording from its `beginning` on.

    `names` maps user names to controllers.
    """

    def __init__(
        self,
        recording: Recording,
        names: Mapping[str, Sequence[str]],
        beginning: Beginning | None = None,
    ) -> None:
        self._recording = recording
        self._names = names
        self._beginning = beginning
        self._learned: dict[_Place, RecordedPace] = {}

    def of(self, variant: Variant) -> RecordedPace:
        """The pace of a variant, at its beginning."""
        waited = frozenset(self._recording.trace.keys) if variant.is_limited else variant.waited
        place = variant.apart, waited, variant.lost, variant.written_last
        learned = self._learned.get(place)
        if learned is None:
            learned = self._learned[place] = self._learn(*place)
        return learned.afresh()

    @cached_property
    def timers(self) -> Timers:
        """The recorded timers that begin with a write."""
        marked: dict[str, Instant] = {}
        for write in self._recording.inputs:
            event = write.event
            if event.key[:2] == api_resources.NAMESPACES and meta.deletion_timestamp(event.object):
                # The clock that dates the mark may be ahead of that of the acts.
                seen = seen_from(event, write.time)
                marked.setdefault(event.uid, Instant(seen - self._recording.skew))
        ended: dict[str, list[Instant]] = defaultdict(list)
        for act in self._recording.acts:
            if "scheduling" in self._names.get(act.user, ()):
                for pod in _placed_or_given_up(act):
                    ended[pod].append(act.known)
        removed = self._recording.removed
        gone = {uid: removed[uid] for uid in marked if uid in removed}
        return Timers(marked=marked, ended=gone, waits_ended=ended, processes=self._processes())

    def _processes(self) -> Mapping[str, Process]:
        """The processes of the controllers; one runs all that the manager does."""
        return {
            name: process
            for user, process in self.by_user.items()
            for name in self._names.get(user, ())
        }

    @cached_property
    def by_user(self) -> Mapping[str, Process]:
        """The processes by the users of controllers.

        A refused request shows that it is at work, too.
        """
        written: dict[str, list[Instant]] = defaultdict(list)
        for act in self._recording.acts:
            written[_running(act.user)].append(act.requested)
        for refused in self._recording.refusals:
            user = _running(refused.user)
            if user in written:
                written[user].append(refused.at)
        leases = self._recording.overuse.handovers
        running = {
            user: Process(
                instants, partial(leases.is_one_process, user), partial(leases.is_led, user)
            )
            for user, instants in written.items()
        }
        return {user: running[_running(user)] for user in self._names if _running(user) in running}

    @cached_property
    def _refused(self) -> Refused:
        """The refused requests of the scheduler, whose Events and leases have other clients.

        Where none is recorded, an attempt for each pod that was deleted without a node may have led
        to some. A history of redra lacks none: nothing waits for a limit there.
        """
        recording = self._recording
        trace = recording.trace
        is_ours = any(each.event.stamp.origin is None for each in recording.acts)
        if is_ours or any(each.is_rejected for each in recording.refusals):
            seen = (
                each.at
                for each in recording.refusals
                if each.key[:2] in _WRITTEN and "scheduling" in self._names.get(each.user, ())
            )
            return Refused(seen=tuple(seen))
        # Where an earlier moment is the end, what comes after it is in another trace.
        keys = {**recording.later.keys, **trace.keys}
        placed = recording.later.node_of.keys() | trace.node_of.keys()
        deleted = (
            at
            for uid, at in recording.removed.items()
            if uid in keys and keys[uid][:2] == api_resources.PODS and uid not in placed
        )
        return Refused(deleted=tuple(deleted))

    @cached_property
    def _stated(self) -> Mapping[str, str]:
        """The messages of pods that were refused before the beginning.

        A later attempt with the same reason writes nothing.
        """
        begun = () if self._beginning is None else self._beginning.objects
        pods = (each for each in begun if each.key[:2] == api_resources.PODS)
        return {each.uid: message for each in pods if (message := refusal_of(each.object))}

    @cached_property
    def _entered(self) -> Mapping[str, int]:
        """The versions, by uid, without which pods could not be tried: their own and their claims'.

        Only creations that a request shows count, and of each claim the first one. The scheduler
        itself makes claims for extended resources, after its choice: these do not count.
        """
        recording = self._recording
        events = [each.event for each in recording.inputs]
        events += (act.event for act in recording.acts)
        made = [event for event in events if _is_creation(event)]
        claims: dict[tuple[str, str], int] = {}
        for event in made:
            if event.key[:2] == api_resources.RESOURCE_CLAIMS:
                if extended_resources.ANNOTATION in meta.annotations_as_stored(event.object):
                    continue
                names = [(event.key.namespace, event.key.name)]
                names += [("", owner)] if (owner := meta.controller_uid(event.object)) else []
                for name in names:
                    claims[name] = min(version_of(event), claims.get(name, version_of(event)))
        entered: dict[str, int] = {}
        for event in made:
            if event.key[:2] == api_resources.PODS:
                pod = facts_of(event)
                needed = [("", event.uid), *((pod.namespace, each.claim) for each in pod.entries)]
                versions = (claims.get(name, 0) for name in needed)
                entered[event.uid] = max(version_of(event), *versions)
        return entered

    @cached_property
    def _made(self) -> Mapping[str, Instant]:
        """The instants since when claims are there in a run, by uid.

        The scheduler itself makes claims for extended resources, after its choice: these are left
        out.
        """
        recording = self._recording
        events = [(each.event, each.time) for each in recording.inputs]
        events += ((act.event, act.known) for act in recording.acts)
        return {
            event.uid: known
            for event, known in events
            if event.key[:2] == api_resources.RESOURCE_CLAIMS
            and event.type is EventType.OBJECT_CREATED
            and extended_resources.ANNOTATION not in meta.annotations_as_stored(event.object)
        }

    def _learn(
        self, apart: Set[str], waited: Set[str], lost: Set[Succession], late: Set[str]
    ) -> RecordedPace:
        recording = self._recording
        pace = RecordedPace(recording.node_reasons, self._entered, lost, self._made)
        pace.learn(
            (self._late(each) if each.event.uid in late else each for each in recording.acts),
            self._names,
            recording.removed,
            apart=apart,
            waited=waited,
            skew=recording.skew,
            decided=recording.attempted,
            refused=self._refused,
            stated=self._stated,
        )
        if not recording.is_over:
            leave_under_way(map(pace.attempts, recording.trace.keys), recording.last)
        return pace

    def _late(self, act: Act) -> Act:
        """The act about a node as late as its source, which has no time for it, allows."""
        last = self._recording.undated.nodes.get((act.event.uid, act.known), act.known)
        return replace(act, known=last)


def _running(user: str) -> str:
    """The user of the process that runs the controller of a user, and that renews its Lease."""
    return _MANAGER if user in MANAGED else user


def _is_creation(event: Event) -> bool:
    """Whether an event is the creation that a client asked for; bindings are created, too."""
    return event.type is EventType.OBJECT_CREATED and event.stamp.verb == "create"


def _placed_or_given_up(act: Act) -> Iterable[str]:
    """The pods (uids) that a write of the scheduler binds, or whose reservation it takes back."""
    event, before = act.event, act.before or {}
    if event.key[:2] == api_resources.RESOURCE_CLAIMS:
        return consumers(before).keys() - consumers(event.object).keys()
    is_bound = event.key[:2] == api_resources.PODS and not core.node_name(before)
    return (event.uid,) if is_bound and core.node_name(event.object) else ()
