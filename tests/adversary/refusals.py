"""WRONG: writes that a server refuses, and that the log shows as accepted.

Also requests whose answers show another value than they give, which belong to no such answer.
"""

from tests.adversary.catalogue import (
    MIG,
    NOT_PASSED,
    PART,
    QUICKSTART,
    SAME,
    SMALL,
    TAINTS,
    TPU,
    alteration,
)
from tests.adversary.log import Json, Log, later, uid_of


@alteration("wrong", (QUICKSTART, TAINTS), verify=PART, decide=PART)
def update_upon_an_old_version_accepted(log: Log) -> None:
    """The scheduler's status update names the version from before its finalizer (6.4).

    A server answers 409. That this one answered 200 is no act of a controller: either the line or
    the server is wrong, so the answer names the contradiction and is unsure.
    """
    line = log.lines[log.allocation()]
    name = line["objectRef"]["name"]
    made = next(
        log.lines[number]["responseObject"]["metadata"]["resourceVersion"]
        for number in log.find("create", "resourceclaims", code=201)
        if log.lines[number]["responseObject"]["metadata"]["name"] == name
    )
    for place in (line["objectRef"], line["requestObject"]["metadata"]):
        assert place["resourceVersion"] != made
        place["resourceVersion"] = made


@alteration("wrong", QUICKSTART, verify=PART, decide=PART)
def report_upon_an_old_version_accepted(log: Log) -> None:
    """A kubelet's first report names the version in which its pod was made; 409 (6.4).

    The binding before it has an answer without a version.
    """
    line = log.lines[log.first("patch", "pods/status", by="system:node:", code=200)]
    made = next(log.of(uid_of(line)))["metadata"]["resourceVersion"]
    line["requestObject"]["metadata"]["resourceVersion"] = str(int(made) - 1)


@alteration("wrong", QUICKSTART, verify=PART, decide=PART)
def deletion_of_an_old_version_accepted(log: Log) -> None:
    """The collector's deletion names the version in which the claim was made; 409 (6.4)."""
    number = log.first(
        "delete",
        "resourceclaims",
        by="generic-garbage-collector",
        code=200,
        where=lambda line: "resourceVersion" in line["requestObject"]["preconditions"],
    )
    line = log.lines[number]
    made = next(log.of(uid_of(line)))["metadata"]["resourceVersion"]
    asked = line["requestObject"]["preconditions"]
    assert int(made) < int(asked["resourceVersion"])
    asked["resourceVersion"] = made


@alteration("wrong", QUICKSTART, verify=PART, decide=PART)
def one_version_for_two_writes(log: Log) -> None:
    """Two claims are written with one version, which the store gives to one write (6.4)."""
    first, second = log.allocations()[:2]
    one, other = (log.lines[each]["responseObject"]["metadata"] for each in (first, second))
    old, new = other["resourceVersion"], one["resourceVersion"]

    def change(body: Json) -> None:
        if body["metadata"].get("resourceVersion") == old:
            body["metadata"]["resourceVersion"] = new

    log.alter(other["uid"], change)
    for line in log.lines:
        if line["objectRef"].get("resourceVersion") == old:
            line["objectRef"]["resourceVersion"] = new


@alteration("wrong", (QUICKSTART, TPU), verify=PART, decide=PART)
def binding_accepted_twice(log: Log) -> None:
    """A pod is bound to its node a second time, which a server refuses: it is assigned (4.6)."""
    log.again(log.first("create", "pods/binding", code=201), seconds=0.2)


def _report(log: Log, phase: str) -> Json:
    """The body of the first report of a kubelet with a phase."""
    number = log.first(
        "patch",
        "pods/status",
        by="system:node:",
        code=200,
        where=lambda line: line["requestObject"].get("status", {}).get("phase") == phase,
    )
    body: Json = log.lines[number]["requestObject"]
    return body


@alteration("wrong", (QUICKSTART, TAINTS, MIG), verify=PART, decide=PART)
def kubelet_asks_for_another_phase(log: Log) -> None:
    """A kubelet's patch says Failed, and its answer and all later lines Running (4.3)."""
    _report(log, "Running")["status"]["phase"] = "Failed"


@alteration("wrong", (QUICKSTART, TAINTS), verify=PART, decide=PART)
def kubelet_asks_for_another_condition(log: Log) -> None:
    """A kubelet's patch says that the pod is not ready, and its answer that it is (4.3)."""
    for condition in _report(log, "Running")["status"]["conditions"]:
        condition["status"] = "False"


@alteration("wrong", (QUICKSTART, TAINTS), verify=PART, decide=PART)
def claim_of_a_pod_asked_by_another_name(log: Log) -> None:
    """The claim controller's patch names another claim than its answer shows (2.2)."""
    number = log.first("patch", "pods/status", by="resource-claim-controller", code=200)
    (entry,) = log.lines[number]["requestObject"]["status"]["resourceClaimStatuses"]
    entry["resourceClaimName"] += "x"


@alteration("wrong", (QUICKSTART, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def scheduler_asks_for_another_device(log: Log) -> None:
    """The scheduler's update gives a device, and its answer and all later lines another one."""
    line = log.lines[log.allocation()]
    line["requestObject"]["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-9"


@alteration("wrong", (QUICKSTART, TAINTS), verify=PART, decide=PART)
def pod_asked_with_another_template(log: Log) -> None:
    """A user's pod names another template than the stored one does (2.1)."""
    number = log.first("create", "pods", code=201, where=lambda line: "resourceClaims" in str(line))
    for entry in log.lines[number]["requestObject"]["spec"]["resourceClaims"]:
        entry["resourceClaimTemplateName"] = "of-somebody-else"


@alteration("harmless", SMALL, verify=SAME, decide=SAME)
def patches_of_newer_clients(log: Log) -> None:
    """Patches have fields that this server does not know, and fractions of seconds, which it cuts.

    It drops the first and writes whole seconds, as before.
    """
    for number in log.find("patch", "pods/status", code=200):
        status = log.lines[number]["requestObject"].get("status", {})
        status["fieldOfALaterRelease"] = {"a": 1}
        for condition in status.get("conditions", ()):
            condition["fieldOfALaterRelease"] = 7
            if condition.get("lastTransitionTime"):
                condition["lastTransitionTime"] = later(condition["lastTransitionTime"], 0.4)


@alteration("harmless", (QUICKSTART, TAINTS), verify=SAME, decide=SAME)
def webhook_labels_pods(log: Log) -> None:
    """A webhook replaces the value of a label of new pods, as the annotation of the line says."""
    for number in log.find("create", "pods", code=201):
        line = log.lines[number]
        line["requestObject"]["metadata"].setdefault("labels", {})["team"] = "none"
        uid = uid_of(line)
        line["annotations"]["mutation.webhook.admission.k8s.io/round_0_index_0"] = (
            '{"configuration":"teams","webhook":"teams.example.com","mutated":true}'
        )

        def change(body: Json, uid: str = uid) -> None:
            if body["metadata"].get("uid") == uid:
                body["metadata"].setdefault("labels", {})["team"] = "blue"

        log.alter(uid, change)
