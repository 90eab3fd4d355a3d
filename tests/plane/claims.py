"""The claim controller: claims from templates, reservations and releases (controllers.md 2)."""

from tests.plane.informers import Queue
from tests.plane.objects import CLAIMS, FINALIZER, KCM, claim_name, done, key_of, owner_pod, uid_of
from tests.plane.simulated import fresh


class ClaimController:
    def __init__(self, manager):
        self.m, self.server, self.sim = manager, manager.server, manager.sim
        self.pods, self.claims = manager.pods, manager.claims
        self.templates = manager.informers.cache["ResourceClaimTemplate"]
        self.deleted, self.made = [], {}
        self.queue = Queue(self.sim, manager.life, self._work, 50)
        handlers = manager.informers.handlers
        handlers["Pod"].append(self._pod)
        handlers["ResourceClaim"].append(self._claim)
        handlers["ResourceClaimTemplate"].append(self._template)

    def call(self, verb, kind, key, act, **more):
        return self.server.call(
            CLAIMS, verb, kind, key, act, agent=KCM + "resourceclaim-controller", **more
        )

    # events

    def _pod(self, old, pod):
        self._pod_row(pod or old, gone=pod is None)

    def _pod_row(self, pod, gone=False):
        if not pod["spec"].get("resourceClaims"):
            return
        if gone:
            self.deleted = [*self.deleted[-499:], uid_of(pod)]
        if gone or done(pod):
            for entry in pod["spec"]["resourceClaims"]:
                _, name = claim_name(pod, entry)
                if name:
                    self.queue.add(("claim", key_of(pod)[0], name))
        if not gone and self._needs_work(pod):
            self.queue.add(("pod", *key_of(pod)))

    def _needs_work(self, pod):
        if "deletionTimestamp" in pod["metadata"]:
            return False
        for entry in pod["spec"]["resourceClaims"]:
            known, name = claim_name(pod, entry)
            if not known:
                return True
            if name is None:
                continue
            claim = self._find(key_of(pod)[0], name)
            generated = "resourceClaimTemplateName" in entry
            if claim is None:
                if generated:
                    return True
                continue
            owner = owner_pod(claim)
            if generated and (not owner or owner["uid"] != uid_of(pod)):
                continue
            if pod["spec"].get("nodeName") and self._can_reserve(claim, pod):
                return True
        return False

    def _can_reserve(self, claim, pod):
        st = claim["status"]
        held = st.get("reservedFor", [])
        return (
            bool(st.get("allocation"))
            and len(held) < 256
            and all(r["uid"] != uid_of(pod) for r in held)
        )

    def _find(self, ns, name):
        cached, made = self.claims.get((ns, name)), self.made.get((ns, name))
        if (
            made
            and cached
            and int(cached["metadata"]["resourceVersion"])
            > int(made["metadata"]["resourceVersion"])
        ):
            made = self.made.pop((ns, name)) and None
        return made or cached

    def _claim(self, old, claim):
        ns, name = key_of(claim or old)
        if claim is not None:
            self.queue.add(("claim", ns, name))
        for pod in list(self.pods.values()):
            if key_of(pod)[0] == ns and any(
                claim_name(pod, e)[1] == name for e in pod["spec"].get("resourceClaims", [])
            ):
                self._pod_row(pod)

    def _template(self, old, template):
        if template is None:
            return
        ns, name = key_of(template)
        for pod in list(self.pods.values()):
            if key_of(pod)[0] == ns and any(
                e.get("resourceClaimTemplateName") == name
                for e in pod["spec"].get("resourceClaims", [])
            ):
                self._pod_row(pod)

    # work

    def _work(self, item):
        kind, ns, name = item
        return (
            yield from (
                self._sync_pod((ns, name)) if kind == "pod" else self._sync_claim((ns, name))
            )
        )

    def _sync_pod(self, key):
        pod = self.pods.get(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return True
        new = []
        for entry in pod["spec"].get("resourceClaims", []):
            error = yield from self._entry(pod, entry, new)
            if error:
                self.m.say(
                    CLAIMS,
                    "resource_claim",
                    pod,
                    "Warning",
                    "FailedResourceClaimCreation",
                    f"PodResourceClaim {entry['name']}: {error}",
                )
                return False
        if new:
            listed = [{"name": e, "resourceClaimName": n} for e, n in new]
            body = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": key[1], "namespace": key[0]},
                "status": {"resourceClaimStatuses": listed},
            }

            def apply(tree):
                held = {s["name"]: s for s in tree["status"].get("resourceClaimStatuses", [])}
                held |= {s["name"]: fresh(s) for s in listed}
                tree["status"]["resourceClaimStatuses"] = list(held.values())

            code, _ = yield from self.call(
                "patch",
                "Pod",
                key,
                lambda: self.server.change("Pod", key, apply),
                body=body,
                sub="status",
                query="?fieldManager=ResourceClaimController&force=true",
            )
            if code >= 300:
                return False
        if pod["spec"].get("nodeName"):
            for entry in pod["spec"].get("resourceClaims", []):
                _, name = claim_name(pod, entry)
                claim = self._find(key[0], name) if name else None
                if claim is None or (
                    "resourceClaimTemplateName" in entry
                    and (owner_pod(claim) or {}).get("uid") != uid_of(pod)
                ):
                    continue
                if self._can_reserve(claim, pod):
                    claim = fresh(claim)
                    claim["status"]["reservedFor"] = [
                        *claim["status"].get("reservedFor", []),
                        {"resource": "pods", "name": key[1], "uid": uid_of(pod)},
                    ]
                    code, _ = yield from self._update(claim, "status")
                    if code >= 300:
                        return False
        return True

    def _update(self, claim, sub=""):
        key = key_of(claim)
        return self.call(
            "update",
            "ResourceClaim",
            key,
            lambda: self.server.update("ResourceClaim", key, claim, sub),
            body=claim,
            sub=sub,
        )

    def _entry(self, pod, entry, new):
        ns = key_of(pod)[0]
        known, name = claim_name(pod, entry)
        if known and name is None:
            return None
        if known:
            claim = self._find(ns, name)
            if "resourceClaimTemplateName" not in entry:
                return None
            if claim and (owner_pod(claim) or {}).get("uid") == uid_of(pod):
                return None
        if "resourceClaimTemplateName" not in entry:
            return None
        for at in [*self.claims, *self.made]:
            claim = self._find(*at)
            if (
                claim
                and (owner_pod(claim) or {}).get("uid") == uid_of(pod)
                and claim["metadata"]
                .get("annotations", {})
                .get("resource.kubernetes.io/pod-claim-name")
                == entry["name"]
            ):
                new.append((entry["name"], key_of(claim)[1]))
                return None
        wanted = entry["resourceClaimTemplateName"]
        template = self.templates.get((ns, wanted))
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{wanted}" not found'
            return f'resource claim template "{wanted}": {missing}'
        spec = template["spec"]
        tree = {
            "metadata": {
                "generateName": f"{key_of(pod)[1]}-{entry['name']}-",
                "namespace": ns,
                "annotations": {
                    **spec.get("metadata", {}).get("annotations", {}),
                    "resource.kubernetes.io/pod-claim-name": entry["name"],
                },
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": key_of(pod)[1],
                        "uid": uid_of(pod),
                        "controller": True,
                    }
                ],
            },
            "spec": fresh(spec["spec"]),
        }
        if spec.get("metadata", {}).get("labels"):
            tree["metadata"]["labels"] = spec["metadata"]["labels"]
        body = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", **tree, "status": {}}
        code, answer = yield from self.call(
            "create",
            "ResourceClaim",
            (ns, ""),
            lambda: self.server.create("ResourceClaim", tree),
            body=body,
        )
        if code >= 300:
            return f"create ResourceClaim : {answer['message']}"
        self.made[key_of(answer)] = answer
        new.append((entry["name"], key_of(answer)[1]))
        return None

    def _sync_claim(self, key):
        claim = self.claims.get(key)
        if claim is None:
            return True
        claim = fresh(claim)
        held = claim["status"].get("reservedFor", [])
        remaining = []
        for ref in held:
            if (yield from self._keeps(key[0], ref)):
                remaining.append(ref)
        protected = FINALIZER in claim["metadata"].get("finalizers", [])
        if len(remaining) < len(held):
            claim["status"].pop("reservedFor")
            if remaining:
                claim["status"]["reservedFor"] = remaining
            elif protected:
                claim["status"].pop("allocation", None)
                claim["status"].pop("devices", None)
            code, claim = yield from self._update(claim, "status")
            if code >= 300:
                return code == 404
            is_free = protected and not claim["status"].get("allocation")
            if is_free and not (yield from self._release(claim)):
                return False
        elif protected and "deletionTimestamp" in claim["metadata"] and not remaining:
            if claim["status"].get("allocation"):
                claim["status"].pop("allocation", None)
                claim["status"].pop("devices", None)
                code, claim = yield from self._update(claim, "status")
                if code >= 300:
                    return code == 404
            if not (yield from self._release(claim)):
                return False
        owner = owner_pod(claim)
        if not remaining and owner:
            pod = self.pods.get((key[0], owner["name"]))
            if pod and (uid_of(pod) != owner["uid"] or done(pod)):
                code, _ = yield from self.call(
                    "delete", "ResourceClaim", key, lambda: self.server.delete("ResourceClaim", key)
                )
                return code in (200, 404)
        return True

    def _keeps(self, ns, ref):
        if ref["uid"] in self.deleted:
            return False
        pod = self.pods.get((ns, ref["name"]))
        if pod is None:
            key = (ns, ref["name"])
            found = self.server.get("Pod", key)

            def look():
                now = self.server.get("Pod", key)
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
                            "message": f'pods "{key[1]}" not found',
                            "reason": "NotFound",
                            "code": 404,
                        },
                    )
                )

            code, found = yield from self.call("get", "Pod", key, look)
            return code == 200 and uid_of(found) == ref["uid"]
        return uid_of(pod) == ref["uid"] and not done(pod)

    def _release(self, claim):
        claim = fresh(claim)
        rest = [f for f in claim["metadata"].get("finalizers", []) if f != FINALIZER]
        claim["metadata"].pop("finalizers", None)
        if rest:
            claim["metadata"]["finalizers"] = rest
        code, _ = yield from self._update(claim)
        return code in (200, 404)
