"""The beginning of a recording: all kinds at one resource version.

First, one object of each kind is requested. The answers show which kinds are denied, and which have
a counter of their own: the versions of kinds with the common counter only rise from one answer to
the next. All kinds of the common counter are then listed at exactly the last of these versions,
page by page, and followed from there. So the recording begins with one state of the whole cluster.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from app.domain.errors import (
    ClusterUnreachable,
    Expired,
    Forbidden,
    InputError,
    MethodNotAllowed,
    NotFound,
    Rejected,
    RevisionTooLarge,
    TooManyRequests,
)
from app.domain.log.recorded_cluster import ListPage, ServedKind
from app.domain.log.records import Record, comparable_version
from app.domain.values.timestamps import Instant
from app.ports import ClusterSource
from app.service.recording import served_kinds
from app.service.recording.following import gap
from app.service.recording.journal import Journal
from app.service.recording.known import KnownObjects, Start

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBounds:
    """Bounds of a snapshot.

    `page_max` objects are listed at once. A failed request is tried up to `tries_max` times, with a
    pause that doubles from `pause_seconds`.
    """

    page_max: int = 500
    tries_max: int = 5
    pause_seconds: float = 0.5


@dataclass(slots=True, kw_only=True)
class Probed:
    """The result of the first requests: the common version, and the starts of the kinds."""

    version: str = ""
    starts: dict[str, Start] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)


async def probe(
    source: ClusterSource, kinds: Sequence[ServedKind], bounds: SnapshotBounds
) -> Probed:
    """Request one object of each kind. Raises Unauthorized, ClusterUnreachable."""
    probed = Probed()
    versions: dict[str, str] = {}
    first: ServedKind | None = None
    for kind in kinds:
        probed.starts[kind.name] = start = Start(known=KnownObjects(), is_listed=False)
        try:
            page = await patient_page(source, kind, bounds, limit=1)
        except (Forbidden, NotFound, MethodNotAllowed) as problem:
            start.is_denied = True
            probed.denied[kind.name] = str(problem)
            continue
        first = first or kind
        versions[kind.name] = page.version
    if first is None:
        return probed
    probed.version = (await patient_page(source, first, bounds, limit=1)).version
    low, high = comparable_version(versions[first.name]), comparable_version(probed.version)
    for name, version in versions.items():
        order = comparable_version(version)
        start = probed.starts[name]
        start.shares_counter = bool(order) and low <= order <= high
        low = order if low <= order <= high else low
    return probed


async def probe_later(
    source: ClusterSource, followed: Sequence[ServedKind], bounds: SnapshotBounds
) -> tuple[list[ServedKind], list[str], Probed] | None:
    """The kinds that are served by now beside those that are followed, and what was probed of them.

    The names between are of the kinds that are chosen and not served. None without a new kind, or
    without an answer.
    """
    kinds, missing = await served_kinds.ask(source) or ([], [])
    names = {kind.name for kind in followed}
    new = [kind for kind in kinds if kind.name not in names]
    if not new:
        return None
    try:
        # A kind of the common counter goes first, as at the beginning.
        probed = await probe(source, [*followed[:1], *new], bounds)
    except (Rejected, ClusterUnreachable, InputError):
        return None
    for kind in followed[:1]:
        probed.starts.pop(kind.name)
        probed.denied.pop(kind.name, None)
    return new, missing, probed


async def take(
    source: ClusterSource,
    kinds: Sequence[ServedKind],
    probed: Probed,
    journal: Journal,
    now: Instant,
    bounds: SnapshotBounds,
) -> None:
    """Append the existing objects and set the position from which each kind is followed."""
    for kind in kinds:
        start = probed.starts[kind.name]
        if start.is_denied:
            text = f"{probed.denied[kind.name]}; {kind.name} are not recorded until that is allowed"
            await journal.add([gap(source.name, kind.key, text, now)])
            continue
        try:
            await _take_kind(source, kind, start, probed.version, journal, now, bounds)
        except (Expired, RevisionTooLarge) as problem:
            # The state at that version expired during the read: the follower lists the kind again.
            start.reason = str(problem)
            text = f"{problem}; the first list of {kind.name} is not whole"
            await journal.add([gap(source.name, kind.key, text, now)])
        if start.position:
            journal.progress.positions[kind.name] = start.position


async def _take_kind(
    source: ClusterSource,
    kind: ServedKind,
    start: Start,
    version: str,
    journal: Journal,
    now: Instant,
    bounds: SnapshotBounds,
) -> None:
    token = ""
    exact = version if start.shares_counter else ""
    while True:
        page = await patient_page(
            source, kind, bounds, limit=bounds.page_max, version=exact, token=token
        )
        records: list[Record] = []
        for item in page.items:
            if item.record is not None:
                start.known.note(item.record)
                records.append(item.record)
            elif item.problem:
                records.append(gap(source.name, item.key or kind.key, item.problem, now))
        await journal.add(records)
        token = page.token
        if not token:
            break
    start.position, start.is_listed = page.version, True
    journal.progress.collector.note_listed(kind.group, kind.resource)


async def patiently(
    ask: Callable[[], Awaitable[_Answer]], bounds: SnapshotBounds, note: Callable[[str], None]
) -> _Answer:
    """A first answer of a cluster, asked for again when the connection breaks.

    Whatever a wrong address or wrong credentials may cause is raised at once. `note` is called with
    the reason of each repetition. Raises ClusterUnreachable, Rejected.
    """
    pause = bounds.pause_seconds
    for attempt in range(1, bounds.tries_max + 1):
        try:
            return await ask()
        except ClusterUnreachable as problem:
            if not problem.is_broken:
                raise
            if attempt == bounds.tries_max:
                raise ClusterUnreachable(f"{problem}; tried {attempt} times") from problem
            note(f"{problem}; trying again")
        await anyio.sleep(pause)
        pause *= 2
    raise AssertionError("the last attempt returns or raises")


async def patient_page(
    source: ClusterSource,
    kind: ServedKind,
    bounds: SnapshotBounds,
    *,
    limit: int,
    version: str = "",
    token: str = "",
) -> ListPage:
    """A page of a list, requested again when the cluster gives no answer."""
    pause = bounds.pause_seconds
    for attempt in range(1, bounds.tries_max + 1):
        try:
            return await source.list_page(kind, limit=limit, version=version, token=token)
        except ClusterUnreachable as problem:
            if attempt == bounds.tries_max or problem.is_refused:
                raise
        except TooManyRequests as problem:
            if attempt == bounds.tries_max:
                raise
            pause = max(pause, float(problem.retry_after_seconds))
        await anyio.sleep(pause)
        pause *= 2
    raise AssertionError("the last attempt returns or raises")
