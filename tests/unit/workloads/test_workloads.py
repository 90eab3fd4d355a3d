"""Deployment, ReplicaSet, StatefulSet, DaemonSet and Job (controllers.md 5.5)."""

import itertools

import pytest

from app.domain.controllers.workloads import jobs
from app.domain.errors import Rejected
from app.domain.objects.write.commands import Propagation
from app.domain.values import api_resources, json_tree, timestamps
from tests.cluster import Cluster, writes

LABELS = {"app": "web"}


def template(**spec) -> dict:
    container = {"name": "main", "image": "busybox:1"}
    return {"metadata": {"labels": dict(LABELS)}, "spec": {"containers": [container], **spec}}


def workload(cluster: Cluster, kind: str, name: str = "web", pod=None, **spec) -> dict:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    body = {"template": template() if pod is None else pod, **spec}
    if kind != "Job":
        body["selector"] = {"matchLabels": dict(LABELS)}
    return cluster.apply(
        {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": body}
    )


def cluster_of(nodes: int = 2, kubelet: bool = True) -> Cluster:
    cluster = Cluster(kubelet=kubelet)
    for index in range(nodes):
        cluster.node(f"n{index + 1}")
    return cluster.settle()


def pods(cluster: Cluster) -> list[dict]:
    return [cluster.must("pods", name) for name in cluster.names("pods")]


def status(cluster: Cluster, resource: str, name: str = "web") -> dict:
    return dict(json_tree.mapping(cluster.must(resource, name), "status"))


def condition(cluster: Cluster, resource: str, kind: str, name: str = "web") -> tuple:
    for found in json_tree.objects(cluster.must(resource, name), "status", "conditions"):
        if found["type"] == kind:
            return found["status"], found["reason"], found["message"]
    raise AssertionError(f"{resource}/{name} has no condition {kind}")


class TestDeployment:
    def test_writes_come_in_the_recorded_order(self):
        cluster = cluster_of(kubelet=False)
        seen = len(cluster.line.events)
        workload(cluster, "Deployment", replicas=1)
        cluster.settle()
        made = cluster.names("replicasets")[0]
        resources = [text.split("/")[0] for text in writes(cluster.line.events[seen:])]
        assert resources[:6] == [
            "create deployments",
            "create replicasets",
            "create events",
            "update deployments",
            "create pods",
            "create events",
        ]
        assert cluster.messages("web") == [f"Scaled up replica set {made} from 0 to 1"]

    def test_set_carries_hash_revision_and_owner(self):
        cluster = cluster_of()
        workload(cluster, "Deployment", replicas=2)
        cluster.settle()
        made = cluster.must("replicasets", cluster.names("replicasets")[0])
        code = made["metadata"]["labels"]["pod-template-hash"]
        assert made["metadata"]["name"] == f"web-{code}"
        assert made["spec"]["selector"]["matchLabels"] == {**LABELS, "pod-template-hash": code}
        assert made["metadata"]["annotations"] == {
            "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "3",
            "deployment.kubernetes.io/revision": "1",
        }
        owner = made["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == (
            "Deployment", True, True,
        )  # fmt: skip
        assert all(pod["metadata"]["labels"]["pod-template-hash"] == code for pod in pods(cluster))

    def test_complete_rollout_says_so(self):
        cluster = cluster_of()
        workload(cluster, "Deployment", replicas=2)
        cluster.settle()
        found = status(cluster, "deployments")
        numbers = {key: value for key, value in found.items() if key != "conditions"}
        assert numbers == {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "terminatingReplicas": 0,
        }
        made = cluster.names("replicasets")[0]
        assert condition(cluster, "deployments", "Progressing") == (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "{made}" has successfully progressed.',
        )
        assert condition(cluster, "deployments", "Available")[1] == "MinimumReplicasAvailable"

    def test_new_template_replaces_all_pods_and_keeps_the_old_set(self):
        cluster = cluster_of()
        workload(cluster, "Deployment", replicas=3)
        cluster.settle()
        old = {pod["metadata"]["name"] for pod in pods(cluster)}
        image = [{"name": "main", "image": "busybox:2"}]
        cluster.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": image}}}})
        cluster.wait(60)
        assert len(pods(cluster)) == 3
        assert old.isdisjoint(pod["metadata"]["name"] for pod in pods(cluster))
        sets = [cluster.must("replicasets", name) for name in cluster.names("replicasets")]
        assert sorted(found["spec"]["replicas"] for found in sets) == [0, 3]
        annotations = cluster.must("deployments", "web")["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/revision"] == "2"

    def test_recreate_makes_no_new_pod_while_an_old_one_runs(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "Deployment", replicas=1, strategy={"type": "Recreate"})
        cluster.settle()
        first = cluster.names("pods")[0]
        cluster.patch("pods", first, {"status": {"phase": "Running"}}, subresource="status")
        image = [{"name": "main", "image": "busybox:2"}]
        cluster.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": image}}}})
        cluster.settle()
        assert cluster.names("pods") == [first]
        cluster.kill(first)
        cluster.settle()
        assert len(cluster.names("pods")) == 1
        assert cluster.names("pods") != [first]

    @pytest.mark.parametrize("replicas", [0, 1, 5])
    def test_scale_is_followed(self, replicas):
        cluster = cluster_of()
        workload(cluster, "Deployment", replicas=3)
        cluster.settle()
        cluster.patch("deployments", "web", {"spec": {"replicas": replicas}})
        cluster.wait(60)
        assert len(pods(cluster)) == replicas

    def test_pods_that_never_start_exceed_the_deadline(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "Deployment", replicas=1)
        cluster.wait(700)
        assert condition(cluster, "deployments", "Progressing")[:2] == (
            "False", "ProgressDeadlineExceeded",
        )  # fmt: skip

    def test_deletion_takes_sets_and_pods_along(self):
        cluster = cluster_of()
        workload(cluster, "Deployment", replicas=2)
        cluster.settle()
        cluster.delete("deployments", "web")
        cluster.wait(60)
        assert cluster.names("replicasets") == []
        assert cluster.names("pods") == []


class TestReplicaSet:
    def test_replacement_is_made_while_the_old_pod_is_still_terminating(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "ReplicaSet", replicas=1)
        cluster.settle()
        old = cluster.names("pods")[0]
        cluster.delete("pods", old)
        cluster.settle()
        assert len(cluster.names("pods")) == 2
        assert status(cluster, "replicasets")["terminatingReplicas"] == 1

    def test_finished_pod_is_replaced(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "ReplicaSet", replicas=1)
        cluster.settle()
        cluster.finish(cluster.names("pods")[0], "Failed")
        cluster.settle()
        assert len(cluster.names("pods")) == 2

    def test_pods_without_a_node_go_first(self):
        cluster = cluster_of(nodes=1, kubelet=False)
        cluster.node("small", pods=1, cpu="1")
        workload(cluster, "ReplicaSet", replicas=2, pod=template(nodeSelector={"none": "here"}))
        cluster.settle()
        cluster.patch("replicasets", "web", {"spec": {"replicas": 1}})
        cluster.settle()
        assert len(cluster.names("pods")) == 1

    @pytest.mark.parametrize("wrong", ["--5", "9" * 5_000, "²"])
    def test_pod_with_the_lower_deletion_cost_goes_first_and_a_wrong_one_is_none(self, wrong):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "ReplicaSet", replicas=3, pod=template(nodeSelector={"none": "here"}))
        cluster.settle()
        costs = dict(zip(cluster.names("pods"), ("7", wrong, "-3"), strict=True))
        for name, cost in costs.items():
            annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
            cluster.patch("pods", name, {"metadata": {"annotations": annotations}})
        left = list(costs.values())
        for cost in ("-3", wrong):
            left.remove(cost)
            cluster.patch("replicasets", "web", {"spec": {"replicas": len(left)}})
            cluster.settle()
            assert [costs[name] for name in cluster.names("pods")] == left

    def test_many_pods_of_one_step_have_different_names_and_events(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "ReplicaSet", replicas=120)
        cluster.settle()
        assert len(cluster.names("pods")) == 120
        assert len(cluster.messages("web")) == 120
        assert cluster.line.refusals == []

    def test_quota_on_pods_lets_the_rest_through_and_is_reported(self):
        cluster = cluster_of(kubelet=False)
        cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": "2"}})
        workload(cluster, "ReplicaSet", replicas=3)
        cluster.settle()
        assert len(cluster.names("pods")) == 2
        refused = [text for text in cluster.messages("web") if text.startswith("Error creating")]
        assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in refused[0]

    def test_refused_pods_stand_in_the_conditions_until_they_can_be_made(self):
        cluster = cluster_of()
        cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": "2"}})
        workload(cluster, "Deployment", replicas=3)
        cluster.wait(5)
        (name,) = cluster.names("replicasets")
        for resource, owner in (("replicasets", name), ("deployments", "web")):
            state, reason, message = condition(cluster, resource, "ReplicaFailure", owner)
            assert (state, reason) == ("True", "FailedCreate")
            assert "exceeded quota: q, requested: pods=1" in message
        assert status(cluster, "replicasets", name)["readyReplicas"] == 2
        since = cluster.line.head.revision
        cluster.wait(60)
        rewritten = [
            event.key.resource
            for event in cluster.line.events
            if event.revision > since and event.key.resource != "events"
        ]
        assert rewritten == [], "a refusal that is known is not written again"
        cluster.patch("resourcequotas", "q", {"spec": {"hard": {"pods": "5"}}})
        cluster.wait(300)
        assert len(pods(cluster)) == 3
        for resource, owner in (("replicasets", name), ("deployments", "web")):
            kinds = [
                found["type"] for found in status(cluster, resource, owner).get("conditions", [])
            ]
            assert "ReplicaFailure" not in kinds


