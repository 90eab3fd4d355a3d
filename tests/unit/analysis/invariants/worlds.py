"""Histories made by machine: drivers, schedulers and users who keep the rules, and who do not."""

import random

from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values import json_tree, timestamps
from app.domain.values.timestamps import SECOND, Instant

GROUP = "resource.k8s.io"
ADMIN = "resource.kubernetes.io/admin-access"
FINALIZER = "resource.kubernetes.io/delete-protection"
START = 1_767_225_600 * SECOND
DRIVER = "gpu.example.com"
IMPORTS = ObjectKey("redra", "imports", "", "")
GAPS = (
    *(
        ObjectKey(GROUP, resource, "", "")
        for resource in (
            "resourceclaims",
            "resourceslices",
            "devicetaintrules",
            "resourceslicepatches",
        )
    ),
    ObjectKey(GROUP, "resourceclaims", "ns", ""),
    ObjectKey(GROUP, "resourceclaims", "other", ""),
    ObjectKey("", "pods", "", ""),
    ObjectKey("", "pods", "ns", ""),
    ObjectKey("", "nodes", "", ""),
    ObjectKey("", "namespaces", "", ""),
    ObjectKey("", "configmaps", "", ""),
)
"""Kinds of which something may be missing, some in one namespace; no rule reads the last one."""

ODD = (None, 7, -1, "odd", True, [], {}, [1, "x", {}], {"a": 1})
CONTROLLER = "system:serviceaccount:kube-system:resource-claim-controller"
UNNAMED = "redra:import"
AUTHORS = ("someone", "anyone", "my-claim-controller", CONTROLLER, UNNAMED)
COUNTED = ("resourceslices", "devicetaintrules", "resourceslicepatches", "deviceclasses")
POOLS = ("whole", "shares", "parts")
PHASES = ("Active", "Active", "Terminating", "")
LOST = (("no_status",), ("collapsed",), ("no_rv",), ("no_rv", "no_uid"))
MARKED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}


class World:
    """A history that is being written: `put` and `remove` write the events."""

    def __init__(self, seed: int = 0) -> None:
        self.draw = random.Random(seed)
        self.events: list[Event] = []
        self.objects: dict[ObjectKey, dict] = {}
        self.time = START
        self._uids = 0

    @property
    def revision(self) -> int:
        return len(self.events)

    def put(
        self,
        key: ObjectKey,
        tree: dict,
        *,
        after: float = 0,
        verb: str = "update",
        uid: str = "",
        losses: tuple[str, ...] = (),
        by: str = "",
        generation: int | None = None,
    ) -> int:
        """Write an object; `uid` is that of another object of the same name. Its revision."""
        old = self.objects.get(key)
        if old is not None and verb == "baseline":
            return self.revision  # listed once
        is_new = old is None or bool(uid)
        if is_new and not uid:
            self._uids += 1
            uid = f"u{self._uids}"
        metadata = {**tree.get("metadata", {}), "name": key.name}
        metadata["uid"] = uid if is_new else old["metadata"]["uid"]
        if key.namespace:
            metadata["namespace"] = key.namespace
        if key.resource in COUNTED:
            right = self._generation(None if is_new else old, tree)
            metadata["generation"] = right if generation is None else generation
        self.objects[key] = json_tree.copy({**tree, "metadata": metadata})
        kind = EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED
        return self._append(kind, key, verb, after, losses, by)

    def _generation(self, old: dict | None, tree: dict) -> int:
        """The generation that the server gives: it rises with each change of the spec."""
        if old is None:
            return 1
        return old["metadata"].get("generation", 1) + (old.get("spec") != tree.get("spec"))

    def change(self, key: ObjectKey, after: float = 0, **options):
        """The tree of an object to be changed, and the function that writes it."""
        tree = json_tree.copy(self.objects[key])
        return tree, lambda: self.put(key, tree, after=after, **options)

    def remove(
        self,
        key: ObjectKey,
        *,
        after: float = 0,
        losses: tuple[str, ...] = (),
        by: str = "",
    ) -> int:
        """Delete an object; the revision of that."""
        revision = self._append(EventType.OBJECT_DELETED, key, "delete", after, losses, by)
        del self.objects[key]
        return revision

    def gap(
        self, key: ObjectKey = IMPORTS, *losses: str, time_quality: str = "", pool: str = ""
    ) -> int:
        """A stretch that was not recorded, of all kinds, one kind, one object or one pool.

        With an exact time it is noticed late.
        """
        body = {"pool": pool} if pool else {}
        return self._note(EventType.GAP_OBSERVED, key, body, *losses, time_quality=time_quality)

    def report(self, *kinds: ObjectKey) -> int:
        """A recorder says that it knows these kinds as they are."""
        positions = {f"{key.resource}.{key.group}".rstrip("."): "7" for key in kinds}
        return self._note(EventType.HISTORY_IMPORTED, IMPORTS, {"positions": positions})

    def _author(self) -> str:
        """The user of a write that names none."""
        return "someone"

    def _quality(self) -> str:
        """The quality of a recorded state."""
        return ""

    def _note(
        self, kind: EventType, key: ObjectKey, body: dict, *losses: str, time_quality: str = ""
    ) -> int:
        """An event that is not about an object."""
        origin = Origin(source="made", losses=losses, time_quality=time_quality)
        stamp = Stamp(time=Instant(self.time), actor=Actor(user="x"), verb="gap", origin=origin)
        self.events.append(
            Event(
                revision=Revision(self.revision + 1),
                type=kind,
                key=key,
                uid="",
                body=canonical_json(body),
                stamp=stamp,
            )
        )
        return self.revision

    def _append(self, kind, key, verb, after, losses, by) -> int:
        self.time += int(after * SECOND)
        tree = self.objects[key]
        quality = self._quality()
        is_odd = losses or quality
        origin = Origin(source="made", losses=losses, quality=quality) if is_odd else None
        actor = Actor(user=by or self._author())
        stamp = Stamp(time=Instant(self.time), actor=actor, verb=verb, origin=origin)
        self.events.append(
            Event(
                revision=Revision(self.revision + 1),
                type=kind,
                key=key,
                uid=tree["metadata"]["uid"],
                body=canonical_json(tree),
                stamp=stamp,
            )
        )
        return self.revision


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
"""What a server writes to the metadata of an object that is to go."""


