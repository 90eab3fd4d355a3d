"""Canonical bytes and the hash chain over them.

`hash = SHA-256(previous hash + canonical JSON of {payload, revision, stamp, type})`. Canonical JSON
has sorted keys and no blanks. The native bundle contains the same bytes (history-formats.md 16), so
a bundle can be checked without the database.

The hash before the first event is computed from the settings, the seed and the creation time of the
history (`genesis`). A history that was created before this rule existed has 32 zero bytes instead
(`GENESIS`): its settings are not in the chain.
"""

import hashlib
import json
from collections.abc import Sequence
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
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_canonical = msgspec.json.Encoder(order="sorted")

BEGINNING_FORMAT = 1
"""Version of the input of `genesis`."""

BEGINNING_PROBLEM = (
    "it does not follow from the settings of the history: the event was changed, or the profile, "
    "gates, quirks, seed or creation time were"
)

HEAD_TIME_PROBLEM = "the head's time is not the greatest time of the log"

CONTENT_PROBLEM = "its content does not give the hash stored with it"


class _WrittenStamp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The form of a stamp that is hashed; it has the fields of Stamp."""

    time: str
    actor: Actor
    verb: str
    request_id: str = ""
    uid: Uid = NO_UID
    cause: int = 0
    observed: int = 0
    origin: Origin | None = None


def canonical_json(value: Any) -> bytes:
    """The canonical JSON of a value: sorted keys, no blanks, UTF-8.

    Equal values give equal bytes.
    """
    return _canonical.encode(value)


def names_once(text: str | bytes) -> bool:
    """Whether no mapping in a JSON text has two equal names, of which a reader would see one."""

    def check(pairs: list[tuple[str, object]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError

    try:
        json.loads(text, object_pairs_hook=check)
    except (ValueError, RecursionError):
        return False
    return True


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


def canonical_bytes(event: Event, stamp: bytes = b"") -> bytes:
    """The bytes that the hash of an event covers; `stamp` is its stamp, where it is written."""
    return canonical_parts(
        event.format,
        event.key,
        event.uid,
        event.body,
        event.revision,
        stamp or stamp_json(event.stamp),
        event.type,
    )


def canonical_parts(
    format: int, key: ObjectKey, uid: Uid, body: bytes, revision: Revision, stamp: bytes, type: str
) -> bytes:
    """The bytes that the hash covers, for an event with these parts."""
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
"""The template of the bytes that the hash covers, with the keys in order."""

_text = lru_cache(maxsize=4_096)(_canonical.encode)
"""Encodes frequent texts as JSON: groups, resources, namespaces."""


def event_json(event: Event) -> JsonObject:
    """The readable form of an event: the fields of a line of a bundle (history-formats.md 16)."""
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
    """The event that a draft becomes at `revision`, after the event whose hash is `previous`.

    The draft's tree stays as it is: parts of it may belong to an object that views hold. Without
    `previous` the event gets no hash: it is never stored.
    """
    tree = numbered(draft.tree, revision)
    event = Event(
        revision=revision,
        type=draft.type,
        key=draft.key,
        uid=draft.uid,
        body=_canonical.encode(tree),
        stamp=draft.stamp,
        tree=tree,
    )
    if previous:
        event.hash = hashlib.sha256(previous + canonical_bytes(event)).digest()
    return event


def numbered(tree: JsonObject, revision: Revision) -> JsonObject:
    """The object with the revision as its resourceVersion; a tree without metadata as it is."""
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        return tree
    return {**tree, "metadata": {**metadata, "resourceVersion": str(revision)}}


def relinked(event: Event, body: bytes, previous: bytes) -> Event:
    """The event with this body, following the event whose hash is `previous`, with a new hash."""
    fresh = msgspec.structs.replace(event, body=body, tree=None)
    fresh.hash = hashlib.sha256(previous + canonical_bytes(fresh)).digest()
    return fresh


def check_event(event: Event, previous: bytes, expected: Revision) -> None:
    """Raises ChainBroken unless `event` has the revision `expected` and follows `previous`."""
    if event.revision != expected:
        raise ChainBroken(event.revision, f"revision {expected} is missing before it")
    if not _fits(event, previous):
        raise ChainBroken(event.revision, CONTENT_PROBLEM)


def _fits(event: Event, previous: bytes) -> bool:
    return hashlib.sha256(previous + canonical_bytes(event)).digest() == event.hash


def check_continues(events: list[Event], head: Head, stored: Head) -> None:
    """Raises ChainBroken unless a page of the log continues from `head`.

    `stored` is the head that the log named before the page was read. A head without a hash is
    compared by revision only.
    """
    expected = Revision(head.revision + 1)
    if not events:
        raise ChainBroken(expected, "the event is missing although the log goes on")
    check_linked(events, after=head.revision, hash=head.hash)
    last = events[-1]
    if last.revision == stored.revision and last.hash != stored.hash:
        raise ChainBroken(last.revision, "the head of the log names another hash")


def check_same_end(head: Head, stored: Head) -> None:
    """Raises ChainBroken unless a log without further events ends at `head`.

    A hash or time of `head` that is empty or 0 is not known and not compared.
    """
    if stored.revision < head.revision:
        raise ChainBroken(
            stored.revision, f"the log ends there, and was read up to revision {head.revision}"
        )
    if head.hash and stored.hash != head.hash:
        raise ChainBroken(stored.revision, "the log ends with another event than was read")
    if head.time and stored.time != head.time:
        raise ChainBroken(stored.revision, HEAD_TIME_PROBLEM)


def check_linked(events: Sequence[Event], *, after: Revision, hash: bytes) -> None:
    """Raises ChainBroken unless the events follow revision `after`, and each the one before.

    `hash` is that of the event at `after`. When it is empty, the content of the first event is
    checked by no hash.
    """
    previous = hash
    for number, event in enumerate(events, start=after + 1):
        if previous:
            check_event(event, previous, Revision(number))
        elif event.revision != number:
            raise ChainBroken(event.revision, f"revision {number} is missing before it")
        previous = event.hash


def check_chain(
    events: list[Event], *, after: Revision = Revision(0), hash: bytes = GENESIS
) -> bytes:
    """Check a run of events that follows revision `after`; returns the hash of the last."""
    previous = hash
    for number, event in enumerate(events, start=after + 1):
        check_event(event, previous, Revision(number))
        previous = event.hash
    return previous
