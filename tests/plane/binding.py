"""After an attempt: the refusal of a pod, or its reservations and its binding."""

from functools import partial

from tests.plane.objects import FINALIZER, claim_name, key_of, uid_of
from tests.plane.simulated import SECOND, fresh

USER = "system:kube-scheduler"
AGENT = "kube-scheduler/v1.36.2 (linux/amd64) kubernetes/8e16b12/scheduler"


class Binding:
    """The part of a scheduler that writes."""

    def call(self, verb, kind, key, act, **more):
        return self.server.call(USER, verb, kind, key, act, agent=AGENT, **more)

    def _fail(self, entry, pod, message, *, error, nominated=False):
        """Back into the queue, then Event and condition."""
        uid = uid_of(pod)
        events = self.flying_events.pop(uid, [])
        now = self.sim.now
        if self.entries.get(uid) is entry and entry.where == "flying":
            entry.since = entry.stamp = now
            if error:
                entry.errors += 1
            else:
                entry.errors = 0
            count = entry.errors if error else entry.attempts
            wait = min(10, 1 << (count - 1)) * SECOND
            base = 250_000
            entry.until = -(-(now + wait + base) // SECOND) * SECOND - base
            if error:
                entry.where = "errors"
            elif any(hint(entry, plugin) for hint in events for plugin in entry.plugins):
                entry.where = "pool"
                self._requeue(entry)
            else:
                entry.where = "pool"
            if entry.where == "backoff" and self.wake:
                wake, self.wake = self.wake, None
                self.sim.after(20, wake)
        reason = "SchedulerError" if error else "Unschedulable"
        self._say(pod, "Warning", "FailedScheduling", "Scheduling", message)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "reason": reason,
            "message": message,
            "observedGeneration": pod["metadata"]["generation"],
        }
        cached = self.pods.get(key_of(pod), pod)
        held = next(
            (c for c in cached["status"].get("conditions", []) if c["type"] == "PodScheduled"), None
        )
        changed = not held or any(held.get(k) != v for k, v in condition.items())
        clear = nominated or bool(cached["status"].get("nominatedNodeName"))
        if not changed and not clear:
            return
        now_text = self.sim.seconds()
        body = {"status": {"conditions": [{**condition, "lastTransitionTime": now_text}]}}
        if held:
            body["status"] = {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [
                    {k: v for k, v in condition.items() if held.get(k) != v or k == "type"}
                ],
            }
        if clear:
            body["status"]["nominatedNodeName"] = None

        def apply(tree):
            conditions = tree["status"].setdefault("conditions", [])
            old = next((c for c in conditions if c["type"] == "PodScheduled"), None)
            if old is None:
                conditions.append({**condition, "lastTransitionTime": now_text})
            else:
                if old["status"] != "False":
                    old["lastTransitionTime"] = now_text
                old.update(condition)
            if clear:
                tree["status"].pop("nominatedNodeName", None)

        key = key_of(pod)
        yield from self.call(
            "patch",
            "Pod",
            key,
            lambda: self.server.change("Pod", key, apply),
            body=body,
            sub="status",
        )

    def _reserve(self, entry, pod, node, new, allocations):
        uid, name = uid_of(pod), key_of(node)[1]
        for claim, allocation in zip(new, allocations, strict=False):
            self.flying_claims[uid_of(claim)] = allocation
        self.assumed_pods[uid] = name
        made = {uid_of(c): a for c, a in zip(new, allocations, strict=False)}
        names = [claim_name(pod, e)[1] for e in pod["spec"].get("resourceClaims", [])]
        claims = [self._claim_of((key_of(pod)[0], n)) for n in dict.fromkeys(names) if n]
        self.sim.spawn(self._bind(entry, pod, name, claims, made), self.life)

    def _bind(self, entry, pod, node, claims, made):
        uid, key = uid_of(pod), key_of(pod)
        todo = [
            c
            for c in claims
            if c and all(r["uid"] != uid for r in c["status"].get("reservedFor", []))
        ]
        nominated = False
        if todo:
            nominated = True

            def nominate(tree):
                tree["status"]["nominatedNodeName"] = node

            yield from self.call(
                "patch",
                "Pod",
                key,
                lambda: self.server.change("Pod", key, nominate),
                body={"status": {"nominatedNodeName": node}},
                sub="status",
            )
        error = None
        written = []
        for claim in todo:
            answer = yield from self._pre_bind(claim, pod, made.get(uid_of(claim)))
            self.flying_claims.pop(uid_of(claim), None)
            if isinstance(answer, str):
                error = answer
                break
            written.append(answer)
        everything = [next((w for w in written if key_of(w) == key_of(c)), c) for c in claims if c]
        if error is None and any(
            r.get("bindingConditions")
            for c in everything
            for r in c["status"]["allocation"]["devices"]["results"]
        ):
            self._say(
                pod,
                "Normal",
                "BindingConditionsPending",
                "Scheduling",
                f"waiting for binding conditions for device on node {node}",
            )
            error = yield from self._ready(everything)
        if error is None:
            body = {
                "kind": "Binding",
                "apiVersion": "v1",
                "metadata": {"name": key[1], "namespace": key[0], "uid": uid},
                "target": {"kind": "Node", "name": node},
            }
            code, answer = yield from self.call(
                "create",
                "Pod",
                key,
                lambda: self.server.bind(key, uid, node),
                body=body,
                sub="binding",
            )
            if code == 201:
                self._say(
                    pod,
                    "Normal",
                    "Scheduled",
                    "Binding",
                    f"Successfully assigned {key[0]}/{key[1]} to {node}",
                )
                self.flying_events.pop(uid, None)
                return
            error = f'running Bind plugin "DefaultBinder": {answer["message"]}'
        else:
            error = f'running PreBind plugin "DynamicResources": {error}'
        for claim in claims:
            self.flying_claims.pop(uid_of(claim), None)
        self.assumed_pods.pop(uid, None)
        for claim in claims:
            live = self._claim_of(key_of(claim))
            if (
                live
                and live["status"].get("allocation")
                and any(r["uid"] == uid for r in live["status"].get("reservedFor", []))
            ):
                at = key_of(claim)
                body = {
                    "metadata": {"uid": uid_of(claim)},
                    "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]},
                }

                def remove(tree):
                    left = [r for r in tree["status"].get("reservedFor", []) if r["uid"] != uid]
                    tree["status"].pop("reservedFor", None)
                    if left:
                        tree["status"]["reservedFor"] = left

                yield from self.call(
                    "patch",
                    "ResourceClaim",
                    at,
                    partial(self.server.change, "ResourceClaim", at, remove, uid=uid_of(claim)),
                    body=body,
                    sub="status",
                )
        self._happened(lambda e, p: p == "NodeResourcesFit" and e is not entry)
        yield from self._fail(entry, pod, error, error=True, nominated=nominated)

    def _pre_bind(self, claim, pod, allocation):
        """The written claim, or the text of an error."""
        key, ns = key_of(claim), key_of(claim)[0]
        for attempt in range(5):
            if attempt:
                yield int(10_000 * (1 + 0.1 * self.sim.rng.random()))

                def look():
                    now = self.server.get("ResourceClaim", key)
                    return (
                        (200, now)
                        if now
                        else (
                            404,
                            {
                                "kind": "Status",
                                "apiVersion": "v1",
                                "metadata": {},
                                "status": "Failure",
                                "reason": "NotFound",
                                "code": 404,
                                "message": f'resourceclaims.resource.k8s.io "{key[1]}" not found',
                            },
                        )
                    )

                code, claim = yield from self.call("get", "ResourceClaim", key, look)
                if code != 200:
                    return f"get updated claim {ns}/{key[1]} after conflict: {claim['message']}"
            if "deletionTimestamp" in claim["metadata"]:
                return f"claim {ns}/{key[1]} got deleted in the meantime"
            claim = fresh(claim)
            prefix = f"add reservation to claim {ns}/{key[1]}: "
            if allocation is not None:
                prefix = f"add allocation and reservation to claim {ns}/{key[1]}: "
                if claim["status"].get("allocation"):
                    return f"claim {ns}/{key[1]} got allocated elsewhere in the meantime"
                if FINALIZER not in claim["metadata"].get("finalizers", []):
                    claim["metadata"]["finalizers"] = [
                        *claim["metadata"].get("finalizers", []),
                        FINALIZER,
                    ]
                    code, answer = yield from self.call(
                        "update",
                        "ResourceClaim",
                        key,
                        partial(self.server.update, "ResourceClaim", key, claim),
                        body=claim,
                    )
                    if code == 409:
                        continue
                    if code >= 300:
                        return f"add finalizer to claim {ns}/{key[1]}: {answer['message']}"
                    claim = answer
                claim["status"]["allocation"] = {
                    **allocation,
                    "allocationTimestamp": self.sim.seconds(),
                }
            elif not claim["status"].get("allocation"):
                return f"claim {ns}/{key[1]} got deallocated elsewhere in the meantime"
            claim["status"]["reservedFor"] = [
                *claim["status"].get("reservedFor", []),
                {"resource": "pods", "name": key_of(pod)[1], "uid": uid_of(pod)},
            ]
            code, answer = yield from self.call(
                "update",
                "ResourceClaim",
                key,
                partial(self.server.update, "ResourceClaim", key, claim, "status"),
                body=claim,
                sub="status",
            )
            if code == 409:
                continue
            if code >= 300:
                return prefix + answer["message"]
            self._assume_claim(answer)
            return answer
        return prefix + answer["message"]

    def _ready(self, claims):
        """Polls the binding conditions; the text of an error, or None."""
        start = self.sim.now
        while True:
            state = ("ready", None)
            for claim in claims:
                live = self._claim_of(key_of(claim)) or claim
                state = binding_state(live, self.sim)
                if state[0] != "ready":
                    break
            if state[0] == "ready":
                return None
            if state[0] in ("failed", "late"):
                return state[1]
            yield 5 * SECOND - (self.sim.now - start) % (5 * SECOND)

    def _say(self, pod, kind, reason, action, note):
        sim, server = self.sim, self.server
        ns, name = key_of(pod)
        cached = pod
        version = cached["metadata"]["resourceVersion"]
        mark = (uid_of(pod), reason, action, version)
        if mark in self.said:
            event, count = self.said[mark]
            self.said[mark] = (event, count + 1)
            if count == 1:
                series = {"series": {"count": 2, "lastObservedTime": sim.text(sim.now)}}
                sim.spawn(
                    self.call(
                        "patch",
                        "Event",
                        (ns, event),
                        lambda: server.change("Event", (ns, event), lambda t: t.update(series)),
                        body=series,
                    ),
                    self.life,
                )
            return
        event = f"{name}.{1795248000250000000 + sim.now * 1000 + sim.rng.randrange(1000):016x}"
        self.said[mark] = (event, 1)
        if len(note) > 1024:
            note = note[:1020] + " ..."
        tree = {
            "metadata": {"name": event, "namespace": ns},
            "eventTime": sim.text(sim.now),
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
            "action": action,
            "reason": reason,
            "regarding": {
                "kind": "Pod",
                "namespace": ns,
                "name": name,
                "uid": uid_of(pod),
                "apiVersion": "v1",
                "resourceVersion": version,
            },
            "note": note,
            "type": kind,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }
        sim.spawn(
            self.call(
                "create", "Event", (ns, event), lambda: server.create("Event", tree), body=tree
            ),
            self.life,
        )


def binding_state(claim, sim):
    """ready, waiting, failed or late, with the text of an error."""
    name = key_of(claim)[1]
    allocation = claim["status"].get("allocation")
    if not allocation:
        return "ready", None
    for result in allocation["devices"]["results"]:
        if not result.get("bindingConditions"):
            continue
        device = next(
            (
                d
                for d in claim["status"].get("devices", [])
                if all(d[p] == result[p] for p in ("driver", "pool", "device"))
            ),
            None,
        )
        conditions = {c["type"]: c for c in (device or {}).get("conditions", [])}
        for kind in result.get("bindingFailureConditions", []):
            if conditions.get(kind, {}).get("status") == "True":
                c = conditions[kind]
                return (
                    "failed",
                    f"device binding failed: claim={name}, "
                    f'reason={c["reason"]}, message="{c["message"]}"',
                )
        if any(
            conditions.get(kind, {}).get("status") != "True" for kind in result["bindingConditions"]
        ):
            if sim.now - sim.wall(allocation["allocationTimestamp"]) > 600 * SECOND:
                return "late", f"device binding timeout: claim={name}"
            return "waiting", None
    return "ready", None
