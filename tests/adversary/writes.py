"""WRONG: writes of scheduler, claim controller and collector that break their rules."""

import copy
import json

from tests.adversary.catalogue import (
    AGREES,
    FAILS,
    MIG,
    NOT_BLAMED,
    PART,
    QUICKSTART,
    SOAK,
    TAINTS,
    TPU,
    VERSIONS,
    alteration,
)
from tests.adversary.devices import end_after, given
from tests.adversary.evictions import forget, mentions
from tests.adversary.log import Json, Log, NotFound, results_of, uid_of

SCHEDULER = "kube-scheduler"
CLAIMS = "resource-claim-controller"


def _pod(log: Log, name: str) -> str:
    return uid_of(log.lines[log.first("create", "pods", name, code=201)])


@alteration("wrong", (TPU, QUICKSTART), verify=FAILS, decide=FAILS)
def too_many_reservations(log: Log) -> None:
    """A claim is reserved for 257 consumers; validation allows 256 (3.7, C14)."""

    def change(body: Json) -> None:
        entries = body["status"].get("reservedFor")
        if entries:
            for number in range(257 - len(entries)):
                uid = f"00000000-0000-4000-8000-{number:012d}"
                entries.append({"resource": "pods", "name": f"c-{number}", "uid": uid})

    given(log, "", change)


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def reserved_for_a_pod_that_never_was(log: Log) -> None:
    """The reservation names a pod that the recording, whole from the beginning, never had."""

    def change(body: Json) -> None:
        for entry in body["status"].get("reservedFor", []):
            entry.update(name="ghost", uid="00000000-0000-4000-8000-00000000beef")

    given(log, "", change)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def reserved_for_a_pod_of_another_claim(log: Log) -> None:
    """The claim of pod2 is reserved for pod3, which does not name it."""
    other = _pod(log, "pod3")

    def change(body: Json) -> None:
        for entry in body["status"].get("reservedFor", []):
            entry.update(name="pod3", uid=other)

    given(log, "pod2", change)


