"""The garbage collector."""

from functools import partial

from tests.plane.informers import Informers, Queue
from tests.plane.objects import COLLECTOR, KCM, key_of, uid_of
from tests.plane.simulated import fresh


class Collector:
    """Deletes claims of pods, and slices of nodes, that are gone."""

    def __init__(self, manager, spread):
        self.m, self.server, self.sim = manager, manager.server, manager.sim
        self.informers = Informers(
            self.server, ["Pod", "ResourceClaim", "ResourceSlice", "Node"], spread
        )
        self.informers.life = manager.life
        self.queue = Queue(self.sim, manager.life, self._work, 20)
        for kind in ("Pod", "Node"):
            self.informers.handlers[kind].append(self._owner)
        for kind in ("ResourceClaim", "ResourceSlice"):
            self.informers.handlers[kind].append(
                lambda old, new, kind=kind: self._dependent(kind, old, new)
            )
        self.gone = set()

    def _dependents(self, uid):
        for kind in ("ResourceClaim", "ResourceSlice"):
            for key, tree in self.informers.cache[kind].items():
                if any(ref["uid"] == uid for ref in tree["metadata"].get("ownerReferences", [])):
                    yield kind, key, uid_of(tree)

    def _owner(self, old, new):
        if new is None:
            self.gone.add(uid_of(old))
            for item in list(self._dependents(uid_of(old))):
                self.queue.add(item)

    def _dependent(self, kind, old, new):
        if old is None and new is not None:
            for ref in new["metadata"].get("ownerReferences", []):
                known = any(
                    uid_of(t) == ref["uid"]
                    for k in ("Pod", "Node")
                    for t in self.informers.cache[k].values()
                )
                if not known:
                    self.queue.add((kind, key_of(new), uid_of(new)), 500_000)

    def _work(self, item):
        kind, key, uid = item
        agent = KCM + "generic-garbage-collector"
        call = partial(self.server.call, COLLECTOR, agent=agent)
        cached = self.informers.cache[kind].get(key)
        live = yield from call("get", kind, key, lambda: self._look(kind, key))
        if live[0] == 404 or uid_of(live[1]) != uid:
            return True
        if "deletionTimestamp" in live[1]["metadata"]:
            return True
        for ref in live[1]["metadata"].get("ownerReferences", []):
            at = ((key[0] if ref["kind"] == "Pod" else ""), ref["name"])
            code, owner = yield from call(
                "get", ref["kind"], at, lambda ref=ref, at=at: self._look(ref["kind"], at)
            )
            if code == 200 and uid_of(owner) == ref["uid"]:
                return True
        version = (cached or live[1])["metadata"]["resourceVersion"]
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/__internal",
            "preconditions": {"uid": uid, "resourceVersion": version},
            "propagationPolicy": "Background",
        }
        code, _ = yield from call(
            "delete",
            kind,
            key,
            lambda: self.server.delete(kind, key, uid=uid, version=version),
            body=options,
        )
        if code == 409:
            code, found = yield from call("get", kind, key, lambda: self._look(kind, key))
            if code == 404 or uid_of(found) != uid:
                return True
            options = fresh(options)
            options["preconditions"].pop("resourceVersion")
            code, _ = yield from call(
                "delete", kind, key, lambda: self.server.delete(kind, key, uid=uid), body=options
            )
        return code in (200, 404)

    def _look(self, kind, key):
        found = self.server.get(kind, key)
        return (
            (200, found)
            if found
            else (
                404,
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "not found",
                    "reason": "NotFound",
                    "code": 404,
                },
            )
        )
