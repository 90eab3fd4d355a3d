"""WRONG and LOSSY: what is left of the log still proves the wrong, so `verify` has to fail.

The lines about the objects of the wrong are kept whole; others are lost. No decision rests on
Events, so `decide` has to fail without them. Nor does it need namespaces and templates: a server
refuses objects in a namespace that is not there, and a generated claim has the spec of its template
(controllers.md 2.2), so their being there, and the spec, are known from other lines.
"""

import random
from collections.abc import Callable, Sequence
from datetime import datetime

from tests.adversary import causes, devices, evictions, writes
from tests.adversary.catalogue import (
    ALTERATIONS,
    FAILS,
    MIG,
    NOT_BLAMED,
    PART,
    QUICKSTART,
    SAME,
    SOAK,
    TAINTS,
    VERSIONS,
    alteration,
)
from tests.adversary.log import Json, Log

_BY_THE_SLICES = ("constraint_violated", "class_does_not_match", "selector_does_not_match")
"""Wrongs that only the content of a slice shows."""

_BY_WHAT_IS_PUBLISHED = (*_BY_THE_SLICES, "device_never_published", "counters_overdrawn")
"""Those, and wrongs that a slice of which all lines are lost would make right."""

_NEEDED = ("resourceslices", "deviceclasses")
_WRONGS = (causes, devices, evictions, writes)
"""The modules whose alterations are taken: they have to be registered first."""


def _events(line: Json, _drawn: random.Random) -> bool:
    return bool(line["objectRef"]["resource"] == "events")


def _a_third_of_the_rest(line: Json, drawn: random.Random) -> bool:
    return drawn.random() < 0.33


def _nodes_and_templates(line: Json, _drawn: random.Random) -> bool:
    return line["objectRef"]["resource"] in ("nodes", "resourceclaimtemplates", "namespaces")


def _templates_and_namespaces(line: Json, _drawn: random.Random) -> bool:
    return line["objectRef"]["resource"] in ("resourceclaimtemplates", "namespaces")


_LOSSES: dict[str, tuple[str, Callable[[Json, random.Random], bool]]] = {
    "without_events": ("no Events are recorded", _events),
    "a_third_lost": ("a third of the other lines is lost", _a_third_of_the_rest),
    "without_nodes": ("no nodes, templates and namespaces are recorded", _nodes_and_templates),
    "without_templates": (
        "no templates and namespaces are recorded, which the claims and pods imply",
        _templates_and_namespaces,
    ),
}


_DECIDED = ("without_events", "without_templates")
"""Losses that leave everything on which a decision rests, or what implies it."""


def _compose(wrong: str, recording: str, loss: str, kept: Sequence[str]) -> None:
    change_wrong = ALTERATIONS[wrong].change
    text, gone = _LOSSES[loss]

    def change(log: Log) -> None:
        change_wrong(log)
        drawn = random.Random(11)
        log.lines = [
            line
            for line in log.lines
            if line["objectRef"]["resource"] in _NEEDED
            or evictions.mentions(line, *kept)
            or not gone(line, drawn)
        ]

    change.__name__ = f"{wrong}_{loss}"
    change.__doc__ = (
        f"{' '.join((change_wrong.__doc__ or '').split())} Besides, {text}; what is about "
        f"{', '.join(kept)}, classes and slices is whole."
    )
    depends = loss == "a_third_lost" and wrong in _BY_WHAT_IS_PUBLISHED
    if depends:
        change.__doc__ += (
            " Corrected: a lost line may have been another state of the slices, or another slice"
            " with the device or with more counters, which nobody can see, so the comparison is"
            " one in part."
        )
    is_exchanged = loss == "a_third_lost" and wrong == "allocation_exchanged"
    if is_exchanged:
        change.__doc__ += (
            " Corrected: a lost line may have taken the first allocation back, which no later line"
            " shows, as a status has no generation."
        )
    expected = PART if depends or is_exchanged else FAILS
    decided = FAILS if loss in _DECIDED and recording != SOAK else ""
    if loss == "a_third_lost":
        decided = {"device_in_two_claims": FAILS, "counters_overdrawn": PART}.get(wrong, "")
    alteration("both", recording, verify=expected, decide=decided)(change)


@alteration("both", QUICKSTART, verify=FAILS, decide=FAILS)
def device_never_published_and_no_event_at_all(log: Log) -> None:
    """A device that no slice has is allocated, and nothing in the log is about an Event."""
    ALTERATIONS["device_never_published"].change(log)
    log.drop(lambda line: bool(line["objectRef"]["resource"] == "events"))


