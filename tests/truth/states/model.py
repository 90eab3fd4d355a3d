"""States, causes, holders, authors and times of pods and claims, counted from raw events.

Trees are dictionaries as they stand in the log; nothing of the product is imported.
Parity: controllers.md 1.2, 1.3, 2 and 5.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.truth.facts import FINISHED, Facts, device_of, results
from tests.truth.raw import Change, Key, RawHistory

PROTECTION = "resource.kubernetes.io/delete-protection"
EVICTED = "DeletionByDeviceTaintManager"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Write:
    """One write of an object: the user, the time in microseconds, and the state after it."""

    revision: int
    user: str
    time: int
    tree: dict | None


@dataclass(frozen=True, slots=True)
class Threat:
    """A taint on a device of a claim: by whom, and when it evicts (None: never).

    `how` is effect, forever, until, at once or vague (a toleration without an effect).
    """

    device: str
    taint: str
    source: str
    how: str
    due: datetime | None = None


def moment(text: str) -> datetime:
    """The instant of an RFC 3339 text."""
    return datetime.fromisoformat(text)


def text_of(instant: datetime | None) -> str:
    """The instant as it is written in sentences."""
    return "" if instant is None else instant.isoformat().replace("+00:00", "Z")


def written(micros: int) -> str:
    """The instant in microseconds since 1970 as it is written in sentences."""
    return text_of(EPOCH + timedelta(microseconds=micros))


class States:
    """The present states of a history, given by all its events, oldest first."""

    def __init__(self, events: list[tuple[Key, Write]]) -> None:
        self.writes: dict[Key, list[Write]] = {}
        for key, write in events:
            self.writes.setdefault(key, []).append(write)
        self.last = events[-1][1].revision
        changes = [Change(write.revision, key, write.tree) for key, write in events]
        self._history = RawHistory(changes)
        self.facts = Facts(self._history.at(self.last))

    def before(self, revision: int) -> Facts:
        """The facts just before a revision."""
        return Facts(RawHistory(list(self._history.changes)).at(revision - 1))

    def life(self, key: Key) -> list[Write]:
        """The writes of the object that is there now, oldest first."""
        writes = self.writes[key]
        gone = [number for number, write in enumerate(writes) if write.tree is None]
        return writes[gone[-1] + 1 if gone else 0 :]

    def since(self, key: Key, holds) -> Write | None:
        """The write since which something holds without interruption."""
        first = None
        for write in reversed(self.life(key)):
            if not holds(write.tree):
                break
            first = write
        return first

    # Deletion.

    def deletion(self, key: Key) -> Iterator[str]:
        """The sentences that are due about the author of a deletion, and its end."""
        since = self.since(key, lambda tree: "deletionTimestamp" in tree["metadata"])
        if since is None or since.tree is None:
            return
        who = f"deletion was asked for by {since.user} at {written(since.time)}"
        if key[0] != "pods":
            yield who
            return
        grace = since.tree["metadata"].get("deletionGracePeriodSeconds") or 0
        until = since.tree["metadata"]["deletionTimestamp"]
        yield f"{who} with {grace} s of grace until {until}" if grace else who
        for write in self.life(key):
            left = (write.tree or {})["metadata"].get("deletionGracePeriodSeconds") or 0
            if write.revision > since.revision and left < grace:
                grace = left
                yield f"the grace period became {grace} s by {write.user} at {written(write.time)}"

    # Claims of a pod.

    def claims_of(self, name: str) -> Iterator[tuple[str, dict | None]]:
        """The claims that a pod names, by entry; those not made yet have no name."""
        pod = self.facts.pods[f"default/{name}"]
        statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        made = {one["name"]: one.get("resourceClaimName") for one in statuses}
        for entry in pod["spec"].get("resourceClaims") or ():
            claim = entry.get("resourceClaimName") or made.get(entry["name"]) or ""
            yield claim, self.facts.claims.get(f"default/{claim}")

    def has(self, pod: dict, claim: dict | None) -> bool:
        """Whether a claim is allocated, and reserved for a pod."""
        status = (claim or {}).get("status") or {}
        uids = [one["uid"] for one in status.get("reservedFor") or ()]
        return "allocation" in status and pod["metadata"]["uid"] in uids

    def reserved(self, pod: dict) -> Iterator[tuple[str, dict]]:
        """The claims that are reserved for a pod, with their names."""
        for name, claim in self.facts.claims.items():
            users = (claim.get("status") or {}).get("reservedFor") or ()
            if any(one["uid"] == pod["metadata"]["uid"] for one in users):
                yield name.removeprefix("default/"), claim

    # Heads.

    def pod(self, name: str) -> tuple[str, str]:
        """The outcome of a pod with a node or a deletion, and words of its first sentence."""
        pod = self.facts.pods[f"default/{name}"]
        status, meta = pod.get("status") or {}, pod["metadata"]
        phase, node = status.get("phase"), pod["spec"].get("nodeName")
        is_deleting, is_finished = "deletionTimestamp" in meta, phase in FINISHED
        outcome = phase if is_finished else "Terminating" if is_deleting else "Scheduled"
        if not node:
            if is_finished:
                return phase, "has finished and never had a node"
            return ("Terminating", "is being deleted") if is_deleting else ("", "")
        if ("nodes", "", node) not in self.facts.state:
            return outcome, f"is bound to node {node}, which is gone"
        if is_finished and is_deleting and meta.get("finalizers"):
            return outcome, f"has ended on node {node}, and finalizers keep it"
        if is_finished and is_deleting:
            return outcome, f"has ended on node {node}, and its kubelet has to confirm it"
        if is_finished:
            return outcome, f"has ended on node {node}"
        if is_deleting:
            return outcome, f"ends on node {node}; its devices are free when it has"
        for one in status.get("conditions") or ():
            if one["type"] == "DisruptionTarget" and one["status"] == "True":
                return outcome, f"is on node {node} and is marked for disruption: {one['reason']}"
        claims = list(self.claims_of(name))
        lacking = [claim for claim, tree in claims if claim and not self.has(pod, tree)]
        is_unready = bool(lacking) or not all(claim for claim, _ in claims)
        if phase != "Running":
            words = "cannot start there" if is_unready else "has not started there"
            return outcome, f"is bound to node {node} and {words}"
        if lacking:
            return outcome, f"runs on node {node} and has lost {', '.join(lacking)}"
        held = [device_of(one) for _, tree in claims for one in results(tree or {})]
        gone = sum(one not in self.facts.devices for one in held)
        if gone:
            these = "devices that are" if gone > 1 else "a device that is"
            return outcome, f"runs on node {node}, with {these} not published any more"
        return outcome, f"runs on node {node}"

    def claim(self, name: str) -> tuple[str, str]:
        """The outcome of a claim, and its number of devices."""
        claim = self.facts.claims[name]
        devices = len(results(claim))
        outcome = "Allocated" if "allocation" in (claim.get("status") or {}) else "Pending"
        if "deletionTimestamp" in claim["metadata"]:
            outcome = "Terminating"
        plural = "" if devices == 1 else "s"
        return outcome, f"{devices} device{plural}" if devices else "no device is allocated"

    def consumers(self, name: str) -> Iterator[str]:
        """The sentences that are due about each pod that a claim is reserved for."""
        key = ("resourceclaims", *name.split("/"))
        for one in (self.facts.claims[name].get("status") or {}).get("reservedFor") or ():
            uid = one["uid"]
            since = self.since(key, lambda tree, uid=uid: uid in str(tree.get("status")))
            pod = self.facts.pods.get(f"default/{one['name']}")
            text = f"pod {one['name']}, {self._consumer(pod, uid)}; reserved"
            yield text if since is None else f"{text}, by {since.user} at {written(since.time)}"

    def _consumer(self, pod: dict | None, uid: str) -> str:
        if pod is None:
            return "which is gone"
        if pod["metadata"]["uid"] != uid:
            return "which was replaced by another pod of the same name"
        phase, node = pod["status"].get("phase"), pod["spec"].get("nodeName")
        if phase in FINISHED:
            return f"which has ended ({phase})"
        if "deletionTimestamp" in pod["metadata"]:
            return f"which is being deleted, on node {node or 'none'}"
        return f"on node {node}" if node else "which has no node yet"

    # Taints.

    @staticmethod
    def threats(facts: Facts, claim: dict, *, with_all: bool = True) -> Iterator[Threat]:
        """Each taint on each device of a claim; without `with_all`, only those that evict."""
        for result in results(claim):
            id = device_of(result)
            for source, taint in _taints(facts, id):
                how, due = _patience(taint, result.get("tolerations") or ())
                if with_all or due is not None:
                    value = f"={taint['value']}" if taint.get("value") else ""
                    text = f"{taint['key']}{value}:{taint['effect']}"
                    yield Threat("/".join(id), text, source, how, due)

    def evicting(self, name: str) -> tuple[datetime, set[str]] | None:
        """When a pod is to be evicted, and by what, by the taints of its claims."""
        pod = self.facts.pods[f"default/{name}"]
        threats = [
            threat
            for _, tree in self.claims_of(name)
            if tree is not None and self.has(pod, tree)
            for threat in self.threats(self.facts, tree, with_all=False)
        ]
        if not threats or not pod["spec"].get("nodeName"):
            return None
        due = min(one.due for one in threats if one.due is not None)
        return due, {one.source for one in threats if one.due is not None and one.due <= due}


def _taints(facts: Facts, id) -> Iterator[tuple[str, dict]]:
    """The taints on a device, also on one that no slice publishes: rules need no slice."""
    if id in facts.devices:
        device = facts.devices[id]
        for taint in device.tree.get("taints") or ():
            yield f"the driver, slice {device.slice}", taint
    for rule, taint in facts.rules_of(id):
        if id in facts.devices or taint["effect"] == "NoExecute":
            yield f"rule {rule}", taint


def _patience(taint: dict, tolerations) -> tuple[str, datetime | None]:
    if taint["effect"] != "NoExecute":
        return "effect", None
    matching = [one for one in tolerations if _matches(one, taint)]
    exact = [one for one in matching if one.get("effect") == "NoExecute"]
    added = moment(taint["timeAdded"])
    if any("tolerationSeconds" not in one for one in exact):
        return "forever", None
    if exact:
        seconds = min(max(0, one["tolerationSeconds"]) for one in exact)
        return ("until" if seconds else "at once"), added + timedelta(seconds=seconds)
    return ("vague" if matching else "at once"), added


def _matches(toleration: dict, taint: dict) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get(
        "value", ""
    )
