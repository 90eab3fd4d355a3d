"""WRONG: what a correct taint eviction controller could never have done or left undone."""

import json
import re
from collections.abc import Callable

from tests.adversary.catalogue import AGREES, FAILS, PART, TAINTS, alteration
from tests.adversary.log import Json, Log, NotFound, later, uid_of

Change = Callable[[Json], None]

CONTROLLER = "device-taint-eviction-controller"


def mentions(line: Json, *words: str) -> bool:
    """True when the request is about an object of such a name, or its answer is."""
    name = line["objectRef"].get("name") or ""
    answer = (line.get("responseObject") or {}).get("metadata", {}).get("name", "")
    return any(
        one == word or one.startswith((f"{word}-dev-", f"{word}-gpu-", f"{word}."))
        for word in words
        for one in (name, answer)
    )


def forget(log: Log, pod: str, *, start: int) -> None:
    """Leaves out every line about a pod, its claim and its Events from one position on."""
    log.drop(lambda line: line["level"] != "Metadata" and mentions(line, pod), start=start)


def eviction(log: Log, pod: str) -> int:
    """The position at which the eviction controller marks a pod."""
    return log.first("patch", "pods/status", pod, by=CONTROLLER, code=200)


def shift(log: Log, positions: list[int], seconds: int) -> None:
    """Moves lines by whole seconds, with the times in their bodies."""

    def moved(match: re.Match[str]) -> str:
        return later(f"{match[1]}.000000Z", seconds)[:19] + "Z"

    for number in positions:
        line = log.lines[number]
        times = {
            field: later(line[field], seconds)
            for field in ("requestReceivedTimestamp", "stageTimestamp")
        }
        second = line["stageTimestamp"][:19]
        ends = {second, later(line["stageTimestamp"], 5)[:19]}
        pattern = re.compile("(" + "|".join(sorted(ends)) + ")Z")
        line.update(json.loads(pattern.sub(moved, json.dumps(line))))
        line.update(times)


def published(log: Log, generation: int, change: Change) -> None:
    """Changes the slices of one pool generation, in requests and answers."""
    done = False
    for line in log.lines:
        if line["objectRef"]["resource"] == "resourceslices" and line["level"] != "Metadata":
            for side in ("requestObject", "responseObject"):
                body = line.get(side) or {}
                if body.get("spec", {}).get("pool", {}).get("generation") == generation:
                    change(body)
                    done = True
    if not done:
        raise NotFound(f"no generation {generation}")


def each_taint(change: Change) -> Change:
    """The change of every taint of a slice."""

    def inside(body: Json) -> None:
        for one in body["spec"]["devices"]:
            for taint in one.get("taints", []):
                change(taint)

    return inside


def _before_the_next_story(log: Log) -> None:
    log.cut(log.first("create", "pods", by="alice", where=lambda line: mentions(line, "late-12")))


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def eviction_missing(log: Log) -> None:
    """One of six pods on NoExecute devices is not evicted, for twelve seconds (1.3, 1.5).

    `verify` says that it judges no evictions.
    """
    _before_the_next_story(log)
    forget(log, "plain-0", start=eviction(log, "plain-0") - 4)


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def no_eviction_at_all(log: Log) -> None:
    """All devices get NoExecute taints, and nobody is evicted for twelve seconds."""
    _before_the_next_story(log)
    start = eviction(log, "plain-0") - 4
    for pod in ("plain-0", "plain-1", "plain-2", "ns-0", "any-0"):
        forget(log, pod, start=start)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_before_its_time(log: Log) -> None:
    """A toleration of twelve seconds ends after three (1.3)."""
    first = eviction(log, "tol12-0")
    last = max(n for n, line in enumerate(log.lines) if mentions(line, "tol12-0"))
    shift(log, list(range(first, last + 1)), -9)


