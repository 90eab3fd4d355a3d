"""Emulated kubelets (controllers.md 5.3)."""

import pytest

from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster


def cluster_of(**options) -> Cluster:
    cluster = Cluster(kubelet=True, **options)
    cluster.node()
    return cluster.settle()


def annotated(cluster: Cluster, name: str = "pod", /, **spec) -> None:
    """A pod; keywords with `seconds` or `code` become annotations of ours."""
    notes = {key: spec.pop(key) for key in list(spec) if key.endswith(("_seconds", "_code"))}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "annotations": {
                    f"redra.dev/{key.replace('_', '-')}": value for key, value in notes.items()
                },
            },
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **spec},
        }
    )


def phase(cluster: Cluster, name: str = "pod") -> str:
    return json_tree.text(cluster.must("pods", name), "status", "phase")


class TestStart:
    def test_bound_pod_runs_and_is_ready(self):
        cluster = cluster_of()
        cluster.pod()
        cluster.settle()
        status = cluster.must("pods", "pod")["status"]
        assert status["phase"] == "Running"
        assert {c["type"]: c["status"] for c in status["conditions"]} == dict.fromkeys(
            (
                "PodScheduled",
                "PodReadyToStartContainers",
                "Initialized",
                "Ready",
                "ContainersReady",
            ),
            "True",
        )
        assert status["containerStatuses"][0]["state"] == {
            "running": {"startedAt": "2026-01-02T03:00:00Z"}
        }
        assert status["podIP"].startswith("10.")

    def test_start_takes_the_seconds_of_the_annotation(self):
        cluster = cluster_of()
        annotated(cluster, start_seconds="7")
        cluster.wait(6)
        assert phase(cluster) == "Pending"
        cluster.wait(2)
        assert phase(cluster) == "Running"

    def test_pod_waits_for_a_claim_that_is_not_reserved_for_it(self):
        cluster = cluster_of()
        cluster.device_class()
        cluster.claim()
        cluster.pod(claim="claim", nodeName="n1")
        cluster.settle()
        assert phase(cluster) == "Pending"
        assert any("is not allowed to use ResourceClaim claim" in t for t in cluster.messages())

    def test_pod_with_a_device_runs(self):
        cluster = cluster_of()
        cluster.device_class()
        cluster.slice()
        cluster.template()
        cluster.pod(template="gpu")
        cluster.settle()
        assert phase(cluster) == "Running"


class TestEnd:
    @pytest.mark.parametrize(
        ("code", "policy", "expected"),
        [
            ("0", "Never", "Succeeded"),
            ("1", "Never", "Failed"),
            ("0", "OnFailure", "Succeeded"),
            ("1", "OnFailure", "Running"),
            ("0", "Always", "Running"),
        ],
    )
    def test_phase_after_the_containers_exit(self, code, policy, expected):
        cluster = cluster_of()
        annotated(cluster, run_seconds="5", exit_code=code, restartPolicy=policy)
        cluster.wait(6)
        assert phase(cluster) == expected

    def test_restarts_are_counted_with_growing_pauses(self):
        cluster = cluster_of()
        annotated(cluster, run_seconds="5", exit_code="3")
        cluster.wait(21)
        status = cluster.must("pods", "pod")["status"]["containerStatuses"][0]
        assert status["restartCount"] == 2
        assert status["lastState"]["terminated"]["exitCode"] == 3

    def test_older_annotation_is_read_too(self):
        cluster = cluster_of()
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "pod", "annotations": {"sim.example.com/run-seconds": "3"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox:1"}],
                },
            }
        )
        cluster.wait(4)
        assert phase(cluster) == "Succeeded"

    def test_deadline_of_the_pod_ends_it(self):
        cluster = cluster_of()
        annotated(cluster, activeDeadlineSeconds=10)
        cluster.wait(11)
        assert cluster.must("pods", "pod")["status"]["reason"] == "DeadlineExceeded"


