"""The sentences of failed attempts. Parity: controllers.md 4.3."""

from collections.abc import Iterable, Mapping, Sequence

from app.domain.controllers.quirks import ControllerQuirks
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
AWAITS_VICTIMS = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = "preempting to accommodate a higher priority pod"

MOVED = "the object has been modified"
"""Part of the text of a version conflict: the attempt is repeated at once."""

SKIPPED = "skip schedule deleting pod"
"""How the note about a pod that was found terminating begins."""

BEING_ALLOCATED = "is in the process of being allocated"
"""Part of the message of an attempt that met a claim in flight."""

NOTE_MAX = 1024
"""Characters of an Event's note; longer ones end in ` ...`."""


def counted(reasons: Mapping[str, int]) -> str:
    """`<count> <reason>` items sorted as strings, not as numbers, joined with commas."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def unfit(nodes: int, detail: str, after: Iterable[str]) -> str:
    """The message when no node fits: what was in the way, then what the post filters say."""
    text = f"0/{nodes} nodes are available: {detail}."
    rest = ", ".join(part for part in after if part)
    return f"{text} {rest}" if rest else text


def nothing_done(quirks: ControllerQuirks, *, has_claims: bool) -> str:
    """What the post filter of DynamicResources says when it has no claim to free (r8)."""
    if not quirks.r8:
        return ""
    return "still not schedulable" if has_claims else "no new claims to deallocate"


def preemption(nodes: int, reasons: Mapping[str, int]) -> str:
    """What DefaultPreemption says when it evicts nobody, with the nodes by what it met there."""
    return f"preemption: 0/{nodes} nodes are available: {counted(reasons)}."


def preempting(node: str, victims: int) -> str:
    """What DefaultPreemption says when it evicts somebody; there is no singular and no dot."""
    return (
        f"preemption: found a potential placement for pod on node {node}, "
        f"preempting {victims} victims"
    )


def preempted_by(uid: str, node: str) -> str:
    """The note about a pod that was evicted for another one, named by its uid alone."""
    return f"Preempted by pod {uid} on node {node}"


def note(text: str) -> str:
    """The text as an Event carries it."""
    return text if len(text) <= NOTE_MAX else f"{text[: NOTE_MAX - 4]} ..."


def filter_error(text: str) -> str:
    """The message of an attempt that an error of a node's filter has ended."""
    return f'running "DynamicResources" filter plugin: {text}'


def score_error(allocations: int) -> str:
    """The message of an attempt that r2 has ended: too few allocations were found on a node.

    Parity: controllers.md 10. A report about 1.36.0 has it without the last two words.
    """
    return (
        'running Score plugins: plugin "DynamicResources" failed with: '
        f"number of allocations {allocations} is smaller than number of claims needing allocation"
    )


def skipped(namespace: str, name: str) -> str:
    """The note about a pod that was found terminating."""
    return f"{SKIPPED}: {namespace}/{name}"


def assigned(namespace: str, name: str, node: str) -> str:
    """The note about a bound pod."""
    return f"Successfully assigned {namespace}/{name} to {node}"


def prebind_error(summary: JsonView, problem: str) -> str:
    """The message of an attempt whose claims could not be written, from its decision's summary.

    The refusal names its object in quotes, so the prefix is that of the claim whose write failed;
    a refusal that names none is put on the first claim. Parity: controllers.md 3.7.
    """
    written = _written(summary)
    claim_name = refused_claim(summary, problem) or (written[0] if written else {})
    return prebind_failure(claim_error(claim_name, problem))


def refused_claim(summary: JsonView, problem: str) -> JsonView | None:
    """The claim that a refusal names, from the summary of its decision."""
    for claim in _written(summary):
        _, _, name = json_tree.text(claim, "claim").partition("/")
        if f'"{name}"' in problem:
            return claim
    return None


def claim_error(claim: JsonView, problem: str) -> str:
    """What could not be done to a claim of a summary."""
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