def _marked_earlier(log: Log, seconds: int) -> None:
    """The eviction of tol12-0 alone is earlier; what follows from it is when it was."""
    place = eviction(log, "tol12-0")
    user = log.lines[place]["user"]["username"]
    shift(
        log,
        [
            number
            for number, line in enumerate(log.lines)
            if line["user"]["username"] == user
            and line["objectRef"].get("name") == "tol12-0"
            and line["objectRef"]["resource"] == "pods"
            and line["verb"] in ("patch", "delete")
        ],
        -seconds,
    )


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_alone_two_seconds_early(log: Log) -> None:
    """The clocks of a server and of a controller do not differ by two seconds (1.3)."""
    _marked_earlier(log, 2)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_alone_three_seconds_early(log: Log) -> None:
    """A toleration of twelve seconds ends after nine (1.3)."""
    _marked_earlier(log, 3)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_alone_eight_seconds_early(log: Log) -> None:
    """A toleration of twelve seconds ends after four (1.3)."""
    _marked_earlier(log, 8)


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def eviction_after_its_time(log: Log) -> None:
    """The taint is an hour old, so twelve seconds are over at once; the eviction comes 11 s later.

    The same controller evicted five pods in between within 40 ms, and no request of it failed.
    """
    _before_the_next_story(log)
    published(log, 2, each_taint(lambda taint: taint.update(timeAdded="2026-11-21T07:05:13Z")))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_though_tolerated_for_ever(log: Log) -> None:
    """The toleration has no seconds, so it holds for ever; the pod is evicted (1.3)."""

    def endless(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                endless(item)
        elif isinstance(node, dict):
            if node.get("key") == "gpu.example.com/unhealthy":
                node.pop("tolerationSeconds", None)
            for value in node.values():
                endless(value)

    for line in log.lines:
        endless(line.get("requestObject"))
        endless(line.get("responseObject"))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_for_no_schedule(log: Log) -> None:
    """The taints are NoSchedule, which evicts nobody (1.2)."""
    published(log, 2, each_taint(lambda taint: taint.update(effect="NoSchedule")))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_without_taint(log: Log) -> None:
    """The device of one evicted pod has no taint (1.2)."""

    def change(body: Json) -> None:
        if body["spec"]["pool"]["name"] == "worker-2":
            body["spec"]["devices"][0].pop("taints", None)

    published(log, 2, change)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def eviction_by_a_taint_of_an_old_generation(log: Log) -> None:
    """Pods are evicted for taints of a slice whose pool has a newer generation (1.2).

    The new slice of worker-2 has one generation less than the other one of its pool.
    """
    log.widen()
    place = log.first("create", "resourceslices", "worker-2-gpu", code=201)
    new = log.again(place, seconds=0.002, to=place + 1)
    version = str(log.version_before(place + 1))
    for body in (new["requestObject"], new["responseObject"]):
        body["metadata"]["name"] = "worker-2-gpu-b"
        body["spec"]["pool"]["generation"] = 9
    new["objectRef"]["name"] = "worker-2-gpu-b"
    new["responseObject"]["metadata"].update(
        uid="a1b7a3f0-0000-4000-8000-000000000003", resourceVersion=version
    )


def _rule(log: Log, name: str, change: Change) -> None:
    number = log.first("create", "devicetaintrules", name)
    line = log.lines[number]
    for body in (line["requestObject"], *log.of(uid_of(line))):
        if "spec" in body:
            change(body)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def rule_of_another_driver_evicts(log: Log) -> None:
    """The NoExecute rule selects another driver's devices, and evicts five pods (1.2)."""
    log.cut(log.first("create", "pods", "blocked"))
    _rule(log, "maintenance", lambda b: b["spec"]["deviceSelector"].update(driver="x.example.com"))


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_of_another_device_evicts(log: Log) -> None:
    """The NoExecute rule selects gpu-3; the pod on gpu-0 is evicted (1.2).

    Corrected for `verify`: a rule for all devices was deleted less than a second before, and the
    controller's cache of rules may lag. invariants.md gives it 15 seconds.
    """
    log.cut(log.first("create", "pods", "n-0"))
    _rule(log, "dev-ne", lambda body: body["spec"]["deviceSelector"].update(device="gpu-3"))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def rule_of_another_pool_evicts(log: Log) -> None:
    """The NoExecute rule selects worker-1; pods on worker-2 are evicted (1.2)."""
    _rule(log, "evict-worker-2", lambda b: b["spec"]["deviceSelector"].update(pool="worker-1"))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def rule_without_selector_evicts(log: Log) -> None:
    """An absent selector selects nothing for evictions (C1); five pods are evicted."""
    log.cut(log.first("create", "pods", "blocked"))
    _rule(log, "maintenance", lambda body: body["spec"].pop("deviceSelector"))


def _reported(log: Log, old: str, new: str, *, times: int = 1000) -> None:
    done = False
    for line in log.lines:
        if line["objectRef"]["resource"] == "devicetaintrules":
            text = json.dumps(line)
            if old in text and times > 0:
                line.update(json.loads(text.replace(old, new)))
                done = True
                times -= 1
    if not done:
        raise NotFound(old)


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_counts_fewer_pods(log: Log) -> None:
    """Five pods are pending; the status of the rule says four (1.6)."""
    _reported(log, "5 pods need to be evicted", "4 pods need to be evicted")


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_counts_more_devices(log: Log) -> None:
    """Eight published devices are selected; the status of the rule says nine (1.6)."""
    _reported(log, "8 published devices", "9 published devices")


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_counts_more_allocated_devices(log: Log) -> None:
    """Six allocations are selected, and the status of the rule says one more (1.6)."""
    _reported(log, "7 allocated devices", "8 allocated devices")


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_completed_counts_wrong(log: Log) -> None:
    """Five pods were evicted; the last status says six (1.6)."""
    _reported(log, "5 pods evicted since", "6 pods evicted since")


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_reason_wrong(log: Log) -> None:
    """NoExecute with pending pods has the reason PodsPendingEviction, not Completed (1.6)."""
    _reported(log, '"PodsPendingEviction"', '"Completed"')


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_status_false_while_pods_pend(log: Log) -> None:
    """With pending pods the condition is True; here it is False (1.6)."""
    for number in list(log.find("patch", "devicetaintrules/status", by=CONTROLLER)):
        for side in ("requestObject", "responseObject"):
            for condition in log.lines[number][side]["status"]["conditions"]:
                if condition["reason"] == "PodsPendingEviction":
                    condition["status"] = "False"
    # Later states of the rules show the condition as well.
    _reported(
        log,
        '"type": "EvictionInProgress", "status": "True"',
        '"type": "EvictionInProgress", "status": "False"',
    ) if _has_true(log) else None


def _has_true(log: Log) -> bool:
    return any(
        '"type": "EvictionInProgress", "status": "True"' in json.dumps(line)
        for line in log.lines
        if line["objectRef"]["resource"] == "devicetaintrules"
    )


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def rule_never_reported(log: Log) -> None:
    """The rules are there for many seconds, and the controller writes no status of them (1.6)."""
    log.drop(
        lambda line: (
            line["objectRef"]["resource"] == "devicetaintrules"
            and line["objectRef"].get("subresource") == "status"
        )
    )
    for line in log.lines:
        if line["objectRef"]["resource"] == "devicetaintrules":
            (line.get("responseObject") or {}).pop("status", None)


def _mark_without_cause(log: Log) -> tuple[str, int, Json]:
    """Marks a pod that tolerates the taint for ever: its uid, the new line, and the condition."""
    log.widen()
    number = eviction(log, "plain-1")
    pod = log.first("patch", "pods/status", "tolerate-0", by="system:node", code=200)
    state = json.loads(json.dumps(log.lines[pod]["responseObject"]))
    new = log.again(number, seconds=0.3)
    at = log.lines.index(new)
    version = str(log.version_before(at))
    condition = new["requestObject"]["status"]["conditions"][0]
    uid = state["metadata"]["uid"]
    new["objectRef"]["name"] = "tolerate-0"
    new["requestURI"] = new["requestURI"].replace("plain-1", "tolerate-0")
    new["requestObject"]["metadata"]["uid"] = uid
    state["status"]["conditions"].append(condition)
    state["metadata"]["resourceVersion"] = version
    new["responseObject"] = state
    return uid, at, condition


@alteration("wrong", TAINTS, verify=PART, decide=PART)
def condition_without_cause(log: Log) -> None:
    """The controller tells a pod that tolerates the taint for ever that it is deleted (1.5).

    Corrected, for `verify` first and then for `decide`: the log ends half a second later, before
    the first line about a rule. A rule of before the log, with another taint, may have evicted the
    pod, and would look the same. That controllers are seen to watch rules proves nothing: a policy
    that leaves out the administrator, who makes them, shows that, too.
    """
    _, at, _ = _mark_without_cause(log)
    log.cut(at + 10)


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def condition_without_cause_and_no_rule_follows(log: Log) -> None:
    """A pod that tolerates the taint for ever is told that it is deleted (1.5); nothing follows.

    A rule that was the cause has another status ten seconds later (1.6). The log records statuses
    of rules and goes on for 87 seconds, and the first rule in it was made 19 seconds later.
    """
    uid, at, condition = _mark_without_cause(log)

    def marked(body: Json) -> None:
        body.setdefault("status", {}).setdefault("conditions", []).append(condition)

    for line in log.lines[at + 1 :]:
        body = line.get("responseObject") or {}
        if body.get("metadata", {}).get("uid") == uid:
            marked(body)


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def deleted_without_the_condition(log: Log) -> None:
    """The eviction controller deletes a pod that it has not marked: the patch precedes (1.5)."""
    number = eviction(log, "plain-0")
    uid = uid_of(log.lines[number])
    del log.lines[number]

    def unmarked(body: Json) -> None:
        status = body.get("status", {})
        status["conditions"] = [
            one for one in status.get("conditions", []) if one["type"] != "DisruptionTarget"
        ]

    log.alter(uid, unmarked)


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def condition_with_another_text(log: Log) -> None:
    """The condition of an eviction has a fixed reason (1.5); this one has another."""
    for line in log.lines:
        if line["objectRef"].get("name") == "plain-0":
            text = json.dumps(line).replace(
                "DeletionByDeviceTaintManager", "DeletionByTaintManager"
            )
            line.update(json.loads(text))


@alteration("wrong", TAINTS, verify=AGREES, decide=FAILS)
def pending_eviction_never_followed_by_one(log: Log) -> None:
    """The rule says that a pod is pending, the pod is due in twelve seconds and lives on.

    The recording goes on for 14 seconds after the due time. Corrected: without the line that ends
    it, nothing in it was later than the due time.
    """
    log.cut(log.first("create", "pods", "blocked") + 1)
    start = eviction(log, "r-12") - 2
    forget(log, "r-12", start=start)
    log.drop(
        lambda line: (
            line["objectRef"].get("name") == "maintenance"
            and line["objectRef"].get("subresource") == "status"
        ),
        start=start,
    )
