"""The pace of a recording: when its controllers acted, without what they decided.

In a real control plane the order of racing acts is arbitrary. It depends on workers, on rate limits
of 20 and 50 requests a second, on back-off with jitter and on late caches. A decide replay takes
these instants from the recording, as it takes names. A pod is not tried before its recorded
attempt, and a claim is not created, released or collected before the recorded act. The outcome is
decided here. Acts without a recorded counterpart are made a little later than they could be.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import replace
from types import MappingProxyType

from app.analysis.replay import tolerances
from app.analysis.replay.acts import (
    Act,
    DecidedAttempt,
    QueueKey,
    keys_of,
    refusal_of,
    report_of,
    version_number,
    version_of,
)
from app.analysis.replay.attempts import (
    Placing,
    PodCourse,
    PodTries,
    Try,
    attempts_decided,
    attempts_of,
    divided,
    waits_of,
)
from app.analysis.replay.facts import consumers
from app.analysis.replay.instants import has_version, is_derived
from app.analysis.replay.lags import Refused, Waits
from app.analysis.replay.traces import is_event_object
from app.analysis.replay.variants import Succession
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.nodes import readiness
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.log import EventType
from app.domain.values import json_tree
from app.domain.values.fields import core, dra, meta
from app.domain.values.timestamps import Instant


class RecordedPace:
    """The recorded instants by queue and key; `not_before` implements the `Pace` of reconcilers.

    `reasons` has the instants at which nodes got other reasons for their taints and labels;
    `entered` the versions without which the scheduler could try no pod: the last object made.
    `lost` are placements as in a variant. `made` are the instants, by uid, since when claims are
    there: no attempt that writes one was earlier.
    """

    def __init__(
        self,
        reasons: Mapping[str, Sequence[Instant]] = MappingProxyType({}),
        entered: Mapping[str, int] = MappingProxyType({}),
        lost: Iterable[Succession] = (),
        made: Mapping[str, Instant] = MappingProxyType({}),
    ) -> None:
        self._acts: dict[QueueKey, list[Instant]] = defaultdict(list)
        self._noted: dict[tuple[QueueKey, Instant], Act] = {}
        self._tries: dict[str, PodTries] = defaultdict(PodTries)
        self._writes: list[Instant] = []
        self.waits, self._coarse, self._skew = Waits((), ()), 0, 0
        self._freed: dict[str, list[Instant]] = defaultdict(list)
        self._made_for: dict[str, list[str]] = defaultdict(list)
        self._pods: dict[str, PodCourse] = {}
        self._passed: dict[QueueKey, Instant] = {}
        self._last: dict[QueueKey, Act] = {}
        self.stored_at: Instant | None = None
        self._unseen: dict[QueueKey, Instant] = {}
        self._reasons, self._entered, self._lost = reasons, entered, sorted(lost)
        self._made = made

    def learn(
        self,
        acts: Iterable[Act],
        names: Mapping[str, Sequence[str]],
        removed: Mapping[str, Instant],
        *,
        apart: Set[str] = frozenset(),
        waited: Set[str] = frozenset(),
        skew: int = 0,
        decided: Mapping[str, Sequence[DecidedAttempt]] = MappingProxyType({}),
        refused: Refused = Refused(),
        stated: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Learns the acts of controllers; `names` maps user names to controllers.

        `removed` has the instants at which pods were deleted: an attempt whose claims were written
        afterwards was made before. `apart` and `waited` are pods as in a variant. Clocks differ by
        `skew`. `decided` are recorded decisions about attempts, also such that wrote nothing,
        and `refused` the scheduler's requests that were refused. `stated` has the messages that
        conditions of pods had where the recording was entered.
        """
        for act in acts:
            self._learn_freed(act)
            roles = names.get(act.user, ())
            if "scheduling" in roles:
                self._learn_try(act)
            elif "claims" in roles:
                self._learn_claims(act)
            elif "garbage" in roles:
                self._note(("garbage", tuple(act.event.key)), act)
                if act.is_guessed and act.event.type is EventType.OBJECT_DELETED:
                    # The claim controller may have deleted it, too.
                    self._learn_claims(act)
            else:
                for place in keys_of(act, roles):
                    self._note(place, act)
        self._note_freed()
        is_coarse = 2 * self._coarse > len(self._writes)
        self._skew = skew
        slack = tolerances.TABLE.coarse if is_coarse else skew
        waits = self.waits = waits_of(self._tries, self._writes, replace(refused, slack=slack))
        if is_coarse:
            self._note_order()
        for each in self._lost:
            tries = self._tries[each.pod]
            tries.placings = divided(tries.placings, each.until)
        for uid in dict.fromkeys((*self._tries, *decided)):
            tries, gone = self._tries[uid], removed.get(uid)
            tries.stated = stated.get(uid, "")
            attempts = attempts_decided(decided.get(uid, ()), tries)
            if not attempts:
                attempts = attempts_of(
                    tries, waits, gone, slack, are_apart=uid in apart, have_waited=uid in waited
                )
            if gone is not None:
                self._cut_short(uid, attempts, gone, removed)
            self._pods[uid] = PodCourse(attempts)
        for instants in self._acts.values():
            instants.sort()

    def afresh(self) -> "RecordedPace":
        """The pace with what this one has learned, at its beginning."""
        pace = copy(self)
        pace._pods = {uid: PodCourse(course.tries) for uid, course in self._pods.items()}
        pace._passed, pace._unseen, pace.stored_at = {}, {}, None
        return pace

    def _cut_short(
        self, uid: str, attempts: Sequence[Try], gone: Instant, removed: Mapping[str, Instant]
    ) -> None:
        """Notes that a pod was deleted before its last placement was written.

        Allocations are written even if the pod is deleted. If they were not, the claims made for
        the pod were deleted, too.
        """
        placing = attempts[-1].placing if attempts else None
        if placing is None or placing.bind_at is not None:
            return
        claims = () if placing.claims_at is not None else self._made_for.get(uid, ())
        placing.cut_at = max([gone, *(removed[claim] for claim in claims if claim in removed)])

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The instant of the next recorded act for the key, else a little after the first call."""
        place = (queue, key)
        if queue == QUEUE:
            due = self._try_not_before(key[0], now)
            if due is not None:
                return due
            course = self._pods.get(key[0])
            strayed = course is None or course.strayed
            return self.unseen_due(
                place, now, tolerances.TABLE.unseen if strayed else tolerances.TABLE.unseen_try
            )
        due = self.next_act(queue, key, now)
        if queue in (readiness.SAID, readiness.TAINTS, readiness.LABELS):
            return now if due is None else self._act_about_node(key[0], now, due)
        if due is not None:
            return due
        # Others may have deleted the recorded contents, but no later than an act reports it.
        is_content = queue == namespaces.CONTENT
        if is_content and (act := self.later_act((namespaces.END, (key[0],)), now)) is not None:
            return act.begun
        late = tolerances.TABLE.unseen_try if queue == "eviction" else tolerances.TABLE.unseen
        return self.unseen_due(
            place, now, pod_gc.longest_wait(key) if queue == pod_gc.NAME else late
        )

    def pass_over(self, namespace: str, now: Instant) -> None:
        """Counts all acts about a namespace as made: another one of its name begins."""
        for place in self._acts:
            if place[0].partition("/")[0] == namespaces.NAME and place[1][0] == namespace:
                self._passed[place] = max(now, self._passed.get(place, now))

    def _act_about_node(self, node: str, now: Instant, due: Instant) -> Instant:
        """The recorded act, unless that is for a later reason: what soon ends may leave no act."""
        changes = self._reasons.get(node, ())
        number = bisect_right(changes, now)
        if number == len(changes) or changes[number] >= due:
            return due
        is_soon = changes[number] - now <= tolerances.TABLE.act_after
        return Instant(changes[number] + 1) if is_soon else now

    def next_act(
        self,
        queue: str,
        key: tuple[str, ...],
        now: Instant,
        *,
        one_by_one: bool = False,
        as_asked: bool = False,
        as_answered: bool = False,
    ) -> Instant | None:
        """The next recorded act for the key; None when the recording has no more.

        If `now` is later than the act, all acts up to `now` count as made, unless `one_by_one`.
        With `as_asked` the instant is that of the request, or of the write before it about its
        object: everything that the act saw existed by then. With `as_answered` it is that of the
        answer: the act may have seen writes before it whose order is a guess.
        """
        place = (queue, key)
        instants = self._acts.get(place, ())
        number = bisect_right(instants, self._passed.get(place, Instant(-1)))
        if number == len(instants):
            return None
        known = instants[number]
        act = self._noted[place, known]
        due = act.requested if act.seen is not None else known
        due = self._asked(act) if as_asked else due
        due = act.answered if as_answered else due
        if due <= now:
            is_single = one_by_one or act.event.stamp.observed > 0
            self._passed[place] = known if is_single else now
            if known > now:
                self.stored_at = known if self.stored_at is None else min(known, self.stored_at)
        return due

    def _asked(self, act: Act) -> Instant:
        """The soonest instant of an act: a write without a version may have been dated late."""
        return act.soonest(0 if has_version(act.event) else self._skew)

    def act_at(self, queue: str, key: tuple[str, ...], known: Instant) -> Act | None:
        """The recorded act for the key whose write others could see from the instant `known` on."""
        return self._noted.get(((queue, key), known))

    def first_attempt(self, pod: str) -> Try | None:
        """The first recorded attempt of a pod, until an attempt is made here; None after that."""
        course = self._pods.get(pod)
        tries = () if course is None or course.number else course.tries
        return tries[0] if tries else None

    def attempts(self, pod: str) -> Sequence[Try]:
        """The recorded attempts of a pod, in order."""
        course = self._pods.get(pod)
        return () if course is None else course.tries

    @property
    def paired_by_time(self) -> Set[str]:
        """The pods with a condition that only its instant assigns to a reported attempt."""
        tries = {uid: course.tries for uid, course in self._pods.items()}
        return {uid for uid, each in tries.items() if any(one.is_paired_by_time for one in each)}

    def next_attempt(self, pod: str) -> Try | None:
        """The first of the attempts left of the pod; None when all were made."""
        return next(iter(self.attempts_left(pod)), None)

    def attempts_left(self, pod: str) -> Sequence[Try]:
        """The recorded attempts of the pod that have not been made here yet, in order."""
        course = self._pods.get(pod)
        return () if course is None else course.tries[course.number :]

    def is_decided_before(self, pod: str, other: str) -> bool:
        """Whether versions prove that the pod's next placement was decided before the other's.

        Its first write was stored before the other pod, or a claim of that pod, was made.
        """
        placings = (each.placing for each in self.attempts_left(pod) if each.placing is not None)
        placing = next(placings, None)
        return placing is not None and 0 < placing.written < self._entered.get(other, 0)

    def stray(self, pod: str) -> None:
        """Notes an attempt that has no counterpart in the recording."""
        course = self._pods.get(pod)
        if course is not None:
            course.strayed, course.made, course.left_since = True, None, None

    def put_off(
        self, pod: str, tried: AttemptOutcome, now: Instant, *, is_patient: bool = True
    ) -> Instant | None:
        """The instant until which an attempt's result is deferred; None when the result counts.

        It counts if it equals the recorded outcome, or if the time is up (at once unless
        `is_patient`). This only finds the order among attempts at about the same instant. The
        outcome is decided here: if no instant gives the recorded result, the result at the last
        instant counts.
        """
        course = self._pods.get(pod)
        if course is None:
            return None
        if not tried.node:
            course.left_since = None
        if course.number >= len(course.tries):
            return course.leave(now) if tried.node else None
        wanted = course.begun(tried, now)
        is_alike = wanted.came_to(tried)
        if is_patient and not is_alike and now < wanted.last:
            return wanted.last
        if is_patient and not is_alike and tried.node and wanted.placing is None:
            until = course.leave(now)
            if until is not None:
                return until
        course.strayed |= not is_alike
        course.number += 1
        course.made, course.made_at = wanted, now
        course.left_since = None
        return None

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        """The pod version in the report of the recorded attempt; else the newest one, marked.

        It determines which reports form a series, and by that the instants of late writes. Versions
        of a run are counted otherwise than recorded ones, so one of each never means the same.
        """
        course = self._pods.get(pod)
        made = None if course is None or course.made_at != now else course.made
        return str(made.version) if made and made.version else f"{newest} of the run"

    def began_before(self, pod: str) -> Instant | None:
        """The earliest instant of the first successful attempt for a pod; None without one."""
        course = self._pods.get(pod)
        placed = (each.first for each in course.tries if each.placing) if course else ()
        return min(placed, default=None)

    def bind_delay(self, pod: str, now: Instant) -> tuple[Instant, Instant]:
        """The instants at which a pod placed now has its claims written and is bound.

        They are the recorded ones, shifted by the delay when the attempt is late.
        """
        course, table = self._pods.get(pod), tolerances.TABLE
        placing = None if course is None or course.made is None else course.made.placing
        if course is None or placing is None:
            return Instant(now + table.claims_after), Instant(now + table.bind_after)
        late = course.late = max(0, now - placing.began - table.sure_after)
        # Parts that are not recorded were not written before the pod was deleted.
        unwritten = Instant(0) if placing.cut_at is None else Instant(placing.cut_at + 1)
        claims_at, bind_at = placing.claims_at, placing.bind_at or placing.refused_at
        if claims_at is None and placing.refused_at is not None:
            claims_at = placing.refused_at
        elif claims_at is None:
            claims_at = Instant(placing.began + table.claims_after)
            if bind_at is not None:
                claims_at = min(claims_at, bind_at)
            claims_at = max(claims_at, unwritten)
        if bind_at is None:
            bind_at = Instant(claims_at + table.bind_after - table.claims_after)
            bind_at = max(bind_at, unwritten)
        return Instant(max(claims_at + late, now)), Instant(max(bind_at + late, now))

    def _try_not_before(self, pod: str, now: Instant) -> Instant | None:
        """The next recorded attempt; attempts that are already over are skipped."""
        course = self._pods.get(pod)
        if course is None:
            return None
        then = now - course.late
        while course.number + 1 < len(course.tries) and then > course.tries[course.number].last:
            course.number += 1
        return course.tries[course.number].first if course.number < len(course.tries) else None

    def later_act(self, place: QueueKey, now: Instant) -> Act | None:
        """The first later act for a key; None when the recording has none."""
        number = bisect_right(instants := self._acts.get(place, ()), now)
        if number == len(instants):
            return None
        return self._noted[place, instants[number]]

    def unseen_due(self, place: QueueKey, now: Instant, late: int) -> Instant:
        """The instant of an act that the recording does not show: so late after the first call."""
        due = self._unseen.setdefault(place, Instant(now + late))
        if due <= now:
            del self._unseen[place]
        return due

    def _note(self, place: QueueKey, act: Act) -> None:
        if (last := self._last.get(place)) is not None and act.is_of_plan(last.event):
            # Controllers here write the parts of a plan one after the other.
            act = replace(act, seen=None)
        else:
            self._last[place] = act
        self._acts[place].append(act.known)
        if act.seen is not None:
            self._noted.setdefault((place, act.requested), act)
        self._noted[place, act.known] = act

    def _learn_claims(self, act: Act) -> None:
        """Learns an act of pod sync (creates, names, reserves claims) or claim sync (the rest)."""
        event = act.event
        namespace, name = event.key.namespace, event.key.name
        if event.key.resource == "pods":
            self._note(("claims/pods", (namespace, name)), act)
        elif is_event_object(event.key):
            subject = core.event_object(event.object).involved_object
            self._note(("claims/pods", (subject.namespace, subject.name)), act)
        elif event.key.resource == "resourceclaims":
            if event.type is EventType.OBJECT_CREATED:
                for owner in meta.owners(event.object):
                    self._note(("claims/pods", (namespace, owner.name)), act)
                    self._made_for[owner.uid].append(event.uid)
                return
            old, new = consumers(act.before), consumers(event.object)
            added = [new[uid] for uid in new.keys() - old.keys()]
            for pod in added:
                self._note(("claims/pods", (namespace, pod)), act)
            if not added:
                self._note(("claims", (namespace, name)), act)

    def _learn_try(self, act: Act) -> None:
        event = act.event
        if is_event_object(event.key):
            self._learn_said(act)
            return
        self._writes.append(act.requested)
        self._coarse += is_derived(event)
        if event.key.resource == "pods":
            self._learn_pod(act)
        elif event.key.resource == "resourceclaims":
            old, new = consumers(act.before), consumers(event.object)
            for uid in old.keys() - new.keys():
                self._tries[uid].give_up(has_failed=True)
            for uid in new.keys() - old.keys():
                placing = self._tries[uid].placing_of(act)
                placing.claims_at = act.known
                placing.since = max(placing.since, self._made.get(event.uid, placing.since))
                if not dra.allocation(act.before or {}):
                    allocation = json_tree.mapping(event.object, "status", "allocation")
                    placing.devices += dra.device_names(allocation)

    def _learn_freed(self, act: Act) -> None:
        """Learns since when a device that only one claim can have was free again."""
        if act.event.key.resource != "resourceclaims":
            return
        held = dra.allocation(act.before or {})
        is_gone = act.event.type is EventType.OBJECT_DELETED
        if held and (is_gone or not dra.allocation(act.event.object)):
            for result in dra.result_trees(act.before or {}):
                if "consumedCapacity" not in result and not result.get("adminAccess"):
                    place = f"{json_tree.text(result, 'pool')}/{json_tree.text(result, 'device')}"
                    self._freed[place].append(act.requested)

    def _note_order(self) -> None:
        """Places attempts between writes, where only the order of writes is known."""
        writes = sorted(self._writes)
        for tries in self._tries.values():
            for placing in tries.placings:
                number = bisect_left(writes, placing.began)
                placing.earliest = writes[max(0, number - tolerances.TABLE.writes_between)]

    def _note_freed(self) -> None:
        """Limits each placing to the time after the previous one on the same device ended."""
        for instants in self._freed.values():
            instants.sort()
        for tries in self._tries.values():
            for placing in tries.placings:
                for name in placing.devices:
                    instants = self._freed.get(name.partition(": ")[2], [])
                    number = bisect_right(instants, placing.claims_at or placing.began)
                    if number:
                        placing.free_at = Instant(max(placing.free_at, instants[number - 1]))

    def _learn_said(self, act: Act) -> None:
        report = report_of(act)
        if report is not None:
            tries = self._tries[report.pod]
            tries.failures.append((report.instant, report.note))
            tries.seen.append(version_number(report.version))

    def _learn_pod(self, act: Act) -> None:
        event = act.event
        tries = self._tries[event.uid]
        node = core.node_name(event.object)
        if node and not core.node_name(act.before or {}):
            placing = tries.placing_of(act)
            placing.bind_at = act.known
            placing.node = node
            return
        named = ("status", "nominatedNodeName")
        node = json_tree.text(event.object, *named)
        if refusal_of(event.object) not in (None, refusal_of(act.before or {})):
            # A node in the same write means that the attempt found victims there: it failed too.
            tries.was_refused |= not tries.refusals and refusal_of(act.before or {}) is not None
            tries.refusals.append((act.requested, refusal_of(event.object) or ""))
            tries.written.append(version_of(event))
            tries.give_up(act.known)
        elif node and node != (before := json_tree.text(act.before or {}, *named)):
            # Pre-emption may exchange a node for another one, and place the pod much later.
            tries.placings.append(placing := Placing(began=act.requested, node=node))
            if not before:
                placing.note_first_write(act)
