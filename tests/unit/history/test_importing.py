"""Records become events that say where they came from; reports say what is missing."""

import asyncio
import threading

import pytest
from anyio import to_thread

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.bootstrap import process_settings, recordings
from app.bootstrap.stores import memory_store
from app.domain.errors import InputError, LogUnavailable
from app.domain.log import EventType, ObjectKey, Revision, chain, refusals
from app.domain.values import timestamps
from app.service import importing
from app.service.importing import ImportOptions
from app.service.recorded_events import IMPORTER
from tests.patience import PATIENCE_SECONDS
from tests.unit.history.worlds import CLAIMS, audit, tree, watch, write_lines

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c1")


async def imported(folder, *lines, options=None, kind="audit.log", **read):
    log = MemoryLog(MemoryStore())
    path = write_lines(folder / kind, lines)
    seen = []
    with open_history([path], ReadOptions(**read)) as source:
        result = await importing.import_records(
            log,
            source,
            name="h",
            options=options or ImportOptions(),
            progress=lambda done, total: seen.append((done, total)),
        )
    events = await log.read(result.history.id, after=Revision(0), limit=1000)
    return result, events, seen


async def test_first_event_names_the_sources_and_the_last_carries_the_report(tmp_path):
    result, events, _ = await imported(tmp_path, audit("create", tree(rv=41)))
    first, last = events[0], events[-1]
    assert first.type is last.type is EventType.HISTORY_IMPORTED
    assert first.object["phase"] == "begun"
    (source,) = first.object["sources"]
    assert source["name"] == "audit.log"
    assert source["format"] == "audit"
    assert len(source["sha256"]) == 64
    assert last.object["phase"] == "finished"
    assert last.object["report"] == result.report.to_json()
    chain.check_chain(events, hash=chain.genesis_of(result.history))


async def test_event_keeps_recorded_identity_and_origin(tmp_path):
    _, events, _ = await imported(
        tmp_path, audit("create", tree(rv=41, uid="recorded"), user="bob", second=3)
    )
    event = events[1]
    assert event.type is EventType.OBJECT_CREATED
    assert event.key == CLAIM
    assert event.uid == "recorded"
    assert event.object["metadata"]["uid"] == "recorded"
    assert event.object["metadata"]["resourceVersion"] == "2"
    assert timestamps.micro_text(event.stamp.time) == "2026-01-01T00:00:03.500000Z"
    assert event.stamp.actor.user == "bob"
    assert event.stamp.verb == "create"
    assert event.stamp.request_id == "audit-create-3"
    origin = event.stamp.origin
    assert (origin.source, origin.position, origin.resource_version) == ("audit.log", "1", "41")
    assert origin.time_quality == "exact"
    assert origin.version == "v1"


async def test_baseline_is_a_creation_that_says_so(tmp_path):
    _, events, _ = await imported(tmp_path, watch("ADDED", tree(rv=4)), kind="w.jsonl")
    event = events[1]
    assert event.type is EventType.OBJECT_CREATED
    assert event.stamp.verb == "baseline"
    assert event.stamp.actor == IMPORTER
    assert "no_actor" in event.stamp.origin.losses


async def test_refused_requests_are_kept_unless_left_out(tmp_path):
    lines = (
        audit("create", tree(rv=4)),
        audit("update", name="c1", code=409, second=2),
        audit("update", name="c1", code=403, second=3),
    )
    _, events, _ = await imported(tmp_path, *lines)
    assert [refusals.is_refusal(event) for event in events[1:4]] == [False, False, True]
    observed = events[2]
    assert observed.type is EventType.REQUEST_OBSERVED
    assert observed.key == CLAIM
    assert observed.object["code"] == 409
    assert observed.stamp.origin.code == 409
    _, fewer, _ = await imported(tmp_path, *lines, options=ImportOptions(with_requests=False))
    assert EventType.REQUEST_OBSERVED not in {event.type for event in fewer}


async def test_batches_are_bounded_and_progress_is_told(tmp_path):
    lines = [audit("create", tree(name=f"c{number}", rv=number)) for number in range(1, 10)]
    result, events, seen = await imported(tmp_path, *lines, options=ImportOptions(batch_events=4))
    assert result.head.revision == len(events) == 11
    assert seen == [(4, 9), (8, 9), (9, 9)]
    chain.check_chain(events, hash=chain.genesis_of(result.history))


async def test_taken_name_is_refused_and_nothing_is_appended(tmp_path):
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=timestamps.Instant(0))
    path = write_lines(tmp_path / "audit.log", [audit("create", tree(rv=4))])
    with (
        open_history([path], ReadOptions()) as source,
        pytest.raises(InputError, match="already exists"),
    ):
        await importing.import_records(log, source, name="h", options=ImportOptions())
    assert (await log.head(info.id)).revision == 0


@pytest.mark.parametrize("name", ["Prod", "bad name/", "a@b", "", "x" * 64])
async def test_name_that_no_path_can_hold_is_refused(name):
    with pytest.raises(InputError, match="is not a valid name of a history"):
        await importing.check_name_is_free(MemoryLog(MemoryStore()), name)


RULES = ("resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule")


@pytest.mark.parametrize(
    ("type_", "code", "gates", "expected"),
    [
        (RULES, 201, "", {"DRADeviceTaintRules": True}),
        (RULES, 404, "", {}),
        (CLAIMS, 201, "", {}),
        (RULES, 201, "DRADeviceTaintRules=false", {"DRADeviceTaintRules": False}),
    ],
)
async def test_recorded_rules_had_their_gate_on(tmp_path, type_, code, gates, expected):
    rule = tree(type_, name="r", rv=7, namespace="")
    lines = [
        audit("create", tree(rv=5), name="c1"),
        audit("create", rule, type_=type_, name="r", namespace="", code=code, second=1),
    ]
    store = memory_store()
    settings = process_settings.settings(profile="1.36", gates=[gates] if gates else None)
    wanted = recordings.RecordingFiles(paths=(write_lines(tmp_path / "audit.log", lines),))
    await recordings.import_history(store, settings, wanted, "h", lambda _done, _total: None)
    info = await store.log.find_history("h")
    assert info.settings["gates"] == expected


