"""Incidents with which the pages were walked by keyboard, their causes written down before."""

from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import playing
from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.more_incidents import quota
from tests.web.night_incidents import deployment
from tests.web.reported_incidents import lab, one

ZONE = "topology.kubernetes.io/zone"


def driver_is_too_old(new):
    """A selector wants a later version of the driver than a node has."""
    driver = f"{new('d')}.test"
    of = f"device.attributes['{driver}'].driverVersion"
    wanted = ask("c", selectors=cel(f"{of}.compareTo(semver('570.0.0')) >= 0"))
    old = {"driverVersion": {"version": "565.12.0"}}
    return Invented(
        about="train",
        told=(r"driverVersion is 565\.12\.0", r"semver\('570\.0\.0'\)"),
        steps=(
            {"apply": lab(driver, one(driver, attributes=old))},
            {"apply": [claim("want", "lab", wanted), pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )


def toleration_has_another_effect(new):
    """A claim tolerates that its pod is not evicted, and the rule keeps new pods away."""
    driver, hot = f"{new('d')}.test", new("thermal")
    patience = {"key": "x.test/hot", "operator": "Exists", "effect": "NoExecute"}
    return Invented(
        about="train",
        told=(r"x\.test/hot:NoSchedule", rf"rule {hot}\b", "hot Exists:NoExecute"),
        steps=(
            {"apply": [*lab(driver, one(driver)),
                       rule(hot, driver, key="x.test/hot", effect="NoSchedule")]},
            {"apply": [claim("want", "lab", ask("c", tolerations=[patience])),
                       pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def zone_has_no_devices(new):
    """A pod wants a zone whose nodes have no devices; they are in another zone."""
    driver, here, there = f"{new('d')}.test", new("zone"), new("zone")
    job = pod("train", "lab", claim="want")
    job["spec"]["nodeSelector"] = {ZONE: there}
    return Invented(
        about="train",
        told=(rf"nodeSelector of the pod wants {ZONE}={there}", rf"node gpus has {ZONE}={here}"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("gpus", {ZONE: here}),
                       node("plain", {ZONE: there}), one(driver, on="gpus")]},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 30},
        ),
    )  # fmt: skip


def affinity_wants_a_label_that_went(new):
    """A node affinity wants a product, and the node with the devices has no such label."""
    driver, product = f"{new('d')}.test", new("product")
    job = pod("train", "lab", claim="want")
    wanted = {"key": "x.test/product", "operator": "In", "values": [product]}
    job["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}}  # fmt: skip
    return Invented(
        about="train",
        told=(rf"node affinity of the pod wants x\.test/product in \({product}\)",
              r"node n has no label x\.test/product"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 30},
        ),
    )  # fmt: skip


def template_is_misspelled(new):
    """A pod names a template that is not there."""
    driver, typo = f"{new('d')}.test", new("tmpl")
    return Invented(
        about="train",
        told=(rf'resourceclaimtemplate\.resource\.k8s\.io "{typo}" not found',),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("gpus", "lab", ask("c"))]},
            {"apply": [pod("train", "lab", template=typo)]},
            {"wait": 30},
        ),
    )


def no_alternative_fits(new):
    """Of two alternatives one wants more devices than there are, the other excludes them all."""
    driver = f"{new('d')}.test"
    newest = cel(f"device.attributes['{driver}'].gen >= 5")
    wanted = {"name": "dev", "firstAvailable": [
        {"name": "big", "deviceClassName": "c", "count": 4},
        {"name": "small", "deviceClassName": "c", "selectors": newest}]}  # fmt: skip
    devices = [{"name": f"x{number}", "attributes": {"gen": {"int": 4}}} for number in range(2)]
    return Invented(
        about="train",
        told=("dev/big wants 4 devices, 2 of 2", "dev/small wants 1 device, 0 of 2", r"gen is 4"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", devices, nodeName="n"))},
            {"apply": [claim("want", "lab", wanted), pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )


def template_was_replaced_between_two_pods(new):
    """A template is made anew with another selector; only the pod before it gets a device."""
    driver, name, first = f"{new('d')}.test", new("tmpl"), new("first")
    newest = cel(f"device.attributes['{driver}'].gen >= 5")
    devices = [{"name": f"x{number}", "attributes": {"gen": {"int": 4}}} for number in range(2)]
    return Invented(
        about="train",
        told=(rf"template lab/{name} was made anew by redra.{{0,80}} pod {first} got devices",
              r"gen >= 5"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")),
                       template(name, "lab", ask("c"))]},
            {"apply": [pod(first, "lab", template=name)]},
            {"wait": 30},
            {"delete": f"resourceclaimtemplate/lab/{name}"},
            {"apply": [template(name, "lab", ask("c", selectors=newest))]},
            {"apply": [pod("train", "lab", template=name)]},
            {"wait": 30},
        ),
    )  # fmt: skip


def device_changed_under_its_claim(new):
    """A driver changes an attribute that the claim of a running pod selects by."""
    driver, name = f"{new('d')}.test", new("slice")
    whole = cel(f"device.attributes['{driver}'].mig == false")
    split = [{"name": "x", "attributes": {"mig": {"bool": True}}}]
    return Invented(
        about="train",
        told=(rf"{driver}/n/x no longer matches request dev",
              rf"slice {name} was written with mig changed from false to true, by redra"),
        steps=(
            {"apply": lab(driver, one(driver, name, attributes={"mig": {"bool": False}}))},
            {"apply": [claim("want", "lab", ask("c", selectors=whole)),
                       pod("train", "lab", claim="want")]},
            {"wait": 30},
            {"apply": [slice_of(name, driver, "n", split, generation=2, nodeName="n")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def controller_of_claims_is_off(new):
    """Somebody has switched off the controller that makes claims from templates."""
    driver = f"{new('d')}.test"
    off = {"redra.dev/controllers-off": "claims"}
    return Invented(
        about="train",
        off=("claims",),
        told=("controller claims is off, so no claim is made for the pod; switched off, by redra",),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("gpus", "lab", ask("c")),
                       {"apiVersion": "v1", "kind": "Namespace",
                        "metadata": {"name": "kube-system", "annotations": off}}]},
            {"apply": [pod("train", "lab", template="gpus")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def finalizer_keeps_a_pod_that_has_ended(new):
    """A deleted pod has ended and given its device back; a finalizer keeps it in the API."""
    driver, holder = f"{new('d')}.test", f"x.test/{new('backup')}"
    job = pod("train", "lab", claim="want")
    job["metadata"]["finalizers"] = [holder]
    return Invented(
        about="train",
        told=(r"has ended on node n, and finalizers keep it",
              rf"finalizer {holder} keeps it", "it uses no devices any more"),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim("want", "lab", ask("c")), job]},
            {"wait": 30},
            {"delete": "pod/lab/train"},
            {"wait": 60},
        ),
    )  # fmt: skip


def port_of_the_node_is_in_use(new):
    """Two servers want the same port of the node that has the devices."""
    driver, first = f"{new('d')}.test", new("server")
    pods = [pod(name, "lab", claim=f"for-{name}") for name in (first, "second")]
    for each in pods:
        each["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000}]
    devices = slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n")
    return Invented(
        about="second",
        told=("didn't have free ports",
              rf"host port 8000/TCP of node n is in use by pod lab/{first}\b"),
        steps=(
            {"apply": lab(driver, devices)},
            {"apply": [claim(f"for-{first}", "lab", ask("c")), pods[0]]},
            {"wait": 30},
            {"apply": [claim("for-second", "lab", ask("c")), pods[1]]},
            {"wait": 30},
        ),
    )  # fmt: skip


def quota_was_lowered_under_a_deployment(new):
    """A quota of pods was lowered to what is in use, and a Deployment cannot grow any more."""
    driver, name = f"{new('d')}.test", new("limit")
    spec = pod("x", "lab", template="t")["spec"]
    devices = [{"name": f"x{number}"} for number in range(4)]
    return Invented(
        about="deployment/web",
        told=(rf"exceeded quota: {name}\b",
              rf"quota {name} allowed 4 of pods until it was written with 2, by "),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")),
                       quota(name, "lab", pods="4"), template("t", "lab", ask("c")),
                       deployment("web", spec, 2)]},
            {"wait": 30},
            {"patch": {"spec": {"hard": {"pods": "2"}}}, "of": f"resourcequota/lab/{name}"},
            {"wait": 30},
            {"patch": {"spec": {"replicas": 3}}, "of": "deployment/lab/web"},
            {"wait": 60},
        ),
    )  # fmt: skip


def quota_was_lowered_under_services(new):
    """A quota of services was lowered below those that are there: no next one can be made."""
    name = new("limit")
    services = [
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
         "metadata": {"name": new("svc"), "namespace": "lab"}}
        for _ in range(2)
    ]  # fmt: skip
    return Invented(
        about=f"resourcequota/{name}",
        told=(
            r"2 of 1 services used",
            rf"quota {name} allowed 3 of services until it was written with 1, by ",
        ),
        steps=(
            {"apply": [space("lab"), quota(name, "lab", services="3"), *services]},
            {"wait": 30},
            {"patch": {"spec": {"hard": {"services": "1"}}}, "of": f"resourcequota/lab/{name}"},
            {"wait": 30},
        ),
    )


def budget_lacks_a_pod(new):
    """A budget wants two pods, of which one waits for a device."""
    driver, here, there = f"{new('d')}.test", new("pod"), new("pod")
    pods = [pod(name, "lab", template="gpus") for name in (here, there)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "x"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
              "metadata": {"name": "keep", "namespace": "lab"},
              "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}}  # fmt: skip
    return Invented(
        about="poddisruptionbudget/keep",
        told=(rf"it protects 2 pods: ({here}, {there}|{there}, {here})",
              rf"pod ({here}|{there}) is not ready",
              "1 pod healthy, 2 wanted: 1 pod missing, so no eviction is allowed"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("gpus", "lab", ask("c")), budget]},
            {"apply": pods},
            {"wait": 30},
        ),
    )  # fmt: skip


