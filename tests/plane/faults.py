"""Faults of a control plane: it does one thing wrong, once.

Each function makes what takes the place of one method, from that method. `once` says when it is
time, and keeps the names of the objects that the fault is about.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.plane.claims import ClaimController
from tests.plane.eviction import Evictor
from tests.plane.garbage import Collector
from tests.plane.objects import COLLECTOR, KCM, done, key_of
from tests.plane.scheduler import Scheduler
from tests.plane.server import Server
from tests.plane.simulated import SECOND

FAULTS: dict[str, tuple[object, str, Callable]] = {}


class Once:
    """The n-th call of those that ask is the one; `names` are those of its objects."""

    def __init__(self, number):
        self.left, self.names, self.until = number, (), 0

    def __call__(self, *names):
        if self.names:
            return False
        self.left -= 1
        if self.left <= 0:
            self.names = names
        return bool(self.names)

    def again(self, *names):
        """Whether it is about the same objects, or is the one."""
        return self.names == names or self(*names)


@contextmanager
def planted(name: str, number: int) -> Iterator[Once]:
    """The fault at its `number`th occasion in all that runs meanwhile."""
    owner, attribute, make = FAULTS[name]
    old, once = getattr(owner, attribute), Once(number)
    setattr(owner, attribute, make(once, old))
    try:
        yield once
    finally:
        setattr(owner, attribute, old)


def fault(owner, attribute):
    def keep(make):
        FAULTS[make.__name__] = owner, attribute, make
        return make

    return keep


def places(results):
    return {(each["driver"], each["pool"], each["device"]) for each in results}


@fault(Scheduler, "_reserve")
def another_device(once, old):
    """The last free device of a pool, not the first that fits."""

    def reserve(self, entry, pod, node, new, allocations):
        given = [each for one in allocations for each in one["devices"]["results"]]
        for result in given:
            pool = result["driver"], result["pool"]
            held = [each for one in self._allocations() for each in one["devices"]["results"]]
            used = places([*held, *given])
            free = [
                device["name"]
                for one in self.slices.values()
                if (one["spec"]["driver"], one["spec"]["pool"]["name"]) == pool
                for device in one["spec"]["devices"]
                if (*pool, device["name"]) not in used
            ]
            if free and free[-1] > result["device"] and once(key_of(pod)[1]):
                result["device"] = free[-1]
        return old(self, entry, pod, node, new, allocations)

    return reserve


@fault(Scheduler, "_reserve")
def double(once, old):
    """A device that another claim has."""

    def reserve(self, entry, pod, node, new, allocations):
        for one in allocations:
            for result in one["devices"]["results"]:
                held = [
                    each
                    for other in self._allocations()
                    for each in other["devices"]["results"]
                    if (each["driver"], each["pool"]) == (result["driver"], result["pool"])
                ]
                if held and once(key_of(pod)[1]):
                    result["device"] = held[0]["device"]
        return old(self, entry, pod, node, new, allocations)

    return reserve


@fault(Scheduler, "_activate")
def forgotten_pod(once, old):
    """A new pod that never gets into the queue."""

    def activate(self, entry):
        if entry.attempts == 0 and once(key_of(entry.pod)[1]):
            entry.where = "lost"
        return None if entry.where == "lost" else old(self, entry)

    return activate


@fault(Scheduler, "_requeue")
def never_again(once, old):
    """A refused pod that is not tried again, though something woke it."""

    def requeue(self, entry):
        if entry.attempts and once(key_of(entry.pod)[1]):
            entry.where = "lost"
        return None if entry.where == "lost" else old(self, entry)

    return requeue


@fault(Scheduler, "_choose")
def other_node(once, old):
    """A fuller node than the best."""

    def choose(self, pod, fitting, used, held):
        best = old(self, pod, fitting, used, held)
        room = used.get(key_of(best[0])[1], 0)
        others = [each for each in fitting if used.get(key_of(each[0])[1], 0) > room]
        return others[0] if others and once(key_of(pod)[1]) else best

    return choose


@fault(Scheduler, "_fail")
def wrong_text(once, old):
    """A report with another reason."""

    def fail(self, entry, pod, message, **more):
        right = "cannot allocate all claims"
        if right in message and once(key_of(pod)[1]):
            message = message.replace(right, "resourceclaim not available on the node")
        return old(self, entry, pod, message, **more)

    return fail


@fault(Scheduler, "_filter")
def refused_though_fits(once, old):
    """A pod that is refused for four seconds wherever it fits."""

    def look(self, pod, node, used, attempt, held, unavailable):
        made = old(self, pod, node, used, attempt, held, unavailable)
        reason, _, _, error = made
        if reason is None and not error and attempt and once.again(key_of(pod)[1]):
            once.until = once.until or self.sim.now + 4 * SECOND
            if self.sim.now < once.until:
                return "cannot allocate all claims", "DynamicResources", None, None
        return made

    return look


@fault(ClaimController, "_sync_claim")
def missing_release(once, old):
    """A claim that keeps the reservation of a pod that has ended."""

    def sync(self, key):
        claim = self.claims.get(key)
        held = claim["status"].get("reservedFor", []) if claim else []
        pods = [self.pods.get((key[0], each["name"])) for each in held]
        if once.names == (key[1],) or (any(pod and done(pod) for pod in pods) and once(key[1])):
            yield 1
            return True
        return (yield from old(self, key))

    return sync


@fault(ClaimController, "_keeps")
def early_release(once, old):
    """A reservation of a running pod that is removed."""

    def keeps(self, namespace, held):
        is_kept = yield from old(self, namespace, held)
        pod = self.pods.get((namespace, held["name"]))
        runs = is_kept and pod and pod["status"]["phase"] == "Running"
        return is_kept and not (runs and once(held["name"]))

    return keeps


@fault(Server, "create")
def changed_claim(once, old):
    """A claim that asks for a device more than its template."""

    def create(self, kind, tree):
        if kind == "ResourceClaim" and "generateName" in tree["metadata"]:
            request = tree["spec"]["devices"]["requests"][0]
            if "exactly" in request and once(tree["metadata"]["generateName"]):
                request["exactly"]["count"] += 1
        return old(self, kind, tree)

    return create


@fault(Evictor, "_judge")
def no_eviction(once, old):
    """A pod that is never evicted."""

    def judge(self, pod):
        if self._pod_eviction(pod) and once.again(key_of(pod)[1]):
            return None
        return old(self, pod)

    return judge


@fault(Evictor, "_judge")
def evicted_without_taint(once, old):
    """A running pod that is evicted for nothing."""

    def judge(self, pod):
        runs = pod["status"]["phase"] == "Running" and pod["spec"].get("resourceClaims")
        if runs and not self._pod_eviction(pod) and once(key_of(pod)[1]):
            item = ("pod", *key_of(pod), pod["metadata"]["uid"])
            self.due[item[1:]] = (self.sim.now, ())
            self.queue.add(item)
            return None
        return old(self, pod)

    return judge


@fault(Scheduler, "_pre_bind")
def no_reservation(once, old):
    """A pod that is bound without being in `reservedFor`."""

    def write(self, claim, pod, allocation):
        if allocation is None and once(key_of(pod)[1]):
            yield 1
            return claim
        return (yield from old(self, claim, pod, allocation))

    return write


@fault(Collector, "_dependent")
def collected_alive(once, old):
    """The claim of a living pod that the garbage collector deletes."""

    def look(self, kind, before, now):
        is_held = kind == "ResourceClaim" and before and now and now["status"].get("reservedFor")
        if is_held and "ownerReferences" in now["metadata"] and once(key_of(now)[1]):
            self.sim.spawn(remove(self, now))
        return old(self, kind, before, now)

    def remove(self, claim):
        key = key_of(claim)
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/__internal",
            "preconditions": {"uid": claim["metadata"]["uid"]},
            "propagationPolicy": "Background",
        }
        yield SECOND * 2 // 5
        yield from self.server.call(
            COLLECTOR,
            "delete",
            "ResourceClaim",
            key,
            lambda: self.server.delete("ResourceClaim", key),
            body=body,
            agent=KCM,
        )

    return look
