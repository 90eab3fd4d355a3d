"""Small namespaces with quotas of claims and devices, drawn by a seed, in which the pod `p` comes.

The seed decides everything, so that a second world of the same seed is a twin of the first.
"""

import random

from app.domain.errors import Forbidden
from tests.cluster import Cluster

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"
CLASSES = ("gpu", "nic")


class QuotaWorld:
    """A drawn cluster with holders, quotas, and a pod whose claim a quota may refuse."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"quota world {seed}")
        self.cluster = Cluster()
        self.cluster.node("n0")
        self.cluster.slice("n0", 40)
        for name in CLASSES:
            self.cluster.device_class(name)
        self._users()
        self._quotas()
        self.cluster.settle()
        self._more_users()
        spec = {"spec": {"devices": self._devices()}}
        self.cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "wish", spec=spec)
        self.cluster.pod("p", template="wish")
        self.cluster.settle()
        self._afterwards()

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred draws."""
        return self.random.randrange(100) < percent

    def _users(self) -> None:
        for number in range(self.random.randint(0, 4)):
            name = f"c{number}"
            self._claim(name)
            if self.chance(60):
                self.cluster.pod(f"h{number}", claim=name)
                self.cluster.settle()
                if self.chance(25):
                    self.cluster.finish(f"h{number}")
        if self.chance(25):
            self.cluster.pod("e", requests={"deviceclass.resource.kubernetes.io/gpu": "1"})
        self.cluster.settle()

    def _more_users(self) -> None:
        """Claims that come when quotas are there already; some are refused."""
        for number in range(self.random.randint(0, 2)):
            try:
                self._claim(f"m{number}")
            except Forbidden:
                continue
        self.cluster.settle()

    def _claim(self, name: str) -> None:
        spec = {"devices": self._devices()}
        self.cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)

    def _devices(self) -> dict:
        requests: list[dict] = []
        for name in ("a", "b")[: self.random.choice((1, 1, 2))]:
            if self.chance(25):
                either = [{"name": f"s{n}", **self._wish()} for n in range(2)]
                requests.append({"name": name, "firstAvailable": either})
            else:
                requests.append({"name": name, "exactly": self._wish()})
        return {"requests": requests}

    def _wish(self) -> dict:
        wish: dict = {"deviceClassName": self.random.choice((*CLASSES, "gpu"))}
        if self.chance(5):
            return {**wish, "allocationMode": "All"}
        return {**wish, "count": self.random.randint(1, 3)}

    def _quotas(self) -> None:
        for number in range(self.random.choice((1, 1, 1, 2))):
            self.cluster.create("v1", "ResourceQuota", f"q{number}", spec={"hard": self._hard()})

    def _hard(self) -> dict:
        names = [COUNT, *(f"{one}{DEVICES}" for one in CLASSES), f"{IMPLICIT}gpu"]
        picked = self.random.sample(names, self.random.choice((1, 1, 2, 3)))
        most = {COUNT: 5}
        return {name: str(self.random.randint(0, most.get(name, 9))) for name in picked}

    def _afterwards(self) -> None:
        """What stood in the way may change, and the claim controller has not tried again yet."""
        if self.chance(20):
            quota = self.random.choice(self.cluster.names("resourcequotas"))
            if self.chance(25):
                self.cluster.delete("resourcequotas", quota)
            else:
                hard = self.cluster.must("resourcequotas", quota)["spec"]["hard"]
                more = {name: str(int(text) + self.random.choice((-1, 1, 4)))
                        for name, text in hard.items()}  # fmt: skip
                more = {name: text if int(text) >= 0 else "0" for name, text in more.items()}
                self.cluster.patch("resourcequotas", quota, {"spec": {"hard": more}})
        if self.chance(15):
            idle = [one for one in self.cluster.names("resourceclaims") if one.startswith("c")]
            if idle:
                self.cluster.delete("resourceclaims", self.random.choice(idle))