class TestStatefulSet:
    def test_pods_come_one_after_the_other(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "StatefulSet", replicas=2, serviceName="web")
        cluster.settle()
        assert cluster.names("pods") == ["web-0"]

    def test_next_pod_waits_until_the_one_before_is_available(self):
        cluster = cluster_of()
        workload(cluster, "StatefulSet", replicas=2, minReadySeconds=30)
        cluster.wait(29)
        assert cluster.names("pods") == ["web-0"]
        cluster.wait(1)
        assert cluster.names("pods") == ["web-0", "web-1"]
        cluster.wait(30)
        changed = template(terminationGracePeriodSeconds=7)
        cluster.patch("statefulsets", "web", {"spec": {"template": changed}})
        uid = cluster.must("pods", "web-0")["metadata"]["uid"]
        cluster.wait(29)
        assert cluster.must("pods", "web-0")["metadata"]["uid"] == uid
        cluster.wait(40)
        assert cluster.must("pods", "web-0")["metadata"]["uid"] != uid

    def test_parallel_pods_come_together(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "StatefulSet", replicas=3, podManagementPolicy="Parallel")
        cluster.settle()
        assert cluster.names("pods") == ["web-0", "web-1", "web-2"]

    def test_identity_stands_in_labels_host_name_and_status(self):
        cluster = cluster_of()
        workload(cluster, "StatefulSet", replicas=2, serviceName="headless")
        cluster.settle()
        pod = cluster.must("pods", "web-1")
        assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-1"
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "headless")
        found = status(cluster, "statefulsets")
        assert (found["replicas"], found["readyReplicas"], found["updatedReplicas"]) == (2, 2, 2)
        assert found["currentRevision"] == found["updateRevision"]

    def test_replacement_waits_until_the_name_is_free(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "StatefulSet", replicas=1)
        cluster.settle()
        before = cluster.must("pods", "web-0")["metadata"]["uid"]
        cluster.delete("pods", "web-0")
        cluster.settle()
        assert cluster.must("pods", "web-0")["metadata"]["uid"] == before
        cluster.kill("web-0")
        cluster.settle()
        assert cluster.must("pods", "web-0")["metadata"]["uid"] != before

    def test_update_goes_from_the_highest_ordinal_down(self):
        cluster = cluster_of()
        workload(cluster, "StatefulSet", replicas=3)
        cluster.settle()
        seen = len(cluster.line.events)
        image = [{"name": "main", "image": "busybox:2"}]
        body = {"spec": {"template": {"spec": {"containers": image}}}}
        cluster.patch("statefulsets", "web", body)
        cluster.wait(60)
        deleted = [
            event.key.name
            for event in cluster.line.events[seen:]
            if event.type == "ObjectDeleted" and event.key.resource == "pods"
        ]
        assert deleted == ["web-2", "web-1", "web-0"]
        found = status(cluster, "statefulsets")
        assert found["currentRevision"] == found["updateRevision"]

    def test_scaling_down_removes_the_highest_ordinal(self):
        cluster = cluster_of()
        workload(cluster, "StatefulSet", replicas=3)
        cluster.settle()
        cluster.patch("statefulsets", "web", {"spec": {"replicas": 1}})
        cluster.wait(60)
        assert cluster.names("pods") == ["web-0"]

    def test_failed_pod_is_made_again(self):
        cluster = cluster_of()
        workload(cluster, "StatefulSet", replicas=1)
        cluster.settle()
        before = cluster.must("pods", "web-0")["metadata"]["uid"]
        cluster.finish("web-0", "Failed")
        cluster.settle()
        assert cluster.must("pods", "web-0")["metadata"]["uid"] != before

    @pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
    def test_status_is_written_while_pods_are_refused(self, policy):
        cluster = cluster_of(nodes=1)
        cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": "0"}})
        workload(cluster, "StatefulSet", replicas=2, serviceName="web", podManagementPolicy=policy)
        cluster.wait(60)
        found = status(cluster, "statefulsets")
        assert (found["replicas"], found["observedGeneration"]) == (0, 1)
        made = cluster.line.views.objects.keys(*api_resources.CONTROLLER_REVISIONS)
        assert found["updateRevision"] in {key.name for key in made}