def key_of(resource: str, name: str) -> ObjectKey:
    """The key of one of the objects that these worlds have."""
    if resource in ("pods", "nodes", "namespaces"):
        return ObjectKey("", resource, "ns" if resource == "pods" else "", name)
    is_namespaced = resource in ("resourceclaims", "resourceclaimtemplates")
    return ObjectKey(GROUP, resource, "ns" if is_namespaced else "", name)


def slice_(pool, *devices, generation=1, counters=None, driver=DRIVER, count=1):
    """A ResourceSlice."""
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "allNodes": True,
        "devices": list(devices),
    }
    if counters is not None:
        counted = {name: {"value": value} for name, value in counters.items()}
        spec["sharedCounters"] = [{"name": "set", "counters": counted}]
    return {"spec": spec}


def device(name, *, shared=False, capacity=None, consumes=None, taints=(), attributes=None):
    """A device of a slice."""
    tree = {"name": name}
    if shared:
        tree["allowMultipleAllocations"] = True
    if capacity:
        tree["capacity"] = {of: {"value": value} for of, value in capacity.items()}
    if consumes:
        counted = {of: {"value": value} for of, value in consumes.items()}
        tree["consumesCounters"] = [{"counterSet": "set", "counters": counted}]
    if taints:
        tree["taints"] = list(taints)
    if attributes:
        tree["attributes"] = attributes
    return tree


def claim(*requests, constraints=(), finalizers=(FINALIZER,)):
    """A claim that is not allocated. A request is a name, or the tree of one."""
    listed = [
        each if isinstance(each, dict) else {"name": each, "exactly": {"deviceClassName": "gpu"}}
        for each in requests or ("r",)
    ]
    devices = {"requests": listed}
    if constraints:
        devices["constraints"] = list(constraints)
    return {
        "metadata": {"finalizers": list(finalizers)},
        "spec": {"devices": devices},
        "status": {},
    }


def result(pool, name, request="r", **more):
    """One result of an allocation."""
    return {"request": request, "driver": DRIVER, "pool": pool, "device": name, **more}


