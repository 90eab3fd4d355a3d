"""Small clusters and proposals for the tests beside this module."""

from app.analysis.blast import compare, world
from app.analysis.blast.bounds import BlastBounds
from app.analysis.blast.compare import Put
from app.analysis.blast.radius import BlastRadius
from app.domain.log import HistoryInfo
from app.domain.log.chain import canonical_json
from tests.cluster import DRIVER, Cluster

INFO = HistoryInfo(id=1, name="default")
CARELESS = [{"operator": "Exists", "effect": "NoExecute"}]
PATIENT = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]


def frozen(cluster: Cluster) -> world.Frozen:
    line = cluster.line
    return world.freeze(line.views, INFO, line.rules, line.now)


def ask(cluster: Cluster, *changes: compare.Change, **bounds: int) -> BlastRadius:
    before = cluster.line.head
    found = compare.blast(frozen(cluster), changes, BlastBounds(**bounds))
    assert cluster.line.head == before, "a question writes nothing"
    assert not changed(cluster), "a question leaves the objects of the history as they are"
    return found


def changed(cluster: Cluster) -> list[str]:
    """The objects in memory that differ from what the log holds of them."""
    objects = cluster.line.views.objects
    return [
        event.key.name
        for group, resource in objects.resources()
        for event in objects.events(group, resource)
        if canonical_json(objects.get(event.key)) != event.body
    ]


def rule(
    name: str = "rule", effect: str = "NoExecute", *, key: str = "bad", **selector: str
) -> Put:
    spec = {
        "deviceSelector": selector or {"driver": DRIVER},
        "taint": {"key": f"example.com/{key}", "effect": effect},
    }
    return put("DeviceTaintRule", name, spec)


def put(kind: str, name: str, spec: dict, place: str = "") -> Put:
    tree = {
        "apiVersion": "resource.k8s.io/v1alpha3"
        if kind == "ResourceSlicePatch"
        else "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return Put(tree=tree, place=place)


def slice_spec(devices: list[dict], node: str = "n1", generation: int = 1, slices: int = 1) -> dict:
    return {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": slices},
        "devices": devices,
    }


def running(**profile: object) -> Cluster:
    """Three pods on two nodes: one that is evicted at once, one that waits, one that never goes."""
    cluster = Cluster(**profile)
    cluster.device_class()
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node)
    cluster.template()
    cluster.template("patient", tolerations=PATIENT)
    cluster.template("careless", tolerations=CARELESS)
    cluster.pod("plain", template="gpu")
    cluster.pod("patient", template="patient")
    cluster.pod("careless", template="careless")
    return cluster.settle()
