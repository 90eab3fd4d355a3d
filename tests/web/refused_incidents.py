"""Incidents of what a control plane refuses or drops, with the words of their causes.

Their symptoms are those of public threads about drivers and DRA: a field that the API server drops,
a claim that a policy denies, an ordered set behind its first pod, a node out of disk, and a claim
whose finalizer was taken away.
"""

import json

from app.domain.values.well_known import LAST_APPLIED
from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    node,
    pod,
    slice_of,
    space,
    template,
)
from tests.web.night_incidents import deployment
from tests.web.reported_incidents import lab, one


def applied(tree):
    """An object with the annotation that `kubectl apply` leaves."""
    metadata = {**tree["metadata"], "annotations": {LAST_APPLIED: json.dumps(tree)}}
    return {**tree, "metadata": metadata}


def user_of(template_name):
    """The spec of a pod with a claim from a template."""
    return pod("job", "lab", template=template_name)["spec"]


def share_is_dropped_by_the_server(new):
    """A driver publishes a device that many may use, and the server does not know such devices."""
    driver, shared, here = f"{new('d')}.test", new("slice"), new("node")
    device = {"name": "x", "allowMultipleAllocations": True, "capacity": {"mem": {"value": "80Gi"}}}
    part = ask("c", capacity={"requests": {"mem": "20Gi"}})
    return Invented(
        about="job-2",
        told=(rf"ResourceSlice {shared} was applied with a field that is not stored: "
              r"\S*allowMultipleAllocations: .{0,60}gate DRAConsumableCapacity is off",
              r"ResourceClaimTemplate lab/part was applied with a field that is not stored: "
              r"\S*capacity\b"),
        closed=("DRAConsumableCapacity",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here),
                       applied(slice_of(shared, driver, here, [device], nodeName=here)),
                       applied(template("part", "lab", part))]},
            {"apply": [pod("job-{n}", "lab", template="part")], "repeat": 2},
            {"wait": 20},
        ),
    )  # fmt: skip


def policy_denies_the_claim_of_a_template(new):
    """A policy wants a label of each claim, and a template makes claims without it."""
    driver, policy, label = f"{new('d')}.test", new("policy"), new("label")
    group = "admissionregistration.k8s.io"
    matched = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"],
               "resources": ["resourceclaims"]}  # fmt: skip
    rules = [{"expression": f"has(object.metadata.labels) && '{label}' in object.metadata.labels",
              "message": f"claims need the label {label}"}]  # fmt: skip
    policies = [
        {"apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicy",
         "metadata": {"name": policy},
         "spec": {"matchConstraints": {"resourceRules": [matched]}, "validations": rules}},
        {"apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicyBinding",
         "metadata": {"name": policy},
         "spec": {"policyName": policy, "validationActions": ["Deny"]}},
    ]  # fmt: skip
    return Invented(
        about="job",
        told=(rf"ValidatingAdmissionPolicy '{policy}'", rf"claims need the label {label}",
              rf"ValidatingAdmissionPolicy {policy}, which refuses it, was created, by redra",
              rf"it wants: has\(object\.metadata\.labels\) && '{label}' in",
              rf"ValidatingAdmissionPolicyBinding {policy}, which refuses it, was created, by"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("t", "lab", ask("c")), *policies]},
            {"apply": [pod("job", "lab", template="t")]},
            {"wait": 60},
        ),
    )  # fmt: skip


def ordered_set_waits_for_its_first_pod(new):
    """A StatefulSet of three makes one pod, which wants more devices than are free."""
    driver, name = f"{new('d')}.test", new("set")
    tree = deployment(name, user_of("three"), replicas=3, serviceName=name)
    tree["kind"] = "StatefulSet"
    devices = [{"name": f"x{number}"} for number in range(4)]
    return Invented(
        about=f"statefulset/{name}",
        told=(rf"2 pods are made only when lab/{name}-0 is ready", r"2 of 4 can be taken"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")),
                       template("three", "lab", ask("c", count=3)),
                       template("one", "lab", ask("c"))]},
            {"apply": [pod("note-{n}", "lab", template="one")], "repeat": 2},
            {"wait": 10},
            {"apply": [tree]},
            {"wait": 60},
        ),
    )  # fmt: skip


def node_is_out_of_disk(new):
    """The kubelet of the only node with devices evicts a pod, because its disk is full."""
    driver, here = f"{new('d')}.test", new("node")
    full = {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure",
            "message": "kubelet has disk pressure"}  # fmt: skip
    ready = {"type": "Ready", "status": "True"}
    low = "The node was low on resource: ephemeral-storage."
    return Invented(
        about="job",
        told=(rf"node {here} is tainted node\.kubernetes\.io/disk-pressure:NoSchedule "
              r"\(DiskPressure: kubelet has disk pressure\)",),
        steps=(
            {"apply": [*lab(driver, one(driver, on=here), on=here), node(new("empty")),
                       template("t", "lab", ask("c")), pod("old", "lab", template="t")]},
            {"wait": 20},
            {"status": {"conditions": [ready, full]}, "of": f"node/{here}"},
            {"status": {"phase": "Failed", "reason": "Evicted", "message": low},
             "of": "pod/lab/old"},
            {"wait": 5},
            {"apply": [pod("job", "lab", template="t")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def claim_in_use_loses_its_finalizer(new):
    """A claim in use was deleted and its finalizer taken away, and another pod got its device."""
    driver, here, lost, other = f"{new('d')}.test", new("node"), new("claim"), new("other")
    return Invented(
        about="job",
        told=(rf"claim {lost} was deleted while it runs, by redra",
              rf"goes on with {driver}/{here}/x, which claim lab/{other} got meanwhile"),
        steps=(
            {"apply": [*lab(driver, one(driver, on=here), on=here),
                       claim(lost, "lab", ask("c")), pod("job", "lab", claim=lost)]},
            {"wait": 20},
            {"delete": f"resourceclaim/lab/{lost}"},
            {"patch": {"metadata": {"finalizers": None}}, "of": f"resourceclaim/lab/{lost}"},
            {"apply": [claim(other, "lab", ask("c")), pod("next", "lab", claim=other)]},
            {"wait": 20},
        ),
    )  # fmt: skip


REFUSED = (
    share_is_dropped_by_the_server,
    policy_denies_the_claim_of_a_template,
    ordered_set_waits_for_its_first_pod,
    node_is_out_of_disk,
    claim_in_use_loses_its_finalizer,
)