for _wrong, _recording, _kept in (
    ("device_in_two_claims", QUICKSTART, ("pod0", "pod1")),
    ("device_never_published", QUICKSTART, ("pod0", "pod1")),
    ("counters_overdrawn", MIG, ("w-00", "t-00")),
    ("constraint_violated", MIG, ("four-on-one",)),
    ("class_does_not_match", MIG, ("w-00",)),
    ("selector_does_not_match", TAINTS, ("ns-0",)),
    ("more_devices_than_asked", VERSIONS, ("p-b1",)),
    ("one_device_twice_in_a_claim", VERSIONS, ("flat", "p-flat")),
    ("tolerations_not_copied", TAINTS, ("ns-0",)),
    ("allocation_exchanged", QUICKSTART, ("pod0", "pod1")),
    ("spec_of_a_claim_changes", TAINTS, ("ns-0",)),
    ("allocated_without_finalizer", QUICKSTART, ("pod0", "pod1")),
    ("share_consumes_more_than_there_is", SOAK, ()),
):
    for _loss in _LOSSES:
        if _kept or _loss != "a_third_lost":
            _compose(_wrong, _recording, _loss, _kept)


@alteration("both", TAINTS, verify=NOT_BLAMED, decide=FAILS)
def eviction_missing_without_templates(log: Log) -> None:
    """A pod that a taint evicts is not evicted; no templates and namespaces are recorded.

    Its claim shows what its template was, so that nothing is missing on which the eviction rests.
    """
    ALTERATIONS["eviction_missing"].change(log)
    log.drop(lambda line: _templates_and_namespaces(line, random.Random()))


@alteration("both", QUICKSTART, verify=FAILS, decide=FAILS)
def later_device_than_the_first_and_namespaces_named_only(log: Log) -> None:
    """A later device than the first one is given; of namespaces the policy records names alone.

    A request about a namespace tells its name and time, on which no choice of a device rests.
    """
    ALTERATIONS["later_device_than_the_first"].change(log)
    for line in log.lines:
        if line["objectRef"]["resource"] == "namespaces":
            line["level"] = "Metadata"
            line.pop("requestObject", None)
            line.pop("responseObject", None)


@alteration("both", QUICKSTART, verify=NOT_BLAMED, decide=PART)
def device_in_two_claims_without_claim_controller(log: Log) -> None:
    """A device is in two claims, and no line of the claim controller is recorded.

    A claim gives its device back in a write of that controller (2.3), so a lost line may be of it.
    """
    ALTERATIONS["device_in_two_claims"].change(log)
    log.drop(lambda line: "resource-claim-controller" in line["user"]["username"])


def _of_kind(*kinds: str) -> Callable[[Json], bool]:
    return lambda line: line["objectRef"]["resource"] in kinds


def _of_user(user: str) -> Callable[[Json], bool]:
    return lambda line: user in line["user"]["username"]


_LEFT_OUT: dict[str, tuple[str, Callable[[Json], bool]]] = {
    "collector": ("by the garbage collector", _of_user("generic-garbage-collector")),
    "kubelets": ("by a kubelet", _of_user("system:node:")),
    "deployments": ("about a Deployment", _of_kind("deployments")),
    "replicasets": ("about a ReplicaSet", _of_kind("replicasets")),
    "devicetaintrules": ("about a DeviceTaintRule", _of_kind("devicetaintrules")),
}


def _leave_out(wrong: str, recording: str, kind: str, verify: str) -> None:
    change_wrong = ALTERATIONS[wrong].change
    text, gone = _LEFT_OUT[kind]

    def change(log: Log) -> None:
        change_wrong(log)
        log.drop(gone)

    change.__name__ = f"{wrong}_without_{kind}"
    change.__doc__ = (
        f"{' '.join((change_wrong.__doc__ or '').split())} Besides, no line is {text}, and nothing"
        " in such a line could have made it right."
    )
    alteration("both", recording, verify=verify, decide=FAILS)(change)


for _wrong, _recording, _kind, _verify in (
    ("device_in_two_claims", QUICKSTART, "collector", FAILS),
    ("device_in_two_claims", QUICKSTART, "kubelets", FAILS),
    ("eviction_missing", TAINTS, "collector", NOT_BLAMED),
    ("eviction_missing", TAINTS, "deployments", NOT_BLAMED),
    ("eviction_missing", TAINTS, "replicasets", NOT_BLAMED),
    ("tolerations_not_copied", TAINTS, "devicetaintrules", FAILS),
    ("tolerations_not_copied", TAINTS, "replicasets", FAILS),
    ("selector_does_not_match", TAINTS, "devicetaintrules", FAILS),
):
    _leave_out(_wrong, _recording, _kind, _verify)


_ELSEWHERE = ("pod2", "pod5", "pod6", "pod7")


def _lose_elsewhere(wrong: str) -> None:
    change_wrong = ALTERATIONS[wrong].change

    def change(log: Log) -> None:
        change_wrong(log)
        drawn = random.Random(17)
        log.drop(lambda line: evictions.mentions(line, *_ELSEWHERE) and drawn.random() < 0.5)

    change.__name__ = f"{wrong}_and_lines_lost_elsewhere"
    change.__doc__ = (
        f"{' '.join((change_wrong.__doc__ or '').split())} Besides, half of the lines about"
        f" {', '.join(_ELSEWHERE)} and their claims are lost, on which this does not depend (2.2,"
        " 2.3, 4.6, 7)."
    )
    alteration("both", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)(change)


