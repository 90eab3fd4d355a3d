"""Are events of every format that was ever written still read as they were meant?"""

import json
from pathlib import Path

import msgspec
import pytest

from app.domain.errors import WrongDatabase
from app.domain.log import EventType, ObjectKey, Origin, Revision
from app.domain.log.chain import check_chain
from app.domain.log.event import FORMAT_VERSION
from app.domain.log.upcasting import UPCASTERS, StoredEvent, from_stored, to_stored

GOLDEN = Path(__file__).parent / "golden"


def golden(format: int) -> list[StoredEvent]:
    """The events of a golden file, as a store holds them."""
    lines = (GOLDEN / f"format_{format}.jsonl").read_text().splitlines()
    return [
        StoredEvent(
            format=line["format"],
            revision=Revision(line["revision"]),
            type=line["type"],
            key=ObjectKey(*line["key"]),
            uid=line["uid"],
            stamp=line["stamp"].encode(),
            object=line["object"].encode(),
            hash=bytes.fromhex(line["hash"]),
        )
        for line in map(json.loads, lines)
    ]


def test_every_format_has_a_golden_file_and_every_old_one_an_upcaster():
    formats = range(1, FORMAT_VERSION + 1)
    assert sorted(path.name for path in GOLDEN.iterdir()) == [
        f"format_{format}.jsonl" for format in formats
    ]
    assert sorted(UPCASTERS) == list(formats[:-1])


def test_golden_file_holds_every_type():
    assert {stored.type for stored in golden(1)} == {str(known) for known in EventType}


def test_events_of_format_1_fit_their_hashes():
    check_chain([from_stored(stored) for stored in golden(1)])


def test_events_of_the_present_format_are_stored_as_ever():
    for stored in golden(FORMAT_VERSION):
        assert to_stored(from_stored(stored)) == stored


def test_every_field_of_format_1_arrives():
    events = [from_stored(stored) for stored in golden(1)]
    first, decision, update = events[:3]
    assert first.type is EventType.OBJECT_CREATED
    assert first.key == ObjectKey("resource.k8s.io", "resourceclaims", "default", "gpu")
    assert first.object["metadata"]["annotations"]["note"] == 'naïve ☃ \0 " \\ / <&>'
    assert first.object["metadata"]["resourceVersion"] == "1"
    assert first.stamp.actor.groups == ("dev", "system:authenticated")
    assert (first.stamp.time, first.stamp.uid) == (1_767_323_045_000_006, first.uid)
    assert (decision.stamp.cause, decision.stamp.observed) == (1, 1)
    assert decision.object["summary"]["large"] == 2**64 - 1
    assert update.stamp.origin == Origin(
        source="audit.log.gz",
        position="line 7",
        resource_version="123",
        version="resource.k8s.io/v1beta1",
        time_quality="exact",
        quality="full",
        losses=("no_uid", "no_status"),
        code=200,
    )


def test_old_events_pass_through_each_step():
    present = golden(FORMAT_VERSION)[0]
    oldest = msgspec.structs.replace(present, format=-1, uid="")

    def first(stored: StoredEvent) -> StoredEvent:
        return msgspec.structs.replace(stored, format=0, uid=stored.uid + "a")

    def second(stored: StoredEvent) -> StoredEvent:
        return msgspec.structs.replace(stored, format=FORMAT_VERSION, uid=stored.uid + "b")

    assert from_stored(oldest, {-1: first, 0: second}).uid == "ab"


def test_format_of_a_newer_program_is_refused_in_words():
    stored = msgspec.structs.replace(golden(1)[0], format=FORMAT_VERSION + 1)
    with pytest.raises(WrongDatabase, match=r"event 1 has format 2.*a newer redra wrote it"):
        from_stored(stored)


def test_type_of_a_newer_program_is_refused_in_words():
    stored = msgspec.structs.replace(golden(1)[0], type="ObjectMoved")
    with pytest.raises(WrongDatabase, match=r"event 1 is a 'ObjectMoved'"):
        from_stored(stored)


def test_origin_of_a_replayed_event_arrives():
    (conflict,) = [event for event in golden(1) if event.type == "ConflictObserved"]
    origin = from_stored(conflict).stamp.origin
    assert origin is not None
    assert origin.replayed == 4