class TestDaemonSet:
    def test_every_node_gets_one_pod_also_later_ones(self):
        cluster = cluster_of(nodes=2)
        workload(cluster, "DaemonSet")
        cluster.settle()
        cluster.node("n3")
        cluster.settle()
        nodes = sorted(pod["spec"]["nodeName"] for pod in pods(cluster))
        assert nodes == ["n1", "n2", "n3"]
        assert status(cluster, "daemonsets")["numberReady"] == 3

    @pytest.mark.parametrize("room", [0, 1])
    def test_status_counts_the_nodes_that_are_to_have_a_pod_while_pods_are_refused(self, room):
        cluster = cluster_of(nodes=3)
        cluster.create("v1", "ResourceQuota", "q", spec={"hard": {"pods": str(room)}})
        workload(cluster, "DaemonSet")
        cluster.wait(60)
        assert len(pods(cluster)) == room
        found = status(cluster, "daemonsets")
        assert found["desiredNumberScheduled"] == 3
        assert (found["currentNumberScheduled"], found["numberReady"]) == (room, room)
        assert (found["numberUnavailable"], found["observedGeneration"]) == (3 - room, 1)
        cluster.node("n4")
        cluster.wait(600)
        assert status(cluster, "daemonsets")["desiredNumberScheduled"] == 4
        since = cluster.line.head.revision
        cluster.wait(600)
        written = {e.key.resource for e in cluster.line.events if e.revision > since}
        assert written <= {"events"}, "a status that stays the same is not written again"
        cluster.delete("resourcequotas", "q")
        cluster.wait(1200)
        assert status(cluster, "daemonsets")["numberReady"] == 4

    def test_node_selector_and_taints_keep_pods_away(self):
        cluster = cluster_of(nodes=1)
        cluster.node("gpu", accelerator="yes")
        cluster.node("closed", accelerator="yes")
        taint = [{"key": "only", "effect": "NoSchedule"}]
        cluster.patch("nodes", "closed", {"spec": {"taints": taint}})
        workload(cluster, "DaemonSet", pod=template(nodeSelector={"accelerator": "yes"}))
        cluster.settle()
        assert [pod["spec"]["nodeName"] for pod in pods(cluster)] == ["gpu"]

    def test_pod_goes_when_the_node_may_not_have_it_any_more(self):
        cluster = cluster_of(nodes=1)
        workload(cluster, "DaemonSet")
        cluster.settle()
        taint = [{"key": "only", "effect": "NoExecute"}]
        cluster.patch("nodes", "n1", {"spec": {"taints": taint}})
        cluster.wait(40)
        assert pods(cluster) == []

    def test_pod_stays_on_a_node_that_takes_no_more_and_comes_no_more(self):
        cluster = cluster_of(nodes=1)
        workload(cluster, "DaemonSet")
        cluster.settle()
        (before,) = pods(cluster)
        taint = [{"key": "only", "effect": "NoSchedule"}]
        cluster.patch("nodes", "n1", {"spec": {"taints": taint}})
        cluster.wait(40)
        assert [pod["metadata"]["uid"] for pod in pods(cluster)] == [before["metadata"]["uid"]]
        found = status(cluster, "daemonsets")
        assert (found["desiredNumberScheduled"], found["numberMisscheduled"]) == (0, 1)
        cluster.delete("pods", before["metadata"]["name"])
        cluster.wait(40)
        assert pods(cluster) == []

    def test_new_template_replaces_one_pod_at_a_time(self):
        cluster = cluster_of(nodes=3)
        workload(cluster, "DaemonSet")
        cluster.settle()
        image = [{"name": "main", "image": "busybox:2"}]
        body = {"spec": {"template": {"spec": {"containers": image}}}}
        cluster.patch("daemonsets", "web", body)
        cluster.wait(60)
        found = status(cluster, "daemonsets")
        assert (found["updatedNumberScheduled"], found["numberAvailable"]) == (3, 3)


