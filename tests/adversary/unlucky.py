"""UNLUCKY: accidents of operators, and forgeries that are small in a log that is whole.

What an accident leaves is honest, so it is not blamed. A forgery contradicts what a server or a
controller can have done, so it never passes. Where one is made in the log of an accident, its
verdict is that of the forgery.
"""

import copy
import json
import re
from collections.abc import Callable
from datetime import datetime

from tests.adversary import devices
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    SAME,
    SMALL,
    TAINTS,
    TPU,
    VERSIONS,
    Change,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, later, results_of, uid_of
from tests.adversary.lossy import level, without
from tests.adversary.rewriting import each_text

_STAMPS = ("requestReceivedTimestamp", "stageTimestamp")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z")
_REGISTERED = (devices,)
"""The modules whose alterations are taken: they have to be registered first."""


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def one_of_two_servers_drifts(log: Log) -> None:
    """Two servers; the clock of one, which nobody sets any more, is 2 ms a second too fast."""
    begin = datetime.fromisoformat(log.lines[0]["stageTimestamp"])
    for line in log.lines:
        if int(line["auditID"][:8], 16) % 2:
            for field in _STAMPS:
                since = datetime.fromisoformat(line[field]) - begin
                line[field] = later(line[field], 0.002 * since.total_seconds())


