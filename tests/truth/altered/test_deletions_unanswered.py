"""Deletions whose answers are not recorded end an object only where the whole recording says so.

The answer that was cut says whether the object went at once or began to go. Where redra has another
verdict, it has to say that it does not know: with a gap of that object at that line. Rows come by
day.
"""

from collections.abc import Callable

import pytest

from app.domain.log import Event, EventType
from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log
from tests.adversary.lossy import level
from tests.truth.altered.asking import imported
from tests.truth.altered.lines import is_write, key_of, state, writes
from tests.truth.altered.recorded import until
from tests.truth.raw import Key

ENDS = {QUICKSTART: 420, MIG: 600, TPU: 400, TAINTS: 480}
"""The line at which each recording is cut: after many deletions of all sorts."""

JUDGED = ("pods", "resourceclaims", "resourceslices", "devicetaintrules", "namespaces")


def is_deletion(line: Json) -> bool:
    return bool(line["verb"] == "delete") and is_write(line)


def everything(line: Json) -> bool:
    return True


def except_creations(line: Json) -> bool:
    return bool(line["verb"] != "create" or line["objectRef"].get("subresource"))


CUTS: dict[str, tuple[str, Callable[[Json], bool]]] = {
    "deletions_request": ("Request", is_deletion),
    "deletions_metadata": ("Metadata", is_deletion),
    "all_request": ("Request", everything),
    "changes_request": ("Request", except_creations),
    "all_metadata": ("Metadata", everything),
}


def object_of(line: Json) -> Key:
    """The key of the object that a line is about; the line of a namespace repeats its name."""
    resource, namespace, name = key_of(line)
    return resource, "" if resource == "namespaces" else namespace, name


def is_gone_after(line: Json) -> bool:
    """Whether the answer to a deletion says that the object went at once."""
    answer = line["responseObject"]
    if answer["kind"] == "Status" or "deletionTimestamp" not in answer["metadata"]:
        return True
    meta = answer["metadata"]
    spec = answer.get("spec") or {}
    holds = meta.get("finalizers") or (answer["kind"] == "Namespace" and spec.get("finalizers"))
    return not holds and not meta.get("deletionGracePeriodSeconds")


def verdict(events: list[Event]) -> str:
    """What the events of one line say of its object: gone, going or unsure."""
    if any(event.type is EventType.GAP_OBSERVED for event in events):
        return "unsure"
    types = {event.type for event in events}
    if EventType.OBJECT_DELETED in types:
        return "gone"
    if any("deletionTimestamp" in event.object["metadata"] for event in events if _shows(event)):
        return "going"
    return "nothing"


def _shows(event: Event) -> bool:
    return event.type in (EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED)


def doubted(events: list[Event], key: Key) -> bool:
    """Whether a gap of the object, or of its kind, comes after the last state of the object."""
    is_open = False
    for event in events:
        if event.type is EventType.GAP_OBSERVED:
            place = (event.key.resource, event.key.namespace, event.key.name)
            is_open |= place == key or place == (*key[:2], "") or place == ("", "", "")
        elif _shows(event) and event.key[1:] == key:
            is_open = event.stamp.origin is not None and "partial" in event.stamp.origin.quality
    return is_open


def cut(name: str, title: str) -> tuple[Log, Log]:
    """A recording up to its line, as it is and at the lower level."""
    whole = until(name, ENDS[name])
    log = whole.copy()
    level(*CUTS[title])(log)
    return whole, log


@draws.BY_DAY
@pytest.mark.parametrize("title", CUTS)
@pytest.mark.parametrize("name", ENDS)
async def test_deletion_ends_an_object_where_its_answer_said_so(name, title, tmp_path):
    whole, log = cut(name, title)
    asked = await imported(log, tmp_path)
    of_line: dict[str, list[Event]] = {}
    for event in asked.events:
        if event.stamp.origin is not None and event.type is not EventType.REQUEST_OBSERVED:
            of_line.setdefault(event.stamp.origin.position, []).append(event)
    wrong, compared = [], 0
    going: set[Key] = set()
    for number, line in enumerate(whole.lines, 1):
        key = object_of(line)
        if not is_deletion(line) or key[0] not in JUDGED:
            continue
        said = verdict([one for one in of_line.get(str(number), ()) if one.key[1:] == key])
        counted = "gone" if is_gone_after(line) else "going"
        is_again = counted == "going" and key in going
        going |= {key} if counted == "going" else set()
        compared += said != "unsure"
        if said not in ("unsure", counted, *(["nothing"] if is_again else [])):
            wrong.append(f"line {number}, {key}: said {said}, was {counted}")
    assert wrong == []
    assert compared or title in ("deletions_metadata", "all_metadata")


@draws.BY_DAY
@pytest.mark.parametrize("title", CUTS)
@pytest.mark.parametrize("name", ENDS)
async def test_object_is_there_at_the_end_or_doubted(name, title, tmp_path):
    whole, log = cut(name, title)
    asked = await imported(log, tmp_path)
    left = state(whole.lines)
    objects = asked.views.objects
    shown = {key[1:] for kind in objects.resources() for key in objects.keys(*kind)}
    keys = {key for key, _ in writes(whole.lines) if key[0] in JUDGED}
    wrong = [
        f"{key}: {'there' if key in shown else 'gone'}"
        for key in sorted(keys)
        if (key in shown) != (key in left) and not doubted(asked.events, key)
    ]
    assert wrong == []
