"""The time of one history, which continues at its pace whichever machine stamped the last event.

The events of a history may come from several machines, or from this one before its clock was set
back. The last event may therefore be later than the clock of this process:

    clock of the process   10:00:00   10:00:30   10:01:00
    last stored event      11:00:00
    time of the history    11:00:00   11:00:30   11:01:00

Waiting for the clock would stop time for an hour: every event would have the same time, and nothing
that is due later would happen.

A fork continues where its parent stood, perhaps long ago. It has its own time, which starts at the
time of its last event when a process opens it, and stands still while no process has it open. A
paced replay also has its own time, which runs at the pace of the replay.
"""

from app.domain.values.timestamps import LATEST, Instant
from app.ports import Clock


class ClusterClock:
    """The clock of one history. It is never behind an observed event or decision.

    It follows the clock of the process back only to what was stored or decided last. Unless its
    time is its own, it is also never behind the clock of the process.
    """

    __slots__ = ("_anchor", "_clock", "_is_own", "_limit", "_rate", "_steady")

    def __init__(self, clock: Clock, *, is_own: bool = False, rate: float = 1.0) -> None:
        """With `is_own`, time continues from the last event, whatever the clock of the process is.

        It then runs `rate` times as fast as real time.
        """
        self._clock = clock
        self._is_own = is_own
        self._rate = rate
        self._limit = LATEST
        self._anchor = Instant(0)
        self._steady = clock.steady()

    def now(self) -> Instant:
        """The present instant of the history."""
        clock = self._clock
        passed = clock.steady() - self._steady
        if self._rate != 1.0:
            passed = int(passed * self._rate)
        since = Instant(self._anchor + passed)
        return min(since, self._limit) if self._is_own else Instant(max(clock.now(), since))

    def observe(self, time: Instant) -> None:
        """Note the time of an event or decision: from now on the clock is not behind it."""
        if time > self.now():
            self._anchor, self._steady = time, self._clock.steady()
            self._limit = max(self._limit, time)

    def detach(self, rate: float) -> None:
        """Leave the clock of the process, and run `rate` times as fast as real time (0: stop)."""
        self._anchor, self._steady = self.now(), self._clock.steady()
        self._is_own, self._rate = True, rate

    def hold_at(self, limit: Instant) -> None:
        """Stand still from this instant on, until the limit moves or a later event comes."""
        self._limit = max(limit, self.now())

    def attach(self) -> None:
        """Follow the clock of the process from now on."""
        self._anchor, self._steady = self.now(), self._clock.steady()
        self._is_own, self._rate, self._limit = False, 1.0, LATEST

    @property
    def ahead(self) -> int:
        """Microseconds by which the history's time is ahead of the clock of the machine."""
        return 0 if self._is_own else max(0, self.now() - self._clock.wall())