async def test_deletion_of_the_unknown_keeps_only_the_identity(tmp_path):
    deleted = audit("delete", {"kind": "Status", "apiVersion": "v1"}, name="c1", second=5)
    _, events, _ = await imported(tmp_path, audit("create", tree(name="x", rv=1)), deleted)
    event = events[2]
    assert event.type is EventType.OBJECT_DELETED
    assert event.stamp.origin.quality == "identity"
    assert event.object["metadata"]["name"] == "c1"


async def test_report_counts_and_judges(tmp_path):
    result, _, _ = await imported(
        tmp_path,
        audit("create", tree(rv=1), second=1),
        audit("update", name="c1", second=2, annotations={"audit.k8s.io/truncated": "true"}),
        audit("update", tree(name="unknown", rv=9), name="unknown", second=3),
    )
    report = result.report
    (kind,) = report.kinds
    assert kind.ops == {"ADDED": 1, "BASELINE": 1, "GAP": 1, "MODIFIED": 1}
    assert kind.losses["truncated_body"] == 1
    assert (kind.first_version, kind.last_version) == ("1", "9")
    assert report.gap_count == 1
    rebuild, decide, timing = report.verdicts
    assert not rebuild.answer
    assert [each.word for each in report.verdicts] == ["in part", "no", "yes"]
    assert any("first seen when they changed" in reason for reason in rebuild.reasons)
    assert any("never seen: resourceslices" in reason for reason in decide.reasons)
    assert timing.answer
    titles, row = report.table()
    assert titles == ("KIND", "AT FIRST", "CREATED", "CHANGED", "GAPS", "TIMES", "LOSSES")
    assert row[:5] == ("resourceclaims.resource.k8s.io", "1", "1", "1", "1")


async def test_dump_alone_says_that_it_is_one_moment(tmp_path):
    path = tmp_path / "dump.yaml"
    path.write_text(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n"
        "  metadata: {name: p, namespace: d, uid: u, resourceVersion: '7'}\n"
    )
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions()) as source:
        result = await importing.import_records(log, source, name="h", options=ImportOptions())
    rebuild, decide, timing = result.report.verdicts
    assert rebuild.reasons == ("the sources show one moment, not a course of events",)
    assert decide.reasons[0] == "no slice and no claim was recorded"
    assert not timing.answer
    assert [each.word for each in result.report.verdicts] == ["no", "no", "no"]


@pytest.mark.parametrize("type_", [CLAIMS])
async def test_keep_going_lists_what_was_refused(tmp_path, type_):
    bad = ("resource.k8s.io", "v1alpha2", "resourceclaims", "ResourceClaim")
    result, events, _ = await imported(
        tmp_path,
        audit("create", tree(bad, name="old", rv=3), type_=bad),
        audit("create", tree(type_, rv=5), second=1),
        keep_going=True,
    )
    assert result.report.refused == 1
    assert result.report.refusals[0][0] == "audit.log:1"
    assert "no longer read" in result.report.refusals[0][1]
    assert [event.key.name for event in events if event.is_about_object] == ["c1"]


class FullLog(MemoryLog):
    """A log whose disk is full at the second append."""

    appends = 0

    async def append(self, *arguments, **options):
        self.appends += 1
        if self.appends == 2:
            raise LogUnavailable("no space left on device")
        return await super().append(*arguments, **options)


async def test_full_disk_comes_through_as_it_is_and_leaves_no_history(tmp_path):
    lines = [audit("create", tree(name=f"c{number}", rv=number)) for number in range(1, 10)]
    path = write_lines(tmp_path / "audit.log", lines)
    log = FullLog(MemoryStore())
    with (
        open_history([path], ReadOptions()) as source,
        pytest.raises(LogUnavailable, match="no space left"),
    ):
        await importing.import_records(log, source, name="h", options=ImportOptions(batch_events=4))
    assert await log.find_history("h") is None
    assert await log.unfinished() == []
    await importing.check_name_is_free(log, "h")


class EndlessSource:
    """The records of a source, again and again, until nobody reads them."""

    def __init__(self, source):
        self._source = source
        self._records = [*source.records()]
        self.is_read_in_a_thread = threading.Event()
        self.is_over = False
        self.readers = 0

    def __getattr__(self, name):
        return getattr(self._source, name)

    def records(self):
        self.readers += 1
        try:
            while not self.is_over:
                yield from self._records
                if threading.current_thread() is not threading.main_thread():
                    self.is_read_in_a_thread.set()
        finally:
            self.readers -= 1


async def test_import_that_the_event_loop_cancels_reads_no_more_when_it_has_ended(tmp_path):
    path = write_lines(tmp_path / "audit.log", [audit("create", tree(rv=41))])
    log = MemoryLog(MemoryStore())
    endless = ImportOptions(batch_events=10**9)
    with open_history([path], ReadOptions()) as recording:
        source = EndlessSource(recording)
        work = importing.import_records(log, source, name="h", options=endless)
        task = asyncio.create_task(work)
        try:
            assert await to_thread.run_sync(source.is_read_in_a_thread.wait, PATIENCE_SECONDS)
            task.cancel()  # as for Ctrl-C
            with pytest.raises(asyncio.CancelledError):
                await task
            assert source.readers == 0
        finally:
            source.is_over = True
    assert await log.find_history("h") is None
