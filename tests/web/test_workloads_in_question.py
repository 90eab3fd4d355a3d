"""What is asked about a workload leads to its pods, present and gone, and to their first causes."""

import pytest

from tests import draws
from tests.api.serving import serving
from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.test_incident_stories import stored
from tests.web.test_named_causes import DRIVER, why

LABELS = {"app": "web"}


def workload(kind, name="web", *, claims=True, **spec):
    container = {"name": "main", "image": "example.com/job:1"}
    pod = {"containers": [container]}
    if claims:
        container["resources"] = {"claims": [{"name": "d"}]}
        pod["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": "one"}]
    made = {"template": {"metadata": {"labels": LABELS}, "spec": pod}, **spec}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        made["selector"] = {"matchLabels": LABELS}
    return {"apiVersion": f"{'batch' if kind == 'Job' else 'apps'}/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "lab"}, "spec": made}  # fmt: skip


def world(devices, *more):
    published = slice_of("s", DRIVER, "n", [{"name": name} for name in devices], nodeName="n")
    return {"apply": [space("lab"), class_of("c", DRIVER), node("n"), published,
                      template("one", "lab", ask("c")), *more]}  # fmt: skip


def quota(**hard):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard},
            "metadata": {"name": "few", "namespace": "lab"}}  # fmt: skip


def deployment_that_lost_a_device():
    return (
        world(("x", "y")),
        {"apply": [workload("Deployment", replicas=2)]},
        {"wait": 5},
        {"apply": [rule("bad", DRIVER, key="ecc", effect="NoExecute") | {
            "spec": {"deviceSelector": {"driver": DRIVER, "pool": "n", "device": "x"},
                     "taint": {"key": "ecc", "effect": "NoExecute"}}}]},
        {"wait": 5},
    )  # fmt: skip


def deployment_that_is_gone():
    return (*deployment_that_lost_a_device(), {"delete": "deployment/lab/web"}, {"wait": 60})


def deployment_of_another_image():
    made = workload("Deployment", replicas=1, claims=False)
    other = {"spec": {"containers": [{"name": "main", "image": "example.com/job:2"}]}}
    return (
        world(("x",)), {"apply": [made]}, {"wait": 5},
        {"patch": {"spec": {"template": other}}, "of": "deployment/lab/web"}, {"wait": 60},
    )  # fmt: skip


OTHER_IMAGE = {"spec": {"template": {"spec": {"containers": [
    {"name": "main", "image": "example.com/job:2"}]}}}}  # fmt: skip


def rollout_over_a_quota():
    """The pods of the old template use up a quota, so no claim is made for the new one."""
    hard = quota(**{"c.deviceclass.resource.k8s.io/devices": "2"})
    return (
        world(("x", "y", "z"), hard), {"apply": [workload("Deployment", replicas=2)]}, {"wait": 5},
        {"patch": OTHER_IMAGE, "of": "deployment/lab/web"}, {"wait": 60},
    )  # fmt: skip


def set_that_is_updated_by_hand():
    by_hand = {"replicas": 1, "serviceName": "web", "updateStrategy": {"type": "OnDelete"}}
    return (
        world(("x",)), {"apply": [workload("StatefulSet", **by_hand)]}, {"wait": 5},
        {"patch": OTHER_IMAGE, "of": "statefulset/lab/web"}, {"wait": 60},
    )  # fmt: skip


