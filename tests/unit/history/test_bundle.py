"""A bundle holds a history exactly, gives the same bytes for the same content, and shows damage."""

import zipfile

import pytest

from app.adapters.history.bundle import BundleReader, BundleWriter
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import is_bundle, open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import ChainBroken, InputError
from app.domain.log import Revision
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
    assert again.history.settings == {"profile": "1.36"}
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
    with pytest.raises(InputError, match="exists already"):
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
