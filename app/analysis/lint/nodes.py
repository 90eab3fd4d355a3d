"""Rules about nodes: slices name existing nodes."""

from collections.abc import Iterator

from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import PublishedSlice, Subjects
from app.domain.devices.nodes import Node, NodeChoice, NodeSelectionError
from app.domain.values import counts

MISSING = LintRule(
    id="node-missing",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice, Node",
    means="A slice or device names a node that is not among the sources: nobody can use its "
    "devices, and the slice stays when the node is gone unless the Node owns it.",
    cure="Correct the name, or delete the slice; let the Node own it.",
    reference="docs/parity/allocator.md 2.1",
)
SELECTS_NONE = LintRule(
    id="node-selector-matches-nothing",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice, Node",
    means="A node selector matches no node of the sources: nobody can use the devices.",
    cure="Correct the labels in the selector, or label the nodes.",
    reference="docs/parity/allocator.md 2.1",
)
ALIKE = LintRule(
    id="device-nodes-alike",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="perDeviceNodeSelection is set and all devices select the same nodes, which costs the "
    "scheduler a look at each device.",
    cure="Select the nodes in the spec of the slice.",
    reference="docs/parity/allocator.md 2.2; KEP-4815",
)
RULES = (MISSING, SELECTS_NONE, ALIKE)


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all slices of the newest generations."""
    nodes = {node.name: node for node in subjects.nodes}
    for pool in subjects.pools:
        for published in pool.slices:
            choices = list(_choices(published))
            for choice, path in choices if nodes else ():
                yield from _choice(published, choice, path, nodes)
            if len(choices) > 1 and published.slice.per_device and _are_alike(choices):
                place = published.subject.at("spec.perDeviceNodeSelection")
                yield ALIKE.at(place, f"all {len(choices)} devices select the same nodes")


def _choices(published: PublishedSlice) -> Iterator[tuple[NodeChoice, str]]:
    if not published.slice.per_device:
        yield published.slice.node, "spec"
        return
    for device, path in published.devices():
        yield device.node, path


def _choice(
    published: PublishedSlice, choice: NodeChoice, path: str, nodes: dict[str, Node]
) -> Iterator[LintFinding]:
    if choice.name:
        if choice.name not in nodes:
            message = f"there is no node {choice.name}"
            yield MISSING.at(published.subject.at(f"{path}.nodeName"), message)
    elif choice.selector is not None:
        try:
            if any(choice.matches(node) for node in nodes.values()):
                return
        except NodeSelectionError:
            return  # the API refuses it, and `object-invalid` says so
        message = f"none of {counts.of(len(nodes), 'node')} matches"
        yield SELECTS_NONE.at(published.subject.at(f"{path}.nodeSelector"), message)


def _are_alike(choices: list[tuple[NodeChoice, str]]) -> bool:
    first = choices[0][0]
    return all(
        (each.name, each.all_nodes, each.tree) == (first.name, first.all_nodes, first.tree)
        for each, _ in choices
    )