def label_was_taken_from_the_node(new):
    """A pod chooses a node by a label that the node had when the pod before it came."""
    driver, team = f"{new('d')}.test", new("team")
    jobs = [pod(name, "lab", claim=f"of-{name}") for name in ("first", "train")]
    for job in jobs:
        job["spec"]["nodeSelector"] = {"x.test/team": team}
    first, second = ([claim(f"of-{name}", "lab", ask("c")), job]
                     for name, job in zip(("first", "train"), jobs, strict=True))  # fmt: skip
    cards = [{"name": "x0"}, {"name": "x1"}]
    return Invented(
        about="train",
        told=(rf"node gpus had x\.test/team={team} until that was taken away, by redra",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("gpus", {"x.test/team": team}),
                       slice_of("s", driver, "gpus", cards, nodeName="gpus")]},
            {"apply": first},
            {"wait": 30},
            {"patch": {"metadata": {"labels": {"x.test/team": None}}}, "of": "node/gpus"},
            {"apply": second},
            {"wait": 30},
        ),
    )  # fmt: skip


def holder_cannot_give_its_device_back(new):
    """A pod waits for the device of one that was deleted and that its kubelet cannot end."""
    driver, before = f"{new('d')}.test", new("notebook")
    said = f"error killing pod: unprepare dynamic resources: DRA driver {driver} is not registered"
    return Invented(
        about="train",
        told=(rf"pod lab/{before}, which was deleted .{{0,60}}; deletion was asked for by redra",
              rf"the kubelet of node n said, 14 times: FailedKillPod: .{{0,70}}{driver} is not"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("old", "lab", ask("c")), pod(before, "lab", claim="old")]},
            {"wait": 5},
            {"status": {"phase": "Running"}, "of": f"pod/lab/{before}"},
            {"delete": f"pod/lab/{before}"},
            {"wait": 60},
            {"apply": [told_by_kubelet(new, before, "FailedKillPod", said)]},
            {"apply": [claim("want", "lab", ask("c")), pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def device_of_a_pod_deleted_by_force_is_still_prepared(new):
    """A pod gets a device that the kubelet has not taken back from a pod deleted by force.

    kubernetes/kubernetes 141471.
    """
    driver, before = f"{new('d')}.test", new("notebook")
    said = "Failed to prepare dynamic resources: device x is prepared for another claim"
    return Invented(
        about="train",
        told=(rf"pod lab/{before} was deleted before its kubelet confirmed its end, by redra",
              "x is prepared for another claim"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("old", "lab", ask("c")), pod(before, "lab", claim="old")]},
            {"wait": 5},
            {"status": {"phase": "Running"}, "of": f"pod/lab/{before}"},
            {"delete": f"pod/lab/{before}", "now": True},
            {"wait": 30},
            {"apply": [claim("want", "lab", ask("c")), pod("train", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [told_by_kubelet(new, "train", "FailedPrepareDynamicResources", said)]},
            {"wait": 30},
        ),
    )  # fmt: skip


def template_wants_more_since_it_was_replaced(new):
    """A template is made anew with a larger count, and its former pod is gone."""
    driver, name = f"{new('d')}.test", new("tmpl")
    return Invented(
        about="train",
        told=(
            rf"template lab/{name} was made anew by redra",
            r"requests\[0\]\.exactly\.count: 1 before, 8 since",
            "wants 8 devices, 1 of 1",
        ),
        steps=(
            {"apply": [*lab(driver, one(driver)), template(name, "lab", ask("c", count=1))]},
            {"apply": [pod("first", "lab", template=name)]},
            {"wait": 30},
            {"delete": f"resourceclaimtemplate/lab/{name}"},
            {"delete": "pod/lab/first", "now": True},
            {"wait": 30},
            {"apply": [template(name, "lab", ask("c", count=8))]},
            {"apply": [pod("train", "lab", template=name)]},
            {"wait": 30},
        ),
    )


def queue_does_not_know_the_class(new):
    """A job waits for a queue, whose object for the job says why it is not admitted."""
    driver, load = f"{new('d')}.test", new("job-train")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
              "schema": {"openAPIV3Schema": schema}}  # fmt: skip
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "workloads.queue.x.test"},
        "spec": {
            "group": "queue.x.test", "scope": "Namespaced", "versions": [served],
            "names": {"plural": "workloads", "singular": "workload", "kind": "Workload",
                      "listKind": "WorkloadList"},
        },
    }  # fmt: skip
    made = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x.test/i"}]}
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "lab"},
        "spec": {"suspend": True, "template": {"spec": made}},
    }  # fmt: skip
    said = {
        "type": "QuotaReserved", "status": "False", "reason": "Inadmissible",
        "message": "DeviceClass c is not mapped", "lastTransitionTime": "2026-01-02T03:00:00Z",
    }  # fmt: skip
    steps = ({"apply": [*lab(driver, one(driver)), kind]}, {"wait": 5}, {"apply": [job]})
    before = Invented(told=(), steps=steps).incident()
    events = playing.play(before, IncidentVariant.BROKEN).events
    uid = next(each.object["metadata"]["uid"] for each in events if each.key.resource == "jobs")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid,
             "controller": True}  # fmt: skip
    owned = {
        "apiVersion": "queue.x.test/v1",
        "kind": "Workload",
        "metadata": {"name": load, "namespace": "lab", "ownerReferences": [owner]},
    }
    return Invented(
        about="job/train",
        told=(
            r"spec\.suspend is true",
            rf"workload {load} says: QuotaReserved is False \(Inadmissible: DeviceClass c is not m",
        ),
        steps=(
            *steps,
            {"apply": [owned]},
            {"status": {"conditions": [said]}, "of": f"workload/lab/{load}"},
            {"wait": 5},
        ),
    )


