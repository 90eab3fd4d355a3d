"""WRONG: a field that follows from another one of its object, altered in all lines alike.

No line contradicts another one, so only a judge that knows what a server keeps together notices.
Here is also a claim that has another uid or other devices from one line on, where versions prove
that nothing is between the lines, and where they do not.
"""

import random
from collections.abc import Callable

from tests.adversary.catalogue import (
    AGREES,
    FAILS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    PART,
    QUICKSTART,
    TAINTS,
    TPU,
    VERSIONS,
    alteration,
)
from tests.adversary.evictions import mentions
from tests.adversary.log import Json, Log, results_of, uid_of


def _phase(log: Log, phase: str, *, is_deleted: bool) -> None:
    """Sets the phase of the namespace that is deleted, while or until it is."""
    ended = log.lines[log.first("delete", "namespaces", code=200)]

    def change(body: Json) -> None:
        if body.get("status") and ("deletionTimestamp" in body["metadata"]) is is_deleted:
            body["status"]["phase"] = phase

    log.alter(uid_of(ended), change)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def namespace_stays_active_in_its_deletion(log: Log) -> None:
    """A namespace that is being deleted has the phase Active (controllers.md 5.5)."""
    _phase(log, "Active", is_deleted=True)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def namespace_terminates_before_its_deletion(log: Log) -> None:
    """A namespace has the phase Terminating while nobody deletes it (controllers.md 5.5)."""
    _phase(log, "Terminating", is_deleted=False)


@alteration("wrong", (TAINTS, QUICKSTART), verify=FAILS, decide=FAILS)
def namespace_with_the_label_of_another_one(log: Log) -> None:
    """A namespace has another name in the label in which a server writes its own (api.md 5)."""
    made = log.lines[log.first("create", "namespaces", code=201)]

    def change(body: Json) -> None:
        body["metadata"]["labels"]["kubernetes.io/metadata.name"] = "another"

    log.alter(uid_of(made), change)


