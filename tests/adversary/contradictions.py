"""Other values for one line that contradict what the lines about other objects show.

Each is chosen from the lines alone: a device that another claim holds, one whose counters are used
up, a phase that a pod never leaves, a taint without which nobody would have been evicted.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.adversary.log import Json, Log
from tests.adversary.places import Place, at, is_write

GIVEN_TWICE, OVERDRAWN, FINISHED, HARMLESS = (
    "given twice",
    "overdrawn",
    "finished",
    "harmless taint",
)

_DEVICES = ("status", "allocation", "devices", "results")
_SCHEDULER = "system:kube-scheduler"
_EVICTION = "device-taint-eviction-controller"
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

Device = tuple[str, str, str]
"""The driver, pool and name of a device."""


def _amount(text: str) -> int:
    return int(text[:-2]) * _UNITS[text[-2:]] if text[-2:] in _UNITS else int(text)


class _Held:
    """The devices that claims hold, and what the devices draw upon, line by line."""

    def __init__(self) -> None:
        self.of_claim: dict[str, list[Device]] = {}
        self.draws: dict[Device, dict[tuple[str, str], int]] = {}
        self.has: dict[tuple[str, str], dict[tuple[str, str], int]] = {}

    def note(self, line: Json, body: Json) -> None:
        """Processes the object in the answer to a write."""
        if body.get("kind") == "ResourceSlice":
            self._publish(body["spec"])
        if body.get("kind") == "ResourceClaim":
            meta = body["metadata"]
            name = f"{meta['namespace']}/{meta['name']}"
            is_kept = bool(meta.get("deletionTimestamp") and meta.get("finalizers"))
            if (line["verb"] == "delete" or meta.get("deletionTimestamp")) and not is_kept:
                self.of_claim.pop(name, None)
            else:
                self.of_claim[name] = devices_of(body)

    def _publish(self, spec: Json) -> None:
        pool = spec["driver"], spec["pool"]["name"]
        for one in spec.get("sharedCounters") or ():
            for counter, amount in one["counters"].items():
                self.has.setdefault(pool, {})[one["name"], counter] = _amount(amount["value"])
        for device in spec.get("devices") or ():
            self.draws[*pool, device["name"]] = {
                (part["counterSet"], counter): _amount(amount["value"])
                for part in device.get("consumesCounters") or ()
                for counter, amount in part["counters"].items()
            }

    def would_overdraw(self, device: Device, claim: str, instead_of: Device) -> bool:
        """Whether a claim that has this device, too, uses more than the pool has."""
        given = [one for each in self.of_claim.values() for one in each]
        given += [device, *(one for one in self.of_claim.get(claim, ()) if one != instead_of)]
        used: Counter[tuple[str, str]] = Counter()
        for one in given:
            if one[:2] == device[:2]:
                used.update(self.draws.get(one, {}))
        return any(used[each] > self.has[device[:2]][each] for each in self.draws[device])


def devices_of(claim: Json) -> list[Device]:
    """The devices that a claim has for itself."""
    return [
        (one["driver"], one["pool"], one["device"])
        for one in at(claim, _DEVICES) or ()
        if not (one.get("adminAccess") or one.get("shareID"))
    ]


def allocations(log: Log, sort: str) -> Iterator[Place]:
    """The devices of written allocations, with another one of the pool that was not available."""
    held = _Held()
    for number, line in enumerate(log.lines):
        body = line.get("responseObject")
        if not (is_write(line) and isinstance(body, dict)):
            continue
        is_by_scheduler = line["user"]["username"] == _SCHEDULER and line["verb"] == "update"
        if is_by_scheduler and at(line.get("requestObject"), _DEVICES):
            claim = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
            if not held.of_claim.get(claim):
                for path, other in _not_free(held, body, claim, sort):
                    yield Place(number, path, sort, other)
        held.note(line, body)


def _not_free(
    held: _Held, body: Json, claim: str, sort: str
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    own = devices_of(body)
    given = {one for name, each in held.of_claim.items() if name != claim for one in each}
    for number, result in enumerate(at(body, _DEVICES)):
        device = result["driver"], result["pool"], result["device"]
        if device not in own:
            continue
        others = sorted(each for each in held.draws if each[:2] == device[:2])
        if sort == GIVEN_TWICE:
            others = [each for each in others if each in given]
        else:
            others = [
                each
                for each in others
                if each not in given
                and each not in own
                and held.draws[each]
                and held.would_overdraw(each, claim, device)
            ]
        for each in others[:1]:
            yield (*_DEVICES, number, "device"), each[2]


def phases(log: Log, sort: str) -> Iterator[Place]:
    """The phases of pods that are running in a later line, too; a pod never leaves `Failed`."""
    running: dict[str, list[int]] = {}
    for number, line in enumerate(log.lines):
        body = line.get("responseObject")
        if is_write(line) and at(body, ("kind",)) == "Pod" and line["verb"] != "delete":
            phase, uid = at(body, ("status", "phase")), body["metadata"]["uid"]
            if phase == "Running":
                running.setdefault(uid, []).append(number)
    for numbers in running.values():
        for number in numbers[:-1]:
            yield Place(number, ("status", "phase"), sort, "Failed")


def reports_ready(line: Json) -> bool:
    """Whether a kubelet reports in this line that a pod is ready, which none is that has ended."""
    conditions = at(line.get("requestObject"), ("status", "conditions")) or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and bool(line["user"]["username"].startswith("system:node:"))


def _taints(body: Json) -> Iterator[tuple[tuple[str | int, ...], Json, str | None]]:
    """The taints that a slice or a rule gives: their paths, and the device or its driver."""
    for number, device in enumerate(at(body, ("spec", "devices")) or ()):
        for nth, taint in enumerate(device.get("taints") or ()):
            yield ("spec", "devices", number, "taints", nth), taint, device["name"]
    if body.get("kind") == "DeviceTaintRule":
        yield ("spec", "taint"), body["spec"]["taint"], None


def _is_about(body: Json, name: str | None, device: Device) -> bool:
    """Whether a taint of a slice's device, or of a rule, is on a device."""
    spec = body["spec"]
    if name is not None:
        return (spec["driver"], spec["pool"]["name"], name) == device
    selector = spec.get("deviceSelector") or {}
    wanted = (selector.get(field) for field in ("driver", "pool", "device"))
    return all(each in (None, value) for each, value in zip(wanted, device, strict=True))


