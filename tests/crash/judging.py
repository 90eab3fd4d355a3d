"""The rules that a log must keep after any number of kills, checked on its events alone."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec

from app.domain.log import Event
from tests.simulation.soundness import check_events

ONCE = ("Scheduled", "SuccessfulCreate", "TaintManagerEviction", "DeviceTaintManagerEviction")
"""Reasons of Kubernetes Events whose message occurs once per object."""


def check_log(events: Sequence[Event]) -> Counter[str]:
    """Checks the chain, the rules after every event, and that nothing is decided or done twice.

    Returns counts of decisions, pods and claims. Raises AssertionError.
    """
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
    """Checks that no revision is missing, and that each hash follows from the one before."""
    for number, event in enumerate(events, 1):
        assert event.revision == number, f"revision {number} is missing before {event.revision}"
    for before, event in pairwise(events):
        covered = hashlib.sha256(before.hash + covered_by_hash(event)).digest()
        assert covered == event.hash, f"revision {event.revision} does not follow the one before it"


def covered_by_hash(event: Event) -> bytes:
    """The bytes that the hash of an event covers, as docs/explanation/proof.md defines them."""
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
