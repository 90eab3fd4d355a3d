"""The time between the choice of an allocation and its write.

A write may have waited for its client's rate limit, which is most of that time.

A log has the instant at which a write arrived, not the one at which it was decided. While a request
waits, the limit is used up: the requests before it were sent one step of the limit apart. So seen
from a write, its queue ends at the first pause that is longer than the step, and the step is at
most what the writes after that pause allow. The limit itself is unknown: a client may have a slower
one than usual.

Example: a client sends two requests a second for 33 seconds, and then one that allocates. It may
have waited for 33 seconds. With a pause of 3 seconds among these, it waited at most since then.

Without a queue, the time is short: a scheduler knows a change within moments, and its request is
answered within moments. That holds only if nothing else explains the delay, see `Queues`.
"""

from collections import deque
from collections.abc import Iterable

from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.log import Event, EventType
from app.domain.log.raw_parts import RawPod
from app.domain.log.records import IMPORTER_USER, TimeQuality
from app.domain.values.timestamps import EARLIEST, SECOND, Instant

AT_ONCE = 5 * SECOND
"""The time within which a client that does not wait learns of a change, or has its answer."""

WAIT_MAX = 120 * SECOND
"""The longest wait that is reckoned: 6,000 requests at the usual limit of 50 a second."""

STEP_MAX = 1 * SECOND
"""The longest step: no limit is slower than one request a second."""

OVERTAKEN_BY = SECOND * 3 // 10
"""Requests that wait for the limit overtake each other by so much."""

PAUSE_MAX = 4 * STEP_MAX
"""While no client without a name wrote for so long, none of them waited.

One attempt makes up to four writes, and those that are refused have no line in a recording without
names. Parity: controllers.md 3.7.
"""

_COMPARED = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
"""The numbers of writes over which the step is measured, up to the usual burst."""

SENT = frozenset(("pods", "resourceclaims", "events"))
"""The kinds that a scheduler writes."""

_DELETED, _REQUEST = EventType.OBJECT_DELETED, EventType.REQUEST_OBSERVED


class _Queue:
    """The writes of one user since the last pause in which nothing can have waited.

    `steps` has, for each of them, the longest step that the writes after it allow. It `is_whole` as
    long as it has the first write of the user, who may have had another name before. `last` is the
    instant of the newest write.
    """

    __slots__ = ("_is_named", "_sent", "_steps", "is_whole", "last")

    def __init__(self, *, is_named: bool) -> None:
        self._is_named = is_named
        self.is_whole = True
        self.last = Instant(EARLIEST - 1)
        self._sent: deque[Instant] = deque()
        self._steps: deque[int] = deque()

    def add(self, now: Instant) -> None:
        """Adds the next write, which is later than `last`.

        Without a name, the writes of several clients are mixed.
        """
        self.last = now
        sent, steps = self._sent, self._steps
        longest = STEP_MAX if self._is_named else PAUSE_MAX
        if sent and now - sent[-1] > longest + OVERTAKEN_BY:
            sent.clear()
            steps.clear()
            self.is_whole = False
        while sent and sent[0] < now - WAIT_MAX:
            sent.popleft()
            steps.popleft()
            self.is_whole = False
        sent.append(now)
        steps.append(longest)
        if self._is_named:
            for count in _COMPARED:
                if count >= len(sent):
                    break
                step = (now - sent[-1 - count] + OVERTAKEN_BY) // count
                if step < steps[-1 - count]:
                    steps[-1 - count] = step

    def begun(self, now: Instant) -> Instant:
        """The earliest instant from which a request that is sent now may have waited."""
        if not self._is_named:
            return self._begun_unnamed(now)
        begun, shortest, pause = now, PAUSE_MAX, 0
        for sent, step in zip(reversed(self._sent), reversed(self._steps), strict=True):
            pause = max(pause, begun - sent - OVERTAKEN_BY)
            if pause > shortest:
                break
            begun, shortest = min(begun, sent), min(shortest, step)
        return max(begun, Instant(now - WAIT_MAX))

    def _begun_unnamed(self, now: Instant) -> Instant:
        """The same where no step was measured: no pause in the queue is longer than the step.

        Only the pause up to now may be.
        """
        sent = self._sent
        if not sent or now - sent[-1] - OVERTAKEN_BY > PAUSE_MAX:
            return now
        return max(min(now, sent[0]), Instant(now - WAIT_MAX))


