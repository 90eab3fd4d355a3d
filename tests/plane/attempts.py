"""One scheduling attempt: filters, devices, scores and the words of a refusal."""

from functools import partial

from tests.plane.allocator import Abort, Attempt, selects
from tests.plane.binding import Binding, binding_state
from tests.plane.objects import claim_name, key_of, owner_pod, uid_of
from tests.plane.simulated import fresh

DRA = "DynamicResources"


class Attempts(Binding):
    """The part of a scheduler that decides."""

    def _problem(self, pod):
        """Why a pod's claims are not there yet (3.1)."""
        ns, name = key_of(pod)
        for each in pod["spec"].get("resourceClaims", []):
            known, claim = claim_name(pod, each)
            if not known:
                return f'pod "{ns}/{name}": ResourceClaim not created yet'
            if claim is None:
                continue
            found = self._claim_of((ns, claim))
            if found is None:
                return f'could not find ResourceClaim "{ns}/{claim}"'
            if "deletionTimestamp" in found["metadata"]:
                return f'resourceclaim "{claim}" is being deleted'
            if "resourceClaimTemplateName" in each and (owner_pod(found) or {}).get(
                "uid"
            ) != uid_of(pod):
                claim = f"ResourceClaim {ns}/{claim}"
                return f"{claim} was not created for Pod {ns}/{name} (Pod is not owner)"
        return None

    def _pop(self):
        active = [e for e in self.entries.values() if e.where == "active"]
        if not active:
            active = [e for e in self.entries.values() if e.where == "backoff"]
            active.sort(key=lambda e: e.until)
            return active[0] if active else None
        return min(active, key=lambda e: (-e.priority, e.stamp))

    def _loop(self):
        while True:
            entry = self._pop()
            if entry is None:

                def sleep(step):
                    self.wake = step

                yield sleep
                continue
            entry.where = "flying"
            uid = uid_of(entry.pod)
            self.flying_events[uid] = []
            yield from self._attempt(entry)

    def _attempt(self, entry):
        pod = entry.pod
        uid = uid_of(pod)
        if "deletionTimestamp" in pod["metadata"]:
            self._say(
                pod,
                "Warning",
                "FailedScheduling",
                "Scheduling",
                "skip schedule deleting pod: " + "/".join(key_of(pod)),
            )
            self.flying_events.pop(uid)
            entry.where = "gone"
            return
        if uid in self.assumed_pods:
            self.flying_events.pop(uid)
            return
        entry.attempts += 1
        entry.plugins = set()
        nodes = [self.nodes["", n] for n in self.order if ("", n) in self.nodes]
        used = self._usage()
        if not nodes:
            yield self.sim.draw((0.1, 0.3, 20))
            yield from self._fail(entry, pod, "no nodes available to schedule pods", error=False)
            return
        text, new, held = self._prefilter(pod)
        unavailable = set()
        reasons, fitting, error = {}, [], None
        if text is None:
            attempt = (
                Attempt(
                    self.slices.values(),
                    self.rules.values(),
                    {k[1]: v for k, v in self.classes.items()},
                    self._allocations(),
                    new,
                )
                if new
                else None
            )
            for node in nodes:
                reason, plugin, found, bad = self._filter(
                    pod, node, used, attempt, held, unavailable
                )
                if bad:
                    error = bad
                    break
                if reason:
                    for each in reason if isinstance(reason, tuple) else (reason,):
                        reasons[each] = reasons.get(each, 0) + 1
                    entry.plugins.add(plugin)
                else:
                    fitting.append((node, found))
        yield self.sim.draw((0.2, self.options.get("think", 1), self.options.get("think_max", 40)))
        total = len(nodes)
        if error:
            yield from self._fail(
                entry, pod, f'running "DynamicResources" filter plugin: {error}', error=True
            )
            return
        if text is None and fitting:
            node, allocations = self._choose(pod, fitting, used, held)
            self._reserve(entry, pod, node, new, allocations)
            return
        if text is not None:
            entry.plugins.add(DRA)
            reasons, what = {}, text
            post = "no new claims to deallocate"
            helps = f"{total} Preemption is not helpful for scheduling."
        else:
            what = ", ".join(sorted(f"{n} {r}" for r, n in reasons.items()))
            post = yield from self._post_filter(pod, held, unavailable)
            cpu = reasons.get("Insufficient cpu", 0)
            parts = [
                f"{n} {t}"
                for n, t in (
                    (cpu, "No preemption victims found for incoming pod"),
                    (total - cpu, "Preemption is not helpful for scheduling"),
                )
                if n
            ]
            helps = ", ".join(sorted(parts)) + "."
        none = f"0/{total} nodes are available"
        message = f"{none}: {what}. {post}, preemption: {none}: {helps}"
        yield from self._fail(entry, pod, message, error=False)

    def _usage(self):
        used = {}
        for pod in self.pods.values():
            node = pod["spec"].get("nodeName") or self.assumed_pods.get(uid_of(pod))
            if node and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                used[node] = used.get(node, 0) + cpu_of(pod)
        return used

    def _allocations(self):
        made = [
            c["status"]["allocation"] for c in self._claims_now() if c["status"].get("allocation")
        ]
        return made + list(self.flying_claims.values())

    def _prefilter(self, pod):
        ns = key_of(pod)[0]
        if problem := self._problem(pod):
            return problem, [], []
        names = [claim_name(pod, e)[1] for e in pod["spec"].get("resourceClaims", [])]
        claims = [self._claim_of((ns, n)) for n in names if n]
        for claim in claims:
            if claim["status"].get("allocation"):
                continue
            if uid_of(claim) in self.flying_claims:
                return (
                    f"resource claim {ns}/{key_of(claim)[1]} is in the process of being allocated",
                    [],
                    [],
                )
            for request in claim["spec"]["devices"]["requests"]:
                each = (
                    [(request["name"], request["exactly"])]
                    if "exactly" in request
                    else [(f"{request['name']}/{s['name']}", s) for s in request["firstAvailable"]]
                )
                for name, spec in each:
                    if ("", spec["deviceClassName"]) not in self.classes:
                        missing = f"device class {spec['deviceClassName']} does not exist"
                        return f"request {name}: {missing}", [], []
        return None, [c for c in claims if not c["status"].get("allocation")], claims

    def _filter(self, pod, node, used, attempt, held, unavailable):
        """(reason, plug-in, allocations, error) of a node."""
        name = key_of(node)[1]
        if node["spec"].get("unschedulable"):
            return "node(s) were unschedulable", "NodeUnschedulable", None, None
        for taint in node["spec"].get("taints", []):
            if taint["effect"] in ("NoSchedule", "NoExecute"):
                return "node(s) had untolerated taint(s)", "TaintToleration", None, None
        wanted = pod["spec"].get("nodeSelector", {})
        if any(node["metadata"].get("labels", {}).get(k) != v for k, v in wanted.items()):
            return "node(s) didn't match Pod's node affinity/selector", "NodeAffinity", None, None
        if cpu_of(pod) + used.get(name, 0) > int(node["status"]["allocatable"]["cpu"]) * 1000:
            # Memory is asked for and there in the same proportion.
            return ("Insufficient cpu", "Insufficient memory"), "NodeResourcesFit", None, None
        bad = []
        for number, claim in enumerate(held):
            allocation = claim["status"].get("allocation")
            if (
                allocation
                and allocation.get("nodeSelector")
                and not selects(node, allocation["nodeSelector"])
            ) or (allocation and binding_state(claim, self.sim)[0] in ("failed", "late")):
                bad.append(number)
        found = []
        if attempt:
            try:
                found = attempt.allocate(node)
            except Abort as abort:
                return None, None, None, str(abort)
            if found is None:
                return "cannot allocate all claims", DRA, None, None
        if bad:
            unavailable |= set(bad)
            return "resourceclaim not available on the node", DRA, None, None
        return None, None, found, None

    def _post_filter(self, pod, held, unavailable):
        if not pod["spec"].get("resourceClaims"):
            return "no new claims to deallocate"
        for number in sorted(unavailable):
            claim = fresh(held[number])
            reserved = claim["status"].get("reservedFor", [])
            if not reserved or [r["uid"] for r in reserved] == [uid_of(pod)]:
                for part in ("allocation", "reservedFor", "devices"):
                    claim["status"].pop(part, None)
                key = key_of(claim)
                code, answer = yield from self.call(
                    "update",
                    "ResourceClaim",
                    key,
                    partial(self.server.update, "ResourceClaim", key, claim, "status"),
                    body=claim,
                    sub="status",
                )
                if code >= 300:
                    return f"error: {answer['message']}"
                return "deallocation of ResourceClaim completed"
        return "still not schedulable"

    def _choose(self, pod, fitting, used, held):
        if len(fitting) == 1:
            return fitting[0]
        scores = []
        raw = []
        for node, found in fitting:
            free = int(node["status"]["allocatable"]["cpu"]) * 1000
            share = (free - used.get(key_of(node)[1], 0) - cpu_of(pod)) * 100 // free
            scores.append(share)
            points, fresh_ones = 0, list(found)
            for claim in held:
                allocation = claim["status"].get("allocation") or fresh_ones.pop(0)
                chosen = {r["request"] for r in allocation["devices"]["results"]}
                for request in claim["spec"]["devices"]["requests"]:
                    for i, sub in enumerate(request.get("firstAvailable", [])):
                        if f"{request['name']}/{sub['name']}" in chosen:
                            points += 8 - i
            raw.append(points)
        best = max(raw)
        scores = [
            s + 2 * (100 * p // best if best else p) for s, p in zip(scores, raw, strict=True)
        ]
        heap = list(range(len(fitting)))
        for i in range(len(heap) // 2 - 1, -1, -1):
            at = i
            while 2 * at + 1 < len(heap):
                child = 2 * at + 1
                if child + 1 < len(heap) and scores[heap[child + 1]] > scores[heap[child]]:
                    child += 1
                if scores[heap[child]] <= scores[heap[at]]:
                    break
                heap[at], heap[child] = heap[child], heap[at]
                at = child
        return fitting[heap[0]]


def cpu_of(pod):
    return sum(
        int(c["resources"].get("requests", {}).get("cpu", "0m")[:-1])
        for c in pod["spec"]["containers"]
    )
