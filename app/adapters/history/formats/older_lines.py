"""Lines of kube-scheduler and kubelets in sentences, as releases up to 1.19 log them.

    I0102 03:04:05.000006  1 scheduler.go:564] Attempting to schedule pod: ns/a
    I0102 03:04:05.000007  1 factory.go:462] Unable to schedule ns/a: no fit: 0/2 nodes …; waiting
    I0102 03:04:06.000006  222 kubelet.go:1908] SyncLoop (ADD, "api"): "a_ns(uid), b_ns(uid)"

Later releases log the same with a message and fields; both mean the same words here.
"""

import re
from collections.abc import Iterator

from app.adapters.history.formats.kubelet_lines import Report
from app.adapters.history.unpacking import ByteSource
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT

_POD = r"(?P<namespace>[a-z0-9-]+)[/ ](?P<name>[a-z0-9.-]*[a-z0-9])"
_NODE = r"(?P<node>[a-z0-9.-]*[a-z0-9])"
_ATTEMPTS = (
    (r"Attempting to schedule pod: {pod}", "attempt", "Attempting to schedule pod"),
    (
        r"Unable to schedule {pod}: no fit: (?P<why>.+); waiting",
        "unschedulable",
        "Unable to schedule pod; no fit; waiting",
    ),
    (
        r"Unable to schedule {pod}: no nodes are registered to the cluster; waiting",
        "unschedulable",
        "Unable to schedule pod; no nodes are registered to the cluster; waiting",
    ),
    (
        r"Unable to schedule {pod}: possibly due to node not found: (?P<why>.+); waiting",
        "error",
        "Unable to schedule pod, possibly due to node not found; waiting",
    ),
    # The pod gets the condition Unschedulable then, whatever went wrong.
    (r"Failed to schedule pod: {pod}", "unschedulable", "Failed to schedule pod"),
    (r"Error scheduling {pod}: (?P<why>.+); retrying", "error", "Error scheduling pod; retrying"),
    (r"Attempting to bind {pod} to {node}", "bind", "Attempting to bind pod to node"),
    (
        r"pod {pod} is bound successfully on node \"?{node}\"?(?:, .*)?",
        "bound",
        "Successfully bound pod to node",
    ),
    (
        r"Status after running PostFilter plugins for pod {pod}: (?P<why>.+)",
        "postfilter",
        "Status after running PostFilter plugins for pod",
    ),
)
_SENTENCES = tuple(
    (re.compile(sentence.replace("{pod}", _POD).replace("{node}", _NODE)), verb, text)
    for sentence, verb, text in _ATTEMPTS
)

_ID = r"[a-z0-9.-]+_[a-z0-9-]+\([^()\s]+\)"
_NAMED = re.compile(r"(?<![a-z0-9.-])(?P<name>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)\([^()\s]+\)")
_LISTED = re.compile(rf'SyncLoop \((?P<verb>ADD|DELETE|REMOVE), "\w+"\): "(?P<pods>{_ID}.*)"')
_ENDED = re.compile(
    rf'SyncLoop \(PLEG\): "(?P<pods>{_ID})", event: &pleg\.PodLifecycleEvent\{{.*'
    r'\bType:"(?P<type>Container\w+)".*'
)
_FAILED = re.compile(rf'Error syncing pod \S+ \("(?P<pods>{_ID})"\), skipping: (?P<why>.+)')
_UNMOUNTED = re.compile(
    rf'Unable to (?:attach or )?mount volumes for pod "(?P<pods>{_ID})": (?P<why>.+); skipping pod'
)

_MENTIONED = re.compile(
    rb"\.go:(?:\d+|\.\.\.)\] (?:(?:Attempting|Failed) to schedule pod: |Attempting to bind |"
    rb"Unable to (?:schedule|attach|mount) |Error (?:scheduling|syncing pod) |"
    rb"pod \S{1,320} is bound successfully |Status after running PostFilter plugins for pod |"
    rb"SyncLoop \((?:ADD|DELETE|REMOVE|PLEG)\b)"
)
_CUT = re.compile(
    r"Unable to schedule [a-z0-9-]+[/ ][a-z0-9.-]+(?!.*; waiting$)"
    r"|Error scheduling [a-z0-9-]+[/ ][a-z0-9.-]+: (?!.*; retrying$)"
    r'|SyncLoop \((?:ADD|DELETE|REMOVE), (?!"\w+"\): ".*"$)'
    r"|SyncLoop \(PLEG\): (?!.*\}$)"
    r'|Error syncing pod \S+ \("(?!.*"\), skipping: .)'
    r'|Unable to (?:attach or )?mount volumes for pod "(?!.*; skipping pod$)'
    r'|pod \S{1,320} is bound successfully on node "(?!.+")'
    r"|(?:(?:Attempting|Failed) to schedule pod: |Attempting to bind "
    r"|pod \S{1,320} is bound successfully )"
    r"(?=.*(?:\.\.\.|\u2026)$)"
)
"""The beginning of a sentence that has no end of its own, or ends in dots."""

_ENDS = ("; waiting", "; retrying", "; skipping pod", "were found.", '"', "}")
"""The ends of whole sentences, and of fields around them."""


def mentioned_in(content: bytes) -> bool:
    """True for a text with the head of a line of klog and the first words of such a sentence."""
    return _MENTIONED.search(content) is not None


def is_cut(rest: str) -> bool:
    """True for such a sentence that breaks off, whatever stands below it."""
    return _CUT.match(rest) is not None


def with_cut(
    lines: Iterator[tuple[int, str]], source: ByteSource
) -> Iterator[tuple[int, str, bool]]:
    """The lines, with True for the last one if it ends the source within such a sentence."""
    before: tuple[int, str] | None = None
    for line in lines:
        if before is not None:
            yield *before, False
        before = line
    if before is not None:
        yield *before, _may_be_cut(before[1]) and not source.ends_a_line()


def _may_be_cut(line: str) -> bool:
    """True for a line with such a sentence whose end a longer sentence may have, too.

    At the end of a file, `schedule pod: ns/a` may be the beginning of `schedule pod: ns/a-1`.
    """
    return mentioned_in(line.encode()) and not line.rstrip().endswith(_ENDS)


def reports(rest: str) -> Iterator[Report]:
    """The statements about pods in a line of klog without fields, behind its head."""
    for sentence, verb, text in _SENTENCES:
        if (match := sentence.fullmatch(rest)) is not None:
            parts = match.groupdict()
            message = [text]
            if parts.get("why"):
                message.append(parts["why"])
            if parts.get("node"):
                message.append(f"node {parts['node']}")
            yield verb, parts["namespace"], parts["name"], ": ".join(message)
            return
    yield from _of_kubelets(rest)


def _of_kubelets(rest: str) -> Iterator[Report]:
    verb = KUBELET_REPORT
    if (match := _LISTED.fullmatch(rest)) is not None:
        message = f"SyncLoop {match['verb']}"
    elif (match := _ENDED.fullmatch(rest)) is not None:
        message = f"SyncLoop (PLEG): event for pod: {match['type']}"
    elif (match := _FAILED.fullmatch(rest)) is not None:
        verb, message = KUBELET_FAILURE, f"Error syncing pod, skipping: {match['why']}"
    elif (match := _UNMOUNTED.fullmatch(rest)) is not None:
        verb = KUBELET_FAILURE
        message = f"Unable to attach or mount volumes for pod; skipping pod: {match['why']}"
    else:
        return
    for pod in _NAMED.finditer(match["pods"]):
        yield verb, pod["namespace"], pod["name"], message
