"""The state of a history and the rules that it must keep, read from the events alone.

The judges use it, so it imports no views, inventories or invariants of the product. Objects are
trees in a dictionary; each rule reads them itself. Parity: controllers.md 6.2 and 7.3,
allocator.md 1.1, 7 and 8.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from app.domain.allocation.checking import amounts
from app.domain.log import Event, EventType, ObjectKey

GROUP = "resource.k8s.io"
CLAIMS, SLICES, PODS = (GROUP, "resourceclaims"), (GROUP, "resourceslices"), ("", "pods")
PROTECTION = "resource.kubernetes.io/delete-protection"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
FINISHED = ("Succeeded", "Failed")

Device = tuple[str, str, str]
Pool = tuple[str, str]


class PlainState:
    """Claims, pods and slices by key, with the claims that hold each device."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, dict] = {}
        self.holders: dict[Device, dict[ObjectKey, list[dict]]] = defaultdict(dict)
        self.held: dict[ObjectKey, set[Device]] = {}
        self.slices: dict[Pool, set[ObjectKey]] = defaultdict(set)
        self.users: dict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        self.used: dict[ObjectKey, set[ObjectKey]] = {}
        self.existed: set[Device] = set()

    def fold(self, event: Event) -> None:
        """Applies one event."""
        key = event.key
        place = (key.group, key.resource)
        if place not in (CLAIMS, SLICES, PODS) or not event.is_about_object:
            return
        before = self.objects.pop(key, None)
        tree = None if event.type is EventType.OBJECT_DELETED else event.object
        if tree is not None:
            self.objects[key] = tree
        if place == CLAIMS:
            self._hold(key, tree)
        elif place == PODS:
            self._use(key, tree)
        else:
            self._publish(key, before, tree)

    def broken_near(self, event: Event) -> Iterator[str]:
        """The broken rules near the objects that the event changed."""
        key, place = event.key, (event.key.group, event.key.resource)
        if place == CLAIMS:
            devices = self.held.get(key, set())
            yield from self.broken_devices(devices)
            yield from self.broken_counters({device[:2] for device in devices})
            yield from self.broken_claims([key])
            yield from self.broken_pods(self.users.get(key, ()))
        elif place == PODS:
            yield from self.broken_pods([key])
        elif place == SLICES:
            pool = pool_of(event.object)
            yield from self.broken_counters([pool])
            yield from self.broken_devices([one for one in self.holders if one[:2] == pool])

    def broken(self) -> Iterator[str]:
        """All broken rules of a world at rest."""
        yield from self.broken_devices(list(self.holders))
        yield from self.broken_counters(list(self.slices))
        claims = [key for key in self.objects if (key.group, key.resource) == CLAIMS]
        yield from self.broken_claims(claims)
        yield from self.broken_pods(
            key for key in self.objects if (key.group, key.resource) == PODS
        )
        for key in claims:
            yield from self._lost_consumers(key)

    def broken_devices(self, devices: Iterable[Device]) -> Iterator[str]:
        """Devices that are allocated twice, beyond their capacity, or never were in a slice."""
        for device in devices:
            results = [one for mine in self.holders[device].values() for one in mine]
            if not results:
                continue
            text = "/".join(device)
            if len(results) > 1 and any(not one.get("shareID") for one in results):
                yield f"device {text} is allocated {len(results)} times"
            if device not in self.existed:
                yield f"device {text} was in no slice"
            published = self._published(device)
            sums: dict[str, Fraction] = defaultdict(Fraction)
            for one in results:
                for name, amount in (one.get("consumedCapacity") or {}).items():
                    sums[name] += amounts.read(amount)
            for name, total in sums.items():
                there = ((published or {}).get("capacity") or {}).get(name)
                if there is not None and total > amounts.read(there["value"]):
                    yield f"{name} of device {text} is consumed beyond its capacity"

    def broken_counters(self, pools: Iterable[Pool]) -> Iterator[str]:
        """Counters that the held devices of a pool's newest generation overdraw."""
        for pool in pools:
            specs = [self.objects[key]["spec"] for key in self.slices.get(pool, ())]
            newest = max((_generation(spec) for spec in specs), default=0)
            specs = [spec for spec in specs if _generation(spec) == newest]
            there = {
                (found["name"], name): amounts.read(amount["value"])
                for spec in specs
                for found in spec.get("sharedCounters") or ()
                for name, amount in (found.get("counters") or {}).items()
            }
            drawn: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
            for spec in specs:
                for device in spec.get("devices") or ():
                    if not self.holders.get((*pool, device["name"])):
                        continue
                    for use in device.get("consumesCounters") or ():
                        for name, amount in (use.get("counters") or {}).items():
                            drawn[use["counterSet"], name] += amounts.read(amount["value"])
            for (name, counter), amount in drawn.items():
                if amount > there.get((name, counter), amount):
                    yield f"counter {counter} of set {name} in {'/'.join(pool)} is overdrawn"

    def broken_claims(self, claims: Iterable[ObjectKey]) -> Iterator[str]:
        """Claims that are allocated without a finalizer, or reserved without an allocation."""
        for key in claims:
            claim = self.objects.get(key)
            if claim is None:
                continue
            status = claim.get("status") or {}
            is_allocated = status.get("allocation") is not None
            # The scheduler removes the finalizer of a claim that it made just before the claim.
            is_own = EXTENDED in (claim["metadata"].get("annotations") or {})
            finalizers = claim["metadata"].get("finalizers") or ()
            if is_allocated and PROTECTION not in finalizers and not is_own:
                yield f"{key} is allocated without its finalizer"
            if status.get("reservedFor") and not is_allocated:
                yield f"{key} is reserved and not allocated"

    def broken_pods(self, pods: Iterable[ObjectKey]) -> Iterator[str]:
        """Bound, unfinished pods with a claim that is not allocated or not reserved for them."""
        for key in pods:
            pod = self.objects.get(key)
            if pod is None or not pod["spec"].get("nodeName"):
                continue
            if (pod.get("status") or {}).get("phase") in FINISHED:
                continue
            if not pod["spec"].get("resourceClaims"):
                continue
            for name in claims_of(key, pod):
                status = (self.objects.get(name) or {}).get("status") or {}
                uids = [one.get("uid") for one in status.get("reservedFor") or ()]
                if status.get("allocation") is None:
                    yield f"{key} is bound and {name} is not allocated"
                elif pod["metadata"]["uid"] not in uids:
                    yield f"{key} is bound and {name} is not reserved for it"

    def _lost_consumers(self, key: ObjectKey) -> Iterator[str]:
        for one in (self.objects[key].get("status") or {}).get("reservedFor") or ():
            if one.get("resource") != "pods" or one.get("apiGroup"):
                continue
            pod = self.objects.get(ObjectKey("", "pods", key.namespace, one["name"]))
            if pod is None or pod["metadata"]["uid"] != one["uid"]:
                yield f"{key} is reserved for pod {one['name']}, which does not exist"

    def _hold(self, key: ObjectKey, claim: dict | None) -> None:
        for device in self.held.pop(key, ()):
            del self.holders[device][key]
        for result in results_of(claim or {}):
            if result.get("adminAccess") is True:
                continue
            device = (result["driver"], result["pool"], result["device"])
            self.holders[device].setdefault(key, []).append(result)
            self.held.setdefault(key, set()).add(device)

    def _use(self, key: ObjectKey, pod: dict | None) -> None:
        for claim in self.used.pop(key, ()):
            self.users[claim].discard(key)
        claims = set(claims_of(key, pod or {}))
        if claims:
            self.used[key] = claims
            for claim in claims:
                self.users[claim].add(key)

    def _publish(self, key: ObjectKey, before: dict | None, tree: dict | None) -> None:
        if before is not None:
            self.slices[pool_of(before)].discard(key)
        if tree is not None:
            pool = pool_of(tree)
            self.slices[pool].add(key)
            for device in tree["spec"].get("devices") or ():
                self.existed.add((*pool, device["name"]))

    def _published(self, device: Device) -> dict | None:
        """The device in the newest slice that contains it; None when there is none."""
        found = None
        for key in self.slices.get(device[:2], ()):
            spec = self.objects[key]["spec"]
            for one in spec.get("devices") or ():
                if one["name"] == device[2] and (
                    found is None or _generation(spec) > _generation(found[0])
                ):
                    found = (spec, one)
        return None if found is None else found[1]


def results_of(claim: dict) -> list[dict]:
    """The device results of a claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def claims_of(key: ObjectKey, pod: dict) -> Iterator[ObjectKey]:
    """The keys of the claims that a pod uses, as far as their names are known."""
    status = pod.get("status") or {}
    made = {
        one["name"]: one.get("resourceClaimName")
        for one in status.get("resourceClaimStatuses") or ()
    }
    names = [
        entry.get("resourceClaimName") or made.get(entry["name"])
        for entry in (pod.get("spec") or {}).get("resourceClaims") or ()
    ]
    names.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    return (ObjectKey(*CLAIMS, key.namespace, name) for name in names if name)


def pool_of(tree: dict) -> Pool:
    """The pool of a slice."""
    return tree["spec"]["driver"], tree["spec"]["pool"]["name"]


def _generation(spec: dict) -> int:
    return spec["pool"].get("generation", 0)
