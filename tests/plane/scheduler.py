"""The scheduler: its caches, its queue and what wakes pods (controllers.md 3 and 4)."""

from tests.plane.attempts import DRA, Attempts
from tests.plane.informers import Informers
from tests.plane.objects import claim_name, key_of, uid_of
from tests.plane.simulated import SECOND


class Entry:
    def __init__(self, pod, now):
        self.pod, self.stamp = pod, now
        self.attempts = self.errors = 0
        self.plugins = set()
        self.where = None  # active, backoff, errors, pool, gated, flying
        self.until = 0
        self.since = 0

    @property
    def priority(self):
        return self.pod["spec"].get("priority", 0)


class Scheduler(Attempts):
    """One run of the scheduler."""

    def __init__(self, server, spread, options):
        self.server, self.sim, self.options = server, server.sim, options
        kinds = ["Pod", "Node", "ResourceClaim", "ResourceSlice", "DeviceClass"]
        if options.get("rules", True):
            kinds.append("DeviceTaintRule")
        self.informers = Informers(server, kinds, spread)
        self.life = self.informers.life
        cache = self.informers.cache
        self.pods, self.nodes = cache["Pod"], cache["Node"]
        self.slices, self.classes = cache["ResourceSlice"], cache["DeviceClass"]
        self.rules = cache.get("DeviceTaintRule", {})
        self.assumed_claims, self.assumed_pods, self.flying_claims = {}, {}, {}
        self.entries, self.flying_events = {}, {}
        self.said, self.order = {}, []
        self.wake = None
        h = self.informers.handlers
        h["Pod"].append(self._pod)
        h["Node"].append(self._node)
        h["ResourceClaim"].append(self._claim)
        h["ResourceSlice"].append(lambda old, new: new and self._happened(lambda e, p: p == DRA))
        h["DeviceClass"].append(lambda old, new: new and self._happened(lambda e, p: p == DRA))
        if "DeviceTaintRule" in kinds:
            h["DeviceTaintRule"].append(self._rule)
        self.informers.start()
        self.sim.spawn(self._loop(), self.life)
        self.sim.spawn(self._flush(), self.life)

    def stop(self):
        self.informers.stop()

    # what happened

    def _claim_of(self, key):
        cached, assumed = (
            self.informers.cache["ResourceClaim"].get(key),
            self.assumed_claims.get(key),
        )
        if assumed and (
            cached is None
            or int(assumed["metadata"]["resourceVersion"])
            > int(cached["metadata"]["resourceVersion"])
        ):
            return assumed if cached is not None else None
        return cached

    def _claims_now(self):
        return [self._claim_of(key) for key in self.informers.cache["ResourceClaim"]]

    def _claim(self, old, new):
        key = key_of(new or old)
        if new is None:
            self.assumed_claims.pop(key, None)
            return
        assumed = self.assumed_claims.get(key)
        if assumed:
            if int(new["metadata"]["resourceVersion"]) <= int(
                assumed["metadata"]["resourceVersion"]
            ):
                return
            old = assumed
            self.assumed_claims.pop(key)
        self._claim_event(old, new)

    def _assume_claim(self, claim):
        key = key_of(claim)
        old = self._claim_of(key)
        if old is None or int(old["metadata"]["resourceVersion"]) >= int(
            claim["metadata"]["resourceVersion"]
        ):
            return
        self.assumed_claims[key] = claim
        self._claim_event(old, claim)

    def _claim_event(self, old, new):
        def hint(entry, plugin):
            if plugin != DRA:
                return False
            if self._problem(entry.pod):
                return False
            if old and old["status"].get("allocation") and not new["status"].get("allocation"):
                return True
            names = [
                claim_name(entry.pod, e)[1] for e in entry.pod["spec"].get("resourceClaims", [])
            ]
            if key_of(new)[0] != key_of(entry.pod)[0] or key_of(new)[1] not in names:
                return False
            return old is None or old["status"] != new["status"]

        self._happened(hint)

    def _node(self, old, new):
        if new is None:
            self.order = [n for n in self.order if n != key_of(old)[1]]
            return
        name = key_of(new)[1]
        if name not in self.order:
            self.order.append(name)
        added = old is None
        labels = added or old["metadata"].get("labels") != new["metadata"].get("labels")
        room = added or old["status"].get("allocatable") != new["status"].get("allocatable")
        cordon = added or (
            old["spec"].get("unschedulable") and not new["spec"].get("unschedulable")
        )
        taints = added or old["spec"].get("taints") != new["spec"].get("taints")

        def hint(entry, plugin):
            return {
                DRA: labels or room,
                "NodeResourcesFit": room,
                "NodeAffinity": labels,
                "NodeUnschedulable": cordon,
                "TaintToleration": taints,
            }[plugin]

        if labels or room or cordon or taints:
            self._happened(hint)

    def _rule(self, old, new):
        def touched(rule):
            if not rule:
                return False
            sel = rule["spec"].get("deviceSelector") or {}
            return any(
                sel.get("driver") in (None, s["spec"]["driver"])
                and sel.get("pool") in (None, s["spec"]["pool"]["name"])
                and sel.get("device") in (None, d["name"])
                for s in self.slices.values()
                for d in s["spec"].get("devices", [])
            )

        if old and new and old["spec"] == new["spec"]:
            return
        if touched(old) or touched(new):
            self._happened(lambda e, p: p == DRA)

    def _pod(self, old, new):
        pod = new or old
        if pod["spec"].get("schedulerName") != "default-scheduler":
            return
        uid = uid_of(pod)
        entry = self.entries.get(uid)
        if new is None:
            self.assumed_pods.pop(uid, None)
            if entry:
                entry.where = "gone"
                self.entries.pop(uid)
            if old["spec"].get("nodeName"):
                self._happened(lambda e, p: p == "NodeResourcesFit")
            return
        if new["spec"].get("nodeName"):
            if entry:
                self.entries.pop(uid)
                if entry.where != "flying":
                    entry.where = "gone"
            self.assumed_pods.pop(uid, None)
            if new["status"]["phase"] in ("Succeeded", "Failed") and (
                old is None or old["status"]["phase"] not in ("Succeeded", "Failed")
            ):
                self._happened(lambda e, p: p == "NodeResourcesFit")
            return
        if entry is None:
            if uid in self.assumed_pods:
                return
            entry = self.entries[uid] = Entry(new, self.sim.now)
            self._admit(entry)
            return
        entry.pod = new
        if old is not None and old["status"].get("resourceClaimStatuses") != new["status"].get(
            "resourceClaimStatuses"
        ):
            if entry.where in ("pool", "gated") and DRA in entry.plugins and not self._problem(new):
                self._requeue(entry)
            elif entry.where == "flying":
                self.flying_events[uid].append(lambda e, p: p == DRA)

    def _happened(self, hint):
        for uid in self.flying_events:
            self.flying_events[uid].append(hint)
        for entry in list(self.entries.values()):
            if entry.where in ("pool", "gated") and any(
                hint(entry, plugin) for plugin in entry.plugins
            ):
                self._requeue(entry)

    def _requeue(self, entry):
        if self._gate(entry):
            return
        if entry.where == "gated" or entry.until <= self.sim.now:
            self._activate(entry)
        else:
            entry.where = "backoff"

    def _gate(self, entry):
        if self._problem(entry.pod):
            entry.where, entry.plugins = "gated", {DRA}
            return True
        return False

    def _admit(self, entry):
        if not self._gate(entry):
            self._activate(entry)

    def _activate(self, entry):
        entry.where, entry.stamp = "active", entry.stamp
        if self.wake:
            wake, self.wake = self.wake, None
            self.sim.after(self.sim.draw((0.01, 0.05, 3)), wake)

    def _flush(self):
        last = 0
        while True:
            yield SECOND - (self.sim.now + 250_000) % SECOND
            for entry in sorted(self.entries.values(), key=lambda e: e.until):
                if (
                    entry.where in ("backoff", "errors")
                    and entry.until <= self.sim.now
                    and not self._gate(entry)
                ):
                    self._activate(entry)
            if self.sim.now - last >= 30 * SECOND:
                last = self.sim.now
                for entry in list(self.entries.values()):
                    if entry.where == "pool" and self.sim.now - entry.since > 300 * SECOND:
                        self._requeue(entry)