@alteration("wrong", (QUICKSTART, MIG, TPU, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def allocated_without_finalizer(log: Log) -> None:
    """The scheduler writes the finalizer before the allocation (3.7); here there never is one."""
    number = log.allocation("")
    uid = uid_of(log.lines[number])
    log.alter(uid, lambda body: body["metadata"].pop("finalizers", None))
    log.drop(
        lambda line: (
            line["verb"] == "update"
            and line["objectRef"].get("uid") == uid
            and not line["objectRef"].get("subresource")
            and SCHEDULER in line["user"]["username"]
        )
    )


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def finalizer_goes_first(log: Log) -> None:
    """The claim controller removes the finalizer while the claim is still allocated (2.3)."""
    release = log.first("update", "resourceclaims/status", by=CLAIMS, code=200)
    uid = uid_of(log.lines[release])
    freed = log.first(
        "update",
        "resourceclaims",
        by=CLAIMS,
        code=200,
        after=release,
        where=lambda line: uid_of(line) == uid,
    )
    first, second = log.lines[release], log.lines[freed]
    before = copy.deepcopy(log.lines[log.allocation(first["objectRef"]["name"])]["responseObject"])
    for side in ("requestObject", "responseObject"):
        first[side]["status"] = copy.deepcopy(before["status"])
        first[side]["metadata"]["finalizers"] = []
        second[side]["status"] = {}
    first["objectRef"].pop("subresource")
    first["requestURI"] = first["requestURI"].removesuffix("/status")
    second["objectRef"]["subresource"] = "status"
    second["requestURI"] += "/status"
    first["requestObject"]["metadata"].pop("finalizers")
    first["responseObject"]["metadata"].pop("finalizers")


@alteration("wrong", (QUICKSTART, TAINTS, MIG), verify=FAILS, decide=FAILS)
def allocation_exchanged(log: Log) -> None:
    """An allocation is replaced by another one without passing through none (6.2)."""
    log.widen()
    number = log.allocation("")
    line = log.lines[number]
    uid = uid_of(line)
    new = log.again(number, seconds=0.35)
    at = log.lines.index(new)
    version = str(log.version_before(at))
    new["requestObject"]["metadata"]["resourceVersion"] = line["responseObject"]["metadata"][
        "resourceVersion"
    ]
    new["responseObject"]["metadata"]["resourceVersion"] = version

    def change(body: Json) -> None:
        if results_of(body):
            results_of(body)[0]["device"] = "gpu-3"

    log.alter(uid, change, start=at)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def released_while_the_pod_runs(log: Log) -> None:
    """The claim controller takes the claim of a running pod back (2.3: done(pod))."""
    done = log.first(
        "patch",
        "pods/status",
        "pod4",
        by="system:node",
        code=200,
        where=lambda line: line["responseObject"]["status"]["phase"] == "Succeeded",
    )
    del log.lines[done]
    running = log.lines[log.first("patch", "pods/status", "pod4", by="system:node", code=200)]
    status = running["responseObject"]["status"]
    version = running["responseObject"]["metadata"]["resourceVersion"]

    def change(body: Json) -> None:
        body["status"] = copy.deepcopy(status)
        body["metadata"]["resourceVersion"] = version

    log.alter(_pod(log, "pod4"), change, start=done)
    log.cut(log.first("delete", "pods", "pod0", by="alice"))


@alteration("wrong", QUICKSTART, verify=AGREES, decide=FAILS)
def claim_of_a_finished_pod_kept(log: Log) -> None:
    """A pod is Succeeded and its claim stays reserved for 20 seconds (2.3).

    `verify` calls it late only after 60 seconds, as docs/explanation/invariants.md says.
    """
    done = log.first(
        "patch",
        "pods/status",
        "pod5",
        by="system:node",
        code=200,
        where=lambda line: line["responseObject"]["status"]["phase"] == "Succeeded",
    )
    forget(log, "pod5", start=done + 1)
    log.cut(log.first("delete", "namespaces"))


@alteration("wrong", QUICKSTART, verify=AGREES, decide=PART)
def waiting_pod_not_tried_again(log: Log) -> None:
    """Devices are given back, which wakes waiting pods (3.9); one waits on for five seconds.

    Corrected for `decide`: no rule bounds the pause of a scheduler, and the recording ends within
    the longest back-off (4.1), so the missing attempt may lie behind its end.
    """
    start = log.first("patch", "pods/status", "pod5", by="system:node", code=200, after=170)
    forget(log, "pod8", start=start)
    log.cut(log.first("create", "namespaces", "basic-shared-claim-across-pods"))


@alteration("wrong", QUICKSTART, verify=AGREES, decide=FAILS)
def binding_to_a_worse_node(log: Log) -> None:
    """worker-2 is empty, worker-1 has two pods and gets the third (4.5, LeastAllocated)."""
    log.cut(log.first("create", "pods/binding", "pod2") + 1)
    given(log, "pod2", _moved)
    _to_node(log, "pod2", "worker-2", "worker-1")


def _moved(body: Json) -> None:
    results_of(body)[0].update(pool="worker-1", device="gpu-2")
    term = body["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
    term["matchFields"][0]["values"] = ["worker-1"]


def _to_node(log: Log, pod: str, old: str, new: str) -> None:
    for line in log.lines:
        if line["objectRef"]["resource"] in ("pods", "events") and mentions(line, pod):
            line.update(json.loads(json.dumps(line).replace(old, new)))


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def bound_where_the_device_is_not(log: Log) -> None:
    """The device is on worker-1 and the pod is bound to worker-2."""
    claim = log.lines[log.allocation("")]["responseObject"]
    pod = claim["status"]["reservedFor"][0]["name"]
    end_after(log, pod)
    for line in log.lines:
        if line["objectRef"]["resource"] in ("pods", "events") and mentions(line, pod):
            line.update(json.loads(json.dumps(line).replace("worker-1", "worker-2")))


@alteration("wrong", (QUICKSTART, VERSIONS), verify=AGREES, decide=FAILS)
def bound_to_a_cordoned_node(log: Log) -> None:
    """The node is unschedulable from its creation, and pods are bound to it (4.2)."""
    number = log.first("create", "nodes", "worker-1")
    node = log.lines[number]
    node["requestObject"]["spec"] = {**node["requestObject"].get("spec", {}), "unschedulable": True}
    log.alter(uid_of(node), lambda body: body.setdefault("spec", {}).update(unschedulable=True))


@alteration("wrong", QUICKSTART, verify=AGREES, decide=FAILS)
def bound_beyond_the_cpu_of_the_node(log: Log) -> None:
    """worker-1 has the CPU for one pod and gets four (NodeResourcesFit, 4.2)."""
    number = log.first("create", "nodes", "worker-1")
    node = log.lines[number]

    def change(body: Json) -> None:
        for field in ("capacity", "allocatable"):
            body["status"][field]["cpu"] = "500m"

    change(node["requestObject"])
    log.alter(uid_of(node), lambda body: change(body) if "status" in body else None)


@alteration("wrong", (QUICKSTART, MIG), verify=AGREES, decide=FAILS)
def message_of_another_cause(log: Log) -> None:
    """A pod that waits for devices has a condition and an Event about missing CPU (4.3)."""
    done = False
    for line in log.lines:
        if line["objectRef"]["resource"] in ("pods", "events"):
            text = json.dumps(line)
            if "cannot allocate all claims" in text:
                done = True
                text = text.replace("cannot allocate all claims", "Insufficient cpu")
                line.update(json.loads(text))
    if not done:
        raise NotFound("no message")


@alteration("wrong", (QUICKSTART, MIG), verify=AGREES, decide=FAILS)
def message_counts_nodes_wrong(log: Log) -> None:
    """The message counts one node more than there are (4.3)."""
    for line in log.lines:
        if line["objectRef"]["resource"] in ("pods", "events"):
            text = json.dumps(line)
            for old, new in (("0/1 nodes", "0/2 nodes"), ("0/2 nodes", "0/3 nodes")):
                if old in text:
                    line.update(json.loads(text.replace(old, new)))
                    break


@alteration("wrong", (QUICKSTART, TAINTS), verify=AGREES, decide=FAILS)
def claim_unlike_its_template(log: Log) -> None:
    """The claim that the controller makes asks for two devices, its template for one (2.2).

    The claim has got one device, so `verify` fails as well where the claim is allocated: this is
    a claim that never is.
    """
    number = log.first(
        "create",
        "resourceclaims",
        by=CLAIMS,
        code=201,
        where=lambda line: line["responseObject"]["metadata"]["name"].startswith(
            ("pod8", "more-1")
        ),
    )
    line = log.lines[number]
    # The claim of pod8 gets a device later on.
    pod = line["responseObject"]["metadata"]["ownerReferences"][0]["name"]
    later = [n for n in log.allocations() if log.lines[n]["objectRef"]["name"].startswith(pod)]
    if later:
        log.cut(later[0] - 8)
    for body in (line["requestObject"], *log.of(uid_of(line))):
        body["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2


@alteration("wrong", (QUICKSTART, TAINTS), verify=AGREES, decide=FAILS)
def claim_without_its_annotation(log: Log) -> None:
    """A claim of a template has the annotation with the name of the entry (2.2)."""
    line = log.lines[log.first("create", "resourceclaims", by=CLAIMS, code=201)]
    for body in (line["requestObject"], *log.of(uid_of(line))):
        body["metadata"].pop("annotations", None)


@alteration("wrong", (QUICKSTART, TAINTS), verify=AGREES, decide=FAILS)
def claim_without_owner(log: Log) -> None:
    """A claim of a template is owned by its pod (2.2); this one has no owner.

    `verify` judges no claims made from templates.
    """
    line = log.lines[log.first("create", "resourceclaims", by=CLAIMS, code=201)]
    for body in (line["requestObject"], *log.of(uid_of(line))):
        body["metadata"].pop("ownerReferences", None)


@alteration("wrong", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)
def generated_name_without_that_of_its_pod(log: Log) -> str:
    """A generated name begins with the generateName, of pod and entry (2.2); this one does not."""
    name = log.lines[log.allocation("pod4")]["objectRef"]["name"]
    return log.text().replace(name, f"other-{name[-5:]}")


@alteration("wrong", (QUICKSTART, MIG, TAINTS), verify=FAILS, decide=FAILS)
def spec_of_a_claim_changes(log: Log) -> None:
    """The spec of a claim is immutable (6.2); after its allocation it has another name in it."""
    number = log.allocation("")

    def change(body: Json) -> None:
        body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "other"

    log.alter(uid_of(log.lines[number]), change, start=number + 1)


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def pod_moves_to_another_node(log: Log) -> None:
    """The node of a bound pod is immutable; from its second report on it is another one."""
    number = log.first("patch", "pods/status", by="system:node", code=200)
    uid = uid_of(log.lines[number])
    log.alter(uid, lambda body: body.get("spec", {}).update(nodeName="worker-9"), start=number + 1)
    if not any(True for _ in log.of(uid, start=number + 1)):
        raise NotFound("no later state")


@alteration("wrong", MIG, verify=FAILS, decide=FAILS)
def bound_while_its_claim_has_no_device(log: Log) -> None:
    """The scheduler binds a pod whose claim is not allocated (3.7)."""
    log.widen()
    number = log.first("create", "pods/binding", "w-01")
    waiting = log.first("create", "pods", "x-04", code=201)
    refused = log.first("patch", "pods/status", "x-04", by=SCHEDULER, code=200)
    uid = uid_of(log.lines[waiting])
    new = copy.deepcopy(log.lines[number])
    new["auditID"] = "00000000-0000-4000-8000-00000000b0bd"
    template = log.lines[refused + 1]
    for field in ("requestReceivedTimestamp", "stageTimestamp"):
        new[field] = template[field]
    new = json.loads(json.dumps(new).replace("w-01", "x-04").replace(new["objectRef"]["uid"], uid))
    log.lines.insert(refused + 1, new)
    log.cut(refused + 12)


@alteration("wrong", TPU, verify=FAILS, decide=FAILS)
def terminating_claim_given_to_another_pod(log: Log) -> None:
    """A claim is deleted by its user, and is reserved for a second pod all the same (3.1, 6.2)."""
    log.widen()
    number = log.allocation("tpu-consumer")
    line = log.lines[number]
    made = log.again(log.first("delete", "resourceclaims", "second", by="alice"), to=number + 1)
    for field in ("requestReceivedTimestamp", "stageTimestamp"):
        made[field] = line["stageTimestamp"]
    made["objectRef"].update(name="tpu-consumer-resource-claim")
    made["requestURI"] = made["requestURI"].replace("second", "tpu-consumer-resource-claim")
    made["responseObject"] = copy.deepcopy(line["responseObject"])
    made["responseObject"]["metadata"]["resourceVersion"] = str(log.version_before(number + 1))

    def change(body: Json) -> None:
        body["metadata"].update(
            deletionTimestamp="2026-11-21T08:00:55Z", deletionGracePeriodSeconds=0
        )

    log.alter(uid_of(line), change, start=number + 1)
    following = log.first("update", "resourceclaims/status", by=SCHEDULER, after=number + 1)
    version = made["responseObject"]["metadata"]["resourceVersion"]
    log.lines[following]["requestObject"]["metadata"]["resourceVersion"] = version
    log.lines[following]["objectRef"]["resourceVersion"] = version
    log.cut(log.first("create", "resourceclaims", "whole"))


@alteration("wrong", QUICKSTART, verify=AGREES, decide=FAILS)
def status_names_another_claim(log: Log) -> None:
    """The claim controller enters a claim that it made for another pod (2.2).

    The pod is then never bound, in this cut, so that no reservation is wrong.
    """
    line = log.lines[log.first("patch", "pods/status", "pod8", by=CLAIMS, code=200)]
    name = line["requestObject"]["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    other = next(
        log.lines[n]["responseObject"]["metadata"]["name"]
        for n in log.find("create", "resourceclaims", by=CLAIMS, code=201)
        if log.lines[n]["responseObject"]["metadata"]["name"].startswith("pod3-dev")
    )
    uid = uid_of(line)
    for body in (line["requestObject"], *log.of(uid)):
        for entry in body.get("status", {}).get("resourceClaimStatuses", []):
            if entry["resourceClaimName"] == name:
                entry["resourceClaimName"] = other
    log.cut(log.first("patch", "pods/status", "pod4", by="system:node", after=170))


@alteration("wrong", (QUICKSTART, SOAK), verify=AGREES, decide=FAILS)
def claim_made_by_nobody_twice(log: Log) -> None:
    """The claim controller makes a second claim for an entry whose claim exists (2.2).

    It is never entered, nor deleted.
    """
    log.widen()
    number = log.first("create", "resourceclaims", by=CLAIMS, code=201)
    new = log.again(number, seconds=0.4)
    at = log.lines.index(new)
    metadata = new["responseObject"]["metadata"]
    metadata.update(
        name=metadata["generateName"] + "zzzzz",
        uid="a1b7a3f0-0000-4000-8000-00000000000c",
        resourceVersion=str(log.version_before(at)),
    )
    log.cut(at + 60)


@alteration("wrong", (QUICKSTART, VERSIONS), verify=AGREES, decide=FAILS)
def scheduled_event_of_another_node(log: Log) -> None:
    """The Event of an assignment names another node than the binding (4.6)."""
    number = log.first(
        "create",
        "events",
        by=SCHEDULER,
        where=lambda line: line["requestObject"].get("reason") == "Scheduled",
    )
    line = log.lines[number]
    for side in ("requestObject", "responseObject"):
        line[side]["note"] = line[side]["note"].replace("worker-1", "worker-7")


@alteration("wrong", (VERSIONS, QUICKSTART), verify=AGREES, decide=FAILS)
def allocation_without_its_time(log: Log) -> None:
    """An allocation has no time, which the scheduler of this release writes (3.7)."""

    def change(body: Json) -> None:
        allocation = body["status"].get("allocation") or {}
        allocation.pop("allocationTimestamp", None)

    log.alter(uid_of(log.lines[log.allocation("")]), change)


@alteration("wrong", (VERSIONS, QUICKSTART), verify=AGREES, decide=FAILS)
def report_that_names_another_pod(log: Log) -> None:
    """The Event of a failed attempt has the uid of its pod and the name of none (4.3)."""
    number = log.first(
        "create",
        "events",
        by=SCHEDULER,
        where=lambda line: line["requestObject"].get("reason") == "FailedScheduling",
    )
    line = log.lines[number]
    for side in ("requestObject", "responseObject"):
        line[side]["regarding"]["name"] += "-2"


@alteration("wrong", (QUICKSTART, VERSIONS), verify=AGREES, decide=FAILS)
def scheduled_event_of_a_preemption(log: Log) -> None:
    """The Event of an assignment has the action of a preemption (4.6)."""
    _report(log, action="Preempting")


@alteration("wrong", (VERSIONS, QUICKSTART), verify=AGREES, decide=FAILS)
def scheduled_event_of_another_scheduler(log: Log) -> None:
    """A scheduler reports about a pod that names another one, under which it does so (11.1)."""
    _report(log, reportingController="other-scheduler")


def _report(log: Log, **fields: str) -> None:
    """Sets fields of the Event about the first assignment."""
    number = log.first(
        "create",
        "events",
        by=SCHEDULER,
        where=lambda line: line["requestObject"].get("reason") == "Scheduled",
    )
    for side in ("requestObject", "responseObject"):
        log.lines[number][side].update(fields)