def _refuted(log: Log, number: int) -> str:
    """The object of a line whose spec another line shows, too: with one generation, it is one spec.

    The two lines contradict each other then, whoever was evicted.
    """
    body = log.lines[number]["responseObject"]
    return next(
        (
            str(body["metadata"]["name"])
            for other, line in enumerate(log.lines)
            if other != number and is_write(line)
            for shown in (at(line.get("responseObject"), ("metadata",)) or {},)
            if shown.get("uid") == body["metadata"]["uid"]
            if shown.get("generation") == body["metadata"]["generation"]
        ),
        "",
    )


def evictions(log: Log, sort: str) -> Iterator[Place]:
    """The effects for which alone pods were evicted: the only `NoExecute` on their devices."""
    written: dict[tuple[str, str], int] = {}
    claims: dict[str, list[Device]] = {}
    users: dict[str, set[str]] = {}
    for number, line in enumerate(log.lines):
        body: Any = line.get("responseObject")
        if not (is_write(line) and isinstance(body, dict)):
            continue
        kind, name = body.get("kind", ""), at(body, ("metadata", "name")) or ""
        if kind in ("ResourceSlice", "DeviceTaintRule"):
            if line["verb"] == "delete":
                written.pop((kind, name), None)
            elif not line["objectRef"].get("subresource"):
                written[kind, name] = number
        if kind == "ResourceClaim" and devices_of(body):
            uid = body["metadata"]["uid"]
            claims[uid] = devices_of(body)
            for user in at(body, ("status", "reservedFor")) or ():
                users.setdefault(user["name"], set()).add(uid)
        if line["verb"] == "delete" and kind == "Pod" and _EVICTION in line["user"]["username"]:
            devices = [one for uid in users.get(name, ()) for one in claims[uid]]
            causes = [
                Place(
                    where, (*path, "effect"), sort, "NoSchedule", about=_refuted(log, where) or name
                )
                for where in written.values()
                for path, taint, of in _taints(log.lines[where]["responseObject"])
                if taint["effect"] == "NoExecute"
                if any(_is_about(log.lines[where]["responseObject"], of, one) for one in devices)
            ]
            if len(causes) == 1:
                yield causes[0]


CONTRADICTING: dict[str, Callable[[Log, str], Iterator[Place]]] = {
    GIVEN_TWICE: allocations,
    OVERDRAWN: allocations,
    FINISHED: phases,
    HARMLESS: evictions,
}
