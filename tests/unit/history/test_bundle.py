"""A bundle holds a history exactly, gives the same bytes for the same content, and shows damage."""

import zipfile
from hashlib import sha256

import msgspec
import pytest

from app.adapters.head_keys import open_head_key
from app.adapters.history.formats.bundle import BundleReader, BundleWriter
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import is_bundle, open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import ChainBroken, InputError
from app.domain.log import Head, Revision, chain
from app.domain.log.event import GENESIS
from app.domain.values.timestamps import Instant
from app.service import exporting, importing
from app.service.importing import ImportOptions
from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines


async def recorded_log(folder):
    log = MemoryLog(MemoryStore())
    path = write_lines(
        folder / "audit.log",
        [
            audit("create", tree(CLAIMS, "é", rv=3, spec={"b": 1, "a": [1.5, "x"]}), second=1),
            audit("update", name="é", code=409, second=2),
            audit("delete", tree(CLAIMS, "é", rv=5), name="é", second=3),
            audit("create", tree(CLAIMS, "left", rv=6), second=4),
        ],
    )
    with open_history([path], ReadOptions()) as source:
        result = await importing.import_records(
            log, source, name="one", options=ImportOptions(seed=7, settings={"profile": "1.36"})
        )
    return log, result


async def exported(folder, name="one.redra"):
    log, result = await recorded_log(folder)
    path = folder / name
    manifest = await exporting.export_history(
        log, result.history, BundleWriter(path), program="redra test", file=name
    )
    return log, result, path, manifest


async def test_reimported_bundle_is_the_same_history(tmp_path):
    log, first, path, manifest = await exported(tmp_path)
    assert is_bundle(path)
    reader = BundleReader(path, DEFAULT_LIMITS)
    again = await exporting.import_bundle(log, reader, name="two", created=Instant(1))
    assert again.head == first.head
    assert again.history.seed == 7
    assert again.history.settings == {"profile": "1.36", "recorded": True}
    before = await log.read(first.history.id, after=Revision(0), limit=100)
    after = await log.read(again.history.id, after=Revision(0), limit=100)
    assert [(e.hash, e.body, e.stamp, e.key) for e in before] == [
        (e.hash, e.body, e.stamp, e.key) for e in after
    ]
    assert manifest["events"] == len(before)
    assert manifest["chain_head"] == "sha256:" + first.head.hash.hex()


async def test_equal_content_gives_equal_bytes(tmp_path):
    log, result, path, _ = await exported(tmp_path)
    other = tmp_path / "other"
    await exporting.export_history(
        log, result.history, BundleWriter(other), program="redra test", file="one.redra"
    )
    assert path.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = [entry.filename for entry in archive.infolist()]
        assert names == ["manifest.json", "events.jsonl", "reports/0.json", "README.md"]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED


def key_of(folder):
    return open_head_key(folder)


async def signed_bundle(folder):
    log, result = await recorded_log(folder)
    path = folder / "one.redra"
    await exporting.export_history(
        log,
        result.history,
        BundleWriter(path),
        program="redra test",
        file="one.redra",
        sign=key_of(folder / "mine").sign,
    )
    return result, path


async def test_signed_head_of_a_bundle_stays_with_the_history(tmp_path):
    result, path = await signed_bundle(tmp_path)
    log = MemoryLog(MemoryStore())
    reader = BundleReader(path, DEFAULT_LIMITS)
    again = await exporting.import_bundle(log, reader, name="two", created=Instant(1))
    (head,) = await log.kept_heads(again.history.id)
    assert again.signed == (head,)
    assert (head.history, head.revision) == ("one", result.head.revision)
    assert head.names(result.head.hash)
    assert head.key == key_of(tmp_path / "mine").public
    assert again.history.created == result.history.created
    copied = tmp_path / "copy"
    await exporting.export_history(
        log,
        msgspec.structs.replace(again.history, name="one"),
        BundleWriter(copied),
        program="redra test",
        file="one.redra",
        sign=key_of(tmp_path / "theirs").sign,
    )
    assert copied.read_bytes() == path.read_bytes(), "signed once is signed"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda head: {**head, "revision": 4}, InputError, "signature of the head is wrong"),
        (lambda head: {**head, "signature": "AAAA"}, InputError, "signature of the head is wrong"),
        (lambda head: {**head, "key": "ed25519:AAAA"}, InputError, "is not a key such as"),
        (lambda head: {"kind": "other"}, InputError, "it is no signed head"),
        (lambda head: {**head, "note": "checked"}, InputError, "contains unknown field `note`"),
        (
            lambda head: {name: head[name] for name in head if name != "format"},
            InputError,
            "it is no signed head: it has no format",
        ),
    ],
)
async def test_changed_head_of_a_bundle_is_refused(tmp_path, change, error, words):
    _, path = await signed_bundle(tmp_path)
    await refuse(with_heads(path, lambda heads: [change(heads[0])]), error, words)


