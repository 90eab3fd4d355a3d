"""What stands in letters, in the texts of documents and in several packings: read, or named."""

import base64
import bz2
import gzip
import json
import random
import zlib
from email.message import EmailMessage

import pytest

from app.adapters.history.limits import ImportLimits
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.test_wrapped_texts import CLAIM, keys, read

OTHER = CLAIM.replace("name: one", "name: two")
ONE = (Op.ADDED, "ResourceClaim", "shop", "one")
TWO = (Op.ADDED, "ResourceClaim", "shop", "two")


def letter(**parts):
    """A letter whose text and attachments are encoded as programs for mail encode them."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.com", "b@example.com", "bug"
    message.set_content(f"It hangs \u2026\n\n{CLAIM}", cte="quoted-printable")
    message.add_alternative(f"<html><body><pre>{CLAIM}</pre></body></html>", subtype="html")
    for name, content in parts.items():
        message.add_attachment(
            content, "application", "octet-stream", filename=name.replace("_", ".")
        )
    return message


def test_letter_gives_its_text_once_and_its_attachments(tmp_path):
    content = letter(two_yaml_gz=gzip.compress(OTHER.encode())).as_bytes()
    records, lost = read(tmp_path, content, name="bug.eml")
    assert keys(records) == [ONE, TWO]
    assert [record.source for record in records] == ["bug.eml/text", "bug.eml/two.yaml.gz"]
    assert lost == []


def test_line_ends_of_the_wire_and_a_letter_within_a_letter(tmp_path):
    outer = EmailMessage()
    outer["From"], outer["Subject"] = "c@example.com", "Fwd"
    outer.set_content("see there")
    outer.add_attachment(letter(two_yaml=OTHER.encode()))
    records, lost = read(tmp_path, outer.as_bytes().replace(b"\n", b"\r\n"), name="fwd.eml")
    assert keys(records) == [ONE, TWO]
    assert lost == []


def test_mailbox_gives_all_its_letters(tmp_path):
    plain = f"From a@x Fri Jan  2 03:04:05 2026\nFrom: a@x\nSubject: x\n\n{CLAIM}\n"
    body = base64.encodebytes(OTHER.encode()).decode()
    encoded = (
        "From b@x Fri Jan  2 03:05:05 2026\nFrom: b@x\nMIME-Version: 1.0\n"
        f"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n{body}\n"
    )
    records, lost = read(tmp_path, plain + encoded, name="list.mbox")
    assert keys(records) == [ONE, TWO]
    assert lost == []


def test_names_of_attachments_lead_nowhere(tmp_path):
    message = letter()
    for number, name in enumerate(("../../etc/two.yaml", "..", "c:\\temp\\two.yaml")):
        content = CLAIM.replace("name: one", f"name: other-{number}").encode()
        message.add_attachment(content, "application", "yaml", filename=name)
    records, _ = read(tmp_path, message.as_bytes(), name="bug.eml")
    assert {record.source for record in records} == {
        "bug.eml/text",
        "bug.eml/two.yaml",
        "bug.eml/attachment-2",
    }


def test_damaged_attachment_is_lost_alone(tmp_path):
    content = letter(two_yaml_gz=gzip.compress(OTHER.encode())[:-20]).as_bytes()
    records, lost = read(tmp_path, content, name="bug.eml")
    assert keys(records) == [ONE]
    assert [place.split(": ")[0] for place in lost] == ["bug.eml/two.yaml.gz"]


def lines(text):
    return text.splitlines(keepends=True)


ISSUE = {"title": "It hangs", "body": f"See\r\n```yaml\r\n{CLAIM}```\r\n".replace("\n", "\r\n")}
ENCLOSED = {
    "an issue": ISSUE | {"comments": [{"body": f"me too\n\n```\n{OTHER}```"}]},
    "a chat": [{"user": "u", "text": f"```{CLAIM}```"}, {"user": "v", "text": f"```{OTHER}```"}],
    "a notebook": {
        "cells": [
            {"cell_type": "code", "outputs": [{"name": "stdout", "text": lines(CLAIM)}]},
            {"cell_type": "markdown", "source": ["# B\n", "```\n", *lines(OTHER), "```"]},
        ]
    },
    "lines of a terminal": {"events": CLAIM.splitlines(), "more": OTHER.splitlines()},
    "a release of helm": {"name": "r", "manifest": f"---\n# Source: a\n{CLAIM}---\n{OTHER}"},
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ENCLOSED)
def test_texts_of_a_document_are_read(tmp_path, name, indent):
    records, lost = read(tmp_path, json.dumps(ENCLOSED[name], indent=indent))
    assert keys(records) == [ONE, TWO]
    assert lost == []


def test_damage_in_a_text_of_a_document_is_named_with_the_line_of_the_document(tmp_path):
    damaged = ISSUE | {"more": CLAIM.replace("namespace: shop", "namespace: shop: shop")}
    _, lost = read(tmp_path, f"see\n{json.dumps(damaged)}\n")
    assert [place.split(": ")[0] for place in lost] == ["text:2"]
    assert "in a text: it is not YAML" in lost[0]


STORED = CLAIM.replace("  name:", "  uid: 11111111-2222-4333-8444-555555555555\n  name:")


def listed(*texts):
    """The objects as `kubectl get -o yaml` prints them."""
    items = [f"- {text.rstrip().replace(chr(10), chr(10) + '  ')}\n" for text in texts]
    return f"apiVersion: v1\nitems:\n{''.join(items)}kind: List\nmetadata:\n  resourceVersion: ''\n"


@pytest.mark.parametrize("seed", range(8))
def test_object_that_a_bounded_text_cuts_is_lost_and_said(tmp_path, seed):
    """Wherever in the last object the text ends: it is not read, and what is before it is."""
    whole = listed(STORED, STORED.replace("name: one", "name: two"))
    first, last = whole.index("name: two") + 10, whole.index("kind: List")
    end = random.Random(seed).choice([n for n in range(first, last) if whole[n - 1] not in "\n}]`"])
    steps = [{"stdout": whole[:end]}, {"stdout": CLAIM.replace("name: one", "name: three")}]
    records, lost = read(tmp_path, "".join(f"{json.dumps(step)}\n" for step in steps))
    is_readable = not any("not YAML" in each for each in lost)
    assert any("may be cut" in each for each in lost) or not is_readable
    assert [each.name for each in records] == ["one"] * is_readable + ["three"], whole[:end]


def test_lists_that_are_whole_are_read_whole(tmp_path):
    whole = listed(STORED, STORED.replace("name: one", "name: two"))
    for text in (whole, whole.rstrip()):
        records, lost = read(tmp_path, f"{json.dumps({'stdout': text})}\n")
        assert [record.name for record in records] == ["one", "two"]
        assert lost == []


def test_what_was_applied_to_a_logged_object_is_no_object(tmp_path):
    applied = {"kubectl.kubernetes.io/last-applied-configuration": CLAIM}
    metadata = {"name": "web", "uid": "u", "annotations": applied}
    logged = {"msg": "x", "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}
    partial = {"msg": "y", "pod": {"annotations": applied}}
    records, _ = read(tmp_path, f"{json.dumps(logged)}\n{json.dumps(partial)}\n")
    assert [record.kind for record in records] == ["Pod"]


def test_file_that_is_packed_twice_is_unpacked_twice(tmp_path):
    packed = gzip.compress(bz2.compress(gzip.compress(CLAIM.encode())))
    records, _ = read(tmp_path, packed, name="a.gz")
    assert keys(records) == [ONE]


def test_packings_around_packings_have_a_bound(tmp_path):
    content = CLAIM.encode()
    for _ in range(4):
        content = gzip.compress(content)
    (tmp_path / "a.gz").write_bytes(content)
    limits = ImportLimits(archive_depth_max=3)
    with pytest.raises(InputError, match="packed more than 3 times"):
        open_history([tmp_path / "a.gz"], ReadOptions(limits=limits))


CLOSED = {
    "a 7z archive": (b"7z\xbc\xaf\x27\x1c\0\x04", "unpack it"),
    "a RAR archive": (b"Rar!\x1a\x07\x01\0", "unpack it"),
    "a file packed with lz4": (b"\x04\x22\x4d\x18", "unpack it"),
    "a stream of zlib": (zlib.compress(bytes(9)), "unpack it"),
    "a PDF": (b"%PDF-1.7\n", "save what it shows as text"),
    "a file of the journal": (b"LPKSHHRH\0\0", "journalctl --file"),
    "a file of Parquet": (b"PAR1\x15\0", "as JSON"),
    "a file of Avro": (b"Obj\x01\x04", "as JSON"),
    "an answer in CBOR": (b"\xd9\xd9\xf7\xa1", "Accept: application/json"),
}


@pytest.mark.parametrize("name", CLOSED)
def test_file_that_is_not_opened_is_a_loss_that_says_what_it_is(tmp_path, name):
    content, cure = CLOSED[name]
    (tmp_path / "closed").write_bytes(content + bytes(range(256)))
    (tmp_path / "one.yaml").write_text(CLAIM)
    with open_history([tmp_path], ReadOptions()) as history:
        assert keys(history.records()) == [ONE]
        ((place, problem),) = history.refused_places
    assert place == "closed"
    assert problem.startswith(f"it is {name}, which redra does not open; ")
    assert cure in problem
    with pytest.raises(InputError, match=name):
        open_history([tmp_path / "closed"], ReadOptions())
