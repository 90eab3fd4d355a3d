"""What must be true of a log after any number of kills, read from its events alone."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec

from app.domain.log import Event
from tests.simulation.soundness import check_events

ONCE = ("Scheduled", "SuccessfulCreate", "TaintManagerEviction", "DeviceTaintManagerEviction")
"""Reasons of Kubernetes Events of which each text comes once."""


def check_log(events: Sequence[Event]) -> Counter[str]:
    """Chain, rules after every event, nothing decided or done twice. Raises AssertionError."""
    check_revisions(events)
    check_events(events)
    said: Counter[tuple[str, str, str]] = Counter()
    counted: Counter[str] = Counter()
    for event in events:
        if event.type == "DecisionRecorded":
            counted[event.object["outcome"]] += 1
        elif event.key.resource == "events" and event.type == "ObjectCreated":
            tree = event.object
            about = tree["involvedObject"]
            said[tree["reason"], f"{about['kind']} {about['uid']}", tree["message"]] += 1
        elif event.key.resource == "pods" and event.type == "ObjectCreated":
            counted["pods"] += 1
        elif event.key.resource == "resourceclaims" and event.type == "ObjectCreated":
            counted["claims"] += 1
    twice = [place for place, number in said.items() if number > 1 and place[0] in ONCE]
    assert not twice, f"said twice: {twice}"
    return counted


def check_revisions(events: Sequence[Event]) -> None:
    """No revision is missing, and each event follows the one before it by its hash."""
    for number, event in enumerate(events, 1):
        assert event.revision == number, f"revision {number} is missing before {event.revision}"
    for before, event in pairwise(events):
        covered = hashlib.sha256(before.hash + covered_by_hash(event)).digest()
        assert covered == event.hash, f"revision {event.revision} does not follow the one before it"


def covered_by_hash(event: Event) -> bytes:
    """What the hash of an event covers, as docs/explanation/proof.md says it."""
    stamp = msgspec.to_builtins(event.stamp)
    time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=event.stamp.time)
    stamp["time"] = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    payload = {
        "format": event.format,
        "group": event.key.group,
        "name": event.key.name,
        "namespace": event.key.namespace,
        "object": msgspec.Raw(event.body),
        "resource": event.key.resource,
        "uid": event.uid,
    }
    found = {
        "payload": payload,
        "revision": event.revision,
        "stamp": stamp,
        "type": str(event.type),
    }
    return msgspec.json.encode(found, order="sorted")