async def refuse(path, error, words):
    log = MemoryLog(MemoryStore())
    with pytest.raises(error, match=words):
        await exporting.import_bundle(
            log, BundleReader(path, DEFAULT_LIMITS), name="two", created=Instant(1)
        )
    assert await log.histories() == []


async def test_bundle_that_was_cut_after_it_was_signed_is_refused(tmp_path):
    result, path = await signed_bundle(tmp_path)
    head = Head(revision=Revision(result.head.revision + 3), hash=b"x" * 32)
    longer = key_of(tmp_path / "mine").sign("one", head)
    await refuse(
        with_heads(path, lambda heads: [longer.to_json()]),
        InputError,
        "a signed head is at revision 9, the events end at 6",
    )


async def test_bundle_that_was_written_anew_after_it_was_signed_is_refused(tmp_path):
    _, path = await signed_bundle(tmp_path)
    other = key_of(tmp_path / "mine").sign("one", Head(revision=Revision(3), hash=b"x" * 32))
    await refuse(
        with_heads(path, lambda heads: [other.to_json()]),
        ChainBroken,
        "at revision 3: a signed head names another hash",
    )


def with_heads(path, change):
    return with_entry(path, "heads.json", lambda heads: change(heads))


def with_entry(path, name, change):
    """A copy of the bundle in which the JSON of an entry was changed."""
    target = path.with_name("changed.redra")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == name:
                content = msgspec.json.encode(change(msgspec.json.decode(content)))
            archive.writestr(entry, content)
    return target


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"profile": "1.37"}},
        {"settings": {"profile": "1.36"}},
        {"seed": 8},
        {"created": "2026-01-02T03:04:05.000000Z"},
        {"created": None},
    ],
)
async def test_settings_of_a_bundle_are_those_of_its_chain(tmp_path, change):
    *_, path, _ = await exported(tmp_path)
    await refuse(
        with_entry(path, "manifest.json", lambda manifest: manifest | change),
        ChainBroken,
        "at revision 1: it does not follow from the settings",
    )


async def test_bundle_of_an_older_redra_is_read_without_settings_in_its_chain(tmp_path):
    log, result, _, _ = await exported(tmp_path)
    events = await log.read(result.history.id, after=Revision(0), limit=100)
    old = MemoryLog(MemoryStore())
    info = await old.create_history("old", seed=7, settings={}, created=Instant(5))
    previous = GENESIS
    for event in events:
        event.hash = sha256(previous + chain.canonical_bytes(event)).digest()
        previous = event.hash
    await old.append(info.id, expected=Head(), events=events)
    path = tmp_path / "old.redra"
    await exporting.export_history(old, info, BundleWriter(path), program="", file="")
    bare = with_entry(
        path, "manifest.json", lambda it: {key: it[key] for key in it if key != "created"}
    )
    again = await exporting.import_bundle(
        log, BundleReader(bare, DEFAULT_LIMITS), name="again", created=Instant(9)
    )
    assert (again.history.created, again.head.hash) == (9, previous)


async def test_bundle_keeps_sources_and_report(tmp_path):
    *_, path, manifest = await exported(tmp_path)
    assert manifest["sources"][0]["name"] == "audit.log"
    assert manifest["sources"][0]["sha256"]
    with zipfile.ZipFile(path) as archive:
        assert b"can decisions be re-checked?" in archive.read("reports/0.json")


def rewritten(path, change):
    """A copy of the bundle in which `change` was applied to the text of the events."""
    target = path.with_name("changed.redra")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "events.jsonl":
                content = change(content)
            archive.writestr(entry, content)
    return target


@pytest.mark.parametrize(
    ("change", "revision"),
    [
        (lambda text: text.replace(b'"alice"', b'"mallory"', 1), 2),
        (lambda text: b"".join(text.splitlines(keepends=True)[:2] +
                               text.splitlines(keepends=True)[3:]), 4),
        (lambda text: text.replace(b'"name":"left"', b'"name":"last"'), 5),
    ],
)  # fmt: skip
async def test_damage_is_named_by_its_revision(tmp_path, change, revision):
    log, _, path, _ = await exported(tmp_path)
    reader = BundleReader(rewritten(path, change), DEFAULT_LIMITS)
    with pytest.raises(ChainBroken) as caught:
        await exporting.import_bundle(log, reader, name="two", created=Instant(1))
    assert caught.value.revision == revision
    assert await log.find_history("two") is None