def job_template(seconds: str = "5", code: str = "0", policy: str = "Never") -> dict:
    made = template(restartPolicy=policy)
    made["metadata"]["annotations"] = {
        "redra.dev/run-seconds": seconds,
        "redra.dev/exit-code": code,
    }
    return made


class TestJob:
    def test_pods_run_until_the_completions_are_reached(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(), completions=3, parallelism=2)
        cluster.settle()
        assert len(pods(cluster)) == 2
        cluster.wait(60)
        found = status(cluster, "jobs")
        assert (found["succeeded"], found.get("active")) == (3, None)
        assert condition(cluster, "jobs", "Complete") == (
            "True", "CompletionsReached", "Reached expected number of succeeded pods",
        )  # fmt: skip
        assert cluster.messages("web")[-1] == "Job completed"

    def test_finalizer_goes_when_the_pod_is_counted(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template())
        cluster.settle()
        name = cluster.names("pods")[0]
        assert cluster.must("pods", name)["metadata"]["finalizers"] == [
            "batch.kubernetes.io/job-tracking"
        ]
        cluster.wait(10)
        assert "finalizers" not in cluster.must("pods", name)["metadata"]

    def test_too_many_failures_fail_the_job_with_growing_pauses(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(code="1"), backoffLimit=2)
        cluster.wait(200)
        assert status(cluster, "jobs")["failed"] == 3
        assert condition(cluster, "jobs", "Failed")[1] == "BackoffLimitExceeded"
        starts = [
            event.stamp.time
            for event in cluster.line.events
            if event.key.resource == "pods" and event.type == "ObjectCreated"
        ]
        gaps = [(after - before) // 1_000_000 for before, after in itertools.pairwise(starts)]
        assert gaps == [15, 25]

    def test_deadline_ends_a_running_job(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template("1000"), activeDeadlineSeconds=30)
        cluster.wait(100)
        assert condition(cluster, "jobs", "Failed")[1] == "DeadlineExceeded"
        assert pods(cluster) == []

    def test_indexed_job_completes_every_index(self):
        cluster = cluster_of()
        workload(
            cluster, "Job", pod=job_template(),
            completions=3, parallelism=3, completionMode="Indexed",
        )  # fmt: skip
        cluster.settle()
        indexes = {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
            for pod in pods(cluster)
        }
        assert indexes == {"0", "1", "2"}
        cluster.wait(60)
        assert status(cluster, "jobs")["completedIndexes"] == "0-2"

    def test_suspended_job_has_no_pods_until_it_is_resumed(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(), suspend=True)
        cluster.settle()
        assert pods(cluster) == []
        assert condition(cluster, "jobs", "Suspended")[0] == "True"
        cluster.patch("jobs", "web", {"spec": {"suspend": False}})
        cluster.wait(30)
        assert condition(cluster, "jobs", "Complete")[0] == "True"

        said = cluster.messages("web")
        assert [text for text in said if "Job" in text] == [
            "Job suspended", "Job resumed", "Job completed",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("manager", "made"), [("example.com/queue", 0), ("kubernetes.io/job-controller", 1)]
    )
    def test_job_of_another_controller_is_left_to_it(self, manager, made):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(), managedBy=manager)
        cluster.settle()
        assert len(pods(cluster)) == made
        assert bool(status(cluster, "jobs")) == bool(made)
        with pytest.raises(Rejected, match=r"spec.managedBy: .*field is immutable"):
            cluster.patch("jobs", "web", {"spec": {"managedBy": None}})

    def test_evicted_pod_does_not_count_when_the_policy_says_so(self):
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
        cluster = cluster_of()
        cluster.device_class()
        cluster.slice("n1")
        cluster.template()
        made = job_template("1000", code="143")
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        workload(
            cluster, "Job", pod=made, backoffLimit=0, podFailurePolicy={"rules": [rule]},
            podReplacementPolicy="Failed",
        )  # fmt: skip
        cluster.wait(5)
        (first,) = cluster.names("pods")
        cluster.rule()
        cluster.wait(40)
        assert cluster.messages(first).count("Marking for deletion") == 1
        found = status(cluster, "jobs")
        assert (found.get("failed", 0), found["active"]) == (0, 1)
        (second,) = cluster.names("pods")
        assert second != first

    @pytest.mark.parametrize(
        ("values", "operator", "failed"),
        [([3, 42], "In", 1), ([3], "In", 3), ([3], "NotIn", 1), ([42], "NotIn", 3)],
    )
    def test_exit_code_may_fail_the_whole_job(self, values, operator, failed):
        codes = {"operator": operator, "values": values}
        rules = [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": codes},
        ]
        cluster = cluster_of()
        workload(
            cluster, "Job", pod=job_template(code="42"), backoffLimit=2,
            podFailurePolicy={"rules": rules}, podReplacementPolicy="Failed",
        )  # fmt: skip
        cluster.wait(200)
        assert status(cluster, "jobs")["failed"] == failed
        _, reason, message = condition(cluster, "jobs", "Failed")
        if failed == 1:
            (name,) = cluster.names("pods")
            assert (reason, message) == (
                "PodFailurePolicy",
                f"Container main for pod default/{name} failed with exit code 42 "
                "matching FailJob rule at index 1",
            )
            assert cluster.messages("web")[-1] == message
        else:
            assert reason == "BackoffLimitExceeded"

    def test_deleted_pod_counts_as_failed_and_is_replaced(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template("1000"))
        cluster.settle()
        cluster.delete("pods", cluster.names("pods")[0])
        cluster.wait(30)
        assert status(cluster, "jobs")["failed"] == 1
        assert len(pods(cluster)) == 1

    def test_deleted_job_frees_its_pods(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template("1000"))
        cluster.settle()
        cluster.delete("jobs", "web", propagation=Propagation.BACKGROUND)
        cluster.wait(60)
        assert pods(cluster) == []

    def test_pods_of_a_deleted_job_stay_and_can_end(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template("1000"))
        cluster.settle()
        cluster.delete("jobs", "web")
        cluster.wait(60)
        assert cluster.names("jobs") == []
        (pod,) = pods(cluster)
        assert "ownerReferences" not in pod["metadata"]
        assert "finalizers" not in pod["metadata"]
        cluster.delete("pods", pod["metadata"]["name"])
        cluster.wait(60)
        assert pods(cluster) == []

    def test_finished_job_goes_after_its_time_to_live(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(), ttlSecondsAfterFinished=60)
        cluster.wait(30)
        assert cluster.names("jobs") == ["web"]
        cluster.wait(120)
        assert cluster.names("jobs") == []

    def test_finished_job_of_another_controller_goes_after_its_time_to_live_too(self):
        cluster = cluster_of()
        workload(
            cluster, "Job", pod=job_template(), ttlSecondsAfterFinished=60,
            managedBy="example.com/queue",
        )  # fmt: skip
        ended = {
            "type": "Complete", "status": "True",
            "lastTransitionTime": timestamps.seconds_text(cluster.line.now),
        }  # fmt: skip
        cluster.patch("jobs", "web", {"status": {"conditions": [ended]}}, subresource="status")
        cluster.wait(30)
        assert cluster.names("jobs") == ["web"]
        cluster.wait(120)
        assert cluster.names("jobs") == []

    def test_unfinished_job_of_another_controller_outlives_its_time_to_live(self):
        cluster = cluster_of()
        workload(
            cluster, "Job", pod=job_template(), ttlSecondsAfterFinished=0,
            managedBy="example.com/queue",
        )  # fmt: skip
        cluster.wait(30)
        assert cluster.names("jobs") == ["web"]

    def test_restart_on_failure_keeps_the_pod(self):
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(code="1", policy="OnFailure"), backoffLimit=2)
        cluster.wait(16)
        assert len(pods(cluster)) == 1
        cluster.wait(100)
        assert condition(cluster, "jobs", "Failed")[1] == "BackoffLimitExceeded"


