"""Every answer about a recording names what the recording lacks.

A complete recording is altered by machine in one way; the doubts that this must give are stated
beside the alteration. The unaltered one must give none about content.

What is left out comes by day: verification of each is judged in the same way.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.blast import compare, world
from app.analysis.blast.compare import Put
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.bootstrap import process_settings, replays, stores
from app.bootstrap.rules import rules_for
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import NotFound
from app.domain.log import Event, EventType, HistoryInfo, Revision, doubts
from app.domain.log.doubts import Affects, Doubt
from app.domain.log.records import Loss
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.timestamps import Instant
from app.service import importing, recorded_doubts
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from app.service.replays.verifying import VerifyOutcome, VerifyReport
from projections.claims import ClaimsProjection
from projections.timeline import TimelineProjection
from tests import draws
from tests.imports import import_once
from tests.shared_data import shared_path

PROFILE = Profile(version="1.36", gates={"DRADeviceTaintRules": True})

HARMLESS = {
    Loss.NO_UID,
    Loss.NO_ACTOR,
    Loss.NO_MANAGED_FIELDS,
    Loss.NO_DELETE_STATE,
}
"""Losses that change no decision about devices."""

NAMESPACE, POD = "basic-resourceclaimtemplate", "too-many"
DEVICE_CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}}

Line = dict[str, object]


def level_request(line: Line) -> Line | None:
    """The policy records requests, not the stored objects."""
    return {**line, "level": "Request", "responseObject": None}


def without(resource: str) -> Callable[[Line], Line | None]:
    """The policy omits a kind."""
    return lambda line: None if _resource(line) == resource else line


def metadata_of(resource: str) -> Callable[[Line], Line | None]:
    """The policy records the users that wrote a kind, not the written objects."""

    def alter(line: Line) -> Line:
        if _resource(line) != resource:
            return line
        return {**line, "level": "Metadata", "requestObject": None, "responseObject": None}

    return alter


def cut_bodies_of(resource: str) -> Callable[[Line], Line | None]:
    """The backend cut long bodies."""

    def alter(line: Line) -> Line:
        if _resource(line) != resource:
            return line
        notes = {"audit.k8s.io/truncated": "true"}
        return {**line, "annotations": notes, "requestObject": None, "responseObject": None}

    return alter


ALTERATIONS: list[tuple[str, Callable[[Line], Line | None], set[tuple[str, str]]]] = [
    (
        "level Request",
        level_request,
        {
            ("resourceclaims.resource.k8s.io", "partial"),
            ("resourceclaims.resource.k8s.io", "gap"),
            ("pods", "partial"),
            ("pods", "unknown_patch"),
        },
    ),
    ("no slices", without("resourceslices"), {("resourceslices.resource.k8s.io", "never_seen")}),
    ("no nodes", without("nodes"), {("nodes", "never_seen")}),
    ("no classes", without("deviceclasses"), {("deviceclasses.resource.k8s.io", "never_seen")}),
    (
        "claims without bodies",
        metadata_of("resourceclaims"),
        {
            ("resourceclaims.resource.k8s.io", "gap"),
            ("resourceclaims.resource.k8s.io", "metadata_only"),
        },
    ),
    (
        "slices cut",
        cut_bodies_of("resourceslices"),
        {
            ("resourceslices.resource.k8s.io", "gap"),
            ("resourceslices.resource.k8s.io", "truncated_body"),
        },
    ),
]


@dataclass(frozen=True)
class Recording:
    """An altered recording in memory."""

    log: MemoryLog
    info: HistoryInfo
    views: LiveViews
    events: list[Event]

    async def why(self, pod: str) -> ObjectExplanation:
        """The answer about a pod as of the views."""

        async def same(_: Revision) -> LiveViews:
            return self.views

        explainer = Explainer(
            self.log,
            self.info,
            self.views,
            CelCompiler(detailed_errors=True),
            PROFILE,
            past=PastMoments(same, same),
        )
        return await explainer.why(Question(kind="pod", namespace=NAMESPACE, name=pod))


def _resource(line: Line) -> object:
    reference = line.get("objectRef")
    return reference.get("resource") if isinstance(reference, dict) else None


def _lines() -> Iterator[Line]:
    source = shared_path("histories", "a-quickstart", "audit.jsonl.gz")
    with gzip.open(source, "rt", encoding="utf-8") as file:
        for text in file:
            yield json.loads(text)


async def altered(folder: Path, alter: Callable[[Line], Line | None]) -> Recording:
    """The recording with each line altered; its views as of the last change of the pod."""
    path = folder / "audit.jsonl"
    kept = (alter(line) for line in _lines())
    path.write_text("".join(json.dumps(line) + "\n" for line in kept if line is not None))
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions(rules=rules_for(PROFILE))) as source:
        result = await importing.import_records(
            log, source, name="altered", options=importing.ImportOptions()
        )
    events = await log.read(result.history.id, after=Revision(0), limit=100_000)
    until = max(
        event.revision
        for event in events
        if event.key.name == POD and event.type is not EventType.OBJECT_DELETED
    )
    views = LiveViews(PROFILE)
    for event in events[:until]:
        views.fold(event)
    return Recording(log, result.history, views, events)


async def verified(path: Path) -> VerifyReport:
    """The verification of a file, as the command line does it."""
    store = stores.memory_store()
    settings = process_settings.settings(profile="1.36", verify_processes=1)
    history = await replays.load_files(store, settings, (path,))
    return await replays.verify(store, settings, history, "", lambda *_: None)


def content_of(recorded: Iterable[Doubt]) -> set[tuple[str, str]]:
    return {(each.kind, each.code) for each in recorded if each.affects is Affects.CONTENT}


def rows_of(view, table: str, events: list[Event]) -> list[dict]:
    for event in events:
        view.fold(event)
    rows = (view.row(table, key) for key in sorted(view.take_changed()[table]))
    return [row for row in rows if row is not None]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("alter", "expected"), [row[1:] for row in ALTERATIONS], ids=[row[0] for row in ALTERATIONS]
)
async def test_every_answer_says_what_the_recording_lacks(tmp_path, alter, expected):
    recording = await altered(tmp_path, alter)

    answer = await recording.why(POD)
    assert content_of(answer.doubts) >= expected
    assert answer.to_json()["certainty"] == "unsure"
    lines = uncertainty.lines(answer.doubts)
    assert lines[0].startswith("unsure: ")
    for kind, _ in expected:
        assert any(
            line.startswith(f"  {kind.removesuffix('.resource.k8s.io')}: ") for line in lines
        )

    frozen = world.freeze(
        recording.views, recording.info, rules_for(PROFILE), recording.events[-1].stamp.time
    )
    proposal = Put(tree={**DEVICE_CLASS, "metadata": {"name": "any.example.com"}})
    recorded = await recorded_doubts.doubts_of(recording.log, recording.info)
    radius = recorded_doubts.doubted(compare.blast(frozen, [proposal]), recorded)
    assert radius.certainty == "unsure"
    assert content_of(radius.doubts) >= expected


@draws.BY_DAY
@pytest.mark.parametrize(
    ("alter", "expected"), [row[1:] for row in ALTERATIONS], ids=[row[0] for row in ALTERATIONS]
)
async def test_verification_of_what_is_incomplete_is_never_whole_and_accuses_nobody(
    tmp_path, alter, expected
):
    await altered(tmp_path, alter)
    report = await verified(tmp_path / "audit.jsonl")
    assert report.outcome is VerifyOutcome.PARTLY, report.to_json()
    assert content_of(report.doubts) >= expected
    assert report.to_json()["certainty"] == "unsure"


@draws.in_turn("ways")
async def test_complete_recording_is_sure(tmp_path):
    recording = await altered(tmp_path, lambda line: line)
    answer = await recording.why(POD)
    assert content_of(answer.doubts) == set()
    assert answer.to_json()["certainty"] == "sure"
    assert uncertainty.lines(answer.doubts) == []
    report = await verified(tmp_path / "audit.jsonl")
    assert report.outcome is VerifyOutcome.VERIFIED
    assert content_of(report.doubts) == set()
    before = [event for event in recording.events if event.revision <= recording.views.revision]
    claims = rows_of(ClaimsProjection(), "view_claims", before)
    assert {row["doubt"] for row in claims} == {""}
    timeline = rows_of(TimelineProjection(), "view_timeline", recording.events)
    assert {row["doubt"] for row in timeline} == {""}


async def test_absent_object_of_a_kind_with_gaps_may_have_been_there(tmp_path):
    recording = await altered(tmp_path, level_request)
    with pytest.raises(NotFound, match=r"unsure: .*stretches were not recorded"):
        await recording.why("nobody")


async def test_absent_object_of_a_complete_kind_was_not_there(tmp_path):
    recording = await altered(tmp_path, lambda line: line)
    with pytest.raises(NotFound, match=r"^(?!.*unsure)"):
        await recording.why("nobody")


async def test_rows_of_views_say_which_claims_and_entries_are_unsure(tmp_path):
    recording = await altered(tmp_path, level_request)
    before = [event for event in recording.events if event.revision <= recording.views.revision]
    claims = rows_of(ClaimsProjection(), "view_claims", before)
    assert claims
    assert all("partial" in row["doubt"] for row in claims)
    timeline = rows_of(TimelineProjection(), "view_timeline", recording.events)
    unsure = {row["kind"] for row in timeline if row["doubt"]}
    assert {"PodCreated", "ClaimAllocated", "GapObserved"} <= unsure


async def test_creation_whose_name_was_not_recorded_is_a_gap(tmp_path):
    recording = await altered(tmp_path, level_request)
    assert all(event.key.name for event in recording.events if event.is_about_object)
    messages = [
        json_tree.text(event.object, "message")
        for event in recording.events
        if event.type is EventType.GAP_OBSERVED and event.key.resource == "resourceclaims"
    ]
    assert any("name that begins with" in message for message in messages)


async def test_import_that_was_cut_short_is_unsure():
    log = MemoryLog(MemoryStore())
    source = shared_path("histories", "a-quickstart", "audit.jsonl.gz")
    result = await import_once(log, [source], name="whole", profile=PROFILE)
    events = await log.read(result.history.id, after=Revision(0), limit=100_000)
    info = await log.create_history("cut", seed=0, settings={}, created=events[0].stamp.time)
    await log.append(info.id, expected=await log.head(info.id), events=events[:50])
    assert [each.code for each in await recorded_doubts.doubts_of(log, info)] == ["unfinished"]


async def test_history_of_our_own_has_no_doubts():
    log = MemoryLog(MemoryStore())
    info = await log.create_history("own", seed=0, settings={}, created=Instant(0))
    assert await recorded_doubts.doubts_of(log, info) == ()


def test_every_loss_is_a_doubt_or_harmless():
    assert set(doubts.MEANINGS) | HARMLESS == set(Loss)
    assert not set(doubts.MEANINGS) & HARMLESS


@pytest.mark.parametrize("loss", sorted(doubts.MEANINGS))
def test_report_with_a_loss_gives_its_doubt(loss):
    affects, text = doubts.MEANINGS[loss]
    kinds = [
        {"group": group, "resource": resource, "ops": {"ADDED": 1}, "losses": {}}
        for group, resource in (
            ("resource.k8s.io", "resourceslices"),
            ("resource.k8s.io", "resourceclaims"),
            ("resource.k8s.io", "deviceclasses"),
            ("", "pods"),
            ("", "nodes"),
        )
    ]
    assert uncertainty.of_report({"kinds": kinds}) == ()
    kinds[1]["losses"] = {loss.value: 3}
    (doubt,) = uncertainty.of_report({"kinds": kinds})
    assert (doubt.kind, doubt.code) == ("resourceclaims.resource.k8s.io", loss.value)
    assert (doubt.count, doubt.affects, doubt.text) == (3, affects, text)
    secret = {"group": "", "resource": "secrets", "ops": {}, "losses": {loss.value: 3}}
    kinds[1]["losses"] = {}
    assert uncertainty.of_report({"kinds": [*kinds, secret]}) == ()
