"""What a recorded decision says, for people."""

from collections.abc import Iterator

from app.analysis.explain import preemption
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import devices_text, nodes_text
from app.domain.log import Event
from app.domain.values import json_tree, timestamps
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
"""Parts of a scheduler's summary that its sentence has, or that the reasons below tell in full."""


def reason_of(event: Event, *, with_causes: bool = False) -> Reason:
    """Who decided what, when and having seen what; the counted causes only when they are wanted."""
    body = event.object
    when = timestamps.micro_text(event.stamp.time)
    lines = list(_lines(json_tree.mapping(body, "summary"), with_causes=with_causes))
    return Reason(
        text=(
            f"{json_tree.text(body, 'controller')} decided {json_tree.text(body, 'outcome')} at "
            f"{when} (revision {event.revision}, having seen {event.stamp.observed})"
        ),
        children=tuple(lines),
    )


def _lines(summary: JsonView, *, with_causes: bool) -> Iterator[Reason]:
    if message := json_tree.text(summary, "message"):
        yield Reason(text=message)
    if victims := preemption.chosen_text(summary):
        yield Reason(text=victims)
    if node := json_tree.text(summary, "node"):
        text = f"node {node}"
        feasible = json_tree.integer(summary, "feasible")
        if feasible is not None:
            looked_at = json_tree.integer(summary, "lookedAt") or 0
            text += f"; {feasible} of {nodes_text(looked_at)} looked at would have taken it"
        yield Reason(text=text)
    is_scheduling = bool("lookedAt" in summary)
    for name, value in summary.items():
        told = name in _TOLD_ELSEWHERE if is_scheduling else name == "message" or name == "node"
        if told or name.startswith("causes") or name.endswith("Count"):
            continue
        if value not in (None, "", [], {}):
            yield Reason(text=f"{name}: {_short(value)}")
    if with_causes:
        yield from _causes(summary)


def _causes(summary: JsonView) -> Iterator[Reason]:
    for cause in json_tree.objects(summary, "causes"):
        devices = json_tree.integer(cause, "devices") or 0
        text = f"{devices_text(devices)} on {nodes_text(json_tree.integer(cause, 'nodes') or 0)}"
        examples = json_tree.texts(cause, "examples")
        if examples:
            text += f", such as {listed(examples, len(examples))}"
        about = json_tree.text(cause, "about")
        said = f"{json_tree.text(cause, 'cause')}{f' ({about})' if about else ''}"
        request = f"{json_tree.text(cause, 'claim')} request {json_tree.text(cause, 'request')}"
        yield Reason(text=f"{request}: {text}: {said}", count=devices)
    if cut := json_tree.integer(summary, "causesCut"):
        devices = json_tree.integer(summary, "causesDevicesCut") or 0
        yield Reason(text=f"{cut} rarer causes for {devices_text(devices)}", count=devices)
    if cut := json_tree.integer(summary, "causesNodesCut"):
        yield Reason(text=f"{nodes_text(cut)} more were refused and not counted here")


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)
