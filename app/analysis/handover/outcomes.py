"""The outcomes of pods, claims, rules and patches, for comparison by a test."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.analysis.diff.courses import Course
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values import api_resources, condition_types, timestamps, well_known
from app.domain.values.fields import dra, meta
from app.domain.values.fields.meta import Condition
from app.domain.values.json_tree import JsonObject

DIFFERENCES_SHOWN_MAX = 5
"""The most differences that a failed test shows; it counts the others."""

_TOLD = (api_resources.DEVICE_TAINT_RULES, api_resources.RESOURCE_SLICE_PATCHES)


class Outcomes(Mapping[str, str]):
    """The outcome of each object by name, in the order in which the history has them.

    It equals a dict of the same names and outcomes.
    """

    def __init__(self, outcomes: Mapping[str, str]) -> None:
        self._outcomes = outcomes

    def __getitem__(self, name: str) -> str:
        return self._outcomes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return repr(dict(self._outcomes))

    def differences(self, expected: Mapping[str, str]) -> Sequence[str]:
        """The differences from the expected outcomes, as lines: a count, then the first ones.

        A consequence comes after its cause, because objects are in the order of their creation.
        """
        names = [*self, *(name for name in expected if name not in self)]
        differing = [name for name in names if self.get(name) != expected.get(name)]
        lines = [f"{len(differing)} of {len(names)} outcomes differ"]
        for name in differing[:DIFFERENCES_SHOWN_MAX]:
            lines.append(
                f"{name}: {self.get(name, 'absent')}, expected: {expected.get(name, 'absent')}"
            )
        if len(differing) > DIFFERENCES_SHOWN_MAX:
            lines.append(f"and {len(differing) - DIFFERENCES_SHOWN_MAX} more")
        return lines


def pods(courses: Iterable[Course]) -> dict[str, str]:
    """Each pod with its node and devices, or that it waits."""
    return {course.name: _fate(course) for course in courses}


def refusals(courses: Iterable[Course]) -> dict[str, str]:
    """Each pod that the scheduler refused, with its messages in order."""
    messages = {
        course.name: dict.fromkeys(each.message for each in course.refusals) for course in courses
    }
    return {name: "; then: ".join(texts) for name, texts in messages.items() if texts}


def evictions(courses: Iterable[Course]) -> dict[str, str]:
    """Each evicted pod, with the reason and the message of its condition, and the second."""
    return {
        course.name: f"{evicted.reason} at {timestamps.seconds_text(evicted.at.time)}: "
        f"{evicted.message}"
        for course in courses
        if (evicted := course.evicted) is not None
    }


def claims(events: Iterable[Event]) -> dict[str, str]:
    """Each claim that existed, in the order of creation, with its last state.

    A deleted claim has the last allocation that it had.
    """
    last: dict[str, Event] = {}
    allocated: dict[str, str] = {}
    for event in events:
        if event.key[:2] == api_resources.RESOURCE_CLAIMS and event.is_about_object:
            last[event.uid] = event
            if text := _allocation(event.object):
                allocated[event.uid] = text
    names: Counter[str] = Counter()
    states: dict[str, str] = {}
    for uid, event in last.items():
        name = _name_of(event.key, event.object)
        names[name] += 1
        if event.type is not EventType.OBJECT_DELETED:
            state = _state(event.object)
        elif uid in allocated:
            state = f"deleted, was {allocated[uid]}"
        else:
            state = "deleted"
        states[name if names[name] == 1 else f"{name} {names[name]}"] = state
    return states


def messages(events: Iterable[Event]) -> dict[str, str]:
    """The scheduler's message about each pod that waits at the end."""
    messages_by_pod: dict[str, str] = {}
    for event in events:
        if event.key[:2] != api_resources.PODS or not event.is_about_object:
            continue
        name = f"{event.key.namespace}/{event.key.name}"
        messages_by_pod.pop(name, None)
        condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
        is_gone = event.type is EventType.OBJECT_DELETED
        if condition is not None and condition.status == "False" and not is_gone:
            messages_by_pod[name] = condition.message
    return messages_by_pod


def conditions(events: Iterable[Event]) -> dict[str, str]:
    """The conditions of each rule and patch at the end."""
    last = {
        event.key: event
        for event in events
        if event.key[:2] in _TOLD and event.type is not EventType.OBJECT_DELETED
    }
    return {f"{key.resource}/{key.name}": _conditions(event.object) for key, event in last.items()}


def _name_of(key: ObjectKey, claim: JsonObject) -> str:
    owner = meta.controller(claim)
    entry = meta.annotation(claim, well_known.POD_CLAIM_NAME)
    name = key.name if owner is None else f"{owner.name} {entry}".strip()
    return f"{key.namespace}/{name}"


def _fate(course: Course) -> str:
    if course.placed is None:
        return course.outcome
    devices = sorted(each.device for each in course.placed.devices)
    return " ".join([course.outcome, "on", course.placed.node, *devices])


def _state(tree: JsonObject) -> str:
    consumers = sorted(each.name for each in dra.consumers(tree))
    status = [
        f"{each.device}: {', '.join(map(_condition, each.conditions))}"
        for each in dra.device_statuses(tree)
        if each.conditions
    ]
    parts = [_allocation(tree) or "not allocated"]
    parts += [f"reserved for {', '.join(consumers)}"] if consumers else []
    return "; ".join([*parts, *status])


def _allocation(tree: JsonObject) -> str:
    """The devices of a claim with their requests, and its configurations."""
    devices = ", ".join(map(_device, dra.results(tree)))
    texts = [canonical_json(each).decode() for each in dra.configurations(tree)]
    return "; ".join([*([devices] if devices else []), *(f"configured {each}" for each in texts)])


def _device(result: dra.DeviceResult) -> str:
    words = [f"{result.request}: {result.pool}/{result.device}"]
    words += ["for an admin"] if result.admin_access else []
    amounts = [f"{amount} {name}" for name, amount in sorted(result.consumed_capacity.items())]
    words += [f"with {', '.join(amounts)}"] if amounts else []
    return " ".join(words)


def _conditions(tree: JsonObject) -> str:
    types = dict.fromkeys(str(each.get("type")) for each in meta.condition_trees(tree))
    conditions = (meta.condition(tree, each) for each in types)
    return ", ".join(_condition(each) for each in conditions if each is not None)


def _condition(condition: Condition) -> str:
    return f"{condition.type}={condition.status} ({condition.reason})"
