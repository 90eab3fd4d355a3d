"""kubectl and pods of different priority: what it shows when one goes for another."""

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
description: goes first
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {redra.dev/stop-seconds: "3000"}}
spec:
  priorityClassName: "CLASS"
  terminationGracePeriodSeconds: 3600
  containers:
  - name: main
    image: busybox:1
    resources: {requests: {cpu: "3"}}
"""


def pod(name, priority=""):
    return POD.replace("NAME", name).replace("CLASS", priority)


def test_pod_goes_for_a_more_important_one(tmp_path):
    with cluster(tmp_path) as made:
        made.create(CLUSTER)
        made.create(pod("small"))
        made.kubectl("wait", "--for=condition=Ready", "pod/small", "--timeout=30s")
        made.create(pod("big", "urgent"))
        made.kubectl("wait", "--for=jsonpath={.status.nominatedNodeName}=n1", "pod/big",
                     "--timeout=30s")  # fmt: skip
        rows = made.kubectl("get", "pods", "-o", "wide").out.splitlines()
        small, big = (
            next(row for row in rows if row.startswith(name)) for name in ("small", "big")
        )
        assert "Terminating" in small
        assert big.split()[2] == "Pending"
        assert big.split()[-2:] == ["n1", "<none>"], "the columns of nomination and gates"
        uid = made.json("get", "pod", "big")["metadata"]["uid"]
        told = made.kubectl("get", "events", "--field-selector", "reason=Preempted").out
        assert f"Preempted by pod {uid} on node n1" in told
        described = made.kubectl("describe", "pod", "big").out
        assert "Priority Class Name:  urgent" in described
        assert "NominatedNodeName:    n1" in described
        made.kubectl("delete", "pod", "small", "--force", "--grace-period=0")
        made.kubectl("wait", "--for=condition=Ready", "pod/big", "--timeout=30s")
        assert made.json("get", "pod", "big")["spec"]["nodeName"] == "n1"


def test_refused_priorities_are_told_in_words(tmp_path):
    with cluster(tmp_path) as made:
        made.create(CLUSTER)
        said = made.create(pod("p", "absent"), code=1).err
        assert 'pods "p" is forbidden: no PriorityClass with name absent was found' in said
        said = made.kubectl("create", "priorityclass", "huge", "--value=2000000000", code=1).err
        assert "maximum allowed value of a user defined priority is 1000000000" in said
        said = made.kubectl("patch", "priorityclass", "urgent", "-p", '{"value": 7}', code=1).err
        assert "value: Forbidden: may not be changed in an update." in said
        rows = made.kubectl("get", "priorityclasses").out
        assert "urgent" in rows
        assert "PreemptLowerPriority" in rows
