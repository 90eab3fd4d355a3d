"""Incidents that show as violations of invariants."""

from collections.abc import Iterable, Mapping

from app.analysis.scan.sightings import Certainty, Sightings
from app.analysis.verify.invariants import Violation, ViolationKind
from app.domain.log import ObjectKey
from app.domain.values import api_resources

DEVICE_TWICE = "device-in-two-claims"
RULES_NOT_SEEN = "rules-not-seen"
NOT_COPIED = "tolerations-not-copied"
COUNTERS_MIXED = "counters-by-pool-name"
LAST_ONLY = "distinct-remembers-the-last"
LOOKED_FOR = (DEVICE_TWICE, RULES_NOT_SEEN, NOT_COPIED, COUNTERS_MIXED, LAST_ONLY)


def see(
    violations: Iterable[Violation], drivers: Mapping[str, frozenset[str]], sightings: Sightings
) -> None:
    """Adds the incidents of violations; `drivers` maps pool names to the drivers with counters."""
    for violation in violations:
        if violation.kind is ViolationKind.UNSURE or violation.kind is ViolationKind.OUTSIDE:
            continue
        incident, certainty = _incident(violation, drivers)
        if incident:
            sightings.add(
                incident,
                violation.begin.revision,
                violation.message,
                *violation.objects,
                certainty=certainty,
                rests_on=(api_resources.DEVICE_TAINT_RULES[1],)
                if incident == RULES_NOT_SEEN
                else (),
            )


def unsure_claims(violations: Iterable[Violation]) -> set[frozenset[ObjectKey]]:
    """Bound pods, each with a claim whose allocation may not be recorded."""
    return {
        frozenset(violation.objects)
        for violation in violations
        if violation.rule == "bound-pod-has-claims" and violation.kind is ViolationKind.UNSURE
    }


def _incident(violation: Violation, drivers: Mapping[str, frozenset[str]]) -> tuple[str, Certainty]:
    match violation.rule:
        case "device-in-one-claim":
            if "in shares" in violation.message:
                # It was shared once, and its driver has ended that: no attempt gave it out twice.
                return "", Certainty.LIKELY
            return DEVICE_TWICE, Certainty.CERTAIN
        case "tolerations-copied":
            return NOT_COPIED, Certainty.CERTAIN
        case "placement-respects-taints":
            rule = api_resources.DEVICE_TAINT_RULES[1]
            if any(key.resource == rule for key in violation.objects):
                return RULES_NOT_SEEN, Certainty.CERTAIN
        case "constraint-holds":
            if "do not differ" in violation.message:
                return LAST_ONLY, Certainty.LIKELY
        case "counters-not-overdrawn":
            if any(len(names) > 1 for names in drivers.values()):
                return COUNTERS_MIXED, Certainty.LIKELY
    return "", Certainty.LIKELY
