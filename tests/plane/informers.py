"""Informers, whose caches lag, and work queues."""

from tests.plane.simulated import Life, fresh


class Informers:
    """The caches of one process; each kind is a stream of its own."""

    def __init__(self, server, kinds, spread):
        self.server, self.sim, self.spread = server, server.sim, spread
        self.cache = {kind: {} for kind in kinds}
        self.handlers = {kind: [] for kind in kinds}
        self.last = dict.fromkeys(kinds, 0)
        self.life = Life()

    def start(self):
        """Lists, then watches."""
        for kind in self.cache:
            for key, tree in self.server.objects[kind].items():
                self.cache[kind][key] = fresh(tree)
        self.server.watchers.append(self)
        for kind in self.cache:
            for tree in list(self.cache[kind].values()):
                for handler in self.handlers[kind]:
                    handler(None, tree)

    def stop(self):
        self.life.alive = False
        self.server.watchers.remove(self)

    def offer(self, kind, key, event, tree):
        if kind not in self.cache:
            return
        sim = self.sim
        due = max(self.last[kind] + 1, sim.now + sim.draw(self.spread))
        self.last[kind] = due
        tree = fresh(tree)
        sim.after(due - sim.now, lambda: self._deliver(kind, key, event, tree))

    def _deliver(self, kind, key, event, tree):
        if not self.life.alive:
            return
        old = self.cache[kind].get(key)
        if event == "DELETED":
            self.cache[kind].pop(key, None)
            for handler in self.handlers[kind]:
                handler(tree, None)
            return
        self.cache[kind][key] = tree
        if old is not None and old["metadata"]["uid"] != tree["metadata"]["uid"]:
            old = None
        for handler in self.handlers[kind]:
            handler(old, tree)


class Queue:
    """A work queue with back-off by item."""

    def __init__(self, sim, life, worker, workers, first=5_000, highest=1_000_000_000):
        self.sim, self.life, self.worker = sim, life, worker
        self.first, self.highest = first, highest
        self.waiting, self.dirty, self.busy, self.failures = [], set(), set(), {}
        self.free = workers

    def add(self, item, delay=0):
        if delay > 0:
            self.sim.after(delay, lambda: self.add(item))
            return
        if not self.life.alive or item in self.dirty:
            return
        self.dirty.add(item)
        if item not in self.busy:
            self.waiting.append(item)
            self.sim.after(self.sim.draw((0.02, 0.1, 5)), self._next)

    def _next(self):
        while self.free and self.waiting and self.life.alive:
            item = self.waiting.pop(0)
            self.dirty.discard(item)
            self.busy.add(item)
            self.free -= 1
            self.sim.spawn(self._run(item), self.life)

    def _run(self, item):
        ok = yield from self.worker(item)
        if ok:
            self.failures.pop(item, None)
        else:
            n = self.failures.get(item, 0)
            self.failures[item] = n + 1
            self.add(item, min(self.highest, self.first << min(n, 20)))
        self.busy.discard(item)
        self.free += 1
        if item in self.dirty:
            self.waiting.append(item)
        self.sim.after(0, self._next)