@alteration("wrong", (TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def slice_made_with_a_later_generation(log: Log) -> None:
    """A new slice has a generation that only changes of its spec give (objects.md 2)."""
    made = log.lines[log.first("create", "resourceslices", code=201)]

    def change(body: Json) -> None:
        body["metadata"]["generation"] += 5

    log.alter(uid_of(made), change)


def _lose_labels_of_a_node(log: Log) -> None:
    """The last write about a node, by which the node controller sets its labels, has no line."""
    number = max(
        log.find(
            "patch",
            "nodes",
            by="node-controller",
            code=200,
            where=lambda line: "labels" in line["requestObject"].get("metadata", {}),
        )
    )
    del log.lines[number]


@alteration("wrong", TAINTS, verify=NOT_BLAMED, decide=FAILS)
def labels_of_a_node_never_written(log: Log) -> None:
    """The node controller leaves a node without its labels: each version has a line (4.3)."""
    _lose_labels_of_a_node(log)
    log.close_all()


@alteration("lossy", TAINTS, verify=NOT_BLAMED, decide=NOT_BLAMED)
def labels_of_a_node_in_a_lost_line(log: Log) -> None:
    """The line is lost in which a node gets its labels: its version is left (4.3)."""
    _lose_labels_of_a_node(log)


def _each(log: Log, kind: str, change: Callable[[Json], None]) -> None:
    """Changes all states of the objects of a kind in the log."""
    for line in log.lines:
        body = line.get("responseObject")
        if isinstance(body, dict) and body.get("kind") == kind and body.get("metadata"):
            change(body)


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def pods_with_the_class_of_others(log: Log) -> None:
    """New pods have a class of quality of service that their containers do not have."""

    def change(body: Json) -> None:
        status = body.get("status") or {}
        if "qosClass" in status:
            is_other = status["qosClass"] == "Guaranteed"
            status["qosClass"] = "Burstable" if is_other else "Guaranteed"

    _each(log, "Pod", change)


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def slices_for_one_node_and_for_all(log: Log) -> None:
    """Slices select nodes in two ways, which a server refuses (objects.md 7.1)."""
    for line in log.lines:
        for name in ("requestObject", "responseObject"):
            body = line.get(name)
            is_slice = isinstance(body, dict) and body.get("kind") == "ResourceSlice"
            if is_slice and body["spec"].get("nodeName"):
                body["spec"]["allNodes"] = True


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def claims_deleted_without_a_grace_period(log: Log) -> None:
    """Claims that are being deleted lack what a server sets with that (controllers.md 6.5)."""
    _each(log, "ResourceClaim", lambda body: _forget_grace(body["metadata"]))


def _forget_grace(metadata: Json) -> None:
    if "deletionTimestamp" in metadata:
        metadata.pop("deletionGracePeriodSeconds", None)


@alteration("wrong", QUICKSTART, verify=PART, decide=AGREES)
def namespace_deleted_before_it_is_made(log: Log) -> None:
    """A namespace has a deletion of years before its creation: a clock, or no server wrote it.

    Only `verify` says so: the deletion is an input of `decide`, which takes its time from the line.
    """

    def change(body: Json) -> None:
        if "deletionTimestamp" in body["metadata"]:
            body["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"

    _each(log, "Namespace", change)


ANOTHER = "00000000-0000-4000-8000-00000000beef"


def _renew(log: Log, number: int) -> None:
    """Gives the object of a line another uid in this line and all that follow."""
    uid = uid_of(log.lines[number])
    log.alter(uid, lambda body: body["metadata"].update(uid=ANOTHER), start=number)
    for line in log.lines[number:]:
        asked = line.get("requestObject")
        places = [line["objectRef"], asked.get("preconditions") if isinstance(asked, dict) else {}]
        for place in places:
            if place and place.get("uid") == uid:
                place["uid"] = ANOTHER


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS, MIG, TPU), verify=FAILS, decide=FAILS)
def claim_gets_another_uid(log: Log) -> None:
    """A claim has another uid from its allocation on, one version after it got its finalizer.

    Its removal and the creation of another one are writes, and each write has a version (8.1).
    """
    _renew(log, log.allocation(""))


@alteration("lossy", (QUICKSTART, TAINTS, VERSIONS), verify=PART, decide=NOT_PASSED)
def claim_gets_another_uid_and_versions_are_free(log: Log) -> None:
    """The same with nine free versions between any two: both lines may be lost."""
    log.widen()
    _renew(log, log.allocation(""))


@alteration("lossy", (QUICKSTART, VERSIONS), verify=NOT_PASSED, decide=NOT_PASSED)
def claim_gets_another_uid_and_one_version_is_free(log: Log) -> None:
    """The same with one free version for two writes, after the line before."""
    number = log.allocation("")
    version = int(log.lines[number]["responseObject"]["metadata"]["resourceVersion"])
    log.renumber(lambda each: each + 1 if each >= version else each)
    _renew(log, number)


def _exchange_and_lose(log: Log, step: int) -> None:
    """Exchanges a device so many versions after it was given; a third of other lines is lost."""
    number = log.allocation("")
    line = log.lines[number]
    claim, uid = line["objectRef"]["name"], uid_of(line)
    version = int(line["responseObject"]["metadata"]["resourceVersion"])
    log.renumber(lambda each: each + step if each > version else each)
    new = log.again(number, seconds=0.0001, to=number + 1)
    new["requestObject"]["metadata"]["resourceVersion"] = str(version)
    new["responseObject"]["metadata"]["resourceVersion"] = str(version + step)

    def change(body: Json) -> None:
        if results_of(body):
            results_of(body)[0]["device"] = "gpu-3"

    log.alter(uid, change, start=number + 1)
    kept = (claim, *(each["name"] for each in line["responseObject"]["status"]["reservedFor"]))
    drawn = random.Random(11)
    log.lines = [
        each
        for each in log.lines
        if each["objectRef"]["resource"] in ("resourceslices", "deviceclasses")
        or mentions(each, *kept)
        or drawn.random() >= 1 / 3
    ]


@alteration("lossy", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def exchanged_in_the_next_version_and_a_third_lost(log: Log) -> None:
    """A claim gets another device in the next version (6.2), and other lines are lost.

    No line about this claim can be: none is left between the two, whatever is lost elsewhere.
    """
    _exchange_and_lose(log, 1)


@alteration("lossy", QUICKSTART, verify=PART, decide=NOT_PASSED)
def exchanged_with_a_version_between_and_a_third_lost(log: Log) -> None:
    """The same with one version between, in which the first device may have been given back."""
    _exchange_and_lose(log, 2)
