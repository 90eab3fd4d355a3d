"""Secrets of recordings and bundles: protected on their way in, unreadable in temporary files."""

import tempfile
from pathlib import Path

import msgspec
import pytest

from app.adapters.history.formats.bundle import BundleReader, BundleWriter
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.adapters.secret_keys import SecretKeys
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log import Revision, chain
from app.domain.objects.kinds import secret_values
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant
from app.service import exporting, importing
from app.service.importing import ImportOptions
from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines

SECRETS = ("", "v1", "secrets", "Secret")
REVIEWS = ("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
WORD = "d29yZC1tYXJrLXdvcmQ="


def keys(folder):
    return SecretKeys(folder / "secrets.key", folder / "imported.key")


def recording(folder):
    return write_lines(
        folder / "audit.log",
        [
            audit("create", tree(CLAIMS, "c", rv=2), second=1),
            audit("create", tree(SECRETS, "s", rv=3, data={"a": WORD}), type_=SECRETS, second=2),
            audit("patch", type_=SECRETS, name="s", request={"data": {"b": WORD}}, second=3),
            audit("create", tree(REVIEWS, "", spec={"token": WORD}), type_=REVIEWS, second=4),
            audit("create", tree(CLAIMS, "d", rv=9), second=5),
        ],
    )


def read_options():
    return ReadOptions(with_secrets=True, rules=rules_for(Profile()))


async def imported(log, folder, secrets, name="h"):
    with open_history([recording(folder)], read_options()) as source:
        return await importing.import_records(
            log, source, name=name, options=ImportOptions(secrets=secrets)
        )


async def events_of(log, history):
    return await log.read(history.id, after=Revision(0), limit=100)


async def test_recorded_values_are_protected_and_readable_with_the_key(tmp_path):
    log, here = MemoryLog(MemoryStore()), keys(tmp_path)
    result = await imported(log, tmp_path, here.cipher)
    events = await events_of(log, result.history)
    chain.check_chain(events, hash=chain.genesis_of(result.history))
    assert not any(WORD in event.body.decode() for event in events)
    states = [
        secret_values.revealed(event.key, event.object, here.cipher(result.history))["data"]
        for event in events
        if event.key.resource == "secrets"
    ]
    assert states == [{"a": WORD}, {"a": WORD, "b": WORD}]


async def test_questions_about_tokens_are_left_out_and_said(tmp_path):
    log = MemoryLog(MemoryStore())
    result = await imported(log, tmp_path, keys(tmp_path).cipher)
    assert not any(
        event.key.resource == "tokenreviews" for event in await events_of(log, result.history)
    )
    assert any("tokenreviews.authentication.k8s.io" in note for note in result.report.notes)


def test_temporary_store_of_an_import_holds_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = recording(tmp_path)
    with open_history([source], read_options()) as opened:
        (file,) = tmp_path.glob("redra-held-*/records.db")
        content = Path(file).read_bytes()
        assert b"resourceclaims" in content
        assert WORD.encode() not in content
        found = [r for r in opened.records() if r.resource == "secrets"]
        assert found[-1].object["data"] == {"a": WORD, "b": WORD}


async def test_plain_values_leave_only_when_asked_for_and_are_protected_on_import(tmp_path):
    log = MemoryLog(MemoryStore())
    old = await imported(log, tmp_path, None)
    path = tmp_path / "old.redra"

    async def export(**more):
        return await exporting.export_history(
            log, old.history, BundleWriter(path), program="redra test", file="f", **more
        )

    with pytest.raises(InputError, match=r"revision 3 .* in plain text"):
        await export()
    assert not path.exists()
    here = keys(tmp_path)
    await export(secrets=here)
    result = await exporting.import_bundle(
        log, BundleReader(path, DEFAULT_LIMITS), name="new", created=Instant(1), secrets=here
    )
    assert result.protected == 3
    before, after = await events_of(log, old.history), await events_of(log, result.history)
    chain.check_chain(after, hash=chain.genesis_of(result.history))
    assert result.head.hash == after[-1].hash != before[-1].hash
    assert [event.hash for event in after[:2]] == [event.hash for event in before[:2]]
    assert not any(WORD in event.body.decode() for event in after)
    for one, two in zip(before, after, strict=True):
        assert (one.key, one.stamp, one.uid) == (two.key, two.stamp, two.uid)
        shown = two.object
        if two.key.resource == "secrets":
            shown = secret_values.revealed(two.key, shown, here.cipher(result.history))
        assert shown == one.object


async def test_bundle_brings_the_keys_of_its_history_only_when_asked_for(tmp_path):
    log, here = MemoryLog(MemoryStore()), keys(tmp_path)
    result = await imported(log, tmp_path, here.cipher)
    brought = []
    for secrets in (None, here):
        path = tmp_path / "b.redra"
        await exporting.export_history(
            log, result.history, BundleWriter(path), program="t", file="f", secrets=secrets
        )
        reader = BundleReader(path, DEFAULT_LIMITS)
        reader.check()
        brought.append(reader.secret_keys())
    assert brought[0] == {}
    ((name, key),) = brought[1].items()
    assert here.find(name) == key
    assert len(msgspec.json.encode(brought[1])) < 200
