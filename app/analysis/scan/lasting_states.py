"""Incidents that show in lasting states: claims, pools and pods that wait in vain.

For a moment, such states are normal in a cluster. Only those that lasted show an incident.
"""

from collections.abc import Iterator

from app.analysis.explain import sources
from app.analysis.scan.sightings import LASTED, Sightings
from app.analysis.scan.traces import UNRESERVED
from app.domain.controllers import pods
from app.domain.devices import taints
from app.domain.devices.taints import TaintRule
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, durations, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

WAITING = "claim-waits-for-a-pod"
NAME_TWICE = "device-name-in-two-slices"
STAYS = "extended-resources-stay"
RENEWED = "tolerated-time-starts-anew"
TOO_LATE = "placed-to-be-evicted"
LOOKED_FOR = (WAITING, NAME_TWICE, STAYS, RENEWED, TOO_LATE)

EVICTING = "NoExecute"

_RULES = api_resources.DEVICE_TAINT_RULES


class Standing:
    """Follows claims, pods, rules and slices."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._claims: dict[ObjectKey, JsonObject] = {}
        self._created: dict[ObjectKey, Event] = {}
        self._held: dict[ObjectKey, Event] = {}
        self._pods: dict[ObjectKey, JsonObject] = {}
        self._placed: dict[str, Instant] = {}
        self._rules: dict[ObjectKey, tuple[TaintRule, Event]] = {}
        self._slices: dict[ObjectKey, JsonObject] = {}
        self._of_pools: dict[PoolId, dict[ObjectKey, JsonObject]] = {}
        self._tainted: dict[ObjectKey, dict[DeviceId, Event]] = {}
        self._named: set[ObjectKey] = set()
        self._unread: set[str] = set()
        self._now = Instant(0)

    def see(self, event: Event) -> None:
        """Processes the next event."""
        if not event.is_about_object:
            return
        self._now = max(self._now, event.stamp.time)
        place = event.key[:2]
        is_deletion = event.type is EventType.OBJECT_DELETED
        if place == api_resources.RESOURCE_CLAIMS:
            self._claim(event, is_deletion=is_deletion)
        elif place == api_resources.PODS:
            if is_deletion or meta.is_deleting(event.object):
                self._stayed(event.key, self._sightings, self._now)
                self._pods.pop(event.key, None)
            else:
                self._pod(event)
        elif place == api_resources.DEVICE_TAINT_RULES:
            self._rules.pop(event.key, None)
            rule = taints.rule_of(event.object)
            if not is_deletion and rule.taint.effect == EVICTING and rule.selects:
                self._rules[event.key] = rule, event
        elif place == api_resources.RESOURCE_SLICES:
            self._slice(event, is_deletion=is_deletion)

    def end(self, sightings: Sightings, now: Instant) -> None:
        """Adds the incidents that show only by lasting, until `now` or the last event."""
        now = max(now, self._now)
        for event in self._created.values():
            self._unnamed(event, sightings, now)
        for event in self._held.values():
            self._kept(event, sightings, now)
        for key in self._pods:
            self._stayed(key, sightings, now)

    def _unnamed(self, event: Event, sightings: Sightings, now: Instant) -> None:
        """Finds a claim that no pod has named for long, when it ends or is asked about."""
        age = now - event.stamp.time
        is_known = event.key not in self._named and event.key.namespace not in self._unread
        if is_known and age >= LASTED:
            message = f"no pod has named it for {durations.rounded(age // SECOND)}"
            sightings.add(WAITING, event.revision, message, event.key, rests_on=("pods",))

    def _kept(self, event: Event, sightings: Sightings, now: Instant) -> None:
        """Finds a claim that was long allocated before anybody reserved or named it.

        Parity: controllers.md C10.
        """
        is_known = event.key.namespace not in self._unread
        if is_known and now - event.stamp.time >= LASTED:
            message = "it is allocated, and nobody has ever reserved it"
            needed = ("pods", event.key.resource)
            sightings.add(UNRESERVED, event.revision, message, event.key, rests_on=needed)

    def _not_held(self, claim: ObjectKey) -> None:
        """A claim ends, is given back, reserved or named: until now it may have been held."""
        if (event := self._held.pop(claim, None)) is not None:
            self._kept(event, self._sightings, self._now)

    def _pod(self, event: Event) -> None:
        pod = event.object
        self._pods[event.key] = pod
        if sources.is_printed([event]):
            # What kubectl prints of a pod does not show its claims.
            self._unread.add(event.key.namespace)
        for entry in core.resource_claims(pod):
            name = str(entry.get("resourceClaimName") or "")
            claim = ObjectKey(*api_resources.RESOURCE_CLAIMS, event.key.namespace, name)
            self._named.add(claim)
            self._not_held(claim)
        if core.node_name(pod):
            self._placed.setdefault(meta.uid(pod), event.stamp.time)

    def _claim(self, event: Event, *, is_deletion: bool) -> None:
        tree = event.object
        if is_deletion:
            self._claims.pop(event.key, None)
            if (created := self._created.pop(event.key, None)) is not None:
                self._unnamed(created, self._sightings, self._now)
            self._not_held(event.key)
            self._named.discard(event.key)
            return
        before = self._claims.get(event.key)
        self._claims[event.key] = tree
        if dra.results(tree) and (before is None or not dra.results(before)):
            # The first recorded state of a claim may be much younger than its allocation.
            allocated = _time_of(dra.allocation_time(dra.allocation(tree) or {}))
            when = allocated if before is None else event.stamp.time
            if when is not None:
                self._placed_late(event, when)
        if dra.reserved_for(tree):
            self._named.add(event.key)
        is_held = dra.allocation(tree) is not None and not meta.is_deleting(tree)
        if not is_held or event.key in self._named:
            self._not_held(event.key)
        elif not meta.owners(tree) and not sources.is_printed([event]):
            self._held.setdefault(event.key, event)
        # A claim from a template is created for its pod.
        if dra.allocation(tree) is not None or meta.owners(tree) or meta.is_deleting(tree):
            self._created.pop(event.key, None)
        elif event.type is EventType.OBJECT_CREATED and not sources.is_printed([event]):
            self._created[event.key] = event

    def _placed_late(self, event: Event, when: Instant) -> None:
        """Finds a device that a claim gets when the time for which it tolerates a taint is over.

        Of several tolerations the shortest time counts. Parity: controllers.md C2.
        """
        for result in dra.results(event.object):
            read = [taints.toleration_of(each) for each in result.tolerations]
            for source, taint in self._evicting_taints(result.id):
                fitting = [each for each in read if taints.tolerates(each, taints.taint_of(taint))]
                seconds = [each.tree.get("tolerationSeconds") for each in fitting]
                added = _time_of(taint.get("timeAdded"))
                if added is None or not seconds or not all(isinstance(one, int) for one in seconds):
                    continue
                over = added + max(0, min(int(str(one)) for one in seconds)) * SECOND
                if over <= when:
                    who = _source(source)
                    message = f"it gets {result.text}, tainted {taint.get('key')} by {who}, which "
                    message += f"it tolerated until {timestamps.seconds_text(Instant(over))}"
                    self._sightings.add(
                        TOO_LATE, event.revision, message, event.key, rests_on=(source.resource,)
                    )

    def _evicting_taints(self, device: DeviceId) -> Iterator[tuple[ObjectKey, JsonView]]:
        """The evicting taints of a device as in the API, each after its rule or slice."""
        for key, (rule, event) in self._rules.items():
            if rule.matches(device, without_selector=False):
                yield key, dra.taint(event.object)
        for key, ids in self._tainted.items():
            is_used = device in ids and self._is_newest(self._slices[key])
            for tree in dra.devices(self._slices[key]) if is_used else ():
                if tree.get("name") == device[2]:
                    yield from (
                        (key, taint)
                        for taint in dra.device_taints(tree)
                        if taint.get("effect") == EVICTING
                    )

    def _is_newest(self, tree: JsonObject) -> bool:
        """Whether a slice is of the newest generation of its pool."""
        pool, generation = dra.pool_id(tree), dra.pool(tree).generation
        return not any(
            dra.pool(other).generation > generation
            for other in self._of_pools.get(pool, {}).values()
        )

    def _slice(self, event: Event, *, is_deletion: bool) -> None:
        before = self._slices.pop(event.key, None)
        known = self._tainted.pop(event.key, {})
        if before is not None:
            del self._of_pools[dra.pool_id(before)][event.key]
        if is_deletion:
            return
        pool = dra.pool_id(event.object)
        self._slices[event.key] = event.object
        # Each slice of a large cluster would otherwise be compared with all the others.
        self._of_pools.setdefault(pool, {})[event.key] = event.object
        ids = [
            (*pool, DeviceName(str(device.get("name"))))
            for device in dra.devices(event.object)
            if any(each.get("effect") == EVICTING for each in dra.device_taints(device))
        ]
        if ids:
            self._tainted[event.key] = {each: known.get(each, event) for each in ids}
        self._repeated(event)
        if before is not None:
            self._renewed(event, before)

    def _repeated(self, event: Event) -> None:
        """Finds a device name that occurs twice in a complete newest generation of a pool."""
        pool = dra.pool_id(event.object)
        newest = dra.pool(event.object).generation
        parts = self._of_pools[pool]
        if any(dra.pool(tree).generation > newest for tree in parts.values()):
            return
        parts = {key: tree for key, tree in parts.items() if dra.pool(tree).generation == newest}
        if len(parts) != dra.pool(event.object).resource_slice_count:
            return
        homes: dict[str, ObjectKey] = {}
        for key, tree in parts.items():
            for name in {str(device.get("name")) for device in dra.devices(tree)}:
                other = homes.setdefault(name, key)
                if other != key:
                    message = f"device {name} of pool {'/'.join(pool)} is in two of its slices"
                    needed = (key.resource,)
                    self._sightings.add(
                        NAME_TWICE, event.revision, message, other, key, rests_on=needed
                    )
                    return

    def _renewed(self, event: Event, before: JsonObject) -> None:
        """Finds an existing taint with a later time, on a device whose pod tolerates it."""
        pool = dra.pool_id(event.object)
        old = {str(device.get("name")): device for device in dra.devices(before)}
        for device in dra.devices(event.object):
            name = str(device.get("name"))
            if name not in old:
                continue
            times = {
                _identity(each): each.get("timeAdded") for each in dra.device_taints(old[name])
            }
            for taint in dra.device_taints(device):
                then, now = times.get(_identity(taint)), taint.get("timeAdded")
                if taint.get("effect") != EVICTING or not _is_later(now, then):
                    continue
                for claim in self._tolerating((*pool, DeviceName(name)), taint):
                    message = (
                        f"the time of taint {taint.get('key')} of {name} is {now} after {then}"
                    )
                    self._sightings.add(RENEWED, event.revision, message, event.key, claim)

    def _tolerating(self, device: DeviceId, taint: JsonObject) -> Iterator[ObjectKey]:
        """The claims in use that hold a device and tolerate its taint for a time."""
        for key, tree in self._claims.items():
            for result in dra.results(tree) if dra.reserved_for(tree) else ():
                read = [taints.toleration_of(each) for each in result.tolerations]
                fitting = [each for each in read if taints.tolerates(each, taints.taint_of(taint))]
                times = [each.tree.get("tolerationSeconds") for each in fitting]
                if result.id == device and fitting and None not in times:
                    yield key

    def _stayed(self, key: ObjectKey, sightings: Sightings, now: Instant) -> None:
        """Finds a pod that was long on a device with an evicting taint, by an extended resource."""
        pod = self._pods.get(key, {})
        name = pods.facts(pod).extended_claim
        placed = self._placed.get(meta.uid(pod))
        if not name or placed is None or core.is_finished(pod):
            return
        claim = ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, name)
        for result in dra.results(self._claims.get(claim, {})):
            for source, since in self._evicting(result.id):
                seconds = (now - max(since.stamp.time, placed)) // SECOND
                if seconds * SECOND >= LASTED:
                    message = (
                        f"it stays on {result.text}, which {_source(source)} taints for "
                        f"{durations.rounded(seconds)}"
                    )
                    needed = (source.resource, "pods")
                    sightings.add(STAYS, since.revision, message, key, claim, rests_on=needed)
                    return

    def _evicting(self, device: DeviceId) -> Iterator[tuple[ObjectKey, Event]]:
        """The rules and slices with evicting taints of a device, with the event since which."""
        for key, (rule, event) in self._rules.items():
            if rule.matches(device, without_selector=False):
                yield key, event
        for key, published in self._tainted.items():
            if device in published:
                yield key, published[device]


def _source(key: ObjectKey) -> str:
    """The author of a taint of a device: a rule, or the driver that publishes the slice."""
    return f"DeviceTaintRule {key.name}" if key[:2] == _RULES else "its driver"


def _time_of(value: object) -> Instant | None:
    try:
        return timestamps.parse(str(value))
    except ValueError:
        return None


def _identity(taint: JsonView) -> tuple[object, ...]:
    return taint.get("key"), taint.get("value"), taint.get("effect")


def _is_later(time: object, other: object) -> bool:
    """Whether a time of the API is later than another; an unreadable one is not."""
    try:
        return timestamps.parse(str(time)) > timestamps.parse(str(other))
    except ValueError:
        return False
