"""Draws a small cluster in use, to which several people do things while time passes.

It begins as the worlds of `tests/truth/blasts`. Then pods are deleted, finished, evicted, started
without a scheduler and left by their claims, slices and nodes, and rules come and go.
"""

from app.domain.errors import Rejected
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import DeleteObject
from tests.cluster import DRIVER, group_of
from tests.truth.blasts.worlds import UsedWorld
from tests.truth.waiting.worlds import BAD, BROKEN

PEOPLE = ("bob", "carol", "dave")
KEEP = "example.com/keep"


class LivedWorld(UsedWorld):
    """A drawn cluster with pods `p0`, `q0`, `d0` (the last of them have no scheduler)."""

    def _afterwards(self) -> None:
        self._direct()
        acts = (
            self._delete_pod, self._delete_pod, self._finish_pod, self._evict, self._evict,
            self._taint_slice, self._free_rule, self._delete_claim, self._keep_claim,
            self._withdraw, self._delete_node, self._start, self._release, self._renew,
        )  # fmt: skip
        for _ in range(self.random.randint(2, 9)):
            self.random.choice(acts)()
            self.cluster.settle()
            self.cluster.wait(self.random.choice((0, 1, 20, 90)))
        self.cluster.wait(self.random.choice((0, 1, 30, 400)))

    def _direct(self) -> None:
        """Pods that are made with a node, with a claim that nobody reserves for them."""
        for number in range(self.random.choice((0, 0, 1, 2))):
            place: dict = {"nodeName": self.random.choice(self.nodes)}
            if self.chance(50):
                place["claim"] = f"shared-{self.random.randrange(2)}"
            else:
                place["template"] = "one"
            self.cluster.pod(f"d{number}", **place)

    def _drawn(self, resource: str) -> str:
        return self.random.choice(self.cluster.names(resource) or [""])

    def _drawn_pod(self) -> str:
        """Mostly one that has a node, and often one that people have done something to before."""
        pods = [self.cluster.must("pods", name) for name in self.cluster.names("pods")]
        placed = [one for one in pods if one["spec"].get("nodeName")]
        touched = [one for one in placed if "deletionTimestamp" in one["metadata"]]
        group = pods if self.chance(15) else placed
        group = touched if touched and self.chance(40) else group
        return self.random.choice(group or [{"metadata": {"name": ""}}])["metadata"]["name"]

    def _delete(self, resource: str, name: str, grace: int | None = None) -> None:
        namespace = "default" if resource in ("pods", "resourceclaims") else ""
        key = ObjectKey(group_of(resource), resource, namespace, name)
        actor = Actor(user=self.random.choice(PEOPLE), groups=("system:masters",), agent="kubectl")
        if self.cluster.get(resource, name) is not None:
            command = DeleteObject(key=key, grace_seconds=grace)
            self.cluster.line.submit(command, actor=actor)

    def _delete_pod(self) -> None:
        name = self._drawn_pod()
        self._delete("pods", name, self.random.choice((None, None, 0, 5, 90)))
        if self.chance(30):
            self.cluster.wait(self.random.choice((1, 20)))
            self._delete("pods", name, self.random.choice((1, 10)))

    def _finish_pod(self) -> None:
        if name := self._drawn_pod():
            self.cluster.finish(name, self.random.choice(("Succeeded", "Failed")))

    def _start(self) -> None:
        name = self._drawn_pod()
        pod = self.cluster.get("pods", name) or {"spec": {}}
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            status = {"status": {"phase": "Running"}}
            self.cluster.patch("pods", name, status, subresource="status")

    def _evict(self) -> None:
        name = f"late-{len(self.cluster.line.events)}"
        selector = {"driver": DRIVER}
        if self.chance(80):
            selector["pool"] = self.random.choice([*self.nodes, "net"])
        if self.chance(40):
            selector["device"] = self.random.choice(("gpu-0", "gpu-1", "half-0", "card-0"))
        key = self.random.choice((BAD, BROKEN, "example.com/late"))
        taint = {"value": "yes"} if self.chance(30) else {}
        self.cluster.rule(name, "NoExecute", selector, key=key, **taint)

    def _free_rule(self) -> None:
        if name := self._drawn("devicetaintrules"):
            self._delete("devicetaintrules", name)

    def _taint_slice(self) -> None:
        if tree := self.cluster.get("resourceslices", self._drawn("resourceslices")):
            sick = [{"key": "example.com/sick", "effect": "NoExecute"}]
            devices = [
                {**one, "taints": sick} if self.chance(40) else one
                for one in tree["spec"].get("devices") or ()
            ]
            self._put_devices(tree, devices)

    def _withdraw(self) -> None:
        if tree := self.cluster.get("resourceslices", self._drawn("resourceslices")):
            if self.chance(50):
                self._delete("resourceslices", tree["metadata"]["name"])
            else:
                self._put_devices(tree, (tree["spec"].get("devices") or [])[1:])

    def _put_devices(self, tree: dict, devices: list[dict]) -> None:
        if devices:
            body = {"spec": {"devices": devices}}
            self.cluster.patch("resourceslices", tree["metadata"]["name"], body)

    def _renew(self) -> None:
        """The driver publishes a pool anew and leaves the old slice for a while."""
        tree = self.cluster.get("resourceslices", self._drawn("resourceslices"))
        if tree is None or not tree["spec"].get("devices"):
            return
        pool = {**tree["spec"]["pool"], "resourceSliceCount": 1}
        pool["generation"] += 1
        name = f"{tree['metadata']['name']}-{pool['generation']}"
        devices = [self._healed(one) for one in tree["spec"]["devices"][self.chance(40) :]]
        if devices and self.cluster.get("resourceslices", name) is None:
            spec = {**tree["spec"], "pool": pool, "devices": devices}
            if not any("consumesCounters" in one for one in devices):
                self.cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)

    def _healed(self, device: dict) -> dict:
        kept = device.get("taints") and self.chance(40)
        return {name: value for name, value in device.items() if name != "taints" or kept}

    def _delete_node(self) -> None:
        if self.chance(40) and len(self.cluster.names("nodes")) > 1:
            self._delete("nodes", self._drawn("nodes"))

    def _delete_claim(self) -> None:
        self._delete("resourceclaims", self._drawn("resourceclaims"))

    def _keep_claim(self) -> None:
        tree = self.cluster.get("resourceclaims", self._drawn("resourceclaims"))
        if tree and "deletionTimestamp" not in tree["metadata"]:
            finalizers = [*tree["metadata"].get("finalizers", ()), KEEP]
            body = {"metadata": {"finalizers": finalizers}}
            self.cluster.patch("resourceclaims", tree["metadata"]["name"], body)

    def _release(self) -> None:
        """Somebody takes the reservations of a claim, or all that its status says."""
        tree = self.cluster.get("resourceclaims", self._drawn("resourceclaims"))
        if tree and tree.get("status") and self.chance(50):
            status: dict = {"reservedFor": None}
            if self.chance(50):
                status["allocation"] = None
            body = {"status": status}
            name = tree["metadata"]["name"]
            try:
                self.cluster.patch("resourceclaims", name, body, subresource="status")
            except Rejected:
                return
