"""WRONG: writes that a server refuses, and that the log shows as accepted."""

from tests.adversary.catalogue import PART, QUICKSTART, TAINTS, TPU, alteration
from tests.adversary.log import Json, Log, uid_of


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
