"""A sound history, and alterations by machine that each break a rule.

An alteration takes the events of a history and a seed. It changes one object from some event of it
on, for as long as the object keeps what was changed, and returns the events.
"""

import itertools
import random
from collections.abc import Callable, Iterator

import msgspec

from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision
from app.domain.log.chain import canonical_json
from app.domain.values import json_tree
from app.domain.values.timestamps import SECOND, Instant
from tests.unit.analysis.invariants.worlds import (
    ADMIN,
    CONTROLLER,
    DRIVER,
    GOING,
    MARKED,
    World,
    claim,
    device,
    key_of,
    result,
    selector,
    slice_,
    user,
)

Change = Callable[[dict], object]
Alter = Callable[[list[Event], random.Random], list[Event]]

NODES = 3
LISTED = "baseline"
STRANGE = {"driver": DRIVER, "pool": "n0", "device": "nobody"}


class SoundWorld(World):
    """Pods come, get a claim with a device each, run, and go, on nodes that report now and then.

    Nodes have partitions that draw counters if the seed is even.
    """

    def __init__(self, seed: int, pods: int) -> None:
        super().__init__(seed)
        labels = {ADMIN: "true"} if seed % 2 else {}
        space = {"metadata": {"labels": labels}, "status": {"phase": "Active"}}
        self.put(key_of("namespaces", "ns"), space, verb="baseline")
        self._has_counters = seed % 2 == 0
        for node in range(NODES):
            labels = {"metadata": {"labels": {"zone": "ab"[node % 2]}}}
            self.put(key_of("nodes", f"n{node}"), labels, verb="baseline")
            self._publish(node, 0, verb="baseline")
        running: list[int] = []
        for number in range(pods):
            if len(running) == NODES:
                # The device goes to the one that arrives.
                self._leave(running.pop(0))
            self._arrive(number)
            running.append(number)
            if self.draw.random() < 0.3:
                self._publish(self.draw.randrange(NODES), number)

    def _publish(self, node: int, heat: int, **options) -> None:
        """A node has a device of its own, two shares of one, and partitions that draw counters."""
        attributes = {"heat": {"int": heat}, "model": {"string": "a100"}}
        devices = [
            device("whole", attributes=attributes),
            device("twin", attributes=attributes),
            device("shares", shared=True, capacity={"memory": "10Gi"}),
        ]
        if self._has_counters:
            devices += [device(name, consumes={"units": "2"}) for name in ("left", "right")]
        counters = {"units": "3"} if self._has_counters else None
        tree = slice_(f"n{node}", *devices, counters=counters)
        tree["spec"]["nodeName"] = f"n{node}"
        del tree["spec"]["allNodes"]
        self.put(key_of("resourceslices", f"n{node}"), tree, **options)

    def _arrive(self, number: int) -> None:
        node = f"n{number % NODES}"
        pod_key, claim_key = (
            key_of("pods", f"p{number}"),
            key_of("resourceclaims", f"p{number}-gpu"),
        )
        entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
        self.put(pod_key, {"spec": {"resourceClaims": [entry]}, "status": {"phase": "Pending"}})
        pod_uid = self.objects[pod_key]["metadata"]["uid"]
        tree = claim(finalizers=())
        tree["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": pod_uid}]
        self.put(claim_key, tree, after=1)
        tree, write = self.change(pod_key)
        made = {"name": "gpu", "resourceClaimName": claim_key.name}
        tree["status"]["resourceClaimStatuses"] = [made]
        write()
        tree, write = self.change(claim_key, after=1)
        third = "left" if self._has_counters else "twin"
        place = ("whole", "shares", third)[number % 4 % 3]
        more = {}
        if place == "shares":
            more = {"shareID": f"s{number}", "consumedCapacity": {"memory": "4Gi"}}
        tree["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        tree["status"] = {
            "allocation": {
                "devices": {"results": [result(node, place, **more)]},
                "nodeSelector": selector(node=node),
            },
            "reservedFor": [user(pod_key.name, pod_uid)],
        }
        write()
        tree, write = self.change(pod_key)
        tree["spec"]["nodeName"] = node
        tree["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        write()
        tree, write = self.change(pod_key, after=2)
        tree["status"]["phase"] = "Running"
        write()
        self.put(ObjectKey("", "events", "ns", f"e{number}"), {"reason": "Started"})

    def _leave(self, number: int) -> None:
        pod_key, claim_key = (
            key_of("pods", f"p{number}"),
            key_of("resourceclaims", f"p{number}-gpu"),
        )
        tree, write = self.change(pod_key, after=1)
        tree["status"]["phase"] = "Succeeded"
        write()
        tree, write = self.change(claim_key, after=1)
        tree["status"] = {}
        tree["metadata"]["finalizers"] = []
        write()
        self.remove(claim_key)
        self.remove(pod_key, after=1)


def numbered(events: list[Event]) -> list[Event]:
    """The events with revisions without gaps."""
    return [
        msgspec.structs.replace(event, revision=Revision(number))
        for number, event in enumerate(events, start=1)
    ]


def _trees(events: list[Event], resource: str) -> Iterator[tuple[int, dict]]:
    for number, event in enumerate(events):
        if event.key.resource == resource and event.type is not EventType.OBJECT_DELETED:
            yield number, msgspec.json.decode(event.body)


def _allocated(events: list[Event]) -> list[int]:
    return [
        number
        for number, tree in _trees(events, "resourceclaims")
        if json_tree.get(tree, "status", "allocation") is not None
    ]


def _bound(events: list[Event]) -> list[int]:
    return [
        number
        for number, tree in _trees(events, "pods")
        if json_tree.get(tree, "spec", "nodeName") and tree["status"]["phase"] == "Running"
    ]


def _change(events: list[Event], begin: int, change: Change) -> list[Event]:
    """Change an object from one event on, as long as that can be done."""
    events = list(events)
    for number in range(begin, len(events)):
        event = events[number]
        if event.key != events[begin].key or event.type is EventType.OBJECT_DELETED:
            continue
        tree = msgspec.json.decode(event.body)
        try:
            change(tree)
        except (KeyError, IndexError):
            break
        events[number] = msgspec.structs.replace(event, body=canonical_json(tree))
    return events


def _results(tree: dict) -> list[dict]:
    return tree["status"]["allocation"]["devices"]["results"]


def _in_claim(change: Change) -> Alter:
    """An alteration of a claim, from its allocation on until it gives its device back."""

    def alter(events: list[Event], draw: random.Random) -> list[Event]:
        def where_allocated(tree: dict) -> None:
            _results(tree)
            change(tree)

        return _change(events, draw.choice(_allocated(events)), where_allocated)

    return alter


def _in_pod(change: Change) -> Alter:
    """An alteration of a pod, from the time it runs on until it is done."""

    def alter(events: list[Event], draw: random.Random) -> list[Event]:
        return _change(events, draw.choice(_bound(events)), change)

    return alter


def _in_slice(change: Change) -> Alter:
    """An alteration of a slice, from the beginning on."""

    def alter(events: list[Event], draw: random.Random) -> list[Event]:
        first = {event.key: number for number, event in reversed(list(enumerate(events)))}
        places = [number for key, number in first.items() if key.resource == "resourceslices"]
        for place in places:
            events = _change(events, place, change)
        return events

    return alter


def give_device_twice(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim gets the device that the claim before it holds."""
    first, second = draw.choice(list(itertools.pairwise(_allocated(events))))
    held = _results(msgspec.json.decode(events[first].body))[0]

    def change(tree: dict) -> None:
        for name in ("driver", "pool", "device"):
            _results(tree)[0][name] = held[name]
        _results(tree)[0].pop("shareID", None)

    return _change(events, second, change)


def taint_a_device(events: list[Event], draw: random.Random) -> list[Event]:
    """All devices are tainted long before, and no claim tolerates it."""
    taint = {"key": "k", "value": "v", "effect": draw.choice(("NoSchedule", "NoExecute"))}
    return _in_slice(lambda tree: [each.update(taints=[taint]) for each in _devices(tree)])(
        events, draw
    )


def _devices(tree: dict) -> list[dict]:
    return tree["spec"]["devices"]


def shrink_shares(tree: dict) -> None:
    for each in _devices(tree):
        if "capacity" in each:
            each["capacity"]["memory"]["value"] = "3Gi"


def count_in_words(tree: dict) -> None:
    """A counter that is no number counts as nothing."""
    tree["spec"]["sharedCounters"][0]["counters"]["units"]["value"] = True


def delete_while_held(events: list[Event], draw: random.Random) -> list[Event]:
    """The pod of a claim is gone for a quarter of an hour, the claim is reserved for it still."""
    place = draw.choice(_bound(events))
    gone = msgspec.structs.replace(events[place], type=EventType.OBJECT_DELETED)
    key = events[place].key
    later = [event for event in events[place + 1 :] if event.key != key]
    return [*events[:place], gone, *(_later(event, 900) for event in later)]


def _later(event: Event, seconds: int) -> Event:
    stamp = msgspec.structs.replace(event.stamp, time=Instant(event.stamp.time + seconds * SECOND))
    return msgspec.structs.replace(event, stamp=stamp)


def unmake_a_device(events: list[Event], draw: random.Random) -> list[Event]:
    """After an allocation its device is published no more."""
    place = draw.choice(_allocated(events))
    held = _results(msgspec.json.decode(events[place].body))[0]

    def change(tree: dict) -> None:
        tree["spec"]["devices"] = [
            each for each in _devices(tree) if each["name"] != held["device"]
        ]

    key = key_of("resourceslices", held["pool"])
    last = [event for event in events[:place] if event.key == key][-1]
    again = msgspec.structs.replace(last, type=EventType.OBJECT_UPDATED, stamp=events[place].stamp)
    return _change([*events[: place + 1], again, *events[place + 1 :]], place + 1, change)


def reserve_for_a_stranger(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim is reserved for its pod, and for one that runs and does not name it."""
    first, second = draw.choice(list(itertools.pairwise(_allocated(events))))
    others = msgspec.json.decode(events[first].body)["status"]["reservedFor"]
    return _change(events, second, lambda tree: tree["status"]["reservedFor"].extend(others))


def reserve_for_many(events: list[Event], draw: random.Random) -> list[Event]:
    """The last claim is reserved for one more than may be."""
    many = [user(f"many-{number}", "x") for number in range(257)]
    last = _allocated(events)[-1]
    return _change(events, last, lambda tree: tree["status"].update(reservedFor=many))


def exchange_an_allocation(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim gets another device without giving the first one back."""
    place = draw.choice(_allocated(events))
    again = [*events[: place + 1], events[place], *events[place + 1 :]]
    return _change(again, place + 1, lambda tree: _results(tree)[0].update(device="twin"))


def draw_from_counters(tree: dict) -> None:
    _results(tree)[0]["device"] = "left"
    _results(tree).append({**_results(tree)[0], "device": "right"})


def differ_from_itself(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim wants two devices that differ in their model, which all devices have in common."""
    place = draw.choice(_allocated(events))
    key = events[place].key
    exactly = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    constraint = {"requests": ["r"], "distinctAttribute": f"{DRIVER}/model"}

    def change(tree: dict) -> None:
        tree["spec"]["devices"] = {"requests": [exactly], "constraints": [constraint]}
        if (tree.get("status") or {}).get("allocation"):
            first = {**_results(tree)[0], "device": "whole"}
            tree["status"]["allocation"]["devices"]["results"] = [
                first,
                {**first, "device": "twin"},
            ]

    created = next(number for number, event in enumerate(events) if event.key == key)
    return _change(events, created, change)


def ask_for_admin_access(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim asks for admin access from its creation on."""
    key = events[draw.choice(_allocated(events))].key
    created = next(number for number, event in enumerate(events) if event.key == key)

    def change(tree: dict) -> None:
        for request in tree["spec"]["devices"]["requests"]:
            request["exactly"]["adminAccess"] = True
        allocation = tree["status"].get("allocation")
        for each in _results(tree) if allocation else ():
            each["adminAccess"] = True

    return _change(events, created, change)


def renew_a_claim(events: list[Event], draw: random.Random) -> list[Event]:
    """A claim has another uid from its allocation on, by lines without a version between them."""
    place = draw.choice(_allocated(events))
    key, uid = events[place].key, events[place].uid
    place = next(n for n in _allocated(events) if events[n].key == key)
    before = max(number for number in range(place) if events[number].key == key)
    lines = list(events)
    for number in range(before, place + 1):
        # What is written between has the versions between.
        lines[number] = _line(events[number], number + 1)
    span = Origin(
        source="made",
        losses=("synthetic_delete", "no_rv"),
        asked=events[before].stamp.time,
        answered=events[place].stamp.time,
    )
    ended = _sent(lines[before], span, request_id="", verb="observe")
    ended = msgspec.structs.replace(ended, type=EventType.OBJECT_DELETED)
    for number in range(place, len(lines)):
        if lines[number].key == key and lines[number].uid == uid:
            lines[number] = _renamed(lines[number], "another")
    seen = Origin(source="made", losses=("synthetic_create",), resource_version=str(place + 1))
    made = _sent(lines[place], seen, verb=LISTED)
    made = msgspec.structs.replace(made, type=EventType.OBJECT_CREATED)
    return [*lines[:place], ended, made, *lines[place:]]


def _line(event: Event, version: int) -> Event:
    time = event.stamp.time
    origin = Origin(source="made", resource_version=str(version), asked=time, answered=time)
    return _sent(event, origin, request_id="r")


def _sent(event: Event, origin: Origin, **fields: str) -> Event:
    stamp = msgspec.structs.replace(event.stamp, origin=origin, **fields)
    return msgspec.structs.replace(event, stamp=stamp)


def _renamed(event: Event, uid: str) -> Event:
    tree = msgspec.json.decode(event.body)
    tree["metadata"]["uid"] = uid
    return msgspec.structs.replace(event, uid=uid, body=canonical_json(tree))


def end_a_namespace_in_name(events: list[Event], draw: random.Random) -> list[Event]:
    """A namespace has the phase of one that is being deleted, or is so with another phase."""
    places = [number for number, event in enumerate(events) if event.key.resource == "namespaces"]

    def change(tree: dict) -> None:
        if draw.random() < 0.5:
            tree["status"]["phase"] = "Terminating"
        else:
            tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    return _change(events, draw.choice(places), change)


def keep_what_ends(events: list[Event], draw: random.Random) -> list[Event]:
    """The claim controller deletes a claim that never gives its device back."""
    ends = [
        number
        for number, event in enumerate(events)
        if event.key.resource == "resourceclaims" and event.type is EventType.OBJECT_DELETED
    ]
    end = events[draw.choice(ends)]
    stamp = msgspec.structs.replace(end.stamp, actor=Actor(user=CONTROLLER))
    return [
        msgspec.structs.replace(event, stamp=stamp) if event is end else event
        for event in events
        if event is end or event.key != end.key or not _is_given_back(event)
    ]


def _is_given_back(event: Event) -> bool:
    """Whether a write of a claim takes finalizer and allocation away."""
    return msgspec.json.decode(event.body)["metadata"].get("finalizers") == []


GHOST = user("ghost", "00000000-0000-0000-0000-000000000001")


def await_a_report(events: list[Event], draw: random.Random) -> list[Event]:
    """The device of a claim has a condition that its pod has to wait for, and none reports it."""
    first = {events[number].key: number for number in reversed(_allocated(events))}
    place = first[draw.choice(sorted(first))]
    return _change(events, place, lambda tree: _results(tree)[0].update(bindingConditions=["Up"]))


ALTERATIONS: dict[str, tuple[Alter, str]] = {
    "give_device_twice": (give_device_twice, "device-in-one-claim"),
    "draw_from_counters": (_in_claim(draw_from_counters), "counters-not-overdrawn"),
    "count_in_words": (_in_slice(count_in_words), "counters-not-overdrawn"),
    "shrink_shares": (_in_slice(shrink_shares), "consumed-within-capacity"),
    "remove_finalizer": (
        _in_claim(lambda tree: tree["metadata"].pop("finalizers")),
        "allocation-has-finalizer",
    ),
    "keep_what_ends": (keep_what_ends, "finalizer-outlasts-allocation"),
    "report_about_a_strange_device": (
        _in_claim(lambda tree: tree["status"].update(devices=[STRANGE])),
        "reported-device-allocated",
    ),
    "reserve_without_allocation": (
        _in_claim(lambda tree: tree["status"].pop("allocation")),
        "reservation-has-allocation",
    ),
    "reserve_for_many": (reserve_for_many, "reservations-within-limit"),
    "reserve_for_a_ghost": (
        _in_claim(lambda tree: tree["status"]["reservedFor"].append(GHOST)),
        "reservation-names-pod",
    ),
    "delete_while_held": (delete_while_held, "reservation-names-pod"),
    "reserve_for_a_stranger": (reserve_for_a_stranger, "reserved-pod-names-claim"),
    "exchange_an_allocation": (exchange_an_allocation, "allocation-unchanged"),
    "allocate_what_ends": (
        _in_claim(lambda tree: tree["metadata"].update(GOING)),
        "terminating-claim-unused",
    ),
    "take_the_reservation_back": (
        _in_claim(lambda tree: tree["status"].pop("reservedFor")),
        "bound-pod-has-claims",
    ),
    "forget_the_made_claim": (
        _in_pod(lambda tree: tree["status"].pop("resourceClaimStatuses")),
        "bound-pod-claims-made",
    ),
    "await_a_report": (await_a_report, "bound-pod-has-ready-devices"),
    "bind_elsewhere": (
        _in_pod(lambda tree: tree["spec"].update(nodeName="another")),
        "pod-on-allocated-node",
    ),
    "bind_again": (
        _in_pod(lambda tree: tree["spec"].update(nodeName="another")),
        "immutable-field-unchanged",
    ),
    "give_an_unknown_device": (
        _in_claim(lambda tree: _results(tree)[0].update(device="unknown")),
        "allocated-device-existed",
    ),
    "unmake_a_device": (unmake_a_device, "allocated-device-published"),
    "exchange_the_request": (
        _in_claim(lambda tree: _results(tree)[0].update(request="other")),
        "request-satisfied",
    ),
    "ask_for_admin_access": (ask_for_admin_access, "admin-access-allowed"),
    "renew_a_claim": (renew_a_claim, "removed-before-renewed"),
    "end_a_namespace_in_name": (end_a_namespace_in_name, "fields-agree"),
    "differ_from_itself": (differ_from_itself, "constraint-holds"),
    "share_a_whole_device": (
        _in_claim(lambda tree: _results(tree)[0].update(shareID="s", device="whole")),
        "share-of-shared-device",
    ),
    "tolerate_more": (
        _in_claim(lambda tree: _results(tree)[0].update(tolerations=[{"operator": "Exists"}])),
        "tolerations-copied",
    ),
    "taint_a_device": (taint_a_device, "placement-respects-taints"),
    "evict_without_a_taint": (
        _in_pod(lambda tree: tree["status"].update(conditions=[dict(MARKED)])),
        "eviction-has-taint",
    ),
}
"""What is done to a sound history, and the rule that it breaks."""