def test_restarted_controllers_make_no_pod_twice():
    cluster = cluster_of(kubelet=False)
    workload(cluster, "Deployment", replicas=3)
    cluster.settle()
    for controller in cluster.fresh_controllers():
        for event in cluster.line.events:
            controller.fold(event, cluster.line.views)
        while (plan := controller.step(cluster.line.views, cluster.line.now)) is not None:
            assert all(getattr(c, "key", ("", ""))[1] != "pods" for c in plan.commands), plan


@pytest.mark.parametrize("seconds", [0, 1, 3, 5, 7, 12, 17])
def test_restart_in_the_middle_changes_nothing(seconds):
    """All controllers begin anew from the log at some instant; the end is the same."""

    def run(cut: int | None) -> tuple[dict, list[str]]:
        cluster = cluster_of()
        workload(cluster, "Job", pod=job_template(), completions=3, parallelism=2)
        workload(cluster, "Deployment", name="site", replicas=2)
        if cut is not None:
            cluster.wait(cut)
            fresh = cluster.fresh_controllers()
            for event in cluster.line.events:
                for controller in fresh:
                    controller.fold(event, cluster.line.views)
            cluster.line.controllers = fresh
            cluster.wait(60 - cut)
        else:
            cluster.wait(60)
        return status(cluster, "jobs"), cluster.names("pods")

    assert run(seconds) == run(None)


