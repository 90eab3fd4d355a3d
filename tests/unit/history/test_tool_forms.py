"""A recording that leaves in the forms of other tools comes back with what each form can say."""

import zipfile
from pathlib import Path

import msgspec
import pytest
import zstandard

from app.adapters.history.captures import CaptureWriter
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.history.writers import AuditWriter, DumpWriter, WatchWriter
from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import InputError
from app.domain.log import Draft, Event, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.log.event import GENESIS, Actor
from app.domain.log.records import IMPORTER_USER
from app.domain.values.timestamps import Instant
from app.service import exporting, importing
from app.service.importing import ImportOptions
from tests import draws
from tests.kept import Kept
from tests.no_room import no_room
from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines

RECORDING = Path(__file__).parents[3] / "examples/recordings/maintenance"

ODD_NAMES = ("../../evil", "/etc/evil", "..", "a/b", "%2e%2e")

COURSES = {"audit.log": AuditWriter, "watch": WatchWriter, "capture.kshrk": CaptureWriter}


async def imported(path: Path, name: str) -> tuple[MemoryLog, list[Event]]:
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions()) as source:
        result = await importing.import_records(
            log, source, name=name, options=ImportOptions(settings={"profile": "1.36"})
        )
    return log, await log.read(result.history.id, after=Revision(0), limit=1_000_000)


_RECORDING = Kept()


async def recording() -> tuple[MemoryLog, list[Event]]:
    """The log of the recording and its events, imported once: exports only read it."""
    if "prod" not in _RECORDING:
        _RECORDING["prod"] = await imported(RECORDING, "prod")
    return _RECORDING["prod"]


async def exported(log: MemoryLog, path: Path, writer, until: Revision | None = None):
    info = await log.find_history("prod")
    sink = writer(path)
    return await exporting.export_history(
        log, info, sink, program="tests", file=path.name, until=until
    )


def course(events: list[Event]) -> dict:
    """What happened to each object, one step after the other; a removal shows the last state."""
    steps: dict = {}
    for event in events:
        if event.is_about_object:
            body = dict(event.object)
            body["metadata"] = {**body["metadata"], "resourceVersion": ""}
            shown = None if event.type is EventType.OBJECT_DELETED else body
            steps.setdefault((event.key, event.uid), []).append(shown)
    return steps


def but_first_steps(steps: dict) -> dict:
    """Without the states in which nothing held an object any more: no answer shows them."""

    def is_shown(state):
        metadata = {} if state is None else state["metadata"]
        is_held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        return not metadata.get("deletionTimestamp") or is_held

    return {key: [each for each in states if is_shown(each)] for key, states in steps.items()}


def left(events: list[Event]) -> dict:
    """The objects at the end, without managed fields, which are not read from dumps."""
    objects = {}
    for key, states in course(events).items():
        if states[-1] is not None:
            metadata = {n: v for n, v in states[-1]["metadata"].items() if n != "managedFields"}
            objects[key] = {**states[-1], "metadata": metadata}
    return objects


@draws.BY_DAY
@pytest.mark.parametrize("name", COURSES)
async def test_course_of_every_object_comes_back(name, tmp_path):
    log, events = await recording()
    written = await exported(log, tmp_path / name, COURSES[name])
    _, again = await imported(tmp_path / name, "again")
    if name == "audit.log":
        assert but_first_steps(course(again)) == but_first_steps(course(events))
        assert written["lines"] + written["leftOut"] == len(events)
    else:
        assert course(again) == course(events)
        assert written["leftOut"] == sum(not event.is_about_object for event in events)


@draws.in_turn("ways")
async def test_authors_come_back_with_an_audit_log_alone(tmp_path):
    log, events = await recording()

    def authors(of):
        made = {(str(event.key), event.stamp.actor.user) for event in of if event.is_about_object}
        return {each for each in made if each[1] != IMPORTER_USER}

    same = {}
    for name, writer in COURSES.items():
        await exported(log, tmp_path / name, writer)
        _, again = await imported(tmp_path / name, "again")
        same[name] = authors(again) == authors(events)
    assert same == {"audit.log": True, "watch": False, "capture.kshrk": False}


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
async def test_objects_are_those_of_the_moment(share, tmp_path):
    log, events = await recording()
    until = Revision(int(events[-1].revision * share))
    await exported(log, tmp_path / "objects.json", DumpWriter, until)
    _, again = await imported(tmp_path / "objects.json", "again")
    assert left(again) == left([event for event in events if event.revision <= until])


