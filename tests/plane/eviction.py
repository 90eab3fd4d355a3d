"""The device taint eviction controller."""

from tests.plane.informers import Queue
from tests.plane.objects import EVICTION, KCM, claim_name, key_of, owner_pod, uid_of
from tests.plane.simulated import fresh


class Evictor:
    """Device taint eviction, section 1."""

    def __init__(self, manager):
        self.m, self.server, self.sim = manager, manager.server, manager.sim
        self.pods = manager.pods
        self.slices = manager.informers.cache["ResourceSlice"]
        self.rules_cache = manager.informers.cache["DeviceTaintRule"]
        self.claims, self.due, self.evicted, self.stats = {}, {}, [], {}
        self.queue = Queue(self.sim, manager.life, self._work, 8)
        h = manager.informers.handlers
        h["DeviceTaintRule"].append(self._rule)
        h["ResourceSlice"].append(self._slice)
        h["ResourceClaim"].append(self._claim)
        h["Pod"].append(self._pod)
        self.known = {}

    def _taints(self, result):
        place = (result["driver"], result["pool"], result["device"])
        for name in sorted(r[1] for r in self.rules_cache):
            rule = self.rules_cache["", name]
            selector = rule["spec"].get("deviceSelector")
            if (
                rule["spec"]["taint"]["effect"] == "NoExecute"
                and selector is not None
                and all(
                    selector.get(f) in (None, v)
                    for f, v in zip(("driver", "pool", "device"), place, strict=True)
                )
            ):
                yield ("rule", name, uid_of(rule)), rule["spec"]["taint"]
        for index, taint in enumerate(self._slice_taints(place)):
            yield ("slice", *place, index), taint

    def _slice_taints(self, place):
        mine = [
            s
            for s in self.slices.values()
            if (s["spec"]["driver"], s["spec"]["pool"]["name"]) == place[:2]
        ]
        if not mine:
            return []
        newest = max(s["spec"]["pool"]["generation"] for s in mine)
        for s in mine:
            if s["spec"]["pool"]["generation"] == newest:
                for d in s["spec"].get("devices", []):
                    if d["name"] == place[2]:
                        return [t for t in d.get("taints", []) if t["effect"] == "NoExecute"]
        return []

    def _eviction(self, claim):
        reasons, times = [], []
        for result in claim["status"]["allocation"]["devices"].get("results", []):
            for reason, taint in self._taints(result):
                fits = [
                    t
                    for t in result.get("tolerations", [])
                    if t.get("effect") == "NoExecute"
                    and t.get("key", "") in ("", taint["key"])
                    and (
                        t.get("operator") == "Exists"
                        or t.get("value", "") == taint.get("value", "")
                    )
                ]
                if any("tolerationSeconds" not in t for t in fits):
                    continue
                start = self.sim.wall(taint["timeAdded"])
                wait = min((max(0, t["tolerationSeconds"]) for t in fits), default=0)
                times.append(start + wait * 1_000_000)
                if reason not in reasons:
                    reasons.append(reason)
        return (min(times), tuple(reasons)) if times else None

    def _recompute(self, keys=None):
        touched = []
        for key in list(self.claims):
            if keys is None or key in keys:
                claim, old = self.claims[key]
                new = self._eviction(claim)
                if new != old:
                    self.claims[key] = (claim, new)
                    touched.append(claim)
        for claim in touched:
            self._pods_of(claim)

    def _pods_of(self, *claims):
        seen = []
        for claim in claims:
            for ref in (claim or {}).get("status", {}).get("reservedFor", []):
                key = (key_of(claim)[0], ref["name"])
                if key not in seen:
                    seen.append(key)
        for key in seen:
            if key in self.pods:
                self._judge(self.pods[key])

    def _rule(self, old, rule):
        if rule is not None:
            if old is not None and old["spec"] == rule["spec"]:
                return
            self.queue.add(("rule", key_of(rule)[1], uid_of(rule)))
        else:
            self.stats.pop(uid_of(old), None)
        self._recompute()

    def _slice(self, old, new):
        self._recompute()

    def _claim(self, old, claim):
        key = key_of(claim or old)
        if claim is None or not claim["status"].get("allocation"):
            had = self.claims.pop(key, None)
            if had:
                self._pods_of(old, claim)
            return
        had = self.claims.get(key)
        if had and old and uid_of(had[0]) == uid_of(claim):
            self.claims[key] = (claim, had[1])
        else:
            self.claims[key] = (claim, self._eviction(claim))
        self._pods_of(old, claim)

    def _pod(self, old, pod):
        if pod is None:
            self.due.pop((*key_of(old), uid_of(old)), None)
            return
        if (
            old is None
            or old["spec"].get("nodeName") != pod["spec"].get("nodeName")
            or old["status"].get("resourceClaimStatuses")
            != pod["status"].get("resourceClaimStatuses")
        ):
            self._judge(pod)

    def _pod_eviction(self, pod, claims=None):
        if not pod["spec"].get("nodeName"):
            return None
        times, reasons = [], []
        for entry in pod["spec"].get("resourceClaims", []):
            _, name = claim_name(pod, entry)
            held = (self.claims if claims is None else claims).get((key_of(pod)[0], name))
            if not name or not held or not held[1]:
                continue
            claim, eviction = held
            if "resourceClaimTemplateName" in entry and (owner_pod(claim) or {}).get(
                "uid"
            ) != uid_of(pod):
                continue
            if all(r["uid"] != uid_of(pod) for r in claim["status"].get("reservedFor", [])):
                continue
            times.append(eviction[0])
            reasons += [r for r in eviction[1] if r not in reasons]
        return (min(times), tuple(reasons)) if times else None

    def _judge(self, pod):
        item = ("pod", *key_of(pod), uid_of(pod))
        eviction = self._pod_eviction(pod)
        if eviction is None:
            if self.due.pop(item[1:], None):
                self.m.say(
                    EVICTION,
                    "device-taint-eviction-controller",
                    pod,
                    "Normal",
                    "DeviceTaintManagerEviction",
                    "Cancelling deletion",
                )
            return
        self.due[item[1:]] = eviction
        self.queue.add(item, max(0, eviction[0] - self.sim.now))
        for reason in eviction[1]:
            if reason[0] == "rule":
                self.queue.add(("rule", reason[1], reason[2]), 10_000_000)

    def call(self, verb, kind, key, act, **more):
        return self.server.call(
            EVICTION, verb, kind, key, act, agent=KCM + "device-taint-eviction-controller", **more
        )

    def _work(self, item):
        if item[0] == "rule":
            return (yield from self._status(item[1], item[2]))
        return (yield from self._evict(item[1:]))

    def _evict(self, mark):
        ns, name, uid = mark
        eviction = self.due.get(mark)
        if eviction is None or uid in self.evicted:
            return True
        if eviction[0] > self.sim.now:
            self.queue.add(("pod", *mark), eviction[0] - self.sim.now)
            return True
        key = (ns, name)
        code, pod = yield from self.call(
            "get", "Pod", key, lambda: self.m.collector._look("Pod", key)
        )
        if code == 404 or uid_of(pod) != uid:
            self._finish(mark, eviction, count=False)
            return True
        if "deletionTimestamp" in pod["metadata"]:
            self._finish(mark, eviction)
            return True
        self.m.say(
            EVICTION,
            "device-taint-eviction-controller",
            pod,
            "Normal",
            "DeviceTaintManagerEviction",
            "Marking for deletion",
        )
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastProbeTime": None,
            "lastTransitionTime": self.sim.seconds(),
        }
        body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}

        def apply(tree):
            others = [
                c for c in tree["status"].get("conditions", []) if c["type"] != "DisruptionTarget"
            ]
            tree["status"]["conditions"] = [*others, fresh(condition)]

        code, _ = yield from self.call(
            "patch",
            "Pod",
            key,
            lambda: self.server.change("Pod", key, apply, uid=uid),
            body=body,
            sub="status",
        )
        if code >= 300 and code != 404:
            return False
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/__internal",
            "preconditions": {"uid": uid},
        }
        code, _ = yield from self.call(
            "delete", "Pod", key, lambda: self.server.delete("Pod", key, uid=uid), body=options
        )
        if code >= 300 and code != 404:
            return False
        self._finish(mark, eviction, count=code == 200)
        return True

    def _finish(self, mark, eviction, count=True):
        self.due.pop(mark, None)
        self.evicted = [*self.evicted[-499:], mark[2]]
        if count:
            for reason in eviction[1]:
                if reason[0] == "rule":
                    self.stats[reason[2]] = self.stats.get(reason[2], 0) + 1
                    self.queue.add(("rule", reason[1], reason[2]), 10_000_000)

    def _status(self, name, uid):
        rule = self.rules_cache.get(("", name))
        if rule is None or uid_of(rule) != uid:
            return True
        generation = rule["metadata"]["generation"]
        held = next(
            (
                c
                for c in rule.get("status", {}).get("conditions", [])
                if c["type"] == "EvictionInProgress"
            ),
            None,
        )
        if held and held["observedGeneration"] == generation:
            left = self.sim.wall(held["lastTransitionTime"]) + 10_000_000 - self.sim.now
            if left > 0:
                self.queue.add(("rule", name, uid), left)
                return True
        condition = {
            "type": "EvictionInProgress",
            **self._condition(rule),
            "observedGeneration": generation,
        }
        if held and all(held.get(k) == v for k, v in condition.items()):
            return True
        condition["lastTransitionTime"] = self.sim.seconds()
        body = {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name, "uid": uid},
            "status": {"conditions": [condition]},
        }

        def apply(tree):
            tree["status"] = {"conditions": [fresh(condition)]}

        key = ("", name)
        code, _ = yield from self.call(
            "patch",
            "DeviceTaintRule",
            key,
            lambda: self.server.change("DeviceTaintRule", key, apply, uid=uid),
            body=body,
            sub="status",
            query="?fieldManager=device-taint-eviction-controller&force=true",
        )
        return code in (200, 404)

    def _condition(self, rule):
        effect, count = rule["spec"]["taint"]["effect"], self.stats.get(uid_of(rule), 0)
        suffix = (
            f"{count} pod{'' if count == 1 else 's'} evicted since starting the controller."
            if count
            else ""
        )
        if effect == "None":
            made = {"status": "False", "reason": "NoEffect", "message": self._would(rule)}
        elif effect != "NoExecute":
            made = {
                "status": "False",
                "reason": "OtherEffect",
                "message": "Eviction only happens for the NoExecute effect.",
            }
        else:
            pods, spaces = self._pending(uid_of(rule), None)
            if pods:
                message = (
                    f"{counted(pods, 'pod needs', 'pods need')} to be evicted in "
                    f"{counted(spaces, 'namespace', 'different namespaces')}."
                )
                made = {"status": "True", "reason": "PodsPendingEviction", "message": message}
            else:
                made = {
                    "status": "False",
                    "reason": "Completed" if count else "NotStarted",
                    "message": "",
                }
        made["message"] = " ".join(part for part in (made["message"], suffix) if part)
        return made

    def _pending(self, uid, claims):
        found = [
            p
            for p in self.pods.values()
            if "deletionTimestamp" not in p["metadata"]
            and any(
                r[0] == "rule" and r[2] == uid
                for r in (self._pod_eviction(p, claims) or (0, ()))[1]
            )
        ]
        return len(found), len({key_of(p)[0] for p in found})

    def _would(self, rule):
        selector = rule["spec"].get("deviceSelector")

        def match(place):
            return selector is not None and all(
                selector.get(f) in (None, v)
                for f, v in zip(("driver", "pool", "device"), place, strict=True)
            )

        newest = {}
        for s in self.slices.values():
            p = (s["spec"]["driver"], s["spec"]["pool"]["name"])
            newest[p] = max(newest.get(p, 0), s["spec"]["pool"]["generation"])
        published = sum(
            match((*p, d["name"]))
            for s in self.slices.values()
            for p in [(s["spec"]["driver"], s["spec"]["pool"]["name"])]
            if s["spec"]["pool"]["generation"] == newest[p]
            for d in s["spec"].get("devices", [])
        )
        results = [
            r
            for c, _ in self.claims.values()
            for r in c["status"]["allocation"]["devices"].get("results", [])
        ]
        allocated = sum(match((r["driver"], r["pool"], r["device"])) for r in results)
        held, self.rules_cache = self.rules_cache, {**self.rules_cache}
        pretended = fresh(rule)
        pretended["spec"]["taint"]["effect"] = "NoExecute"
        self.rules_cache["", key_of(rule)[1]] = pretended
        claims = {k: (c, self._eviction(c)) for k, (c, _) in self.claims.items()}
        self.rules_cache = held
        pods, spaces = self._pending(uid_of(rule), claims)
        return (
            f"{counted(published, 'published device', 'published devices')} selected. "
            f"{counted(allocated, 'allocated device', 'allocated devices')} selected. "
            f"{counted(pods, 'pod', 'pods')} would be evicted in "
            f"{counted(spaces, 'namespace', 'different namespaces')} if the effect was NoExecute. "
            "This information will not be updated again. "
            "Recreate the DeviceTaintRule to trigger an update."
        )


def counted(number, one, many):
    return f"{number} {one if number == 1 else many}"