def pods_over_a_quota():
    parallel = {"replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "web"}
    return (
        world(("x",), quota(pods="1")),
        {"apply": [workload("StatefulSet", claims=False, **parallel)]},
        {"wait": 5},
        {"apply": [workload("Job", "train", claims=False, parallelism=1)]},
        {"wait": 5},
    )  # fmt: skip


def pods_that_were_refused_before():
    grown = {"spec": {"hard": {"pods": "9"}}}
    return (*pods_over_a_quota(), {"patch": grown, "of": "resourcequota/lab/few"}, {"wait": 200})


def set_that_waits_for_its_first_pod():
    made = workload("StatefulSet", replicas=3, serviceName="web")
    return world(()), {"apply": [made]}, {"wait": 5}


def job_without_leave():
    return world(("x",)), {"apply": [workload("Job", "train", suspend=True)]}, {"wait": 5}


def job_of_a_queue():
    job = workload("Job", "train", suspend=True)
    job["metadata"]["labels"] = {"x.test/queue-name": "night", "x.test/team": "a"}
    return world(("x",)), {"apply": [job]}, {"wait": 5}


def cron_job(**spec):
    """A CronJob whose jobs would be made at night."""
    job = workload("Job", "train", suspend=True)
    template = {"spec": {**job["spec"], "suspend": False}}
    made = {"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "lab"},
            "spec": {"schedule": "5 1 * * *", "jobTemplate": template, **spec}}  # fmt: skip
    return world(("x",)), {"apply": [made]}, {"wait": 5}


def cron_job_without_leave():
    return cron_job(suspend=True)


def driver_that_tolerates_no_taint():
    taint = {"key": "x.test/card", "value": "present", "effect": "NoSchedule"}
    return (
        world(("x",), node("tainted", taints=[taint])),
        {"apply": [workload("DaemonSet", "driver", claims=False)]}, {"wait": 5},
    )  # fmt: skip


def driver_that_leaves_a_new_node_out():
    taint = {"key": "x.test/card", "value": "present", "effect": "NoSchedule"}
    wants = pod("job", "lab", template="one")
    wants["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "tainted"}
    wants["spec"]["tolerations"] = [{"operator": "Exists"}]
    return (
        world(("x",), node("tainted", taints=[taint])),
        {"apply": [workload("DaemonSet", "driver", claims=False)]}, {"wait": 5},
        {"apply": [wants]}, {"wait": 5},
    )  # fmt: skip


WITHOUT_DEVICE = "CDI device injection failed: unresolvable CDI devices"


def container_that_is_not_made_again():
    """A node was booted anew: the kubelet prepared the claim, and its device is not known."""
    waiting = {"reason": "CreateContainerError", "message": WITHOUT_DEVICE}
    report = {"name": "main", "image": "example.com/job:1", "imageID": "", "ready": False,
              "restartCount": 2, "state": {"waiting": waiting},
              "lastState": {"terminated": {"exitCode": 255, "reason": "Unknown"}}}  # fmt: skip
    running = {"phase": "Running", "containerStatuses": [report]}
    return (
        world(("x",), claim("want", "lab", ask("c")), pod("job", "lab", claim="want")),
        {"wait": 5},
        {"status": running, "of": "pod/lab/job"},
        {"wait": 5},
    )  # fmt: skip


def deployment_whose_class_is_gone():
    return (
        world(("x",)), {"delete": "deviceclass/c"},
        {"apply": [workload("Deployment", replicas=1)]}, {"wait": 5},
    )  # fmt: skip


def rule_that_is_gone():
    return (*deployment_that_lost_a_device(), {"delete": "devicetaintrule/bad"}, {"wait": 5})


def deployment_on_a_drained_node():
    """What kubectl drain does: it cordons the node, and evicts the pods there."""
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
               "message": "Eviction API: evicting"}  # fmt: skip
    stays = pod("stays", "lab", template="one")
    return (
        world(("x", "y"), stays), {"wait": 5},
        {"patch": {"spec": {"unschedulable": True}}, "of": "node/n"},
        {"status": {"conditions": [evicted]}, "of": "pod/lab/stays"},
        {"delete": "pod/lab/stays"},
        {"apply": [workload("Deployment", replicas=1)]}, {"wait": 5},
    )  # fmt: skip


EVICTED = "1 pod was evicted: DeletionByDeviceTaintManager: "

ROWS = [
    (deployment_on_a_drained_node, "deployment/web", "node n is cordoned, by "),
    (deployment_on_a_drained_node, "pod/stays", "its node n was cordoned, by "),
    (deployment_that_lost_a_device, "deployment/web", "1 of 2 wanted pods runs"),
    (deployment_that_lost_a_device, "deployment/web", "1 pod is waiting: cannot allocate all "),
    (deployment_that_lost_a_device, "deployment/web", "taint ecc:NoExecute by rule bad is not "),
    (deployment_that_lost_a_device, "deployment/web", EVICTED),
    (deployment_that_lost_a_device, "deployment/web", "/n/x, tainted ecc:NoExecute by rule bad"),
    (deployment_that_lost_a_device, "devicetaintrule/bad",
     "1 pod was evicted for its taint pod lab/web-"),
    (deployment_that_lost_a_device, "devicetaintrule/bad", f": {DRIVER}/n/x (revision "),
    (deployment_whose_class_is_gone, "deployment/web", "class c does not exist"),
    (deployment_whose_class_is_gone, "deployment/web", "DeviceClass c was deleted"),
    (rule_that_is_gone, "devicetaintrule/bad", "1 pod was evicted for its taint pod lab/web-"),
    (deployment_that_is_gone, "deployment/web", EVICTED),
    (deployment_that_is_gone, "deployment/web", "kube-system:generic-garbage-collector: lab/web-"),
    (deployment_of_another_image, "deployment/web",
     "1 pod was deleted by system:serviceaccount:kube-system:replicaset-controller: lab/web-"),
    (rollout_over_a_quota, "deployment/web",
     "2 of 2 wanted pods run, both of them with an older template"),
    (set_that_is_updated_by_hand, "statefulset/web",
     "1 of 1 wanted pod runs, with an older template"),
    (pods_over_a_quota, "statefulset/web", "1 of 2 wanted pods runs"),
    (pods_over_a_quota, "statefulset/web", "its pods are refused"),
    (pods_over_a_quota, "statefulset/web", "exceeded quota: few, requested: pods=1"),
    (pods_over_a_quota, "statefulset/web", "pod lab/web-0 counts for 1"),
    (pods_over_a_quota, "job/train", "exceeded quota: few, requested: pods=1"),
    (pods_over_a_quota, "resourcequota/few", "it refuses pods of job lab/train"),
    (pods_over_a_quota, "resourcequota/few", "pod lab/web-0 counts for 1"),
    (pods_that_were_refused_before, "statefulset/web", ", and one was made since: exceeded quota"),
    (set_that_waits_for_its_first_pod, "statefulset/web",
     "2 pods are made only when lab/web-0 is ready: one by one"),
    (driver_that_tolerates_no_taint, "daemonset/driver", "1 of 1 pod runs"),
    (driver_that_tolerates_no_taint, "daemonset/driver",
     "it wants no pod on node tainted: taint x.test/card=present:NoSchedule is not tolerated"),
    (driver_that_leaves_a_new_node_out, "pod/job",
     "DaemonSet lab/driver has a pod on each node with slices and wants none on tainted: taint "),
    (driver_that_leaves_a_new_node_out, "pod/job",
     "node tainted is tainted x.test/card=present:NoSchedule, by redra:incidents at "),
    (container_that_is_not_made_again, "pod/job",
     "is on node n, where a container waits to run again"),
    (container_that_is_not_made_again, "pod/job",
     f"container main waits: CreateContainerError: {WITHOUT_DEVICE}; it ended before with exit "
     "code 255 (Unknown) and was restarted 2 times"),
    (job_without_leave, "job/train", "spec.suspend is true: its controller makes no pods (rev"),
    (cron_job, "cronjob/nightly",
     "no controller here makes its jobs, which are due at 5 1 * * * (A18)"),
    (cron_job_without_leave, "cronjob/nightly",
     "spec.suspend is true: its controller makes no jobs"),
    (job_of_a_queue, "job/train", "makes no pods; it may wait for its queue: "
     "x.test/queue-name=night (rev"),
]  # fmt: skip


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("make", dict.fromkeys(row[0] for row in ROWS))
async def test_answer_about_a_workload_leads_to_its_pods(make):
    for _, about, told in (row for row in ROWS if row[0] is make):
        assert told in await why(make(), about)


async def test_node_that_a_driver_leaves_out_is_on_the_landing_page():
    steps = driver_that_leaves_a_new_node_out()
    async with serving(store=await stored(Invented(told=(), steps=steps).incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    causes = [cause for item in items for cause in item.get("causes", ())]
    assert "node tainted has no slice of any driver, unlike 1 other node" in causes
    assert any(cause.startswith("DaemonSet lab/driver has a pod on each") for cause in causes)
    taint = "node tainted is tainted x.test/card=present:NoSchedule, by redra:incidents at "
    assert any(cause.startswith(taint) for cause in causes)


async def test_pods_of_a_finished_rollout_have_no_older_template():
    said = await why(deployment_of_another_image(), "deployment/web")
    assert "1 of 1 wanted pod runs " in said
    assert "older template" not in said


async def test_workload_of_a_name_that_begins_alike_is_another():
    steps = deployment_that_lost_a_device()
    other = workload("Deployment", "web-of-others", replicas=1, claims=False)
    said = await why((*steps, {"apply": [other]}, {"wait": 5}), "deployment/web-of-others")
    assert "1 of 1 wanted pod runs" in said
    assert "evicted" not in said


async def test_pod_whose_container_waits_to_run_again_is_a_finding():
    made = Invented(told=(), steps=container_that_is_not_made_again()).incident()
    async with serving(store=await stored(made)) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    assert [item["text"] for item in items] == [
        "1 pod has a node and runs no more there: container main waits: CreateContainerError: "
        f"{WITHOUT_DEVICE}; it ended before with exit code 255 (Unknown) and was restarted 2 times"
    ]


async def test_node_that_is_not_ready_is_a_finding_while_pods_there_have_claims():
    silent = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
              "message": "Kubelet stopped posting node status."}  # fmt: skip
    steps = (
        world(("x",), node("empty"), pod("job", "lab", template="one")), {"wait": 5},
        {"status": {"conditions": [silent]}, "of": "node/n"},
        {"status": {"conditions": [silent]}, "of": "node/empty"},
        {"wait": 5},
    )  # fmt: skip
    path = "/redra/v1/histories/default/findings"
    async with serving(store=await stored(Invented(told=(), steps=steps).incident())) as server:
        items = (await server.get(path))["items"]
        elsewhere = (await server.get(f"{path}?namespace=default"))["items"]
    texts = [item["text"] for item in items if item["kind"] == "UnreadyNodes"]
    assert texts == [
        "1 node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): "
        "1 pod there still has 1 claim"
    ]
    assert not [item for item in elsewhere if item["kind"] == "UnreadyNodes"]
