"""Pods that wait for their kubelets in recordings that may lack the reports of kubelets."""

import json

import pytest
from msgspec import structs

from app.analysis.findings import pods
from app.analysis.findings.pods import PodCauses
from app.domain.values import timestamps
from tests.unit.analysis.explain.test_verdicts import recorded
from tests.unit.service.test_explaining import views_up_to


def at(minute):
    return f"2026-01-01T01:{minute:02}:00Z"


def pod(name, placed, started=None):
    """A pod that was placed and, if a minute is given, started then."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(placed)}
    status = {"phase": "Pending", "conditions": [condition]}
    if started is not None:
        status |= {"phase": "Running", "startTime": at(started)}
    return {
        "apiVersion": "v1", "kind": "Pod", "status": status,
        "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": "9",
                     "creationTimestamp": at(placed)},
        "spec": {"nodeName": "n", "containers": [{"name": "m", "image": "a:1"}]},
    }  # fmt: skip


def seen(minute, event):
    """The event as it is recorded in a minute."""
    return structs.replace(
        event, stamp=structs.replace(event.stamp, time=timestamps.parse(at(minute)))
    )


NODE = {"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n", "uid": "n", "resourceVersion": "8"}}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([(10, pod("old", 1, 1)), (20, pod("new", 20))], None),
        ([(10, pod("old", 1, 1)), (20, pod("new", 20)), (25, pod("late", 21, 24))], "1 pod has"),
        ([(10, pod("old", 1, 1)), (30, pod("new", 20))], "1 pod has"),
        ([(10, pod("old", 1, 1)), (30, pod("new", 20)), (31, pod("more", 20))], "about them"),
    ],
)
async def test_silence_is_known_where_a_later_report_or_state_was_recorded(tmp_path, lines, said):
    trees = [tree for _, tree in lines]
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE, *trees]})
    _, _, events = await recorded(tmp_path, all_json=listed)
    minutes = {tree["metadata"]["name"]: minute for minute, tree in lines}
    events = [seen(minutes.get(event.key.name, 1), event) for event in events]
    views = views_up_to(events, len(events))
    causes = PodCauses(unasked=lambda _: "")
    texts = [one.text for one in pods.unstarted(views, causes, timestamps.parse(at(40)))]
    assert [said in each for each in texts] == ([] if said is None else [True]), texts
