"""Draws a small cluster in use: pods that run, wait, end and are protected, of every kind of claim.

The hardware is that of the worlds in which pods wait. A world is a function of its seed: a second
one is a twin. When it is made, nothing is left to do.
"""

from tests.truth.waiting.worlds import (
    BAD,
    BROKEN,
    SELECT_FIRST,
    SELECT_LARGE,
    SmallWorld,
)

ANY = {"operator": "Exists"}
TOLERATIONS = {
    "patient": [{**ANY, "effect": "NoExecute", "tolerationSeconds": 60}],
    "slow": [{**ANY, "effect": "NoExecute", "tolerationSeconds": 3600}, {**ANY, "key": BAD}],
    "lasting": [{**ANY, "effect": "NoExecute"}, {**ANY, "effect": "NoSchedule"}],
    "vague": [ANY],
    "picky": [{"key": BROKEN, **ANY, "effect": "NoExecute"}],
}
"""Templates by the tolerations of their request. The fourth counts for no eviction (C2)."""

REST_SECONDS = 400
"""Longer than a pod waits for its next attempt without a cause (300 s)."""


class UsedWorld(SmallWorld):
    """A drawn cluster with pods `p0`, `p1`, …, and later `q0`, `q1`, …."""

    def _holders(self) -> None:
        self.cluster.template("one")
        self.cluster.template("two", count=2)
        self.cluster.template("share", capacity={"requests": {"memory": "10Gi"}})
        self.cluster.template("large", selectors=_selectors(SELECT_LARGE))
        self.cluster.template("first", selectors=_selectors(SELECT_FIRST))
        self.cluster.template("all", allocationMode="All")
        for name, tolerations in TOLERATIONS.items():
            self.cluster.template(name, tolerations=tolerations)
        for number in range(2):
            self.cluster.claim(f"shared-{number}")
        self._arrivals("p", self.random.randint(1, 8))

    def _arrivals(self, letter: str, count: int) -> None:
        for number in range(count):
            name = f"{letter}{number}"
            self._arrive(name)
            self.cluster.settle()
            self._fate(name)
            self.cluster.settle()

    def _arrive(self, name: str) -> None:
        spec: dict = {}
        if self.chance(15):
            spec["nodeSelector"] = {"zone": self.random.choice("ab")}
        if self.chance(10):
            spec["tolerations"] = [{"key": "node.kubernetes.io/unschedulable", **ANY}]
        requests = {"cpu": self.random.choice(("1", "2", "3"))} if self.chance(20) else None
        if self.chance(20):
            self.cluster.pod(
                name, claim=f"shared-{self.random.randrange(2)}", requests=requests, **spec
            )
            return
        names = ("one", "one", "one", "two", "share", "large", "first", "all", *TOLERATIONS)
        self.cluster.pod(name, template=self.random.choice(names), requests=requests, **spec)

    def _fate(self, name: str) -> None:
        pod = self.cluster.get("pods", name)
        if pod is None or "nodeName" not in pod["spec"] or "deletionTimestamp" in pod["metadata"]:
            return
        if self.chance(8):
            self.cluster.patch("pods", name, {"metadata": {"finalizers": ["example.com/keep"]}})
        if self.chance(60):
            ready = [{"type": "Ready", "status": "True"}]
            status = {"status": {"phase": "Running", "conditions": ready}}
            self.cluster.patch("pods", name, status, subresource="status")
        if self.chance(8):
            self.cluster.finish(name, self.random.choice(("Succeeded", "Failed")))
        elif self.chance(8):
            self.cluster.delete("pods", name)

    def _pod(self) -> None:
        self._later_rules()
        self._arrivals("q", self.random.randint(0, 4))
        if self.chance(30):
            spec: dict = {"selector": {}, "minAvailable": self.random.randint(0, 4)}
            if self.chance(30):
                spec = {"selector": {}, "maxUnavailable": self.random.randint(0, 2)}
            self.cluster.create("policy/v1", "PodDisruptionBudget", "all", spec=spec)

    def _later_rules(self) -> None:
        """Rules that evict, or that count whom they would evict."""
        if self.chance(25):
            selector = {"driver": "gpu.example.com", "pool": self.random.choice(self.nodes)}
            key = self.random.choice((BAD, BROKEN))
            self.cluster.rule("evicting", "NoExecute", selector, key=key)

    def _afterwards(self) -> None:
        self.cluster.wait(REST_SECONDS)


def _selectors(expression: str) -> list[dict]:
    return [{"cel": {"expression": expression}}]
