"""Draws small clusters full of pods of drawn priorities, into which more important ones come.

The hardware and what changes of it are those of the worlds in which pods wait.
"""

from tests.cluster import Cluster
from tests.truth.waiting.worlds import SmallWorld

CLASSES = {"high": 1000, "middle": 500, "low": -5}
"""The classes by which pods evict others; `patient` ones never do."""

PATIENT = 700
APPS = ("x", "y")


class PreemptionWorld(SmallWorld):
    """A cluster with pods `h0`, `h1`, … and those that came later: `q0`, `q1`, …, at last `p`."""

    def _empty(self) -> Cluster:
        self.has_kubelet = self.chance(40)
        return Cluster(kubelet=self.has_kubelet)

    def _hardware(self) -> None:
        super()._hardware()
        for name in self.nodes:
            pods = self.random.choice((2, 3, 4, 110, 110))
            room = {"pods": str(pods), "cpu": self.random.choice(("2", "4", "4")), "memory": "64Gi"}
            status = {"status": {"allocatable": room, "capacity": room}}
            self.cluster.patch("nodes", name, status, subresource="status")
        kind = ("scheduling.k8s.io/v1", "PriorityClass")
        for name, value in CLASSES.items():
            self.cluster.create(*kind, name, value=value)
        self.cluster.create(*kind, "patient", value=PATIENT, preemptionPolicy="Never")

    def _holders(self) -> None:
        self.cluster.template("one")
        self.cluster.template("share", capacity={"requests": {"memory": "10Gi"}})
        self.cluster.claim("team")
        for number in range(self.random.randint(2, 3 * len(self.nodes) + 3)):
            self._arrive(f"h{number}", ("low", "low", "", "", "middle", "high"))
            self.cluster.settle()
            self.cluster.wait(self.random.choice((0, 1, 5)))
            self._start()
        for app in APPS if self.chance(75) else ():
            if self.chance(75):
                spec: dict = {"selector": {"matchLabels": {"app": app}}}
                if self.chance(15):
                    spec["selector"] = {}
                spec["minAvailable"] = self.random.choice((1, 1, 2, 3))
                self.cluster.create("policy/v1", "PodDisruptionBudget", f"of-{app}", spec=spec)
        self.cluster.wait(self.random.choice((3, 10)))

    def _arrive(self, name: str, priorities: tuple[str, ...]) -> None:
        self.cluster.apply(self._tree(name, priorities))

    def _tree(self, name: str, priorities: tuple[str, ...]) -> dict:
        spec: dict = {}
        if priority := self.random.choice(priorities):
            spec["priorityClassName"] = priority
        labels = {"app": self.random.choice(APPS)} if self.chance(75) else {}
        if self.chance(12):
            kind = "podAffinity" if self.chance(25) else "podAntiAffinity"
            # A pod that looks for those of its own app may be the first one of them.
            other = next(one for one in APPS if one != labels.get("app"))
            term = {
                "labelSelector": {"matchLabels": {"app": other}},
                "topologyKey": "kubernetes.io/hostname",
            }
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if self.chance(10):
            spec["nodeSelector"] = {"zone": self.random.choice("ab")}
        if self.chance(10):
            spec["tolerations"] = [{"operator": "Exists"}]
        container: dict = {"name": "main", "image": "busybox:1"}
        if cpu := self.random.choice(("", "1", "1", "2", "2", "2", "3")):
            container["resources"] = {"requests": {"cpu": cpu}}
        way = self.random.choices(("none", "one", "share", "team"), (5, 4, 1, 1))[0]
        if way == "team":
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "team"}]
        elif way != "none":
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": way}]
        if self.chance(30):
            spec["terminationGracePeriodSeconds"] = self.random.choice((0, 5, 120))
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {**spec, "containers": [container]},
        }

    def _start(self) -> None:
        """Without a kubelet some pods start, at drawn instants, and the others do not."""
        for name in () if self.has_kubelet else self.cluster.names("pods"):
            pod = self.cluster.must("pods", name)
            if "nodeName" in pod["spec"] and "startTime" not in pod["status"] and self.chance(70):
                start = {"startTime": f"2026-01-02T02:59:{self.random.randrange(10, 60, 10)}Z"}
                status = {"status": {"phase": "Running", **start}}
                self.cluster.patch("pods", name, status, subresource="status")
                if self.chance(5):
                    self.cluster.finish(name)
                elif self.chance(5):
                    self.cluster.delete("pods", name)
        self.cluster.settle()

    def _end(self) -> None:
        """Without a kubelet some of the pods that end are gone."""
        for name in () if self.has_kubelet else self.cluster.names("pods"):
            pod = self.cluster.get("pods", name)
            if pod and "deletionTimestamp" in pod["metadata"] and self.chance(40):
                self.cluster.kill(name)
                self.cluster.settle()

    def _pod(self) -> None:
        for number in range(self.random.randint(0, 3)):
            self._arrive(f"q{number}", ("high", "middle", "middle", "patient", "", "low"))
            if self.chance(80):
                self.cluster.settle()
                self.cluster.wait(self.random.choice((0, 2, 40)))
                self._end()
        self._arrive("p", ("high", "high", "high", "middle", "patient"))

    def _afterwards(self) -> None:
        self.cluster.wait(self.random.choice((0, 2, 8, 20)))
        self._end()
        self.cluster.wait(self.random.choice((0, 2, 30)))
