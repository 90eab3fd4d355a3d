"""The summary of a scheduling decision in the log, bounded in size."""

from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.scheduling.binding_cycle import preemption_writes
from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView

CLAIMS_MAX = 8
DEVICES_MAX = 8
REASONS_MAX = 16


def bounds_of(inputs: JsonView) -> SummaryBounds | None:
    """The bounds of the causes in a recorded decision; None when it has none."""
    match inputs.get("summary"):
        case [int(bytes_max), int(nodes_max)]:
            return SummaryBounds(bytes_max=bytes_max, nodes_max=nodes_max)
        case _:
            return None


def summary_of(attempt: Attempt, bounds: SummaryBounds | None = None) -> JsonObject:
    """The reasons of an attempt; examples are cut, counts are not.

    Without `bounds` the causes of devices are left out.
    """
    if attempt.outcome != "Scheduled":
        body: JsonObject = {"message": attempt.message[:2048], "lookedAt": attempt.looked_at}
        reasons = sorted(attempt.reasons.items(), key=lambda item: (-item[1], item[0]))
        if reasons:
            body["reasons"] = dict(reasons[:REASONS_MAX])
            body["reasonsCount"] = len(reasons)
        if attempt.deallocate is not None:
            body["deallocated"] = attempt.deallocate.name
        if attempt.preemption.chosen is not None:
            body["preemption"] = preemption_writes.summary_of(attempt.preemption)
        if bounds is not None and attempt.causes is not None:
            fresh = [claim for claim in attempt.claims if claim.allocation is None]
            names = [f"{claim.key.namespace}/{claim.key.name}" for claim in fresh]
            names.append(extended_resources.PSEUDO_NAME)
            attempt.causes(bounds).write(body, names, bounds.bytes_max)
        return body
    drawn = iter(attempt.allocations)
    claims: list[JsonObject] = []
    for claim in attempt.claims:
        allocation = claim.allocation if claim.allocation is not None else next(drawn)
        results = dra.results_of(allocation)
        devices = [result.text for result in results[:DEVICES_MAX]]
        claims.append(
            {
                "claim": claim.name,
                "fresh": claim.allocation is None,
                "devices": devices,
                "devicesCount": len(results),
            }
        )
    if attempt.extended is not None:
        results = dra.results_of(next(drawn))
        claims.append(
            {
                "claim": extended_resources.PSEUDO_NAME,
                "fresh": True,
                "devices": [result.text for result in results[:DEVICES_MAX]],
                "devicesCount": len(results),
            }
        )
    return {
        "node": attempt.node,
        "feasible": attempt.feasible,
        "lookedAt": attempt.looked_at,
        "claims": claims[:CLAIMS_MAX],
        "claimsCount": len(claims),
    }
