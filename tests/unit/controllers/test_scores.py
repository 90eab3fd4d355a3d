"""Scores for which a node is enough; all numbers are computed by hand (controllers.md 4.5)."""

import pytest

from app.domain.controllers.scheduling.framework import pod_spec, scoring
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo, bound_pod
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.values.json_tree import JsonObject

GIB = 1024 * 1024 * 1024


def node(
    *running: JsonObject,
    cpu: str = "4",
    memory: str = "4000Mi",
    taints: list[JsonObject] | None = None,
    **labels: str,
) -> NodeInfo:
    index = NodeIndex()
    index.put(
        {
            "metadata": {"name": "n1", "labels": labels},
            "spec": {"taints": taints or []},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
        }
    )
    for number, spec in enumerate(running):
        metadata = {"name": f"p{number}", "namespace": "default", "uid": str(number)}
        index.bind(bound_pod({"metadata": metadata, "spec": {**spec, "nodeName": "n1"}}))
    return index.order()[0]


def asks(cpu: str = "", memory: str = "", **more: object) -> JsonObject:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"containers": [{"name": "c", "resources": {"requests": requests}}], **more}


def pod(spec: JsonObject) -> PodSpec:
    return pod_spec.read({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "running", "expected"),
    [
        # cpu (4000-1000)/4000 = 75, memory (4000-400)/4000 = 90: (75 + 90) / 2 = 82
        (asks("1", "400Mi"), [], 82),
        # 100m and 200Mi stand for what is not asked: 97 and 95
        (asks(), [], 96),
        # of one running pod too: (4000-200)/4000 = 95, (4000-400)/4000 = 90
        (asks(), [asks()], 92),
        # one is asked, the other taken for granted: 50 and 95
        (asks("2"), [], 72),
        # more than there is scores nothing: cpu 0, memory 95
        (asks(), [asks("4", "0")], 47),
    ],
)
def test_least_allocated_prefers_nodes_with_more_left(spec, running, expected):
    assert scoring._least_allocated(pod(spec), node(*running)) == expected


@pytest.mark.parametrize(
    ("spec", "running", "changes", "leaves"),
    [
        # nothing is asked: this plug-in is left out
        (asks(), [asks("1")], 0, 0),
        # 1/4 and 1/4: as balanced as before, and perfectly so
        (asks("1", "1000Mi"), [], 75, 100),
        # 1/2 and 0: spread 0.25, so 75 after 100
        (asks("2"), [], 62, 75),
        # from (1/2, 0) to (1/2, 1/2): 100 after 75
        (asks(memory="2000Mi"), [asks("2")], 87, 100),
        # all of the cpu and nothing else: spread 0.5, 50 after 100
        (asks("4"), [], 50, 50),
    ],
)
def test_balance_counts_what_the_pod_changes_and_before_1_36_what_it_leaves(
    spec, running, changes, leaves
):
    wanted, info = pod(spec), node(*running)
    room = scoring._least_allocated(wanted, info)
    assert scoring.room_score(wanted, info) - room == changes
    assert scoring.room_score(wanted, info, leaves=True) - room == leaves


def soft(key: str) -> JsonObject:
    return {"key": key, "value": "x", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 2),
        ([{"key": "a", "operator": "Exists"}], 1),
        ([{"key": "a", "value": "x", "effect": "PreferNoSchedule"}], 1),
        ([{"key": "a", "value": "y"}], 2),
        ([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}], 2),
        ([{"operator": "Exists"}], 0),
    ],
)
def test_taints_that_prefer_no_pods_are_counted_unless_tolerated(tolerations, count):
    hard = {"key": "c", "effect": "NoSchedule"}
    info = node(taints=[soft("a"), soft("b"), hard])
    assert scoring.soft_taints(pod(asks(tolerations=tolerations)), info) == count


def test_fewest_taints_score_highest():
    # 100 - 100 * count / 3, cut off before it is taken away, times the weight 3
    assert scoring.totals([0, 0, 0, 0], [0, 1, 2, 3], (), ()) == [300, 201, 102, 0]
    assert scoring.totals([7, 5], [0, 0], (), ()) == [7, 5]


def prefers(*terms: tuple[int, str]) -> JsonObject:
    preferred = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]},
        }
        for weight, key in terms
    ]
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    return asks(affinity={"nodeAffinity": {field: preferred}})


def test_weights_of_preferred_node_terms_add_up():
    wanted = pod(prefers((10, "ssd"), (5, "gpu"), (1, "new")))
    assert scoring.preference(wanted, node(ssd="", gpu="")) == 15
    assert scoring.preference(wanted, node(new="")) == 1
    assert scoring.preference(wanted, node()) == 0
    # 100 * 1 / 15 = 6, times the weight 2
    assert scoring.totals([0, 0, 0], [0, 0, 0], [15, 1, 0], ()) == [200, 12, 0]


def test_preferred_node_by_name():
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {"nodeAffinity": {field: [{"weight": 3, "preference": named}]}}
    assert scoring.preference(pod(asks(affinity=affinity)), node()) == 3


def test_weights_of_the_plug_ins():
    weights = {
        "TaintToleration": scoring.TAINT_WEIGHT,
        "NodeAffinity": scoring.AFFINITY_WEIGHT,
        "PodTopologySpread": scoring.SPREAD_WEIGHT,
        "InterPodAffinity": scoring.ATTRACTION_WEIGHT,
        "DynamicResources": scoring.DEVICES_WEIGHT,
        "ImageLocality": scoring.IMAGES_WEIGHT,
    }
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "ImageLocality": 1,
    }
