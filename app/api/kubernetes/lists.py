"""Lists of collections: one snapshot, page by page.

A page has a token with the snapshot's revision and the last key. The snapshot is kept in memory for
the next page; when it was dropped, it is rebuilt from the log, however late the next page is.
Parity: api.md 6.
"""

import base64
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from app.analysis.views import LiveViews
from app.api.kubernetes.parameters import ListOptions
from app.api.kubernetes.representations import Part, Representations, Target, encode, join_list
from app.api.kubernetes.selection import Selection
from app.api.kubernetes.timelines import Timeline
from app.domain.errors import BadRequest, Expired
from app.domain.log import Event, ObjectKey
from app.domain.values import api_groups
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject

_TOKEN_VERSION = f"{api_groups.META}/v1"
_PORTION = 500


INCONSISTENT = -1
"""Replaces the revision in a token: the list continues with the present objects."""

_LIST_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOO_OLD_TO_GO_ON = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


_Place: TypeAlias = tuple[int, int, str, str, Selection]


class _Token(msgspec.Struct, frozen=True):
    """The content of a continue token: format, snapshot, and the last key that was sent."""

    v: str
    rv: int
    after: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBounds:
    """The bounds of lists.

    `snapshots_max` lists are kept for their next page; older ones are read from the log. A page has
    at most `page_max` objects. `retained_revisions` imitates compaction for tests of clients (0:
    every revision is available).
    """

    snapshots_max: int
    page_max: int
    revision_wait_seconds: float
    retained_revisions: int = 0


class Lists:
    """Answers list requests."""

    def __init__(self, representations: Representations, bounds: ListBounds) -> None:
        self._representations = representations
        self._bounds = bounds
        self._snapshots: Bounded[_Place, Sequence[Event]] = Bounded(bounds.snapshots_max)

    async def read(
        self, timeline: Timeline, target: Target, selection: Selection, options: ListOptions
    ) -> bytes:
        """The list in the target's form. Raises BadRequest, Expired, RevisionTooLarge."""
        after: ObjectKey | None = None
        if options.continue_token:
            if options.resource_version not in ("", "0"):
                raise BadRequest("specifying resource version is not allowed when using continue")
            token = _parse_token(options.continue_token)
            revision = timeline.revision if token.rv == INCONSISTENT else token.rv
            kind = target.kind
            after = ObjectKey(kind.group, kind.plural, *token.after)
        else:
            revision = await self._revision(timeline, options)
        self._check_retained(timeline, revision, after)
        limit = min(options.limit, self._bounds.page_max)
        snapshot = await self._snapshot(timeline, target, selection, revision)
        start = 0 if after is None else bisect_right(snapshot, after, key=_key)
        rest = snapshot[start:] if start else snapshot
        page, metadata = first_page(rest, revision, selection, limit)
        if page is not rest:
            # The whole snapshot, whichever page this is: another list may have the same place.
            self._keep(_place(timeline, target, revision, selection), snapshot)
        return await self._encode(page, target, timeline, metadata)

    def _check_retained(self, timeline: Timeline, revision: int, after: ObjectKey | None) -> None:
        """Raise Expired for a revision from which a list cannot continue."""
        if revision >= timeline.oldest(self._bounds.retained_revisions):
            return
        if after is None:
            raise Expired(_LIST_TOO_OLD)
        raise Expired(_TOO_OLD_TO_GO_ON, continue_token=_token(INCONSISTENT, after))

    async def _revision(self, timeline: Timeline, options: ListOptions) -> int:
        """The revision of a first page."""
        wanted = options.revision
        if wanted == 0:
            return timeline.revision
        await timeline.wait_for(wanted, self._bounds.revision_wait_seconds)
        exact = options.resource_version_match == "Exact"
        if exact or (not options.resource_version_match and options.limit):
            return wanted
        return timeline.revision

    async def _snapshot(
        self, timeline: Timeline, target: Target, selection: Selection, revision: int
    ) -> Sequence[Event]:
        """All selected objects at a revision, sorted by namespace and name."""
        kept = _place(timeline, target, revision, selection)
        snapshot = self._snapshots.recent(kept)
        if snapshot is not None:
            return snapshot
        views: LiveViews = timeline.views
        if revision != timeline.revision:
            if revision > timeline.revision:
                raise BadRequest("continue key is not valid: it names a later revision")
            views = await timeline.at(revision)
        return selection.select(views.objects, target.kind)

    def _keep(self, place: _Place, snapshot: Sequence[Event]) -> None:
        self._snapshots.pop(place, None)
        self._snapshots[place] = snapshot

    async def _encode(
        self, events: Sequence[Event], target: Target, timeline: Timeline, metadata: JsonObject
    ) -> bytes:
        """Encode in portions, so that a long list does not block other requests."""
        now = timeline.now
        rows: list[Part] = []
        for start in range(0, len(events), _PORTION):
            if start:
                await anyio.lowlevel.checkpoint()
            portion = list(events[start : start + _PORTION])
            undecoded = [event for event in portion if event.tree is None]
            rows += self._representations.portion(portion, target, now)
            for event in undecoded:
                # The objects outlive the list.
                event.forget_tree()
        return join_list(rows, target, encode(metadata))


def first_page(
    events: Sequence[Event], revision: int, selection: Selection, limit: int
) -> tuple[Sequence[Event], JsonObject]:
    """The first events and the list metadata; `events` itself is returned when all fit."""
    metadata: JsonObject = {"resourceVersion": str(revision)}
    if not limit or len(events) <= limit:
        return events, metadata
    page = events[:limit]
    metadata["continue"] = _token(revision, page[-1].key)
    if selection.is_everything:
        metadata["remainingItemCount"] = len(events) - limit
    return page, metadata


def _place(timeline: Timeline, target: Target, revision: int, selection: Selection) -> _Place:
    """The key of a kept snapshot: history, revision, group, resource, selection."""
    kind = target.kind
    return timeline.runtime.life, revision, kind.group, kind.plural, selection


def _key(event: Event) -> ObjectKey:
    return event.key


def _token(revision: int, key: ObjectKey) -> str:
    token = _Token(v=_TOKEN_VERSION, rv=revision, after=(key.namespace, key.name))
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _parse_token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Token)
    except (ValueError, msgspec.DecodeError) as problem:
        raise BadRequest("continue key is not valid: it cannot be read") from problem
    if token.v != _TOKEN_VERSION or token.rv < INCONSISTENT:
        raise BadRequest("continue key is not valid: incorrect encoded start resourceVersion")
    return token
