"""A recorded decision as text for people."""

from collections.abc import Callable, Iterator

from app.analysis.explain import preemption
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import devices_text, nodes_text
from app.domain.allocation.reasons import causes
from app.domain.log import Event
from app.domain.values import counts, json_tree, timestamps
from app.domain.values.fields import decision_body
from app.domain.values.fields.decision_body import DecisionSummary
from app.domain.values.json_tree import JsonView

_TOLD_ELSEWHERE = frozenset(
    {
        "message",
        "node",
        "feasible",
        "lookedAt",
        "claims",
        "reasons",
        "pools",
        "together",
        "preemption",
    }
)
"""Parts of a scheduler's summary that its sentence or the reasons below already show."""


def reason_of(event: Event, *, with_causes: bool = False) -> Reason:
    """A decision: author, result, time, observed revision; optionally the counted causes."""
    decision = decision_body.read(event.object)
    when = timestamps.micro_text(event.stamp.time)
    lines = list(lines_of(json_tree.mapping(event.object, "summary"), with_causes=with_causes))
    return Reason(
        text=(
            f"{decision.controller} decided {decision.outcome} at "
            f"{when} (revision {event.revision}, having seen {event.stamp.observed})"
        ),
        children=tuple(lines),
    )


def lines_of(tree: JsonView, *, with_causes: bool = False) -> Iterator[Reason]:
    """The lines of a decision's summary, one part after the other."""
    summary = decision_body.summary(tree)
    if summary.message:
        yield Reason(text=summary.message)
    if victims := preemption.chosen_text(summary.preemption):
        yield Reason(text=victims)
    if summary.node:
        text = f"node {summary.node}"
        if summary.feasible is not None:
            looked_at = nodes_text(summary.looked_at)
            text += f"; {summary.feasible} of {looked_at} looked at would have taken it"
        yield Reason(text=text)
    is_scheduling = bool("lookedAt" in tree)
    for name, value in tree.items():
        is_elsewhere = (
            name in _TOLD_ELSEWHERE if is_scheduling else name == "message" or name == "node"
        )
        if is_elsewhere or name.startswith("causes") or name.endswith("Count"):
            continue
        worded = _WORDED.get(name)
        if worded is not None:
            yield from (Reason(text=text) for text in worded(value))
        elif value not in (None, "", [], {}):
            yield Reason(text=f"{name}: {_short(value)}")
    if with_causes:
        yield from _causes(summary)


def _causes(summary: DecisionSummary) -> Iterator[Reason]:
    for cause in summary.causes:
        text = f"{devices_text(cause.devices)} on {nodes_text(cause.nodes)}"
        if cause.examples:
            text += f", such as {listed(cause.examples, len(cause.examples))}"
        cause_text = causes.text_of(cause.cause, cause.about)
        request = f"{cause.claim} request {cause.request}"
        yield Reason(text=f"{request}: {text}: {cause_text}", count=cause.devices)
    if summary.causes_cut:
        devices = summary.causes_devices_cut
        text = f"{counts.of(summary.causes_cut, 'rarer cause')} for {devices_text(devices)}"
        yield Reason(text=text, count=devices)
    if summary.causes_nodes_cut:
        left = summary.causes_nodes_cut
        text = f"{nodes_text(left)} more {counts.verb(left, 'was')} refused and not counted here"
        yield Reason(text=text)


def _due(value: object) -> Iterator[str]:
    """The instant at which an eviction was due; nothing for the one that stands for "no time"."""
    text = str(value)
    if text and not text.startswith(_BEGINNING):
        yield f"due at {text.replace('.000000Z', 'Z')}"


def _reasons(value: object) -> Iterator[str]:
    """The taints that evicted a pod."""
    for each in value if isinstance(value, list) else ():
        match each:
            case {"rule": str(rule)}:
                yield f"because of rule {rule}"
            case {"driver": str(driver), "pool": str(pool), "device": str(device)}:
                yield f"because of a taint of device {driver}/{pool}/{device} in its slice"


def _removed(value: object) -> Iterator[str]:
    """The reservations that a claim lost, each with its reason."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            why = f": {each['why']}" if each.get("why") else ""
            yield f"its reservation for {each.get('name')} was removed{why}"


def _kept(value: object) -> Iterator[str]:
    """The reservations that a claim keeps; empty without any."""
    if isinstance(value, int) and value:
        yield f"{counts.of(value, 'reservation')} {counts.verb(value, 'stays')}"


_BEGINNING = "1970-01-01T"
"""Instants of this day mean that there is no time."""

_WORDED: dict[str, Callable[[object], Iterator[str]]] = {
    "due": _due,
    "reasons": _reasons,
    "removed": _removed,
    "kept": _kept,
}
"""Parts of a summary that have sentences of their own."""


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)
