"""A kubelet."""

from tests.plane.objects import uid_of
from tests.plane.simulated import MS, SECOND, fresh


class Kubelet:
    """The kubelet of a node, without informers: it looks at its pods now and then."""

    def __init__(self, world, node):
        self.world, self.node, self.user = world, node, f"system:node:{node}"
        self.started, self.ended = set(), set()
        world.server.watchers.append(self)

    def offer(self, kind, key, event, tree):
        if kind != "Pod" or tree["spec"].get("nodeName") != self.node or event == "DELETED":
            return
        uid, sim = uid_of(tree), self.world.sim
        if uid not in self.started:
            self.started.add(uid)
            sim.spawn(self.start(key, uid))
        if "deletionTimestamp" in tree["metadata"] and uid not in self.ended:
            self.ended.add(uid)
            sim.spawn(self.stop(key, uid, tree["metadata"]["deletionGracePeriodSeconds"]))

    def phase(self, key, uid, phase):
        sim, world = self.world.sim, self.world
        conditions = [
            {
                "type": t,
                "status": "True" if phase == "Running" else "False",
                "lastProbeTime": None,
                "lastTransitionTime": sim.seconds(),
            }
            for t in ("Ready", "ContainersReady")
        ]

        def apply(tree):
            tree["status"]["phase"] = phase
            names = {c["type"] for c in conditions}
            tree["status"]["conditions"] = [
                c for c in tree["status"].get("conditions", []) if c["type"] not in names
            ] + fresh(conditions)
            tree["status"].setdefault("startTime", sim.seconds())

        body = {"metadata": {"uid": uid}, "status": {"phase": phase, "conditions": conditions}}
        return world.server.call(
            self.user,
            "patch",
            "Pod",
            key,
            lambda: world.server.change("Pod", key, apply, uid=uid),
            body=body,
            sub="status",
            agent="kubelet/v1.36.2",
        )

    def start(self, key, uid):
        rng = self.world.rng
        yield rng.randint(20, 1500) * MS
        if uid in self.ended:
            return
        code, _ = yield from self.phase(key, uid, "Running")
        entries = self.world.server.objects["Pod"].get(key, {"spec": {}})["spec"]
        made = [e for e in entries.get("resourceClaims", []) if "resourceClaimTemplateName" in e]
        # What a partial list of two claims that are made again leaves is not known (C9, C22).
        if code == 200 and len(made) < 2 and rng.random() < 0.3:
            yield rng.randint(500, 15000) * MS
            if uid not in self.ended:
                self.ended.add(uid)
                yield from self.phase(key, uid, rng.choice(("Succeeded", "Succeeded", "Failed")))
                self.ended.discard(uid)
                if any(
                    "resourceClaimName" in e
                    for e in self.world.server.objects["Pod"]
                    .get(key, {"spec": {}})["spec"]
                    .get("resourceClaims", [])
                ):
                    # It would be reserved and released again and again (C8).
                    yield rng.randint(20, 200) * MS
                    yield from self.world.delete("user-0", "Pod", key)

    def stop(self, key, uid, grace):
        world, rng = self.world, self.world.rng
        yield int(rng.random() * grace * SECOND)
        live = world.server.get("Pod", key)
        if (
            live
            and uid_of(live) == uid
            and live["status"]["phase"] not in ("Succeeded", "Failed")
            and rng.random() < 0.8
        ):
            yield from self.phase(key, uid, rng.choice(("Succeeded", "Failed")))
            yield rng.randint(5, 100) * MS
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/__internal",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        yield from world.server.call(
            self.user,
            "delete",
            "Pod",
            key,
            lambda: world.server.delete("Pod", key, uid=uid, grace=0),
            body=body,
            agent="kubelet/v1.36.2",
        )
