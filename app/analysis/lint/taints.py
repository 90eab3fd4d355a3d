"""Rules about taints, tolerations, and the rules that taint."""

from collections.abc import Iterator

from app.analysis.lint.findings import FindingPlace, LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import LintedObject, Subjects
from app.domain.devices import taints
from app.domain.devices.model import Taint, Toleration
from app.domain.devices.taints import BLOCKING_EFFECTS
from app.domain.values import counts

UNTOLERATED = LintRule(
    id="taint-untolerated",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate",
    means="No request of the sources tolerates a taint that keeps devices from being allocated.",
    cure="None is needed for taints of broken devices; otherwise add the toleration to requests.",
    reference="docs/parity/allocator.md 9",
)
NO_EFFECT = LintRule(
    id="toleration-without-effect",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate",
    means="A toleration without an effect tolerates every taint for scheduling and none for "
    "eviction: on a device with a NoExecute taint the pod is placed and evicted at once (c2).",
    cure="Write one toleration with effect NoSchedule and one with effect NoExecute.",
    reference="docs/parity/controllers.md 1.3, 9 (C2)",
)
EVERYTHING = LintRule(
    id="rule-selects-everything",
    severity=LintSeverity.ERROR,
    reads="DeviceTaintRule",
    means="The rule's deviceSelector is there and names nothing, so it selects every device of the "
    "cluster: with NoExecute every pod that uses a device is evicted.",
    cure="Name a driver, pool or device; try the rule with `redra blast -f FILE` before.",
    reference="docs/parity/objects.md 8; KEP-5055",
)
NO_SELECTOR = LintRule(
    id="rule-without-selector",
    severity=LintSeverity.WARNING,
    reads="DeviceTaintRule",
    means="The rule has no deviceSelector: it evicts nothing, and keeps every device of the "
    "cluster from being allocated (c1, q14).",
    cure="Name a driver, pool or device.",
    reference="docs/parity/controllers.md 9 (C1); docs/parity/allocator.md 16 (Q14)",
)
RULE_IDLE = LintRule(
    id="rule-selects-nothing",
    severity=LintSeverity.WARNING,
    reads="DeviceTaintRule, ResourceSlice",
    means="The rule selects no device of the sources.",
    cure="Compare driver, pool and device of the selector with the slices; all that are named must "
    "fit one device.",
    reference="docs/parity/objects.md 8",
)
RULES = (UNTOLERATED, NO_EFFECT, EVERYTHING, NO_SELECTOR, RULE_IDLE)


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all slices, taint rules and requests."""
    for subject in subjects.of_kind("DeviceTaintRule"):
        yield from _rule(subject, subjects)
    tolerations: list[Toleration] = []
    for ask in subjects.asks:
        for index, tree in enumerate(ask.form.tolerations):
            toleration = taints.toleration_of(tree)
            tolerations.append(toleration)
            if not toleration.effect:
                place = ask.owner.at(f"{ask.path}.tolerations[{index}]")
                yield NO_EFFECT.at(place, f"request {ask.name} tolerates {toleration.key or 'all'}")
    if subjects.claims:
        yield from _untolerated(subjects, tolerations)


def _rule(subject: LintedObject, subjects: Subjects) -> Iterator[LintFinding]:
    rule = taints.rule_of(subject.tree)
    blocks = rule.taint.effect in BLOCKING_EFFECTS
    if not rule.selects:
        if blocks:
            yield NO_SELECTOR.at(subject.at("spec"), f"effect {rule.taint.effect}")
        return
    if (rule.driver, rule.pool, rule.device) == (None, None, None):
        if blocks:
            count = len(subjects.devices)
            tainted = (
                f"{counts.of(count, 'device')} of the sources {counts.verb(count, 'is')} tainted"
            )
            message = f"effect {rule.taint.effect}; {tainted}"
            yield EVERYTHING.at(subject.at("spec.deviceSelector"), message)
        return
    devices = subjects.devices
    if devices and not any(rule.matches(device.id) for device in devices):
        place = subject.at("spec.deviceSelector")
        yield RULE_IDLE.at(place, f"it selects none of {counts.of(len(devices), 'device')}")


def _untolerated(subjects: Subjects, tolerations: list[Toleration]) -> Iterator[LintFinding]:
    first: dict[tuple[str, str, str], FindingPlace] = {}
    tainted: dict[tuple[str, str, str], int] = {}
    rules = {each.tree["metadata"]["name"]: each for each in subjects.of_kind("DeviceTaintRule")}
    for pool in subjects.pools:
        for published, device, path in pool.devices():
            for index, taint in enumerate(device.taints):
                if not _is_blocking(taint, tolerations):
                    continue
                key = taint.key, taint.value, taint.effect
                tainted[key] = tainted.get(key, 0) + 1
                place = (
                    rules[taint.rule].at("spec.taint")
                    if taint.rule in rules
                    else published.subject.at(f"{path}.taints[{index}]")
                )
                first.setdefault(key, place)
    for key, place in first.items():
        text = Taint(key=key[0], value=key[1], effect=key[2]).text
        had = f"{counts.of(tainted[key], 'device')} {counts.verb(tainted[key], 'has')}"
        yield UNTOLERATED.at(place, f"no request tolerates {text}, which {had}")


def _is_blocking(taint: Taint, tolerations: list[Toleration]) -> bool:
    return taint.effect in BLOCKING_EFFECTS and not any(
        taints.tolerates(toleration, taint) for toleration in tolerations
    )
