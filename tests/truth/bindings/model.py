"""How each wait for binding conditions ends, and when, counted from raw objects.

A wait lasts while a pod is nominated and has no node. At its begin and every five seconds the
claims are looked at in the order of the pod: the first device that is not ready decides.
Parity: controllers.md 3.8.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.truth.facts import device_of, results

LOOK = timedelta(seconds=5)
PREFIX = 'running PreBind plugin "DynamicResources": '
STATUSES = {"device binding failed": "failure", "device binding timeout": "timeout"}


@dataclass(frozen=True, slots=True)
class Happening:
    """One version of an object and the instant of its write; no tree where it was deleted."""

    time: datetime
    key: tuple[str, str]
    uid: str
    tree: dict | None


@dataclass(slots=True)
class Wait:
    """The wait of a pod from a place in the happenings on, and what ended it: `text` if not ready.

    Without `ended` it lasts, or its pod is gone.
    """

    pod: dict
    begin: int
    began: datetime
    ended: datetime | None = None
    text: str = ""
    is_gone: bool = False
    drivers: set[str] = field(default_factory=set)
    until: int = 0

    @property
    def status(self) -> str:
        """The label of its end."""
        if not self.text:
            return "success"
        return next((STATUSES[one] for one in STATUSES if one in self.text), "error")


def waits(happenings: list[Happening]) -> list[Wait]:
    """All waits in their order, as the pods show them."""
    open: dict[str, Wait] = {}
    known: list[Wait] = []
    for number, one in enumerate(happenings):
        if one.key[0] != "pods":
            continue
        begun = open.get(one.uid)
        if begun is not None:
            begun.until = number
        if one.tree is None:
            if begun is not None:
                open.pop(one.uid).is_gone = True
            continue
        node, nominated = (
            one.tree["spec"].get("nodeName"),
            one.tree["status"].get("nominatedNodeName"),
        )
        if begun is None and nominated and not node:
            open[one.uid] = Wait(one.tree, number, one.time)
            known.append(open[one.uid])
        elif begun is not None and (node or not nominated):
            begun = open.pop(one.uid)
            begun.ended = one.time
            if not node:
                conditions = one.tree["status"]["conditions"]
                begun.text = next(c["message"] for c in conditions if c["type"] == "PodScheduled")
    for begun in open.values():
        begun.until = len(happenings)
    for begun in known:
        state = state_at(happenings, begun.began, begun.until)
        begun.drivers = {
            one["driver"]
            for claim in claims_of(begun.pod, state)
            for one in results(claim)
            if one.get("bindingConditions")
        }
    return [one for one in known if one.drivers]


def state_at(
    happenings: list[Happening], time: datetime, until: int, *, is_past: bool = False
) -> dict[str, dict]:
    """The claims at an instant by their names: with what happens just then, or before it."""
    state: dict[str, dict] = {}
    for one in happenings[:until]:
        is_seen = one.time < time or (one.time == time and not is_past)
        if one.key[0] == "resourceclaims" and is_seen:
            state[one.key[1]] = one.tree or {}
    return state


def claims_of(pod: dict, state: dict[str, dict]) -> Iterator[dict]:
    """The claims of a pod in its order; nobody deletes one."""
    for entry in pod["spec"]["resourceClaims"]:
        yield state[entry["resourceClaimName"]]


def look(pod: dict, state: dict[str, dict], now: datetime, timeout: timedelta) -> str | None:
    """What a look says: empty when all is ready, None to wait, otherwise why the binding ends."""
    for claim in claims_of(pod, state):
        name = claim["metadata"]["name"]
        allocation = (claim.get("status") or {}).get("allocation")
        if not allocation:
            return f"{PREFIX}claim default/{name} got deallocated elsewhere in the meantime"
        for result in results(claim):
            kinds = result.get("bindingConditions") or ()
            told = conditions_of(claim, result)
            if kinds and told is not None:
                for kind in result.get("bindingFailureConditions") or ():
                    if kind in told and told[kind]["status"] == "True":
                        why, words = told[kind]["reason"], told[kind]["message"]
                        return (
                            f"{PREFIX}device binding failed: claim={name}, reason={why}, "
                            f'message="{words}"'
                        )
            if any((told or {}).get(kind, {}).get("status") != "True" for kind in kinds):
                since = datetime.fromisoformat(allocation["allocationTimestamp"])
                # A clock is always a little past the microsecond that an event shows.
                if since + timeout <= now:
                    return f"{PREFIX}device binding timeout: claim={name}"
                return None
    return ""


def conditions_of(claim: dict, result: dict) -> dict[str, dict] | None:
    """What the driver reports of a device, by type; None if it reports nothing."""
    for one in claim["status"].get("devices") or ():
        if device_of(one) == device_of(result):
            return {each["type"]: each for each in one.get("conditions") or ()}
    return None


def differences(happenings: list[Happening], end: datetime, timeout: timedelta) -> Iterator[str]:
    """One line for each wait that does not end as the looks at its claims say."""
    for one in waits(happenings):
        name = one.pod["metadata"]["name"]
        now, text = one.began, None
        last = one.ended or (happenings[one.until].time if one.is_gone else end)
        while now <= last:
            is_first = now == one.began
            state = state_at(happenings, now, one.until, is_past=not is_first)
            text = look(one.pod, state, now, timeout)
            if text is not None:
                break
            now += LOOK
        said = (one.ended, one.text) if one.ended is not None else None
        counted = None if text is None else (now, text)
        if said != counted:
            yield f"pod {name} waits from {one.began}: {said}, counted {counted}"


def metrics(happenings: list[Happening]) -> tuple[Counter, dict[tuple[str, str], float]]:
    """The ended waits by driver and status, and their seconds."""
    counts: Counter = Counter()
    seconds: dict[tuple[str, str], float] = {}
    for one in waits(happenings):
        if one.ended is not None:
            for driver in one.drivers:
                label = driver, one.status
                counts[label] += 1
                length = (one.ended - one.began).total_seconds()
                seconds[label] = seconds.get(label, 0) + length
    return counts, seconds