def selector(*requirements, node=""):
    """A node selector: by name, or with requirements for labels."""
    term = {}
    if requirements:
        term["matchExpressions"] = list(requirements)
    if node:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        term["matchFields"] = [field]
    return {"nodeSelectorTerms": [term]}


def user(name, uid):
    """An entry of reservedFor."""
    return {"resource": "pods", "name": name, "uid": uid}


def pod(*claims, node="", phase="Pending"):
    """A pod with claims."""
    spec = {"resourceClaims": [{"name": each, "resourceClaimName": each} for each in claims]}
    if node:
        spec["nodeName"] = node
    return {"spec": spec, "status": {"phase": phase}}


class RandomWorld(World):
    """Anything may happen, and most of it may not."""

    def __init__(self, seed: int, count: int) -> None:
        super().__init__(seed)
        self._authors = random.Random(seed)
        for _ in range(self.draw.randrange(12)):
            self._step(verb="baseline")
        while self.revision < count:
            self._step(verb="update")

    def _author(self) -> str:
        return self._authors.choice(AUTHORS)

    def _generation(self, old: dict | None, tree: dict) -> int:
        right = super()._generation(old, tree)
        return right - self._authors.choice((0,) * 12 + (1, 2))

    def _quality(self) -> str:
        return self._authors.choice(("reconstructed", *("",) * 9))

    def _step(self, verb: str) -> None:
        steps = (
            (self._publish, 3),
            (self._claim, 3),
            (self._allocate, 6),
            (self._reserve, 4),
            (self._free, 3),
            (self._pod, 6),
            (self._node, 2),
            (self._namespace, 2),
            (self._rule, 1),
            (self._template, 1),
            (self._delete, 1),
            (self._mark, 2),
            (self._patch, 1),
            (self._remove, 2),
            (self._spoil, 1),
            (self._other, 1),
        )
        step = self.draw.choices([one for one, _ in steps], [weight for _, weight in steps])[0]
        after = self.draw.choice((0, 0, 1, 7, 61))
        losses = self.draw.choice(((),) * 20 + LOST)
        step({"after": after, "verb": verb, "losses": losses})

    def _publish(self, options) -> None:
        draw = self.draw
        pool = draw.choice(POOLS)
        generation = draw.choice((1, 1, 1, 2))
        devices = [self._device(pool, number) for number in range(draw.randrange(1, 4))]
        counters = {"units": draw.choice(("3", "4", "6", "4000m"))} if pool == "parts" else None
        key = key_of("resourceslices", f"{pool}-{draw.randrange(2)}")
        spec = {"generation": generation, "counters": counters, "count": draw.choice((1, 1, 2))}
        if draw.random() < 0.1:
            spec["driver"] = "other.example.com"
        tree = slice_(pool, *devices, **spec)
        if draw.random() < 0.1:
            tree["spec"]["nodeName"] = "n0"
        self.put(key, tree, **options)

    def _device(self, pool, number):
        draw = self.draw
        taints = []
        if draw.random() < 0.2:
            effect = draw.choice(("NoSchedule", "NoExecute", "None"))
            taints.append({"key": draw.choice("kl"), "value": "v", "effect": effect})
            if draw.random() < 0.5:
                taints[-1]["timeAdded"] = self._time_text()
        attributes = {}
        if draw.random() < 0.8:
            value = draw.choice(({"int": 1}, {"int": 2}, {"ints": [1, 2]}, {"string": "1"}, {}))
            attributes[draw.choice(("numa", f"{DRIVER}/numa"))] = value
        if pool == "shares":
            capacity = {"memory": draw.choice(("10Gi", "10", "5"))}
            return device(
                f"d{number}",
                shared=draw.random() < 0.8,
                capacity=capacity,
                taints=taints,
                attributes=attributes,
            )
        consumes = {"units": draw.choice(("1", "2", "3"))} if pool == "parts" else None
        return device(f"d{number}", consumes=consumes, taints=taints, attributes=attributes)

    def _claim(self, options) -> None:
        draw = self.draw
        key = key_of("resourceclaims", f"c{draw.randrange(5)}")
        requests = [{"name": "r", "exactly": {"count": draw.choice((1, 1, 2))}}]
        if draw.random() < 0.3:
            toleration = {"key": "k", "operator": "Exists"}
            if draw.random() < 0.5:
                toleration["effect"] = "NoExecute"
            if draw.random() < 0.5:
                toleration["tolerationSeconds"] = draw.choice((-1, 0, 30, 3600))
            requests[0]["exactly"]["tolerations"] = [toleration]
        if draw.random() < 0.2:
            requests[0]["exactly"]["adminAccess"] = True
        if draw.random() < 0.3:
            requests[0]["exactly"]["allocationMode"] = "All"
        if draw.random() < 0.3:
            requests.append({"name": "s", "firstAvailable": [{"name": "a"}, {"name": "b"}]})
        constraints = []
        if draw.random() < 0.4:
            kind = draw.choice(("matchAttribute", "distinctAttribute"))
            listed = draw.choice(([], ["r"], ["s"], ["s/a"], ["r", "s"]))
            constraints.append({"requests": listed, kind: f"{DRIVER}/numa"})
        if key in self.objects and draw.random() < 0.5:
            options["uid"] = f"again-{self.revision}"
        finalizers = draw.choice(((FINALIZER,), (FINALIZER,), ()))
        tree = claim(*requests, constraints=constraints, finalizers=finalizers)
        owner = self._pick("pods")
        if owner is not None and draw.random() < 0.3:
            uid = self.objects[owner]["metadata"]["uid"]
            tree["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": uid}]
        if draw.random() < 0.2:
            tree["status"] = {"allocation": self._allocation(tree)}
        self.put(key, tree, **options)

    def _allocation(self, tree):
        draw = self.draw
        results = []
        for request in tree["spec"]["devices"]["requests"]:
            if not isinstance(request, dict):
                continue
            exactly = request.get("exactly")
            wanted = exactly if isinstance(exactly, dict) else {}
            count = wanted.get("count", 1) if draw.random() < 0.9 else 2
            for _ in range(count if isinstance(count, int) else 1):
                pool = draw.choice(POOLS)
                more = {}
                if wanted.get("tolerations") and draw.random() < 0.8:
                    more["tolerations"] = wanted["tolerations"]
                if wanted.get("adminAccess") and draw.random() < 0.9:
                    more["adminAccess"] = True
                if pool == "shares":
                    more["consumedCapacity"] = {"memory": draw.choice(("4Gi", "3", "2500m"))}
                    if draw.random() < 0.9:
                        more["shareID"] = f"share-{self.revision}"
                name = request.get("name", "r")
                if "firstAvailable" in request:
                    name = f"{name}/{draw.choice('ab')}"
                number = draw.choice((0, 0, 1, 2, 3))
                results.append(result(pool, f"d{number}", name, **more))
        allocation = {"devices": {"results": results}}
        if draw.random() < 0.6:
            zone = {"key": "zone", "operator": draw.choice(("In", "NotIn")), "values": ["a"]}
            allocation["nodeSelector"] = draw.choice(
                (selector(node="n0"), selector(zone), selector(zone, node="n1"))
            )
        return allocation

    def _pick(self, resource: str) -> ObjectKey | None:
        keys = sorted(key for key in self.objects if key.resource == resource)
        return self.draw.choice(keys) if keys else None

    def _report(self):
        """A report of a driver, about one of three devices of a pool."""
        draw = self._authors
        report = {"driver": DRIVER, "pool": draw.choice(POOLS), "device": f"d{draw.randrange(3)}"}
        return {**report, **draw.choice(({}, {}, {"shareID": "s1"}))}

    def _allocate(self, options) -> None:
        key = self._pick("resourceclaims")
        if key is None:
            return
        tree = json_tree.copy(self.objects[key])
        try:
            allocation = self._allocation(tree)
        except (KeyError, TypeError):
            return  # it was spoilt
        if not isinstance(tree.get("status"), dict):
            tree["status"] = {}
        tree["status"]["allocation"] = allocation
        self.put(key, tree, **options)

    def _reserve(self, options) -> None:
        key, chosen = self._pick("resourceclaims"), self._pick("pods")
        if key is None or not isinstance(self.objects[key].get("status"), dict):
            return
        tree = json_tree.copy(self.objects[key])
        if chosen is not None and self.draw.random() < 0.9:
            uid = self.objects[chosen]["metadata"]["uid"]
            users = [user(chosen.name, uid)]
        else:
            users = [user("gone", "gone")]
        if self.draw.random() < 0.05:
            users = [user(f"many-{number}", "x") for number in range(257)]
        tree["status"]["reservedFor"] = users
        if self._authors.random() < 0.1:
            tree["status"]["devices"] = [self._report()]
        self.put(key, tree, **options)

    def _free(self, options) -> None:
        key = self._pick("resourceclaims")
        if key is None or not isinstance(self.objects[key].get("status"), dict):
            return
        tree = json_tree.copy(self.objects[key])
        tree["status"].pop("reservedFor", None)
        if self.draw.random() < 0.8:
            tree["status"].pop("allocation", None)
        self.put(key, tree, **options)

    def _pod(self, options) -> None:
        draw = self.draw
        key = key_of("pods", f"p{draw.randrange(4)}")
        old = self.objects.get(key)
        node = draw.choice(("", "n0", "n1", "n2"))
        phase = draw.choice(("Pending", "Running", "Running", "Succeeded"))
        if old is None:
            names = {f"c{draw.randrange(5)}" for _ in range(2)}
            self.put(key, pod(*sorted(names), node=draw.choice(("", "", node))), **options)
            return
        tree = json_tree.copy(old)
        tree["spec"]["nodeName"] = node
        tree["status"] = {"phase": phase}
        if draw.random() < 0.2:
            entry = {"name": "t", "resourceClaimName": "c0"}
            tree["spec"]["resourceClaims"] = [{"name": "t", "resourceClaimTemplateName": "x"}]
            tree["status"]["resourceClaimStatuses"] = [entry]
        self.put(key, tree, **options)

    def _node(self, options) -> None:
        key = key_of("nodes", f"n{self.draw.randrange(3)}")
        zone = self.draw.choice(("a", "b"))
        self.put(key, {"metadata": {"labels": {"zone": zone}}}, **options)

    def _namespace(self, options) -> None:
        labels = self.draw.choice(
            ({}, {}, {ADMIN: "true"}, {ADMIN: "false"}, {"resource.k8s.io/admin-access": "true"})
        )
        metadata = {"labels": dict(labels)}
        if self.draw.random() < 0.2:
            metadata["labels"]["kubernetes.io/metadata.name"] = self.draw.choice(("ns", "other"))
        if self.draw.random() < 0.3:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        status = {"phase": phase} if (phase := self.draw.choice(PHASES)) else {}
        key = key_of("namespaces", "ns")
        self.put(key, {"metadata": metadata, "status": status}, **options)

    def _rule(self, options) -> None:
        draw = self.draw
        chosen = draw.choice((None, {}, {"pool": "whole"}, {"driver": DRIVER, "device": "d0"}))
        taint = {"key": "k", "value": "v"}
        taint["effect"] = draw.choice(("NoSchedule", "NoExecute", "None"))
        if draw.random() < 0.5:
            taint["timeAdded"] = self._time_text()
        spec = {"taint": taint}
        if chosen is not None:
            spec["deviceSelector"] = chosen
        self.put(key_of("devicetaintrules", f"t{draw.randrange(2)}"), {"spec": spec}, **options)

    def _time_text(self) -> str:
        instant = Instant(self.time - self.draw.choice((0, 7, 60)) * SECOND)
        return timestamps.seconds_text(instant)

    def _template(self, options) -> None:
        draw = self.draw
        admin = {"name": "r", "exactly": {"adminAccess": True}}
        listed = ([{"name": "r"}], [admin], [admin])
        spec = draw.choice(
            ({}, {"devices": {}}, *({"devices": {"requests": each}} for each in listed))
        )
        key = key_of("resourceclaimtemplates", f"m{draw.randrange(2)}")
        self.put(key, {"spec": {"spec": spec}}, **options)

    def _delete(self, options) -> None:
        """Ask for the deletion of an object, or take that back, or change it in place."""
        key = self._pick(self.draw.choice(("pods", "resourceclaims")))
        if key is None:
            return
        tree = json_tree.copy(self.objects[key])
        if tree["metadata"].pop("deletionTimestamp", None) is None:
            tree["metadata"]["deletionTimestamp"] = self._time_text()
            tree["metadata"]["deletionGracePeriodSeconds"] = (0, 0, 0, None, 30)[self.revision % 5]
        allocation = json_tree.get(tree, "status", "allocation")
        if isinstance(allocation, dict) and self.draw.random() < 0.5:
            allocation["allocationTimestamp"] = self._time_text()
        self.put(key, tree, **options)

    def _mark(self, options) -> None:
        """Evict a pod."""
        key = self._pick("pods")
        if key is None or not isinstance(self.objects[key].get("status"), dict):
            return
        tree = json_tree.copy(self.objects[key])
        status = tree["status"]
        if status.pop("conditions", None) is None:
            status["conditions"] = [{"type": "Ready", "status": "True"}, dict(MARKED)]
        self.put(key, tree, **options)

    def _patch(self, options) -> None:
        draw = self.draw
        devices = {"filter": draw.choice(({}, {"pool": "shares"}, {"deviceClassName": "gpu"}))}
        devices["priority"] = draw.randrange(3)
        devices["capacity"] = {f"{DRIVER}/memory": {"value": draw.choice(("4", "20Gi"))}}
        devices["attributes"] = {f"{DRIVER}/numa": draw.choice(({"int": 1}, {"null": {}}))}
        key = key_of("resourceslicepatches", f"o{draw.randrange(3)}")
        self.put(key, {"spec": {"devices": devices}}, **options)

    def _remove(self, options) -> None:
        keys = sorted(self.objects)
        if keys:
            self.remove(self.draw.choice(keys), after=options["after"])

    def _other(self, options) -> None:
        if self.draw.random() < 0.1:
            key = ObjectKey("", "", "", "") if self.revision % 2 else IMPORTS
            self.gap(key, time_quality=self._authors.choice(("exact", "none")))
            return
        if self.draw.random() < 0.2:
            kind = self.draw.choice(GAPS)
            self.gap(kind, time_quality=self._authors.choice(("exact", "none")))
            return
        if self.draw.random() < 0.2:
            self.report(*self.draw.sample(GAPS, 4))
            return
        chosen = self._pick("resourceclaims")
        if chosen is not None and self.draw.random() < 0.3:
            changed = self._authors.choice((chosen, *sorted(self.objects)))
            self.gap(changed, *self._authors.choice(((), ("gap",))))
            return
        key = ObjectKey("", "configmaps", "ns", "other")
        self.put(key, {"data": {"at": str(self.revision)}}, after=options["after"])

    def _spoil(self, options) -> None:
        """Put something odd at a random place of some object."""
        keys = sorted(self.objects)
        if not keys:
            return
        key = self.draw.choice(keys)
        tree = json_tree.copy(self.objects[key])
        metadata = tree.pop("metadata")
        places = [each for each in json_tree.walk(tree) if isinstance(each, dict | list) and each]
        if not places:
            return
        place = self.draw.choice(places)
        names = sorted(place) if isinstance(place, dict) else range(len(place))
        place[self.draw.choice(names)] = self.draw.choice(ODD)
        tree["metadata"] = metadata
        old = dict(self.objects)
        self.put(key, tree, **options)
        if key.resource != "resourceclaims":
            # Later steps build on what this object was.
            self.objects[key] = {**old[key], "metadata": self.objects[key]["metadata"]}


class ClassedWorld(RandomWorld):
    """A random world with many writes of two device classes, which no other rule reads."""

    def _step(self, verb: str) -> None:
        if self._authors.random() < 0.7:
            super()._step(verb)
            return
        draw = self._authors
        key = key_of("deviceclasses", f"c{draw.randrange(2)}")
        if key in self.objects and draw.random() < 0.1:
            self.remove(key)
        elif draw.random() < 0.1:
            self.gap(key if draw.random() < 0.8 else ObjectKey("", "", "", ""), "gap")
        else:
            expression = draw.choice(("true", "false"))
            tree = {"spec": {"selectors": [{"cel": {"expression": expression}}]}}
            losses = draw.choice(((),) * 9 + LOST)
            generation = draw.choice((None, 1))
            self.put(key, tree, verb=verb, losses=losses, generation=generation)