async def test_cut_bundle_is_refused(tmp_path):
    _, _, path, _ = await exported(tmp_path)
    cut = rewritten(path, lambda text: b"".join(text.splitlines(keepends=True)[:3]))
    with pytest.raises(InputError, match="the manifest says events"):
        BundleReader(cut, DEFAULT_LIMITS).check()


async def test_taken_name_is_refused_before_anything_is_read(tmp_path):
    log, _, path, _ = await exported(tmp_path)
    with pytest.raises(InputError, match="already exists"):
        await exporting.import_bundle(
            log, BundleReader(path, DEFAULT_LIMITS), name="one", created=Instant(1)
        )


async def test_export_up_to_a_revision_is_a_whole_history_of_its_own(tmp_path):
    log, result, _, _ = await exported(tmp_path)
    path = tmp_path / "part.redra"
    manifest = await exporting.export_history(
        log,
        result.history,
        BundleWriter(path),
        program="redra test",
        file="part.redra",
        until=Revision(3),
    )
    assert manifest["events"] == 3
    BundleReader(path, DEFAULT_LIMITS).check()


async def test_bundle_that_is_replaced_while_it_is_imported_is_refused(tmp_path):
    log, result, path, _ = await exported(tmp_path)
    other = BundleWriter(tmp_path / "part.redra")
    await exporting.export_history(
        log, result.history, other, program="redra test", file="part.redra", until=Revision(3)
    )

    class Replaced(BundleReader):
        def check(self, schemas=None):
            super().check(schemas)
            (tmp_path / "part.redra").replace(path)

    with pytest.raises(InputError, match="replaced by another one"):
        await exporting.import_bundle(
            log, Replaced(path, DEFAULT_LIMITS), name="two", created=Instant(1)
        )
    assert [each.name for each in await log.histories()] == ["one"]


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl", "heads.json"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_bundle_with_two_entries_of_a_name_is_refused(tmp_path, name):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for entry in ("manifest.json", "events.jsonl", name, "heads.json"):
            archive.writestr(entry, "{}")
    with pytest.raises(InputError, match=f"the entry '{name}' is there twice"):
        BundleReader(path, DEFAULT_LIMITS)