for _wrong in (
    "claim_without_its_annotation",
    "scheduled_event_of_another_node",
    "claim_made_before_its_pod",
    "collected_before_its_owner_ended",
):
    _lose_elsewhere(_wrong)


def simulate_nodes(log: Log) -> None:
    """What kubelets write is written by a simulator of nodes, under an account of its own."""
    for line in log.lines:
        if line["user"]["username"].startswith("system:node:"):
            line["user"]["username"] = "system:serviceaccount:kube-system:kwok-controller"


@alteration("both", QUICKSTART, verify=FAILS, decide=FAILS)
def released_while_the_pod_runs_on_a_simulated_node(log: Log) -> None:
    """The claim controller takes the claim of a running pod back, and no node has a kubelet.

    The simulator's lines show when pods run and end, so no line of a kubelet is left out.
    """
    ALTERATIONS["released_while_the_pod_runs"].change(log)
    simulate_nodes(log)


@alteration("harmless", (QUICKSTART, MIG), verify=SAME, decide=SAME)
def kubelets_are_a_simulator_of_nodes(log: Log) -> None:
    """Everything that kubelets write is written by one account, which is not of a node."""
    simulate_nodes(log)


def class_changed(log: Log, seconds: float) -> None:
    """The class selects nothing any more, so long before a pod gets a device of it; no nodes."""
    log.widen()
    made = log.first("create", "deviceclasses", "gpu.example.com")
    given = log.allocation("n-3")
    log.cut(given + 1)
    since = datetime.fromisoformat(log.lines[made]["stageTimestamp"])
    passed = (datetime.fromisoformat(log.lines[given]["stageTimestamp"]) - since).total_seconds()
    new = log.again(made, seconds=passed - seconds)
    new.update(verb="update", requestURI=f"{new['requestURI'].partition('?')[0]}/gpu.example.com")
    new["objectRef"]["name"] = "gpu.example.com"
    new["responseStatus"]["code"] = 200
    version = str(log.version_before(log.lines.index(new)))
    for body in (new["requestObject"], new["responseObject"]):
        body["spec"]["selectors"] = [{"cel": {"expression": 'device.driver == "nic.example.com"'}}]
    new["responseObject"]["metadata"].update(generation=2, resourceVersion=version)
    log.lines = [line for line in log.lines if line["objectRef"]["resource"] != "nodes"]


@alteration("both", TAINTS, verify=FAILS, decide="")
def class_had_long_changed_without_nodes(log: Log) -> None:
    """Twenty seconds after a class was changed to select nothing, a claim gets a device of it.

    Nodes are not recorded, but a selector is false on any node (5.1), and no scheduler writes a
    choice 15 seconds later.
    """
    class_changed(log, 20)


@alteration("lossy", TAINTS, verify=NOT_BLAMED, decide="")
def class_changes_a_moment_before_without_nodes(log: Log) -> None:
    """A class is changed two seconds before a claim is written that was decided before."""
    class_changed(log, 2)


def _lose_the_next_report(wrong: str) -> None:
    change_wrong = ALTERATIONS[wrong].change

    def change(log: Log) -> None:
        change_wrong(log)
        log.lines.pop(log.first("patch", "pods/status", "pod1", by="system:node:"))

    change.__name__ = f"{wrong}_and_the_next_report_lost"
    change.__doc__ = (
        f"{' '.join((change_wrong.__doc__ or '').split())} Besides, the first report about that pod"
        " by its kubelet is lost, which came after the pod was bound."
    )
    alteration("both", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)(change)


for _wrong in ("claim_without_owner", "claim_without_its_annotation"):
    _lose_the_next_report(_wrong)


def _lose_both_next_reports(wrong: str) -> None:
    change_wrong = ALTERATIONS[wrong].change

    def change(log: Log) -> None:
        change_wrong(log)
        first_reports_lost(log)

    change.__name__ = f"{wrong}_and_both_next_reports_lost"
    change.__doc__ = (
        f"{' '.join((change_wrong.__doc__ or '').split())} Besides, the first reports about pod0"
        " and pod1 by their kubelet are lost, which came after both were bound."
    )
    alteration("both", QUICKSTART, verify=NOT_BLAMED, decide=FAILS)(change)


def first_reports_lost(log: Log) -> None:
    """The first reports about pod0 and pod1 by their kubelet are lost; nothing is wrong."""
    for pod in ("pod0", "pod1"):
        log.lines.pop(log.first("patch", "pods/status", pod, by="system:node:"))


alteration("lossy", QUICKSTART, verify=NOT_BLAMED, decide=NOT_BLAMED)(first_reports_lost)

for _wrong in ("bound_beyond_the_cpu_of_the_node", "claim_without_owner"):
    _lose_both_next_reports(_wrong)
