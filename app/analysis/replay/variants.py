"""Variants of a decide replay: how one run differs from the plain one.

A hypothesis about a difference is a variant with one change: a switch of the control plane, the
order of two acts about one object, or the instant of an attempt. A variant does not determine the
outcome; a run does, and only an outcome equal to the recorded one proves the hypothesis.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.analysis.replay.acts import Act
from app.analysis.replay.traces import is_event_object
from app.domain.log import Event, ObjectKey
from app.domain.values.fields import core
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.timestamps import Instant

_QUEUE = "claims/pods"
"""The queue of the pods that the claim controller looks at."""

PodUid: TypeAlias = str
LaterAct: TypeAlias = Callable[[tuple[str, tuple[str, ...]], Instant], Act | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Settings of the control plane that differ from those of the replay, by name, with value."""

    profile: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    quirks: Mapping[str, bool] = field(default_factory=dict)

    def __or__(self, others: "Switches") -> "Switches":
        """Both sets of switches; where both set the same one, `others` has precedence."""
        return Switches(
            profile=others.profile or self.profile,
            gates={**self.gates, **others.gates},
            quirks={**self.quirks, **others.quirks},
        )

    def words(self) -> Iterator[str]:
        """Each switch as text: `profile 1.36`, `gate NAME=true` or `quirk NAME=on`."""
        if self.profile:
            yield f"profile {self.profile}"
        yield from (f"gate {name}={str(is_on).lower()}" for name, is_on in self.gates.items())
        yield from (
            f"quirk {name}={'on' if is_on else 'off'}" for name, is_on in self.quirks.items()
        )

    def with_quirks(self, **quirks: bool) -> "Switches":
        """These switches with additional quirks."""
        return Switches(profile=self.profile, gates=self.gates, quirks={**self.quirks, **quirks})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Succession:
    """The end of a scheduler that had a node for a pod, of which its successor knew nothing.

    It came between its last write (`since`) and the first one of its successor (`until`).
    """

    pod: PodUid
    since: Instant
    until: Instant


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Hold:
    """A time, from `since` to before `until`, in which a pod is not tried."""

    pod: PodUid
    since: Instant = Instant(0)
    until: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One run.

    - `is_paced`: controllers act at the recorded instants; otherwise as soon as they can.
    - `resyncs`: a finished pod is synced only when the recording shows it, and a claim at each
      recorded act.
    - `tried`: pods that are tried at the instant of each recorded attempt, without any other wait.
    - `apart`: pods whose conditions are of attempts of their own, where the instants alone would
      make them those of attempts that a repeated report shows.
    - `waited`: pods whose placement may have waited longer than the client's usual limit makes it
      wait, as far as the order of requests allows.
    - `is_limited`: the same for all placements: the client's limit was lower than the usual one.
    - `skipped`: pods that are tried between the two revisions of their removal.
    - `untried`: pods that are tried only when the recording shows it; in a changed world also
      when they can be placed there alone.
    - `held`: pods that are not tried in a time.
    - `lost`: pods whose placement was under way when the scheduler was replaced, and which the next
      one tried anew.
    - `reported`: pods about which the scheduler's Events are written when they were recorded, not
      with the attempt or the binding.
    - `repeated`: pods about which repeated reports of the scheduler are written when they were
      recorded, because the scheduler's client resends a report that was too early.
    - `joined`: pods whose reports are merged into one that still waits to be written, when both
      attempts saw the same version of the pod.
    - `returned`: claims whose reservation the scheduler removes when that was recorded.
    - `unanswered`: pods whose nomination arrives after their deletion.
    - `hidden`: pods that are placed as soon as possible once no recorded attempt is left, each with
      the instant by which it and the objects made for it were deleted: nothing of it is written.
    - `unreported`: pods for which the conditions of the last attempts arrive after their deletion:
      no more conditions are written than were recorded.
    - `counted`: rules whose status has the counts of the instant at which its write was requested;
      `counted_first`: of the creation of the rule; `counted_last`: of the answer to the write.
    - `begun_anew`: rules that a new process looks at when it begins, as a recorded act shows.
    - `collected_first`: objects that the garbage collector handles as soon as it may;
      `collected_last`: objects that it leaves to the claim controller; `released_first`,
      `released_last`: the same for claims and the claim controller. `handed_over`: claims whose
      finalizer the claim controller removes, and which it leaves to the collector after that.
    - `removed_first`: claims that the claim controller removes at the instant of its request.
    - `removed_soon`: objects whose removal from outside comes earlier, by the difference of clocks.
    - `unsynced`: pods that the claim controller does not sync, and rules that their controller does
      not look at.
    - `seen_late`: pods whose end the claim controller sees a while later.
    - `remade`: finished pods, each with the number of claims that its entries got from several
      processes of the claim controller.
    - `templates_seen`: templates, each with a pod and the instant from which the claim controller
      sees it when it looks at that pod.
    - `uncollected`: pods that the pod garbage collector does not remove.
    - `postponed`: objects whose removal from outside is applied a second later, where a source has
      only whole seconds.
    - `removed_last`: the same, just before the next recorded write, where a source has no time.
    - `written_last`: nodes about which the node controller writes just before the next recorded
      write, where a source has no time.
    - `unheard`: nodes whose status is taken as recorded where the node controller wrote it: it is
      derived from Leases, which recordings leave out.
    - `unstarted`: controllers, by the short names of their users, that start after the end.
      `absent`: the same of those that were not at work at all.
    - `imposed`: (author, uid) of controllers whose writes about an object are taken as recorded.
    """

    switches: Switches = field(default_factory=Switches)
    is_paced: bool = True
    resyncs: bool = False
    tried: frozenset[PodUid] = frozenset()
    apart: frozenset[PodUid] = frozenset()
    waited: frozenset[PodUid] = frozenset()
    is_limited: bool = False
    skipped: frozenset[PodUid] = frozenset()
    untried: frozenset[PodUid] = frozenset()
    held: frozenset[Hold] = frozenset()
    lost: frozenset[Succession] = frozenset()
    reported: frozenset[PodUid] = frozenset()
    repeated: frozenset[PodUid] = frozenset()
    joined: frozenset[PodUid] = frozenset()
    returned: frozenset[ObjectKey] = frozenset()
    unanswered: frozenset[PodUid] = frozenset()
    hidden: frozenset[tuple[PodUid, Instant]] = frozenset()
    unreported: frozenset[PodUid] = frozenset()
    counted: frozenset[str] = frozenset()
    counted_first: frozenset[str] = frozenset()
    counted_last: frozenset[str] = frozenset()
    begun_anew: frozenset[str] = frozenset()
    collected_first: frozenset[ObjectKey] = frozenset()
    collected_last: frozenset[ObjectKey] = frozenset()
    released_first: frozenset[ObjectKey] = frozenset()
    released_last: frozenset[ObjectKey] = frozenset()
    handed_over: frozenset[ObjectKey] = frozenset()
    removed_first: frozenset[ObjectKey] = frozenset()
    removed_soon: frozenset[str] = frozenset()
    unsynced: frozenset[ObjectKey] = frozenset()
    seen_late: frozenset[ObjectKey] = frozenset()
    remade: frozenset[tuple[PodUid, int]] = frozenset()
    templates_seen: frozenset[tuple[ObjectKey, ObjectKey, Instant]] = frozenset()
    uncollected: frozenset[ObjectKey] = frozenset()
    postponed: frozenset[str] = frozenset()
    removed_last: frozenset[str] = frozenset()
    written_last: frozenset[str] = frozenset()
    unheard: frozenset[str] = frozenset()
    unstarted: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    imposed: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_of_writes(self) -> bool:
        """Whether writes of plans are left out, or done at another instant."""
        late = self.reported or self.repeated or self.returned
        return bool(late or self.unanswered or self.unreported)


def _no_act(_place: object, _after: Instant) -> Act | None:
    return None


class CacheOfClaims:
    """The `ClaimsCache` of a run; `later_act` is that of the recorded pace."""

    def __init__(self, variant: Variant, later_act: LaterAct = _no_act) -> None:
        self._later_act = later_act
        self.tells_looks = variant.resyncs
        self._seen_late = variant.seen_late
        self._remade = dict(sorted(variant.remade))
        self._templates = {
            (template, (pod.namespace, pod.name)): until
            for template, pod, until in sorted(variant.templates_seen)
        }

    def sees_end_late(self, event: Event) -> bool:
        """Whether the variant names the pod, or looks at finished ones when that was recorded."""
        return event.key in self._seen_late or (self.tells_looks and core.is_finished(event.object))

    def claims_max(self, pod: Uid) -> int:
        """The most claims that a finished pod gets for an entry, two without other knowledge."""
        return self._remade.get(pod, 2)

    def template_seen(self, template: ObjectKey, pod: NamespacedName) -> Instant | None:
        """The instant from which the variant lets the controller see a template for a pod.

        It saw the template when it asked for the claim, which is before the claim is there.
        """
        made = self._templates.get((template, pod))
        return None if made is None else self._asked(pod, made)

    def failed_look(self, pod: NamespacedName, now: Instant) -> Instant | None:
        """The instant of a look at a pod whose template the controller did not see yet.

        Its report is sent beside the next look, and may be stored after what that one made.
        """
        for (_, place), made in self._templates.items():
            if place == pod:
                failed = self._reported(pod, made)
                return failed if failed is not None and now <= failed else None
        return None

    def _asked(self, pod: NamespacedName, made: Instant) -> Instant:
        for act in self._acts(pod):
            if act.event.stamp.time == made and not is_event_object(act.event.key):
                return act.requested
        return made

    def _reported(self, pod: NamespacedName, made: Instant) -> Instant | None:
        """The request for the first report, if it came before that for what was made."""
        for act in self._acts(pod):
            if is_event_object(act.event.key):
                return act.requested if act.requested < self._asked(pod, made) else None
        return None

    def _acts(self, pod: NamespacedName) -> Iterator[Act]:
        at = Instant(0)
        while (act := self._later_act((_QUEUE, pod), at)) is not None:
            yield act
            at = act.known
