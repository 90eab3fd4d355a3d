"""What a timeline has to show, counted from the raw events of a log.

A row stands for each event that changes something about an object which a person follows. For two
trees, `words_of` says which words the row may have; where it has none, there is no row. Which rows
a filter leaves is judged by the raw states before and after the event.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.truth.facts import Device, device_of, reserved_for, results
from tests.truth.raw import Key, State

FINISHED = ("Succeeded", "Failed")
WORDS = {
    "pods": "Pod",
    "nodes": "Node",
    "resourceclaims": "Claim",
    "resourceslices": "Slice",
    "devicetaintrules": "Rule",
    "namespaces": "Namespace",
    "deviceclasses": "Class",
    "resourceclaimtemplates": "Template",
    "resourceslicepatches": "Patch",
}
SILENT = ("leases", "endpoints", "events")
FACTS = ("GapObserved", "ConflictObserved", "HistoryForked", "HistoryImported")
REFUSED = (400, 403, 422)
"""Bad request, forbidden, invalid: what no second try of the same request changes."""
SHOWN = {"ObjectCreated", "ObjectUpdated", "ObjectDeleted"}


def is_refused(request: dict) -> bool:
    """Whether an observed write was refused, also for a webhook that nobody reaches."""
    if request.get("code") == 500:
        return "failed calling webhook" in request.get("message", "")
    return request.get("code") in REFUSED


@dataclass(frozen=True, slots=True)
class Happening:
    """One event: its revision, the words that a row may have, and what it concerns."""

    revision: int
    time: str
    words: frozenset[str]
    subject: tuple[str, str, str, str]
    namespaces: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    devices: frozenset[Device] = frozenset()


@dataclass(slots=True)
class Telling:
    """Follows a log; `state` holds the trees of all objects after the last event."""

    state: State = field(default_factory=dict)

    def of(self, lines: Iterable[dict]) -> Iterator[Happening]:
        """Everything that happened, in order."""
        for line in lines:
            key = (line["resource"], line["namespace"], line["name"])
            before = self.state.get(key)
            concerned = [self._concerned(key, before)]
            after = None if line["type"] == "ObjectDeleted" else line["object"]
            if line["type"] in SHOWN:
                if after is None:
                    self.state.pop(key, None)
                else:
                    self.state[key] = after
                concerned.append(self._concerned(key, after))
            about = _about(line)
            if about is not None:
                concerned.append(self._concerned(about, self.state.get(about)))
            yield self._happening(line, key, before, after, concerned)

    def _happening(self, line: dict, key: Key, before, after, concerned) -> Happening:
        subject = (line["group"], *key)
        if line["type"] == "DecisionRecorded":
            words = frozenset(("Decision",))
        elif line["type"] in FACTS:
            words = frozenset((line["type"],))
        elif line["type"] == "RequestObserved" and is_refused(line["object"]):
            words = frozenset(("WriteRefused",))
        elif line["type"] in SHOWN and key[0] == "events":
            is_new = line["type"] == "ObjectCreated" and after["type"] == "Warning"
            words = frozenset(("Warning",)) if is_new else frozenset()
        elif line["type"] in SHOWN:
            words = frozenset(words_of(line["group"], key[0], before, after))
        else:
            words = frozenset(("AttemptFailed", "AttemptSucceeded", "KubeletFailed"))
        parts = [frozenset().union(*parts) for parts in zip(*concerned, strict=True)]
        return Happening(line["revision"], line["stamp"]["time"], words, subject, *parts)

    def _concerned(self, key: Key, tree: dict | None) -> tuple[set[str], set[str], set[Device]]:
        """The namespaces, nodes and devices that an object concerns in the present state."""
        resource, namespace, name = key
        namespaces, nodes, devices = {namespace} - {""}, set(), set()
        if resource == "nodes":
            nodes = {name}
            namespaces = {
                where
                for (kind, where, _), pod in self.state.items()
                if kind == "pods" and pod["spec"].get("nodeName") == name
            }
        elif tree is None:
            pass
        elif resource == "pods":
            nodes = {tree["spec"].get("nodeName")} - {None, ""}
        elif resource == "resourceclaims":
            devices = {device_of(one) for one in results(tree)}
            nodes = self._nodes_of(devices)
        elif resource == "resourceslices":
            spec = tree["spec"]
            place = (spec["driver"], spec["pool"]["name"])
            devices = {(*place, one["name"]) for one in spec.get("devices") or ()}
            namespaces = self._users_of(devices)
            own = spec.get("nodeName")
            nodes = {own} if own else self._nodes_of(devices)
        elif resource == "devicetaintrules" and tree["spec"].get("deviceSelector") is not None:
            wanted = tree["spec"]["deviceSelector"]
            parts = [wanted.get(one) for one in ("driver", "pool", "device")]
            devices = {
                id
                for id in self._published()
                if all(part in (None, "", own) for part, own in zip(parts, id, strict=True))
            }
            namespaces, nodes = self._users_of(devices), self._nodes_of(devices)
        elif resource == "deviceclasses":
            namespaces = {
                where
                for (kind, where, _), claim in self.state.items()
                if kind == "resourceclaims" and name in classes_of(claim)
            }
        return namespaces, nodes, devices

    def _published(self) -> Iterator[Device]:
        for (kind, _, _), tree in self.state.items():
            if kind == "resourceslices":
                for one in tree["spec"].get("devices") or ():
                    yield tree["spec"]["driver"], tree["spec"]["pool"]["name"], one["name"]

    def _nodes_of(self, devices: Iterable[Device]) -> set[str]:
        pools = {id[:2] for id in devices}
        return {
            tree["spec"]["nodeName"]
            for (kind, _, _), tree in self.state.items()
            if kind == "resourceslices"
            and tree["spec"].get("nodeName")
            and (tree["spec"]["driver"], tree["spec"]["pool"]["name"]) in pools
        }

    def _users_of(self, devices: set[Device]) -> set[str]:
        return {
            where
            for (kind, where, _), claim in self.state.items()
            if kind == "resourceclaims" and devices & {device_of(one) for one in results(claim)}
        }


def _about(line: dict) -> Key | None:
    """The object that a decision or a Kubernetes Event is about."""
    tree = line["object"] or {}
    if line["type"] == "DecisionRecorded" and tree.get("resource"):
        return tree["resource"], line["namespace"], line["name"]
    if line["resource"] == "events":
        place = tree.get("involvedObject") or tree.get("regarding") or {}
        kind = place.get("kind", "").lower()
        plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        return plural, place.get("namespace", ""), place.get("name", "")
    return None


def classes_of(claim: dict) -> set[str]:
    """The classes that a claim names."""
    return {
        ask["deviceClassName"]
        for request in claim["spec"]["devices"].get("requests") or ()
        for ask in (request.get("exactly"), *(request.get("firstAvailable") or ()))
        if ask
    }


def words_of(group: str, resource: str, before: dict | None, after: dict | None) -> Iterator[str]:
    """The words for the change of an object."""
    word = WORDS.get(resource, "Object") if group in _GROUPS else "Object"
    if resource in SILENT:
        return
    if after is None:
        yield f"{word}Deleted"
    elif before is None:
        yield "SlicePublished" if word == "Slice" else f"{word}Created"
    elif word in _CHANGES:
        yield from _CHANGES[word](before, after)
    else:
        if (
            "deletionTimestamp" in after["metadata"]
            and "deletionTimestamp" not in before["metadata"]
        ):
            yield f"{word}DeletionAsked"
        if after["metadata"].get("generation", 0) != before["metadata"].get("generation", 0):
            yield f"{word}Changed"


_GROUPS = ("", "resource.k8s.io")


def _condition(tree: dict, type: str) -> dict:
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return next((one for one in reversed(conditions) if one["type"] == type), {})


def _pod(before: dict, after: dict) -> Iterator[str]:
    if after["spec"].get("nodeName") and not before["spec"].get("nodeName"):
        yield "PodScheduled"
    if "deletionTimestamp" in after["metadata"] and "deletionTimestamp" not in before["metadata"]:
        yield "PodDeletionAsked"
    old, new = (_condition(tree, "DisruptionTarget") for tree in (before, after))
    if new.get("status") == "True" and new.get("message") != old.get("message"):
        yield "PodEvicted"
    phases = [(tree.get("status") or {}).get("phase", "") for tree in (before, after)]
    if phases[0] != phases[1]:
        yield "PodFinished" if phases[1] in FINISHED else "PodPhase"
    old, new = (_condition(tree, "PodScheduled") for tree in (before, after))
    if new.get("status") == "False":
        changed = [one.get(name) for one in (old, new) for name in ("status", "reason", "message")]
        if changed[:3] != changed[3:]:
            yield "PodUnschedulable"


def _claim(before: dict, after: dict) -> Iterator[str]:
    old, new = ((tree.get("status") or {}).get("allocation") for tree in (before, after))
    if new and not old:
        yield "ClaimAllocated"
    if old and not new:
        yield "ClaimDeallocated"
    if (
        old
        and new
        and list(map(device_of, results(before))) != list(map(device_of, results(after)))
    ):
        yield "ClaimReallocated"
    if "deletionTimestamp" in after["metadata"] and "deletionTimestamp" not in before["metadata"]:
        yield "ClaimDeletionAsked"
    users = [set(reserved_for(tree)) for tree in (before, after)]
    if users[1] - users[0]:
        yield "ClaimReserved"
    if users[0] - users[1]:
        yield "ClaimReleased"
    if _reported(before) != _reported(after):
        yield "ClaimReported"


def _reported(claim: dict) -> set[tuple]:
    """What drivers say of the devices of a claim, apart from the times at which they said it."""
    return {
        (*device_of(one), *(said.get(part) for part in ("type", "status", "reason", "message")))
        for one in (claim.get("status") or {}).get("devices") or ()
        for said in one.get("conditions") or ()
    }


def _slice(before: dict, after: dict) -> Iterator[str]:
    if before["spec"] != after["spec"]:
        yield "SliceChanged"


def _rule(before: dict, after: dict) -> Iterator[str]:
    taints = [
        {name: value for name, value in tree["spec"]["taint"].items() if name != "timeAdded"}
        for tree in (before, after)
    ]
    selectors = [tree["spec"].get("deviceSelector") for tree in (before, after)]
    if taints[0] != taints[1] or selectors[0] != selectors[1]:
        yield "RuleChanged"
    old, new = (_condition(tree, "EvictionInProgress") for tree in (before, after))
    if [old.get(one) for one in ("reason", "message")] != [
        new.get(one) for one in ("reason", "message")
    ]:
        yield "RuleStatus"


def _node(before: dict, after: dict) -> Iterator[str]:
    old, new = (_condition(tree, "Ready").get("status") for tree in (before, after))
    if old != new:
        yield "NodeReady" if new == "True" else "NodeNotReady"
    closed = [bool(tree["spec"].get("unschedulable")) for tree in (before, after)]
    taints = [
        [
            (one["key"], one.get("value", ""), one["effect"])
            for one in tree["spec"].get("taints") or ()
        ]
        for tree in (before, after)
    ]
    labels = [tree["metadata"].get("labels") or {} for tree in (before, after)]
    if closed[0] != closed[1] or taints[0] != taints[1] or labels[0] != labels[1]:
        yield "NodeChanged"


_CHANGES: dict[str, Callable[[dict, dict], Iterator[str]]] = {
    "Pod": _pod,
    "Claim": _claim,
    "Slice": _slice,
    "Rule": _rule,
    "Node": _node,
}