@pytest.mark.parametrize("name", ["./events.jsonl", "EVENTS.JSONL"])
def test_bundle_with_entries_that_unpack_to_one_file_is_refused(tmp_path, name):
    """Which of them a person looks at depends on the program that unpacks the archive."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for entry in ("manifest.json", "events.jsonl", "heads.json", name):
            archive.writestr(entry, "{}")
    with pytest.raises(InputError, match=r"the entry '.*' is there twice"):
        BundleReader(path, DEFAULT_LIMITS)


def with_event(folder, path, manifest, change):
    """The bundle whose second line is changed, with the digest that fits: anybody can count it."""
    with zipfile.ZipFile(path) as archive:
        lines = archive.read("events.jsonl").splitlines()
        rest = {name: archive.read(name) for name in ("reports/0.json", "README.md")}
    text = b"".join(line + b"\n" for line in [lines[0], change(lines[1]), *lines[2:]])
    files = {"events.jsonl": "sha256:" + sha256(text).hexdigest()}
    altered = folder / "altered.redra"
    with zipfile.ZipFile(altered, "w") as archive:
        archive.writestr(
            "manifest.json", msgspec.json.encode(manifest | {"checks": {"files": files}})
        )
        archive.writestr("events.jsonl", text)
        for name, content in rest.items():
            archive.writestr(name, content)
    return BundleReader(altered, DEFAULT_LIMITS)


async def test_event_of_a_bundle_that_is_counted_anew_alone_is_read(tmp_path):
    """The refusals below are not those of the digest."""
    _, _, path, manifest = await exported(tmp_path)
    with_event(tmp_path, path, manifest, lambda line: line).check()


@pytest.mark.parametrize("place", ["", "payload", "stamp", "stamp.actor"])
async def test_event_of_a_bundle_has_no_field_that_its_hash_does_not_cover(tmp_path, place):
    def with_field(line):
        event = tree = msgspec.json.decode(line)
        for field in place.split(".") if place else ():
            tree = tree[field]
        tree["approvedBy"] = "alice"
        return msgspec.json.encode(event)

    _, _, path, manifest = await exported(tmp_path)
    reader = with_event(tmp_path, path, manifest, with_field)
    with pytest.raises(InputError, match=r"events.jsonl:2: (the line is not|it is not an event)"):
        reader.check()


@pytest.mark.parametrize(
    ("before", "first"),
    [
        (b"{", b'"type":"OBJECT_DELETED",'),
        (b'"payload":{', b'"namespace":"other",'),
        (b'"payload":{', b'"n\\u0061mespace":"other",'),
        (b'"stamp":{', b'"verb":"delete",'),
        (b'"actor":{', b'"user":"mallory",'),
    ],
)
async def test_event_of_a_bundle_has_each_field_once(tmp_path, before, first):
    """Which of two values counts differs between programs; the hash covers the last one."""
    _, _, path, manifest = await exported(tmp_path)
    twice = before + first
    reader = with_event(tmp_path, path, manifest, lambda line: line.replace(before, twice, 1))
    with pytest.raises(InputError, match=r"events.jsonl:2: the line is not the canonical JSON"):
        reader.check()


MANIFEST_TYPES = (
    ("events", "3"), ("events", True), ("first_revision", 2), ("last_revision", 1),
    ("chain_head", 5), ("state_hash", None), ("checks", []), ("checks", {"files": []}),
    ("name", 7), ("created", 5), ("created_by", []), ("settings", []), ("beginning", []),
    ("beginning", {"seed": "1", "settings": {}, "created": "2026-01-01T00:00:00Z"}),
    ("sources", {}), ("sources", [5]), ("version", True),
)  # fmt: skip


async def test_field_of_a_manifest_with_another_type_or_number_is_refused(tmp_path):
    *_, path, _ = await exported(tmp_path)
    for field, value in MANIFEST_TYPES:
        altered = with_entry(path, "manifest.json", {field: value}.__ror__)
        with pytest.raises(InputError, match="manifest"):
            BundleReader(altered, DEFAULT_LIMITS).check()


async def test_events_of_a_bundle_are_no_recording(tmp_path):
    """They were imported as objects without decisions and authors when the manifest was missing."""
    *_, path, _ = await exported(tmp_path)
    with zipfile.ZipFile(path) as archive:
        events = archive.read("events.jsonl")
    bare, zipped = tmp_path / "events.jsonl", tmp_path / "part.zip"
    bare.write_bytes(events)
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("events.jsonl", events)
    for file in (bare, zipped):
        with pytest.raises(InputError, match="the events of a bundle, without the rest of it"):
            open_history([file], ReadOptions())


BESIDE = {
    "report": lambda entries: entries | {"reports/0.json": b'{"losses":[]}'},
    "no report": lambda entries: {n: t for n, t in entries.items() if not n.startswith("reports")},
    "readme": lambda entries: entries | {"README.md": b"all is well"},
    "further entry": lambda entries: entries | {"more.json": b"{}"},
    "order": lambda entries: dict(reversed(entries.items())),
    "names": lambda entries: entries | {"manifest.json": msgspec.json.encode(
        msgspec.json.decode(entries["manifest.json"])
        | {"name": "x", "sources": [{"name": "x"}], "created_by": "x", "redaction": "none"}
    )},
}  # fmt: skip
"""What stands in a bundle for people; nothing covers it, and nothing is read of it."""


@pytest.mark.parametrize("beside", BESIDE)
async def test_what_stands_beside_the_events_of_a_bundle_has_no_effect(tmp_path, beside):
    _, result, path, _ = await exported(tmp_path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    changed = tmp_path / "changed.redra"
    with zipfile.ZipFile(changed, "w") as archive:
        for name, content in BESIDE[beside](entries).items():
            archive.writestr(name, content)
    log = MemoryLog(MemoryStore())
    reader = BundleReader(changed, DEFAULT_LIMITS)
    again = await exporting.import_bundle(log, reader, name="one", created=Instant(1))
    assert again.head == result.head
    assert again.history.settings == result.history.settings


def test_other_archives_are_no_bundles(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"bundle": "other"}')
        archive.writestr("events.jsonl", "")
    with pytest.raises(InputError, match="not that of a history bundle"):
        BundleReader(path, DEFAULT_LIMITS)


async def test_damaged_packing_is_one_sentence(tmp_path):
    *_, path, _ = await exported(tmp_path)
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 3, len(content), 37):
        broken = tmp_path / "broken.redra"
        broken.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            BundleReader(broken, DEFAULT_LIMITS).check()
        except (InputError, ChainBroken) as problem:
            assert "\n" not in str(problem)  # noqa: PT017  damage beside the events may go unseen
