"""Asks `fit` about a drawn pod in a drawn cluster, and creates copies until one gets no node."""

import copy
import itertools
import re
from collections import Counter
from collections.abc import Iterator

from app.analysis.blast import world as hypothetical
from app.analysis.capacity import fitting, subjects
from app.analysis.capacity.answers import Fit
from app.domain.errors import Forbidden
from app.domain.log import HistoryInfo
from tests.cluster import Cluster
from tests.truth.blasts.worlds import REST_SECONDS, UsedWorld

COPIES_MAX = 12
"""Copies that are tried: shares of one device, and pods without devices, fit more often."""

LIMITED = "gpu.deviceclass.resource.k8s.io/devices"


class FitWorld(UsedWorld):
    """A cluster with room, and a pod with its templates and shared claims, not yet created."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for name in self.nodes if self.chance(70) else ():
            self.cluster.patch("nodes", name, {"spec": {"unschedulable": None, "taints": None}})
        self.cluster.wait(REST_SECONDS)
        self.documents = list(self._documents())
        if self.chance(10):
            hard = {"hard": {LIMITED: str(self.random.randint(2, 14))}}
            self.cluster.create("v1", "ResourceQuota", "limit", spec=hard)
            self.cluster.settle()

    def _arrivals(self, letter: str, count: int) -> None:
        super()._arrivals(letter, count // 3)

    def _device(self, name: str) -> dict:
        device = super()._device(name)
        if self.chance(50):
            device.pop("taints", None)
        return device

    def _wish(self, *, alone: bool = False) -> dict:
        wish = super()._wish(alone=alone)
        if self.chance(70):
            for name in ("selectors", "allocationMode", "deviceClassName"):
                wish.pop(name, None)
            wish |= {"deviceClassName": "gpu", "count": self.random.choice((1, 1, 1, 2))}
        if self.chance(50):
            wish.pop("capacity", None)
        return wish

    def _documents(self) -> Iterator[dict]:
        entries = []
        for number in range(self.random.choices((1, 2), (4, 1))[0]):
            name = f"wanted-{number}"
            devices = {"devices": self._devices()}
            is_shared = self.chance(20)
            kind = "ResourceClaim" if is_shared else "ResourceClaimTemplate"
            field = "resourceClaimName" if is_shared else "resourceClaimTemplateName"
            yield {
                "apiVersion": "resource.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": "default"},
                "spec": devices if is_shared else {"spec": devices},
            }
            entries.append({"name": f"entry-{number}", field: name})
        container: dict = {"name": "main", "image": "busybox:1"}
        if self.chance(30):
            container["resources"] = {"requests": {"cpu": self.random.choice(("1", "2"))}}
        spec: dict = {"containers": [container], "resourceClaims": entries}
        if self.chance(20):
            spec["nodeSelector"] = {"zone": self.random.choice("ab")}
        if self.chance(20):
            spec["tolerations"] = [{"operator": "Exists"}]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "copy", "namespace": "default"},
            "spec": spec,
        }


def asked(world: FitWorld) -> Fit:
    """The answer about the pod of the world."""
    line = world.cluster.line
    info = HistoryInfo(id=1, name="default")
    frozen = hypothetical.freeze(line.views, info, line.rules, line.now)
    places = [("", copy.deepcopy(one)) for one in world.documents]
    (subject,) = subjects.of_documents(places, "default")
    return fitting.fit(frozen, subject, fitting.FitBounds(copies_max=COPIES_MAX))


def lived(cluster: Cluster, documents: list[dict]) -> tuple[Counter, str]:
    """The nodes that copies get, and the refusal of the first that gets none."""
    *beside, pod = copy.deepcopy(documents)
    for tree in beside:
        cluster.apply(tree)
    nodes: Counter = Counter()
    for number in itertools.count():
        if nodes.total() >= COPIES_MAX:
            return nodes, ""
        name = f"copy-{number}"
        try:
            cluster.apply({**copy.deepcopy(pod), "metadata": {"name": name}})
        except Forbidden as refusal:
            return nodes, refusal.message
        cluster.settle()
        tree = cluster.get("pods", name)
        node = tree["spec"].get("nodeName") if tree else None
        if not node:
            return nodes, _message(cluster, name)
        nodes[node] += 1
    raise AssertionError("it is counted without end")


def _message(cluster: Cluster, name: str) -> str:
    """What the scheduler says of a pod, or the controller that could not make its claims."""
    condition = cluster.pod_condition(name)
    if condition is not None:
        return str(condition["message"])
    return "; ".join(cluster.messages(about=name))


def world_differences(seed: int) -> list[str]:
    """The differences between the answer and what happened in one world."""
    world = FitWorld(seed)
    try:
        answer = asked(world)
    except Forbidden as refusal:
        return list(_refused(world, refusal.message))
    nodes, text = lived(world.cluster, world.documents)
    return list(differences(answer, nodes, text))


def _refused(world: FitWorld, said: str) -> Iterator[str]:
    """A quota may leave no room for a claim that all copies would share."""
    try:
        lived(world.cluster, world.documents)
    except Forbidden as refusal:
        if refusal.message != said:
            yield f"said {said!r}, lived {refusal.message!r}"
    else:
        yield f"said {said!r}, and it was created"


def differences(answer: Fit, nodes: Counter, text: str) -> Iterator[str]:
    """One line for each statement that did not come true."""
    said = {one.node: one.count for one in answer.nodes}
    if answer.count != nodes.total() or said != dict(nodes):
        yield f"{answer.count} fit on {said}, lived {dict(nodes)}: {answer.limit} {text!r}"
    elif text and answer.limit and _unnamed(answer.limit.text) not in _unnamed(text):
        yield f"the limit is {answer.limit.text!r}, lived {text!r}"
    if answer.at_most is not None and answer.at_most < answer.count:
        yield f"at most {answer.at_most}, and {answer.count} fit"
    if (answer.limit is not None and answer.limit.kind == "bound") != (not text):
        yield f"it ends for {answer.limit}, lived {text!r}"


def _unnamed(text: str) -> str:
    """A message without the five characters that the server adds to the name of a new claim."""
    return re.sub(r"(copy-\d+-entry-\d)-[a-z0-9]{5}", r"\1", text)
