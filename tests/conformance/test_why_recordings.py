"""Every device that a real scheduler chose is explained from its recording, and refusals too.

Recordings whose choices and refusals are explained come by day.
"""

from collections.abc import Iterator

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.explain import pages
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Event, Revision
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from tests import draws
from tests.imports import import_once
from tests.shared_data import shared_path

PROFILE = Profile(version="1.36", gates={"DRADeviceTaintRules": True})

BEYOND = ("allocating again on", "the state of the pod or its node at that time is not known")
"""How an answer begins that says that the recording does not hold what was seen."""


class Recording:
    """A recording in memory that answers questions about any revision."""

    def __init__(self, log: MemoryLog, info, events: list[Event]) -> None:
        self.events = events
        self._log, self._info = log, info

    async def views_at(self, revision: Revision) -> LiveViews:
        views = LiveViews(PROFILE)
        for event in self.events[:revision]:
            views.fold(event)
        return views

    async def why(self, kind: str, event: Event, **how) -> ObjectExplanation:
        """The answer about the event's object as of the event."""
        explainer = Explainer(
            self._log,
            self._info,
            await self.views_at(event.revision),
            CelCompiler(detailed_errors=True),
            PROFILE,
            past=PastMoments(self.views_at, self.views_at),
        )
        key = event.key
        return await explainer.why(
            Question(kind=kind, namespace=key.namespace, name=key.name, **how)
        )


async def recording(name: str) -> Recording:
    log = MemoryLog(MemoryStore())
    paths = [shared_path("histories", name)]
    result = await import_once(log, paths, name=name, profile=PROFILE)
    events = await log.read(result.history.id, after=Revision(0), limit=1_000_000)
    return Recording(log, result.history, list(events))


def allocations(events: list[Event]) -> Iterator[Event]:
    """The first event of each claim that has an allocation."""
    has: set[str] = set()
    for event in events:
        if not event.is_about_object or event.key.resource != "resourceclaims":
            continue
        if json_tree.get(event.object, "status", "allocation"):
            if event.uid not in has:
                yield event
            has.add(event.uid)
        else:
            has.discard(event.uid)


def bound(events: list[Event], claim: Event) -> Event:
    """The claim as of the binding of its first pod."""
    consumers = json_tree.objects(claim.object, "status", "reservedFor")
    uids = {json_tree.text(one, "uid") for one in consumers[:1]}
    for event in events[claim.revision :]:
        if event.uid in uids and json_tree.text(event.object, "spec", "nodeName"):
            return msgspec.structs.replace(claim, revision=event.revision)
    return claim


def texts(reason: Reason) -> list[str]:
    return [reason.text, *(text for child in reason.children for text in texts(child))]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "count", "explained"),
    [("b-mig-partitions", 42, 30), ("c-multihost-tpu", 5, 5), ("e-taints", 24, 23)],
)
async def test_choices_are_explained_or_said_to_be_beyond_the_recording(
    name: str, count: int, explained: int
) -> None:
    """Beyond it are choices made while others were in flight, which a recording does not order."""
    found = await recording(name)
    chosen = list(allocations(found.events))
    assert len(chosen) == count
    made_again = 0
    for event in chosen:
        answer = await found.why("resourceclaim", bound(found.events, event))
        said = texts(answer.reason)
        is_explained = any(text.startswith("why these and no others") for text in said)
        assert is_explained or any(text.startswith(BEYOND) for text in said), said
        made_again += is_explained
        assert len(pages.page("head", answer.reason.children)) <= 50
    assert made_again == explained


async def test_waiting_pod_of_the_partitions_is_told_which_claims_to_release() -> None:
    found = await recording("b-mig-partitions")
    waiting = next(
        event
        for event in found.events
        if event.is_about_object
        and event.key.name == "x-05"
        and event.key.resource == "pods"
        and json_tree.get(event.object, "status", "conditions")
    )
    answer = await found.why("pod", waiting, help=True)
    said = texts(answer.reason)
    assert any(text.startswith("release any one of 9 claims: mig/four-on-one") for text in said)
    assert any("counter copy-engines of set gpu-0-counter-set" in text for text in said)
    assert len(pages.page("head", answer.reason.children, width=80)) <= 50


@draws.in_turn("ways")
async def test_evicted_pods_of_the_recording_name_who_tainted_their_devices() -> None:
    found = await recording("e-taints")
    gone = {
        event.key.name: event
        for event in found.events
        if event.type == "ObjectDeleted" and event.key.resource == "pods"
    }
    by_driver = texts((await found.why("pod", gone["plain-1"])).reason)
    assert any(text.endswith("by the driver, slice worker-1-gpu") for text in by_driver)
    by_rule = texts((await found.why("pod", gone["r-0"])).reason)
    assert any(text.endswith("by rule maintenance") for text in by_rule)
    patient = texts((await found.why("pod", gone["late-12"])).reason)
    late = ", which counts from when the taint was set and was over when the claim got the device"
    assert any(text.endswith(f", tolerated until 2026-11-21T08:05:25Z{late}") for text in patient)
    without_effect = texts((await found.why("pod", gone["any-0"])).reason)
    assert any(text.endswith("(known issue C2)") for text in without_effect)


def refusal(event: Event) -> str:
    conditions = json_tree.objects(event.object, "status", "conditions")
    told = [one for one in conditions if one.get("type") == "PodScheduled"]
    return str(told[0]["message"]) if told and told[0]["status"] == "False" else ""


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "refusals", "agreeing"), [("b-mig-partitions", 35, 33), ("e-taints", 8, 4)]
)
async def test_refusals_of_a_recording_stand_beside_what_the_nodes_say_again(
    name: str, refusals: int, agreeing: int
) -> None:
    """Those that differ name a claim in flight, or devices that are free since the attempt."""
    found = await recording(name)
    before: dict[str, str] = {}
    agreements = []
    for event in found.events:
        if event.key.resource != "pods" or not event.is_about_object:
            continue
        message = refusal(event)
        is_new = message != before.get(event.uid, "")
        before[event.uid] = message
        if message and is_new:
            recorded = (await found.why("pod", event)).details["recorded"]
            assert (recorded["message"], recorded["revision"]) == (message, event.revision)
            agreements.append(recorded["agrees"])
    assert (len(agreements), agreements.count(True)) == (refusals, agreeing)
