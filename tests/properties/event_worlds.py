"""Random small worlds of events, with enough content for every view.

The seed decides the world. It has two drivers with a few pools (of several slices, with counters
and taints, moving through generations), claims that are allocated, shared, reserved and released,
rules, patches, classes, pods, Kubernetes Events, decisions and facts, and sometimes an object with
an odd part. Events are sealed as the log seals them.
"""

import random
from collections.abc import Iterator

from app.domain.log import DECISION, Actor, Draft, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.log.event import GENESIS
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

DRA = "resource.k8s.io"
START = Instant(1_767_225_600 * SECOND)
DRIVERS = ("gpu.example.com", "nic.example.com")
SELECTING = "device.attributes['gpu.example.com'].model == 'a'"
FILTERS: tuple[JsonObject, ...] = (
    {},
    {"selectors": [{"cel": {"expression": SELECTING}}]},
    {"selectors": [{"cel": {"expression": "device.capacity['gpu.example.com'].memory"}}]},
    {"deviceClassName": "gpu"},
)
ODD_VALUES = (None, 7, 2**64 - 1, -1.5, "odd", True, [], {}, [1, "x", {}], {"a": 1})


def world(seed: int, count: int) -> list[Event]:
    """The first `count` events of the world with this seed."""
    made = World(seed)
    while len(made.events) < count:
        made.step()
    return made.events[:count]


