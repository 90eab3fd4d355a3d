"""LOSSY: what a policy, a collector or an accident leaves of an honest log.

Nothing wrong has happened, so nothing may fail. Where a kind that every decision needs is missing,
the comparison has to say that it is one in part.
"""

import random
from collections.abc import Callable
from functools import partial

from tests.adversary.catalogue import (
    MIG,
    NOT_BLAMED,
    PART,
    QUICKSTART,
    SMALL,
    TAINTS,
    TPU,
    alteration,
)
from tests.adversary.log import Json, Log

_SOME = (QUICKSTART, MIG, TPU, TAINTS)


def _register(
    name: str,
    why: str,
    change: Callable[[Log], None],
    *,
    verify: str = NOT_BLAMED,
    decide: str = NOT_BLAMED,
    recordings: tuple[str, ...] = _SOME,
) -> None:
    change.__name__ = name
    change.__doc__ = why
    alteration("lossy", recordings, verify=verify, decide=decide)(change)


def at_random(share: float, seed: int) -> Callable[[Log], None]:
    """Loses a share of the lines."""

    def change(log: Log) -> None:
        drawn = random.Random(f"{seed} {share}")
        log.lines = [line for line in log.lines if drawn.random() >= share]

    return change


def _is_of_kind(kind: str, line: Json) -> bool:
    return bool(line["objectRef"]["resource"] == kind)


def _has_verb(verb: str, line: Json) -> bool:
    return bool(line["verb"] == verb)


def _is_by(user: str, line: Json) -> bool:
    return user in line["user"]["username"]


def without(gone: Callable[[Json], bool]) -> Callable[[Log], None]:
    """Loses the lines that match."""

    def change(log: Log) -> None:
        log.lines = [line for line in log.lines if not gone(line)]

    return change


for _percent in (1, 3, 10, 30, 70):
    for _seed in (1, 2, 3):
        _register(
            f"loses_{_percent}_percent_{_seed}",
            f"A collector lost {_percent} % of the lines at random (draw {_seed}).",
            at_random(_percent / 100, _seed),
        )

for _kind, _decided in {
    "events": NOT_BLAMED,
    "nodes": PART,
    "resourceslices": PART,
    "deviceclasses": PART,
    "pods": PART,
    "resourceclaims": PART,
    "resourceclaimtemplates": NOT_BLAMED,
    "namespaces": NOT_BLAMED,
    "devicetaintrules": NOT_BLAMED,
    "deployments": NOT_BLAMED,
    "replicasets": NOT_BLAMED,
}.items():
    _register(
        f"loses_{_kind}",
        f"The policy does not record {_kind}.",
        without(partial(_is_of_kind, _kind)),
        decide=_decided,
        recordings=SMALL,
    )

for _verb in ("create", "update", "patch", "delete", "deletecollection"):
    _register(
        f"loses_verb_{_verb}",
        f"A filter of the collector drops every {_verb}.",
        without(partial(_has_verb, _verb)),
    )

for _user, _title in {
    "kube-scheduler": "scheduler",
    "resource-claim-controller": "claim_controller",
    "generic-garbage-collector": "collector",
    "device-taint-eviction": "eviction_controller",
    "system:node:": "kubelets",
    "alice": "user",
    "dra-driver": "driver",
    "kubernetes-admin": "administrator",
    "system:": "everything_of_the_system",
}.items():
    _register(
        f"loses_{_title}",
        f"A rule of the policy leaves out the user {_user}.",
        without(partial(_is_by, _user)),
    )


def _is_within(namespace: str, line: Json) -> bool:
    return bool(line["objectRef"].get("namespace") == namespace)


for _namespace in ("basic-resourceclaimtemplate", "basic-shared-claim-across-pods"):
    _register(
        f"loses_namespace_{_namespace.replace('-', '_')}",
        f"A rule of the policy leaves out the namespace {_namespace}.",
        without(partial(_is_within, _namespace)),
        recordings=(QUICKSTART,),
    )


def loses_the_namespace_of_half_the_pods(log: Log) -> None:
    """Each second pod, with its claim and its Events, is in a namespace that no line is about."""
    namespace = "basic-resourceclaimtemplate"
    about = [log.lines[number]["objectRef"] for number in log.find("create", "pods/binding")]
    names = [str(each["name"]) for each in about if each["namespace"] == namespace]
    gone = frozenset(list(dict.fromkeys(names))[::2])

    def is_gone(line: Json) -> bool:
        about, answer = line["objectRef"], line.get("responseObject") or {}
        name = str(about.get("name") or answer.get("metadata", {}).get("name") or "")
        mark = {"pods": "/", "events": ".", "resourceclaims": "-"}.get(about["resource"], "")
        pod = name.partition(mark)[0] if mark else ""
        return _is_within(namespace, line) and pod in gone

    log.drop(is_gone)


alteration("lossy", (QUICKSTART,), verify=NOT_BLAMED, decide=NOT_BLAMED)(
    loses_the_namespace_of_half_the_pods
)


def _hole(start: float, end: float) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        many = len(log.lines)
        del log.lines[int(many * start) : int(many * end)]

    return change


for _start, _end in ((0, 20), (0, 50), (20, 30), (45, 50), (50, 70), (60, 95)):
    _register(
        f"hole_{_start}_{_end}",
        f"The lines from {_start} % to {_end} % are missing: a file of a rotation is gone.",
        _hole(_start / 100, _end / 100),
        recordings=SMALL,
    )


