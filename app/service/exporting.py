"""Export and import of histories as native bundles: the same events, stamps and hashes.

The adapters define the form of a bundle. This module defines the order of effects: pages of the log
go into a writer, verified batches of a reader go into an empty history.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from anyio import lowlevel

from app.domain.errors import ChainBroken, InputError, PlainSecrets
from app.domain.log import ChainStart, Event, EventType, Head, HistoryInfo, Revision, chain
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.heads import SignedHead
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.write import intake
from app.domain.values import counts, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import broken_histories, history_creation, importing, moments

_README = """# History {name}

A recorded history of Dynamic Resource Allocation, {events}.

    redra import {file} --history {name}
    redra replay {name} --mode verify

`events.jsonl` holds one event a line; each carries the hash over its content and the hash before
it, so the whole file can be checked without a database. `manifest.json` names the last hash and
the hash of the final state.
"""


class HistorySink(Protocol):
    """A sink that takes the events of one history, then writes them out."""

    def begin(self, hash: bytes) -> None:
        """Set the hash that the first event follows."""
        ...

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        ...

    def discard(self) -> None:
        """Drop all events of this sink; nothing is written."""
        ...

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the bundle; returns the manifest. Raises InputError when writing fails."""
        ...


class BundleSource(Protocol):
    """A bundle that can be verified and read."""

    name: str
    manifest: JsonObject

    @property
    def begun(self) -> ChainStart | None:
        """The values from which the chain of a fork begins; None for other histories."""
        ...

    @property
    def created(self) -> Instant | None:
        """The creation time of the history; None when the bundle does not say it."""
        ...

    @property
    def beginning(self) -> bytes:
        """The hash that the first event follows."""
        ...

    def check(self, schemas: Schemas | None = None) -> None:
        """Raise InputError or ChainBroken unless the bundle is whole.

        With `schemas`, every event must be such that all views can fold it.
        """
        ...

    def heads(self) -> list[SignedHead]:
        """The signed heads that the bundle carries, checked against its events by `check`."""
        ...

    def batches(self) -> Iterator[list[Event]]:
        """The events in order, in batches."""
        ...

    def secret_keys(self) -> dict[str, bytes]:
        """The keys of Secrets that the bundle contains, by id."""
        ...


