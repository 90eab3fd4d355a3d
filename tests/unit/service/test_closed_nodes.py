"""Nodes that are closed to a waiting pod: which taints close one, and the reasons that name it."""

from pathlib import Path

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.explain.questions import Question
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from app.service import importing
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from tests.unit.service.test_explaining import texts, views_up_to

BEGUN = "2026-01-02T03:00:00Z"


def tree(kind: str, name: str, spec: object, **more: object) -> dict[str, object]:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": BEGUN}
    if kind == "Pod":
        metadata["namespace"] = "default"
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, **more}


async def told(folder: Path, node: object, **pod: object) -> list[str]:
    """The reasons of a waiting pod that are about node n0."""
    waits = {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/1 nodes are available"}]}  # fmt: skip
    documents = [
        tree("Node", "n0", node, status={"allocatable": {"pods": "110", "cpu": "8"}}),
        tree("Pod", "p", {"containers": [{"name": "main", "image": "i"}], **pod}, status=waits),
    ]
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions(rules=rules_for(Profile()))) as source:
        result = await importing.import_records(
            log, source, name="h", options=importing.ImportOptions()
        )
    events = await log.read(result.history.id, after=Revision(0), limit=100)

    async def views_at(revision: Revision) -> LiveViews:
        return views_up_to(events, revision)

    explainer = Explainer(
        log,
        result.history,
        views_up_to(events, len(events)),
        CelCompiler(detailed_errors=True),
        Profile(),
        past=PastMoments(views_at, views_at),
    )
    answer = await explainer.why(Question(kind="pod", namespace="default", name="p"))
    said = [text for text in texts(answer.reason) if text.startswith("node n0 is ")]
    return [text.removesuffix(", before it was first recorded") for text in said]


@pytest.mark.parametrize(
    ("taint", "said"),
    [
        ({"key": "a", "value": "b", "effect": "NoSchedule"}, ["node n0 is tainted a=b:NoSchedule"]),
        ({"key": "a", "effect": "NoExecute"}, ["node n0 is tainted a:NoExecute"]),
        ({"effect": "NoExecute"}, ["node n0 is tainted :NoExecute"]),
        ({"key": "a", "effect": "PreferNoSchedule"}, []),
        ({"key": "a", "effect": "noschedule"}, []),
        ({"key": "a", "effect": ""}, []),
        ({"key": "a", "effect": None}, []),
        ({"key": "a"}, []),
    ],
)
async def test_only_hard_effects_close_a_node(
    tmp_path: Path, taint: object, said: list[str]
) -> None:
    assert await told(tmp_path, {"taints": [taint]}) == said


@pytest.mark.parametrize(
    ("node", "tolerations", "said"),
    [
        ({"taints": []}, [], []),
        ({"taints": None}, [], []),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, [{"operator": "Exists"}], []),
        ({"unschedulable": True}, [], ["node n0 is cordoned"]),
        ({"unschedulable": True}, [{"operator": "Exists"}], []),
        # The cordon alone is said of a node that has both: the scheduler sees it first.
        (
            {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]},
            [],
            ["node n0 is cordoned"],
        ),
        # A tolerated cordon does not open what a taint closes.
        (
            {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]},
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
            ["node n0 is tainted a:NoSchedule"],
        ),
    ],
)
async def test_node_is_closed_by_its_cordon_or_by_what_the_pod_does_not_tolerate(
    tmp_path: Path, node: object, tolerations: object, said: list[str]
) -> None:
    assert await told(tmp_path, node, tolerations=tolerations) == said
