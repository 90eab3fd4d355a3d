"""Doubts: the effect of a recording's losses on answers about it.

A recording may lack objects, bodies, the order of changes, or times. A doubt describes one such
loss for one kind: its `code` (the name of a loss, or one of the codes below), what it affects, how
often it occurs, and a sentence. An answer with a doubt about content is unsure, because it depends
on an object that may have been different. Parity: history-formats.md 3.6.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from app.domain.log.event import Event, EventType, ObjectKey
from app.domain.log.records import Loss, Quality, TimeQuality
from app.domain.values import json_tree
from app.domain.values.identifiers import PoolId, parse_pool


class Affects(StrEnum):
    """The subject of a doubt: the content of objects, the order of changes, or their times."""

    CONTENT = "content"
    ORDER = "order"
    TIME = "time"


LOST_OF_MIN = 2
"""Unrecorded writes of so many objects of a kind show that lines were lost here and there: any
write of the kind may be missing. Those of so many kinds show it of every kind. One may be a single
accident, as for a stretch of a log."""

POOL = "pool"
"""The field of a gap of slices that names the one pool of which a slice was not recorded."""

PARTIAL = "partial"
"""Code: objects of which only a part, or only the identity, was recorded."""

PARTIAL_TEXT = "objects were recorded in part"

NEVER_SEEN = "never_seen"
"""Code: no object of a kind that decisions need was recorded."""

REFUSED = "refused"
"""Code: records that the import could not read and left out."""

UNFINISHED = "unfinished"
"""Code: an import that did not finish."""

UNEXPLAINED = "unexplained"
"""Code: a recorded effect, such as a refusal or an eviction, whose cause no record shows."""

TIMES = "times"
"""A name beside the resources that a recording lacks: its times contradict the order of changes."""

ENDS = "ends"
"""A name beside the resources that a recording lacks: it leaves out all deletions."""

MEANINGS: dict[Loss, tuple[Affects, str]] = {
    Loss.NO_BASELINE: (Affects.CONTENT, "the state before the first event is not known"),
    Loss.SYNTHETIC_CREATE: (
        Affects.CONTENT,
        "objects were first seen when they changed or went away",
    ),
    Loss.SYNTHETIC_DELETE: (Affects.ORDER, "deletions were concluded, not recorded"),
    Loss.COLLAPSED: (Affects.ORDER, "several changes were seen as one"),
    Loss.GAP: (Affects.CONTENT, "stretches were not recorded"),
    Loss.NO_DELETES: (Affects.CONTENT, "deletions are left out, or cannot be told from changes"),
    Loss.METADATA_ONLY: (Affects.CONTENT, "changes were recorded without their body"),
    Loss.TRUNCATED_BODY: (Affects.CONTENT, "bodies were cut"),
    Loss.UNKNOWN_PATCH: (Affects.CONTENT, "patches were applied by a guess of their type"),
    Loss.NO_STATUS: (Affects.CONTENT, "objects came without their status"),
    Loss.SPEC_ONLY: (Affects.CONTENT, "only specifications were recorded"),
    Loss.UNDECODABLE: (Affects.CONTENT, "values could not be decoded"),
    Loss.ENCRYPTED: (Affects.CONTENT, "values were encrypted"),
    Loss.REDACTED: (Affects.CONTENT, "values were removed"),
    Loss.PRINTED: (
        Affects.CONTENT,
        "objects were read from what kubectl printed for people, or from logs",
    ),
    Loss.VERSION_GUESS: (Affects.CONTENT, "fields of old versions have no successor"),
    Loss.CONTRADICTED: (Affects.CONTENT, "objects are shown with content that contradicts itself"),
    Loss.IMMUTABLE: (
        Affects.CONTENT,
        "objects are shown with another value of what no write changes",
    ),
    Loss.NO_RV: (Affects.ORDER, "the order of some changes against other objects is a guess"),
    Loss.CLOCKS_DIFFER: (
        Affects.ORDER,
        "bindings are dated less than a second before reservations that they need: clocks of "
        "servers differ, or they were made too early",
    ),
    Loss.LATE: (Affects.ORDER, "changes came after later ones of other kinds"),
    Loss.NO_TIME: (Affects.TIME, "changes have no time, only an order"),
    Loss.COARSE_TIME: (Affects.TIME, "times are whole seconds"),
    Loss.TIMES_CONTRADICT: (Affects.TIME, "times contradict the order of changes"),
}
"""The effect of each loss, with its sentence. The losses that are not in this table (an absent uid,
actor or managed field, the last state of a deleted object) change no decision about devices."""

_INCOMPLETE = frozenset({Quality.PARTIAL.value, Quality.IDENTITY.value})
_UNSETTLED = frozenset((Loss.TIMES_CONTRADICT.value, Loss.CLOCKS_DIFFER.value))
# A value that no server writes excuses nothing: the rules judge the state as it is shown.
_CONTENT = frozenset(
    loss.value
    for loss, (affects, _) in MEANINGS.items()
    if affects is Affects.CONTENT and loss is not Loss.IMMUTABLE
)


class Doubt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One doubt about one kind (`resourceclaims.resource.k8s.io`, empty for all kinds)."""

    code: str
    affects: Affects
    kind: str
    count: int
    text: str