async def test_capture_says_which_records_it_has(tmp_path):
    log, _ = await recording()
    path = tmp_path / "capture.kshrk"
    await exported(log, path, CaptureWriter)
    unpack = zstandard.ZstdDecompressor().decompressobj
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())

        def read(name):
            content = archive.read(f"k8shark-capture/{name}")
            packed = unpack().decompress(content) if name.endswith(".zst") else content
            return msgspec.json.decode(packed)

        metadata = read("metadata.json")
        lists, watched = (read(f"{name}.json.zst")["entries"] for name in ("index", "watch-index"))
        records = [read(name.partition("/")[2]) for name in sorted(names) if "/records/" in name]
    assert metadata["format_version"] == 2
    assert metadata["record_count"] == len(records) == len({each["id"] for each in records})
    for index, has_type in ((lists, False), (watched, True)):
        for api_path, entry in index.items():
            own = [
                each
                for each in records
                if each["api_path"] == api_path and ("event_type" in each) is has_type
            ]
            assert sorted(entry["times"]) == sorted(each["captured_at"] for each in own)
            if has_type:
                types = sorted(each["event_type"] for each in own)
                assert sorted(entry["event_types"]) == types
            else:
                sizes = sorted(len(each["response_body"]["items"]) for each in own)
                assert sorted(entry["counts"]) == sizes


@pytest.mark.parametrize("name", [*COURSES, "objects.json"])
async def test_place_where_nothing_can_be_written_is_refused_and_nothing_is_left(name, tmp_path):
    log, _ = await recording()
    (tmp_path / "file").write_text("in the way")
    writer = {**COURSES, "objects.json": DumpWriter}[name]
    with pytest.raises(InputError, match="cannot be written"):
        await exported(log, tmp_path / "file" / name, writer)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


async def test_streams_stay_in_their_folder_whatever_kinds_are_called(tmp_path):
    lines = [
        audit("create", tree(type_, f"c{n}", rv=n + 1), second=n, type_=type_)
        for n, type_ in enumerate(
            [CLAIMS, *((group, "v1", name, "Odd") for group in ("x.io", "") for name in ODD_NAMES)]
        )
    ]
    log, events = await imported(write_lines(tmp_path / "audit.log", lines), "prod")
    assert {event.key.resource for event in events} >= {*ODD_NAMES}
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    await exported(log, folder / "watch", WatchWriter)
    made = set(tmp_path.rglob("*")) - before
    assert made == {folder / "watch", *(folder / "watch").iterdir()}
    assert len(made) == 2 + 2 * len(ODD_NAMES)


async def test_folder_without_room_has_the_name_that_the_user_gave(tmp_path):
    lines = [audit("create", tree(CLAIMS, "c"), audit_id="1")]
    _, events = await imported(write_lines(tmp_path / "audit.log", lines), "prod")
    writer = WatchWriter(tmp_path / "watch")
    writer.write(events)
    with (
        no_room(30),
        pytest.raises(InputError, match=f"{tmp_path / 'watch'}: it cannot be written") as told,
    ):
        writer.finish({})
    assert ".partial" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.log"]


async def test_capture_ends_with_each_object_once_whatever_versions_it_was_written_with(tmp_path):
    older = {**tree(CLAIMS, "gone", rv=1), "apiVersion": "resource.k8s.io/v1beta1"}
    kept = {**tree(CLAIMS, "kept", rv=2), "apiVersion": "resource.k8s.io/v1beta1"}
    trees = [older, kept, tree(CLAIMS, "kept", rv=3), tree(CLAIMS, "gone", rv=4)]
    verbs = ["create", "create", "update", "delete"]
    previous, events = GENESIS, []
    kinds = {"create": "OBJECT_CREATED", "update": "OBJECT_UPDATED", "delete": "OBJECT_DELETED"}
    for number, (verb, each) in enumerate(zip(verbs, trees, strict=True), start=1):
        draft = Draft(
            type=EventType[kinds[verb]],
            key=ObjectKey("resource.k8s.io", "resourceclaims", "d", each["metadata"]["name"]),
            uid=each["metadata"]["uid"],
            tree=each,
            stamp=Stamp(time=Instant(number), actor=Actor(user="u"), verb=verb),
        )
        events.append(chain.seal(draft, Revision(number), previous))
        previous = events[-1].hash
    writer = CaptureWriter(tmp_path / "capture.kshrk")
    writer.write(events)
    writer.finish({})
    with open_history([tmp_path / "capture.kshrk"], ReadOptions()) as source:
        records = list(source.records())
    assert [record.op for record in records].count("DELETED") == 1
    lists: dict[str, list[str]] = {}
    unpack = zstandard.ZstdDecompressor().decompressobj
    with zipfile.ZipFile(tmp_path / "capture.kshrk") as archive:
        for name in archive.namelist():
            if "/records/" in name:
                record = msgspec.json.decode(unpack().decompress(archive.read(name)))
                if "event_type" not in record:
                    items = record["response_body"]["items"]
                    lists[record["api_path"]] = [item["metadata"]["name"] for item in items]
    assert lists == {
        "/apis/resource.k8s.io/v1/resourceclaims": ["kept"],
        "/apis/resource.k8s.io/v1beta1/resourceclaims": [],
    }
