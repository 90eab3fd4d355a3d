"""The store behind one or more API servers, and the audit lines that these write."""

import json

from tests.plane.simulated import fresh

SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
KINDS = {  # kind: group, version, plural, namespaced, has generation
    "Pod": ("", "v1", "pods", True, True),
    "Node": ("", "v1", "nodes", False, False),
    "Namespace": ("", "v1", "namespaces", False, False),
    "CoreEvent": ("", "v1", "events", True, False),
    "Event": ("events.k8s.io", "v1", "events", True, False),
    "DeviceClass": ("resource.k8s.io", "v1", "deviceclasses", False, True),
    "ResourceSlice": ("resource.k8s.io", "v1", "resourceslices", False, True),
    "ResourceClaim": ("resource.k8s.io", "v1", "resourceclaims", True, False),
    "ResourceClaimTemplate": ("resource.k8s.io", "v1", "resourceclaimtemplates", True, False),
    "DeviceTaintRule": ("resource.k8s.io", "v1beta2", "devicetaintrules", False, True),
}


def prune(tree):
    return {k: v for k, v in tree.items() if v not in (None, [], {})}


class Server:
    """The store behind one or more API servers, which write audit lines."""

    def __init__(self, sim, *, servers=1, api=(1, 4, 200), audit=(0.05, 0.3, 30), skew=0, net=4):
        self.sim, self.api, self.audit = sim, api, audit
        self.net = net
        self.servers = servers
        self.skews = [0] + [sim.rng.randint(-skew, skew) for _ in range(servers - 1)]
        self.rv = 100
        self.objects = {kind: {} for kind in KINDS}
        self.watchers = []
        self.lines = [[] for _ in range(servers)]
        self.history = []  # every revision: (rv, now, kind, key, type, object)
        self.homes = {}

    # reading

    def get(self, kind, key):
        found = self.objects[kind].get(key)
        return fresh(found) if found else None

    # committing

    def _commit(self, kind, key, tree, event):
        self.rv += 1
        if event != "DELETED":
            tree["metadata"]["resourceVersion"] = str(self.rv)
            self.objects[kind][key] = tree
        else:
            self.objects[kind].pop(key)
            tree = fresh(tree)
            tree["metadata"]["resourceVersion"] = str(self.rv)
        self.history.append((self.rv, self.sim.now, kind, key, event, fresh(tree)))
        for watcher in self.watchers:
            watcher.offer(kind, key, event, tree)
        return fresh(tree)

    def create(self, kind, tree):
        tree = fresh(tree)
        meta = tree["metadata"]
        group, version, _, _, generation = KINDS[kind]
        if "name" not in meta:
            base = meta["generateName"][:58]
            meta["name"] = base + "".join(self.sim.rng.choice(SUFFIX) for _ in range(5))
        key = (meta.get("namespace", ""), meta["name"])
        if key in self.objects[kind]:
            return 409, status(
                409, "AlreadyExists", f'{KINDS[kind][2]} "{meta["name"]}" already exists'
            )
        meta["uid"] = self.sim.uuid()
        meta["creationTimestamp"] = self.sim.seconds()
        if generation:
            meta["generation"] = 1
        full = {
            "kind": kind.replace("Core", ""),
            "apiVersion": f"{group}/{version}".lstrip("/"),
            **tree,
        }
        if kind == "Pod":
            full["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        if kind == "ResourceClaim":
            full["status"] = {}
        if kind == "ResourceSlice":
            stamp_taints(full["spec"], self.sim.seconds())
        if kind == "DeviceTaintRule":
            full["spec"]["taint"].setdefault("timeAdded", self.sim.seconds())
        return 201, self._commit(kind, key, full, "ADDED")

    def update(self, kind, key, sent, sub="", version=None):
        old = self.objects[kind].get(key)
        if old is None:
            return 404, missing(kind, key[1])
        meta = sent["metadata"]
        if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
            return 409, conflict(kind, key[1])
        version = meta.get("resourceVersion") if version is None else version
        if version and version != old["metadata"]["resourceVersion"]:
            return 409, conflict(kind, key[1])
        new = fresh(old)
        if sub == "status":
            new["status"] = fresh(sent.get("status", {}))
        else:
            for part in sent:
                if part not in ("status", "kind", "apiVersion", "metadata"):
                    new[part] = fresh(sent[part])
            for part in ("finalizers", "labels", "annotations", "ownerReferences"):
                new["metadata"].pop(part, None)
                if sent["metadata"].get(part):
                    new["metadata"][part] = fresh(sent["metadata"][part])
            if kind == "ResourceSlice":
                stamp_taints(new["spec"], self.sim.seconds())
        return self._write(kind, key, old, new)

    def change(self, kind, key, fn, uid=None):
        """A patch: `fn` changes a copy of the stored object."""
        old = self.objects[kind].get(key)
        if old is None:
            return 404, missing(kind, key[1])
        if uid and uid != old["metadata"]["uid"]:
            return 409, conflict(kind, key[1])
        new = fresh(old)
        refused = fn(new)
        if refused:
            return refused
        return self._write(kind, key, old, new)

    def _write(self, kind, key, old, new):
        if kind == "ResourceClaim" and (refused := claim_refusal(old, new)):
            return refused
        if new == old:
            return 200, fresh(old)
        if KINDS[kind][4] and new.get("spec") != old.get("spec") and kind != "Pod":
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        meta = new["metadata"]
        if (
            "deletionTimestamp" in meta
            and not meta.get("finalizers")
            and not meta.get("deletionGracePeriodSeconds")
            and (kind != "Namespace" or not new["spec"].get("finalizers"))
        ):
            self._commit(kind, key, old, "DELETED")
            return 200, fresh(new)
        return 200, self._commit(kind, key, new, "MODIFIED")

    def delete(self, kind, key, uid=None, version=None, grace=None):
        old = self.objects[kind].get(key)
        if old is None:
            return 404, missing(kind, key[1])
        meta = old["metadata"]
        if (uid and uid != meta["uid"]) or (version and version != meta["resourceVersion"]):
            return 409, conflict(kind, key[1])
        if kind == "Pod":
            return self._delete_pod(key, old, grace)
        if meta.get("finalizers"):
            if "deletionTimestamp" in meta:
                return 200, fresh(old)
            new = fresh(old)
            new["metadata"] |= {
                "deletionTimestamp": self.sim.seconds(),
                "deletionGracePeriodSeconds": 0,
            }
            return 200, self._commit(kind, key, new, "MODIFIED")
        gone = self._commit(kind, key, old, "DELETED")
        if kind in ("Node",):
            return 200, {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {"name": key[1], "kind": "nodes", "uid": meta["uid"]},
            }
        return 200, gone

    def _delete_pod(self, key, old, grace):
        meta = old["metadata"]
        period = old["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
        if not old["spec"].get("nodeName") or old["status"]["phase"] in ("Succeeded", "Failed"):
            period = 0
        new = fresh(old)
        first = "deletionTimestamp" not in meta
        if not first and period >= meta["deletionGracePeriodSeconds"] and period > 0:
            return 200, fresh(old)
        when = self.sim.text(self.sim.now + period * 1_000_000, False)
        new["metadata"] |= {"deletionTimestamp": when, "deletionGracePeriodSeconds": period}
        if first:
            new["metadata"]["generation"] += 1
        done = self._commit("Pod", key, new, "MODIFIED")
        if period == 0:
            done = self._commit("Pod", key, self.objects["Pod"][key], "DELETED")
        return 200, done

    def bind(self, key, uid, node):
        old = self.objects["Pod"].get(key)
        if old is None:
            return 404, missing("Pod", key[1])
        if old["metadata"]["uid"] != uid:
            return 409, conflict("Pod", key[1])
        refusal = ""
        if "deletionTimestamp" in old["metadata"]:
            refusal = "is being deleted, cannot be assigned to a host"
        elif old["spec"].get("nodeName"):
            refusal = f'is already assigned to node "{old["spec"]["nodeName"]}"'
        if refusal:
            text = f'on pods/binding "{key[1]}": pod {key[1]} {refusal}'
            return 409, status(409, "Conflict", f"Operation cannot be fulfilled {text}")
        new = fresh(old)
        new["spec"]["nodeName"] = node
        new["status"].pop("nominatedNodeName", None)
        others = [c for c in new["status"].get("conditions", []) if c["type"] != "PodScheduled"]
        new["status"]["conditions"] = [
            *others,
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": self.sim.seconds(),
            },
        ]
        self._commit("Pod", key, new, "MODIFIED")
        return 201, {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }

    # requests

    def call(
        self, user, verb, kind, key, act, *, body=None, sub="", agent="client", query="", level=None
    ):
        """One request as a generator; returns (code, answer)."""
        sim = self.sim
        server = self.homes.setdefault(user, sim.rng.randrange(self.servers))
        yield sim.draw((0.1, min(1, self.api[1] / 8), self.net))
        received = sim.now
        yield sim.draw(self.api)
        code, answer = act()
        line = self._line(user, verb, kind, key, sub, body, code, answer, agent, query)
        if verb == "get":
            line["level"] = "Metadata"
            line.pop("responseObject", None)
            line.pop("requestObject", None)
        line["requestReceivedTimestamp"] = sim.text(received + self.skews[server])
        spent = sim.draw(self.audit)

        def audited():
            line["stageTimestamp"] = sim.text(sim.now + self.skews[server])
            sim.after(sim.draw((0.01, 0.05, 5)), lambda: self.lines[server].append(line))

        sim.after(spent, audited)
        yield max(0, spent + sim.draw((0.05, min(1, self.api[1] / 10), self.net)))
        return code, answer

    def _line(self, user, verb, kind, key, sub, body, code, answer, agent, query):
        group, version, plural, namespaced, _ = KINDS[kind]
        ns, name = key
        parts = ["/apis", group, version] if group else ["/api/v1"]
        parts += ["namespaces", ns] if namespaced else []
        parts += [plural, name if verb != "create" or sub else "", sub]
        ref = prune(
            {
                "resource": plural,
                "namespace": ns,
                "name": name,
                "apiGroup": group,
                "apiVersion": version,
                "subresource": sub,
            }
        )
        line = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": self.sim.uuid(),
            "stage": "ResponseComplete",
            "requestURI": "/".join(p for p in parts if p) + query,
            "verb": verb,
            "user": {"username": user, "groups": ["system:authenticated"]},
            "sourceIPs": ["10.0.0.1"],
            "userAgent": agent,
            "objectRef": ref,
            "responseStatus": {"metadata": {}, "code": code}
            if code < 300
            else {k: v for k, v in answer.items() if k not in ("kind", "apiVersion")},
            "responseObject": fresh(answer),
        }
        if body is not None:
            line["requestObject"] = fresh(body)
        line["annotations"] = {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "",
        }
        return line

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, lines in enumerate(self.lines):
            path = folder / f"audit-{number}.log"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            paths.append(path)
        return paths