def rule_needs_a_gate_that_is_off(new):
    """A rule taints nothing in a cluster whose gate for such rules is off."""
    driver, hot = f"{new('d')}.test", new("thermal")
    return Invented(
        about=f"devicetaintrule/{hot}",
        told=(rf"(rule {hot} has no effect: )?gate DRADeviceTaintRules is off",),
        closed=("DRADeviceTaintRules",),
        steps=(
            {"apply": [*lab(driver, one(driver)),
                       claim("want", "lab", ask("c")), pod("train", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [rule(hot, driver, key="x.test/hot", effect="NoExecute")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def quota_is_full_and_no_event_says_so(new):
    """A pod gets no claim: the quota of its namespace is used up, and no Event was kept.

    Nothing makes the claim here, either: a controller that did would leave an Event.
    """
    driver, full = f"{new('d')}.test", new("quota")
    of = "count/resourceclaims.resource.k8s.io"
    return Invented(
        about="train",
        told=(rf"would be refused now: exceeded quota: {full}, requested: {of}=1, used: {of}=1",
              rf"quota {full} allowed 4 of {of} until it was written with 1, by redra",
              "claim lab/old counts for 1"),
        off=("claims",),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("gpus", "lab", ask("c")),
                       quota(full, "lab", **{of: "4"}), claim("old", "lab", ask("c"))]},
            {"wait": 5},
            {"patch": {"spec": {"hard": {of: "1"}}}, "of": f"resourcequota/lab/{full}"},
            {"apply": [pod("train", "lab", template="gpus")]},
            {"wait": 30},
        ),
    )  # fmt: skip


WALKED = (
    driver_is_too_old,
    toleration_has_another_effect,
    zone_has_no_devices,
    affinity_wants_a_label_that_went,
    template_is_misspelled,
    no_alternative_fits,
    template_was_replaced_between_two_pods,
    controller_of_claims_is_off,
    finalizer_keeps_a_pod_that_has_ended,
    port_of_the_node_is_in_use,
    quota_was_lowered_under_a_deployment,
    quota_was_lowered_under_services,
    label_was_taken_from_the_node,
    holder_cannot_give_its_device_back,
    device_of_a_pod_deleted_by_force_is_still_prepared,
    template_wants_more_since_it_was_replaced,
    queue_does_not_know_the_class,
    rule_needs_a_gate_that_is_off,
    quota_is_full_and_no_event_says_so,
)

RUNNING = (device_changed_under_its_claim, budget_lacks_a_pod)
"""Incidents about which somebody has to ask: no landing page tells them."""