class SecretKeyring(Protocol):
    """The keys with which values of Secrets are encrypted."""

    def cipher(self, info: HistoryInfo) -> SecretCipher:
        """The cipher for the Secrets of one history."""
        ...

    def find(self, name: str) -> bytes | None:
        """The key with that id; None when this keyring does not have it."""
        ...

    def take(self, keys: dict[str, bytes]) -> None:
        """Add the keys of a bundle to this keyring."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleImport:
    """The result of importing a bundle.

    `protected` counts values of Secrets that the bundle held in plain text: from the first of them
    on, the history has other hashes than the bundle. `keys` counts the keys that came with the
    bundle.
    """

    history: HistoryInfo
    head: Head
    signed: tuple[SignedHead, ...] = ()
    protected: int = 0
    keys: int = 0


async def export_history(
    log: EventLog,
    info: HistoryInfo,
    sink: HistorySink,
    *,
    program: str,
    file: str,
    sign: Callable[[str, Head], SignedHead] | None = None,
    until: Revision | None = None,
    secrets: SecretKeyring | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JsonObject:
    """Write a history (up to `until`) into a sink; returns the manifest. Raises ChainBroken.

    The write of a controller that `until` is part of is written whole: an imported bundle goes on
    from its end.

    The chain is verified on the way, and the head and the kept heads are compared: a damaged
    history is not exported, and no bundle that an import would refuse. The bundle carries the
    signed heads that are kept with the history. When none of them is the end of the export, a head
    made with `sign` is added. With `secrets` the bundle contains the keys of its Secrets. Without,
    Secrets that an old program stored in plain text are refused with PlainSecrets.
    """
    head = await log.head(info.id)
    last = head.revision if until is None else min(until, head.revision)
    last = await moments.end_of_write(log, info, last)
    info = await moments.history_at(log, info, last)
    kept = [each for each in await log.kept_heads(info.id) if each.revision <= last]
    contents = _Contents(info, kept, has_keys=secrets is not None)
    beginning = chain.genesis_of(info) if head.revision else head.hash
    sink.begin(beginning)
    try:
        end = await _write_events(log, info, sink, beginning, last, contents, progress)
        await _check_end(log, info, head, end)
        heads = _heads(info, kept, end, sign)
    except BaseException:
        sink.discard()
        raise
    details: JsonObject = {
        "created_by": program,
        "name": info.name,
        "seed": info.seed,
        "created": timestamps.micro_text(info.created),
        "settings": info.settings,
        **_begun(info),
        "sources": contents.sources,
        "reports": contents.reports,
        "heads": heads,
        "readme": _README.format(
            name=info.name, events=counts.of(end.revision, "event"), file=file
        ),
    }
    if secrets is not None:
        keys = {name: secrets.find(name) for name in sorted(contents.key_ids)}
        details["secret_keys"] = {name: key for name, key in keys.items() if key is not None}
    return sink.finish(details)


def _begun(info: HistoryInfo) -> JsonObject:
    """The values from which the chain of a fork begins; empty for other histories."""
    begun = info.beginning
    if begun is None:
        return {}
    created = timestamps.micro_text(begun.created)
    return {"beginning": {"seed": begun.seed, "created": created, "settings": begun.settings}}


async def _write_events(
    log: EventLog,
    info: HistoryInfo,
    sink: HistorySink,
    beginning: bytes,
    last: Revision,
    contents: "_Contents",
    progress: Callable[[int, int], None] | None,
) -> Head:
    """Write all events up to `last` into the sink, verified; returns their head."""
    time = Instant(0)
    revision, hash_ = Revision(0), beginning
    while revision < last:
        events = await log.read(info.id, after=revision, limit=EVENTS_PAGE, until=last)
        if not events:
            raise InputError(f"revision {revision + 1} cannot be read", place=info.name)
        if not revision:
            hash_ = chain.beginning_of(info, events[0])
            sink.begin(hash_)
        hash_ = chain.check_chain(events, after=revision, hash=hash_)
        revision = events[-1].revision
        for event in events:
            time = max(time, event.stamp.time)
            contents.add(event)
        sink.write(events)
        if progress is not None:
            progress(revision, last)
        await lowlevel.checkpoint()
    return Head(revision=revision, hash=hash_, time=time)


class _Contents:
    """The manifest's facts about the events: sources, reports, and the keys of their Secrets."""

    def __init__(self, info: HistoryInfo, heads: Iterable[SignedHead], *, has_keys: bool) -> None:
        self._info = info
        self._heads: dict[Revision, list[SignedHead]] = {}
        for each in heads:
            self._heads.setdefault(each.revision, []).append(each)
        self._has_keys = has_keys
        self.sources: list[JsonObject] = []
        self.reports: list[JsonObject] = []
        self.key_ids: set[str] = set()

    def add(self, event: Event) -> None:
        """Add one event.

        Raises ChainBroken if a kept head names another one, and InputError for plain values in a
        bundle without keys.
        """
        if any(not each.names(event.hash) for each in self._heads.get(event.revision, ())):
            raise ChainBroken(event.revision, "a signed head names another hash")
        if event.is_about_object and secret_values.is_secret(event.key):
            if not self._has_keys:
                _refuse_plain(event, self._info)
            self.key_ids |= secret_values.key_ids(event.object)
        if event.type is EventType.HISTORY_IMPORTED:
            self.sources.extend(event.object.get("sources", []))
            if "report" in event.object:
                self.reports.append(event.object["report"])


def _refuse_plain(event: Event, info: HistoryInfo) -> None:
    if secret_values.count_plain(event.object):
        raise PlainSecrets(
            f"revision {event.revision} holds the values of {event.key} in plain text, as programs "
            "before this one stored them",
            place=info.name,
            cure="add --with-secrets to have them in the bundle; importing that encrypts them",
        )