def of_event(event: Event) -> tuple[str, ...]:
    """The codes of the doubts about the content of an imported event; empty when it is sure.

    A deletion is always sure, even when the state before it is not known.
    """
    origin = event.stamp.origin
    if origin is None or not (origin.losses or origin.quality):
        return ()
    if event.type is EventType.OBJECT_DELETED:
        return ()
    codes = [loss for loss in origin.losses if loss in _CONTENT]
    return (PARTIAL, *codes) if origin.quality in _INCOMPLETE else tuple(codes)


def whole_kinds(event: Event) -> frozenset[tuple[str, str]]:
    """The groups and resources for which a recorder's report names a position; else empty."""
    if event.type is not EventType.HISTORY_IMPORTED:
        return frozenset()
    positions = json_tree.mapping(event.object, "positions")
    names = (name.partition(".") for name in positions)
    return frozenset((group, resource) for resource, _, group in names)


def gaps_closed(event: Event, gaps: Iterable[ObjectKey]) -> list[ObjectKey]:
    """The gaps that a recorder's report closes: those of a whole kind, in one namespace or all."""
    whole = whole_kinds(event)
    if not whole:
        return []
    return [key for key in gaps if not key.name and (key.group, key.resource) in whole]


def is_undated(gap: Event) -> bool:
    """Whether writes of one object are missing that only a later event shows: any time before."""
    origin = gap.stamp.origin
    return bool(gap.key.name) and origin is not None and origin.losses == (Loss.GAP.value,)


def is_derived(event: Event) -> bool:
    """Whether the state was derived from the last known one, and is as uncertain as that."""
    origin = event.stamp.origin
    is_derived = origin is not None and origin.quality == Quality.RECONSTRUCTED
    return is_derived and event.type is not EventType.OBJECT_DELETED


def is_change(event: Event) -> bool:
    """Whether a recorded request changed an object, and so neither deleted nor bound it."""
    return event.stamp.origin is not None and event.stamp.verb in ("update", "patch")


def is_late(gap: Event) -> bool:
    """Whether the gap of a kind stands where it was noticed, and not where the writes were."""
    origin = gap.stamp.origin
    has_time = origin is not None and origin.time_quality == TimeQuality.EXACT
    return has_time and not gap.key.name


def pool_of(gap: Event) -> PoolId | None:
    """The only pool whose slices a gap of slices is of; None for a gap of all of them."""
    if gap.type is not EventType.GAP_OBSERVED or gap.key.name:
        return None
    pool = str(gap.object.get(POOL, ""))
    return parse_pool(pool) if pool else None


def text_of(code: str) -> str:
    """The sentence for a code from `of_event`."""
    return PARTIAL_TEXT if code == PARTIAL else MEANINGS[Loss(code)][1]


def is_sure(doubts: Iterable[Doubt]) -> bool:
    """True when no doubt is about content."""
    return all(doubt.affects is not Affects.CONTENT for doubt in doubts)


def is_settled(doubts: Sequence[Doubt]) -> bool:
    """True when no doubt is about content, and no times contradict the order of changes.

    When times contradict the order, the state that a controller saw is not known.
    """
    return is_sure(doubts) and all(doubt.code not in _UNSETTLED for doubt in doubts)


def certainty(doubts: Iterable[Doubt]) -> str:
    """`sure` or `unsure`, the word that answers carry."""
    return "sure" if is_sure(doubts) else "unsure"