class TestAbsurdNumbers:
    """A workload that wants billions of pods costs a step no more than one that wants a few."""

    def test_ordered_set_of_billions_makes_its_first_pod(self):
        cluster = cluster_of(kubelet=False)
        workload(cluster, "StatefulSet", replicas=2**31 - 1)
        cluster.settle()
        assert cluster.names("pods") == ["web-0"]

    def test_indexed_job_of_billions_makes_what_runs_at_once(self):
        cluster = cluster_of(kubelet=False)
        pod = template(restartPolicy="Never")
        workload(
            cluster, "Job", pod=pod, completions=2**31 - 1, parallelism=2, completionMode="Indexed"
        )
        cluster.settle()
        assert len(cluster.names("pods")) == 2

    @pytest.mark.parametrize(
        "text",
        ["0-2147483646", "0-" + "9" * 30, "x-y,,-,5-", "\u0663-4", ",".join(["0-99999"] * 50)],
    )
    def test_completed_indexes_are_read_as_far_as_they_can_be(self, text):
        assert len(jobs._indexes(text)) <= jobs.INDEXES_MAX


def test_a_volume_claim_without_metadata_stops_no_other_set():
    cluster = cluster_of(kubelet=False)
    claims = [{"spec": {"accessModes": ["ReadWriteOnce"]}}]
    workload(cluster, "StatefulSet", name="bad", replicas=1, volumeClaimTemplates=claims)
    workload(cluster, "StatefulSet", name="good", replicas=1)
    cluster.settle()
    assert "good-0" in cluster.names("pods")
