"""Canonical bytes and the hash chain over them.

`hash = SHA-256(previous hash + canonical JSON of {payload, revision, stamp, type})`. Canonical JSON
has sorted keys and no blanks. The same bytes stand in the native bundle (history-formats.md 16), so
a bundle is checked without any knowledge of the database.

The hash before the first event is made from what a history is decided with: its settings, seed and
creation time (`genesis`). A history that was begun before there was such a beginning has 32 zero
bytes there (`GENESIS`): its settings are not in the chain.
"""

import hashlib
from functools import lru_cache
from typing import Any

import msgspec

from app.domain.errors import ChainBroken
from app.domain.log.event import (
    GENESIS,
    Actor,
    Draft,
    Event,
    Head,
    HistoryInfo,
    ObjectKey,
    Origin,
    Revision,
    Stamp,
)
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_canonical = msgspec.json.Encoder(order="sorted")

BEGINNING_FORMAT = 1
"""Version of what `genesis` covers."""

BEGINNING_PROBLEM = (
    "it does not follow from the settings of the history: the event was changed, or the profile, "
    "gates, quirks, seed or creation time were"
)

CONTENT_PROBLEM = "its content does not give the hash stored with it"


class _WrittenStamp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A stamp as it is hashed; its fields are those of Stamp."""

    time: str
    actor: Actor
    verb: str
    request_id: str = ""
    uid: str = ""
    cause: int = 0
    observed: int = 0
    origin: Origin | None = None


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no blanks, UTF-8. Equal values give equal bytes."""
    return _canonical.encode(value)


def genesis(*, seed: int, settings: JsonObject, created: Instant) -> bytes:
    """The hash before the first event of a history with these settings.

    `settings` are JSON: profile, gates, quirks, whether the history is a recording.
    """
    beginning = {
        "created": timestamps.micro_text(created),
        "format": BEGINNING_FORMAT,
        "seed": str(seed),
        "settings": settings,
    }
    return hashlib.sha256(b"redra history\n" + _canonical.encode(beginning)).digest()


def genesis_of(info: HistoryInfo) -> bytes:
    """The hash before the first event of a history whose settings are in its chain."""
    begun = info.begun
    return genesis(seed=begun.seed, settings=begun.settings, created=begun.created)


def beginning_of(info: HistoryInfo, first: Event) -> bytes:
    """The hash that the first event of a history follows.

    Raises ChainBroken when it follows neither the settings of the history nor `GENESIS`.
    """
    for beginning in (genesis_of(info), GENESIS):
        if _fits(first, beginning):
            return beginning
    raise ChainBroken(first.revision, BEGINNING_PROBLEM)


def stamp_json(stamp: Stamp) -> bytes:
    """The canonical form of a stamp: the time as text with six digits, absent fields left out."""
    return _canonical.encode(
        _WrittenStamp(
            time=timestamps.micro_text(stamp.time),
            actor=stamp.actor,
            verb=stamp.verb,
            request_id=stamp.request_id,
            uid=stamp.uid,
            cause=stamp.cause,
            observed=stamp.observed,
            origin=stamp.origin,
        )
    )


def canonical_bytes(event: Event, stamp: bytes | None = None) -> bytes:
    """What the hash covers. `stamp` may be given when it has been encoded already."""
    return canonical_parts(
        event.format,
        event.key,
        event.uid,
        event.body,
        event.revision,
        stamp_json(event.stamp) if stamp is None else stamp,
        event.type,
    )


def canonical_parts(
    format: int, key: ObjectKey, uid: str, body: bytes, revision: Revision, stamp: bytes, type: str
) -> bytes:
    """What the hash of an event of these parts covers."""
    group, resource, namespace, name = key
    return _COVERED % (
        format,
        _text(group),
        _canonical.encode(name),
        _text(namespace),
        body,
        _text(resource),
        _canonical.encode(uid),
        revision,
        stamp,
        type.encode(),
    )


