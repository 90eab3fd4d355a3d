"""Rules about pools: complete, of one generation, with unique names."""

from collections.abc import Iterator

from app.analysis.lint.findings import (
    RELATED_MAX,
    FindingPlace,
    LintFinding,
    LintRule,
    LintSeverity,
)
from app.analysis.lint.subjects import PublishedPool, Subjects
from app.domain.devices.model import Slice, value_text
from app.domain.values import counts

INCOMPLETE = LintRule(
    id="pool-incomplete",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="The newest generation has fewer slices than each of them announces: requests for all "
    "devices fail, and no device is allocated on nodes that see only a part.",
    cure="Publish the missing slices, or set spec.pool.resourceSliceCount to their number.",
    reference="docs/parity/allocator.md 2.4",
)
OVERFULL = LintRule(
    id="pool-overfull",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="The newest generation has more slices than each of them announces: the pool counts as "
    "incomplete.",
    cure="Set spec.pool.resourceSliceCount in all slices to their number, with a new generation.",
    reference="docs/parity/allocator.md 2.4",
)
COUNTS_DIFFER = LintRule(
    id="pool-counts-differ",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="Slices of one generation announce different numbers of slices: whether the pool is "
    "complete depends on which slice is looked at first.",
    cure="Write the same spec.pool.resourceSliceCount into all slices of a generation.",
    reference="docs/parity/allocator.md 2.4",
)
OBSOLETE = LintRule(
    id="slice-obsolete",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="A slice of an older generation is still there: on nodes that see only such slices, its "
    "devices are still allocated if the slices there are as many as announced (quirk q12), and "
    "otherwise the pool disappears without a reason (quirk q13).",
    cure="Delete the slice, or publish it again with the newest generation.",
    reference="docs/parity/allocator.md 2.3, 16 (Q12, Q13)",
)
DEVICE_DUPLICATE = LintRule(
    id="device-name-duplicate",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="Two slices of a pool have a device of one name: the pool is invalid, and none of its "
    "devices is allocated on nodes that see both.",
    cure="Give the devices of a pool different names; only within one slice does the API check.",
    reference="docs/parity/allocator.md 2.5",
)
SET_DUPLICATE = LintRule(
    id="counter-set-duplicate",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="Two slices of a pool declare a counter set of one name: the pool is invalid, and none "
    "of its devices is allocated.",
    cure="Declare each counter set in one slice of the pool.",
    reference="docs/parity/allocator.md 2.5",
)
NODE_MIX = LintRule(
    id="pool-node-mix",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="Slices of one pool select nodes in different ways: each node sees another part of the "
    "pool, and whether it is complete there depends on slices that it does not see.",
    cure="Publish devices of a node in a pool of that node, and those of all nodes in another; or "
    "set perDeviceNodeSelection in all slices of the pool.",
    reference="docs/parity/allocator.md 2.2 to 2.4",
)
RULES = (INCOMPLETE, OVERFULL, COUNTS_DIFFER, OBSOLETE, DEVICE_DUPLICATE, SET_DUPLICATE, NODE_MIX)


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all pools."""
    for pool in subjects.pools:
        yield from _count(pool, subjects.refused_in(pool))
        for old in pool.older:
            newest = pool.slices[0]
            yield OBSOLETE.at(
                old.subject.at("spec.pool.generation"),
                f"generation {old.slice.generation} of pool {pool.text}, whose newest is "
                f"{newest.slice.generation}",
                [newest.subject.at("spec.pool.generation")],
            )
        yield from _device_names(pool)
        yield from _set_names(pool)
        yield from _nodes(pool)


def _count(pool: PublishedPool, refused: int) -> Iterator[LintFinding]:
    """Compares the slices of a pool with the announced number.

    Slices that are missing because they are refused have a finding of their own, which is the
    cause.
    """
    first, *others = pool.slices
    there, path = len(pool.slices), "spec.pool.resourceSliceCount"
    announced = first.slice.slice_count
    odd = [each for each in others if each.slice.slice_count != announced]
    if odd:
        yield COUNTS_DIFFER.at(
            odd[0].subject.at(path),
            f"{counts.of(odd[0].slice.slice_count, 'slice')} "
            f"{counts.verb(odd[0].slice.slice_count, 'is')} announced here and {announced} by "
            f"{first.subject.text}, of pool {pool.text}",
            [first.subject.at(path)],
        )
    elif not there <= announced <= there + refused:
        rule = INCOMPLETE if there < announced else OVERFULL
        yield rule.at(
            first.subject.at(path),
            f"generation {first.slice.generation} of pool {pool.text} has {there} of {announced} "
            "slices",
            [each.subject.at() for each in others[:RELATED_MAX]],
        )


def _device_names(pool: PublishedPool) -> Iterator[LintFinding]:
    if len(pool.slices) == 1:
        return
    first: dict[str, tuple[str, FindingPlace]] = {}
    for published, device, path in pool.devices():
        name, key = device.id[2], published.slice.key
        place = published.subject.at(f"{path}.name")
        other = first.setdefault(name, (key, place))
        if other[0] != key:
            yield DEVICE_DUPLICATE.at(place, f"{name} is also a device of another slice", other[1:])


def _set_names(pool: PublishedPool) -> Iterator[LintFinding]:
    first: dict[str, tuple[str, FindingPlace]] = {}
    for published in pool.slices:
        for index, (name, _) in enumerate(published.slice.counter_sets):
            place = published.subject.at(f"spec.sharedCounters[{index}].name")
            other = first.setdefault(name, (published.slice.key, place))
            if other[0] != published.slice.key:
                yield SET_DUPLICATE.at(place, f"{name} is also declared elsewhere", other[1:])


def _nodes(pool: PublishedPool) -> Iterator[LintFinding]:
    # A slice with counters is for the nodes of all devices that draw on the counters.
    first, *others = [each for each in pool.slices if each.slice.devices] or pool.slices
    for published in others:
        ours, theirs = _choice(first.slice), _choice(published.slice)
        if ours != theirs:
            yield NODE_MIX.at(
                published.subject.at("spec"),
                f"this slice selects nodes by {theirs}, {first.subject.text} of the same pool by "
                f"{ours}",
                [first.subject.at("spec")],
            )
            return


def _choice(published: Slice) -> str:
    if published.per_device:
        return "perDeviceNodeSelection"
    node = published.node
    if node.name:
        return f"nodeName {node.name}"
    return "allNodes" if node.all_nodes else f"nodeSelector {value_text(node.tree or {})}"
