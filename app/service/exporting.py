"""Histories leave and come back as native bundles: the same events, stamps and hashes.

What a bundle is made of is the adapters' business; here is the order of effects: pages of the log
into a writer, verified batches of a reader into an empty history.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from anyio import lowlevel

from app.domain.errors import InputError
from app.domain.log import Event, EventType, Head, HistoryInfo, Revision, chain
from app.domain.log.heads import SignedHead
from app.domain.objects import intake
from app.domain.objects.schema import Schemas
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import importing

PAGE = 5_000
"""Events read from the log at once."""

_README = """# History {name}

A recorded history of Dynamic Resource Allocation, {events} events.

    redra import {file} --history {name}
    redra replay {name} --mode verify

`events.jsonl` holds one event a line; each carries the hash over its content and the hash before
it, so the whole file can be checked without a database. `manifest.json` names the last hash and
the hash of the final state.
"""


class HistorySink(Protocol):
    """Something that takes the events of one history, then writes them out."""

    def begin(self, hash: bytes) -> None:
        """Be told what the first event follows."""
        ...

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        ...

    def finish(self, details: JsonObject) -> JsonObject:
        """Write; returns the manifest. Raises InputError when that is not possible."""
        ...


class BundleSource(Protocol):
    """A bundle that can be verified and read."""

    name: str
    manifest: JsonObject

    @property
    def created(self) -> Instant | None:
        """When the history was begun; None in bundles that do not say it."""
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
        """The events in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleImport:
    """A bundle that became a history."""

    history: HistoryInfo
    head: Head
    signed: tuple[SignedHead, ...] = ()


async def export_history(
    log: EventLog,
    info: HistoryInfo,
    sink: HistorySink,
    *,
    program: str,
    file: str,
    sign: Callable[[str, Head], SignedHead] | None = None,
    until: Revision | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JsonObject:
    """Write a history (up to `until`) into a sink; returns the manifest. Raises ChainBroken.

    The chain is verified on the way: a damaged history is not exported. The bundle carries the
    signed heads that are kept with the history, and one made with `sign` when none of them is the
    end of what is exported.
    """
    head = await log.head(info.id)
    last = head.revision if until is None else min(until, head.revision)
    time = Instant(0)
    revision, hash_ = Revision(0), chain.genesis_of(info) if head.revision else head.hash
    sink.begin(hash_)
    sources: list[JsonObject] = []
    reports: list[JsonObject] = []
    while revision < last:
        events = await log.read(info.id, after=revision, limit=PAGE, until=last)
        if not events:
            raise InputError(f"revision {revision + 1} cannot be read", place=info.name)
        if not revision:
            hash_ = chain.beginning_of(info, events[0])
            sink.begin(hash_)
        hash_ = chain.check_chain(events, after=revision, hash=hash_)
        revision = events[-1].revision
        for event in events:
            time = max(time, event.stamp.time)
            if event.type is EventType.HISTORY_IMPORTED:
                sources.extend(event.object.get("sources", []))
                if "report" in event.object:
                    reports.append(event.object["report"])
        sink.write(events)
        if progress is not None:
            progress(revision, last)
        await lowlevel.checkpoint()
    details: JsonObject = {
        "created_by": program,
        "name": info.name,
        "seed": info.seed,
        "created": timestamps.micro_text(info.created),
        "settings": info.settings,
        "sources": sources,
        "reports": reports,
        "heads": await _heads(log, info, Head(revision=revision, hash=hash_, time=time), sign),
        "readme": _README.format(name=info.name, events=revision, file=file),
    }
    return sink.finish(details)


async def _heads(
    log: EventLog,
    info: HistoryInfo,
    head: Head,
    sign: Callable[[str, Head], SignedHead] | None,
) -> list[JsonObject]:
    """The signed heads of what is exported, in JSON."""
    kept = [each for each in await log.kept_heads(info.id) if each.revision <= head.revision]
    is_signed = any(each.revision == head.revision and each.names(head.hash) for each in kept)
    if sign is not None and not is_signed:
        kept.append(sign(info.name, head))
    return [each.to_json() for each in kept]


async def import_bundle(
    log: EventLog,
    source: BundleSource,
    *,
    name: str,
    created: Instant,
    schemas: Schemas | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BundleImport:
    """Make the history `name` of a bundle, event by event as it was: revisions, stamps, hashes.

    `created` counts for a bundle that does not say when its history was begun.
    Raises InputError when the name is taken, the bundle is damaged, or an event cannot be folded
    (with the `schemas` of its release), ChainBroken naming the first bad revision; nothing has
    been appended then.
    """
    await importing.check_name_is_free(log, name)
    source.check(schemas)
    manifest = source.manifest
    total = int(manifest.get("events", 0))
    settings = manifest.get("settings")
    seed = intake.check_seed(manifest.get("seed", 0), source.name)
    info = await log.create_history(
        name,
        seed=seed,
        settings=settings if isinstance(settings, dict) else {},
        created=created if source.created is None else source.created,
        hash=source.beginning,
    )
    head = await log.head(info.id)
    for events in source.batches():
        head = await log.append(info.id, expected=head, events=events)
        if progress is not None:
            progress(head.revision, total)
        await lowlevel.checkpoint()
    heads = source.heads()
    if heads:
        await log.keep_heads(info.id, heads)
    return BundleImport(history=info, head=head, signed=tuple(heads))