class TestStop:
    def test_deleted_pod_gets_a_last_phase_and_goes(self):
        cluster = cluster_of()
        cluster.pod()
        cluster.settle()
        cluster.delete("pods", "pod")
        seen = len(cluster.line.events)
        cluster.settle()
        phases = [
            json_tree.text(event.object, "status", "phase")
            for event in cluster.line.events[seen:]
            if event.key.resource == "pods"
        ]
        assert phases == ["Failed", "Failed", "Failed"]
        assert cluster.get("pods", "pod") is None

    @pytest.mark.parametrize(("grace", "stop", "gone_after"), [(30, "5", 5), (3, "60", 3)])
    def test_stopping_takes_the_shorter_of_grace_and_annotation(self, grace, stop, gone_after):
        cluster = cluster_of()
        annotated(cluster, stop_seconds=stop, terminationGracePeriodSeconds=grace)
        cluster.settle()
        cluster.delete("pods", "pod")
        cluster.wait(gone_after - 1)
        assert cluster.get("pods", "pod") is not None
        cluster.wait(1)
        assert cluster.get("pods", "pod") is None

    def test_device_is_free_only_after_the_last_phase(self):
        cluster = cluster_of()
        cluster.device_class()
        cluster.slice(devices=1)
        cluster.template()
        annotated(
            cluster,
            stop_seconds="10",
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        )
        cluster.settle()
        cluster.pod("next", template="gpu")
        cluster.delete("pods", "pod")
        cluster.wait(9)
        assert phase(cluster, "next") == "Pending"
        cluster.wait(2)
        assert phase(cluster, "next") == "Running"


class TestNodes:
    def test_bare_node_becomes_ready_and_takes_pods(self):
        cluster = Cluster(kubelet=True)
        cluster.create("v1", "Node", "bare")
        cluster.settle()
        node = cluster.must("nodes", "bare")
        assert node["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "pods": "110"}
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "bare"
        cluster.pod()
        cluster.settle()
        assert phase(cluster) == "Running"

    def test_given_amounts_stay(self):
        cluster = Cluster(kubelet=True)
        cluster.create("v1", "Node", "bare", status={"capacity": {"cpu": "2"}})
        cluster.settle()
        assert cluster.must("nodes", "bare")["status"]["allocatable"]["cpu"] == "2"

    def test_node_that_says_it_is_not_ready_is_left_alone(self):
        cluster = Cluster(kubelet=True)
        conditions = [{"type": "Ready", "status": "False"}]
        cluster.create("v1", "Node", "sick", status={"conditions": conditions})
        cluster.settle()
        assert cluster.must("nodes", "sick")["status"]["conditions"] == conditions

    def test_switched_off_node_leaves_pods_alone_until_it_is_switched_on(self):
        cluster = cluster_of()
        off = {"metadata": {"annotations": {"redra.dev/kubelet": "off"}}}
        cluster.patch("nodes", "n1", off)
        cluster.pod()
        cluster.settle()
        assert phase(cluster) == "Pending"
        cluster.patch("nodes", "n1", {"metadata": {"annotations": {"redra.dev/kubelet": None}}})
        cluster.settle()
        assert phase(cluster) == "Running"

    def test_node_with_a_lease_has_a_kubelet_of_its_own(self):
        cluster = cluster_of()
        cluster.create("v1", "Namespace", "kube-node-lease")
        cluster.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "n1", "namespace": "kube-node-lease"},
            }
        )
        cluster.pod()
        cluster.settle()
        assert phase(cluster) == "Pending"

    def test_slices_of_a_lost_driver_go_after_thirty_seconds(self):
        cluster = cluster_of()
        cluster.slice()
        lost = {"metadata": {"annotations": {"redra.dev/lost-drivers": DRIVER}}}
        cluster.patch("nodes", "n1", lost)
        cluster.wait(29)
        assert cluster.names("resourceslices") == ["n1-slice"]
        cluster.wait(2)
        assert cluster.names("resourceslices") == []

    def test_driver_that_comes_back_in_time_keeps_its_slices(self):
        cluster = cluster_of()
        cluster.slice()
        for drivers in (DRIVER, None):
            body = {"metadata": {"annotations": {"redra.dev/lost-drivers": drivers}}}
            cluster.patch("nodes", "n1", body)
            cluster.wait(10)
        cluster.wait(60)
        assert cluster.names("resourceslices") == ["n1-slice"]