class Queues:
    """The recent writes of each user, while a log is followed event by event.

    A user without a queue has chosen within `AT_ONCE`, unless the delay may have another reason:
    the write has no exact time or no name, the pods of the claim may wait for volumes or for other
    pods, or the server did not answer. It did answer while it stored other writes, unless a request
    about the claim or its pods took long itself: a webhook delays single requests.
    """

    def __init__(self) -> None:
        self._of: dict[str, _Queue] = {}
        self._all = _Queue(is_named=False)
        self._plain: set[str] = set()
        self._stored = (Instant(0), Instant(0))
        self._slow: dict[tuple[str, str], tuple[Instant, Instant]] = {}

    def note(self, event: Event, parts: object) -> None:
        """Remembers that a request was sent, whether it was refused or not.

        `parts` are those of the event, where its page has split it.
        """
        now, kind = event.stamp.time, event.type
        if now - self._stored[1] >= SECOND and event.is_about_object:
            self._stored = self._stored[1], now
        if event.key.resource not in SENT and kind is not _REQUEST:
            return
        if kind is _DELETED or event.stamp.origin is not None:
            self._note_slow(event)
        if kind is _DELETED:
            self._plain.discard(event.uid)
        elif isinstance(parts, RawPod) and parts.spec.resource_claims and _is_plain(parts):
            self._plain.add(event.uid)
        user = event.stamp.actor.user
        queue = self._of.get(user)
        if queue is None:
            queue = self._of[user] = _Queue(is_named=user != IMPORTER_USER)
        # Most writes come with others of the same instant.
        if now > queue.last:
            queue.add(now)
        if now > self._all.last:
            self._all.add(now)

    def decided_from(self, event: Event, pods: Iterable[str] = ()) -> Instant:
        """The earliest instant at which a write may have been decided; it was noted before.

        `pods` are the uids of those for which the claim is reserved.
        """
        now, user = event.stamp.time, event.stamp.actor.user
        begun = self.begun(user, now)
        delay, uids = IN_FLIGHT, set(pods)
        if uids and uids <= self._plain and user != IMPORTER_USER and _has_time(event):
            answered = max((each for each in self._stored if each <= now - SECOND), default=0)
            delay = min(IN_FLIGHT, now - answered + AT_ONCE)
        return Instant(min(begun, self._arrived_from(event, uids)) - delay)

    def _note_slow(self, event: Event) -> None:
        """Remembers a request about an object that the server took long for, such as by a webhook.

        One that a client sent when it had the answer to such a request counts with that one.
        """
        arrival, now = _arrival(event), event.stamp.time
        place = event.stamp.actor.user, event.uid
        if event.type is EventType.OBJECT_DELETED:
            self._slow.pop(place, None)
        elif now - arrival >= SECOND:
            before, answered = self._slow.get(place, (arrival, Instant(0)))
            self._slow[place] = (before if arrival - AT_ONCE <= answered else arrival), now

    def _arrived_from(self, event: Event, pods: Iterable[str]) -> Instant:
        """The instant of the first request whose answer a write may have waited for, or its own.

        The requests of one attempt, about a claim and its pods, are sent one after the other.
        """
        sent, user = _arrival(event), event.stamp.actor.user
        slow = (self._slow.get((user, uid)) for uid in (event.uid, *pods))
        for arrival, answered in sorted((each for each in slow if each), reverse=True):
            if sent - AT_ONCE <= answered:
                sent = min(sent, arrival)
        return sent

    def begun(self, user: str, now: Instant) -> Instant:
        """The earliest instant from which a request of a user that is sent now may have waited."""
        queue = self._of.get(user)
        if queue is None or queue.is_whole:
            return self._all.begun(now)
        return queue.begun(now)


def _is_plain(pod: RawPod) -> bool:
    """Whether nothing but its devices keeps the pod from being bound once a node is chosen."""
    volumes = bytes(pod.spec.volumes)
    is_apart = b'"persistentVolumeClaim"' not in volumes and b'"ephemeral"' not in volumes
    return is_apart and not pod.spec.scheduling_group


def _arrival(event: Event) -> Instant:
    """The instant at which a request arrived, or was stored where the arrival is not recorded."""
    origin = event.stamp.origin
    arrival = 0 if origin is None else origin.asked
    return Instant(min(arrival, event.stamp.time) if arrival else event.stamp.time)


def _has_time(event: Event) -> bool:
    origin = event.stamp.origin
    return origin is None or origin.time_quality == TimeQuality.EXACT