class World:
    """The existing objects, and the sealed events that made them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[Event] = []
        self.objects: dict[ObjectKey, JsonObject] = {}
        self._hash = GENESIS
        self._time = int(START)
        self._uids = 0

    def step(self) -> None:
        """Appends one or two events."""
        actions = (
            (self.publish_slice, 5),
            (self.change_claim, 8),
            (self.change_pod, 6),
            (self.change_rule, 2),
            (self.change_patch, 1),
            (self.change_class, 1),
            (self.delete_something, 3),
            (self.tell_event, 1),
            (self.decide, 2),
            (self.state_fact, 1),
            (self.spoil_something, 1),
        )
        chosen = self.random.choices([action for action, _ in actions], [w for _, w in actions])
        chosen[0]()

    def append(self, type: EventType, key: ObjectKey, uid: str, tree: JsonObject) -> None:
        """Seals one event a little later than the last one."""
        self._time += self.random.choice((0, 1, 400_000, 7_000_000, 61_000_000))
        stamp = Stamp(
            time=Instant(self._time),
            actor=Actor(user=self.random.choice(("alice", "system:kube-scheduler"))),
            verb=self.random.choice(("create", "update", "patch")),
            cause=self.random.randrange(len(self.events) + 1),
            observed=len(self.events),
        )
        draft = Draft(type=type, key=key, uid=uid, tree=json_tree.copy(tree), stamp=stamp)
        event = seal(draft, Revision(len(self.events) + 1), self._hash)
        event.tree = None
        self._hash = event.hash
        self.events.append(event)

    def put(self, key: ObjectKey, tree: JsonObject) -> None:
        """Creates or replaces an object."""
        old = self.objects.get(key)
        metadata: JsonObject = {"name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        if old is None:
            self._uids += 1
            metadata["uid"] = f"00000000-0000-4000-8000-{self._uids:012}"
            metadata["generation"] = 1
        else:
            metadata = dict(json_tree.mapping(old, "metadata"))
            metadata["generation"] = (json_tree.integer(metadata, "generation") or 0) + 1
        tree = {**tree, "metadata": {**metadata, **json_tree.mapping(tree, "metadata")}}
        self.objects[key] = tree
        created = EventType.OBJECT_CREATED if old is None else EventType.OBJECT_UPDATED
        self.append(created, key, json_tree.text(tree, "metadata", "uid"), tree)

    def keys(self, resource: str) -> list[ObjectKey]:
        """The keys of the objects of a resource, sorted."""
        return sorted(key for key in self.objects if key.resource == resource)

    def publish_slice(self) -> None:
        pick = self.random
        driver, pool = pick.choice(DRIVERS), pick.choice(("p0", "p1", "p2"))
        number = pick.randrange(3)
        count = pick.choice((1, 1, 2, 3))
        spec: JsonObject = {
            "driver": driver,
            "pool": {
                "name": pool,
                "generation": pick.choice((1, 1, 1, 2)),
                "resourceSliceCount": 1,
            },
            "devices": [self._device(f"dev-{index}") for index in range(pick.randrange(4))],
        }
        spec["pool"]["resourceSliceCount"] = count
        if pick.random() < 0.3:
            spec["devices"] = []
            spec["sharedCounters"] = [
                {
                    "name": pick.choice(("set-0", "set-1")),
                    "counters": {"memory": {"value": "80Gi"}, "slices": {"value": "7"}},
                }
            ]
        place: JsonObject = pick.choice(
            ({"nodeName": f"node-{number}"}, {"allNodes": True}, {"perDeviceNodeSelection": True})
        )
        key = ObjectKey(DRA, "resourceslices", "", f"{driver}-{pool}-{number}")
        kind = {"apiVersion": f"{DRA}/v1", "kind": "ResourceSlice"}
        self.put(key, {**kind, "spec": {**spec, **place}})

    def change_claim(self) -> None:
        pick = self.random
        key = ObjectKey(DRA, "resourceclaims", pick.choice(("one", "two")), f"c{pick.randrange(4)}")
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]
        if pick.random() < 0.3:
            sub = {"name": "small", "deviceClassName": "gpu"}
            requests.append({"name": "s", "firstAvailable": [sub]})
        status: JsonObject = {}
        if pick.random() < 0.7:
            results = [self._result() for _ in range(pick.randrange(1, 4))]
            status["allocation"] = {"devices": {"results": results}}
            if pick.random() < 0.5:
                status["allocation"]["nodeSelector"] = _node_selector(f"node-{pick.randrange(3)}")
            if pick.random() < 0.6:
                users = pick.sample(range(4), pick.randrange(1, 3))
                status["reservedFor"] = [
                    {"resource": "pods", "name": f"pod-{user}", "uid": f"u{user}"} for user in users
                ]
            if pick.random() < 0.3:
                status["devices"] = [
                    {**results[0], "conditions": [{"type": "Ready", "status": "True"}]}
                ]
        tree: JsonObject = {
            "apiVersion": f"{DRA}/v1",
            "kind": "ResourceClaim",
            "spec": {"devices": {"requests": requests}},
            "status": status,
        }
        if pick.random() < 0.1:
            tree["metadata"] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        self.put(key, tree)

    def change_pod(self) -> None:
        pick = self.random
        key = ObjectKey("", "pods", pick.choice(("one", "two")), f"pod-{pick.randrange(4)}")
        entries: list[JsonObject] = [
            {"name": "a", "resourceClaimName": f"c{pick.randrange(4)}"},
            {"name": "b", "resourceClaimTemplateName": "template"},
        ]
        spec: JsonObject = {"resourceClaims": pick.choice(([], entries[:1], entries))}
        status: JsonObject = {"phase": pick.choice(("Pending", "Running", "Succeeded"))}
        if pick.random() < 0.5:
            spec["nodeName"] = f"node-{pick.randrange(3)}"
        if pick.random() < 0.5:
            generated = {"name": "b", "resourceClaimName": f"c{pick.randrange(4)}"}
            status["resourceClaimStatuses"] = [generated]
        status["conditions"] = pick.choice(
            (
                [],
                [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
                [{"type": "DisruptionTarget", "status": "True", "reason": "Because"}],
            )
        )
        self.put(key, {"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status})

    def change_rule(self) -> None:
        pick = self.random
        spec: JsonObject = {"taint": self._taint()}
        if pick.random() < 0.9:
            choices = {"driver": DRIVERS, "pool": ("p0", "p1"), "device": ("dev-0", "dev-1")}
            spec["deviceSelector"] = {
                field: pick.choice(values)
                for field, values in choices.items()
                if pick.random() < 0.5
            }
        key = ObjectKey(DRA, "devicetaintrules", "", f"rule-{pick.randrange(3)}")
        self.put(key, {"apiVersion": f"{DRA}/v1beta2", "kind": "DeviceTaintRule", "spec": spec})

    def change_patch(self) -> None:
        pick = self.random
        spec = {
            # By the place in the log: other draws of the world stay as they are.
            "filter": {"driver": pick.choice(DRIVERS), **FILTERS[len(self.events) % len(FILTERS)]},
            "priority": pick.randrange(3),
            "attributes": {f"{DRIVERS[0]}/model": {"string": pick.choice("ab")}},
            "capacity": {f"{DRIVERS[0]}/memory": {"value": "40Gi"}},
        }
        key = ObjectKey(DRA, "resourceslicepatches", "", f"patch-{pick.randrange(2)}")
        self.put(key, {"kind": "ResourceSlicePatch", "spec": {"devices": spec}})

    def change_class(self) -> None:
        key = ObjectKey(DRA, "deviceclasses", "", "gpu")
        selector = {"cel": {"expression": f"device.driver == '{self.random.choice(DRIVERS)}'"}}
        self.put(key, {"kind": "DeviceClass", "spec": {"selectors": [selector]}})

    def delete_something(self) -> None:
        if self.objects:
            key = self.random.choice(sorted(self.objects))
            tree = self.objects.pop(key)
            uid = json_tree.text(tree, "metadata", "uid")
            self.append(EventType.OBJECT_DELETED, key, uid, tree)

    def tell_event(self) -> None:
        key = ObjectKey("", "events", "one", f"event-{len(self.events)}")
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": "one", "name": "pod-0"}
        kind = self.random.choice(("Normal", "Warning"))
        tree = {"kind": "Event", "type": kind, "reason": "Failed", "involvedObject": about}
        self.put(key, tree)

    def decide(self) -> None:
        name = f"pod-{self.random.randrange(4)}"
        body = {
            "controller": "scheduling",
            "resource": "pods",
            "namespace": "one",
            "name": name,
            "outcome": self.random.choice(("Scheduled", "Unschedulable")),
            "inputs": {"attempt": 1},
            "summary": {"message": "0/3 nodes are available"},
            "plan": "sha256:00",
            "commands": 0,
        }
        key = DECISION._replace(namespace="one", name=name)
        self.append(EventType.DECISION_RECORDED, key, "", body)

    def state_fact(self) -> None:
        kind = self.random.choice((EventType.GAP_OBSERVED, EventType.REQUEST_OBSERVED))
        key = ObjectKey("redra", "facts", "", "fact")
        self.append(kind, key, "", {"reason": "the recorder was away"})

    def spoil_something(self) -> None:
        """Replaces a random part of an object by an unsuitable value."""
        if not self.objects:
            return
        key = self.random.choice(sorted(self.objects))
        tree = json_tree.copy(self.objects[key])
        places = [(parent, name) for parent, name in _places(tree) if parent is not tree]
        if places:
            parent, name = self.random.choice(places)
            parent[name] = self.random.choice(ODD_VALUES)
        self.append(EventType.OBJECT_UPDATED, key, json_tree.text(tree, "metadata", "uid"), tree)

    def _device(self, name: str) -> JsonObject:
        pick = self.random
        device: JsonObject = {
            "name": name,
            "attributes": {"model": {"string": pick.choice("abc")}, "index": {"int": 1}},
            "capacity": {"memory": {"value": pick.choice(("80Gi", "40Gi"))}},
        }
        if pick.random() < 0.4:
            device["taints"] = [self._taint() for _ in range(pick.randrange(1, 3))]
        if pick.random() < 0.4:
            counters = {"memory": {"value": "10Gi"}, "slices": {"value": "1.5"}}
            device["consumesCounters"] = [{"counterSet": "set-0", "counters": counters}]
        if pick.random() < 0.3:
            device["allowMultipleAllocations"] = True
        return device

    def _taint(self) -> JsonObject:
        pick = self.random
        return {
            "key": pick.choice(("broken", "busy")),
            "value": pick.choice(("", "yes")),
            "effect": pick.choice(("NoSchedule", "NoExecute", "None")),
            "timeAdded": "2026-01-01T00:00:00Z",
        }

    def _result(self) -> JsonObject:
        pick = self.random
        result: JsonObject = {
            "request": pick.choice(("r", "s/small")),
            "driver": pick.choice(DRIVERS),
            "pool": pick.choice(("p0", "p1", "p2")),
            "device": f"dev-{pick.randrange(3)}",
        }
        if pick.random() < 0.2:
            result["adminAccess"] = True
        if pick.random() < 0.3:
            result["shareID"] = f"share-{pick.randrange(5)}"
            result["consumedCapacity"] = {"memory": "1Gi"}
        if pick.random() < 0.4:
            toleration: JsonObject = {"key": "broken", "operator": "Exists"}
            if pick.random() < 0.5:
                toleration |= {"effect": "NoExecute", "tolerationSeconds": 30}
            result["tolerations"] = [toleration]
        return result


def _node_selector(node: str) -> JsonObject:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _places(tree: JsonObject) -> Iterator[tuple[JsonObject | list[object], str | int]]:
    """Every assignable place of the tree."""
    pending: list[object] = [tree]
    while pending:
        parent = pending.pop()
        if isinstance(parent, dict):
            for name, value in parent.items():
                yield parent, name
                pending.append(value)
        elif isinstance(parent, list):
            for index, value in enumerate(parent):
                yield parent, index
                pending.append(value)
