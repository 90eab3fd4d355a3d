"""The pace of one run: the recorded one, with the changes of the run's variant.

A variant never determines the outcome of an act, only whether it is made earlier, later or not.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from app.analysis.replay import tolerances
from app.analysis.replay.attempts import Try
from app.analysis.replay.authors import CLAIMS, COLLECTOR, EVICTION, SCHEDULER
from app.analysis.replay.instants import is_derived
from app.analysis.replay.lateness import FirstAttempt, KeyLook, PacedAct, PacedRun, Timers
from app.analysis.replay.overtaken import WaitingPods
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.readiness import FirstTurns, QuietAttempts, Readiness
from app.analysis.replay.unmade import TRIED_WITHIN
from app.analysis.replay.variants import CacheOfClaims, Succession, Variant
from app.analysis.replay.writers import BESIDE
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.pacing import AttemptOutcome, NextTry
from app.domain.controllers.rule_status import condition
from app.domain.controllers.rule_status import reconciler as rule_status
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import Instant

NEVER = Instant(2**62)
"""An instant later than any in a recording."""


class SteeredPace:
    """The `Pace` and the bind delay of a run.

    `keys` maps uids to the keys of recorded objects. Call `begin` with the first objects, `follow`
    with each event. Waits are noted in `readiness`, the turns of refused pods in `waiting`. Before
    the instants in `busy_until`, attempts for pods are under way. Keys in `prompt` have no recorded
    acts and do not wait. In a changed world, `control` is the readiness of the unchanged one: what
    did not wait there is done at once. A control (`is_control`) notes when pods could be placed.
    """

    def __init__(
        self,
        recorded: RecordedPace,
        variant: Variant,
        keys: Mapping[str, ObjectKey],
        control: Readiness | None = None,
        starts: Mapping[str, Instant] | None = None,
        turns: FirstTurns | None = None,
        timers: Timers = Timers(),
        *,
        is_control: bool = False,
    ) -> None:
        """`starts` has the start instants of controllers that did not run at the beginning.

        Where the recording shows in which order pods became ready, `turns` follows it.
        """
        self.readiness = Readiness(starts or {})
        self._control = control
        is_compared = is_control or control is not None
        self._quiet = QuietAttempts(self.readiness, control) if is_compared else None
        self._turns = turns
        self._timers = timers
        self._put_off: dict[str, Instant] = {}
        self._strayed: dict[str, Instant] = {}
        self.waiting = WaitingPods(recorded, timers)
        self._recorded = recorded
        self._variant = variant
        self._keys = keys
        self._imposed = {(author, keys[uid]) for author, uid in variant.imposed if uid in keys}
        self._held = sorted(variant.held)
        self._hidden = dict(variant.hidden)
        self._lost = sorted(variant.lost, reverse=True)
        self._finished: set[tuple[str, ...]] = set()
        self._looked_at: set[tuple[str, ...]] = set()
        self._finalized, self._handed_over = set[ObjectKey](), set[ObjectKey]()
        self._begun, self._let_through = Instant(0), ""
        self._namespaces: dict[str, str] = {}
        self._looked: dict[tuple[str, tuple[str, ...]], tuple[Instant, Instant]] = {}
        self._last_due: dict[tuple[str, tuple[str, ...]], Instant] = {}
        self.claims_cache = CacheOfClaims(variant, recorded.later_act)
        self.prompt: Set[object] = frozenset()
        self.busy_until: Mapping[str, Instant] = {}
        self.run = PacedRun()

    def attempts(self, pod: str) -> Sequence[Try]:
        """The recorded attempts of a pod, in order."""
        return self._recorded.attempts(pod)

    def looks_anew(self) -> Iterator[tuple[tuple[str, str], Instant]]:
        """The rules that the variant lets a new process look at, each with the recorded instant."""
        for uid, key in self._keys.items():
            if key[:2] == api_resources.DEVICE_TAINT_RULES and key.name in self._variant.begun_anew:
                place, at = (key.name, uid), Instant(0)
                while (act := self._recorded.later_act((rule_status.NAME, place), at)) is not None:
                    at = act.known
                    if self._timers.is_first_look(act.begun, rule_status.NAME):
                        yield place, act.begun

    def begin_step(self) -> None:
        """Forgets which acts were passed: a controller begins a step."""
        self._recorded.stored_at = None

    def stored_at(self, controller: str, now: Instant) -> Instant | None:
        """The instant at which the recording stored the plan that is made now; None if not later.

        Only a history of redra shows what a controller had seen before its plan was stored. A
        changed world asks the unchanged one, where the act may have come later.
        """
        if self._control is not None:
            return self._control.under_way_until(controller, now)
        until = self._recorded.stored_at
        if until is None or until <= now:
            return None
        self.readiness.note_under_way(controller, now, until)
        return until

    def let_through(self, pod: str) -> None:
        """Allows a pod to be tried now, regardless of the recording; with an empty uid, none."""
        self._let_through = pod

    def begin(self, objects: Iterable[Event], now: Instant) -> None:
        """Notes the objects at the beginning of the run.

        A controller that starts looks at all rules. The recorded one went on, and looked at a rule
        that has its status only for a new reason.
        """
        self._begun = now
        for event in objects:
            self.follow(event)
            is_rule = event.key[:2] == api_resources.DEVICE_TAINT_RULES
            if is_rule and condition.is_current(event.object):
                self._looked_at.add((event.key.name, event.uid))

    def follow(self, event: Event) -> None:
        """Notes which pods are finished here, and which rules have changed since the beginning."""
        self.waiting.follow(event)
        if self._turns is not None:
            self._turns.follow(event)
        if event.key[:2] == api_resources.NAMESPACES:
            if self._namespaces.get(event.key.name, event.uid) != event.uid:
                self._recorded.pass_over(event.key.name, event.stamp.time)
            self._namespaces[event.key.name] = event.uid
        if event.key[:2] == api_resources.DEVICE_TAINT_RULES:
            self._looked_at.discard((event.key.name, event.uid))
        if event.key in self._variant.handed_over:
            self._follow_finalizer(event)
        if event.key[:2] != api_resources.PODS:
            return
        if self._quiet is not None:
            self._quiet.follow(event)
        place = (event.key.namespace, event.key.name)
        if event.type is not EventType.OBJECT_DELETED and core.is_finished(event.object):
            self._finished.add(place)
        else:
            self._finished.discard(place)

    def _follow_finalizer(self, event: Event) -> None:
        """Notes a claim from the removal of its finalizer on, until it has one again."""
        is_held = event.type is not EventType.OBJECT_DELETED and meta.finalizers(event.object)
        if is_held:
            self._finalized.add(event.key)
            self._handed_over.discard(event.key)
        elif event.key in self._finalized:
            self._finalized.discard(event.key)
            self._handed_over.add(event.key)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The recorded instant, or the one that the variant sets."""
        if key in self.prompt:
            return now
        if self._has_ended(queue, key, now):
            # The next act of this key is about another namespace of that name.
            self._looked.pop((queue, key), None)
            is_end = queue == namespaces.END or now in self._timers.ended.values()
            late = 0 if is_end else tolerances.TABLE.unseen
            return self._recorded.unseen_due((queue, key), now, late)
        if self._quiet is not None and queue == QUEUE:
            self._quiet.end(key[0])
        if queue == QUEUE and now < self.busy_until.get(key[0], now):
            return self.busy_until[key[0]]
        steered = self._steered(queue, key, now)
        due = self._recorded.not_before(queue, key, now) if steered is None else steered
        if steered is None:
            self._note_look(queue, key, now, due)
        if due <= now or due >= NEVER:
            return due
        self.readiness.note(queue, key, now, due)
        if queue.partition("/")[0] in BESIDE:
            # The unchanged world lacks this controller, whose recorded acts arrive as inputs.
            return due
        if self._control is None or self._control.was_waiting(queue, key, now):
            if queue != QUEUE or steered is not None:
                return due
            tries = self.waiting if self._quiet is None else self._quiet
            return tries.next_try(key[0], now, due)
        if queue == QUEUE:
            self._strayed[key[0]] = now
        return now

    def _has_ended(self, queue: str, key: tuple[str, ...], now: Instant) -> bool:
        """Whether the namespace of a key has ended in the recording by now.

        What is recorded about its name later is about another one.
        """
        if queue not in (namespaces.NAME, namespaces.END):
            return False
        ended = self._timers.ended.get(self._namespaces.get(key[0], ""))
        return ended is not None and ended <= now

    def _note_look(self, queue: str, key: tuple[str, ...], now: Instant, due: Instant) -> None:
        """Notes since when a key waits, and at its recorded act since when it was ready.

        A controller looks at a key at each event about it and at each instant that the key waits
        for. So at the last look before the act it had everything on which the act depends.
        """
        if queue == QUEUE:
            self.waiting.look(key[0], now)
            attempt = self._recorded.first_attempt(key[0])
            if attempt is not None:
                self.run.firsts.setdefault(key[0], FirstAttempt(ready=now, attempt=attempt))
            return
        first, ready = self._looked.pop((queue, key), (now, now))
        if due > now:
            self._looked[queue, key] = first, now
            return
        self.run.looks.setdefault(now, []).append(KeyLook(key=key, first=first, ready=ready))
        act = self._recorded.act_at(queue, key, due)
        if act is not None:
            if queue == pod_gc.NAME:
                ready = Instant(ready + pod_gc.longest_wait(key))
            elif queue == rule_status.NAME and condition.is_final(act.before or {}):
                # Only a new process has a reason to look at it again.
                ready = now if self._timers.is_first_look(act.begun, queue) else ready
            self.run.acts.append(PacedAct(queue=queue, ready=ready, act=act))

    def next_try(
        self, queue: str, key: tuple[str, ...], failures: tuple[Instant, Instant], until: Instant
    ) -> NextTry | None:
        """The next recorded act for a key after its last two failures, if before `until`."""
        before, last = failures
        act = self._recorded.later_act((queue, key), last)
        if act is None or act.begun >= until:
            return None
        at, unsure = act.begun, tolerances.TABLE.coarse if is_derived(act.event) else 0
        begun = self._timers.begun_anew(queue, before, at)
        return NextTry(at=at, latest=Instant(at + unsure), begun=begun)

    def seen_from(self, event: Event) -> Instant:
        """The earliest instant at which others can have seen the mark of a namespace."""
        return min(self._timers.marked.get(event.uid, event.stamp.time), event.stamp.time)

    def wait_ends(self, pod: str, now: Instant) -> Instant | None:
        """The next recorded end of a wait for binding conditions; a changed world has its own."""
        ends = () if self._control is not None else self._timers.waits_ended.get(pod, ())
        number = bisect_right(ends, now)
        return ends[number] if number < len(ends) else None

    def wait_lost(self, pod: str, begun: Instant) -> Instant | None:
        """The end of the process that the variant lets be replaced, until the wait is lost."""
        return next((each.since for each in self._lost_of(pod) if begun < each.until), None)

    def forget_wait(self, pod: str) -> None:
        """Notes that the process of the next wait is the one that took over."""
        self._lost.remove(next(self._lost_of(pod)))

    def _lost_of(self, pod: str) -> Iterator[Succession]:
        return (each for each in reversed(self._lost) if each.pod == pod)

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        """The pod version of the recorded attempt, or the newest one, marked."""
        return self._recorded.version_seen(pod, newest, now)

    def next_node(self, pod: str) -> str:
        """The node of the pod's next recorded attempt with one; empty if there is none."""
        nodes = (each.tried.node for each in self._recorded.attempts_left(pod))
        return next(filter(None, nodes), "")

    def put_off(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        """The recorded deferral; in a changed world, only if the unchanged one deferred, too."""
        if tried.node and self._is_hidden(pod):
            # Without the lower limit, the others are tried when their requests were sent.
            return self._turn_of_hidden(pod, now) if self._variant.is_limited else None
        if (trial_until := self.waiting.end_trial(pod, tried)) is not None:
            return trial_until
        if self._quiet is not None and (self._quiet.is_on(pod) or self._is_untried(pod)):
            until = self._until_counted(self._quiet, pod, tried, now)
            if until is None:
                self._recorded.stray(pod)
            return until
        is_let_through = self._control is not None and self._let_through == pod
        if self._strayed.pop(pod, None) == now or is_let_through:
            self._recorded.stray(pod)
            return None
        is_patient, latest = self._control is None or self._control.was_put_off(pod, now), NEVER
        until = self._turn_of(pod, tried, now) if is_patient else None
        if until is None:
            if is_patient and self._turns is not None:
                latest = self._turns.latest(pod, self._recorded.first_attempt) or NEVER
                is_patient = now < latest
            until = self._recorded.put_off(pod, tried, now, is_patient=is_patient)
            until = None if until is None else min(until, latest)
            self._note_put_off(pod, until)
        if until is None:
            since = self.waiting.count(pod, tried, now)
            self.run.tried.setdefault(pod, []).append((now, since))
            self.readiness.note_counted(pod, now)
        else:
            self.waiting.defer(pod, tried)
            self.readiness.note_put_off(pod, now, until)
        return until

    def _until_counted(
        self, quiet: QuietAttempts, pod: str, tried: AttemptOutcome, now: Instant
    ) -> Instant | None:
        """Until when an attempt that is not recorded does not count; None if it counts now."""
        until = quiet.end(pod)
        if quiet.counts(pod, tried, now):
            return None
        if until is not None:
            return until
        if self._control is None and not self.attempts(pod):
            due = self._last_due.pop((QUEUE, (pod,)), Instant(now + LATE_AFTER))
            if now < due:
                self._last_due[QUEUE, (pod,)] = due
            return due if now < due else None
        is_wanted = self._control is not None and pod == self._let_through
        return None if is_wanted and not (tried.node or tried.moves_others) else NEVER

    def _turn_of(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        """An instant after the attempts that are put off and were made before this one.

        Without this, a pod that was tried later would get the node that the one before it should
        have had: then no instant shows that the recorded scheduler placed it otherwise.
        """
        mine = next(iter(self._recorded.attempts_left(pod)), None)
        if self._turns is None or mine is None or mine.placing is None or not tried.node:
            return None
        ends = (
            Instant(min(until + 1, mine.last))
            for other, until in self._put_off.items()
            if now <= until and self._was_tried_before(other, pod, mine)
        )
        until = max(ends, default=now)
        return until if now < until else None

    def _was_tried_before(self, other: str, pod: str, attempt: Try) -> bool:
        """Whether the next attempt for another pod was surely made before this one for the pod."""
        if self._recorded.is_decided_before(other, pod):
            return True
        if self._recorded.first_attempt(pod) is not attempt or self._turns is None:
            return False
        is_first = self._recorded.first_attempt(other) is not None
        return is_first and self._turns.precedes(other, pod, attempt.instant)

    def _turn_of_hidden(self, pod: str, now: Instant) -> Instant | None:
        """The latest instant at which pods before a hidden one in the queue are tried.

        No instant shows when the hidden pod was tried, only which pods were tried before it.
        """
        others = () if self._turns is None else self._turns.before(pod)
        firsts = (self._recorded.first_attempt(other) for other in others)
        ends = (each.last for each in firsts if each is not None)
        until = min(max(ends, default=now), self._hidden[pod])
        if now < until:
            self._put_off[pod] = until
            return until
        self._put_off.pop(pod, None)
        return None

    def _note_put_off(self, pod: str, until: Instant | None) -> None:
        wanted = next(iter(self._recorded.attempts_left(pod)), None)
        if until is None or wanted is None or wanted.placing is None:
            self._put_off.pop(pod, None)
        else:
            self._put_off[pod] = until

    def bind_delay(self, pod: str, now: Instant) -> tuple[Instant, Instant]:
        """The recorded instants of claims and binding; for hidden pods, after their deletion."""
        if self._is_hidden(pod):
            gone = Instant(self._hidden[pod] + 1)
            until = max(gone, self._recorded.waits.passed(now), now)
            return until, until
        return self._recorded.bind_delay(pod, now)

    def _steered(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant | None:
        variant = self._variant
        match queue:
            case _ if queue == QUEUE:
                return self._of_pod(key[0], now)
            case "claims/pods":
                if variant.resyncs and key in self._finished:
                    return self._recorded.next_act(queue, key, now, one_by_one=True) or NEVER
                pod = ObjectKey("", "pods", key[0], key[1])
                if pod in variant.unsynced:
                    return self._after_others(queue, key, now)
                failed = self.claims_cache.failed_look((key[0], key[1]), now)
                return self._unless_imposed(CLAIMS, pod) if failed is None else failed
            case "claims":
                claim = ObjectKey(api_groups.RESOURCE, "resourceclaims", key[0], key[1])
                return self._of_claim(claim, key, now)
            case "garbage":
                place = ObjectKey(*key)
                if place in variant.collected_first:
                    return now
                if place in variant.collected_last:
                    return self._after_others(queue, key, now)
                return self._unless_imposed(COLLECTOR, place)
            case "rule-status":
                return self._of_rule(key, now)
            case pod_gc.NAME if ObjectKey("", "pods", key[1], key[2]) in variant.uncollected:
                return self._after_others(queue, key, now)
            case "eviction" | "eviction/cancelled":
                return self._unless_imposed(EVICTION, ObjectKey("", "pods", key[0], key[1]))
            case _:
                return None

    def _of_pod(self, uid: str, now: Instant) -> Instant | None:
        if uid == self._let_through:
            return now
        if (SCHEDULER, uid) in self._variant.imposed:
            return NEVER
        for hold in self._held:
            if hold.pod == uid and hold.since <= now < hold.until:
                return hold.until
        if self._is_hidden(uid):
            return now
        if self._is_untried(uid):
            # It may fit in a changed world only; `put_off` drops all other attempts.
            if self._quiet is not None:
                return now
            # A pod without any recorded attempt was there for a short time, or was forgotten.
            return (self._at_last if self.attempts(uid) else self._after_others)(QUEUE, (uid,), now)
        return None

    def _is_untried(self, uid: str) -> bool:
        """Whether the unchanged world does not try the pod from now on."""
        return uid in self._variant.untried and not self._recorded.attempts_left(uid)

    def _is_hidden(self, uid: str) -> bool:
        """Whether placements of the pod from now on leave no recorded write."""
        return uid in self._hidden and not self._recorded.attempts_left(uid)

    def _of_rule(self, key: tuple[str, ...], now: Instant) -> Instant | None:
        variant, rule = self._variant, key[0]
        if ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", rule) in variant.unsynced:
            return self._after_others(rule_status.NAME, key, now)
        if rule in variant.counted_first:
            return now
        is_asked, is_answered = rule in variant.counted, rule in variant.counted_last
        is_looked_at = key in self._looked_at and now <= self._begun
        if not (is_looked_at or is_asked or is_answered):
            return None
        due = self._recorded.next_act(
            "rule-status", key, now, as_asked=is_asked, as_answered=is_answered
        )
        return NEVER if is_looked_at and due is None else due

    def _of_claim(self, claim: ObjectKey, key: tuple[str, ...], now: Instant) -> Instant | None:
        if claim in self._variant.released_last or claim in self._handed_over:
            return self._after_others("claims", key, now)
        if claim in self._variant.removed_first:
            act = self._recorded.later_act(("claims", key), now)
            if act is not None and act.event.type is EventType.OBJECT_DELETED:
                due = self._recorded.next_act("claims", key, now, as_asked=True)
                self._recorded.stored_at = None  # it was stored before its answer, too
                return due
        is_first = claim in self._variant.released_first
        if self._variant.resyncs:
            # A claim may be reserved for a pod and released again, so each act counts.
            due = self._recorded.next_act("claims", key, now, one_by_one=True, as_asked=is_first)
            if due is not None:
                return due
        if is_first:
            return now
        return self._unless_imposed(CLAIMS, claim)

    def _after_others(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The instant of an act that comes after those of others, which may leave it nothing to do.

        "Later" is not "never": no controller stands still for longer than `LATE_AFTER`.
        """
        if self._last_due.pop((queue, key), NEVER) <= now:
            return now
        self._last_due[queue, key] = until = Instant(now + LATE_AFTER)
        return until

    def _at_last(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """The latest instant of the next attempt for a pod, from the first reason for one on."""
        due = self._last_due.setdefault((queue, key), Instant(now + TRIED_WITHIN))
        if due <= now:
            del self._last_due[queue, key]
        return due

    def _unless_imposed(self, author: str, key: ObjectKey) -> Instant | None:
        """`NEVER` if these writes are taken as recorded; otherwise None."""
        return NEVER if (author, key) in self._imposed else None