def _step(seconds: float) -> Change:
    def change(log: Log) -> None:
        at = log.lines[len(log.lines) // 2]["requestReceivedTimestamp"]

        def moved(match: re.Match[str]) -> str:
            if match[0] < at:
                return match[0]
            time = later(match[0], seconds)
            return time if "." in match[0] else f"{time[:19]}Z"

        each_text(log, lambda text: _TIME.sub(moved, text))

    return change


for _seconds, _name in ((0.3, "ahead"), (-0.3, "back"), (-4, "four_seconds_back")):
    _change = _step(_seconds)
    _change.__name__ = f"clock_of_the_host_is_set_{_name}"
    _change.__doc__ = f"Midway the clock of the only host of the control plane is set: {_seconds} s"
    alteration("unlucky", (QUICKSTART, MIG, TPU, VERSIONS), verify=NOT_BLAMED, decide=NOT_BLAMED)(
        _change
    )


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def scheduler_gets_another_user_midway(log: Log) -> None:
    """The credentials of the scheduler are exchanged midway: a service account from then on."""
    for line in log.lines[len(log.lines) // 2 :]:
        if line["user"]["username"] == "system:kube-scheduler":
            line["user"]["username"] = "system:serviceaccount:kube-system:scheduler"


@alteration("unlucky", SMALL, verify=SAME, decide=SAME)
def everybody_is_impersonated(log: Log) -> None:
    """A proxy in front of the server impersonates everybody: `user` is the proxy in each line."""
    for line in log.lines:
        line["impersonatedUser"] = line["user"]
        line["user"] = {"username": "front-proxy", "groups": ["system:masters"]}


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def profile_of_another_name(log: Log) -> None:
    """The only profile of the scheduler has another name, which pods and Events have as well."""
    each_text(log, lambda text: text.replace("default-scheduler", "dra-profile"))


@alteration("unlucky", (QUICKSTART, TAINTS), verify=SAME, decide=NOT_BLAMED)
def nodes_named_against_their_order(log: Log) -> None:
    """The two nodes have each other's names: among equal nodes the choice is drawn (4.5)."""
    each_text(
        log,
        lambda text: (
            text.replace("worker-1", "worker-X")
            .replace("worker-2", "worker-1")
            .replace("worker-X", "worker-2")
        ),
    )


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def copies_with_ids_of_their_own(log: Log) -> None:
    """A collector delivers each line twice and gives each copy an id: all else is the same."""
    for number in range(len(log.lines) - 1, -1, -1):
        line = copy.deepcopy(log.lines[number])
        line["auditID"] = f"{number:08x}-2222-4000-8000-000000000000"
        log.lines.insert(number + 1, line)


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def requests_lost(log: Log) -> None:
    """An index dropped the field requestObject of all lines: too many fields."""
    for line in log.lines:
        line.pop("requestObject", None)


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def references_shortened(log: Log) -> None:
    """A collector keeps kind, namespace and name of what a request is about."""
    for line in log.lines:
        line["objectRef"].pop("uid", None)
        line["objectRef"].pop("resourceVersion", None)


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def creations_answered_too_late(log: Log) -> None:
    """Each third pod of a user was stored when the server gave up waiting: 504, no object."""
    made = list(log.find("create", "pods", code=201))
    for number in made[::3]:
        line = log.lines[number]
        if line["user"]["username"].startswith("system:"):
            continue
        line["objectRef"]["name"] = line["responseObject"]["metadata"]["name"]
        line["responseStatus"] = {
            "metadata": {},
            "status": "Failure",
            "reason": "Timeout",
            "code": 504,
        }
        line["responseObject"] = {
            "kind": "Status",
            "apiVersion": "v1",
            **line["responseStatus"],
            "message": "Timeout: request did not complete within the allotted timeout",
        }


def _midway(to: str, half: int) -> Change:
    def change(log: Log) -> None:
        middle = len(log.lines) // 2
        chosen = log.lines[:middle] if half == 0 else log.lines[middle:]
        level(to, lambda line: True)(Log(chosen))

    return change


for _to in ("Request", "Metadata"):
    for _half, _name in enumerate(("until", "from")):
        _change = _midway(_to, _half)
        _change.__name__ = f"level_{_to.lower()}_{_name}_the_middle"
        _change.__doc__ = f"The policy is another one midway: level {_to} {_name} then."
        alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)(_change)


@alteration("unlucky", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def loses_all_about_one_node(log: Log) -> None:
    """No line is left that is about worker-2 or by its kubelet: the policy names the others."""
    without(
        lambda line: (
            (line["objectRef"]["resource"] == "nodes" and _name_of(line) == "worker-2")
            or line["user"]["username"] == "system:node:worker-2"
        )
    )(log)


def _name_of(line: Json) -> str:
    answer = line.get("responseObject") or {}
    return str(line["objectRef"].get("name") or answer.get("metadata", {}).get("name"))


@alteration("unlucky", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def torn_at_both_ends(log: Log) -> str:
    """The file was cut by its size: the first line lacks its beginning, the last one its end."""
    text = log.text()
    return text[len(json.dumps(log.lines[0])) // 2 : -200]


# Forgeries.


@alteration("unlucky", TAINTS, verify=FAILS, decide=FAILS)
def two_claims_have_each_others_devices(log: Log) -> None:
    """Two pods, made seconds apart, have each other's devices; the first one skips one (4)."""
    first, second = log.allocation("plain-0"), log.allocation("more-0")
    gap = (
        datetime.fromisoformat(log.lines[second]["stageTimestamp"])
        - datetime.fromisoformat(log.lines[first]["stageTimestamp"])
    ).total_seconds()
    assert gap > 0.5, gap
    devices.end_after(log, "more-0")
    one, other = (
        results_of(log.lines[each]["responseObject"])[0]["device"] for each in (first, second)
    )
    devices.given(log, "plain-0", devices.device(0, device=other))
    devices.given(log, "more-0", devices.device(0, device=one))


@alteration("unlucky", (QUICKSTART, MIG, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def deletion_taken_back(log: Log) -> None:
    """A pod that is ending is reported by its kubelet without its deletionTimestamp (6.3)."""
    for number in log.find("delete", "pods", code=200, by="alice"):
        uid = log.lines[number]["responseObject"]["metadata"].get("uid")
        for report in log.find("patch", "pods/status", by="system:node", code=200, after=number):
            body = log.lines[report]["responseObject"]["metadata"]
            if body["uid"] == uid and "deletionTimestamp" in body:
                del body["deletionTimestamp"]
                body.pop("deletionGracePeriodSeconds", None)
                return
    raise NotFound("no report about a pod that ends")


@alteration("unlucky", (QUICKSTART, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def binding_names_another_node(log: Log) -> None:
    """The binding names the other node than the pod then has (4.6)."""
    line = log.lines[log.first("create", "pods/binding", code=201)]
    target = line["requestObject"]["target"]
    target["name"] = {"worker-1": "worker-2", "worker-2": "worker-1"}[target["name"]]


@alteration("unlucky", (QUICKSTART, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def another_uid_from_its_binding_on(log: Log) -> None:
    """From its binding on a pod has another uid, though it was neither deleted nor made."""
    number = log.first("create", "pods/binding", code=201)
    pod = log.first("create", "pods", log.lines[number]["objectRef"]["name"], code=201)
    uid = uid_of(log.lines[pod])
    other = f"{uid[:-4]}beef"
    rest = Log(log.lines[number:])
    each_text(rest, lambda text: text.replace(uid, other))
    log.lines[number:] = rest.lines


@alteration("unlucky", (QUICKSTART, TPU), verify=NOT_PASSED, decide=NOT_PASSED)
def versions_of_two_writes_exchanged(log: Log) -> None:
    """Finalizer and allocation of a claim have each other's versions: the later is the lower."""
    number = log.allocation()
    claim = log.lines[number]["responseObject"]["metadata"]
    late = claim["resourceVersion"]
    early = log.lines[number]["requestObject"]["metadata"]["resourceVersion"]
    for body in log.of(claim["uid"]):
        version = body["metadata"].get("resourceVersion")
        body["metadata"]["resourceVersion"] = {late: early, early: late}.get(version, version)
    for line in log.lines:
        version = line["objectRef"].get("resourceVersion")
        if version in (late, early):
            line["objectRef"]["resourceVersion"] = {late: early, early: late}[version]


def _reported(log: Log) -> dict[str, int]:
    """The first report of a kubelet about each pod, by uid."""
    reports: dict[str, int] = {}
    for number in log.find("patch", "pods/status", by="system:node", code=200):
        reports.setdefault(uid_of(log.lines[number]), number)
    return reports


def _removed(log: Log) -> tuple[int, str]:
    """The line in which the first pod with a report was removed, and its uid."""
    reports = _reported(log)
    ends = [
        number
        for number in log.find("delete", "pods", code=200)
        if (log.lines[number].get("responseObject") or {}).get("kind") == "Pod"
    ]
    last: dict[str, int] = {}
    for number in ends:
        if uid_of(log.lines[number]) in reports:
            last[uid_of(log.lines[number])] = number
    uid, number = min(last.items(), key=lambda item: item[1])
    return number, uid


@alteration("unlucky", (QUICKSTART, MIG, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def report_about_a_removed_pod_accepted(log: Log) -> None:
    """A kubelet's report about a pod is accepted half a second after its removal: 404 (6.3)."""
    end, uid = _removed(log)
    new = copy.deepcopy(log.lines[_reported(log)[uid]])
    new["auditID"] = "0000000d-2222-4000-8000-000000000000"
    log.widen()
    for field in _STAMPS:
        new[field] = later(log.lines[end]["stageTimestamp"], 0.5)
    place = next(
        n
        for n in range(end, len(log.lines))
        if log.lines[n]["stageTimestamp"] > new["stageTimestamp"]
    )
    new["responseObject"]["metadata"]["resourceVersion"] = str(log.version_before(place))
    log.lines.insert(place, new)


@alteration("unlucky", (QUICKSTART, MIG, TAINTS), verify=NOT_PASSED, decide=NOT_PASSED)
def deletion_of_what_is_gone_accepted(log: Log) -> None:
    """The deletion that removed a pod is accepted once more, half a second later: 404 (6.3)."""
    log.again(_removed(log)[0], seconds=0.5)


@alteration("unlucky", SMALL, verify=NOT_PASSED, decide=NOT_PASSED)
def creation_of_what_exists_accepted(log: Log) -> None:
    """A claim is made a second time under its name while it exists: 409 (6.1)."""
    number = next(log.find("create", "resourceclaims", code=201))
    log.widen()
    new = log.again(number, seconds=0.01)
    place = next(n for n, line in enumerate(log.lines) if line is new)
    new["responseObject"]["metadata"].update(
        uid="a1b7a3f0-0000-4000-8000-0000000000ee",
        resourceVersion=str(log.version_before(place)),
    )


def _beside(wrong: str, accident: str, recordings: tuple[str, ...]) -> None:
    first: Callable[[Log], object] = ALTERATIONS[wrong].change
    second: Callable[[Log], object] = ALTERATIONS[accident].change

    def change(log: Log) -> None:
        first(log)
        second(log)

    change.__name__ = f"{wrong}_and_{accident}"
    change.__doc__ = f"{ALTERATIONS[wrong].why} And {ALTERATIONS[accident].why}"
    alteration("unlucky", recordings, verify=FAILS, decide=FAILS)(change)


for _accident in (
    "one_of_two_servers_drifts",
    "scheduler_gets_another_user_midway",
    "everybody_is_impersonated",
    "profile_of_another_name",
    "copies_with_ids_of_their_own",
    "requests_lost",
    "references_shortened",
):
    _beside("later_device_than_the_first", _accident, (QUICKSTART, TAINTS))
    _beside("device_in_two_claims", _accident, (QUICKSTART,))
_beside("device_in_two_claims", "loses_all_about_one_node", (QUICKSTART,))


def _event_lost(log: Log, reason: str) -> None:
    number = log.first(
        "create", "events", code=201, where=lambda line: line["responseObject"]["reason"] == reason
    )
    del log.lines[number]


@alteration("unlucky", TAINTS, verify=SAME, decide=NOT_BLAMED)
def event_of_a_placement_lost(log: Log) -> None:
    """The line of one Event is lost, or its client dropped it: Events are sent at best effort."""
    _event_lost(log, "Scheduled")


@alteration("unlucky", TAINTS, verify=SAME, decide=NOT_BLAMED)
def event_of_a_refusal_lost(log: Log) -> None:
    """The same of a pod that fits nowhere, whose condition gives the reason as well."""
    _event_lost(log, "FailedScheduling")


@alteration("unlucky", TAINTS, verify=SAME, decide=NOT_BLAMED)
def event_of_an_eviction_lost(log: Log) -> None:
    """The same of a pod that is evicted, whose condition and deletion say so as well."""
    _event_lost(log, "DeviceTaintManagerEviction")


@alteration("wrong", (QUICKSTART, TAINTS), verify=SAME, decide=FAILS)
def no_placement_is_reported(log: Log) -> None:
    """The scheduler reports refusals and no placement: one that drops some Events drops no sort."""
    _none_of(log, "Scheduled")


@alteration("wrong", TAINTS, verify=SAME, decide=FAILS)
def no_eviction_is_reported(log: Log) -> None:
    """The same of the controller that evicts pods."""
    _none_of(log, "DeviceTaintManagerEviction")


def _none_of(log: Log, reason: str) -> None:
    names = {
        line["responseObject"]["metadata"]["name"]
        for line in log.lines
        if line["objectRef"]["resource"] == "events"
        and line.get("responseObject", {}).get("reason") == reason
    }
    log.drop(
        lambda line: (
            line["objectRef"]["resource"] == "events"
            and (line.get("responseObject") or {}).get("metadata", {}).get("name") in names
        )
    )
