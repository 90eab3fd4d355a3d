"""Kubelets, drivers and users of a drawn cluster, and its log."""

from pathlib import Path

from tests.plane.kubelet import Kubelet
from tests.plane.manager import Manager
from tests.plane.objects import key_of, uid_of
from tests.plane.scheduler import Scheduler
from tests.plane.server import KINDS, Server
from tests.plane.simulated import MS, SECOND, Life, Sim, fresh

ADMIN, DRIVER = "kubernetes-admin", "system:serviceaccount:dra-driver:dra-driver"
GPU, NIC, FABRIC = "gpu.example.com", "nic.example.com", "fabric.example.com"
NODES = "system:serviceaccount:kube-system:node-controller"


class World:
    def __init__(self, seed, **options):
        self.sim = sim = Sim(seed)
        rng = self.rng = sim.rng
        self.options = options
        fast = rng.choice((1, 3, 10, 25))
        lag = rng.choice((2, 10, 40, 40))  # recorded acts follow their causes after 3 to 50 ms
        self.server = Server(
            sim, servers=options.get("servers", 1), api=(1, fast, 200), skew=options.get("skew", 0)
        )
        self.spread = (0.5, options.get("lag", lag), 500)
        options.setdefault("think", rng.choice((0.3, 0.6, 1.2)))
        options.setdefault("think_max", 4)
        self.life = Life()
        self.names = 0
        self.plan()

    # requests of users

    def create(self, user, kind, tree):
        server = self.server
        group, version, *_ = KINDS[kind]
        body = {
            "kind": kind.replace("Core", ""),
            "apiVersion": f"{group}/{version}".lstrip("/"),
            **fresh(tree),
        }
        key = (tree["metadata"].get("namespace", ""), tree["metadata"].get("name", ""))
        return server.call(
            user,
            "create",
            kind,
            key,
            lambda: server.create(kind, tree),
            body=body,
            agent="kubectl/v1.36.2",
        )

    def delete(self, user, kind, key, grace=None):
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/__internal",
            "propagationPolicy": "Background",
        }
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        return self.server.call(
            user,
            "delete",
            kind,
            key,
            lambda: self.server.delete(kind, key, grace=grace),
            body=body,
            agent="kubectl/v1.36.2",
        )

    def update(self, user, kind, tree, sub=""):
        key = key_of(tree)
        return self.server.call(
            user,
            "update",
            kind,
            key,
            lambda: self.server.update(kind, key, tree, sub),
            body=tree,
            sub=sub,
            agent="driver/v1",
        )

    def patch(self, user, kind, key, fn, body, sub=""):
        return self.server.call(
            user,
            "patch",
            kind,
            key,
            lambda: self.server.change(kind, key, fn),
            body=body,
            sub=sub,
            agent="kubectl/v1.36.2",
        )

    def name(self, base):
        self.names += 1
        return f"{base}-{self.names}"

    # the cluster

    def plan(self):
        rng, sim = self.rng, self.sim
        self.node_names = [f"node-{i}" for i in range(rng.randint(1, self.options.get("nodes", 4)))]
        self.per_node = rng.randint(1, 4)
        self.small_cpu = rng.random() < 0.3
        self.devices = {}
        sim.spawn(self.begin())

    def begin(self):
        rng, sim = self.rng, self.sim
        for ns in ("default", "work", "lab"):
            yield from self.create(
                "system:apiserver",
                "Namespace",
                {
                    "metadata": {"name": ns, "labels": {"kubernetes.io/metadata.name": ns}},
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                },
            )
        self.manager = Manager(self.server, self.spread, self.options)
        self.scheduler = Scheduler(self.server, self.spread, self.options)
        for name in self.node_names:
            yield from self.add_node(name)
            yield rng.randint(1, 300) * MS
        for name, expression in (
            ("gpu", f'device.driver == "{GPU}"'),
            ("nic", f'device.driver == "{NIC}"'),
            ("fabric", f'device.driver == "{FABRIC}"'),
            ("big", f'device.driver == "{GPU}" && device.attributes["{GPU}"].memory >= 40'),
        ):
            yield from self.create(
                ADMIN,
                "DeviceClass",
                {
                    "metadata": {"name": name},
                    "spec": {"selectors": [{"cel": {"expression": expression}}]},
                },
            )
        if rng.random() < 0.5:
            yield from self.shared_pool()
        yield rng.randint(10, 3000) * MS
        for number in range(rng.randint(1, 3)):
            sim.spawn(self.user(f"user-{number}", rng.choice(("work", "lab"))), self.life)
        if self.options.get("trouble", True):
            sim.spawn(self.trouble(), self.life)
        if self.options.get("restarts"):
            sim.spawn(self.restarts(), self.life)

    def add_node(self, name):
        rng = self.rng
        cpu = "4" if self.small_cpu else "64"
        amounts = {"cpu": cpu, "memory": cpu + "Gi", "pods": "110"}
        tree = {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "rack": rng.choice("ab")},
            },
            "spec": {},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "KubeletReady",
                        "lastHeartbeatTime": self.sim.seconds(),
                        "lastTransitionTime": self.sim.seconds(),
                    }
                ],
            },
        }
        _, node = yield from self.create(ADMIN, "Node", tree)
        owner = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": name,
                "uid": uid_of(node),
                "controller": True,
            }
        ]
        Kubelet(self, name)
        self.sim.spawn(self.registered(node), self.life)
        for driver, count, kinds in (
            (GPU, self.per_node, (40, 80)),
            (NIC, rng.randint(0, 2), (10,)),
        ):
            if not count:
                continue
            devices = [
                {
                    "name": f"d{i}",
                    "attributes": {
                        "memory": {"int": rng.choice(kinds)},
                        "numa": {"int": i % 2},
                        "shared.example.com/numa": {"int": i % 2},
                    },
                }
                for i in range(count)
            ]
            parts = [devices]
            if driver == GPU and count > 2 and rng.random() < 0.4:
                parts = [devices[:2], devices[2:]]
            for i, part in enumerate(parts):
                tree = {
                    "metadata": {"name": f"{name}-{driver}-{i}", "ownerReferences": owner},
                    "spec": {
                        "driver": driver,
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": len(parts)},
                        "devices": part,
                    },
                }
                yield from self.create(DRIVER, "ResourceSlice", tree)
                yield rng.randint(1, 100) * MS

    def registered(self, node):
        yield self.rng.randint(1, 400) * MS
        yield from self.create(
            NODES,
            "CoreEvent",
            {
                "metadata": {
                    "name": f"{key_of(node)[1]}.{1795248000250000000 + self.sim.now * 1000:016x}",
                    "namespace": "default",
                },
                "involvedObject": {
                    "kind": "Node",
                    "name": key_of(node)[1],
                    "uid": uid_of(node),
                    "apiVersion": "v1",
                },
                "reason": "RegisteredNode",
                "message": (
                    f"Node {key_of(node)[1]} event: Registered Node {key_of(node)[1]} in Controller"
                ),
                "source": {"component": "node-controller"},
                "firstTimestamp": self.sim.seconds(),
                "lastTimestamp": self.sim.seconds(),
                "count": 1,
                "type": "Normal",
                "eventTime": None,
                "reportingComponent": "node-controller",
                "reportingInstance": "",
            },
        )

    def shared_pool(self):
        rng = self.rng
        devices = []
        for i in range(rng.randint(1, 3)):
            device = {"name": f"port{i}", "attributes": {"speed": {"int": rng.choice((10, 100))}}}
            if self.options.get("binding") and rng.random() < 0.7:
                device |= {
                    "bindsToNode": True,
                    "bindingConditions": ["example.com/attached"],
                    "bindingFailureConditions": ["example.com/failed"],
                }
            devices.append(device)
        where = rng.choice(
            (
                {"allNodes": True},
                {
                    "nodeSelector": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "rack", "operator": "In", "values": ["a"]}
                                ]
                            }
                        ]
                    }
                },
            )
        )
        yield from self.create(
            DRIVER,
            "ResourceSlice",
            {
                "metadata": {"name": "fabric-0"},
                "spec": {
                    "driver": FABRIC,
                    **where,
                    "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
                    "devices": devices,
                },
            },
        )
        if self.options.get("binding"):
            self.sim.spawn(self.attacher(), self.life)

    def attacher(self):
        """The driver that makes devices of the fabric ready."""
        rng = self.rng
        seen = set()
        while True:
            yield rng.randint(100, 3000) * MS
            for key, claim in list(self.server.objects["ResourceClaim"].items()):
                allocation = claim["status"].get("allocation")
                mark = (uid_of(claim), (allocation or {}).get("allocationTimestamp"))
                if not allocation or mark in seen:
                    continue
                seen.add(mark)
                results = [
                    r for r in allocation["devices"]["results"] if r.get("bindingConditions")
                ]
                if not results:
                    continue
                kind = "example.com/failed" if rng.random() < 0.2 else "example.com/attached"
                yield rng.randint(1, 4000) * MS
                listed = [
                    {
                        "driver": r["driver"],
                        "pool": r["pool"],
                        "device": r["device"],
                        "conditions": [
                            {
                                "type": kind,
                                "status": "True",
                                "reason": "Told",
                                "message": "",
                                "lastTransitionTime": self.sim.seconds(),
                            }
                        ],
                    }
                    for r in results
                ]
                for _ in range(4):
                    live = self.server.get("ResourceClaim", key)
                    if (
                        not live
                        or live["status"].get("allocation", {}).get("allocationTimestamp")
                        != mark[1]
                    ):
                        break
                    live["status"]["devices"] = listed
                    code, _ = yield from self.update(DRIVER, "ResourceClaim", live, "status")
                    if code == 200:
                        break

    # users

    def wish(self):
        """The devices of a claim, drawn."""
        rng = self.rng
        kinds = ["gpu"] * 5 + ["big", "nic", "two", "list", "both", "fabric", "selector"]
        kind = rng.choice(kinds)

        def one(name, **more):
            return {
                "deviceClassName": name,
                "allocationMode": "ExactCount",
                "count": 1,
                **more,
            }

        tolerations = (
            [
                {
                    "key": "broken",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    **({"tolerationSeconds": rng.randint(0, 12)} if rng.random() < 0.7 else {}),
                }
            ]
            if rng.random() < 0.25
            else []
        )
        more = {"tolerations": tolerations} if tolerations else {}
        if kind == "two":
            return {"requests": [{"name": "gpu", "exactly": one("gpu", **more) | {"count": 2}}]}
        if kind == "list":
            return {
                "requests": [
                    {
                        "name": "any",
                        "firstAvailable": [
                            {"name": "large", **one("big", **more)},
                            {"name": "small", **one("gpu", **more)},
                        ],
                    }
                ]
            }
        if kind == "both":
            return {
                "requests": [
                    {"name": "gpu", "exactly": one("gpu", **more)},
                    {"name": "nic", "exactly": one("nic", **more)},
                ],
                "constraints": [
                    {"requests": ["gpu", "nic"], "matchAttribute": "shared.example.com/numa"}
                ],
            }
        if kind == "selector":
            return {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": one(
                            "gpu",
                            selectors=[
                                {"cel": {"expression": f'device.attributes["{GPU}"].memory == 80'}}
                            ],
                            **more,
                        ),
                    }
                ]
            }
        return {"requests": [{"name": "r", "exactly": one(kind, **more)}]}

    def user(self, who, ns):
        rng = self.rng
        mine, claims, templates = [], [], []
        for _ in range(self.options.get("acts", 14)):
            yield int(SECOND * rng.choice((0.01, 0.05, 0.3, 1, 3, 7)) * rng.random() * 2)
            act = rng.random()
            if act < 0.45 or not mine:
                if not templates or rng.random() < 0.3:
                    template = self.name("template")
                    tree = {
                        "metadata": {"name": template, "namespace": ns},
                        "spec": {"spec": {"devices": self.wish()}},
                    }
                    if rng.random() < 0.15:
                        self.sim.spawn(
                            self.later(
                                rng.randint(100, 4000) * MS,
                                self.create(who, "ResourceClaimTemplate", tree),
                            ),
                            self.life,
                        )
                    else:
                        yield from self.create(who, "ResourceClaimTemplate", tree)
                    templates.append(template)
                if rng.random() < 0.25 or (claims and rng.random() < 0.15):
                    entries = (
                        [{"name": "dev", "resourceClaimName": rng.choice(claims)}]
                        if claims and rng.random() < 0.6
                        else None
                    )
                    if entries is None:
                        claim = self.name("claim")
                        body = self.create(
                            who,
                            "ResourceClaim",
                            {
                                "metadata": {"name": claim, "namespace": ns},
                                "spec": {"devices": self.wish()},
                            },
                        )
                        if rng.random() < 0.2:
                            self.sim.spawn(self.later(rng.randint(100, 4000) * MS, body), self.life)
                        else:
                            yield from body
                        claims.append(claim)
                        entries = [{"name": "dev", "resourceClaimName": claim}]
                else:
                    entries = [
                        {"name": f"e{i}", "resourceClaimTemplateName": rng.choice(templates)}
                        for i in range(rng.choice((1, 1, 1, 2)))
                    ]
                if rng.random() < 0.05:
                    entries = []
                for _ in range(rng.choice((1, 1, 2, 3))):
                    pod = self.name("pod")
                    yield from self.create(who, "Pod", self.pod(pod, ns, entries))
                    mine.append(pod)
            elif act < 0.75:
                pod = mine.pop(rng.randrange(len(mine)))
                yield from self.delete(who, "Pod", (ns, pod))
            elif act < 0.85 and claims:
                claim = claims.pop(rng.randrange(len(claims)))
                yield from self.delete(who, "ResourceClaim", (ns, claim))
            else:
                yield rng.randint(100, 5000) * MS

    def later(self, wait, gen):
        yield wait
        yield from gen

    def pod(self, name, ns, entries):
        rng = self.rng
        cpu = rng.choice((500, 1000, 1000))
        container = {
            "name": "main",
            "image": "example.com/workload:1",
            "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{cpu * 128 // 125}Mi"}},
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
        if entries:
            container["resources"]["claims"] = [{"name": e["name"]} for e in entries]
        tolerations = [
            {
                "key": f"node.kubernetes.io/{k}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for k in ("not-ready", "unreachable")
        ]
        spec = {
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": rng.choice((1, 2, 5)),
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": tolerations,
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        if entries:
            spec["resourceClaims"] = fresh(entries)
        if rng.random() < 0.1:
            spec["nodeSelector"] = {"rack": rng.choice("ab")}
        return {"metadata": {"name": name, "namespace": ns}, "spec": spec}

    # what drivers and administrators do

    def trouble(self):
        rng = self.rng
        for _ in range(self.options.get("troubles", 6)):
            yield int(SECOND * rng.choice((1, 4, 10)) * rng.random() * 2)
            act = rng.choice(
                (
                    "taint",
                    "taint",
                    "untaint",
                    "republish",
                    "cordon",
                    "uncordon",
                    "rule",
                    "unrule",
                    "rule_change",
                )
            )
            slices = list(self.server.objects["ResourceSlice"].values())
            if act in ("taint", "untaint") and slices:
                tree = fresh(rng.choice(slices))
                device = rng.choice(tree["spec"]["devices"])
                taint = {
                    "key": rng.choice(("broken", "hot")),
                    "effect": rng.choice(("NoExecute", "NoSchedule", "NoExecute")),
                    "value": "yes",
                }
                if act == "taint":
                    device["taints"] = [*device.get("taints", []), taint]
                else:
                    for each in tree["spec"]["devices"]:
                        each.pop("taints", None)
                yield from self.update(DRIVER, "ResourceSlice", tree)
            elif act == "republish" and slices:
                pick = rng.choice(slices)["spec"]
                place = (pick["driver"], pick["pool"]["name"])
                trees = [
                    fresh(s)
                    for s in slices
                    if (s["spec"]["driver"], s["spec"]["pool"]["name"]) == place
                ]
                drop = rng.random() < 0.3
                for tree in trees:
                    tree["spec"]["pool"]["generation"] += 1
                    if drop and len(tree["spec"]["devices"]) > 1:
                        tree["spec"]["devices"].pop()
                        drop = False
                    yield from self.update(DRIVER, "ResourceSlice", tree)
                    yield rng.randint(1, 400) * MS
            elif act in ("cordon", "uncordon"):
                name = rng.choice(self.node_names)

                def change(tree, on=act == "cordon"):
                    tree["spec"].pop("unschedulable", None)
                    if on:
                        tree["spec"]["unschedulable"] = True

                yield from self.patch(
                    ADMIN,
                    "Node",
                    ("", name),
                    change,
                    {"spec": {"unschedulable": True if act == "cordon" else None}},
                )
                self.sim.spawn(self.mark_cordoned(name), self.life)
            elif act == "rule" and self.options.get("rules", True):
                selector = rng.choice(
                    (
                        {"driver": GPU},
                        {"driver": GPU, "pool": rng.choice(self.node_names)},
                        {"pool": rng.choice(self.node_names), "device": "d0"},
                    )
                )
                taint = {
                    "key": rng.choice(("broken", "hot")),
                    "value": "rule",
                    "effect": rng.choice(("NoExecute", "NoExecute", "NoSchedule", "None")),
                }
                yield from self.create(
                    ADMIN,
                    "DeviceTaintRule",
                    {
                        "metadata": {"name": self.name("rule")},
                        "spec": {"deviceSelector": selector, "taint": taint},
                    },
                )
            elif act == "rule_change" and self.server.objects["DeviceTaintRule"]:
                key = rng.choice(list(self.server.objects["DeviceTaintRule"]))
                effect = rng.choice(("NoExecute", "NoSchedule", "None"))

                def change(tree, effect=effect):
                    if tree["spec"]["taint"]["effect"] != effect:
                        tree["spec"]["taint"] |= {"effect": effect, "timeAdded": self.sim.seconds()}

                yield from self.patch(
                    ADMIN, "DeviceTaintRule", key, change, {"spec": {"taint": {"effect": effect}}}
                )
            elif act == "unrule" and self.server.objects["DeviceTaintRule"]:
                yield from self.delete(
                    ADMIN,
                    "DeviceTaintRule",
                    rng.choice(list(self.server.objects["DeviceTaintRule"])),
                )

    def mark_cordoned(self, name):
        """The node controller taints a node that is unschedulable."""
        yield self.rng.randint(5, 300) * MS
        while not self.manager.life.alive:  # it is a part of that process
            yield 200 * MS
        key = "node.kubernetes.io/unschedulable"
        made = {"key": key, "effect": "NoSchedule", "timeAdded": self.sim.seconds()}
        live = self.server.get("Node", ("", name))
        on = live["spec"].get("unschedulable")
        taints = live["spec"].get("taints", [])
        if bool(on) == any(t["key"] == key for t in taints):
            return
        wanted = [t for t in taints if t["key"] != key] + ([made] if on else [])

        def change(tree):
            tree["spec"].pop("taints", None)
            if wanted:
                tree["spec"]["taints"] = fresh(wanted)

        body = {
            "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
            "spec": {"taints": wanted or None},
        }
        yield from self.patch(NODES, "Node", ("", name), change, body)

    def restarts(self):
        rng = self.rng
        while True:
            yield rng.randint(5, 40) * SECOND
            if "scheduler" in self.options["restarts"] and rng.random() < 0.6:
                self.scheduler.stop()
                yield rng.randint(15_000, 22_000) * MS  # until the Lease of the old one ends
                self.scheduler = Scheduler(self.server, self.spread, self.options)
            elif "manager" in self.options["restarts"]:
                self.manager.stop()
                yield rng.randint(15_000, 22_000) * MS  # until the Lease of the old one ends
                self.manager = Manager(self.server, self.spread, self.options)

    def run(self, folder, seconds=90):
        self.sim.run(seconds * SECOND)
        self.life.alive = False
        self.sim.run((seconds + self.options.get("rest", 0)) * SECOND)
        return self.server.write(Path(folder))
