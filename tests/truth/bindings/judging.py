"""Compares the waits for binding conditions in a drawn world with what the model counts."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from app.adapters.telemetry import Telemetry
from app.analysis.views import LiveViews
from app.domain.values import timestamps
from app.service.metering import HistoryMeter
from tests.truth.bindings import model
from tests.truth.bindings.model import Happening
from tests.truth.bindings.worlds import BindingWorld
from tests.truth.facts import results
from tests.unit.service.test_explaining import asking, texts

_WAITS = "scheduler_dra_bindingconditions"
_LINE = re.compile(rf"(?m)^{_WAITS}_(allocations_total|wait_duration_seconds_sum){{(.*)}} (\S+)$")
_MISSING = "the driver has not reported condition {} yet"


def happenings_of(world: BindingWorld) -> list[Happening]:
    """All versions of the objects of a world."""
    return [
        Happening(
            _time(event.stamp.time),
            (event.key.resource, event.key.name),
            event.object["metadata"]["uid"],
            None if event.type == "ObjectDeleted" else event.object,
        )
        for event in world.cluster.line.events
        if event.is_about_object
    ]


def _time(instant: int) -> datetime:
    return datetime.fromisoformat(timestamps.micro_text(instant))


async def world_differences(seed: int) -> list[str]:
    """The differences between a world, its metrics and `why` of its pods, and the model."""
    world = BindingWorld(seed)
    happenings = happenings_of(world)
    timeout = timedelta(seconds=world.timeout)
    now = _time(world.cluster.line.now)
    return [
        *model.differences(happenings, now, timeout),
        *_metrics(world, happenings),
        *await _told(world, happenings, timeout),
    ]


def _metrics(world: BindingWorld, happenings: list[Happening]) -> Iterator[str]:
    meter, views = Telemetry(), LiveViews(world.cluster.profile)
    history = HistoryMeter(meter, "h", world.cluster.profile)
    for event in world.cluster.line.events:
        views.fold(event)
        history.fold(event, views.objects)
    counts: Counter = Counter()
    seconds: dict[tuple[str, str], float] = {}
    for name, labels, value in _LINE.findall(meter.render()):
        own = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        place = own["driver"], own["status"]
        if name == "allocations_total":
            counts[place] = int(float(value))
        else:
            seconds[place] = float(value)
    counted, lasted = model.metrics(happenings)
    if counts != counted:
        yield f"metrics have {dict(counts)} waits, counted {dict(counted)}"
    if {one: round(each, 3) for one, each in seconds.items()} != {
        one: round(each, 3) for one, each in lasted.items()
    }:
        yield f"metrics have {seconds} seconds, counted {lasted}"


async def _told(world: BindingWorld, happenings: list[Happening], limit: timedelta) -> list[str]:
    """What `why` says of each pod that waits, against the conditions that its devices lack."""
    wrong = []
    state = model.state_at(happenings, happenings[-1].time, len(happenings))
    settings = {"controllers": {"bindingTimeoutSeconds": world.timeout}}
    async with asking(world.cluster, settings=settings) as ask:
        for one in model.waits(happenings):
            claims = model.claims_of(one.pod, state)
            # Without its devices a pod is asked about as one that waits for a node.
            if one.ended is not None or one.is_gone or not all(results(each) for each in claims):
                continue
            name = one.pod["metadata"]["name"]
            answer = await ask("pod", name)
            lines = texts(answer.reason)
            for text in _lacking(one.pod, state, limit):
                if not any(text in line for line in lines):
                    wrong.append(f"pod {name}: nothing of {text!r} in {lines}")
            said = sum("not reported condition" in line for line in lines)
            counted = sum("not reported" in text for text in _lacking(one.pod, state, limit))
            if said != counted:
                wrong.append(f"pod {name}: {said} conditions not reported, counted {counted}")
    return wrong


def _lacking(pod: dict, state: dict[str, dict], timeout: timedelta) -> Iterator[str]:
    """The words about each condition that a device of the pod lacks, and about each failure."""
    for claim in model.claims_of(pod, state):
        lacks = [*_of_claim(claim)]
        yield from lacks
        if lacks:
            since = claim["status"]["allocation"]["allocationTimestamp"]
            until = datetime.fromisoformat(since) + timeout
            name = claim["metadata"]["name"]
            yield f"claim default/{name}, looked at every 5 s until {until:%Y-%m-%dT%H:%M:%SZ}"


def _of_claim(claim: dict) -> Iterator[str]:
    for result in results(claim):
        told = model.conditions_of(claim, result) or {}
        device = "/".join(result[one] for one in ("driver", "pool", "device"))
        for kind in result.get("bindingConditions") or ():
            if kind not in told:
                yield f"{device}: {_MISSING.format(kind)}"
            elif told[kind]["status"] != "True":
                yield f"{device}: {kind} is {told[kind]['status']} (Reported: it is"
        if result.get("bindingConditions"):
            for kind in result.get("bindingFailureConditions") or ():
                if told.get(kind, {}).get("status") == "True":
                    yield f"{device}: {kind} is True (Reported: it is True), a failure"
