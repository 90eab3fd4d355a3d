"""The messages of attempts, as upstream writes them. Parity: controllers.md 4.3."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.domain.controllers.quirks import ControllerQuirks
from app.domain.values import json_tree
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonView

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
AWAITS_VICTIMS = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = "preempting to accommodate a higher priority pod"

MOVED = "the object has been modified"
"""Part of the message of a version conflict, after which the attempt is repeated at once."""

SKIPPED = "skip schedule deleting pod"
"""The beginning of the note about a pod that terminates."""

BEING_ALLOCATED = "is in the process of being allocated"
"""Part of the message of an attempt that found a claim in flight."""

NOTE_MAX = 1024
"""The most characters of an Event's note; longer ones are cut and end in ` ...`."""


def counted(reasons: Mapping[str, int]) -> str:
    """`<count> <reason>` items sorted as strings, not as numbers, joined with commas."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def unfit(nodes: int, detail: str, after: Iterable[str]) -> str:
    """The message when no node fits: `detail` has the reasons, `after` the post filters' texts."""
    text = f"0/{nodes} nodes are available: {detail}."
    rest = ", ".join(part for part in after if part)
    return f"{text} {rest}" if rest else text


def nothing_done(quirks: ControllerQuirks, *, has_claims: bool) -> str:
    """The text of DynamicResources' post filter when it has no claim to free (r8)."""
    if not quirks.r8:
        return ""
    return "still not schedulable" if has_claims else "no new claims to deallocate"


def preemption(nodes: int, reasons: Mapping[str, int]) -> str:
    """The text of DefaultPreemption when it evicts no pod, with the number of nodes by reason."""
    return f"preemption: 0/{nodes} nodes are available: {counted(reasons)}."


def preempting(node: str, victims: int) -> str:
    """The text of DefaultPreemption when it evicts pods, without a singular form or a full stop."""
    return (
        f"preemption: found a potential placement for pod on node {node}, "
        f"preempting {victims} victims"
    )


def preempted_by(uid: Uid, node: str) -> str:
    """The note about an evicted pod; the pod that it was evicted for is named by its uid only."""
    return f"Preempted by pod {uid} on node {node}"


def note(text: str) -> str:
    """The text as the note of an Event, cut at `NOTE_MAX` characters."""
    return text if len(text) <= NOTE_MAX else f"{text[: NOTE_MAX - 4]} ..."


def filter_error(text: str) -> str:
    """The message of an attempt that ended with an error of a node's filter."""
    return f'running "DynamicResources" filter plugin: {text}'


def score_error(allocations: int) -> str:
    """The message of an attempt that r2 ended: a node has fewer allocations than claims.

    Parity: controllers.md 10. A report about 1.36.0 shows it without the last two words.
    """
    return (
        'running Score plugins: plugin "DynamicResources" failed with: '
        f"number of allocations {allocations} is smaller than number of claims needing allocation"
    )


def skipped(namespace: str, name: str) -> str:
    """The note about a pod that is not scheduled because it terminates."""
    return f"{SKIPPED}: {namespace}/{name}"


def assigned(namespace: str, name: str, node: str) -> str:
    """The note about a bound pod."""
    return f"Successfully assigned {namespace}/{name} to {node}"


def binding_in_vain(name: str) -> str:
    """The message of an attempt whose pod was gone when it was to be bound."""
    return f'running Bind plugin "DefaultBinder": pods "{name}" not found'


def claim_gone(namespace: str, name: str) -> Iterator[str]:
    """The messages of attempts whose claim was gone, or to go, when it was to be written."""
    claim = f"claim {namespace}/{name}"
    missing = f'resourceclaims.resource.k8s.io "{name}" not found'
    yield prebind_failure(f"{claim} got deleted in the meantime")
    yield prebind_failure(f"get updated {claim} after conflict: {missing}")
    for what in ("add finalizer", "add reservation", "add allocation and reservation"):
        yield prebind_failure(f"{what} to {claim}: {missing}")


def prebind_error(summary: JsonView, problem: str) -> str:
    """The message of an attempt whose claims could not be written, from its decision's summary.

    `problem` is the refusal of the API, which names its object in quotes; the message is about the
    claim with that name. A refusal that names no claim is reported for the first claim. Parity:
    controllers.md 3.7.
    """
    written = _written(summary)
    claim_name = refused_claim(summary, problem) or (written[0] if written else {})
    return prebind_failure(claim_error(claim_name, problem))


def refused_claim(summary: JsonView, problem: str) -> JsonView | None:
    """The claim in a decision's summary that the refusal `problem` names, or None."""
    for claim in _written(summary):
        _, _, name = json_tree.text(claim, "claim").partition("/")
        if f'"{name}"' in problem:
            return claim
    return None


def claim_error(claim: JsonView, problem: str) -> str:
    """The text about the write that failed for a claim of a summary."""
    name = json_tree.text(claim, "claim")
    what = "add reservation to"
    if json_tree.flag(claim, "fresh"):
        is_finalizer = "metadata.finalizers" in problem
        what = "add finalizer to" if is_finalizer else "add allocation and reservation to"
    return f"{what} claim {name}: {problem}"


def _written(summary: JsonView) -> Sequence[JsonView]:
    return json_tree.objects(summary, "written") or json_tree.objects(summary, "claims")


def prebind_failure(text: str) -> str:
    """The message of an attempt that failed before the binding."""
    return f'running PreBind plugin "DynamicResources": {text}'
