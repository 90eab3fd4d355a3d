"""Rules about whole claims: some node can satisfy all of a claim when nothing is allocated.

The allocator decides, on the devices of the sources without holders and taints.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.selectors import Choices
from app.analysis.lint.subjects import LintedClaim, Subjects
from app.domain.allocation import AllocatedState
from app.domain.allocation.allocator import Allocation, Allocator, Bounds, DoesNotFit
from app.domain.allocation.features import Features
from app.domain.allocation.reasons import causes, summary
from app.domain.allocation.reasons.causes import SUITABLE, CauseKind
from app.domain.allocation.reasons.summary import Counted
from app.domain.devices.nodes import Node
from app.domain.devices.pools import PoolState
from app.domain.log.chain import canonical_json
from app.domain.values import counts
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject

NEVER_FITS = LintRule(
    id="claim-never-fits",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, DeviceClass, ResourceSlice, Node",
    means="No node of the sources can satisfy all of a claim, even if nothing is allocated or "
    "tainted: every pod with the claim waits.",
    cure="Ask for what one node has together, or relax the constraints; `redra why` shows for a "
    "waiting pod which device fails for which reason.",
    reference="docs/parity/allocator.md 3 and 4",
)
RULES = (NEVER_FITS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacingBounds:
    """The bounds of the attempts: on so many nodes for all claims, with so many steps each."""

    attempts_max: int = 5_000
    steps_max: int = 20_000


def check(
    subjects: Subjects,
    choices: Choices,
    wrong: Collection[str],
    features: Features,
    bounds: PlacingBounds,
) -> Iterator[LintFinding]:
    """The claims that no node can satisfy.

    Claims in `wrong`, the objects with graver findings of their own, are left out, and where
    the sources do not show all devices of a node: an unusable pool, a slice that was refused, a
    node selector without nodes.
    """
    nodes = _nodes(subjects)
    if not nodes or not _are_whole(subjects) or any(_is_slice(text) for text in wrong):
        return
    asking = _PlacementAttempts(subjects, nodes, features, bounds)
    for claim in subjects.claims:
        if claim.subject.text not in wrong and _is_judged(claim, choices):
            reason = asking.reason_against(claim)
            if reason:
                yield NEVER_FITS.at(claim.subject.at(claim.path), reason)


def _is_slice(text: str) -> bool:
    return text.startswith("ResourceSlice/")


def _is_judged(claim: LintedClaim, choices: Choices) -> bool:
    """Whether the claim is not allocated, and its classes and its exact requests have devices."""
    if dra.allocation(claim.subject.tree) is not None or not claim.form.requests:
        return False
    chosen = [(ask, choices.of_ask(ask)) for ask in claim.asks()]
    return all(
        choice is not None and choice.compiles and (choice.devices or ask.is_alternative)
        for ask, choice in chosen
    )


def _are_whole(subjects: Subjects) -> bool:
    states = [subjects.inventory.pool(each.id) for each in subjects.pools]
    return bool(states) and all(
        pool is not None and pool.state is PoolState.USABLE for pool in states
    )


def _nodes(subjects: Subjects) -> Sequence[Node]:
    """The nodes of the sources; else those that slices name, if they name all that matter."""
    if subjects.nodes:
        return subjects.nodes
    choices = [
        device.node if published.slice.per_device else published.slice.node
        for pool in subjects.pools
        for published in pool.slices
        for device in published.slice.devices
    ]
    if any(choice.tree is not None for choice in choices):
        return ()
    names = sorted({choice.name for choice in choices if choice.name})
    return [Node(name=name, labels={}) for name in names or ["any node"]]


class _PlacementAttempts:
    """The attempts to allocate the claims, each content once."""

    def __init__(
        self, subjects: Subjects, nodes: Sequence[Node], features: Features, bounds: PlacingBounds
    ) -> None:
        self._nodes = nodes
        self._left = bounds.attempts_max
        self._known: dict[bytes, str] = {}
        self._allocator = Allocator(
            subjects.inventory,
            {name: subject.tree for name, subject in subjects.classes.items()},
            AllocatedState(consumable_capacity=features.consumable_capacity),
            replace(features, device_taints=False, taint_rules=False),
            compiler=subjects.compiler,
            bounds=Bounds(steps_max=bounds.steps_max),
        )

    def reason_against(self, claim: LintedClaim) -> str:
        """The reason why no node can satisfy the claim; empty if one can, or may."""
        spec = meta.spec(claim.subject.tree)
        spec = spec if claim.path == "spec.devices" else meta.spec(spec)
        key = canonical_json(spec)
        if key not in self._known:
            tree: JsonObject = {"metadata": {"name": "claim", "namespace": "", "uid": "claim"}}
            self._known[key] = self._tried(claim, {**tree, "spec": spec})
        return self._known[key]

    def _tried(self, claim: LintedClaim, tree: JsonObject) -> str:
        refused: list[DoesNotFit] = []
        for node in self._nodes:
            if not self._left:
                return ""
            self._left -= 1
            answer = self._allocator.allocate(node, [tree])
            if isinstance(answer, Allocation):
                return ""
            if not isinstance(answer, DoesNotFit):
                return ""  # the search was given up, or another finding names the error
            refused.append(answer)
        return _reason(claim, [summary.causes_of(each.case.problem).counted for each in refused])


def _reason(claim: LintedClaim, nodes: Sequence[Sequence[Counted]]) -> str:
    """The request that is short on every node, with the most frequent cause; else all together."""
    short: dict[str, list[str]] = {}
    for ask in claim.asks():
        of_request = [[each for each in node if each.request == ask.name] for node in nodes]
        most = max(
            sum(each.devices for each in node if each.kind == SUITABLE) for node in of_request
        )
        if ask.wants_all or most >= ask.wanted:
            short.setdefault(ask.main, []).append("")
            continue
        text = f"request {ask.name} asks for {counts.of(ask.wanted, 'device')}, "
        text += f"no node has more than {most}" if most else "no node has one"
        near = [each for node in of_request for each in node if each.kind not in _FAR]
        if worst := max(near, key=lambda each: each.devices, default=None):
            devices = counts.of(worst.devices, "device")
            text += f": {devices} {causes.text_of(worst.kind, worst.about)}"
        short.setdefault(ask.main, []).append(text)
    for texts in short.values():
        if all(texts):
            return "; ".join(texts)
    where = "the only node does not have" if len(nodes) == 1 else f"none of {len(nodes)} nodes has"
    return f"{where} devices that satisfy all of it together"


_FAR = frozenset((SUITABLE, CauseKind.OTHER_NODE.value, CauseKind.SELECTOR.value))
"""Kinds of causes that do not explain why devices of a request are too few."""
