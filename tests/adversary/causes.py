"""WRONG: acts of controllers that come before the reason for them, in versions and in times.

Versions and times are those of a log in which the act came first. `verify` judges states, and each
of these states may be right by itself; only a pod that has its claims no more shows there.
"""

from collections.abc import Iterator

from tests.adversary.catalogue import (
    FAILS,
    NOT_BLAMED,
    QUICKSTART,
    TAINTS,
    TPU,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, later, uid_of

_CLAIMS = "resource-claim-controller"


def _before(log: Log, act: int, reason: int) -> None:
    """Moves a write in front of another one, a millisecond and a version earlier."""
    log.widen()
    line, cause = log.lines[act], log.lines[reason]
    old = line["responseObject"]["metadata"]["resourceVersion"]
    new = str(_version(cause) - 1)
    for body in log.of(uid_of(line)):
        if body["metadata"].get("resourceVersion") == old:
            body["metadata"]["resourceVersion"] = new
    for each in log.lines:
        if each["objectRef"].get("resourceVersion") == old:
            each["objectRef"]["resourceVersion"] = new
    line["stageTimestamp"] = later(cause["requestReceivedTimestamp"], -0.001)
    line["requestReceivedTimestamp"] = later(cause["requestReceivedTimestamp"], -0.004)
    log.lines.sort(key=lambda each: str(each["stageTimestamp"]))


def _version(line: Json) -> int:
    return int(line["responseObject"]["metadata"]["resourceVersion"])


def _generated(log: Log) -> Iterator[tuple[int, Json]]:
    """The creations of claims for pods, with the owner of each."""
    for number in log.find("create", "resourceclaims", by=_CLAIMS, code=201):
        yield number, log.lines[number]["responseObject"]["metadata"]["ownerReferences"][0]


def _end_of(log: Log, uid: str) -> int:
    """The last deletion request of an object, which removes it."""
    numbers = [
        number
        for number in log.find("delete", "pods", code=200)
        if (log.lines[number].get("responseObject") or {}).get("metadata", {}).get("uid") == uid
    ]
    if not numbers:
        raise NotFound(uid)
    return numbers[-1]


@alteration("wrong", (QUICKSTART, TAINTS, TPU), verify=NOT_BLAMED, decide=FAILS)
def claim_made_before_its_pod(log: Log) -> None:
    """The claim controller makes a claim for a pod that is created afterwards (2.2)."""
    for number, owner in _generated(log):
        for pod in log.find("create", "pods", owner["name"], code=201):
            if uid_of(log.lines[pod]) == owner["uid"]:
                _before(log, number, pod)
                return
    raise NotFound("no generated claim")


@alteration("wrong", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)
def claim_made_before_its_template(log: Log) -> None:
    """The claim controller makes a claim from a template that is created afterwards (2.2)."""
    template = log.first("create", "resourceclaimtemplates", "late-template", code=201)
    for number, owner in _generated(log):
        if owner["name"] == "early-template":
            _before(log, number, template)
            return
    raise NotFound("no claim of the late template")


@alteration("wrong", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)
def collected_before_its_owner_ended(log: Log) -> None:
    """The garbage collector deletes the claim of a pod that is removed afterwards (7)."""
    for number in log.find("delete", "resourceclaims", by="garbage-collector", code=200):
        body = log.lines[number].get("responseObject") or {}
        if body.get("kind") != "ResourceClaim":
            continue
        end = _end_of(log, body["metadata"]["ownerReferences"][0]["uid"])
        if not any(True for _ in log.of(body["metadata"]["uid"], start=end, end=number)):
            _before(log, number, end)
            return
    raise NotFound("nothing collected")


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def released_before_its_pod_finished(log: Log) -> None:
    """The claim controller releases the claim of a pod that finishes afterwards (2.3)."""
    for number in log.find("update", "resourceclaims/status", by=_CLAIMS, code=200):
        name = log.lines[number]["responseObject"]["metadata"]["ownerReferences"][0]["name"]
        for end in log.find("patch", "pods/status", name, by="system:node", code=200):
            phase = log.lines[end]["responseObject"]["status"].get("phase")
            if phase == "Succeeded" and end < number:
                _before(log, number, end)
                return
    raise NotFound("no pod that finishes")


@alteration("wrong", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)
def emptied_before_its_namespace_was_to_end(log: Log) -> None:
    """The namespace controller deletes a template of a namespace that is deleted afterwards (7)."""
    emptied = log.first("deletecollection", "resourceclaimtemplates", by="namespace-controller")
    name = log.lines[emptied]["objectRef"]["namespace"]
    asked = log.first("delete", "namespaces", name, code=200)
    line, cause = log.lines[emptied], log.lines[asked]
    line["stageTimestamp"] = later(cause["requestReceivedTimestamp"], -2)
    line["requestReceivedTimestamp"] = later(cause["requestReceivedTimestamp"], -2.003)
    log.lines.sort(key=lambda each: str(each["stageTimestamp"]))


@alteration("lossy", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def loses_creations_of_pods_with_claims(log: Log) -> None:
    """The creations of pods with claims are lost: their claims are recorded before the pods."""
    made = {owner["uid"] for _, owner in _generated(log)}
    log.drop(
        lambda line: (
            line["verb"] == "create"
            and line["objectRef"]["resource"] == "pods"
            and not line["objectRef"].get("subresource")
            and (line.get("responseObject") or {}).get("metadata", {}).get("uid") in made
        )
    )
