"""Virtual time, tasks that wait in it, and drawn delays."""

import heapq
import random
import uuid
from copy import deepcopy
from datetime import UTC, datetime, timedelta

MS, SECOND = 1000, 1_000_000
"""In microseconds."""

EPOCH = datetime(2026, 11, 21, 8, 0, 0, 250000, tzinfo=UTC)


class Sim:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now = 0  # microseconds
        self._heap, self._n = [], 0

    def after(self, us, fn):
        self._n += 1
        heapq.heappush(self._heap, (self.now + max(0, int(us)), self._n, fn))

    def run(self, until):
        while self._heap and self._heap[0][0] <= until:
            self.now, _, fn = heapq.heappop(self._heap)
            fn()
        self.now = until

    def spawn(self, gen, life=None):
        def step(value=None):
            if life is not None and not life.alive:
                gen.close()
                return
            try:
                wait = gen.send(value)
            except StopIteration:
                return
            if callable(wait):
                wait(step)
            else:
                self.after(wait, step)

        self.after(0, step)

    def text(self, us, micro=True):
        when = EPOCH + timedelta(microseconds=us)
        return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")

    def seconds(self):
        return self.text(self.now, False)

    def wall(self, text):
        """Microseconds since the start of a whole-second text."""
        when = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return round((when - EPOCH).total_seconds() * 1e6)

    def uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def draw(self, spread):
        """A delay of a long-tailed distribution (low, median, high in ms), in us."""
        low, median, high = spread
        ms = median * self.rng.lognormvariate(0, 0.7)
        return int(1000 * min(high, max(low, ms)))


class Life:
    def __init__(self):
        self.alive = True


def fresh(tree):
    return deepcopy(tree)


def prune(tree):
    return {k: v for k, v in tree.items() if v not in (None, [], {})}