def level(to: str, concerned: Callable[[Json], bool]) -> Callable[[Log], None]:
    """Lines are recorded at a lower level."""

    def change(log: Log) -> None:
        for line in log.lines:
            if line["level"] != "Metadata" and concerned(line):
                line["level"] = to
                line.pop("responseObject", None)
                if to == "Metadata":
                    line.pop("requestObject", None)

    return change


def _about(*kinds: str) -> Callable[[Json], bool]:
    return lambda line: line["objectRef"]["resource"] in kinds


for _to in ("Request", "Metadata"):
    _register(
        f"all_at_level_{_to.lower()}",
        f"The policy records everything at level {_to}.",
        level(_to, lambda line: True),
        recordings=SMALL,
    )
    for _kind in ("pods", "resourceclaims", "resourceslices", "nodes", "deviceclasses", "events"):
        _register(
            f"{_kind}_at_level_{_to.lower()}",
            f"The policy records {_kind} at level {_to}.",
            level(_to, _about(_kind)),
        )
    for _kind in ("namespaces", "resourceclaimtemplates", "devicetaintrules", "replicasets"):
        _register(
            f"{_kind}_at_level_{_to.lower()}",
            f"The policy records {_kind} at level {_to}.",
            level(_to, _about(_kind)),
            recordings=SMALL,
        )
    _register(
        f"scheduler_at_level_{_to.lower()}",
        f"The policy records the scheduler at level {_to}.",
        level(_to, lambda line: "kube-scheduler" in line["user"]["username"]),
    )


def _truncated(share: float) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        sizes = sorted(len(str(line)) for line in log.lines)
        limit = sizes[int(len(sizes) * (1 - share))]
        for line in log.lines:
            if len(str(line)) >= limit:
                line.pop("requestObject", None)
                line.pop("responseObject", None)
                line.setdefault("annotations", {})["audit.k8s.io/truncated"] = "true"

    return change


for _percent in (5, 25):
    _register(
        f"truncates_{_percent}_percent",
        f"--audit-log-truncate-enabled took the bodies of the biggest {_percent} % of lines.",
        _truncated(_percent / 100),
        recordings=SMALL,
    )


def _answers_lost(share: float, seed: int) -> Callable[[Log], None]:
    def change(log: Log) -> None:
        drawn = random.Random(seed)
        for line in log.lines:
            if "responseObject" in line and drawn.random() < share:
                del line["responseObject"]

    return change


_register(
    "loses_a_tenth_of_the_answers",
    "An index dropped the field responseObject of a tenth of the lines: too many fields.",
    _answers_lost(0.1, 5),
)
_register(
    "two_servers_of_three",
    "The log of one of three API servers is missing: a third of the requests by auditID.",
    without(lambda line: int(line["auditID"][:8], 16) % 3 == 0),
)


def _is_rule(line: Json) -> bool:
    return _is_of_kind("devicetaintrules", line)


def _rules_from(name: str, log: Log) -> int:
    return log.first("create", "devicetaintrules", name)


def _rules_recorded_late(log: Log) -> None:
    start = _rules_from("evict-worker-2", log)
    log.lines[: start + 1] = [line for line in log.lines[: start + 1] if not _is_rule(line)]


def _ends_before_the_rule_is_reported(log: Log) -> None:
    start = _rules_from("evict-worker-2", log)
    log.cut(log.first("patch", "devicetaintrules/status", "evict-worker-2", after=start + 10))
    without(_is_rule)(log)


def _first_statuses_lost(log: Log) -> None:
    start = _rules_from("evict-worker-2", log)
    del log.lines[start : start + 2]


def _begins_after_the_rule(log: Log) -> None:
    del log.lines[: _rules_from("evict-worker-2", log) + 2]


for _change, _name, _why in (
    (
        _rules_recorded_late,
        "rules_recorded_late",
        "The policy records rules only since just after one was created, which then evicts.",
    ),
    (
        _ends_before_the_rule_is_reported,
        "ends_before_the_rule_is_reported",
        "No rule is recorded, and the log ends before the status of the one that evicted is due.",
    ),
    (
        _first_statuses_lost,
        "first_lines_of_a_rule_lost",
        "The creation of a rule that evicts and its first status are in a lost line each.",
    ),
    (
        _begins_after_the_rule,
        "begins_after_a_rule_was_made",
        "The log begins between the creation of a rule and the evictions that it causes.",
    ),
):
    _register(_name, _why, _change, recordings=(TAINTS,))


@alteration("lossy", TAINTS, verify=NOT_BLAMED, decide=NOT_BLAMED)
def loses_taints_unseen_and_lines_of_other_pods(log: Log) -> None:
    """Each second line about two pods is lost, and those in which slices got or lost taints.

    No line that is left shows these. So lost lines about some pods excuse the places of all others:
    whatever else is lost may be why the scheduler chose so.
    """
    for kind, names in (("pods", ("plain-0", "plain-1")), ("resourceclaims", ("plain-",))):
        lines = [
            line
            for line in log.lines
            if _is_of_kind(kind, line) and str(line["objectRef"].get("name")).startswith(names)
        ]
        gone = {line["auditID"] for line in lines[1::2]}
        log.lines = [line for line in log.lines if line["auditID"] not in gone]
    log.drop(lambda line: _is_of_kind("resourceslices", line) and line["verb"] == "update")