async def _check_end(log: EventLog, info: HistoryInfo, head: Head, end: Head) -> None:
    """Raise ChainBroken if the exported events reach the head and it is not their end."""
    if end.revision < head.revision:
        return
    if (end.hash, end.time) != (head.hash, head.time) and end.revision:
        raise ChainBroken(end.revision, broken_histories.NOT_THE_END)
    await broken_histories.check_nothing_after(log, info.id, head)


def _heads(
    info: HistoryInfo,
    kept: Sequence[SignedHead],
    head: Head,
    sign: Callable[[str, Head], SignedHead] | None,
) -> list[JsonObject]:
    """The signed heads of the exported events, as JSON."""
    heads = [*kept]
    is_signed = any(each.revision == head.revision and each.names(head.hash) for each in kept)
    if sign is not None and not is_signed:
        heads.append(sign(info.name, head))
    return [each.to_json() for each in heads]


async def import_bundle(
    log: EventLog,
    source: BundleSource,
    *,
    name: str,
    created: Instant,
    schemas: Schemas | None = None,
    secrets: SecretKeyring | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BundleImport:
    """Make the history `name` from a bundle, event by event: same revisions, stamps, hashes.

    `created` is the creation time when the bundle does not say it. With `secrets` the keys in the
    bundle are kept, and values of Secrets that it holds in plain text are encrypted. Events from
    the first such value on get other hashes, and signed heads from there on are left out. Raises
    InputError when the name is taken, the bundle is damaged, or an event cannot be folded (with the
    `schemas` of its release), and ChainBroken naming the first bad revision; nothing has been
    appended then.
    """
    await importing.check_name_is_free(log, name)
    source.check(schemas)
    manifest = source.manifest
    total = int(manifest.get("events", 0))
    settings = manifest.get("settings")
    seed = intake.check_seed(manifest.get("seed", 0), source.name)
    make = partial(
        log.create_history,
        seed=seed,
        settings=settings if isinstance(settings, dict) else {},
        created=created if source.created is None else source.created,
        hash=source.beginning,
        beginning=source.begun,
    )
    async with history_creation.unfinished(log, name, make) as info:
        head = await log.head(info.id)
        protection = None if secrets is None else _Protection(secrets.cipher(info), head.hash)
        for events in source.batches():
            if protection is not None:
                events = protection.applied(events)
            head = await log.append(info.id, expected=head, events=events)
            if progress is not None:
                progress(head.revision, total)
            await lowlevel.checkpoint()
        heads = source.heads()
        keys: dict[str, bytes] = {}
        if protection is not None:
            heads = [each for each in heads if each.revision < protection.changed_from]
        if heads:
            await log.keep_heads(info.id, heads)
        if secrets is not None:
            keys = source.secret_keys()
            secrets.take(keys)
    return BundleImport(
        history=info,
        head=head,
        signed=tuple(heads),
        protected=0 if protection is None else protection.count,
        keys=len(keys),
    )


class _Protection:
    """Encrypts the plain values of Secrets in the events of a verified bundle.

    `count` is the number of these values, `changed_from` the first event with another hash.
    """

    def __init__(self, cipher: SecretCipher, beginning: bytes) -> None:
        self._cipher = cipher
        self._previous = beginning
        self.count = 0
        self.changed_from = Revision(2**62)

    def applied(self, events: list[Event]) -> list[Event]:
        """The next events of the chain, with new hashes from the first changed event on."""
        linked: list[Event] = []
        for event in events:
            body = event.body
            if event.is_about_object and secret_values.is_secret(event.key):
                plain = secret_values.count_plain(event.object)
                if plain:
                    self.count += plain
                    self.changed_from = min(self.changed_from, event.revision)
                    tree = secret_values.protected_where_plain(
                        event.key, event.object, self._cipher
                    )
                    body = chain.canonical_json(tree)
            if self.count:
                event = chain.relinked(event, body, self._previous)
            self._previous = event.hash
            linked.append(event)
        return linked