def stamp_taints(spec, now):
    for device in spec.get("devices", []):
        for taint in device.get("taints", []):
            taint.setdefault("timeAdded", now)


def claim_refusal(old, new):
    """The validation of a claim's status, as far as honest clients meet it."""
    was, now = old["status"], new["status"]
    name = new["metadata"]["name"]

    def invalid(field, text):
        message = f'ResourceClaim.resource.k8s.io "{name}" is invalid: {field}: {text}'
        return 422, status(422, "Invalid", message)

    if was.get("allocation") and now.get("allocation") and was["allocation"] != now["allocation"]:
        return invalid("status.allocation", "Invalid value: field is immutable")
    if now.get("reservedFor") and not now.get("allocation"):
        return invalid(
            "status.reservedFor", "Forbidden: may not be specified when `allocated` is not set"
        )
    before = {r["uid"] for r in was.get("reservedFor", [])}
    after = [r["uid"] for r in now.get("reservedFor", [])]
    if "deletionTimestamp" in old["metadata"] and set(after) - before:
        return invalid(
            "status.reservedFor",
            "Forbidden: new entries may not be added while `deallocationRequested` or "
            "`deletionTimestamp` are set",
        )
    if len(after) != len(set(after)):
        return invalid("status.reservedFor", "Duplicate value")
    if "deletionTimestamp" in old["metadata"] and set(new["metadata"].get("finalizers", [])) - set(
        old["metadata"].get("finalizers", [])
    ):
        return invalid(
            "metadata.finalizers",
            "Forbidden: no new finalizers can be added if the object is being deleted",
        )
    if not now.get("allocation"):
        now.pop("devices", None)
    return None


def status(code, reason, message):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def missing(kind, name):
    group, _, plural, *_ = KINDS[kind]
    return status(404, "NotFound", f'{plural}{"." + group if group else ""} "{name}" not found')


def conflict(kind, name):
    group, _, plural, *_ = KINDS[kind]
    return status(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {plural}{"." + group if group else ""} "{name}": '
        "the object has been modified; please apply your changes to the latest version and try "
        "again",
    )
