"""RENEWED: objects that are deleted and made again under one name; only their uids tell them apart.

Pods that users made later get the names of earlier pods of their namespace that were removed by
then, and so do the claims and Events named after them. That is honest. Whoever refers to the uid of
the earlier object afterwards is wrong: a controller mistook one for another, which fails, or a
server accepted what servers refuse. For that either the line or the server is wrong, so that the
answer names the contradiction and is unsure.
"""

from collections.abc import Callable

from tests.adversary.catalogue import (
    FAILS,
    MIG,
    NOT_BLAMED,
    PART,
    QUICKSTART,
    SAME,
    TAINTS,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, uid_of
from tests.adversary.renamed import rename

_AGAIN = "early-template"
"""The pod of a-quickstart that is made again: pod0 was removed nine seconds before."""


def again(log: Log) -> dict[str, str]:
    """Gives later pods the names of earlier ones that were removed; returns the names by pod."""
    times: dict[str, int] = {}
    gone: list[tuple[int, str, str]] = []
    for number in log.find("create", "pods", code=201):
        metadata = log.lines[number]["responseObject"]["metadata"]
        times[metadata["name"]] = times.get(metadata["name"], 0) + 1
    pairs: dict[str, str] = {}
    for number, line in enumerate(log.lines):
        about = line["objectRef"]
        if about["resource"] != "pods" or about.get("subresource") or line["level"] == "Metadata":
            continue
        answer = line.get("responseObject") or {}
        name = answer.get("metadata", {}).get("name", "")
        code = line["responseStatus"].get("code")
        if line["verb"] == "delete" and code == 200 and "system:node:" in line["user"]["username"]:
            gone.append((number, about["namespace"], name))
        elif line["verb"] == "create" and code == 201:
            is_named = "generateName" not in answer["metadata"] and times[name] == 1
            free = (each for each in gone if each[1] == about["namespace"] and each[2] not in pairs)
            if is_named and (earlier := next(free, None)) is not None:
                gone.remove(earlier)
                pairs[name] = earlier[2]
    if not pairs:
        raise NotFound("no pod that was made after another one was removed")
    rename(log, pairs)
    return pairs


@alteration("renewed", (QUICKSTART, MIG, TAINTS), verify=SAME, decide=SAME)
def pods_made_again_under_one_name(log: Log) -> None:
    """Later pods have the names of earlier ones that were removed, each with a uid of its own."""
    again(log)


@alteration("renewed", QUICKSTART, verify=SAME, decide=SAME)
def claim_made_again_under_one_name(log: Log) -> None:
    """A user makes a claim with the name of a generated one that was deleted long before."""
    _claim_again(log)


def _claim_again(log: Log) -> str:
    earlier = str(log.lines[log.allocation("pod4")]["objectRef"]["name"])
    rename(log, {"late-claim": earlier})
    return earlier


class _Pod:
    """The pod that is made again, the earlier one of that name, and their claims."""

    def __init__(self, log: Log) -> None:
        made = log.first("create", "pods", _AGAIN, code=201)
        old = log.lines[log.first("create", "pods", code=201)]["responseObject"]["metadata"]
        self.made, self.name = made, str(old["name"])
        self.uid, self.old = uid_of(log.lines[made]), str(old["uid"])
        self.given = log.allocation(_AGAIN)
        self.claim = uid_of(log.lines[self.given])
        earlier = log.lines[log.allocation(self.name)]
        self.old_claim, self.old_claim_name = uid_of(earlier), str(earlier["objectRef"]["name"])


def _register(
    name: str, why: str, wrong: Callable[[Log, _Pod], None], verify: str, decide: str
) -> None:
    def change(log: Log) -> None:
        pod = _Pod(log)
        assert rename_is_of(again(log), pod)
        wrong(log, pod)

    change.__name__ = name
    change.__doc__ = why
    alteration("renewed", QUICKSTART, verify=verify, decide=decide)(change)


def rename_is_of(pairs: dict[str, str], pod: _Pod) -> bool:
    """Whether the later pod got the name of the earlier one."""
    return pairs.get(_AGAIN) == pod.name


def _binds(log: Log, pod: _Pod) -> None:
    line = log.lines[log.first("create", "pods/binding", pod.name, after=pod.made)]
    line["objectRef"]["uid"] = line["requestObject"]["metadata"]["uid"] = pod.old


def _reserves(log: Log, pod: _Pod) -> None:
    def change(body: Json) -> None:
        for entry in body.get("status", {}).get("reservedFor") or ():
            entry["uid"] = pod.old

    log.alter(pod.claim, change, start=pod.given)


def _owns(log: Log, pod: _Pod) -> None:
    number = log.first("create", "resourceclaims", after=pod.made)

    def change(body: Json) -> None:
        for owner in body["metadata"].get("ownerReferences") or ():
            owner["uid"] = pod.old

    change(log.lines[number]["requestObject"])
    log.alter(pod.claim, change)


def _names(log: Log, pod: _Pod) -> None:
    number = log.first("patch", "pods/status", pod.name, by="resource-claim", after=pod.made)

    def change(body: Json) -> None:
        for entry in body.get("status", {}).get("resourceClaimStatuses") or ():
            entry["resourceClaimName"] = pod.old_claim_name

    change(log.lines[number]["requestObject"])
    log.alter(pod.uid, change, start=number)


def _removes(log: Log, pod: _Pod) -> None:
    line = log.lines[log.first("delete", "pods", pod.name, by="system:node:", after=pod.given)]
    line["requestObject"]["preconditions"]["uid"] = pod.old


def _collects(log: Log, pod: _Pod) -> None:
    number = log.first(
        "delete",
        "resourceclaims",
        by="generic-garbage-collector",
        code=200,
        where=lambda line: bool(line["responseObject"]["metadata"].get("uid") == pod.claim),
    )
    log.lines[number]["requestObject"]["preconditions"]["uid"] = pod.old_claim


def _updates(log: Log, pod: _Pod) -> None:
    line = log.lines[pod.given]
    line["objectRef"]["uid"] = line["requestObject"]["metadata"]["uid"] = pod.old_claim


for _name, _why, _wrong, _verify, _decide in (
    (
        "binding_of_the_earlier_pod",
        "A binding with the uid of the earlier pod is accepted: the server compares uids (409).",
        _binds,
        PART,
        PART,
    ),
    (
        "reserved_for_the_earlier_pod",
        "The claim is reserved for the uid of the earlier pod, and the later one is bound (3.7).",
        _reserves,
        FAILS,
        FAILS,
    ),
    (
        "owned_by_the_earlier_pod",
        "The claim of the later pod is owned by the earlier one, which is gone (2.2).",
        _owns,
        NOT_BLAMED,
        FAILS,
    ),
    (
        "status_names_the_claim_of_the_earlier_pod",
        "The later pod is bound with the claim of the earlier one, which was deleted (3.1).",
        _names,
        FAILS,
        FAILS,
    ),
    (
        "removed_by_the_uid_of_the_earlier_pod",
        "A deletion with the uid of the earlier pod as its precondition is accepted (409).",
        _removes,
        PART,
        PART,
    ),
    (
        "collected_by_the_uid_of_the_earlier_claim",
        "A deletion with the uid of the earlier claim as its precondition is accepted (409).",
        _collects,
        PART,
        PART,
    ),
    (
        "allocated_by_the_uid_of_the_earlier_claim",
        "An update with the uid of another object of that name is accepted (409).",
        _updates,
        PART,
        PART,
    ),
):
    _register(_name, _why, _wrong, _verify, _decide)


@alteration("renewed", QUICKSTART, verify=FAILS, decide=FAILS)
def claim_made_again_holds_what_the_earlier_one_held(log: Log) -> None:
    """The claim that is made again has its devices from its first state on: nobody gave them.

    A server drops the status that is sent with a new object (6.2).
    """
    earlier = _claim_again(log)
    number = log.first("create", "resourceclaims", earlier, by="alice", code=201)
    given = log.first("update", "resourceclaims/status", earlier, by="kube-scheduler", after=number)
    held = log.lines[given]["responseObject"]["status"]

    def change(body: Json) -> None:
        body["status"] = {"allocation": held["allocation"]}

    log.alter(uid_of(log.lines[number]), change, start=number, end=given)


@alteration("renewed", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)
def assigned_event_of_the_earlier_pod(log: Log) -> None:
    """The Event that says that the later pod was assigned names the uid of the earlier one."""
    pod = _Pod(log)
    again(log)
    number = log.first(
        "create",
        "events",
        after=pod.given,
        where=lambda line: (
            line["requestObject"].get("reason") == "Scheduled"
            and line["requestObject"]["regarding"].get("uid") == pod.uid
        ),
    )
    for side in ("requestObject", "responseObject"):
        log.lines[number][side]["regarding"]["uid"] = pod.old
