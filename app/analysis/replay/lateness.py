"""The acts of a recording that were made too late, without an explanation in the recording.

A replay at the recorded pace acts when the recorded controller acted, however late that was. So the
delays are judged beside the run. An act was due when the controller here last had a reason to look
at its key. It may have waited

- for the limit of its client (`lags`), or for the back-off after refused requests;
- for the acts that were due before it: a queue is worked off in its order;
- while its process was replaced: the next one waits for the lease, and nobody writes meanwhile.

A controller that handles younger keys meanwhile, or whose process was at work and was not replaced,
had no reason to wait. Parity: controllers.md 1.1 and 4.2.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, takewhile

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, RefusedRequest
from app.analysis.replay.attempts import Try
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.instants import has_whole_seconds, is_derived
from app.analysis.replay.lags import Waits
from app.analysis.replay.traces import Trace
from app.analysis.replay.writers import MANAGED
from app.analysis.verify.invariants.violations import IN_FLIGHT, LATE_AFTER
from app.domain.controllers.work_queue import RETRY_FIRST_MICROS, RETRY_MAX_MICROS
from app.domain.log import ObjectKey
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

_STILL = "no {} stands still for so long"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedAct:
    """A recorded act that a run made at its recorded instant, and since when it was ready here."""

    queue: str
    ready: Instant
    act: Act


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAttempt:
    """The first recorded attempt to place a pod, and since when the pod was ready here."""

    ready: Instant
    attempt: Try


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLook:
    """A look of a controller at a key, with the first and the last reason since the look before.

    `ready` is the instant of the last reason. Without a reason, both are the instant of the look.
    """

    key: tuple[str, ...]
    first: Instant
    ready: Instant


@dataclass(slots=True)
class PacedRun:
    """The acts of one run at their recorded instants, and the first attempts by pod.

    `looks` has the keys at which controllers looked, by instant, `tried`, by pod, its attempts.
    """

    acts: list[PacedAct] = field(default_factory=list)
    firsts: dict[str, FirstAttempt] = field(default_factory=dict)
    looks: dict[Instant, list[KeyLook]] = field(default_factory=dict)
    tried: dict[str, list[tuple[Instant, Instant]]] = field(default_factory=dict)

    def note_due(self, trace: Trace, since: Instant, earliest: Instant) -> None:
        """Notes in the trace of the run when its steps from `since` on were due.

        The pace delays acts by seconds if none is recorded. From `earliest` on, attempts are noted.
        """
        for uid, steps in chain(trace.writes.items(), trace.said.items()):
            for step in steps:
                if step.time < earliest:
                    continue
                ready = [look.ready for look in self.looks_for(trace, uid, step.time)]
                tried = self._tried_for(trace, uid, step.time)
                if tried or ready:
                    trace.ready[step.uid, step.time] = max(tried)[1] if tried else max(ready)
                if ready and step.time >= since:
                    trace.due[step.uid, step.time] = max(ready)

    def _tried_for(self, trace: Trace, uid: str, at: Instant) -> list[tuple[Instant, Instant]]:
        """The attempts for a pod, or for those of a claim, up to an instant."""
        pods = {uid, trace.owner_of.get(uid, uid), *trace.users.get(uid, ())}
        return [each for pod in pods for each in self.tried.get(pod, ()) if each[0] <= at]

    def looks_for(self, trace: Trace, uid: str, at: Instant) -> Iterator[KeyLook]:
        """The looks at an instant at the keys of an object, or of its owner."""
        owner = trace.owner_of.get(uid, uid)
        # A run that begins later may have a claim whose pod was deleted before.
        known = [trace.keys[each].name for each in (uid, owner) if each in trace.keys]
        names = {uid, owner, *known}
        return (look for look in self.looks.get(at, ()) if names & set(look.key))

    def looks_within(self, key: ObjectKey, at: Instant) -> Iterator[KeyLook]:
        """The looks at an instant at the objects of the same kind and namespace, to end them."""
        kind = (key.namespace, key.group, key.resource)
        return (look for look in self.looks.get(at, ()) if look.key == kind)

    def keep_written(self, trace: Trace) -> None:
        """Removes the acts at whose instants the run (`trace`) wrote nothing about their objects.

        What was due before them led to no write here, so it does not show when they were due.
        """
        written = {(uid, step.time) for uid, steps in trace.writes.items() for step in steps}
        self.acts = [each for each in self.acts if (each.act.event.uid, each.act.known) in written]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """An act about an object that came too late: when it was due, when it came, and the proof.

    `act` says in words what came. It is not sure if nobody wrote anything for most of the time.
    """

    key: ObjectKey
    uid: str
    due: Instant
    came: Instant
    proof: str
    is_sure: bool = True
    act: str = "was tried"

    @property
    def text(self) -> str:
        """The delay as text, for reports."""
        late, due = (self.came - self.due) / SECOND, timestamps.micro_text(self.due)
        return f"{self.act} {late:.1f} s later than was due ({due}), and {self.proof}"


class Silences:
    """The times in which no write of anybody is recorded: the server may have been away.

    Nobody can write then, and the controllers do what is due when it is back. That it was away
    again and again, each time before a controller wrote, is no explanation.
    """

    def __init__(self, instants: Iterable[Instant]) -> None:
        """`instants` are those of all recorded requests."""
        self._spans = [
            (one, two) for one, two in pairwise(sorted(instants)) if two - one > LATE_AFTER
        ]

    def longest(self, first: Instant, last: Instant) -> int:
        """The most time between two instants that one of them takes."""
        number = bisect_right(self._spans, first, key=lambda span: span[1])
        spans = takewhile(lambda span: span[0] < last, self._spans[number:])
        return max((min(end, last) - max(begin, first) for begin, end in spans), default=0)


def _is_unknown(begin: Instant, end: Instant) -> bool:
    """False for each pause, where nothing shows whether another process took over in it."""
    return False


class Process:
    """The instants at which one process was at work, and the times in which it may be replaced."""

    def __init__(
        self,
        instants: Iterable[Instant],
        is_one: Callable[[Instant, Instant], bool] = _is_unknown,
        is_led: Callable[[Instant, Instant], bool] = _is_unknown,
    ) -> None:
        """The record of Leases: `is_one` says whether nobody took over in a pause, `is_led`
        whether some process was there in it."""
        self._instants = sorted(instants)
        self.is_one, self.is_led = is_one, is_led

    def pause_before(self, at: Instant, least: int) -> tuple[Instant, Instant] | None:
        """The last pause that ended by an instant and was no shorter than `least`."""
        end = bisect_right(self._instants, at)
        pauses = (pair for pair in pairwise(reversed(self._instants[:end])))
        long = (pair for pair in pauses if pair[0] - pair[1] >= least)
        last = next(long, None)
        return None if last is None else (last[1], last[0])

    def pause_around(self, at: Instant) -> tuple[Instant, Instant] | None:
        """Its last instant before this one and its first after it; None without one of them."""
        number = bisect_left(self._instants, at)
        if not 0 < number < len(self._instants):
            return None
        return self._instants[number - 1], self._instants[number]

    def undone_since(self, end: Instant, longest: int) -> Instant:
        """The instant after which it may have left undone what was due, for so long at most."""
        number = bisect_right(self._instants, end)
        last = self._instants[number - 1] if number else Instant(0)
        later = range(last + 1, end + 1)
        led = bisect_left(later, True, key=lambda at: not self.is_led(Instant(at), end))
        return Instant(max(last + led, end - longest))

    def is_seen(self, first: Instant, last: Instant) -> bool:
        """Whether it wrote in the time from `first` to before `last`."""
        return bisect_left(self._instants, first) < bisect_left(self._instants, last)

    def longest_at_work(self, first: Instant, last: Instant) -> int:
        """The longest time from `first` to `last` in which it was at work and not replaced."""
        begin, end = bisect_left(self._instants, first), bisect_right(self._instants, last)
        longest, since, before = 0, None, first
        for instant in self._instants[begin:end]:
            if since is None or instant - before >= tolerances.TABLE.replaced_after:
                since = instant
            before = instant
            longest = max(longest, instant - since)
        return longest

    def back_at(self, first: Instant, last: Instant) -> Instant:
        """Its last return after a time in which it may have been replaced; `first` without one."""
        begin, end = bisect_right(self._instants, first), bisect_right(self._instants, last)
        back, before = first, first
        for instant in self._instants[begin:end]:
            if instant - before >= tolerances.TABLE.replaced_after:
                back = instant
            before = instant
        return last if last - before >= tolerances.TABLE.replaced_after else back


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """The recorded timers that begin with a write or a failure.

    `marked` has, by uid, the earliest instants at which others can have seen the marks for deletion
    of namespaces, `ended` those of their removal; `waits_ended` the instants at which pods waited
    no more for binding conditions. `processes` has the process of each controller.
    """

    marked: Mapping[str, Instant] = field(default_factory=dict)
    ended: Mapping[str, Instant] = field(default_factory=dict)
    waits_ended: Mapping[str, Sequence[Instant]] = field(default_factory=dict)
    processes: Mapping[str, Process] = field(default_factory=dict)

    def is_first_look(self, at: Instant, queue: str) -> bool:
        """Whether a process may have made an act of a queue as soon as it took over."""
        process = self.processes.get(queue)
        least = tolerances.TABLE.replaced_after
        pause = None if process is None else process.pause_before(at, least)
        if process is None or pause is None or process.is_one(*pause):
            return False
        return at - pause[1] <= tolerances.TABLE.act_after

    def begun_anew(self, queue: str, first: Instant, last: Instant) -> Instant | None:
        """The instant between two others at which another process may have taken over the queue."""
        process = self.processes.get(queue.partition("/")[0])
        back = first if process is None else process.back_at(first, last)
        return None if back == first else back


class _Client:
    """The requests of one user, and its acts in a run."""

    def __init__(self, acts: Sequence[Act], refusals: Sequence[RefusedRequest]) -> None:
        self._refusals = refusals
        instants = [*(act.requested for act in acts), *(each.at for each in refusals)]
        self.instants = sorted(instants)
        self.paced: list[PacedAct] = []

    @cached_property
    def waits(self) -> Waits:
        """The waits of its requests for its rate limit, which is not known."""
        return Waits((), self.instants)

    def retried_at(self, paced: PacedAct) -> Instant:
        """The end of the back-off of a key after refused requests; its readiness without any."""
        place = paced.act.event.key
        refused = [
            each.at
            for each in self._refusals
            if paced.ready <= each.at < paced.act.requested
            and each.key.namespace == place.namespace
            and each.key.name in ("", place.name)
        ]
        if not refused:
            return paced.ready
        backoff = min(RETRY_FIRST_MICROS << min(len(refused) - 1, 30), RETRY_MAX_MICROS)
        return Instant(max(refused) + backoff)


def late_acts(
    paced: Sequence[PacedAct],
    acts: Iterable[Act],
    refusals: Iterable[RefusedRequest],
    silences: Silences = Silences(()),
) -> Iterator[Delay]:
    """The acts of a run, besides attempts, that came too late in the recording.

    `acts`, `refusals` and `silences` are those of the whole recording. Acts whose author or instant
    is a guess are not judged.
    """
    clients = _clients(acts, refusals)
    managed = [clients[user].instants for user in MANAGED & clients.keys()]
    manager = Process(instant for instants in managed for instant in instants)
    for each in paced:
        clients[each.act.user].paced.append(each)
    for user, client in clients.items():
        process = manager if user in MANAGED else Process(client.instants)
        for each in client.paced:
            slack = 2 * tolerances.TABLE.coarse if has_whole_seconds(each.act.event) else 0
            if each.act.is_guessed or (is_derived(each.act.event) and not slack):
                continue
            delay = _delay(each, client, process, slack, silences)
            if delay is not None:
                yield delay


def _clients(acts: Iterable[Act], refusals: Iterable[RefusedRequest]) -> dict[str, _Client]:
    written: dict[str, list[Act]] = defaultdict(list)
    refused: dict[str, list[RefusedRequest]] = defaultdict(list)
    for act in acts:
        written[act.user].append(act)
    for refusal in refusals:
        refused[refusal.user].append(refusal)
    return {user: _Client(made, refused[user]) for user, made in written.items()}


def _delay(
    paced: PacedAct, client: _Client, process: Process, slack: int, silences: Silences
) -> Delay | None:
    """The delay of an act, if nothing explains it; it may have been shorter by `slack`."""
    came, ready = Instant(paced.act.requested - slack), client.retried_at(paced)
    if came - ready <= tolerances.TABLE.act_after:
        return None
    made = client.waits.longest(came)
    # Acts for the same cause may have been requested before the write of the cause was answered.
    begin = ready - tolerances.TABLE.sure_after
    beside = [
        each
        for each in client.paced
        if begin <= each.act.requested < made and each.act.event.key != paced.act.event.key
    ]
    younger = [each for each in beside if each.ready > ready + tolerances.TABLE.sure_after]
    before = [each.act.requested for each in beside if each.ready <= ready]
    since = max([ready, *before])
    proof = ""
    if any(made - each.act.requested > tolerances.TABLE.act_after for each in younger):
        proof = "the controller did younger work before it"
    elif (beside or ready > paced.ready) and process.back_at(since, came) == since:
        if made - since > tolerances.TABLE.act_after:
            proof = "the controller was at work, and its process was not replaced"
    elif process.is_seen(ready, made) and made - process.back_at(since, came) > IN_FLIGHT:
        proof = "its process was at work"
    is_sure = bool(proof)
    if not proof and made - since > LATE_AFTER:
        proof = _STILL.format("controller")
        is_sure = made - since - silences.longest(since, made) > LATE_AFTER
        is_sure |= any(
            abs(each.ready - paced.ready) <= tolerances.TABLE.sure_after
            and (each.ready == paced.ready or each.act.requested >= paced.ready)
            and each.act.requested < made
            and each.act.event.key != paced.act.event.key
            for each in client.paced
        )
        is_sure |= process.longest_at_work(since, made) > IN_FLIGHT
    if not proof:
        return None
    event, act = paced.act.event, paced.act.words
    return Delay(
        key=event.key, uid=event.uid, due=ready, came=came, proof=proof, is_sure=is_sure, act=act
    )


def late_attempts(
    attempts: Mapping[str, FirstAttempt],
    firsts: Mapping[str, FirstAttempt],
    ranks: Mapping[str, tuple[str, int]],
    keys: Mapping[str, ObjectKey],
    waits: Waits,
    acts: Iterable[Act],
    silences: Silences = Silences(()),
) -> Iterator[Delay]:
    """Those of the attempts that came too late, by the uids of their pods.

    `firsts` are the first attempts for all pods, `ranks` has the scheduler and the priority of each
    pod. A pod is tried before the pods that came later, unless their priority is higher.
    """
    instants = sorted(act.requested for act in acts if act.user == SCHEDULER)
    earlier: dict[tuple[str, int], Instant] = {}
    younger = sorted(firsts.items(), key=lambda each: each[1].ready)
    for uid, first in sorted(attempts.items(), key=lambda each: each[1].ready, reverse=True):
        rank = ranks.get(uid, ("", 0))
        attempt = first.attempt
        came = waits.longest(attempt.instant) if attempt.placing else attempt.first
        while younger and younger[-1][1].ready > first.ready + tolerances.TABLE.sure_after:
            other, passed = younger.pop()
            place, last = ranks.get(other, ("", 0)), passed.attempt.last
            earlier[place] = min(last, earlier.get(place, last))
        proof = ""
        overtaken = [
            last
            for (name, priority), last in earlier.items()
            if name == rank[0] and priority <= rank[1]
        ]
        if came - min(overtaken, default=came) > tolerances.TABLE.act_after:
            proof = "younger pods were tried before it"
        number = bisect_left(instants, came)
        since = max(first.ready, instants[number - 1] if number else first.ready)
        is_sure = bool(proof)
        if came - since > LATE_AFTER:
            proof = proof or _STILL.format("scheduler")
            is_sure |= came - since - silences.longest(since, came) > LATE_AFTER
        if proof:
            yield Delay(
                key=keys[uid],
                uid=uid,
                due=first.ready,
                came=attempt.instant,
                proof=proof,
                is_sure=is_sure,
            )