_COVERED = (
    b'{"payload":{"format":%d,"group":%b,"name":%b,"namespace":%b,"object":%b,"resource":%b,'
    b'"uid":%b},"revision":%d,"stamp":%b,"type":"%b"}'
)
"""What the hash covers, with its keys in order."""

_text = lru_cache(maxsize=4_096)(_canonical.encode)
"""Texts that come again and again as JSON: groups, resources, namespaces."""


def event_json(event: Event) -> JsonObject:
    """An event as people read it: the fields of the bundle's lines (history-formats.md 16)."""
    key = event.key
    payload: JsonObject = {"group": key.group, "resource": key.resource}
    payload |= {"namespace": key.namespace, "name": key.name, "uid": event.uid}
    stamp: JsonObject = msgspec.to_builtins(event.stamp)
    stamp["time"] = timestamps.micro_text(event.stamp.time)
    return {
        "revision": event.revision,
        "type": str(event.type),
        "stamp": stamp,
        "payload": payload | {"format": event.format, "object": event.object},
        "hash": f"sha256:{event.hash.hex()}",
    }


def seal(draft: Draft, revision: Revision, previous: bytes) -> Event:
    """The event that a draft becomes at `revision`, after the event whose hash is `previous`."""
    tree = draft.tree
    metadata = tree.get("metadata")
    if isinstance(metadata, dict):
        metadata["resourceVersion"] = str(revision)
    event = Event(
        revision=revision,
        type=draft.type,
        key=draft.key,
        uid=draft.uid,
        body=_canonical.encode(tree),
        stamp=draft.stamp,
        tree=tree,
    )
    event.hash = hashlib.sha256(previous + canonical_bytes(event)).digest()
    return event


def relinked(event: Event, body: bytes, previous: bytes) -> Event:
    """The event with another body, or after another one than before, and the hash of that."""
    fresh = msgspec.structs.replace(event, body=body, tree=None)
    fresh.hash = hashlib.sha256(previous + canonical_bytes(fresh)).digest()
    return fresh


def check_event(event: Event, previous: bytes, expected: Revision) -> None:
    """Raise ChainBroken unless `event` is the one at `expected` and follows `previous`."""
    if event.revision != expected:
        raise ChainBroken(event.revision, f"revision {expected} is missing before it")
    if not _fits(event, previous):
        raise ChainBroken(event.revision, CONTENT_PROBLEM)


def _fits(event: Event, previous: bytes) -> bool:
    return hashlib.sha256(previous + canonical_bytes(event)).digest() == event.hash


def check_continues(events: list[Event], head: Head, stored: Head) -> None:
    """Raise ChainBroken unless a page of the log goes on where `head` was.

    `stored` is the end that the log named before the page was read; a head without a hash is only
    known by its revision. The hash of the first event is computed, and covers all before it; the
    others are looked at by whoever verifies.
    """
    expected = Revision(head.revision + 1)
    if not events:
        raise ChainBroken(expected, "the event is missing although the log goes on")
    if head.hash:
        check_event(events[0], head.hash, expected)
    for number, event in enumerate(events, start=expected):
        if event.revision != number:
            raise ChainBroken(event.revision, f"revision {number} is missing before it")
    last = events[-1]
    if last.revision == stored.revision and last.hash != stored.hash:
        raise ChainBroken(last.revision, "the head of the log names another hash")


def check_same_end(head: Head, stored: Head) -> None:
    """Raise ChainBroken unless the log, which does not go on, ends where `head` is."""
    if stored.revision < head.revision:
        raise ChainBroken(
            stored.revision, f"the log ends there, and was read up to revision {head.revision}"
        )
    if head.hash and stored.hash != head.hash:
        raise ChainBroken(stored.revision, "the log ends with another event than was read")


def check_chain(
    events: list[Event], *, after: Revision = Revision(0), hash: bytes = GENESIS
) -> bytes:
    """Check a run of events that follows revision `after`; returns the hash of the last."""
    previous = hash
    for number, event in enumerate(events, start=after + 1):
        check_event(event, previous, Revision(number))
        previous = event.hash
    return previous
